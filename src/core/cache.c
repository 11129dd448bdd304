/* See cache.h. Whatever is to be done about an idle lock is done by the keeper, which looks at it when its
 * timer is due: a call, a loss and "wanted" only make it due now. So no other thread takes it away under
 * somebody who is at work with it. */
#include "core/cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

#define CALM_MS     INT64_C(1000) /* after a call a name is not cached for so long */
#define CALM_MAX_MS INT64_C(60000)
#define CALM_NAMES  256  /* names that share one of these calm down together */
#define SPINS_MAX   2000 /* looks at the clock: one that stands still is not waited for */

/* Names that others want too. Waiting costs less there than calling back and forth. */
struct hf__calm {
    int64_t until_ns, span_ns;
};

static uint64_t hash_of(const hf_client *client, const struct hf__name *name)
{
    return hf__hash(client->seed, name->bytes, name->len);
}

static uint64_t hash_of_lock(const hf_lock *lock)
{
    const struct hf__name name = {lock->name, lock->bid.name_len};

    return hash_of(lock->client, &name);
}

uint64_t hf__cache_token(const hf_lock *lock)
{
    return lock->bidder.generation + lock->local_grants;
}

uint64_t hf__cache_used(const hf_lock *lock)
{
    return lock->local_grants > 0 ? hf__cache_token(lock) : 0;
}

/* Which names are calm. ------------------------------------------------------------------------ */
static bool is_calm(const hf_client *client, uint64_t hash, int64_t now_ns)
{
    return client->calm != NULL && now_ns < client->calm[hash % CALM_NAMES].until_ns;
}

/* Without memory for it the name stays cached: that costs time only. */
static void calm_down(hf_lock *lock, int64_t now_ns)
{
    hf_client *client = lock->client;

    if (client->calm == NULL)
        client->calm = calloc(CALM_NAMES, sizeof *client->calm);
    if (client->calm == NULL)
        return;
    struct hf__calm *calm = &client->calm[hash_of_lock(lock) % CALM_NAMES];
    int64_t longest_ns = CALM_MAX_MS * HF__NS_PER_MS;
    bool again = calm->span_ns > 0 && now_ns < calm->until_ns + calm->span_ns;
    calm->span_ns = again ? 2 * calm->span_ns : CALM_MS * HF__NS_PER_MS;
    if (calm->span_ns > longest_ns)
        calm->span_ns = longest_ns;
    calm->until_ns = now_ns + calm->span_ns;
}

/* Idle locks. ---------------------------------------------------------------------------------- */
static hf_lock *lock_of(struct hf__link *link)
{
    return (hf_lock *)((char *)link - offsetof(hf_lock, by_owner));
}

static void stop_idling(hf_lock *lock)
{
    hf__table_remove(&lock->client->idle, &lock->by_owner);
    lock->is_idle = false;
}

static bool has_note(const hf_lock *lock, const char *note)
{
    return strcmp(lock->bid.who->note, note != NULL ? note : "") == 0;
}

static bool is_on_terms(const hf_lock *lock, const hf_options *opt)
{
    return lock->bid.ttl_ms == opt->ttl_ms && lock->bid.lock_delay_ms == opt->lock_delay_ms &&
           has_note(lock, opt->note);
}

/* Ours for a while yet, and nobody else is known to want it. */
static bool can_be_used(hf_lock *lock, int64_t now_ns)
{
    struct hf__bidder *b = &lock->bidder;
    int64_t third_ns = b->lease_ms * HF__NS_PER_MS / 3;

    return hf__bidder_holds(b, now_ns) && !lock->called && !b->wanted &&
           b->deadline_ns - now_ns >= third_ns && lock->local_grants < HF__TOKENS_RESERVED;
}

static hf_lock *find_idle(hf_client *client, const struct hf__name *name, uint64_t hash,
                          const hf_options *opt, int64_t now_ns)
{
    struct hf__link *link = hf__table_find(&client->idle, hash);

    for (; link != NULL; link = hf__table_next(link)) {
        hf_lock *lock = lock_of(link);
        if (lock->bid.name_len == name->len && memcmp(lock->name, name->bytes, name->len) == 0)
            return is_on_terms(lock, opt) && can_be_used(lock, now_ns) ? lock : NULL;
    }
    return NULL;
}

/* The next token must not be ahead of the microseconds that have passed. */
static bool wait_for_token(const hf_lock *lock, int64_t now_ns)
{
    const struct hf_env *env = lock->client->env;
    int64_t due_ns = lock->bidder.known_ns + (int64_t)(lock->local_grants + 1) * 1000;

    for (int i = 0; now_ns < due_ns && i < SPINS_MAX; i++)
        now_ns = hf__now_ns(env);
    return now_ns >= due_ns;
}

/* The handle of before, as if it were new to this user. */
static void hand_out(hf_lock *lock, const hf_options *opt, int64_t now_ns)
{
    stop_idling(lock);
    lock->local_grants++;
    lock->used_since_renewal = true;
    lock->owner = hf__reentry_owner(opt->owner);
    lock->reentrant = opt->reentrant != 0;
    lock->by_hand = opt->by_hand != 0;
    lock->on_at_risk = opt->on_at_risk;
    lock->on_lost = opt->on_lost;
    lock->on_wanted = opt->on_wanted;
    lock->arg = opt->arg;
    hf__reentry_add(lock);
    if (opt->max_hold_ms > 0) {
        lock->max_hold_ns = hf__moment_after(now_ns, opt->max_hold_ms);
        hf__keeper_schedule(lock);
    }
}

/* Without somebody who listens no call would be heard: then nothing is cached. */
static int begin_listening(hf_client *client, hf_options *opt, hf_error *err)
{
    int r = hf__keeper_start(client, err);

    if (r == 0 && !hf__wake_reader_listens(client))
        hf__wake_reader_open(client);
    if (!hf__wake_reader_listens(client))
        opt->cached = 0;
    return r;
}

static bool has_callback(const hf_options *opt)
{
    return opt->on_at_risk != NULL || opt->on_lost != NULL || opt->on_wanted != NULL;
}

int hf__cache_acquire(hf_client *client, const struct hf__name *name, hf_options *opt,
                      hf_lock **ret_lock, hf_error *err)
{
    uint64_t hash = hash_of(client, name);
    struct hf__visit visit;
    int r = hf__enter_locked(client, &visit, err);

    if (r < 0)
        return r;
    int64_t now_ns = hf__now_ns(client->env);
    hf_lock *lock = client->idle.count > 0 ? find_idle(client, name, hash, opt, now_ns) : NULL;
    bool busy = lock != NULL && hf__reentry_find(client, name->bytes, name->len,
                                                 hf__reentry_owner(opt->owner)) != NULL;
    bool cancelled = opt->cancel != NULL && hf__cancel_fired(opt->cancel);
    bool room = lock == NULL || !has_callback(opt) ||
                hf__heap_reserve(&client->notifier.jobs, client->lock_count);

    if (lock != NULL && !busy && !cancelled && room && wait_for_token(lock, now_ns)) {
        hand_out(lock, opt, now_ns);
        *ret_lock = lock;
        r = 1;
    } else if (is_calm(client, hash, now_ns)) {
        opt->cached = 0;
    } else {
        r = begin_listening(client, opt, err);
    }
    hf__leave_unlock(client, &visit);
    return r;
}

/* What was not answered may still change something about this ticket, and so may a value that it opened;
 * what is not claimed yet has a short lease. These are released. */
static bool can_stay(hf_lock *lock, int64_t now_ns)
{
    const struct hf__bidder *b = &lock->bidder;

    return lock->bid.cached && lock->duty == HF__DUTY_KEEP && !lock->client->closing &&
           lock->started == NULL && b->claimed && !b->unanswered && !lock->opened_value &&
           lock->at_least_ms == 0 && can_be_used(lock, now_ns) && now_ns < lock->max_hold_ns;
}

bool hf__cache_keep(hf_lock *lock)
{
    hf_client *client = lock->client;

    hf__lock_forget_user(lock); /* which may take a callback's time */
    if (!can_stay(lock, hf__now_ns(client->env)))
        return false;
    bool timer_is_late = lock->max_hold_ns != INT64_MAX || lock->by_hand;
    lock->max_hold_ns = INT64_MAX;
    lock->by_hand = lock->wanted_told = false;
    lock->is_idle = true;
    hf__table_add(&client->idle, &lock->by_owner, hash_of_lock(lock));
    if (timer_is_late)
        hf__keeper_schedule(lock);
    return true;
}

void hf__cache_called(hf_lock *lock)
{
    if (lock->called)
        return;
    lock->called = true;
    calm_down(lock, hf__now_ns(lock->client->env));
    hf__keeper_schedule(lock);
}

bool hf__cache_let_go(hf_lock *lock, int64_t now_ns, bool renewal_is_due)
{
    bool holds = hf__bidder_holds(&lock->bidder, now_ns);
    bool wanted = lock->called || lock->bidder.wanted;

    if (holds && !wanted && !(renewal_is_due && !lock->used_since_renewal)) {
        lock->used_since_renewal &= !renewal_is_due;
        return false;
    }
    stop_idling(lock);
    if (wanted && !lock->called)
        calm_down(lock, now_ns);
    if (holds)
        hf__undo_later(lock, true);
    else
        hf__duty_end(lock);
    hf__lock_unref(lock); /* the user's of before */
    return true;
}

void hf__cache_close(hf_client *client)
{
    struct hf__link *link;

    while ((link = hf__table_any(&client->idle)) != NULL) {
        hf_lock *lock = lock_of(link);
        stop_idling(lock);
        hf__lock_unref(lock); /* its duty keeps it */
    }
}
