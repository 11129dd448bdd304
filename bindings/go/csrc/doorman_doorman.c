/* The rules of doorman.h. Each operation is: sweep, apply, let in, answer. */
#include "doorman_doorman.h"

int64_t hf__own_lease_ms(int64_t ttl_ms)
{
    if (ttl_ms == HF__NEVER)
        return 5000;
    return ttl_ms < 1000 ? 1000 : ttl_ms > 10000 ? 10000 : ttl_ms;
}

int64_t hf__provisional_lease_ms(int64_t ttl_ms)
{
    int64_t own = hf__own_lease_ms(ttl_ms);

    return ttl_ms < own ? ttl_ms : own;
}

struct hf__entry *hf__record_find(const struct hf__record *record, const struct hf__ticket *ticket)
{
    for (size_t i = 0; i < record->count; i++) {
        struct hf__entry *e = &record->entries[i];
        if (e->place != HF__PLACE_GONE && hf__ticket_equal(&e->ticket, ticket))
            return e;
    }
    return NULL;
}

void hf__record_settle(struct hf__record *record)
{
    size_t kept = 0;

    for (size_t i = 0; i < record->count; i++) {
        if (record->entries[i].place == HF__PLACE_GONE)
            continue;
        record->entries[i].effects = 0;
        if (kept != i)
            record->entries[kept] = record->entries[i];
        kept++;
    }
    record->count = kept;
}

static bool occupies(const struct hf__entry *e)
{
    return e->place == HF__PLACE_INSIDE || e->place == HF__PLACE_LINGERING;
}

static void move(struct hf__entry *e, enum hf__place place)
{
    e->place = place;
    e->effects |= HF__EFFECT_CHANGED;
}

/* Every span is given here, so that the rule against a clock that went back has one place to
 * look. */
static void give(struct hf__entry *e, int64_t from_ms, int64_t span_ms)
{
    e->lease_ms = span_ms;
    e->until_ms = span_ms == HF__NEVER ? HF__NEVER : from_ms + span_ms;
    e->effects |= HF__EFFECT_CHANGED;
}

static void leave(struct hf__entry *e, int64_t retire_ms, int64_t from_ms)
{
    if (retire_ms > 0) {
        move(e, HF__PLACE_RETIRED);
        give(e, from_ms, retire_ms);
    } else {
        move(e, HF__PLACE_GONE);
    }
}

static void give_numbers(struct hf__record *record, uint64_t last)
{
    if (record->generation < last)
        record->generation = last;
}

/* A holder's end that it did not announce. */
static void note_end(struct hf__record *record, const struct hf__entry *e)
{
    record->doubt |= e->opened;
    if (e->cached)
        give_numbers(record, e->generation + HF__TOKENS_RESERVED);
}

/* The lease of a holder ran out. One that knew it held keeps the door closed for its lock-delay. */
static void expire(struct hf__entry *e)
{
    bool linger = e->claimed && e->lock_delay_ms > 0;

    if (linger) {
        int64_t expired_at = e->until_ms;
        move(e, HF__PLACE_LINGERING);
        give(e, expired_at, e->lock_delay_ms);
    } else {
        leave(e, e->retire_ms, e->until_ms);
    }
}

static void sweep_entry(struct hf__record *record, struct hf__entry *e, int64_t now_ms)
{
    if (e->until_ms != HF__NEVER && e->until_ms - now_ms > e->lease_ms)
        give(e, now_ms, e->lease_ms); /* the store's clock went back */

    while (e->place != HF__PLACE_GONE && e->until_ms <= now_ms) {
        if (e->place == HF__PLACE_INSIDE) {
            note_end(record, e);
            expire(e);
        } else if (e->place == HF__PLACE_LINGERING) {
            leave(e, e->retire_ms, e->until_ms);
        } else {
            move(e, HF__PLACE_GONE);
        }
    }
}

static void sweep(struct hf__record *record, int64_t now_ms)
{
    for (size_t i = 0; i < record->count; i++) {
        if (record->entries[i].place != HF__PLACE_GONE)
            sweep_entry(record, &record->entries[i], now_ms);
    }
}

struct inside {
    size_t count;
    bool exclusive;
    uint32_t limit; /* the smallest of those inside; 0: none */
};

static uint32_t smaller_limit(uint32_t a, uint32_t b)
{
    if (a == 0 || b == 0)
        return a + b;
    return a < b ? a : b;
}

static struct inside look_inside(const struct hf__record *record)
{
    struct inside in = {.count = record->sharers.count, .limit = record->sharers.limit};

    for (size_t i = 0; i < record->count; i++) {
        const struct hf__entry *e = &record->entries[i];
        if (!occupies(e))
            continue;
        in.count++;
        in.exclusive |= e->mode == HF_EXCLUSIVE;
        in.limit = smaller_limit(in.limit, e->limit);
    }
    return in;
}

static bool fits(const struct hf__entry *e, const struct inside *in)
{
    uint32_t limit = smaller_limit(in->limit, e->limit);

    if (in->count == 0)
        return true;
    if (in->exclusive || e->mode == HF_EXCLUSIVE)
        return false;
    return limit == 0 || in->count < limit;
}

/* A bidder that is let in by its own attempt knows of it from the answer; anybody else may be
 * dead. */
static void enter(struct hf__record *record, struct hf__entry *e, bool knows, struct hf__moment at)
{
    uint64_t next = record->generation + 1;

    record->generation = next > at.stamp_us ? next : at.stamp_us;
    e->generation = record->generation;
    e->since_ms = at.now_ms;
    e->claimed = knows && e->ttl_ms != HF__NEVER;
    move(e, HF__PLACE_INSIDE);
    e->effects |= HF__EFFECT_LET_IN;
    give(e, at.now_ms, e->claimed ? e->ttl_ms : hf__provisional_lease_ms(e->ttl_ms));
}

static bool behind_gap(const struct hf__record *record, const struct hf__entry *e)
{
    return record->unseen > 0 && e >= record->entries + record->gap;
}

/* False if everybody up to the gap fitted: whoever was left out may fit as well. */
static bool let_in(struct hf__record *record, const struct hf__ticket *knows, struct hf__moment at)
{
    struct inside in = look_inside(record);

    for (size_t i = 0; i < record->count; i++) {
        struct hf__entry *e = &record->entries[i];
        if (e->place != HF__PLACE_WAITING)
            continue;
        if (behind_gap(record, e))
            return false;
        if (!fits(e, &in))
            return true;
        enter(record, e, knows != NULL && hf__ticket_equal(&e->ticket, knows), at);
        in.count++;
        in.exclusive |= e->mode == HF_EXCLUSIVE;
        in.limit = smaller_limit(in.limit, e->limit);
    }
    return record->unseen == 0;
}

static struct hf__answer answer(enum hf__verdict verdict)
{
    return (struct hf__answer){.verdict = verdict};
}

static bool somebody_waits(const struct hf__record *record)
{
    for (size_t i = 0; i < record->count; i++) {
        if (record->entries[i].place == HF__PLACE_WAITING)
            return true;
    }
    return record->unseen > 0;
}

/* A holder that hears that nobody waits is called again for the next who comes. */
static struct hf__answer granted(const struct hf__record *record, struct hf__entry *e)
{
    struct hf__answer a = {.verdict = HF__VERDICT_GRANTED,
                           .generation = e->generation,
                           .lease_ms = e->lease_ms,
                           .claimed = e->claimed,
                           .wanted = e->tell && somebody_waits(record)};

    if (e->told && !a.wanted) {
        e->told = false;
        e->effects |= HF__EFFECT_CHANGED;
    }
    return a;
}

/* Somebody has come to wait: each holder that asked for it is called, once. Who does not wait has only
 * those called that may keep the lock without using it. */
static void call_holders(struct hf__record *record, bool waits)
{
    for (size_t i = 0; i < record->count; i++) {
        struct hf__entry *e = &record->entries[i];
        bool asked = e->tell && (waits || e->cached);
        if (e->place != HF__PLACE_INSIDE || !asked || e->told)
            continue;
        e->told = true;
        e->effects |= HF__EFFECT_WANTED | HF__EFFECT_CHANGED;
    }
}

static struct hf__answer busy(const struct hf__record *record)
{
    struct hf__answer a = {.verdict = HF__VERDICT_BUSY};

    for (size_t i = 0; i < record->count; i++) {
        const struct hf__entry *e = &record->entries[i];
        a.wanted |= e->place == HF__PLACE_INSIDE && e->cached;
    }
    return a;
}

/* When it is worth asking although nobody called: whoever is first may find that a holder has
 * vanished, everybody else that the one before him has. */
static int64_t ask_again(const struct hf__record *record, const struct hf__entry *me,
                         int64_t now_ms)
{
    int64_t inside_until = record->sharers.count > 0 ? record->sharers.until_ms : HF__NEVER;
    int64_t before_until = HF__NEVER;

    if (behind_gap(record, me))
        return me->lease_ms;
    for (const struct hf__entry *e = record->entries; e < me; e++) {
        if (e->place == HF__PLACE_WAITING)
            before_until = e->until_ms;
    }
    for (size_t i = 0; i < record->count; i++) {
        const struct hf__entry *e = &record->entries[i];
        if (occupies(e) && e->until_ms < inside_until)
            inside_until = e->until_ms;
    }
    if (before_until != HF__NEVER)
        return before_until - now_ms;
    return inside_until == HF__NEVER ? HF__NEVER : inside_until - now_ms;
}

static struct hf__answer queued(const struct hf__record *record, const struct hf__entry *me,
                                int64_t now_ms)
{
    struct hf__answer a = {.verdict = HF__VERDICT_QUEUED,
                           .generation = record->generation,
                           .lease_ms = hf__provisional_lease_ms(me->ttl_ms),
                           .position = 1,
                           .ask_again_ms = ask_again(record, me, now_ms)};

    for (const struct hf__entry *e = record->entries; e < me; e++)
        a.position += e->place == HF__PLACE_WAITING;
    if (behind_gap(record, me))
        a.position += record->unseen;
    return a;
}

static struct hf__entry *join(struct hf__record *record, const struct hf__bid *bid, void *who,
                              int64_t now_ms)
{
    struct hf__entry *e = &record->entries[record->count++];

    *e = (struct hf__entry){.ticket = bid->ticket,
                            .place = HF__PLACE_WAITING,
                            .effects = HF__EFFECT_NEW,
                            .mode = bid->mode,
                            .limit = bid->mode == HF_SHARED ? bid->limit : 0,
                            .ttl_ms = bid->ttl_ms,
                            .lock_delay_ms = bid->lock_delay_ms,
                            .retire_ms = bid->retire_ms,
                            .since_ms = now_ms,
                            .tell = bid->tell,
                            .cached = bid->cached,
                            .who = who};
    give(e, now_ms, hf__own_lease_ms(bid->ttl_ms));
    return e;
}

static bool is_full(const struct hf__record *record)
{
    size_t waiting = record->unseen, retired = 0;

    for (size_t i = 0; i < record->count; i++) {
        waiting += record->entries[i].place == HF__PLACE_WAITING;
        retired += record->entries[i].place == HF__PLACE_RETIRED;
    }
    return waiting >= HF__QUEUE_MAX || retired >= HF__RETIRED_MAX;
}

static struct hf__answer attempt(struct hf__record *record, const struct hf__operation *op,
                                 struct hf__moment at)
{
    const struct hf__bid *bid = op->bid;
    struct hf__entry *e = hf__record_find(record, &bid->ticket);
    bool is_new = e == NULL;

    if (e == NULL && is_full(record))
        return answer(let_in(record, NULL, at) ? HF__VERDICT_FULL : HF__VERDICT_MORE);
    if (e == NULL)
        e = join(record, bid, op->who, at.now_ms);
    else if (e->place == HF__PLACE_WAITING)
        give(e, at.now_ms, hf__own_lease_ms(e->ttl_ms));
    else if (e->place == HF__PLACE_INSIDE)
        give(e, at.now_ms, e->lease_ms);

    if (!let_in(record, &bid->ticket, at))
        return answer(HF__VERDICT_MORE);
    if (e->place == HF__PLACE_INSIDE)
        return granted(record, e);
    if (e->place != HF__PLACE_WAITING)
        return answer(HF__VERDICT_WITHDRAWN);
    if (!bid->queue)
        move(e, HF__PLACE_GONE);
    if (is_new || !bid->queue)
        call_holders(record, bid->queue);
    return bid->queue ? queued(record, e, at.now_ms) : busy(record);
}

/* Its attempt may still be on the way: what has not been seen is remembered too. */
static void retire_unseen(struct hf__record *record, const struct hf__ticket *ticket,
                          int64_t retire_ms, int64_t now_ms)
{
    struct hf__entry *e = &record->entries[record->count++];

    *e = (struct hf__entry){
        .ticket = *ticket, .effects = HF__EFFECT_NEW, .retire_ms = retire_ms, .since_ms = now_ms};
    leave(e, retire_ms, now_ms);
}

/* The bidder is done with its ticket. A lock-delay stays, unless `unused`: nobody has worked under
 * the grant. An older tombstone is renewed: the last attempt may be younger. Returns where the ticket
 * was. */
static enum hf__place end_bid(struct hf__record *record, const struct hf__ticket *ticket,
                              int64_t retire_ms, bool unused, int64_t now_ms)
{
    struct hf__entry *e = hf__record_find(record, ticket);
    enum hf__place was = e == NULL ? HF__PLACE_GONE : e->place;

    if (was == HF__PLACE_INSIDE || was == HF__PLACE_WAITING ||
        (was == HF__PLACE_LINGERING && unused))
        leave(e, retire_ms, now_ms);
    else if (was == HF__PLACE_GONE && retire_ms > 0)
        retire_unseen(record, ticket, retire_ms, now_ms);
    else if (was == HF__PLACE_RETIRED && e->until_ms < now_ms + retire_ms)
        give(e, now_ms, retire_ms);
    return was;
}

/* The holder leaves, and the door stays closed until so long after it was let in. False: that is over,
 * or was not asked for. */
static bool stay_closed(struct hf__record *record, const struct hf__operation *op, int64_t now_ms)
{
    struct hf__entry *e = op->at_least_ms > 0 ? hf__record_find(record, &op->bid->ticket) : NULL;

    if (e == NULL || e->place != HF__PLACE_INSIDE || e->since_ms + op->at_least_ms <= now_ms)
        return false;
    move(e, HF__PLACE_LINGERING);
    give(e, e->since_ms, op->at_least_ms);
    return true;
}

/* Of the numbers of a cached grant those that were used are gone. */
static void note_used(struct hf__record *record, const struct hf__operation *op)
{
    const struct hf__entry *e =
        op->generation != 0 ? hf__record_find(record, &op->bid->ticket) : NULL;
    bool knows = e != NULL && e->place == HF__PLACE_INSIDE && e->cached;

    if (knows && op->generation - e->generation <= HF__TOKENS_RESERVED)
        give_numbers(record, op->generation);
}

static struct hf__answer release(struct hf__record *record, const struct hf__operation *op,
                                 struct hf__moment at)
{
    const struct hf__ticket *ticket = &op->bid->ticket;
    enum hf__place was;

    note_used(record, op);
    if (stay_closed(record, op, at.now_ms))
        was = HF__PLACE_INSIDE;
    else
        was = end_bid(record, ticket, op->retire_ms, false, at.now_ms);
    if (!let_in(record, NULL, at))
        return answer(HF__VERDICT_MORE);
    return answer(was == HF__PLACE_INSIDE ? HF__VERDICT_DONE : HF__VERDICT_STALE);
}

static struct hf__answer withdraw(struct hf__record *record, const struct hf__operation *op,
                                  struct hf__moment at)
{
    enum hf__place was = end_bid(record, &op->bid->ticket, op->retire_ms, true, at.now_ms);

    if (!let_in(record, NULL, at))
        return answer(HF__VERDICT_MORE);
    return answer(was == HF__PLACE_GONE || was == HF__PLACE_RETIRED ? HF__VERDICT_STALE
                                                                    : HF__VERDICT_DONE);
}

static struct hf__answer renew(struct hf__record *record, const struct hf__operation *op,
                               struct hf__moment at)
{
    struct hf__entry *e = hf__record_find(record, &op->bid->ticket);
    bool inside = e != NULL && e->place == HF__PLACE_INSIDE;
    bool names_it = inside && op->generation == e->generation;

    if (names_it) {
        e->claimed = true;
        give(e, at.now_ms, e->ttl_ms);
    } else if (inside && op->generation == 0) {
        give(e, at.now_ms, e->lease_ms);
    } else if (e != NULL && e->place == HF__PLACE_WAITING) {
        give(e, at.now_ms, hf__own_lease_ms(e->ttl_ms));
    }
    if (!let_in(record, NULL, at))
        return answer(HF__VERDICT_MORE);
    if (e != NULL && e->place == HF__PLACE_WAITING) {
        struct hf__answer a = queued(record, e, at.now_ms);
        a.position = 0;
        return a;
    }
    bool known = names_it || op->generation == 0;
    return known && e != NULL && e->place == HF__PLACE_INSIDE ? granted(record, e)
                                                              : answer(HF__VERDICT_GONE);
}

/* Who reads or writes the value as a holder: inside, and by the generation it knows. */
static struct hf__entry *holder(const struct hf__record *record, const struct hf__operation *op)
{
    struct hf__entry *e = op->generation != 0 ? hf__record_find(record, &op->bid->ticket) : NULL;
    bool is_holder = e != NULL && e->place == HF__PLACE_INSIDE && e->generation == op->generation;

    return is_holder ? e : NULL;
}

static void open_value(struct hf__entry *e)
{
    if (e->opened || e->mode != HF_EXCLUSIVE)
        return;
    e->opened = true;
    e->effects |= HF__EFFECT_CHANGED;
}

static struct hf__answer read_value(struct hf__record *record, const struct hf__operation *op,
                                    struct hf__moment at)
{
    struct hf__entry *e = holder(record, op);
    bool may_read = e != NULL || op->generation == 0;

    if (e != NULL)
        open_value(e);
    if (!let_in(record, NULL, at))
        return answer(HF__VERDICT_MORE);
    return answer(may_read ? HF__VERDICT_DONE : HF__VERDICT_GONE);
}

/* The same write may come twice, and one that was overtaken by the next of its holder comes too late. */
static struct hf__answer write_value(struct hf__record *record, const struct hf__operation *op,
                                     struct hf__moment at)
{
    struct hf__entry *e = holder(record, op);
    bool may_write = e != NULL && e->mode == HF_EXCLUSIVE;
    bool is_old =
        op->generation < record->value_generation ||
        (op->generation == record->value_generation && op->value->order < record->value_order);

    if (may_write && !is_old) {
        record->value_generation = op->generation;
        record->value_order = op->value->order;
        record->doubt = false;
        open_value(e);
    }
    if (!let_in(record, NULL, at))
        return answer(HF__VERDICT_MORE);
    if (!may_write)
        return answer(HF__VERDICT_GONE);
    return answer(is_old ? HF__VERDICT_STALE : HF__VERDICT_DONE);
}

/* A holder that was broken keeps the door closed as long as it may believe that it holds. */
static void break_inside(struct hf__entry *e, bool now, int64_t now_ms)
{
    int64_t lease_ms = e->until_ms == HF__NEVER || now ? 0 : e->until_ms - now_ms;
    int64_t delay_ms = e->claimed ? e->lock_delay_ms : 0;

    if (lease_ms + delay_ms > 0) {
        move(e, HF__PLACE_LINGERING);
        give(e, now_ms, lease_ms + delay_ms);
    } else {
        leave(e, e->retire_ms, now_ms);
    }
}

static struct hf__answer break_ticket(struct hf__record *record, const struct hf__operation *op,
                                      struct hf__moment at)
{
    struct hf__entry *e = hf__record_find(record, &op->bid->ticket);
    bool found = e != NULL && e->place != HF__PLACE_RETIRED;

    if (found && e->place == HF__PLACE_INSIDE) {
        note_end(record, e);
        break_inside(e, op->now, at.now_ms);
    } else if (found && (e->place == HF__PLACE_WAITING || op->now)) {
        leave(e, e->retire_ms, at.now_ms);
    }
    if (!let_in(record, NULL, at))
        return answer(HF__VERDICT_MORE);
    return answer(found ? HF__VERDICT_DONE : HF__VERDICT_STALE);
}

struct hf__answer hf__doorman_apply(struct hf__record *record, const struct hf__operation *op,
                                    struct hf__moment at)
{
    sweep(record, at.now_ms);
    switch (op->kind) {
    case HF__OPERATION_ATTEMPT:
        return attempt(record, op, at);
    case HF__OPERATION_RELEASE:
        return release(record, op, at);
    case HF__OPERATION_WITHDRAW:
        return withdraw(record, op, at);
    case HF__OPERATION_RENEW:
        return renew(record, op, at);
    case HF__OPERATION_BREAK:
        return break_ticket(record, op, at);
    case HF__OPERATION_READ:
        return read_value(record, op, at);
    case HF__OPERATION_WRITE:
        return write_value(record, op, at);
    default:
        return answer(let_in(record, NULL, at) ? HF__VERDICT_DONE : HF__VERDICT_MORE);
    }
}
