/* What must be true in every world, whatever led there. */
#include "lib/operate.h"
#include "walk.h"

#include <stdlib.h>
#include <string.h>

/* Who believes that it holds is, by the store's account, inside at least as long (C3, C7, C12). */
static struct finding check_belief(struct world *w, int i)
{
    const struct hf__bidder *b = &w->client[i].bidder;
    uint8_t t = ticket_of(w, i);
    const struct hf__entry *e = entry_of(w, t);
    const struct ghost *g = &w->ghost[t];

    if (g->cut)
        return FINE; /* broken at once: only the generation protects */
    if (e == NULL ||
        (e->place != HF__PLACE_INSIDE && !(e->place == HF__PLACE_LINGERING && g->broken)))
        return FOUND("C12", "a client believes in a grant that the store does not know");
    if (e->generation != b->generation)
        return FOUND("C12", "a client believes in an old grant");
    if (e->until_ms == HF__NEVER)
        return FINE;
    if (b->deadline_ns == INT64_MAX || b->deadline_ns - NOW_NS > (e->until_ms - NOW_MS) * 1000000)
        return FOUND("C3", "a client believes longer than the store's lease lasts");
    return FINE;
}

/* No two clients believe in grants that exclude each other. */
static struct finding check_exclusion(struct walk *k, struct world *w)
{
    uint32_t holders = 0, limit = 0;
    bool exclusive = false;

    for (int i = 0; i < k->s->clients; i++) {
        if (w->client[i].bidder.phase != HF__PHASE_HOLDING || w->ghost[ticket_of(w, i)].cut)
            continue;
        const struct bidding *b = &k->s->client[i];
        holders++;
        exclusive |= b->mode == HF_EXCLUSIVE;
        if (b->limit != 0 && (limit == 0 || b->limit < limit))
            limit = b->limit;
    }
    if (exclusive && holders > 1)
        return FOUND("C1", "two clients believe they hold what only one can");
    if (limit != 0 && holders > limit)
        return FOUND("C1", "more clients believe they hold than the limit allows");
    return FINE;
}

/* The gate of C10. Whoever learns of its grant shows it at once: a live one must pass. */
static bool gate_pass(struct world *w, hf_mode mode, uint64_t generation)
{
    if (mode == HF_EXCLUSIVE ? generation < w->gate_highest : generation <= w->gate_exclusive)
        return false;
    if (mode == HF_EXCLUSIVE)
        w->gate_exclusive = generation;
    if (generation > w->gate_highest)
        w->gate_highest = generation;
    return true;
}

static struct finding check_gate(struct walk *k, struct world *w, int i)
{
    const struct bidding *b = &k->s->client[i];
    uint8_t t = ticket_of(w, i);

    if (b->limit != 0)
        return FINE;
    for (int j = 0; j < i; j++) {
        const struct client *other = &w->client[j];
        if (b->cached && other->alive && other->bidder.phase == HF__PHASE_HOLDING &&
            token_of(other) == token_of(&w->client[i]))
            return FOUND("C4", "two holders have the same token");
    }
    bool passed = gate_pass(w, b->mode, token_of(&w->client[i]));
    if (!passed && !w->ghost[t].cut)
        return FOUND("C10", "the gate turned a live holder away");
    for (size_t j = 0; j < w->entry_count && passed; j++) {
        const struct hf__entry *e = &w->entries[j];
        if (e->place == HF__PLACE_INSIDE && e->until_ms > NOW_MS && e->limit == 0 &&
            ticket_number(&e->ticket) != t && conflict(k->s, t, ticket_number(&e->ticket)) &&
            !w->ghost[t].cut)
            return FOUND("C10", "two grants that exclude each other are live");
    }
    return FINE;
}

/* Promises: somebody who goes on asking gets in, if all others die now ----- */
#define PROMISES (1u << 20)

struct promise_cache {
    uint64_t kept[PROMISES]; /* hashes of record and ticket */
};

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * UINT64_C(0x9E3779B97F4A7C15);
    return h ^ h >> 29;
}

static uint64_t promise_hash(const struct world *w, uint8_t ticket)
{
    uint64_t h = mix(ticket, w->entry_count);

    for (size_t i = 0; i < w->entry_count; i++) {
        const struct hf__entry *e = &w->entries[i];
        h = mix(h, (uint64_t)(e->until_ms == HF__NEVER ? INT64_MAX : e->until_ms - NOW_MS));
        h = mix(h, (uint64_t)e->lease_ms);
        h = mix(h,
                (uint64_t)e->place | (uint64_t)e->claimed << 8 | (uint64_t)e->ticket.bits[0] << 16);
    }
    return h | 1;
}

/* How long the others can keep us out: those inside until their lease and delay are over, those
 * before us at most two own leases each (that no delay follows is C8's to say). -1: for ever. */
static int patience(const struct scenario *s, const struct world *w, uint8_t ticket)
{
    int64_t inside_ms = 0, before_ms = 0;

    for (size_t i = 0; i < w->entry_count; i++) {
        const struct hf__entry *e = &w->entries[i];
        bool mine = ticket_number(&e->ticket) == ticket && e->place != HF__PLACE_LINGERING;
        if (mine || e->place == HF__PLACE_RETIRED)
            continue;
        if (e->place == HF__PLACE_WAITING) {
            before_ms += 2 * hf__own_lease_ms(e->ttl_ms) + e->lock_delay_ms;
            continue;
        }
        if (e->until_ms == HF__NEVER)
            return -1;
        int64_t left_ms = e->until_ms - NOW_MS;
        left_ms = left_ms > e->lease_ms ? e->lease_ms : left_ms;
        left_ms += e->place == HF__PLACE_INSIDE ? e->lock_delay_ms : 0;
        inside_ms = left_ms > inside_ms ? left_ms : inside_ms;
    }
    return (int)((inside_ms + before_ms) / s->tick_ms) + 1;
}

static bool gets_in(const struct scenario *s, const struct world *w, uint8_t ticket)
{
    struct hf__entry entries[MAX_TICKETS + 2];
    struct hf__record record = {.generation = w->generation,
                                .entries = entries,
                                .count = w->entry_count,
                                .capacity = MAX_TICKETS + 2};
    struct hf__bid bid = bid_of(s, ticket);
    int ticks = patience(s, w, ticket);

    memcpy(entries, w->entries, sizeof w->entries);
    for (int i = 0; i <= ticks; i++) {
        struct hf__moment at = {.now_ms = NOW_MS + i * s->tick_ms};
        struct hf__answer a = ask_doorman(&record, op_attempt(&bid), at);
        if (a.verdict == HF__VERDICT_WITHDRAWN) {
            bid.ticket = ticket_bits(MAX_TICKETS);
            a = ask_doorman(&record, op_attempt(&bid), at);
        }
        if (a.verdict == HF__VERDICT_GRANTED)
            return true;
        hf__record_settle(&record);
    }
    return ticks < 0;
}

static struct finding check_promise(struct walk *k, const struct world *w, int i)
{
    uint8_t t = ticket_of(w, i);
    uint64_t h = promise_hash(w, t);

    if (k->promises == NULL && (k->promises = calloc(1, sizeof *k->promises)) == NULL)
        abort();
    uint64_t *slot = &k->promises->kept[h % PROMISES];
    if (*slot == h)
        return FINE;
    if (!gets_in(k->s, w, t))
        return FOUND("C5", "somebody who goes on asking never gets in, though all others died");
    *slot = h;
    return FINE;
}

void promises_free(struct walk *k)
{
    free(k->promises);
    k->promises = NULL;
}

static struct finding check_client(struct walk *k, struct world *w, int i)
{
    struct hf__bidder *b = &w->client[i].bidder;
    bool held = b->phase == HF__PHASE_HOLDING;

    if (!w->client[i].alive)
        return FINE;
    if (hf__bidder_holds(b, NOW_NS)) {
        struct finding f = check_belief(w, i);
        return f.clause != NULL ? f : check_gate(k, w, i);
    }
    if (held)
        k->sights[SAW_LOST_EXPIRED]++;
    if (b->phase == HF__PHASE_ASKING || b->phase == HF__PHASE_WAITING)
        return check_promise(k, w, i);
    return FINE;
}

struct finding world_check(struct walk *k, struct world *w)
{
    struct finding f = FINE;

    for (int i = 0; i < k->s->clients && f.clause == NULL; i++)
        f = check_client(k, w, i);
    return f.clause != NULL ? f : check_exclusion(k, w);
}
