/* The doorman on a row of `locks`.
 *
 * The row does not know who of its waiters is still alive: their signs of life are elsewhere, and
 * reading them all would be a read per waiter and question. So everybody is assumed to be alive
 * first. Then those whom the doorman would let in have to prove it, and whoever stands in the way
 * of a reader; those who cannot are gone, and the doorman decides again. Whoever waits further
 * behind is nobody's concern until it comes to the front, and a dead one leaves then.
 *
 * Nobody writes for others. Who waits and is not let in by its own question writes nothing, also if
 * it can see that somebody else could come in: that one will ask itself, soon, or be found dead by
 * the next. So there is one that swaps, and no contest. */
#include <stdlib.h>

#include "stores/cassandra/cassandra.h"

#include "base/banned.h"

#define PAUSE_MIN_MS 10
#define PAUSE_MAX_MS 100  /* of the first in the queue; of others so many times their position */
#define PAUSE_END_MS 2000 /* of anybody */

static bool is_own(const struct hf__cs_case *c, const struct hf__entry *e)
{
    return hf__ticket_equal(&e->ticket, &c->op->bid->ticket);
}

/* Waits by the row's account, which is old, and by nobody else's. */
static bool is_assumed(const struct hf__cs_case *c, const struct hf__entry *was)
{
    const struct hf__cs_extra *x = was->who;

    return was->place == HF__PLACE_WAITING && was->until_ms <= c->now_ms &&
           x->proof == HF__CS_PROOF_ASSUMED && !is_own(c, was);
}

/* What the doorman says of the row, with whom we take to be alive. It works on a copy: it is asked again
 * when somebody turns out to be dead. */
static struct hf__answer ask_doorman(struct hf__cs_case *c)
{
    struct hf__moment at = {.now_ms = c->now_ms, .stamp_us = (uint64_t)c->now_ms * 1000};
    struct hf__record *record = &c->row.record;

    record->generation = c->row.generation;
    record->count = c->row.count;
    record->unseen = record->gap = 0;
    for (size_t i = 0; i < c->row.count; i++) {
        struct hf__entry *e = &record->entries[i];
        *e = c->row.was[i];
        const struct hf__cs_extra *x = e->who;
        if (e->place != HF__PLACE_WAITING)
            continue;
        if (x->proof == HF__CS_PROOF_ALIVE && x->alive_until_ms > e->until_ms)
            e->until_ms = x->alive_until_ms;
        /* It asks, so it lives: nobody has missed it so far. */
        if (e->until_ms <= c->now_ms && (is_own(c, e) || x->proof == HF__CS_PROOF_ASSUMED))
            e->until_ms = c->now_ms + e->lease_ms;
    }
    return hf__doorman_apply(record, c->op, at);
}

static size_t count_waiting(const struct hf__entry *entries, size_t count)
{
    size_t waiting = 0;

    for (size_t i = 0; i < count; i++)
        waiting += entries[i].place == HF__PLACE_WAITING;
    return waiting;
}

static bool is_inside(const struct hf__entry *e)
{
    return e->place == HF__PLACE_INSIDE || e->place == HF__PLACE_LINGERING;
}

/* Whether this is a reader that only somebody who waits before it keeps out. */
static bool is_blocked_reader(const struct hf__cs_case *c, const struct hf__entry *me)
{
    const struct hf__record *record = &c->row.record;
    hf_mode mode = c->op->kind == HF__OPERATION_ATTEMPT ? c->op->bid->mode
                   : me != NULL                         ? me->mode
                                                        : HF_EXCLUSIVE;
    size_t inside = 0;

    if ((c->answer.verdict != HF__VERDICT_QUEUED && c->answer.verdict != HF__VERDICT_BUSY) ||
        mode != HF_SHARED)
        return false;
    for (size_t i = 0; i < record->count; i++) {
        const struct hf__entry *e = &record->entries[i];
        if (is_inside(e) && e->mode == HF_EXCLUSIVE)
            return false;
        inside += is_inside(e);
    }
    return inside > 0;
}

/* A reader behind a writer that may be dead. Those who wait look in turns, so that all of them
 * together ask once. -1: nobody stands in the way. */
static ssize_t blocker(const struct hf__cs_case *c)
{
    const struct hf__entry *me = hf__record_find(&c->row.record, &c->op->bid->ticket);
    size_t ahead = 0;
    ssize_t first = -1;

    if (!is_blocked_reader(c, me))
        return -1;
    for (size_t i = 0; i < c->row.count && &c->row.record.entries[i] != me; i++) {
        if (c->row.record.entries[i].place != HF__PLACE_WAITING)
            continue;
        first = first < 0 ? (ssize_t)i : first;
        ahead++;
    }
    if (first < 0 || !is_assumed(c, &c->row.was[first]))
        return -1;
    bool my_turn = c->answer.verdict == HF__VERDICT_BUSY || hf__cs_jitter(c->lock.s, ahead) == 0;
    return my_turn ? first : -1;
}

/* Whose sign of life the decision depends on. */
static size_t find_wanted(const struct hf__cs_case *c, bool *wanted)
{
    size_t count = 0;

    for (size_t i = 0; i < c->row.count; i++) {
        bool let_in = c->row.record.entries[i].effects & HF__EFFECT_LET_IN;
        wanted[i] = let_in && is_assumed(c, &c->row.was[i]);
        count += wanted[i];
    }
    ssize_t in_the_way = count == 0 ? blocker(c) : -1;
    if (in_the_way < 0)
        return count;
    wanted[in_the_way] = true;
    return 1;
}

int hf__cs_decide(struct hf__cs_case *c)
{
    bool *wanted = calloc(c->row.count + 1, sizeof *wanted);
    int code = wanted != NULL ? 0 : hf__fail(c->lock.err, HF_NO_MEMORY, NULL);
    bool is_new = c->op->kind == HF__OPERATION_ATTEMPT &&
                  hf__cs_row_was(&c->row, &c->op->bid->ticket) == NULL;

    /* The queue is one cell. Before somebody is turned away for its length, the dead leave. */
    if (code == 0 && is_new && count_waiting(c->row.was, c->row.count) >= HF__CS_WAITERS)
        code = hf__cs_read_heartbeats(&c->lock, &c->row, NULL);

    while (code == 0) {
        c->answer = ask_doorman(c);
        if (find_wanted(c, wanted) == 0)
            break;
        code = hf__cs_read_heartbeats(&c->lock, &c->row, wanted);
    }
    free(wanted);
    if (code == 0 && c->op->kind == HF__OPERATION_ATTEMPT &&
        c->answer.verdict == HF__VERDICT_QUEUED &&
        count_waiting(c->row.record.entries, c->row.record.count) > HF__CS_WAITERS)
        c->answer.verdict = HF__VERDICT_FULL;
    return code;
}

/* A grant that is there already. Asking restarts its lease; while most of what its holder is told of
 * it is left the answer says what is left instead, which saves a swap at every hand-over. */
static bool must_restart(const struct hf__cs_case *c, const struct hf__entry *was)
{
    int64_t skew_ms = ((const struct hf__cs_extra *)was->who)->skew_ms;

    if (c->op->kind == HF__OPERATION_RENEW && c->op->generation != 0)
        return !was->claimed || was->until_ms != HF__NEVER;
    return was->until_ms != HF__NEVER &&
           (was->until_ms - c->now_ms - skew_ms) * 2 < was->lease_ms - skew_ms;
}

bool hf__cs_must_write(const struct hf__cs_case *c)
{
    const struct hf__entry *was = hf__cs_row_was(&c->row, &c->op->bid->ticket);
    const struct hf__entry *is = hf__record_find(&c->row.record, &c->op->bid->ticket);

    switch (c->answer.verdict) {
    case HF__VERDICT_GRANTED:
        return was == NULL || was->place != HF__PLACE_INSIDE || must_restart(c, was);
    case HF__VERDICT_QUEUED:
        return was == NULL || was->place != HF__PLACE_WAITING;
    case HF__VERDICT_DONE:
        return true;
    case HF__VERDICT_STALE: /* a tombstone, new or longer */
        return is != NULL && is->place == HF__PLACE_RETIRED &&
               (was == NULL || was->place != HF__PLACE_RETIRED || was->until_ms != is->until_ms);
    default:
        return false;
    }
}

/* When to ask again. The pause grows with the time since something last happened here, with the
 * time the last question took (a cluster that is slow is not asked more) and with the position:
 * whoever comes next asks often, the others seldom, and all of them before a grant that is handed
 * to them could run out. */
static int64_t pause_ms(const struct hf__cs_case *c, const struct hf__entry *me)
{
    int64_t position = 1, quiet_ms = c->now_ms - me->since_ms, inside_until_ms = HF__NEVER;

    for (size_t i = 0; i < c->row.record.count; i++) {
        const struct hf__entry *e = &c->row.record.entries[i];
        position += e->place == HF__PLACE_WAITING && e < me;
        if (is_inside(e) && c->now_ms - e->since_ms < quiet_ms)
            quiet_ms = c->now_ms - e->since_ms;
        if (is_inside(e) && e->until_ms < inside_until_ms)
            inside_until_ms = e->until_ms;
    }
    int64_t least_ms = 2 * (c->row.received_ns - c->row.sent_ns) / HF__NS_PER_MS;
    int64_t pause = quiet_ms / 4 < PAUSE_MAX_MS ? quiet_ms / 4 : PAUSE_MAX_MS;

    pause = pause < PAUSE_MIN_MS ? PAUSE_MIN_MS : pause;
    pause = (pause < least_ms ? least_ms : pause) * position;
    pause = pause > PAUSE_END_MS ? PAUSE_END_MS : pause;
    pause = pause > c->answer.lease_ms / 3 ? c->answer.lease_ms / 3 : pause;
    pause += (int64_t)hf__cs_jitter(c->lock.s, (uint64_t)pause / 2 + 1) - pause / 4;
    if (position == 1 && inside_until_ms - c->now_ms < pause)
        pause = inside_until_ms - c->now_ms;
    return pause < 1 ? 1 : pause;
}

void hf__cs_finish(struct hf__cs_case *c)
{
    const struct hf__entry *was = hf__cs_row_was(&c->row, &c->op->bid->ticket);
    const struct hf__entry *me = hf__record_find(&c->row.record, &c->op->bid->ticket);
    struct hf__answer *a = &c->answer;

    if (me == NULL || (a->verdict != HF__VERDICT_GRANTED && a->verdict != HF__VERDICT_QUEUED))
        return;
    if (a->verdict == HF__VERDICT_GRANTED && !hf__cs_must_write(c) && was->until_ms != HF__NEVER)
        a->lease_ms = was->until_ms - c->now_ms;
    if (a->lease_ms != HF__NEVER)
        a->lease_ms -= ((const struct hf__cs_extra *)me->who)->skew_ms;
    if (a->verdict == HF__VERDICT_QUEUED)
        a->ask_again_ms = pause_ms(c, me);
}
