/* What must be true of every single operation: of the answer, of every entry, of the whole
 * record. */
#include "walk_step.h"

/* Entries ------------------------------------------------------------------ */
static struct finding check_fields(const struct step *p, size_t i)
{
    const struct hf__entry *e = &p->w->entries[i], *old = &p->before[i];

    if (i >= p->before_count)
        return e->effects & HF__EFFECT_NEW ? FINE : FOUND("marks", "a new entry is not marked");
    if (!hf__ticket_equal(&e->ticket, &old->ticket))
        return FOUND("C5", "the order of the entries changed");
    bool same = e->place == old->place && e->until_ms == old->until_ms &&
                e->generation == old->generation && e->claimed == old->claimed &&
                e->lease_ms == old->lease_ms && e->told == old->told && e->opened == old->opened;
    if (!same && !(e->effects & HF__EFFECT_CHANGED))
        return FOUND("marks", "an entry that changed is not marked");
    return FINE;
}

/* Others are touched by nothing but time and the hand-over. */
static struct finding check_bystander(const struct step *p, const struct hf__entry *e)
{
    uint8_t t = ticket_number(&e->ticket);
    const struct seen *before = &p->seen[t];

    if (before->place == HF__PLACE_INSIDE) {
        if (e->place != HF__PLACE_INSIDE || e->generation != before->generation)
            return FOUND("C2", "a live grant was ended by somebody else's request");
        if (e->until_ms != before->until_ms)
            return FOUND("C3", "a live lease was changed by somebody else's request");
    }
    if (before->place == HF__PLACE_WAITING && e->place != HF__PLACE_WAITING &&
        e->place != HF__PLACE_INSIDE)
        return FOUND("C5", "a live waiter was dropped");
    if (before->place == HF__PLACE_WAITING && e->place == HF__PLACE_WAITING &&
        e->until_ms != before->until_ms)
        return FOUND("C5", "a waiter's sign of life was changed by somebody else");
    if (before->place == HF__PLACE_GONE && e->place == HF__PLACE_WAITING)
        return FOUND("C5", "a dead waiter stays in the queue");
    if (before->place == HF__PLACE_RETIRED && e->place == HF__PLACE_LINGERING)
        return FOUND("C8", "the lock stays closed without cause");
    return FINE;
}

/* The door is closed for the sake of holders that vanished: they count as if they were inside. */
static struct finding check_closed(const struct step *p, uint8_t t)
{
    uint32_t limit = p->s->client[client_of(t)].limit, count = 1;

    for (uint8_t u = 0; u < MAX_TICKETS; u++) {
        const struct hf__entry *e = entry_of(p->w, u);
        bool inside = e != NULL && e->place == HF__PLACE_INSIDE;
        uint32_t other = p->s->client[client_of(u)].limit;
        if (u == t || (!inside && p->w->ghost[u].closed == 0))
            continue;
        if (!inside && conflict(p->s, t, u))
            return p->w->ghost[u].kept
                       ? FOUND("C14", "let in before the time that a release asked for")
                       : FOUND("C8", "let in before the lock-delay was over");
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
        if (other->place != HF__PLACE_WAITING)
            continue;
        if (other->mode == HF_EXCLUSIVE && e->mode == HF_SHARED)
            return FOUND("C9", "a reader passed a waiting writer");
        return FOUND("C5", "let in before somebody who came earlier");
    }
    if (!(e->effects & HF__EFFECT_LET_IN))
        return FOUND("C12", "let in, but nobody will be told");
    return check_closed(p, t);
}

/* What a cached grant may have used is given when it vanishes, and what it names when it is released. */
static uint64_t given_by_cached(const struct step *p)
{
    uint64_t last = p->before_generation;

    for (size_t i = 0; i < p->before_count; i++) {
        const struct hf__entry *e = &p->before[i];
        uint8_t t = ticket_number(&e->ticket);
        bool own = t == p->d->ticket, vanished = p->seen[t].place != HF__PLACE_INSIDE;
        uint64_t all = e->generation + HF__TOKENS_RESERVED, used = 0;
        if (!e->cached || e->place != HF__PLACE_INSIDE)
            continue;
        if (vanished || (own && p->d->kind == BREAKING))
            used = all;
        else if (own && p->d->kind == RELEASE && p->d->generation <= all)
            used = p->d->generation;
        if (vanished)
            SAW(p->k, TOKENS_LOST);
        last = used > last ? used : last;
    }
    return last;
}

/* Generations rise with every grant, in the order of the queue. */
static struct finding check_generations(const struct step *p)
{
    uint64_t last = given_by_cached(p);

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
        if (head == NULL && e->place == HF__PLACE_WAITING)
            head = e;
        if (e->place != HF__PLACE_INSIDE && e->place != HF__PLACE_LINGERING)
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

    if (e->place == HF__PLACE_INSIDE && e->claimed && !g->claimed)
        return FOUND("C8", "a grant was claimed by a request that did not know of it");
    if (e->place == HF__PLACE_INSIDE && !e->claimed && g->claimed)
        return FOUND("C8", "a claim was forgotten");
    if (e->place == HF__PLACE_INSIDE && e->until_ms == HF__NEVER && !g->claimed)
        return FOUND("C5", "a grant that nobody knows of never expires");
    if (e->place == HF__PLACE_LINGERING && g->closed == 0 && !p->w->stepped)
        return FOUND(g->kept ? "C14" : "C8", "the lock stays closed without cause");
    if (e->place == HF__PLACE_LINGERING && !g->claimed && !g->broken && !g->kept)
        return FOUND("C8", "a lock-delay after a grant that nobody claimed");
    return FINE;
}

/* The answers -------------------------------------------------------------- */
static struct finding check_attempt(const struct step *p, enum hf__place after, uint64_t generation)
{
    bool queue = bid_of(p->s, p->d->ticket).queue;

    if (p->a.verdict == HF__VERDICT_GRANTED &&
        (after != HF__PLACE_INSIDE || p->a.generation != generation))
        return FOUND("C2", "told granted without a grant");
    if (after == HF__PLACE_INSIDE && p->a.verdict != HF__VERDICT_GRANTED)
        return FOUND("C6", "inside, but told otherwise");
    if (after == HF__PLACE_WAITING && (p->a.verdict != HF__VERDICT_QUEUED || !queue))
        return FOUND("C5", "waits, but was told otherwise");
    if (p->a.verdict == HF__VERDICT_QUEUED &&
        (after != HF__PLACE_WAITING || p->a.generation != p->w->generation))
        return FOUND("C5", "told queued without being so");
    if (p->a.verdict == HF__VERDICT_BUSY && after != HF__PLACE_GONE)
        return FOUND("C5", "a no-wait bid stays");
    return FINE;
}

static struct finding check_renew(const struct step *p, enum hf__place after, uint64_t generation)
{
    const struct seen *before = &p->seen[p->d->ticket];
    bool known = p->d->generation == 0 || p->d->generation == generation;

    if (p->a.verdict == HF__VERDICT_GRANTED && before->place != HF__PLACE_INSIDE &&
        before->place != HF__PLACE_WAITING)
        return FOUND("C2", "a ticket that was over renewed its grant");
    if (p->a.verdict == HF__VERDICT_GRANTED &&
        (after != HF__PLACE_INSIDE || p->a.generation != generation || !known))
        return FOUND("C2", "told granted without a grant");
    if (after == HF__PLACE_INSIDE && known && p->a.verdict != HF__VERDICT_GRANTED)
        return FOUND("C6", "inside, but told otherwise");
    if ((after == HF__PLACE_WAITING) != (p->a.verdict == HF__VERDICT_QUEUED))
        return FOUND("C5", "told queued without being so, or the other way round");
    return FINE;
}

/* Release, withdraw and break. */
static struct finding check_end(const struct step *p, enum hf__place after)
{
    enum hf__place before = p->seen[p->d->ticket].place;
    bool was_inside = before == HF__PLACE_INSIDE, was_waiting = before == HF__PLACE_WAITING;
    bool done = was_inside || (was_waiting && p->d->kind != RELEASE) ||
                (before == HF__PLACE_LINGERING && p->d->kind != RELEASE);

    if (before == HF__PLACE_GONE && p->a.verdict == HF__VERDICT_DONE && p->d->kind != RELEASE)
        return FOUND("C5", "a dead waiter was still in the queue");
    if (after == HF__PLACE_INSIDE || after == HF__PLACE_WAITING)
        return FOUND("C5", "a ticket that was released, withdrawn or broken is still there");
    if (p->a.verdict != (done ? HF__VERDICT_DONE : HF__VERDICT_STALE))
        return FOUND("C2", "the wrong answer to a release, withdraw or break");
    return FINE;
}

static bool somebody_waits(const struct step *p)
{
    for (size_t i = 0; i < p->w->entry_count; i++) {
        if (p->w->entries[i].place == HF__PLACE_WAITING)
            return true;
    }
    return false;
}

/* C16: who comes to wait calls the holders that were not called yet, and nobody else does; each answer
 * to a holder says whether somebody waits. */
static struct finding check_wanted(const struct step *p)
{
    uint8_t own = p->d->ticket;
    bool came = p->d->kind == ATTEMPT && p->a.verdict == HF__VERDICT_QUEUED &&
                (p->seen[own].place == HF__PLACE_GONE);

    for (size_t i = 0; i < p->w->entry_count; i++) {
        const struct hf__entry *e = &p->w->entries[i];
        uint8_t t = ticket_number(&e->ticket);
        bool asks = e->place == HF__PLACE_INSIDE && p->s->client[client_of(t)].tell;
        bool called = e->effects & HF__EFFECT_WANTED;
        bool refused = p->d->kind == ATTEMPT && p->a.verdict == HF__VERDICT_BUSY &&
                       e->place == HF__PLACE_INSIDE && e->cached;
        if (refused && !called && !p->w->ghost[t].called)
            return FOUND("C20", "somebody was refused, and a cached lock was not called");
        if (refused && !p->a.wanted)
            return FOUND("C20", "told that it is no use to ask for a cached lock again");
        if (called && !((came && asks) || refused))
            return FOUND("C16", "a holder was called although nobody came to wait");
        if (called && p->before_called[t] && p->seen[t].place == HF__PLACE_INSIDE)
            return FOUND("C16", "a holder was called twice for the same queue");
        if (came && asks && !called && !p->w->ghost[t].called)
            return FOUND("C16", "somebody came to wait, and the holder was not called");
    }
    if (p->a.verdict == HF__VERDICT_GRANTED && p->s->client[client_of(own)].tell &&
        p->a.wanted != somebody_waits(p))
        return FOUND("C16", "a holder was not told whether somebody waits");
    return FINE;
}

/* C15: only a live exclusive grant writes, by its own token, and no write undoes a newer one; a holder
 * that vanishes after it has opened the value leaves it in doubt until it is written. */
static struct finding check_value(const struct step *p)
{
    const struct world *w = p->w;
    bool writes = p->d->kind == WRITE, reads = p->d->kind == READING;
    bool older = w->value_generation < p->before_value_generation ||
                 (w->value_generation == p->before_value_generation &&
                  w->value_order < p->before_value_order);
    bool changed = w->value_generation != p->before_value_generation ||
                   w->value_order != p->before_value_order;
    const struct seen *before = writes || reads ? &p->seen[p->d->ticket] : NULL;
    bool inside = before != NULL && before->place == HF__PLACE_INSIDE &&
                  before->generation == p->d->generation;
    bool holds = inside && p->s->client[client_of(p->d->ticket)].mode == HF_EXCLUSIVE;

    if (older)
        return FOUND("C15", "an old write replaced a newer one");
    if (changed && !(writes && holds))
        return FOUND("C15", "the value was written by somebody who does not hold the lock");
    if (writes && (p->a.verdict == HF__VERDICT_GONE) == holds)
        return FOUND("C15", "the wrong answer to a write");
    if (reads && p->a.verdict != (inside ? HF__VERDICT_DONE : HF__VERDICT_GONE))
        return FOUND("C15", "the wrong answer to a read");
    if (w->doubt != w->must_doubt)
        return FOUND("C15", w->doubt ? "the value is in doubt without cause"
                                     : "a holder vanished, and the value is not in doubt");
    return FINE;
}

static struct finding check_answer(const struct step *p)
{
    const struct hf__entry *e = entry_of(p->w, p->d->ticket);
    enum hf__place after = e == NULL ? HF__PLACE_GONE : e->place;
    uint64_t generation = e == NULL ? 0 : e->generation;

    if (p->d->kind == SWEEPING || p->d->kind == READING || p->d->kind == WRITE)
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

struct finding step_check(const struct step *p)
{
    struct finding f = check_answer(p);

    for (size_t i = 0; i < p->w->entry_count && f.clause == NULL; i++)
        f = check_entry(p, i);
    if (f.clause == NULL)
        f = check_generations(p);
    if (f.clause == NULL)
        f = check_value(p);
    if (f.clause == NULL && p->d->ticket != NO_TICKET)
        f = check_wanted(p);
    return f.clause != NULL ? f : check_inside(p);
}
