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

#include "util/banned.h"

#define PAUSE_MIN_MS 10
#define PAUSE_MAX_MS 100  /* of the first in the queue; of others so many times their position */
#define PAUSE_END_MS 2000 /* of anybody */

static bool is_own(const struct hf__cs_op *op, const struct hf__entry *e)
{
    return hf__ticket_equal(&e->ticket, &op->bid->ticket);
}

/* Waits by the row's account, which is old, and by nobody else's. */
static bool is_assumed(const struct hf__cs_op *op, const struct hf__entry *was, int64_t now_ms)
{
    const struct hf__cs_extra *x = was->who;

    return was->place == HF__WAITING && was->until_ms <= now_ms && x->proof == HF__CS_ASSUMED &&
           !is_own(op, was);
}

static void revive(const struct hf__cs_op *op, struct hf__entry *e, int64_t now_ms)
{
    const struct hf__cs_extra *x = e->who;

    if (x->proof == HF__CS_ALIVE && x->alive_until_ms > e->until_ms)
        e->until_ms = x->alive_until_ms;
    /* It asks, so it lives: nobody has missed it so far. */
    if (e->until_ms <= now_ms && (is_own(op, e) || x->proof == HF__CS_ASSUMED))
        e->until_ms = now_ms + e->lease_ms;
}

static struct hf__answer decide(const struct hf__cs_op *op, struct hf__cs_row *row, int64_t now_ms)
{
    struct hf__moment at = {.now_ms = now_ms, .stamp_us = (uint64_t)now_ms * 1000};
    struct hf__record *record = &row->record;

    record->generation = row->generation;
    record->count = row->count;
    record->unseen = record->gap = 0;
    for (size_t i = 0; i < row->count; i++) {
        record->entries[i] = row->was[i];
        if (row->was[i].place == HF__WAITING)
            revive(op, &record->entries[i], now_ms);
    }
    switch (op->kind) {
    case HF__CS_ATTEMPT:
        return hf__doorman_attempt(record, op->bid, op->self, at);
    case HF__CS_WITHDRAW:
        return hf__doorman_withdraw(record, &op->bid->ticket, op->retire_ms, at);
    case HF__CS_RELEASE:
        return hf__doorman_release(record, &op->bid->ticket, op->retire_ms, at);
    case HF__CS_RENEW:
        return hf__doorman_renew(record, &op->bid->ticket, op->generation, at);
    default:
        return hf__doorman_break(record, &op->bid->ticket, op->now, at);
    }
}

static size_t count_waiting(const struct hf__entry *entries, size_t count)
{
    size_t waiting = 0;

    for (size_t i = 0; i < count; i++)
        waiting += entries[i].place == HF__WAITING;
    return waiting;
}

static bool only_readers_inside(const struct hf__cs_row *row)
{
    size_t inside = 0;

    for (size_t i = 0; i < row->record.count; i++) {
        const struct hf__entry *e = &row->record.entries[i];
        if (e->place != HF__INSIDE && e->place != HF__LINGERING)
            continue;
        if (e->mode == HF_EXCLUSIVE)
            return false;
        inside++;
    }
    return inside > 0;
}

/* A reader behind a writer that may be dead. Those who wait look in turns, so that all of them
 * together ask once. -1: nobody stands in the way. */
static ssize_t blocker(struct hf__cs *s, const struct hf__cs_op *op, const struct hf__cs_row *row,
                       int64_t now_ms, const struct hf__answer *answer)
{
    const struct hf__entry *me = hf__record_find(&row->record, &op->bid->ticket);
    size_t ahead = 0;
    ssize_t first = -1;

    if ((answer->verdict != HF__QUEUED && answer->verdict != HF__BUSY) ||
        (op->kind == HF__CS_ATTEMPT ? op->bid->mode : me->mode) != HF_SHARED ||
        !only_readers_inside(row))
        return -1;
    for (size_t i = 0; i < row->count; i++) {
        const struct hf__entry *e = &row->record.entries[i];
        if (e == me)
            break;
        if (e->place != HF__WAITING)
            continue;
        ahead++;
        if (first < 0)
            first = (ssize_t)i;
    }
    if (first < 0 || !is_assumed(op, &row->was[first], now_ms))
        return -1;
    return answer->verdict == HF__BUSY || hf__cs_dice(s, ahead) == 0 ? first : -1;
}

/* Whose sign of life the decision depends on. */
static size_t find_wanted(struct hf__cs *s, const struct hf__cs_op *op,
                          const struct hf__cs_row *row, int64_t now_ms,
                          const struct hf__answer *answer, bool *wanted)
{
    size_t count = 0;

    for (size_t i = 0; i < row->count; i++) {
        wanted[i] =
            (row->record.entries[i].marks & HF__LET_IN) && is_assumed(op, &row->was[i], now_ms);
        count += wanted[i];
    }
    if (count > 0)
        return count;
    ssize_t in_the_way = blocker(s, op, row, now_ms, answer);
    if (in_the_way < 0)
        return 0;
    wanted[in_the_way] = true;
    return 1;
}

/* The queue is one cell. Before somebody is turned away for its length, the dead leave. */
static int make_way(struct hf__cs *s, const struct hf__cs_op *op, struct hf__cs_row *row,
                    int64_t deadline_ns, hf_error *err)
{
    if (op->kind != HF__CS_ATTEMPT || hf__cs_row_was(row, &op->bid->ticket) != NULL ||
        count_waiting(row->was, row->count) < HF__CS_WAITERS)
        return 0;
    return hf__cs_look_for_signs(s, op->bid->name, op->bid->name_len, row, NULL, deadline_ns, err);
}

int hf__cs_judge(struct hf__cs *s, const struct hf__cs_op *op, struct hf__cs_row *row,
                 int64_t now_ms, int64_t deadline_ns, struct hf__answer *ret_answer, hf_error *err)
{
    bool *wanted = calloc(row->count + 1, sizeof *wanted);
    int code =
        wanted == NULL ? hf__fail(err, HF_NO_MEMORY, NULL) : make_way(s, op, row, deadline_ns, err);

    while (code == 0) {
        *ret_answer = decide(op, row, now_ms);
        if (find_wanted(s, op, row, now_ms, ret_answer, wanted) == 0)
            break;
        code = hf__cs_look_for_signs(s, op->bid->name, op->bid->name_len, row, wanted, deadline_ns,
                                     err);
    }
    free(wanted);
    if (code == 0 && op->kind == HF__CS_ATTEMPT && ret_answer->verdict == HF__QUEUED &&
        count_waiting(row->record.entries, row->record.count) > HF__CS_WAITERS)
        ret_answer->verdict = HF__FULL;
    return code;
}

/* A grant that is there already. Asking restarts its lease; while most of it is left the answer
 * says what is left instead, which saves a swap at every hand-over. */
static bool must_restart(const struct hf__cs_op *op, const struct hf__entry *was, int64_t now_ms)
{
    if (op->kind == HF__CS_RENEW && op->generation != 0)
        return !was->claimed || was->until_ms != HF__NEVER;
    return was->until_ms != HF__NEVER && (was->until_ms - now_ms) * 2 < was->lease_ms;
}

bool hf__cs_must_write(const struct hf__cs_op *op, const struct hf__cs_row *row, int64_t now_ms,
                       const struct hf__answer *answer)
{
    const struct hf__entry *was = hf__cs_row_was(row, &op->bid->ticket);
    const struct hf__entry *is = hf__record_find(&row->record, &op->bid->ticket);

    switch (answer->verdict) {
    case HF__GRANTED:
        return was == NULL || was->place != HF__INSIDE || must_restart(op, was, now_ms);
    case HF__QUEUED:
        return was == NULL || was->place != HF__WAITING;
    case HF__DONE:
        return true;
    case HF__STALE: /* a tombstone, new or longer */
        return is != NULL && is->place == HF__RETIRED &&
               (was == NULL || was->place != HF__RETIRED || was->until_ms != is->until_ms);
    default:
        return false;
    }
}

/* When to ask again. The pause grows with the time since something last happened here, with the
 * time the last question took (a cluster that is slow is not asked more) and with the position:
 * whoever comes next asks often, the others seldom, and all of them before a grant that is handed
 * to them could run out. */
static int64_t pause_ms(struct hf__cs *s, const struct hf__cs_row *row, const struct hf__entry *me,
                        int64_t now_ms, int64_t told_ms)
{
    int64_t position = 1, quiet_ms = now_ms - me->since_ms, inside_until_ms = HF__NEVER;

    for (size_t i = 0; i < row->record.count; i++) {
        const struct hf__entry *e = &row->record.entries[i];
        bool inside = e->place == HF__INSIDE || e->place == HF__LINGERING;
        position += e->place == HF__WAITING && e < me;
        if (inside && now_ms - e->since_ms < quiet_ms)
            quiet_ms = now_ms - e->since_ms;
        if (inside && e->until_ms < inside_until_ms)
            inside_until_ms = e->until_ms;
    }
    int64_t least_ms = 2 * (row->received_ns - row->sent_ns) / HF__NS_PER_MS;
    int64_t pause = quiet_ms / 4 < PAUSE_MAX_MS ? quiet_ms / 4 : PAUSE_MAX_MS;
    pause = pause < PAUSE_MIN_MS ? PAUSE_MIN_MS : pause;
    pause = (pause < least_ms ? least_ms : pause) * position;
    pause = pause > PAUSE_END_MS ? PAUSE_END_MS : pause;
    pause = pause > told_ms / 3 ? told_ms / 3 : pause;
    pause += (int64_t)hf__cs_dice(s, (uint64_t)pause / 2 + 1) - pause / 4;
    if (position == 1 && inside_until_ms - now_ms < pause)
        pause = inside_until_ms - now_ms;
    return pause < 1 ? 1 : pause;
}

void hf__cs_finish_answer(struct hf__cs *s, const struct hf__cs_op *op,
                          const struct hf__cs_row *row, int64_t now_ms, struct hf__answer *answer)
{
    const struct hf__entry *was = hf__cs_row_was(row, &op->bid->ticket);
    const struct hf__entry *me = hf__record_find(&row->record, &op->bid->ticket);

    if (me == NULL || (answer->verdict != HF__GRANTED && answer->verdict != HF__QUEUED))
        return;
    if (answer->verdict == HF__GRANTED && !hf__cs_must_write(op, row, now_ms, answer) &&
        was->until_ms != HF__NEVER)
        answer->lease_ms = was->until_ms - now_ms;
    if (answer->lease_ms != HF__NEVER)
        answer->lease_ms -= ((const struct hf__cs_extra *)me->who)->skew_ms;
    if (answer->verdict == HF__QUEUED)
        answer->ask_again_ms = pause_ms(s, row, me, now_ms, answer->lease_ms);
}
