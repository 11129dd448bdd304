/* What can happen next: a client acts, the network delivers, loses or repeats, a person breaks a
 * lock, time passes, the store's clock steps back.
 *
 * Clients do what the core does, only at any time they like: one attempt and one renewal under way
 * at most, a withdraw or a release sent again until it is answered, nothing after LOST. */
#include "walk.h"

#include <stdlib.h>

static bool is_request(const struct message *m)
{
    return m->kind >= ATTEMPT && m->kind <= WRITE;
}

static bool wants_in(const struct client *c)
{
    return c->bidder.phase == HF__PHASE_ASKING || c->bidder.phase == HF__PHASE_WAITING;
}

/* Which moves there are ---------------------------------------------------- */
struct list {
    struct move *out;
    size_t count;
};

static void add(struct list *l, enum move_kind kind, size_t arg)
{
    if (l->count == MAX_MOVES)
        abort();
    l->out[l->count++] = (struct move){(uint8_t)kind, (uint8_t)arg};
}

/* What was not answered may still change something, and what is not claimed has a short lease. */
static bool may_stay(const struct client *c)
{
    return !c->called && c->bidder.claimed && !c->bidder.unanswered && !c->attempt_out;
}

static void list_client(const struct scenario *s, const struct world *w, int i, struct list *l)
{
    const struct client *c = &w->client[i];
    bool room = s->client[i].near || w->message_count < (size_t)s->messages;
    bool holds = c->bidder.phase == HF__PHASE_HOLDING;
    bool over = c->bidder.phase == HF__PHASE_OVER || c->bidder.phase == HF__PHASE_LOST;

    if (!c->alive)
        return;
    if (room && wants_in(c) && !c->attempt_out)
        add(l, ASK, (size_t)i);
    if (room && !c->renew_out && (holds || c->bidder.phase == HF__PHASE_WAITING))
        add(l, SIGN_OF_LIFE, (size_t)i);
    if (room && wants_in(c))
        add(l, GIVE_UP, (size_t)i);
    if (room && holds)
        add(l, LET_GO, (size_t)i);
    if (holds && s->client[i].cached && !c->idle && may_stay(c))
        add(l, KEEP_IDLE, (size_t)i);
    if (holds && c->idle && !c->called && c->local < HF__TOKENS_RESERVED)
        add(l, USE_AGAIN, (size_t)i);
    if (room && s->unlock && wants_in(c))
        add(l, UNLOCK, (size_t)i);
    if (room && c->pending != NOTHING_PENDING && !c->end_out)
        add(l, SEND_AGAIN, (size_t)i);
    if (holds && s->client[i].writes > 0 && !w->ghost[ticket_of(w, i)].opened)
        add(l, READ_VALUE, (size_t)i);
    if (room && holds && !c->write_out && (c->write_is_open || c->order < s->client[i].writes))
        add(l, WRITE_VALUE, (size_t)i);
    if (over && c->pending == NOTHING_PENDING && c->bid + 1 < s->client[i].bids)
        add(l, BID_ANEW, (size_t)i);
    if (w->deaths > 0)
        add(l, DIE, (size_t)i);
}

static void list_message(const struct scenario *s, const struct world *w, size_t i, struct list *l)
{
    const struct message *m = &w->message[i];
    bool repeats = s->twice && !m->copied && (m->kind != ATTEMPT || m->late);
    bool full = w->message_count >= (size_t)s->messages;

    add(l, DELIVER, i);
    if (m->kind == WAKE || (is_request(m) && repeats))
        add(l, DELIVER_COPY, i);
    if (!m->late || full)
        add(l, LOSE, i);
}

size_t moves_of(const struct scenario *s, const struct world *w, struct move out[MAX_MOVES])
{
    struct list l = {.out = out};

    add(&l, TICK, 0);
    for (int c = 0; c < s->clients; c++)
        list_client(s, w, c, &l);
    for (size_t i = 0; i < w->message_count; i++)
        list_message(s, w, i, &l);
    for (size_t i = 0; i < w->entry_count && w->breaks > 0; i++) {
        if (w->entries[i].place == HF__PLACE_RETIRED)
            continue;
        add(&l, BREAK, ticket_number(&w->entries[i].ticket));
        add(&l, BREAK_NOW, ticket_number(&w->entries[i].ticket));
    }
    if (w->entry_count > 0)
        add(&l, SWEEP, 0);
    if (w->steps_back > 0)
        add(&l, STEP_BACK, 0);
    return l.count;
}

/* Clients ------------------------------------------------------------------ */
static void send(struct world *w, struct message m)
{
    if (w->message_count == MAX_MESSAGES)
        abort();
    w->message[w->message_count++] = m;
}

static void drop_message(struct world *w, size_t i)
{
    w->message[i] = w->message[--w->message_count];
}

/* The client stops listening: requests stay under way, what comes back is not read. */
static void hang_up(struct world *w, uint8_t ticket, bool also_wakes)
{
    for (size_t i = w->message_count; i-- > 0;) {
        struct message *m = &w->message[i];
        if (m->ticket != ticket)
            continue;
        if (is_request(m))
            m->late = 1;
        else if (m->kind != WAKE || also_wakes)
            drop_message(w, i);
    }
}

/* The bid is over for the client; `how` is what it tells the store. */
static void end_bid(struct world *w, int i, enum pending how)
{
    struct client *c = &w->client[i];

    if (c->attempt_out)
        hf__bidder_unanswered(&c->bidder);
    hang_up(w, ticket_of(w, i), true);
    c->attempt_out = c->renew_out = c->write_out = c->end_out = 0;
    c->used = (uint8_t)(c->local > 0 ? token_of(c) : 0);
    c->idle = c->called = c->local = 0;
    c->bidder.phase = HF__PHASE_OVER;
    c->pending = (uint8_t)how;
}

static void send_end(struct world *w, int i)
{
    struct client *c = &w->client[i];

    c->end_out = 1;
    send(w, (struct message){.kind = c->pending == RELEASE_PENDING ? RELEASE : WITHDRAW,
                             .ticket = ticket_of(w, i),
                             .named = c->pending == RELEASE_PENDING ? c->used : 0,
                             .retire = c->bidder.unanswered});
}

static void client_act(struct world *w, enum move_kind kind, int i)
{
    struct client *c = &w->client[i];
    uint8_t ticket = ticket_of(w, i);
    bool holds = c->bidder.phase == HF__PHASE_HOLDING;

    if (kind == ASK) {
        c->attempt_out = 1;
        send(w, (struct message){.kind = ATTEMPT, .ticket = ticket});
    } else if (kind == SIGN_OF_LIFE) {
        c->renew_out = 1;
        send(w, (struct message){.kind = RENEW,
                                 .ticket = ticket,
                                 .named = (uint8_t)(holds ? c->bidder.generation : 0)});
    } else if (kind == GIVE_UP) {
        end_bid(w, i, WITHDRAW_PENDING);
        send_end(w, i);
    } else if (kind == LET_GO || kind == UNLOCK) {
        end_bid(w, i, RELEASE_PENDING);
        send_end(w, i);
    } else if (kind == WRITE_VALUE) {
        c->order += !c->write_is_open;
        c->write_is_open = 0;
        c->write_out = 1;
        send(w, (struct message){.kind = WRITE,
                                 .ticket = ticket,
                                 .named = (uint8_t)c->bidder.generation,
                                 .order = c->order});
    } else if (kind == KEEP_IDLE) {
        c->idle = 1;
    } else if (kind == USE_AGAIN) {
        c->idle = 0;
        c->local++;
    } else if (kind == SEND_AGAIN) {
        send_end(w, i);
    } else if (kind == BID_ANEW) {
        hang_up(w, ticket, true);
        *c = (struct client){.alive = 1, .bid = (uint8_t)(c->bid + 1)};
        hf__bidder_init(&c->bidder);
    } else {
        hang_up(w, ticket, true);
        *c = (struct client){.bid = c->bid};
        w->deaths--;
    }
}

/* What the answer to an attempt means for the client. */
static void follow(struct world *w, int i, enum hf__advice advice)
{
    struct client *c = &w->client[i];

    if (advice == HF__ADVICE_REBID || advice == HF__ADVICE_REFUSED || advice == HF__ADVICE_NO_ROOM)
        end_bid(w, i, c->bidder.unanswered ? WITHDRAW_PENDING : NOTHING_PENDING);
}

/* The network -------------------------------------------------------------- */
/* When the answer to a withdraw or a release comes makes no difference, only whether it does: one
 * that is lost is a copy that was given up. */
static void answer_request(struct world *w, const struct message *m, const struct hf__answer *a)
{
    uint8_t kind = m->kind == ATTEMPT ? ATTEMPT_ANSWER : RENEW_ANSWER;
    struct client *c = &w->client[client_of(m->ticket)];

    if (m->late)
        return;
    if (m->kind == WITHDRAW || m->kind == RELEASE) {
        c->end_out = 0;
        c->pending = NOTHING_PENDING;
        return;
    }
    if (m->kind == WRITE) { /* what matters is that it was answered */
        send(w, (struct message){.kind = WRITE_ANSWER, .ticket = m->ticket, .age = m->age});
        return;
    }
    send(w, (struct message){.kind = kind,
                             .ticket = m->ticket,
                             .age = m->age,
                             .named = m->named,
                             .generation = (uint8_t)a->generation,
                             .verdict = (uint8_t)a->verdict,
                             .claimed = a->claimed,
                             .wanted = a->verdict == HF__VERDICT_GRANTED && a->wanted,
                             .lease_ms = a->lease_ms});
}

static struct finding at_store(struct walk *k, struct world *w, const struct message *m)
{
    struct deed d = {.kind = m->kind,
                     .ticket = m->ticket,
                     .generation = m->named,
                     .order = m->order,
                     .retire = m->retire};
    struct hf__answer a;
    struct finding f = store_apply(k, w, &d, &a);

    answer_request(w, m, &a);
    return f;
}

static void hear_wake(struct walk *k, struct world *w, const struct message *m)
{
    struct client *c = &w->client[client_of(m->ticket)];
    bool open = wants_in(c);
    if (m->generation == 0 && open)
        SAW(k, CALLED_EARLY);
    c->called |= m->generation == 0;
    enum hf__advice advice = hf__bidder_woken(&c->bidder, m->generation, NOW_NS);

    if (open && advice == HF__ADVICE_HOLD)
        SAW(k, WAKE_BELIEVED);
    if (open && advice == HF__ADVICE_ASK)
        SAW(k, WAKE_REFUSED);
}

static struct finding hear_answer(struct walk *k, struct world *w, const struct message *m)
{
    int i = client_of(m->ticket);
    struct client *c = &w->client[i];
    bool held = c->bidder.phase == HF__PHASE_HOLDING;
    struct hf__answer a = {.verdict = (enum hf__verdict)m->verdict,
                           .generation = m->generation,
                           .lease_ms = m->lease_ms,
                           .claimed = m->claimed,
                           .wanted = m->wanted,
                           .sent_ns = NOW_NS - m->age * k->s->tick_ms * 1000000};

    if (m->kind == WRITE_ANSWER) { /* the core believes what a renewal says, not this */
        c->write_out = 0;
        return FINE;
    }
    if (m->kind == ATTEMPT_ANSWER) {
        c->attempt_out = 0;
        follow(w, i, hf__bidder_answered(&c->bidder, &a, NOW_NS));
    } else {
        c->renew_out = 0;
        hf__bidder_renewed(&c->bidder, m->named, &a, NOW_NS);
    }
    c->called |= k->s->client[i].cached && m->wanted && c->bidder.phase == HF__PHASE_HOLDING;
    if (m->verdict == HF__VERDICT_GRANTED && c->bidder.phase == HF__PHASE_ASKING)
        SAW(k, ANSWER_TOO_LATE);
    if (!held || c->bidder.phase != HF__PHASE_LOST || c->bidder.cause != HF_CAUSE_GONE)
        return FINE;
    SAW(k, LOST_GONE);
    const struct hf__entry *e = entry_of(w, m->ticket);
    if (e != NULL && e->place == HF__PLACE_INSIDE && e->until_ms > NOW_MS)
        return (struct finding){"C7", "a lock that is held was declared lost"};
    return FINE;
}

/* A request that is lost to its client may still arrive; an answer or a wake-up is gone. */
static void lose(struct world *w, size_t i)
{
    struct message m = w->message[i];
    struct client *c = &w->client[client_of(m.ticket)];

    if (is_request(&m) && !m.late)
        w->message[i].late = 1;
    else
        drop_message(w, i);
    if (m.late)
        return;
    if (m.kind == ATTEMPT || m.kind == ATTEMPT_ANSWER) {
        c->attempt_out = 0;
        hf__bidder_unanswered(&c->bidder);
    } else if (m.kind == RENEW || m.kind == RENEW_ANSWER) {
        c->renew_out = 0;
    } else if (m.kind == WRITE || m.kind == WRITE_ANSWER) {
        c->write_out = 0;
        c->write_is_open = 1;
    } else if (m.kind != WAKE) {
        c->end_out = 0;
    }
}

static struct finding deliver(struct walk *k, struct world *w, size_t i, bool copy)
{
    struct message m = w->message[i];

    if (!copy) {
        drop_message(w, i);
    } else if (is_request(&m)) {
        w->message[i].copied = 1;
        lose(w, i);
        m.late |= m.kind == WITHDRAW || m.kind == RELEASE;
    }
    if (is_request(&m))
        return at_store(k, w, &m);
    if (m.kind != WAKE)
        return hear_answer(k, w, &m);
    hear_wake(k, w, &m);
    return FINE;
}

/* A near client's request is answered before anything else happens. */
static struct finding act(struct walk *k, struct world *w, enum move_kind kind, int i)
{
    struct finding f = FINE;
    uint8_t ticket = ticket_of(w, i);

    if (kind == READ_VALUE) {
        struct deed reading = {
            .kind = READING, .ticket = ticket, .generation = w->client[i].bidder.generation};
        struct hf__answer a;
        return store_apply(k, w, &reading, &a);
    }
    if (kind == USE_AGAIN)
        SAW(k, USED_AGAIN);
    if (kind == USE_AGAIN && w->client[i].local + 1u == HF__TOKENS_RESERVED)
        SAW(k, USED_ALL);
    client_act(w, kind, i);
    if (!k->s->client[i].near)
        return FINE;
    for (size_t m = 0; m < w->message_count && f.clause == NULL;) {
        if (w->message[m].ticket == ticket && w->message[m].kind != WAKE)
            f = deliver(k, w, m, false), m = 0;
        else
            m++;
    }
    return f;
}

static void step_back(const struct scenario *s, struct world *w)
{
    for (size_t i = 0; i < w->entry_count; i++) {
        if (w->entries[i].until_ms != HF__NEVER)
            w->entries[i].until_ms += s->back_ms;
    }
    w->steps_back--;
    w->stepped = 1;
}

struct finding move_apply(struct walk *k, struct world *w, struct move m)
{
    struct deed breaking = {.kind = BREAKING, .ticket = m.arg, .now = m.kind == BREAK_NOW};
    struct hf__answer a;

    switch ((enum move_kind)m.kind) {
    case TICK:
        world_tick(k->s, w);
        return FINE;
    case DELIVER:
        return deliver(k, w, m.arg, false);
    case DELIVER_COPY:
        return deliver(k, w, m.arg, true);
    case LOSE:
        lose(w, m.arg);
        return FINE;
    case BREAK:
    case BREAK_NOW:
        w->breaks--;
        return store_apply(k, w, &breaking, &a);
    case SWEEP:
        return store_apply(k, w, &(struct deed){.kind = SWEEPING, .ticket = NO_TICKET}, &a);
    case STEP_BACK:
        step_back(k->s, w);
        return FINE;
    default:
        return act(k, w, (enum move_kind)m.kind, m.arg);
    }
}
