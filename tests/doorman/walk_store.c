/* One operation on the record, done by the real doorman, and what must be true of every such step.
 *
 * The observer works out for himself, from the record before, who was live at that moment (`seen`),
 * and remembers for each ticket what the contract has to say about it (`ghost`). Then he
 * compares. */
#include "lib/operate.h"
#include "walk_step.h"

#include <string.h>

static uint8_t ticks_left(const struct scenario *s, int64_t until_ms)
{
    return until_ms <= NOW_MS ? 0 : (uint8_t)((until_ms - NOW_MS) / s->tick_ms);
}

/* Before the operation ----------------------------------------------------- */

/* A lease ran out: from now on the ticket is over, and a claimed one keeps the door closed. */
static struct seen see_expired(struct step *p, const struct hf__entry *e, struct ghost *g)
{
    int64_t delay_ms = g->claimed ? e->lock_delay_ms : 0;

    if (!g->claimed)
        SAW(p->k, UNCLAIMED_EXPIRED);
    p->w->must_doubt |= g->opened;
    g->closed = ticks_left(p->s, e->until_ms + delay_ms);
    g->barred = ticks_left(p->s, e->until_ms + delay_ms + retire_ms(p->s));
    return (struct seen){.place = g->closed > 0 ? HF__PLACE_LINGERING : HF__PLACE_RETIRED};
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
    if (e.place == HF__PLACE_INSIDE)
        return see_expired(p, &e, g);
    if (e.place == HF__PLACE_WAITING)
        SAW(p->k, DEAD_WAITER_LEFT);
    return (struct seen){.place =
                             e.place == HF__PLACE_LINGERING ? HF__PLACE_RETIRED : HF__PLACE_GONE};
}

static void look_before(struct step *p)
{
    memset(p->seen, 0, sizeof p->seen);
    memcpy(p->before, p->w->entries, sizeof p->before);
    p->before_count = p->w->entry_count;
    p->before_generation = p->w->generation;
    p->before_value_generation = p->w->value_generation;
    p->before_value_order = p->w->value_order;
    for (int t = 0; t < MAX_TICKETS; t++)
        p->before_called[t] = p->w->ghost[t].called;
    for (size_t i = 0; i < p->before_count; i++)
        p->seen[ticket_number(&p->before[i].ticket)] = see_entry(p, p->before[i]);
}

static int64_t at_least_ms(const struct step *p)
{
    return p->s->client[client_of(p->d->ticket)].at_least_ms;
}

/* The operation ------------------------------------------------------------ */
static void run(struct step *p)
{
    struct hf__record record = {.generation = p->w->generation,
                                .entries = p->w->entries,
                                .count = p->w->entry_count,
                                .capacity = MAX_TICKETS + 1,
                                .value_generation = p->w->value_generation,
                                .value_order = p->w->value_order,
                                .doubt = p->w->doubt};
    struct hf__value value = {.order = p->d->order};
    struct hf__bid bid = bid_of(p->s, p->d->ticket);
    struct hf__moment at = {.now_ms = NOW_MS};
    int64_t retire = p->d->retire ? retire_ms(p->s) : 0;

    if (p->d->kind == ATTEMPT)
        p->a = ask_doorman(&record, op_attempt(&bid), at);
    else if (p->d->kind == RENEW)
        p->a = ask_doorman(&record, op_renew(&bid, p->d->generation), at);
    else if (p->d->kind == WITHDRAW)
        p->a = ask_doorman(&record, op_withdraw(&bid, retire), at);
    else if (p->d->kind == RELEASE)
        p->a = ask_doorman(&record, op_release_used(&bid, retire, at_least_ms(p), p->d->generation),
                           at);
    else if (p->d->kind == READING)
        p->a = ask_doorman(&record, op_read(&bid, p->d->generation, &value), at);
    else if (p->d->kind == WRITE)
        p->a = ask_doorman(&record, op_write(&bid, p->d->generation, &value), at);
    else if (p->d->kind == SWEEPING)
        p->a = ask_doorman(&record, op_sweep(), at);
    else
        p->a = ask_doorman(&record, op_break(&bid, p->d->now), at);
    p->w->generation = record.generation;
    p->w->entry_count = record.count;
    p->w->value_generation = record.value_generation;
    p->w->value_order = (uint8_t)record.value_order;
    p->w->doubt = record.doubt;
}

/* What the contract says of the ticket from now on ------------------------- */
static void remember_break(struct step *p, struct ghost *g)
{
    const struct seen *before = &p->seen[p->d->ticket];
    int64_t delay_ms = g->claimed ? p->s->client[client_of(p->d->ticket)].delay_ms : 0;
    bool at_once = p->d->now || before->until_ms == HF__NEVER;

    if (before->place == HF__PLACE_INSIDE) {
        int64_t from_ms = at_once ? NOW_MS : before->until_ms;
        g->closed = ticks_left(p->s, from_ms + delay_ms);
        g->barred = ticks_left(p->s, from_ms + delay_ms + retire_ms(p->s));
        g->broken = 1;
        g->cut |= at_once;
        p->w->must_doubt |= g->opened;
    } else if (before->place == HF__PLACE_WAITING ||
               (before->place == HF__PLACE_LINGERING && p->d->now)) {
        g->cut |= before->place == HF__PLACE_LINGERING;
        g->closed = 0;
        g->barred = ticks_left(p->s, NOW_MS + retire_ms(p->s));
    }
    if (p->d->now)
        SAW(p->k, BROKEN_NOW);
}

/* The holder leaves before the time it asked for is over. */
static void remember_release(struct step *p, struct ghost *g)
{
    int64_t wanted = at_least_ms(p) / p->s->tick_ms;

    if (wanted == 0 || p->seen[p->d->ticket].place != HF__PLACE_INSIDE)
        return;
    if (g->age >= wanted) {
        SAW(p->k, KEPT_LONG_ENOUGH);
        return;
    }
    g->closed = (uint8_t)(wanted - g->age);
    g->barred = (uint8_t)(g->closed + ticks_left(p->s, NOW_MS + retire_ms(p->s)));
    g->kept = 1;
    SAW(p->k, KEPT_CLOSED);
}

/* By the observer's account: whose it is, and which write is the newest. */
static void remember_value(struct step *p, struct ghost *g)
{
    const struct seen *before = &p->seen[p->d->ticket];
    bool holds = before->place == HF__PLACE_INSIDE && before->generation == p->d->generation &&
                 p->s->client[client_of(p->d->ticket)].mode == HF_EXCLUSIVE;

    if (p->d->kind == READING)
        g->opened |= holds;
    if (p->d->kind != WRITE)
        return;
    if (!holds)
        SAW(p->k, LATE_WRITE_REFUSED);
    if (p->a.verdict == HF__VERDICT_STALE)
        SAW(p->k, OLD_WRITE_DROPPED);
    if (p->a.verdict != HF__VERDICT_DONE)
        return;
    if (p->w->must_doubt)
        SAW(p->k, DOUBT_ENDED);
    if (p->before_value_generation == p->d->generation && p->before_value_order == p->d->order)
        SAW(p->k, VALUE_WRITTEN_TWICE);
    SAW(p->k, VALUE_WRITTEN);
    g->opened = 1;
    p->w->must_doubt = 0;
}

/* Who was called, and who heard since then that nobody waits. */
static void remember_calls(struct step *p)
{
    for (size_t i = 0; i < p->w->entry_count; i++) {
        const struct hf__entry *e = &p->w->entries[i];
        struct ghost *g = &p->w->ghost[ticket_number(&e->ticket)];
        if (!(e->effects & HF__EFFECT_WANTED))
            continue;
        SAW(p->k, HOLDER_CALLED);
        if (g->called == 0 && e->generation != 0 && g->heard_nobody)
            SAW(p->k, HOLDER_CALLED_AGAIN);
        g->called = 1;
    }
    if (p->a.verdict != HF__VERDICT_GRANTED)
        return;
    struct ghost *own = &p->w->ghost[p->d->ticket];
    if (p->a.wanted)
        SAW(p->k, GRANT_WANTED);
    if (!p->a.wanted && own->called) {
        own->called = 0;
        own->heard_nobody = 1;
    }
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
    if (p->d->kind == WITHDRAW && before->place == HF__PLACE_LINGERING) {
        g->closed = 0; /* nobody has worked under it: there is nothing to wait for */
        SAW(p->k, DELAY_WITHDRAWN);
    }
    if (p->d->kind == RENEW && before->place == HF__PLACE_INSIDE &&
        p->d->generation == before->generation)
        g->claimed = 1;
    if (p->d->kind == BREAKING)
        remember_break(p, g);
    if (p->d->kind == RELEASE)
        remember_release(p, g);
    remember_value(p, g);
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
        g->claimed = knows && e->ttl_ms != HF__NEVER;
        g->broken = g->cut = g->kept = g->age = g->called = g->heard_nobody = g->opened = 0;
    }
}

static void call_those_let_in(struct step *p)
{
    for (size_t i = 0; i < p->w->entry_count; i++) {
        const struct hf__entry *e = &p->w->entries[i];
        uint8_t t = ticket_number(&e->ticket);
        bool asked = p->d->kind == ATTEMPT && t == p->d->ticket;
        bool called = e->cached && (e->effects & HF__EFFECT_WANTED);
        if (!called && (!was_let_in(p, e) || asked))
            continue;
        if (!called)
            SAW(p->k, HANDED_OVER);
        const struct client *c = &p->w->client[client_of(t)];
        bool listens = c->alive && ticket_of(p->w, client_of(t)) == t;
        if (listens && p->w->message_count <= (size_t)p->s->messages)
            p->w->message[p->w->message_count++] = (struct message){
                .kind = WAKE, .ticket = t, .generation = called ? 0 : (uint8_t)e->generation};
    }
}

static void note_sights(struct step *p)
{
    bool writer = false;

    for (size_t i = 0; i < p->w->entry_count; i++) {
        const struct hf__entry *e = &p->w->entries[i];
        if (e->place == HF__PLACE_LINGERING && p->w->ghost[ticket_number(&e->ticket)].claimed)
            SAW(p->k, LINGERED);
        if (e->place == HF__PLACE_WAITING && e->mode == HF_SHARED && writer)
            SAW(p->k, READER_BEHIND_WRITER);
        writer |= e->place == HF__PLACE_WAITING && e->mode == HF_EXCLUSIVE;
        if (e->place == HF__PLACE_INSIDE && e->until_ms == HF__NEVER)
            SAW(p->k, NEVER_CLAIMED);
        bool reader = e->place == HF__PLACE_INSIDE && e->mode == HF_SHARED;
        if (reader && p->d->kind == BREAKING && ticket_number(&e->ticket) != p->d->ticket &&
            p->seen[p->d->ticket].place == HF__PLACE_INSIDE)
            SAW(p->k, BROKEN_READER);
    }
    if (p->w->doubt)
        SAW(p->k, VALUE_DOUBTED);
    if (p->a.verdict == HF__VERDICT_WITHDRAWN)
        SAW(p->k, LATE_ATTEMPT_REFUSED);
    if (p->a.verdict == HF__VERDICT_BUSY)
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
    f = step_check(&p);
    remember_calls(&p);
    note_sights(&p);
    call_those_let_in(&p);

    struct hf__record record = {.entries = w->entries, .count = w->entry_count};
    hf__record_settle(&record);
    w->entry_count = record.count;
    *ret_answer = p.a;
    return f;
}
