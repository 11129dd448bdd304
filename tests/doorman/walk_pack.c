/* A world as few bytes: the key under which the walk knows it, and from which it goes on. */
#include "walk.h"

#include <stdlib.h>
#include <string.h>

#include "base/lease.h"

#define NEVER_TICKS 127

struct writer {
    uint8_t *at;
    const struct scenario *s;
    uint64_t rank[64]; /* rank[r] is the generation of rank r; rank[0] = 0 */
    size_t ranks;
};

struct reader {
    const uint8_t *at;
    const struct scenario *s;
};

static void put(struct writer *p, int value)
{
    if (value < -128 || value > 255)
        abort();
    *p->at++ = (uint8_t)value;
}

static int get(struct reader *r)
{
    return *r->at++;
}

static int get_signed(struct reader *r)
{
    return (int8_t)*r->at++;
}

static int ticks_of(const struct scenario *s, int64_t ms)
{
    if (ms == HF__NEVER)
        return NEVER_TICKS;
    if (ms % s->tick_ms != 0)
        abort(); /* the scenario's tick does not fit its durations */
    return (int)(ms / s->tick_ms);
}

static int64_t ms_of(const struct scenario *s, int ticks)
{
    return ticks == NEVER_TICKS ? HF__NEVER : ticks * s->tick_ms;
}

static int ticks_ago(const struct scenario *s, int64_t ns)
{
    return ticks_of(s, (NOW_NS - ns) / 1000000);
}

static int64_t ns_ago(const struct scenario *s, int ticks)
{
    return NOW_NS - ticks * s->tick_ms * 1000000;
}

static const struct bidding *bidding_of(const struct scenario *s, int ticket)
{
    return &s->client[client_of((uint8_t)ticket)];
}

/* Generations -------------------------------------------------------------- */
static void rank_add(struct writer *p, uint64_t generation)
{
    size_t i = p->ranks;

    while (p->rank[i - 1] > generation)
        i--;
    if (p->rank[i - 1] == generation)
        return;
    memmove(&p->rank[i + 1], &p->rank[i], (p->ranks - i) * sizeof p->rank[0]);
    p->rank[i] = generation;
    p->ranks++;
}

static void put_rank(struct writer *p, uint64_t generation)
{
    int r = 0;

    while (p->rank[r] != generation)
        r++;
    put(p, r);
}

/* The numbers after one of a cached grant are numbers, too, and keep their places behind it. */
static void rank_reserved(struct writer *p, uint64_t generation)
{
    for (uint64_t i = 1; i <= HF__TOKENS_RESERVED; i++)
        rank_add(p, generation + i);
}

static bool caches(const struct scenario *s)
{
    for (int c = 0; c < s->clients; c++) {
        if (s->client[c].cached)
            return true;
    }
    return false;
}

/* The last generation given is above all others or equal: no matter which. But the numbers after one of a
 * cached grant are not given yet. */
static void rank_all(struct writer *p, struct world *w)
{
    p->ranks = 1;
    p->rank[0] = 0;
    rank_add(p, w->gate_exclusive);
    rank_add(p, w->gate_highest);
    for (size_t i = 0; i < w->entry_count; i++) {
        rank_add(p, w->entries[i].generation);
        if (w->entries[i].cached && w->entries[i].place == HF__PLACE_INSIDE)
            rank_reserved(p, w->entries[i].generation);
    }
    for (size_t i = 0; i < w->message_count; i++) {
        rank_add(p, w->message[i].generation);
        rank_add(p, w->message[i].named);
        if (bidding_of(p->s, w->message[i].ticket)->cached && w->message[i].generation != 0)
            rank_reserved(p, w->message[i].generation);
    }
    rank_add(p, w->value_generation);
    for (int c = 0; c < p->s->clients; c++) {
        rank_add(p, w->client[c].bidder.generation);
        rank_add(p, w->client[c].bidder.queued_generation);
        rank_add(p, w->client[c].used);
        if (p->s->client[c].cached && w->client[c].bidder.phase == HF__PHASE_HOLDING)
            rank_reserved(p, w->client[c].bidder.generation);
    }
    if (!caches(p->s))
        w->generation = p->rank[p->ranks - 1];
    rank_add(p, w->generation);
}

/* Only what a scenario can use is packed. */
static bool uses_flags(const struct bidding *b)
{
    return b->tell || b->writes > 0;
}

static bool has_value(const struct scenario *s)
{
    for (int c = 0; c < s->clients; c++) {
        if (s->client[c].writes > 0)
            return true;
    }
    return false;
}

/* The store's entries ------------------------------------------------------ */
static void put_entry(struct writer *p, const struct hf__entry *e)
{
    int64_t left_ms = e->until_ms == HF__NEVER ? HF__NEVER : e->until_ms - NOW_MS;

    const struct bidding *b = bidding_of(p->s, ticket_number(&e->ticket));

    put(p, ticket_number(&e->ticket) | e->place << 4 | e->claimed << 7);
    if (uses_flags(b))
        put(p, e->told | e->opened << 1);
    if (b->at_least_ms > 0)
        put(p, ticks_of(p->s, NOW_MS - e->since_ms));
    put(p, ticks_of(p->s, left_ms));
    put(p, ticks_of(p->s, e->lease_ms));
    put_rank(p, e->generation);
}

static void get_entry(struct reader *r, struct hf__entry *e)
{
    int head = get(r);
    struct hf__bid bid = bid_of(r->s, head & 15);
    const struct bidding *b = bidding_of(r->s, head & 15);
    int flags = uses_flags(b) ? get(r) : 0;
    int64_t since_ms = NOW_MS - (b->at_least_ms > 0 ? get(r) * r->s->tick_ms : 0);
    int64_t left_ms = ms_of(r->s, get_signed(r));

    *e = (struct hf__entry){.ticket = bid.ticket,
                            .place = (enum hf__place)(head >> 4 & 7),
                            .claimed = head >> 7,
                            .mode = bid.mode,
                            .limit = bid.limit,
                            .ttl_ms = bid.ttl_ms,
                            .lock_delay_ms = bid.lock_delay_ms,
                            .retire_ms = bid.retire_ms,
                            .tell = bid.tell,
                            .cached = bid.cached,
                            .told = flags & 1,
                            .opened = flags >> 1,
                            .since_ms = since_ms,
                            .until_ms = left_ms == HF__NEVER ? HF__NEVER : NOW_MS + left_ms};
    e->lease_ms = ms_of(r->s, get(r));
    e->generation = (uint64_t)get(r);
}

/* Clients ------------------------------------------------------------------ */
static void put_client(struct writer *p, const struct client *c, const struct bidding *has)
{
    const struct hf__bidder *b = &c->bidder;

    put(p, c->alive | c->bid << 1 | c->attempt_out << 2 | c->renew_out << 3 | c->end_out << 4 |
               c->pending << 5);
    if (!c->alive)
        return;
    put(p, (int)b->phase | b->claimed << 4 | b->unanswered << 5);
    if (has->writes > 0)
        put(p, c->order | c->write_out << 4 | c->write_is_open << 5);
    if (has->cached) {
        put(p, c->idle | c->called << 1 | c->local << 2);
        put_rank(p, c->used);
    }
    if (b->phase == HF__PHASE_HOLDING) {
        put_rank(p, b->generation);
        put(p, ticks_of(p->s, b->lease_ms));
        put(p, ticks_ago(p->s, b->sent_ns));
        put(p, ticks_ago(p->s, b->known_ns));
    } else if (b->phase == HF__PHASE_ASKING || b->phase == HF__PHASE_WAITING) {
        put_rank(p, b->queued_generation);
        put(p, ticks_of(p->s, b->queued_lease_ms));
        put(p, b->queued_lease_ms == 0 ? 0 : ticks_ago(p->s, b->queued_sent_ns));
    }
}

static void get_bidder(struct reader *r, struct client *c, const struct bidding *has)
{
    struct hf__bidder *b = &c->bidder;
    int head = get(r);
    int writes = has->writes > 0 ? get(r) : 0;

    if (has->cached) {
        int cache = get(r);
        c->idle = cache & 1;
        c->called = cache >> 1 & 1;
        c->local = (uint8_t)(cache >> 2);
        c->used = (uint8_t)get(r);
    }
    c->order = writes & 15;
    c->write_out = writes >> 4 & 1;
    c->write_is_open = writes >> 5 & 1;
    hf__bidder_init(b);
    b->phase = (enum hf__phase)(head & 15);
    b->claimed = head >> 4 & 1;
    b->unanswered = head >> 5 & 1;
    if (b->phase == HF__PHASE_HOLDING) {
        b->generation = (uint64_t)get(r);
        b->lease_ms = ms_of(r->s, get(r));
        b->sent_ns = ns_ago(r->s, get(r));
        b->known_ns = ns_ago(r->s, get(r));
        b->deadline_ns = hf__lease_deadline_ns(b->sent_ns, b->lease_ms);
    } else if (b->phase == HF__PHASE_ASKING || b->phase == HF__PHASE_WAITING) {
        b->queued_generation = (uint64_t)get(r);
        b->queued_lease_ms = ms_of(r->s, get(r));
        int ago = get(r);
        b->queued_sent_ns = b->queued_lease_ms == 0 ? 0 : ns_ago(r->s, ago);
    }
}

static void get_client(struct reader *r, struct client *c, const struct bidding *has)
{
    int head = get(r);

    c->alive = head & 1;
    c->bid = head >> 1 & 1;
    c->attempt_out = head >> 2 & 1;
    c->renew_out = head >> 3 & 1;
    c->end_out = head >> 4 & 1;
    c->pending = (uint8_t)(head >> 5);
    if (c->alive)
        get_bidder(r, c, has);
    else
        c->bidder.phase = HF__PHASE_OVER;
}

/* Messages ----------------------------------------------------------------- */
static void put_message(struct writer *p, const struct message *m)
{
    put(p, m->kind | m->ticket << 4);
    put(p, m->age | m->late << 4 | m->copied << 5 | m->retire << 6 | m->claimed << 7);
    if (m->kind == RENEW || m->kind == RENEW_ANSWER || m->kind == WRITE || m->kind == RELEASE)
        put_rank(p, m->named);
    if (m->kind == WRITE)
        put(p, m->order);
    if (m->kind >= ATTEMPT_ANSWER)
        put_rank(p, m->generation);
    if (m->kind >= ATTEMPT_ANSWER && m->kind != WAKE) {
        put(p, m->verdict | m->wanted << 4);
        put(p, ticks_of(p->s, m->lease_ms));
    }
}

static void get_message(struct reader *r, struct message *m)
{
    int head = get(r), flags = get(r);

    *m = (struct message){.kind = head & 15, .ticket = (uint8_t)(head >> 4), .age = flags & 15};
    m->late = flags >> 4 & 1;
    m->copied = flags >> 5 & 1;
    m->retire = flags >> 6 & 1;
    m->claimed = flags >> 7 & 1;
    if (m->kind == RENEW || m->kind == RENEW_ANSWER || m->kind == WRITE || m->kind == RELEASE)
        m->named = (uint8_t)get(r);
    if (m->kind == WRITE)
        m->order = (uint8_t)get(r);
    if (m->kind >= ATTEMPT_ANSWER)
        m->generation = (uint8_t)get(r);
    if (m->kind >= ATTEMPT_ANSWER && m->kind != WAKE) {
        int verdict = get(r);
        m->verdict = verdict & 15;
        m->wanted = (uint8_t)(verdict >> 4);
        m->lease_ms = ms_of(r->s, get(r));
    }
}

/* Messages are a set: each is packed alone, then the packed ones are sorted. */
static void put_messages(struct writer *p, const struct world *w)
{
    uint8_t packed[MAX_MESSAGES][8];
    uint8_t *out = p->at;
    size_t size[MAX_MESSAGES], n = 0;

    for (size_t i = 0; i < w->message_count; i++) {
        uint8_t one[8] = {0};
        p->at = one;
        put_message(p, &w->message[i]);
        size_t one_size = (size_t)(p->at - one), k = n++;
        for (; k > 0 && memcmp(packed[k - 1], one, sizeof one) > 0; k--) {
            memcpy(packed[k], packed[k - 1], sizeof one);
            size[k] = size[k - 1];
        }
        memcpy(packed[k], one, sizeof one);
        size[k] = one_size;
    }
    p->at = out;
    put(p, (int)n);
    for (size_t i = 0; i < n; i++) {
        memcpy(p->at, packed[i], size[i]);
        p->at += size[i];
    }
}

/* Ghosts and the whole ----------------------------------------------------- */
static void put_ghost(struct writer *p, const struct ghost *g, const struct bidding *b)
{
    put(p, g->withdrawn | g->claimed << 1 | g->broken << 2 | g->cut << 3 | g->kept << 4 |
               g->called << 5 | g->opened << 6 | g->heard_nobody << 7);
    if (b->at_least_ms > 0)
        put(p, g->age);
    put(p, g->barred);
    put(p, g->closed);
}

static void get_ghost(struct reader *r, struct ghost *g, const struct bidding *b)
{
    int head = get(r);

    *g = (struct ghost){.withdrawn = head & 1,
                        .claimed = head >> 1 & 1,
                        .broken = head >> 2 & 1,
                        .cut = head >> 3 & 1,
                        .kept = head >> 4 & 1,
                        .called = head >> 5 & 1,
                        .opened = head >> 6 & 1,
                        .heard_nobody = head >> 7 & 1};
    g->age = b->at_least_ms > 0 ? (uint8_t)get(r) : 0;
    g->barred = (uint8_t)get(r);
    g->closed = (uint8_t)get(r);
}

size_t world_pack(const struct scenario *s, struct world *w, uint8_t out[MAX_PACKED])
{
    struct writer p = {.at = out, .s = s};

    world_tidy(s, w);
    rank_all(&p, w);

    put(&p, w->deaths | w->breaks << 2 | w->steps_back << 4 | w->stepped << 6);
    put_rank(&p, w->generation);
    put_rank(&p, w->gate_exclusive);
    put_rank(&p, w->gate_highest);
    if (has_value(s)) {
        put_rank(&p, w->value_generation);
        put(&p, w->value_order | w->doubt << 4 | w->must_doubt << 5);
    }
    put(&p, (int)w->entry_count);
    for (size_t i = 0; i < w->entry_count; i++)
        put_entry(&p, &w->entries[i]);
    for (int c = 0; c < s->clients; c++)
        put_client(&p, &w->client[c], &s->client[c]);
    put_messages(&p, w);
    for (int t = 0; t < s->clients * MAX_BIDS; t++)
        put_ghost(&p, &w->ghost[t], bidding_of(s, t));
    return (size_t)(p.at - out);
}

void world_unpack(const struct scenario *s, const uint8_t *in, struct world *w)
{
    struct reader r = {.at = in, .s = s};

    memset(w, 0, sizeof *w);
    int head = get(&r);
    w->deaths = head & 3;
    w->breaks = head >> 2 & 3;
    w->steps_back = head >> 4 & 3;
    w->stepped = head >> 6 & 1;
    w->generation = (uint64_t)get(&r);
    w->gate_exclusive = (uint64_t)get(&r);
    w->gate_highest = (uint64_t)get(&r);
    if (has_value(s)) {
        w->value_generation = (uint64_t)get(&r);
        int value = get(&r);
        w->value_order = value & 15;
        w->doubt = value >> 4 & 1;
        w->must_doubt = value >> 5 & 1;
    }
    w->entry_count = (size_t)get(&r);
    for (size_t i = 0; i < w->entry_count; i++)
        get_entry(&r, &w->entries[i]);
    for (int c = 0; c < s->clients; c++)
        get_client(&r, &w->client[c], &s->client[c]);
    w->message_count = (size_t)get(&r);
    for (size_t i = 0; i < w->message_count; i++)
        get_message(&r, &w->message[i]);
    for (int t = 0; t < s->clients * MAX_BIDS; t++)
        get_ghost(&r, &w->ghost[t], bidding_of(s, t));
}
