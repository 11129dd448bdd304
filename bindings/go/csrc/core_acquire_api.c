/* hf_acquire() and hf_adopt(): the checks before a bid, and who may bid at all (C11). */
#include <stdlib.h>
#include <string.h>

#include "core_abi_struct.h"
#include "core_cache.h"
#include "core_started.h"

#include "base_banned.h"

struct request {
    struct hf__name name;
    const char *ticket;  /* adopt only */
    const uint64_t *tag; /* start only */
    bool here;           /* start only: its first attempt on this thread */
    hf_options opt;
};

int hf__copy_options(const hf_options *given, hf_options *ret, hf_error *err)
{
    static const struct hf__abi_struct type = {"hf_options", offsetof(hf_options, ttl_ms),
                                               sizeof(hf_options)};
    int r = 0;

    *ret = (hf_options)HF_OPTIONS_INIT;
    if (given != NULL)
        r = hf__copy_abi_struct(&type, given, ret, err);
    if (r == 0 && ret->ttl_ms == 0)
        ret->ttl_ms = ret->cached ? HF_TTL_CACHED_MS : HF_TTL_DEFAULT_MS;
    return r;
}

static int check_options(const hf_options *opt, hf_error *err)
{
    if (opt->mode != HF_EXCLUSIVE && opt->mode != HF_SHARED)
        return hf__fail(err, HF_INVALID, "the mode is neither HF_EXCLUSIVE nor HF_SHARED");
    if (opt->limit > 0 && opt->mode != HF_SHARED)
        return hf__fail(err, HF_INVALID, "a limit needs a shared lock");
    if (opt->ttl_ms != HF_NEVER && (opt->ttl_ms < HF_TTL_MIN_MS || opt->ttl_ms > HF_TTL_MAX_MS))
        return hf__fail(err, HF_INVALID, "the ttl must be from %d ms to 7 days, or never expire",
                        HF_TTL_MIN_MS);
    if (opt->wait_ms < HF_FOREVER)
        return hf__fail(err, HF_INVALID, "the wait is negative");
    if (opt->patience_ms < HF_FOREVER)
        return hf__fail(err, HF_INVALID, "the patience is negative");
    if (opt->lock_delay_ms < 0 || opt->lock_delay_ms > HF_DELAY_MAX_MS)
        return hf__fail(err, HF_INVALID, "the lock-delay must be from 0 to 1 hour");
    if (opt->max_hold_ms < 0)
        return hf__fail(err, HF_INVALID, "max-hold is negative");
    if (opt->max_hold_ms > 0 && opt->ttl_ms == HF_NEVER)
        return hf__fail(err, HF_INVALID,
                        "max-hold needs a lease; a lock that never expires has none");
    if (opt->cached && (opt->mode != HF_EXCLUSIVE || opt->ttl_ms == HF_NEVER))
        return hf__fail(err, HF_INVALID, "a cached lock is exclusive, and has a lease");
    if (opt->owner >> 63 != 0)
        return hf__fail(err, HF_INVALID, "the owner must be below 2^63");
    if (opt->note != NULL && strlen(opt->note) > HF_NOTE_MAX)
        return hf__fail(err, HF_INVALID, "the note is too long; at most %d bytes", HF_NOTE_MAX);
    return 0;
}

static int check_capabilities(const hf_client *client, const hf_options *opt, hf_error *err)
{
    const struct {
        bool asked;
        uint32_t needs;
        const char *what;
    } wants[] = {
        {opt->mode == HF_SHARED, HF_CAN_SHARE, "shared locks"},
        {opt->limit > 0, HF_CAN_LIMIT, "limits"},
        {opt->ttl_ms == HF_NEVER, HF_CAN_NEVER, "locks that never expire"},
        {opt->lock_delay_ms > 0, HF_CAN_DELAY, "lock-delay"},
        {opt->max_hold_ms > 0, HF_CAN_LEASE, "leases, which max-hold needs"},
        {opt->wanted != 0 || opt->on_wanted != NULL, HF_CAN_WANTED,
         "way to tell that somebody waits"},
        {opt->cached != 0, HF_CAN_CACHE, "cached locks"},
    };

    for (size_t i = 0; i < sizeof wants / sizeof wants[0]; i++) {
        if (wants[i].asked && !(client->capabilities & wants[i].needs))
            return hf__fail(err, HF_UNSUPPORTED, "%s has no %s", client->store_name, wants[i].what);
    }
    return 0;
}

/* Whether its user has it, and it is over. Mutex held, here and below. */
static bool is_lost(hf_lock *lock)
{
    return lock->duty == HF__DUTY_KEEP && !hf__lock_holds(lock, hf__now_ns(lock->client->env));
}

/* This owner has, or waits for, this very lock. */
static int reenter(hf_lock *lock, const struct request *q, hf_error *err)
{
    const hf_options *opt = &q->opt;

    if (is_lost(lock))
        return hf__fail(err, HF_LOST, "it was lost: %s", hf_cause_text(lock->bidder.cause));
    if (!opt->reentrant || !lock->reentrant || q->ticket != NULL)
        return hf__fail(err, HF_DEADLOCK, NULL);
    if (lock->duty != HF__DUTY_KEEP)
        return hf__fail(err, HF_DEADLOCK, "this owner is waiting for it already");
    if (q->tag != NULL && !q->here)
        return hf__fail(err, HF_INVALID,
                        "this owner holds it: enter it again by hf_acquire(), which does not wait");
    if (opt->mode == HF_EXCLUSIVE && lock->bid.mode == HF_SHARED)
        return hf__fail(err, HF_DEADLOCK,
                        "it is held shared; release it before asking for it exclusive");
    lock->count++;
    return 0;
}

/* Puts a new handle under its owner's name, or finds the one that is there already: then 1. */
static int take_name(hf_lock *lock, const struct request *q, hf_lock **ret_found, hf_error *err)
{
    hf_client *client = lock->client;
    hf_lock *found = hf__reentry_find(client, lock->name, lock->bid.name_len, lock->owner);

    if (found != NULL && (q->opt.reentrant || !is_lost(found))) {
        int r = reenter(found, q, err);
        *ret_found = found;
        return r < 0 ? r : 1;
    }
    int r = hf__keeper_start(client, err);
    if (r == 0)
        hf__reentry_add(lock);
    return r;
}

static int prepare(hf_client *client, const hf_options *given, struct request *q, hf_error *err)
{
    int r = hf__name_len(q->name.bytes, q->name.len, &q->name.len, err);

    if (r == 0)
        r = hf__copy_options(given, &q->opt, err);
    if (r == 0)
        r = check_options(&q->opt, err);
    if (r == 0)
        r = check_capabilities(client, &q->opt, err);
    if (q->tag != NULL || q->ticket != NULL) /* what is started tells by events whose it is */
        q->opt.cached = 0;
    return r;
}

/* A handle that the client counts. On failure it is still the caller's to drop. */
static int acquire(hf_lock *lock, const struct request *q, hf_lock **ret_lock, hf_error *err)
{
    hf_lock *found = lock;
    int r = hf__lock_new_ticket(lock, err);

    if (q->tag != NULL && q->opt.owner == 0) /* not the thread: that one may start many */
        lock->owner = HF__OWNER_NOBODY;
    if (r == 0)
        r = take_name(lock, q, &found, err);
    if (r == 0) {
        r = q->ticket != NULL ? hf__adopt(lock, q->ticket, &q->opt, err)
            : q->here         ? hf__bid_or_start(lock, &q->opt, *q->tag, err)
            : q->tag != NULL  ? hf__start_bid(lock, &q->opt, *q->tag, err)
                              : hf__bid(lock, &q->opt, err);
        if (r < 0)
            hf__reentry_remove(lock);
    }
    if (r >= 0)
        *ret_lock = r == HF__ACQUIRE_ASLEEP ? NULL : found;
    if (r != 0 && r != HF__ACQUIRE_ASLEEP) /* nobody has it */
        hf__lock_unref(lock);
    return r < 0 ? r : 0;
}

/* The mutex is taken twice on the way to a lock that is free: before the store is asked, and
 * after. */
static int enter_and_acquire(hf_client *client, struct request *q, const hf_options *given,
                             hf_lock **ret_lock, hf_error *err)
{
    struct hf__visit visit;
    int r = ret_lock == NULL        ? hf__fail(err, HF_INVALID, "there is no place for the lock")
            : client == NULL        ? hf__fail(err, HF_INVALID, "there is no client")
            : hf__is_forked(client) ? hf__fail(err, HF_FORKED, NULL)
                                    : prepare(client, given, q, err);

    if (r == 0 && q->opt.cached)
        r = hf__cache_acquire(client, &q->name, &q->opt, ret_lock, err);
    if (r != 0)
        return r < 0 ? r : 0;
    hf_lock *lock = hf__lock_new(client, &q->name, &q->opt);
    if (lock == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    r = hf__enter_locked(client, &visit, err);
    if (r < 0) {
        free(lock);
        return r;
    }
    r = hf__lock_join(lock);
    if (r < 0) {
        free(lock);
        hf__fail(err, r, NULL);
    } else {
        r = acquire(lock, q, ret_lock, err);
    }
    hf__leave_unlock(client, &visit);
    return r;
}

static int wrap(hf_error *err, int code, const char *what, const struct request *q)
{
    char shown[80];

    if (code < 0 && q->name.bytes != NULL && q->name.len <= HF_NAME_MAX)
        hf__wrap(err, code, "%s '%s'", what,
                 hf__printable(q->name.bytes, q->name.len, shown, sizeof shown));
    return code;
}

int hf_acquire(hf_client *client, const char *name, size_t name_len, const hf_options *opt,
               hf_lock **ret_lock, hf_error *err)
{
    struct request q = {.name = {name, name_len}};

    return wrap(err, enter_and_acquire(client, &q, opt, ret_lock, err), "acquire", &q);
}

int hf_acquire_start(hf_client *client, const char *name, size_t name_len, const hf_options *opt,
                     uint64_t tag, hf_error *err)
{
    struct request q = {.name = {name, name_len}, .tag = &tag};
    hf_lock *lock; /* not the caller's before its event */

    return wrap(err, enter_and_acquire(client, &q, opt, &lock, err), "acquire", &q);
}

int hf_acquire_or_start(hf_client *client, const char *name, size_t name_len, const hf_options *opt,
                        uint64_t tag, hf_lock **ret_lock, hf_error *err)
{
    struct request q = {.name = {name, name_len}, .tag = &tag, .here = true};

    return wrap(err, enter_and_acquire(client, &q, opt, ret_lock, err), "acquire", &q);
}

int hf_adopt(hf_client *client, const char *name, size_t name_len, const char *ticket,
             const hf_options *opt, hf_lock **ret_lock, hf_error *err)
{
    struct request q = {.name = {name, name_len}, .ticket = ticket};

    if (ticket == NULL)
        return hf__fail(err, HF_INVALID, "there is no ticket");
    return wrap(err, enter_and_acquire(client, &q, opt, ret_lock, err), "adopt", &q);
}
