/* One operation on the record, done by the real doorman, and what must be true of every such step.
 *
 * The observer works out for himself, from the record before, who was live at that moment (`seen`),
 * and remembers for each ticket what the contract has to say about it (`ghost`). Then he compares.
 */
#include "walk.h"

#include <string.h>

/* An entry as the contract sees it at this moment, before the operation. */
struct seen {
    enum hf__place place; /* GONE: not there */
    int64_t until_ms;
    uint64_t generation;
};

struct step {
    struct walk *k;
    const struct scenario *s;
    struct world *w;
    const struct deed *d;
    struct hf__answer a;
    struct hf__entry before[MAX_TICKETS + 1];
    size_t before_count;
    uint64_t before_generation;
    struct seen seen[MAX_TICKETS];
};

#define FOUND(clause, what) ((struct finding){clause, what})
#define FINE                ((struct finding){NULL, NULL})
#define SAW(k, sight)       ((k)->sights[SAW_##sight]++)

static uint8_t ticks_left(const struct scenario *s, int64_t until_ms)
{
    return until_ms <= NOW_MS ? 0 : (uint8_t)((until_ms - NOW_MS) / s->tick_ms);
}

/* Before the operation. ---------------------------------------------------------------------------
 */

/* A lease ran out: from now on the ticket is over, and a claimed one keeps the door closed. */
static struct seen see_expired(struct step *p, const struct hf__entry *e, struct ghost *g)
{
    int64_t delay_ms = g->claimed ? e->lock_delay_ms : 0;

    if (!g->claimed)
        SAW(p->k, UNCLAIMED_EXPIRED);
    g->closed = ticks_left(p->s, e->until_ms + delay_ms);
    g->barred = ticks_left(p->s, e->until_ms + delay_ms + retire_ms(p->s));
    return (struct seen){.place = g->closed > 0 ? HF__LINGERING : HF__RETIRED};
}

static struct seen see_entry(struct step *p, struct hf__entry e)
{
    struct ghost *g = &p->w->ghost[ticket_number(&e.ticket)];

    if (e.until_ms != HF__NEVER && e.until_ms - NOW_MS > e.lease_ms) {
        e.until_ms = NOW_MS + e.lease_ms;
        SAW(p->k, CLOCK_CUT);
    }
    if (e.until_ms > NOW_MS)
        return (struct seen){e.place, e.until_ms, e.generation};
    if (e.place == HF__INSIDE)
        return see_expired(p, &e, g);
    if (e.place == HF__WAITING)
        SAW(p->k, DEAD_WAITER_LEFT);
    return (struct seen){.place = e.place == HF__LINGERING ? HF__RETIRED : HF__GONE};
}

static void look_before(struct step *p)
{
    memset(p->seen, 0, sizeof p->seen);
    memcpy(p->before, p->w->entries, sizeof p->before);
    p->before_count = p->w->entry_count;
    p->before_generation = p->w->generation;
    for (size_t i = 0; i < p->before_count; i++)
        p->seen[ticket_number(&p->before[i].ticket)] = see_entry(p, p->before[i]);
}

/* The operation. ----------------------------------------------------------------------------------
 */
static void run(struct step *p)
{
    struct hf__record record = {.generation = p->w->generation,
                                .entries = p->w->entries,
                                .count = p->w->entry_count,
                                .capacity = MAX_TICKETS + 1};
    struct hf__bid bid = bid_of(p->s, p->d->ticket);
    struct hf__moment at = {.now_ms = NOW_MS};
    int64_t retire = p->d->retire ? retire_ms(p->s) : 0;

    if (p->d->kind == ATTEMPT)
        p->a = hf__doorman_attempt(&record, &bid, NULL, at);
    else if (p->d->kind == RENEW)
        p->a = hf__doorman_renew(&record, &bid.ticket, p->d->generation, at);
    else if (p->d->kind == WITHDRAW)
        p->a = hf__doorman_withdraw(&record, &bid.ticket, retire, at);
    else if (p->d->kind == RELEASE)
        p->a = hf__doorman_release(&record, &bid.ticket, retire, at);
    else if (p->d->kind == SWEEPING)
        p->a = hf__doorman_sweep(&record, at);
    else
        p->a = hf__doorman_break(&record, &bid.ticket, p->d->now, at);
    p->w->generation = record.generation;
    p->w->entry_count = record.count;
}

static bool was_let_in(const struct step *p, const struct hf__entry *e)
{
    const struct seen *before = &p->seen[ticket_number(&e->ticket)];

    return e->place == HF__INSIDE && before->place != HF__INSIDE;
}

/* What the contract says of the ticket from now on. -----------------------------------------------
 */
static void remember_break(struct step *p, struct ghost *g)
{
    const struct seen *before = &p->seen[p->d->ticket];
    int64_t delay_ms = g->claimed ? p->s->client[client_of(p->d->ticket)].delay_ms : 0;
    bool at_once = p->d->now || before->until_ms == HF__NEVER;

    if (before->place == HF__INSIDE) {
        int64_t from_ms = at_once ? NOW_MS : before->until_ms;
        g->closed = ticks_left(p->s, from_ms + delay_ms);
        g->barred = ticks_left(p->s, from_ms + delay_ms + retire_ms(p->s));
        g->broken = 1;
        g->cut |= at_once;
    } else if (before->place == HF__WAITING || (before->place == HF__LINGERING && p->d->now)) {
        g->cut |= before->place == HF__LINGERING;
        g->closed = 0;
        g->barred = ticks_left(p->s, NOW_MS + retire_ms(p->s));
    }
    if (p->d->now)
        SAW(p->k, BROKEN_NOW);
}

static void remember(struct step *p)
{
    if (p->d->kind == SWEEPING)
        return;

    struct ghost *g = &p->w->ghost[p->d->ticket];
    const struct seen *before = &p->seen[p->d->ticket];

    if (p->d->kind == WITHDRAW || p->d->kind == RELEASE) {
        if (p->d->kind == RELEASE && g->withdrawn)
            SAW(p->k, RELEASE_RETRIED);
        g->withdrawn = 1;
    }
    if (p->d->kind == RENEW && before->place == HF__INSIDE &&
        p->d->generation == before->generation)
        g->claimed = 1;
    if (p->d->kind == BREAKING)
        remember_break(p, g);
}

/* After the operation. ----------------------------------------------------------------------------
 */
static struct finding check_fields(const struct step *p, size_t i)
{
    const struct hf__entry *e = &p->w->entries[i], *old = &p->before[i];

    if (i >= p->before_count)
        return e->marks & HF__NEW ? FINE : FOUND("marks", "a new entry is not marked");
    if (!hf__ticket_equal(&e->ticket, &old->ticket))
        return FOUND("C5", "the order of the entries changed");
    bool same = e->place == old->place && e->until_ms == old->until_ms &&
                e->generation == old->generation && e->claimed == old->claimed &&
                e->lease_ms == old->lease_ms;
    if (!same && !(e->marks & HF__CHANGED))
        return FOUND("marks", "an entry that changed is not marked");
    return FINE;
}

/* Others are touched by nothing but time and the hand-over. */
static struct finding check_bystander(const struct step *p, const struct hf__entry *e)
{
    uint8_t t = ticket_number(&e->ticket);
    const struct seen *before = &p->seen[t];

    if (before->place == HF__INSIDE) {
        if (e->place != HF__INSIDE || e->generation != before->generation)
            return FOUND("C2", "a live grant was ended by somebody else's request");
        if (e->until_ms != before->until_ms)
            return FOUND("C3", "a live lease was changed by somebody else's request");
    }
    if (before->place == HF__WAITING && e->place != HF__WAITING && e->place != HF__INSIDE)
        return FOUND("C5", "a live waiter was dropped");
    if (before->place == HF__WAITING && e->place == HF__WAITING && e->until_ms != before->until_ms)
        return FOUND("C5", "a waiter's sign of life was changed by somebody else");
    if (before->place == HF__GONE && e->place == HF__WAITING)
        return FOUND("C5", "a dead waiter stays in the queue");
    if (before->place == HF__RETIRED && e->place == HF__LINGERING)
        return FOUND("C8", "the lock stays closed without cause");
    return FINE;
}

/* The door is closed for the sake of holders that vanished: they count as if they were inside. */
static struct finding check_closed(const struct step *p, uint8_t t)
{
    uint32_t limit = p->s->client[client_of(t)].limit, count = 1;

    for (uint8_t u = 0; u < MAX_TICKETS; u++) {
        const struct hf__entry *e = entry_of(p->w, u);
        bool inside = e != NULL && e->place == HF__INSIDE;
        uint32_t other = p->s->client[client_of(u)].limit;
        if (u == t || (!inside && p->w->ghost[u].closed == 0))
            continue;
        if (!inside && conflict(p->s, t, u))
            return FOUND("C8", "let in before the lock-delay was over");
        count++;
        if (other != 0 && (limit == 0 || other < limit))
            limit = other;
    }
    return limit != 0 && count > limit ? FOUND("C1", "more than the smallest limit") : FINE;
}

static struct finding check_let_in(const struct step *p, size_t i)
{
    const struct hf__entry *e = &p->w->entries[i];
    uint8_t t = ticket_number(&e->ticket);
    const struct ghost *g = &p->w->ghost[t];

    if (g->withdrawn)
        return FOUND("C5", "a bid that was withdrawn or released was let in");
    if (g->barred > 0)
        return FOUND("C5", "a ticket that was over was let in again");
    for (size_t j = 0; j < i; j++) {
        const struct hf__entry *other = &p->w->entries[j];
        if (other->place != HF__WAITING)
            continue;
        if (other->mode == HF_EXCLUSIVE && e->mode == HF_SHARED)
            return FOUND("C9", "a reader passed a waiting writer");
        return FOUND("C5", "let in before somebody who came earlier");
    }
    if (!(e->marks & HF__LET_IN))
        return FOUND("C12", "let in, but nobody will be told");
    return check_closed(p, t);
}

/* Generations rise with every grant, in the order of the queue. */
static struct finding check_generations(const struct step *p)
{
    uint64_t last = p->before_generation;

    for (size_t i = 0; i < p->w->entry_count; i++) {
        const struct hf__entry *e = &p->w->entries[i];
        if (!was_let_in(p, e))
            continue;
        if (e->generation <= last)
            return FOUND("C4", "the generation did not rise with the grant");
        last = e->generation;
    }
    return p->w->generation == last ? FINE : FOUND("C4", "the record's generation is not the last");
}

/* C1 by the store's account, and nobody waits who could enter. */
static struct finding check_inside(const struct step *p)
{
    const struct hf__entry *head = NULL;
    uint32_t count = 0, limit = 0;
    bool exclusive = false;

    for (size_t i = 0; i < p->w->entry_count; i++) {
        const struct hf__entry *e = &p->w->entries[i];
        if (head == NULL && e->place == HF__WAITING)
            head = e;
        if (e->place != HF__INSIDE && e->place != HF__LINGERING)
            continue;
        count++;
        exclusive |= e->mode == HF_EXCLUSIVE;
        if (e->limit != 0 && (limit == 0 || e->limit < limit))
            limit = e->limit;
    }
    if (exclusive && count > 1)
        return FOUND("C1", "an exclusive grant beside another");
    if (limit != 0 && count > limit)
        return FOUND("C1", "more than the smallest limit");
    if (count > 1)
        SAW(p->k, READERS_TOGETHER);
    if (limit != 0 && count == limit)
        SAW(p->k, LIMIT_REACHED);
    if (head == NULL)
        return FINE;
    if (head->limit != 0 && (limit == 0 || head->limit < limit))
        limit = head->limit;
    if (count == 0 || (!exclusive && head->mode == HF_SHARED && (limit == 0 || count < limit)))
        return FOUND("C5", "the first in the queue could enter but waits");
    return FINE;
}

static struct finding check_claims(const struct step *p, const struct hf__entry *e)
{
    const struct ghost *g = &p->w->ghost[ticket_number(&e->ticket)];

    if (e->place == HF__INSIDE && e->claimed && !g->claimed)
        return FOUND("C8", "a grant was claimed by a request that did not know of it");
    if (e->place == HF__INSIDE && !e->claimed && g->claimed)
        return FOUND("C8", "a claim was forgotten");
    if (e->place == HF__INSIDE && e->until_ms == HF__NEVER && !g->claimed)
        return FOUND("C5", "a grant that nobody knows of never expires");
    if (e->place == HF__LINGERING && g->closed == 0 && !p->w->stepped)
        return FOUND("C8", "the lock stays closed without cause");
    if (e->place == HF__LINGERING && !g->claimed && !g->broken)
        return FOUND("C8", "a lock-delay after a grant that nobody claimed");
    return FINE;
}

/* The answers. ------------------------------------------------------------------------------------
 */
static struct finding check_attempt(const struct step *p, enum hf__place after, uint64_t generation)
{
    bool queue = bid_of(p->s, p->d->ticket).queue;

    if (p->a.verdict == HF__GRANTED && (after != HF__INSIDE || p->a.generation != generation))
        return FOUND("C2", "told granted without a grant");
    if (after == HF__INSIDE && p->a.verdict != HF__GRANTED)
        return FOUND("C6", "inside, but told otherwise");
    if (after == HF__WAITING && (p->a.verdict != HF__QUEUED || !queue))
        return FOUND("C5", "waits, but was told otherwise");
    if (p->a.verdict == HF__QUEUED && (after != HF__WAITING || p->a.generation != p->w->generation))
        return FOUND("C5", "told queued without being so");
    if (p->a.verdict == HF__BUSY && after != HF__GONE)
        return FOUND("C5", "a no-wait bid stays");
    return FINE;
}

static struct finding check_renew(const struct step *p, enum hf__place after, uint64_t generation)
{
    const struct seen *before = &p->seen[p->d->ticket];
    bool known = p->d->generation == 0 || p->d->generation == generation;

    if (p->a.verdict == HF__GRANTED && before->place != HF__INSIDE && before->place != HF__WAITING)
        return FOUND("C2", "a ticket that was over renewed its grant");
    if (p->a.verdict == HF__GRANTED &&
        (after != HF__INSIDE || p->a.generation != generation || !known))
        return FOUND("C2", "told granted without a grant");
    if (after == HF__INSIDE && known && p->a.verdict != HF__GRANTED)
        return FOUND("C6", "inside, but told otherwise");
    if ((after == HF__WAITING) != (p->a.verdict == HF__QUEUED))
        return FOUND("C5", "told queued without being so, or the other way round");
    return FINE;
}

/* Release, withdraw and break. */
static struct finding check_end(const struct step *p, enum hf__place after)
{
    enum hf__place before = p->seen[p->d->ticket].place;
    bool was_inside = before == HF__INSIDE, was_waiting = before == HF__WAITING;
    bool done = was_inside || (was_waiting && p->d->kind != RELEASE) ||
                (before == HF__LINGERING && p->d->kind == BREAKING);

    if (before == HF__GONE && p->a.verdict == HF__DONE && p->d->kind != RELEASE)
        return FOUND("C5", "a dead waiter was still in the queue");
    if (after == HF__INSIDE || after == HF__WAITING)
        return FOUND("C5", "a ticket that was released, withdrawn or broken is still there");
    if (p->a.verdict != (done ? HF__DONE : HF__STALE))
        return FOUND("C2", "the wrong answer to a release, withdraw or break");
    return FINE;
}

static struct finding check_answer(const struct step *p)
{
    const struct hf__entry *e = entry_of(p->w, p->d->ticket);
    enum hf__place after = e == NULL ? HF__GONE : e->place;
    uint64_t generation = e == NULL ? 0 : e->generation;

    if (p->d->kind == SWEEPING)
        return FINE;
    if (p->d->kind == ATTEMPT)
        return check_attempt(p, after, generation);
    if (p->d->kind == RENEW)
        return check_renew(p, after, generation);
    return check_end(p, after);
}

static struct finding check_entry(const struct step *p, size_t i)
{
    const struct hf__entry *e = &p->w->entries[i];
    struct finding f = check_fields(p, i);

    if (f.clause == NULL && ticket_number(&e->ticket) != p->d->ticket)
        f = check_bystander(p, e);
    if (f.clause == NULL && was_let_in(p, e))
        f = check_let_in(p, i);
    if (f.clause == NULL)
        f = check_claims(p, e);
    return f;
}

/* A ticket that is let in begins anew as far as the contract is concerned. */
static void remember_let_in(struct step *p)
{
    for (size_t i = 0; i < p->w->entry_count; i++) {
        const struct hf__entry *e = &p->w->entries[i];
        struct ghost *g = &p->w->ghost[ticket_number(&e->ticket)];
        if (!was_let_in(p, e))
            continue;
        bool knows = p->d->kind == ATTEMPT && ticket_number(&e->ticket) == p->d->ticket;
        g->claimed = knows && e->ttl_ms != 0;
        g->broken = g->cut = 0;
    }
}

static void call_those_let_in(struct step *p)
{
    for (size_t i = 0; i < p->w->entry_count; i++) {
        const struct hf__entry *e = &p->w->entries[i];
        uint8_t t = ticket_number(&e->ticket);
        bool asked = p->d->kind == ATTEMPT && t == p->d->ticket;
        if (!was_let_in(p, e) || asked)
            continue;
        SAW(p->k, HANDED_OVER);
        const struct client *c = &p->w->client[client_of(t)];
        bool listens = c->alive && ticket_of(p->w, client_of(t)) == t;
        if (listens && p->w->message_count <= (size_t)p->s->messages)
            p->w->message[p->w->message_count++] =
                (struct message){.kind = WAKE, .ticket = t, .generation = (uint8_t)e->generation};
    }
}

static void note_sights(struct step *p)
{
    bool writer = false;

    for (size_t i = 0; i < p->w->entry_count; i++) {
        const struct hf__entry *e = &p->w->entries[i];
        if (e->place == HF__LINGERING && p->w->ghost[ticket_number(&e->ticket)].claimed)
            SAW(p->k, LINGERED);
        if (e->place == HF__WAITING && e->mode == HF_SHARED && writer)
            SAW(p->k, READER_BEHIND_WRITER);
        writer |= e->place == HF__WAITING && e->mode == HF_EXCLUSIVE;
        if (e->place == HF__INSIDE && e->until_ms == HF__NEVER)
            SAW(p->k, NEVER_CLAIMED);
        bool reader = e->place == HF__INSIDE && e->mode == HF_SHARED;
        if (reader && p->d->kind == BREAKING && ticket_number(&e->ticket) != p->d->ticket &&
            p->seen[p->d->ticket].place == HF__INSIDE)
            SAW(p->k, BROKEN_READER);
    }
    if (p->a.verdict == HF__WITHDRAWN)
        SAW(p->k, LATE_ATTEMPT_REFUSED);
    if (p->a.verdict == HF__BUSY)
        SAW(p->k, BUSY_TOLD);
}

struct finding store_apply(struct walk *k, struct world *w, const struct deed *d,
                           struct hf__answer *ret_answer)
{
    struct step p = {.k = k, .s = k->s, .w = w, .d = d};
    struct finding f;

    look_before(&p);
    run(&p);
    remember(&p);
    remember_let_in(&p);
    f = check_answer(&p);
    for (size_t i = 0; i < w->entry_count && f.clause == NULL; i++)
        f = check_entry(&p, i);
    if (f.clause == NULL)
        f = check_generations(&p);
    if (f.clause == NULL)
        f = check_inside(&p);
    note_sights(&p);
    call_those_let_in(&p);

    struct hf__record record = {.entries = w->entries, .count = w->entry_count};
    hf__record_settle(&record);
    w->entry_count = record.count;
    *ret_answer = p.a;
    return f;
}
