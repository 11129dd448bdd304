/* See leash.h. */
#include "leash.h"

#include "base/env.h"
#include "base/lease.h"

#include "base/banned.h"

#define MARGIN_LEAST_MS 10
#define MARGIN_MOST_MS  500

int64_t leash_margin_ms(int64_t ttl_ms)
{
    int64_t margin_ms = ttl_ms / 50;

    if (margin_ms < MARGIN_LEAST_MS)
        return MARGIN_LEAST_MS;
    return margin_ms > MARGIN_MOST_MS ? MARGIN_MOST_MS : margin_ms;
}

int64_t leash_longest_ms(int64_t ttl_ms)
{
    int64_t believed_ms = hf__lease_deadline_ns(0, ttl_ms) / HF__NS_PER_MS;

    return believed_ms - ttl_ms / 2 - leash_margin_ms(ttl_ms);
}

int64_t leash_shortest_ttl_ms(int64_t kill_after_ms)
{
    int64_t ttl_ms = (2 * kill_after_ms / 1000 + 1) * 1000;

    while (leash_longest_ms(ttl_ms) < kill_after_ms)
        ttl_ms += 1000;
    return ttl_ms;
}

static int64_t after_ms(int64_t now_ns, int64_t ms)
{
    return ms > (INT64_MAX - now_ns) / HF__NS_PER_MS ? INT64_MAX : now_ns + ms * HF__NS_PER_MS;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The moment at which the kill must be on its way if no renewal comes. */
static int64_t last_kill_ns(const struct leash *leash, int64_t now_ns,
                            const struct leash_view *view)
{
    if (view->remaining_ms == INT64_MAX)
        return INT64_MAX;
    int64_t left_ms = view->remaining_ms - leash->margin_ms;
    return after_ms(now_ns, left_ms > 0 ? left_ms : 0);
}

static int64_t signal_ns(const struct leash *leash, int64_t now_ns, const struct leash_view *view)
{
    if (view->remaining_ms == INT64_MAX)
        return leash->hold_until_ns;
    int64_t left_ms = view->remaining_ms - leash->margin_ms - leash->kill_after_ms;
    return earlier(after_ms(now_ns, left_ms > 0 ? left_ms : 0), leash->hold_until_ns);
}

/* Its lease has run out unseen, because we were stopped or asleep: somebody else may be inside. */
static bool is_over(const struct leash_view *view)
{
    return view->cause == HF_CAUSE_EXPIRED;
}

static enum leash_order kill_now(struct leash *leash)
{
    leash->stage = LEASH_KILLED;
    return LEASH_SEND_KILL;
}

static enum leash_order tell_once(struct leash *leash, const struct leash_view *view)
{
    if (leash->told || view->cause == HF_CAUSE_NONE)
        return LEASH_GO_ON;
    leash->told = true;
    leash->cause = view->cause;
    return LEASH_TELL;
}

static enum leash_order begin_end(struct leash *leash, int64_t now_ns,
                                  const struct leash_view *view)
{
    bool lost = view->cause != HF_CAUSE_NONE;

    if (!lost && now_ns < signal_ns(leash, now_ns, view))
        return LEASH_GO_ON;
    if (lost)
        leash->cause = view->cause;
    else
        leash->cause = now_ns >= leash->hold_until_ns ? HF_CAUSE_MAX_HOLD : HF_CAUSE_EXPIRED;

    if (is_over(view) && leash->policy == LEASH_KILL)
        return kill_now(leash);
    leash->stage = LEASH_SIGNALLED;
    leash->kill_at_ns = after_ms(now_ns, leash->kill_after_ms);
    return LEASH_SEND_SIGNAL;
}

enum leash_order leash_step(struct leash *leash, int64_t now_ns, const struct leash_view *view)
{
    if (leash->policy == LEASH_IGNORE)
        return tell_once(leash, view);
    if (leash->stage == LEASH_HOLDING)
        return begin_end(leash, now_ns, view);
    if (leash->stage == LEASH_KILLED || leash->policy == LEASH_TERM)
        return LEASH_GO_ON;
    if (is_over(view) || now_ns >= leash->kill_at_ns)
        return kill_now(leash);
    /* Signalled for another reason, and now the lease runs short as well. */
    if (view->cause == HF_CAUSE_NONE && now_ns >= last_kill_ns(leash, now_ns, view))
        return kill_now(leash);
    return LEASH_GO_ON;
}

int64_t leash_next_ns(const struct leash *leash, int64_t now_ns, const struct leash_view *view)
{
    if (leash->policy == LEASH_IGNORE || leash->stage == LEASH_KILLED)
        return INT64_MAX;
    if (leash->stage == LEASH_HOLDING)
        return view->cause == HF_CAUSE_NONE ? signal_ns(leash, now_ns, view) : now_ns;
    if (leash->policy == LEASH_TERM)
        return INT64_MAX;
    if (view->cause != HF_CAUSE_NONE)
        return leash->kill_at_ns;
    return earlier(leash->kill_at_ns, last_kill_ns(leash, now_ns, view));
}

int64_t leash_guard_ns(const struct leash *leash, int64_t now_ns, const struct leash_view *view)
{
    if (leash->policy != LEASH_KILL)
        return INT64_MAX;
    if (leash->stage == LEASH_SIGNALLED)
        return leash_next_ns(leash, now_ns, view);
    if (view->cause != HF_CAUSE_NONE || view->remaining_ms == INT64_MAX)
        return INT64_MAX;
    return after_ms(now_ns, view->remaining_ms - leash->margin_ms / 2);
}
