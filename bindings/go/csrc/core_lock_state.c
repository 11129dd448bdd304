/* Asking a lock. Every answer comes from the local clock, so a lock whose time is over is LOST here
 * even before the keeper has woken up (C7, C13). */
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base_sequencer.h"
#include "core_cache.h"

#include "base_banned.h"

static bool is_forked(const hf_lock *lock)
{
    return hf__is_forked(lock->client);
}

/* Takes the mutex; the caller gives it back. */
static bool holds_now(hf_lock *lock, int64_t *ret_now_ns)
{
    hf__lock_client(lock->client);
    *ret_now_ns = hf__now_ns(lock->client->env);
    return hf__lock_holds(lock, *ret_now_ns);
}

hf_state hf_lock_state(const hf_lock *asked)
{
    hf_lock *lock = (hf_lock *)asked;
    int64_t now_ns;

    if (lock == NULL || is_forked(lock))
        return HF_STATE_LOST;
    bool held = holds_now(lock, &now_ns);
    bool risk = now_ns >= hf__lease_at_risk_ns(lock->bidder.sent_ns, lock->bidder.lease_ms);
    hf__unlock_client(lock->client);
    return !held ? HF_STATE_LOST : risk ? HF_STATE_AT_RISK : HF_STATE_HELD;
}

hf_cause hf_lock_cause(const hf_lock *asked)
{
    hf_lock *lock = (hf_lock *)asked;
    int64_t now_ns;

    if (lock == NULL)
        return HF_CAUSE_NONE;
    if (is_forked(lock))
        return HF_CAUSE_FORKED;
    hf_cause cause = holds_now(lock, &now_ns) ? HF_CAUSE_NONE : lock->bidder.cause;
    hf__unlock_client(lock->client);
    return cause;
}

int hf_lock_error(const hf_lock *lock, hf_error *err)
{
    if (lock == NULL)
        return hf__fail(err, HF_INVALID, "there is no lock");
    if (is_forked(lock))
        return hf__fail(err, HF_FORKED, NULL);
    hf__lock_client(lock->client);
    int code = lock->trouble != NULL ? lock->trouble->code : HF_OK;
    if (code != HF_OK && err != NULL)
        *err = *lock->trouble;
    hf__unlock_client(lock->client);
    return code;
}

int64_t hf_lock_remaining_ms(const hf_lock *asked)
{
    hf_lock *lock = (hf_lock *)asked;
    int64_t now_ns, left_ms = 0;

    if (lock == NULL || is_forked(lock))
        return 0;
    if (holds_now(lock, &now_ns)) {
        int64_t until_ns = lock->bidder.deadline_ns < lock->max_hold_ns ? lock->bidder.deadline_ns
                                                                        : lock->max_hold_ns;
        left_ms = until_ns == INT64_MAX ? INT64_MAX : (until_ns - now_ns) / HF__NS_PER_MS;
    }
    hf__unlock_client(lock->client);
    return left_ms;
}

int hf_lock_wanted(const hf_lock *asked)
{
    hf_lock *lock = (hf_lock *)asked;
    int64_t now_ns;

    if (lock == NULL || is_forked(lock))
        return 0;
    bool wanted = holds_now(lock, &now_ns) && lock->bidder.wanted;
    hf__unlock_client(lock->client);
    return wanted;
}

int hf_lock_fd(hf_lock *lock)
{
    if (lock == NULL)
        return HF_INVALID;
    if (is_forked(lock))
        return HF_FORKED;
    hf__lock_client(lock->client);
    if (lock->lost_fd < 0) {
        lock->lost_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (lock->bidder.phase == HF__PHASE_LOST)
            hf__lock_show_lost(lock);
    }
    int fd = lock->lost_fd;
    hf__unlock_client(lock->client);
    return fd < 0 ? HF_SYSTEM : fd;
}

/* A store without tokens numbers its grants for the core alone: such a number proves nothing to
 * anybody else, and is not shown. */
static uint64_t token_of(const hf_lock *lock)
{
    return lock->client->capabilities & HF_CAN_TOKEN ? hf__cache_token(lock) : 0;
}

int hf_lock_generation(const hf_lock *lock, uint64_t *ret_generation)
{
    if (lock == NULL || ret_generation == NULL)
        return HF_INVALID;
    uint64_t generation = token_of(lock);
    if (generation == 0)
        return HF_UNSUPPORTED;
    *ret_generation = generation;
    return 0;
}

int hf_lock_sequencer(const hf_lock *lock, char *buf, size_t size)
{
    if (lock == NULL || buf == NULL)
        return HF_INVALID;
    struct hf__sequencer s = {.mode = lock->bid.mode,
                              .limited = lock->bid.limit > 0,
                              .generation = token_of(lock),
                              .name_len = lock->bid.name_len};
    if (s.generation == 0)
        return HF_UNSUPPORTED;
    memcpy(s.name, lock->name, lock->bid.name_len);
    return hf__sequencer_format(&s, buf, size);
}

const char *hf_lock_ticket(const hf_lock *lock)
{
    return lock != NULL ? lock->ticket : "";
}

const char *hf_lock_name(const hf_lock *lock, size_t *ret_len)
{
    if (ret_len != NULL)
        *ret_len = lock != NULL ? lock->bid.name_len : 0;
    return lock != NULL ? lock->name : "";
}
