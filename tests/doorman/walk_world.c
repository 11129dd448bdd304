/* A world's beginning, the passing of time, and who is who in it. */
#include "walk.h"

#include <string.h>

uint8_t ticket_of(const struct world *w, int client)
{
    return (uint8_t)(client * MAX_BIDS + w->client[client].bid);
}

int client_of(uint8_t ticket)
{
    return ticket / MAX_BIDS;
}

struct hf__ticket ticket_bits(uint8_t ticket)
{
    return (struct hf__ticket){.bits = {[0] = (unsigned char)(ticket + 1)}};
}

uint8_t ticket_number(const struct hf__ticket *bits)
{
    return (uint8_t)(bits->bits[0] - 1);
}

int64_t retire_ms(const struct scenario *s)
{
    return (s->life + 1) * s->tick_ms;
}

struct hf__bid bid_of(const struct scenario *s, uint8_t ticket)
{
    const struct bidding *b = &s->client[client_of(ticket) % MAX_CLIENTS];

    return (struct hf__bid){.name = "n",
                            .name_len = 1,
                            .ticket = ticket_bits(ticket),
                            .mode = b->mode,
                            .limit = b->limit,
                            .ttl_ms = b->ttl_ms,
                            .lock_delay_ms = b->delay_ms,
                            .retire_ms = retire_ms(s),
                            .queue = !b->no_wait,
                            .tell = b->tell,
                            .cached = b->cached};
}

void world_begin(const struct scenario *s, struct world *w)
{
    memset(w, 0, sizeof *w);
    for (int c = 0; c < s->clients; c++) {
        w->client[c].alive = 1;
        hf__bidder_init(&w->client[c].bidder);
    }
    w->deaths = (uint8_t)s->deaths;
    w->breaks = (uint8_t)s->breaks;
    w->steps_back = (uint8_t)s->steps_back;
}

struct hf__entry *entry_of(struct world *w, uint8_t ticket)
{
    for (size_t i = 0; i < w->entry_count; i++) {
        if (ticket_number(&w->entries[i].ticket) == ticket && w->entries[i].place != HF__PLACE_GONE)
            return &w->entries[i];
    }
    return NULL;
}

uint64_t token_of(const struct client *c)
{
    return c->bidder.generation + c->local;
}

bool conflict(const struct scenario *s, uint8_t a, uint8_t b)
{
    return s->client[client_of(a)].mode == HF_EXCLUSIVE ||
           s->client[client_of(b)].mode == HF_EXCLUSIVE;
}

static void past_ns(int64_t *instant_ns, int64_t by_ns)
{
    if (*instant_ns != 0 && *instant_ns != INT64_MAX)
        *instant_ns -= by_ns;
}

static void tick_bidder(struct hf__bidder *b, int64_t by_ns)
{
    past_ns(&b->sent_ns, by_ns);
    past_ns(&b->known_ns, by_ns);
    past_ns(&b->deadline_ns, by_ns);
    past_ns(&b->queued_sent_ns, by_ns);
}

/* Whoever waited for the answer has timed out by now. */
static void forget_message(struct world *w, const struct message *m)
{
    struct client *c = &w->client[client_of(m->ticket)];

    if (m->late)
        return;
    if (m->kind == ATTEMPT || m->kind == ATTEMPT_ANSWER) {
        c->attempt_out = 0;
        hf__bidder_unanswered(&c->bidder);
    } else if (m->kind == RENEW || m->kind == RENEW_ANSWER) {
        c->renew_out = 0;
    } else if (m->kind == WRITE || m->kind == WRITE_ANSWER) {
        c->write_out = 0;
        c->write_is_open = 1;
    } else if (m->kind != WAKE) {
        c->end_out = 0;
    }
}

void world_tick(const struct scenario *s, struct world *w)
{
    size_t kept = 0;

    for (size_t i = 0; i < w->entry_count; i++) {
        if (w->entries[i].until_ms != HF__NEVER)
            w->entries[i].until_ms -= s->tick_ms;
        w->entries[i].since_ms -= s->tick_ms;
    }
    for (int c = 0; c < s->clients; c++)
        tick_bidder(&w->client[c].bidder, s->tick_ms * 1000000);
    for (size_t i = 0; i < w->message_count; i++) {
        struct message m = w->message[i];
        if (m.kind != WAKE && ++m.age > s->life)
            forget_message(w, &m);
        else
            w->message[kept++] = m;
    }
    w->message_count = kept;
    for (int t = 0; t < MAX_TICKETS; t++) {
        w->ghost[t].barred -= w->ghost[t].barred > 0;
        w->ghost[t].closed -= w->ghost[t].closed > 0;
        w->ghost[t].age++;
    }
}
