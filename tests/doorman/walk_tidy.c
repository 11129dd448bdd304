/* One form for all worlds that can only do the same.
 *
 * Set to zero is what no rule will look at again, clamped what is only compared with something that
 * has passed. Everything here must leave a world's future as it is: the less is kept, the fewer
 * worlds there are, and the more must be argued. */
#include "walk.h"

#include <string.h>

/* Generations -------------------------------------------------------------- */
/* A "queued" generation is compared with none but the wake-ups of its ticket that are under way. */
static void tidy_queued(const struct world *w, uint8_t ticket, uint64_t *generation)
{
    for (size_t i = 0; i < w->message_count; i++) {
        const struct message *m = &w->message[i];
        if (m->kind == WAKE && m->ticket == ticket && m->generation <= *generation)
            return;
    }
    *generation = 0;
}

/* The gate's levels are compared with generations that somebody has or will have. */
static void tidy_gate(struct world *w, uint64_t *level)
{
    for (size_t i = 0; i < w->entry_count; i++) {
        if (w->entries[i].generation != 0 && w->entries[i].generation <= *level)
            return;
    }
    for (int c = 0; c < MAX_CLIENTS; c++) {
        if (w->client[c].bidder.generation != 0 && w->client[c].bidder.generation <= *level)
            return;
    }
    for (size_t i = 0; i < w->message_count; i++) {
        if (w->message[i].generation != 0 && w->message[i].generation <= *level)
            return;
    }
    *level = 0;
}

/* The order of the last write is compared with no writes but those of the same grant. */
static void tidy_value(struct world *w)
{
    for (size_t i = 0; i < w->entry_count; i++) {
        if (w->entries[i].place == HF__PLACE_INSIDE &&
            w->entries[i].generation == w->value_generation)
            return;
    }
    w->value_generation = w->value_order = 0;
}

static void tidy_generations(const struct scenario *s, struct world *w)
{
    for (int c = 0; c < s->clients; c++)
        tidy_queued(w, ticket_of(w, c), &w->client[c].bidder.queued_generation);
    for (size_t i = 0; i < w->message_count; i++) {
        struct message *m = &w->message[i];
        uint64_t generation = m->generation;
        if ((m->kind == ATTEMPT_ANSWER || m->kind == RENEW_ANSWER) &&
            m->verdict == HF__VERDICT_QUEUED)
            tidy_queued(w, m->ticket, &generation);
        m->generation = (uint8_t)generation;
        if (!s->client[client_of(m->ticket)].cached)
            m->wanted = 0; /* what it means to others they remember in their bidders only */
    }
    tidy_value(w);
    tidy_gate(w, &w->gate_exclusive);
    tidy_gate(w, &w->gate_highest);
}

/* The store's entries ------------------------------------------------------ */
static void tidy_entry(const struct scenario *s, struct hf__entry *e)
{
    int64_t at_least_ms = s->client[client_of(ticket_number(&e->ticket))].at_least_ms;
    int64_t passed_ms = 0;

    if (e->place != HF__PLACE_INSIDE) {
        e->told = e->opened = false;
        e->since_ms = NOW_MS;
    }
    if (e->since_ms < NOW_MS - at_least_ms)
        e->since_ms = NOW_MS - at_least_ms;

    if (e->place == HF__PLACE_RETIRED || e->place == HF__PLACE_WAITING)
        e->generation = 0, e->claimed = false;
    if (e->place == HF__PLACE_INSIDE)
        passed_ms = e->lock_delay_ms + e->retire_ms;
    if (e->place == HF__PLACE_LINGERING)
        passed_ms = e->retire_ms;
    if (e->until_ms < NOW_MS - passed_ms)
        e->until_ms = NOW_MS - passed_ms;
}

/* Only among waiters does the order count. */
static void sort_entries(struct world *w)
{
    for (size_t i = 1; i < w->entry_count; i++) {
        struct hf__entry e = w->entries[i];
        size_t k = i;
        if (e.place == HF__PLACE_WAITING)
            continue;
        for (; k > 0; k--) {
            const struct hf__entry *before = &w->entries[k - 1];
            if (before->place != HF__PLACE_WAITING && before->ticket.bits[0] < e.ticket.bits[0])
                break;
            w->entries[k] = *before;
        }
        w->entries[k] = e;
    }
}

/* Clients ------------------------------------------------------------------ */
static void tidy_bidder(const struct scenario *s, struct client *c)
{
    struct hf__bidder *b = &c->bidder, old = *b;
    int64_t life_ns = (s->life + 1) * s->tick_ms * 1000000;

    if (old.phase != HF__PHASE_HOLDING)
        c->idle = c->local = 0;
    if (old.phase == HF__PHASE_LOST)
        c->called = 0;
    if (c->pending != RELEASE_PENDING)
        c->used = 0;
    if (old.phase != HF__PHASE_HOLDING)
        c->order = c->write_out = c->write_is_open = 0;
    hf__bidder_init(b);
    b->phase = old.phase == HF__PHASE_LOST ? HF__PHASE_OVER : old.phase;
    if (old.phase == HF__PHASE_LOST ||
        (old.phase == HF__PHASE_OVER && c->pending == NOTHING_PENDING))
        return;
    b->unanswered = old.unanswered;
    if (old.phase == HF__PHASE_HOLDING) {
        b->generation = old.generation;
        b->claimed = old.claimed;
        b->lease_ms = old.lease_ms;
        b->sent_ns = old.lease_ms == HF__NEVER ? NOW_NS : old.sent_ns;
        b->deadline_ns = old.deadline_ns;
        b->known_ns = old.known_ns < NOW_NS - life_ns ? NOW_NS - life_ns : old.known_ns;
        if (!c->attempt_out)
            b->known_ns = NOW_NS; /* only compared with the answer to an attempt */
    } else if (old.phase != HF__PHASE_OVER && old.queued_lease_ms != 0) {
        int64_t far_ns = old.queued_lease_ms * 1000000;
        far_ns = far_ns < life_ns ? life_ns : far_ns;
        b->queued_generation = old.queued_generation;
        b->queued_lease_ms = old.queued_lease_ms;
        b->queued_sent_ns =
            old.queued_sent_ns < NOW_NS - far_ns ? NOW_NS - far_ns : old.queued_sent_ns;
    }
}

/* A client that has nothing left to do is as good as dead. */
static void tidy_client(const struct scenario *s, struct client *c, int bids)
{
    bool over = c->bidder.phase == HF__PHASE_OVER || c->bidder.phase == HF__PHASE_LOST;

    if (!c->alive || (over && c->pending == NOTHING_PENDING && c->bid + 1 >= bids)) {
        uint8_t bid = c->bid;
        memset(c, 0, sizeof *c);
        c->bid = bid;
        c->bidder.phase = HF__PHASE_OVER;
        return;
    }
    tidy_bidder(s, c);
}

/* Tickets that are over ---------------------------------------------------- */

/* Nobody will send an attempt with this ticket, none is under way, and it is neither inside nor
 * waits. Whether it is remembered then makes no difference, nor does what arrives late for it (that
 * it makes the store sweep is a move of its own). */
static bool is_spent(struct world *w, uint8_t t)
{
    const struct client *c = &w->client[client_of(t)];
    const struct hf__entry *e = entry_of(w, t);

    if (e != NULL && e->place != HF__PLACE_RETIRED)
        return false;
    for (size_t i = 0; i < w->message_count; i++) {
        if (w->message[i].ticket == t && w->message[i].kind == ATTEMPT)
            return false;
    }
    return !c->alive || ticket_of(w, client_of(t)) > t || c->bidder.phase == HF__PHASE_OVER ||
           c->bidder.phase == HF__PHASE_LOST;
}

static void bury(struct world *w, uint8_t t)
{
    struct hf__entry *e = entry_of(w, t);
    struct hf__record record = {.entries = w->entries, .count = w->entry_count};
    size_t kept = 0;

    if (e != NULL)
        e->place = HF__PLACE_GONE;
    hf__record_settle(&record);
    w->entry_count = record.count;
    for (size_t i = 0; i < w->message_count; i++) {
        if (w->message[i].ticket != t || !w->message[i].late)
            w->message[kept++] = w->message[i];
    }
    w->message_count = kept;
    w->ghost[t] = (struct ghost){.closed = w->ghost[t].closed};
}

static void tidy_ghost(const struct scenario *s, struct world *w, uint8_t t)
{
    const struct hf__entry *e = entry_of(w, t);
    struct ghost *g = &w->ghost[t];
    int64_t at_least = s->client[client_of(t)].at_least_ms / s->tick_ms;

    if (e == NULL || e->place != HF__PLACE_INSIDE)
        g->called = g->heard_nobody = g->opened = g->age = 0;
    if (g->age > at_least)
        g->age = (uint8_t)at_least;
    if (e == NULL || e->place != HF__PLACE_LINGERING)
        g->kept = 0;

    if (is_spent(w, t)) {
        bury(w, t);
        return;
    }
    if (e == NULL || (e->place != HF__PLACE_INSIDE && e->place != HF__PLACE_LINGERING))
        g->claimed = 0;
    if (g->withdrawn)
        g->barred = 0;
}

void world_tidy(const struct scenario *s, struct world *w)
{
    for (size_t i = 0; i < w->entry_count; i++)
        tidy_entry(s, &w->entries[i]);
    for (int c = 0; c < s->clients; c++)
        tidy_client(s, &w->client[c], s->client[c].bids);
    for (uint8_t t = 0; t < s->clients * MAX_BIDS; t++)
        tidy_ghost(s, w, t);
    sort_entries(w);
    tidy_generations(s, w);
}
