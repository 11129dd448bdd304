/* The rules of bidder.h. */
#include "doorman/bidder.h"

#include "base/lease.h"

void hf__bidder_init(struct hf__bidder *b)
{
    *b = (struct hf__bidder){.phase = HF__PHASE_ASKING};
}

void hf__bidder_unanswered(struct hf__bidder *b)
{
    b->unanswered = true;
}

void hf__bidder_lose(struct hf__bidder *b, hf_cause cause)
{
    if (b->phase != HF__PHASE_HOLDING)
        return;
    b->phase = HF__PHASE_LOST;
    b->cause = cause;
}

bool hf__bidder_holds(struct hf__bidder *b, int64_t now_ns)
{
    if (b->phase == HF__PHASE_HOLDING && now_ns >= b->deadline_ns)
        hf__bidder_lose(b, HF_CAUSE_EXPIRED);
    return b->phase == HF__PHASE_HOLDING;
}

/* Each request that the store answers restarts the lease no earlier than it was sent; the later of
 * two answered requests proves the most. One that never expires has no deadline to tell them apart. */
static void believe(struct hf__bidder *b, int64_t sent_ns, int64_t lease_ms, bool claimed)
{
    int64_t deadline_ns = hf__lease_deadline_ns(sent_ns, lease_ms);
    bool older =
        deadline_ns < b->deadline_ns || (deadline_ns == b->deadline_ns && sent_ns <= b->sent_ns);

    b->claimed |= claimed;
    if (b->deadline_ns != 0 && older)
        return;
    b->deadline_ns = deadline_ns;
    b->sent_ns = sent_ns;
    b->lease_ms = lease_ms;
}

static enum hf__advice hold(struct hf__bidder *b, uint64_t generation,
                            const struct hf__answer *from, int64_t now_ns)
{
    b->phase = HF__PHASE_HOLDING;
    b->generation = generation;
    b->wanted = from->wanted;
    b->known_ns = now_ns;
    believe(b, from->sent_ns, from->lease_ms, from->claimed);
    /* A grant whose lease has run out on the way is worth nothing: ask for a fresh lease. */
    if (now_ns >= b->deadline_ns) {
        b->phase = HF__PHASE_ASKING;
        b->generation = 0;
        b->deadline_ns = 0;
        b->claimed = false;
        return HF__ADVICE_ASK;
    }
    return HF__ADVICE_HOLD;
}

static void note_queued(struct hf__bidder *b, const struct hf__answer *a)
{
    b->phase = HF__PHASE_WAITING;
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
        return HF__ADVICE_NOTHING;
    if (a->verdict == HF__VERDICT_GRANTED && a->generation == b->generation) {
        if (a->sent_ns >= b->sent_ns)
            b->wanted = a->wanted;
        believe(b, a->sent_ns, a->lease_ms, a->claimed);
        return HF__ADVICE_HOLD;
    }
    if (!knew)
        return HF__ADVICE_NOTHING;
    hf__bidder_lose(b, HF_CAUSE_GONE);
    return HF__ADVICE_NOTHING;
}

enum hf__advice hf__bidder_answered(struct hf__bidder *b, const struct hf__answer *a,
                                    int64_t now_ns)
{
    if (b->phase == HF__PHASE_HOLDING)
        return confirm(b, a, a->sent_ns > b->known_ns, now_ns);
    if (b->phase != HF__PHASE_ASKING && b->phase != HF__PHASE_WAITING)
        return HF__ADVICE_NOTHING;
    switch (a->verdict) {
    case HF__VERDICT_GRANTED:
        return hold(b, a->generation, a, now_ns);
    case HF__VERDICT_QUEUED:
        note_queued(b, a);
        return HF__ADVICE_WAIT;
    case HF__VERDICT_BUSY:
        return HF__ADVICE_REFUSED;
    case HF__VERDICT_FULL:
        return HF__ADVICE_NO_ROOM;
    default:
        return HF__ADVICE_REBID;
    }
}

enum hf__advice hf__bidder_woken(struct hf__bidder *b, uint64_t generation, int64_t now_ns)
{
    if (b->phase == HF__PHASE_HOLDING || b->phase == HF__PHASE_LOST || b->phase == HF__PHASE_OVER)
        return HF__ADVICE_NOTHING;

    bool fresh = b->phase == HF__PHASE_WAITING && generation > b->queued_generation;
    if (!fresh)
        return HF__ADVICE_ASK;

    struct hf__answer as_if = {.sent_ns = b->queued_sent_ns, .lease_ms = b->queued_lease_ms};
    return hold(b, generation, &as_if, now_ns);
}

enum hf__advice hf__bidder_renewed(struct hf__bidder *b, uint64_t generation,
                                   const struct hf__answer *a, int64_t now_ns)
{
    if (b->phase == HF__PHASE_HOLDING)
        return confirm(b, a, generation == b->generation, now_ns);
    if (b->phase != HF__PHASE_WAITING || generation != 0)
        return HF__ADVICE_NOTHING;
    if (a->verdict == HF__VERDICT_GRANTED)
        return hold(b, a->generation, a, now_ns);
    if (a->verdict != HF__VERDICT_QUEUED)
        return HF__ADVICE_ASK;
    note_queued(b, a);
    return HF__ADVICE_WAIT;
}
