/* The rules of bidder.h. */
#include "doorman/bidder.h"

#include "doorman/lease.h"
#include "doorman/planted.h"

void hf__bidder_init(struct hf__bidder *b)
{
    *b = (struct hf__bidder){.phase = HF__ASKING};
}

void hf__bidder_unanswered(struct hf__bidder *b)
{
    b->unanswered = true;
}

void hf__bidder_lose(struct hf__bidder *b, hf_cause cause)
{
    if (b->phase != HF__HOLDING)
        return;
    b->phase = HF__LOST_IT;
    b->cause = cause;
}

bool hf__bidder_holds(struct hf__bidder *b, int64_t now_ns)
{
    if (b->phase == HF__HOLDING && now_ns >= b->deadline_ns)
        hf__bidder_lose(b, HF_CAUSE_EXPIRED);
    return b->phase == HF__HOLDING;
}

/* Each request that the store answers restarts the lease no earlier than it was sent; the later of
 * two answered requests proves the most. Without a lease that is only that it was asked then. */
static void believe(struct hf__bidder *b, int64_t sent_ns, int64_t lease_ms, bool claimed)
{
    int64_t deadline_ns = hf__lease_deadline_ns(sent_ns, lease_ms);

    b->claimed |= claimed;
    if (b->deadline_ns != 0 && deadline_ns < b->deadline_ns)
        return;
    if (deadline_ns == b->deadline_ns && sent_ns < b->sent_ns)
        return;
    b->deadline_ns = deadline_ns;
    b->sent_ns = sent_ns;
    b->lease_ms = lease_ms;
}

static enum hf__advice hold(struct hf__bidder *b, uint64_t generation,
                            const struct hf__answer *from, int64_t now_ns)
{
    int64_t sent_ns = PLANTED(DEADLINE_FROM_RECEIPT) ? now_ns : from->sent_ns;

    b->phase = HF__HOLDING;
    b->generation = generation;
    b->known_ns = now_ns;
    believe(b, sent_ns, from->lease_ms, from->claimed);
    /* A grant whose lease has run out on the way is worth nothing: ask for a fresh lease. */
    if (now_ns >= b->deadline_ns) {
        b->phase = HF__ASKING;
        b->generation = 0;
        b->deadline_ns = 0;
        b->claimed = false;
        return HF__ASK;
    }
    return HF__HOLD;
}

static void note_queued(struct hf__bidder *b, const struct hf__answer *a)
{
    b->phase = HF__QUEUEING;
    if (a->sent_ns < b->queued_sent_ns)
        return;
    b->queued_generation = a->generation;
    b->queued_sent_ns = a->sent_ns;
    b->queued_lease_ms = a->lease_ms;
}

/* What an answer says about the grant. One to a request that did not know of it (`knew`) can only
 * confirm it. */
static enum hf__advice confirm(struct hf__bidder *b, const struct hf__answer *a, bool knew,
                               int64_t now_ns)
{
    if (!hf__bidder_holds(b, now_ns))
        return HF__NOTHING;
    if (a->verdict == HF__GRANTED && a->generation == b->generation) {
        believe(b, a->sent_ns, a->lease_ms, a->claimed);
        return HF__HOLD;
    }
    if (!knew && !PLANTED(EARLY_ANSWER_COUNTS))
        return HF__NOTHING;
    hf__bidder_lose(b, HF_CAUSE_GONE);
    return HF__NOTHING;
}

enum hf__advice hf__bidder_answered(struct hf__bidder *b, const struct hf__answer *a,
                                    int64_t now_ns)
{
    if (b->phase == HF__HOLDING)
        return confirm(b, a, a->sent_ns > b->known_ns, now_ns);
    if (b->phase != HF__ASKING && b->phase != HF__QUEUEING)
        return HF__NOTHING;
    switch (a->verdict) {
    case HF__GRANTED:
        return hold(b, a->generation, a, now_ns);
    case HF__QUEUED:
        note_queued(b, a);
        return HF__WAIT;
    case HF__BUSY:
        return HF__REFUSED;
    case HF__FULL:
        return HF__NO_ROOM;
    default:
        return HF__REBID;
    }
}

enum hf__advice hf__bidder_woken(struct hf__bidder *b, uint64_t generation, int64_t now_ns)
{
    if (b->phase == HF__HOLDING || b->phase == HF__LOST_IT || b->phase == HF__OVER)
        return HF__NOTHING;

    bool fresh = b->phase == HF__QUEUEING && generation > b->queued_generation;
    if (PLANTED(STALE_WAKE_BELIEVED))
        fresh = generation > 0;
    if (!fresh)
        return HF__ASK;

    struct hf__answer as_if = {.sent_ns = b->queued_sent_ns, .lease_ms = b->queued_lease_ms};
    if (PLANTED(LATE_WAKE_BELIEVED))
        as_if.sent_ns = now_ns;
    return hold(b, generation, &as_if, now_ns);
}

enum hf__advice hf__bidder_renewed(struct hf__bidder *b, uint64_t generation,
                                   const struct hf__answer *a, int64_t now_ns)
{
    if (b->phase == HF__HOLDING)
        return confirm(b, a, generation == b->generation, now_ns);
    if (b->phase != HF__QUEUEING || generation != 0)
        return HF__NOTHING;
    if (a->verdict == HF__GRANTED)
        return hold(b, a->generation, a, now_ns);
    if (a->verdict != HF__QUEUED)
        return HF__ASK;
    note_queued(b, a);
    return HF__WAIT;
}
