/* See ledger.h: calls and tickets, and what the server's records say of them. */
#include "ledger.h"

#include <stdlib.h>
#include <string.h>

#include "ledger_inside.h"

struct figures figures;
struct ledger ledger;

/* Calls. --------------------------------------------------------------------------------------- */
struct call *ledger_begin(enum call_kind kind, struct room *room, const hf_options *opt)
{
    if (ledger.call_count == CALLS_MAX)
        sim_fail("too many calls");
    struct call *c = &ledger.calls[ledger.call_count++];
    struct process *p = sim.self->process;

    *c = (struct call){.number = (int)ledger.call_count,
                       .kind = kind,
                       .process = p,
                       .fiber = sim.self,
                       .outer = sim.self->call,
                       .room = room,
                       .began_ns = sim.now_ns,
                       .began_local_ns = sim_local_ns(p),
                       .frozen_before_ns = p->frozen_ns,
                       .cancelled_ns = SIM_NEVER,
                       .closed_ns = ledger.closing[p->number] ? sim.now_ns : SIM_NEVER,
                       .callbacks_before_ns = ledger.callback_ns[p->number],
                       .mutexes_before = sim.self->mutexes,
                       .tokens_before = room != NULL ? room->returned : 0};
    if (opt != NULL)
        c->opt = *opt;
    for (size_t i = 0; c->opt.cancel != NULL && i < ledger.fired_count; i++) {
        if (ledger.fired[i] == c->opt.cancel)
            c->cancelled_ns = sim.now_ns;
    }
    for (size_t i = 0; i < ledger.grant_count; i++)
        c->locks_before += ledger.grants[i]->process == p;
    snprintf(c->note, sizeof c->note, "call %d", c->number);
    sim.self->call = c;
    figures.calls++;
    return c;
}

void ledger_end(struct call *c)
{
    int64_t up_ns = ledger_time_up_ns(c), op_ns = network.op_timeout_ms * SIM_MS;

    c->returned = true;
    sim.self->call = c->outer;
    if (up_ns == SIM_NEVER || c->process->thawed_ns >= c->began_ns || c->callback_ns > 0 ||
        ledger.callback_ns[c->process->number] != c->callbacks_before_ns)
        return;
    int64_t after = (sim.now_ns - up_ns) * 1000 / op_ns;
    int64_t *longest = c->kind == CALL_CLOSE     ? &figures.longest_close_permille
                       : c->kind == CALL_ACQUIRE ? &figures.longest_acquire_permille
                                                 : &figures.longest_other_permille;
    if (after > *longest)
        *longest = after;
}

void ledger_callback_begin(struct call *c, bool on_own_thread)
{
    figures.callbacks++;
    ledger.callbacks[c->process->number]++;
    if (on_own_thread)
        c->in_callback = true;
}

void ledger_callback_end(struct call *c, bool on_own_thread, int64_t began_ns)
{
    int64_t took_ns = sim.now_ns - began_ns;

    ledger.callbacks[c->process->number]--;
    ledger.callback_ended_ns[c->process->number] = sim.now_ns;
    ledger.callback_ns[c->process->number] += took_ns;
    if (!on_own_thread)
        return;
    c->in_callback = false;
    c->callback_ns += took_ns;
    if (c->woken_ns != 0)
        c->woken_ns = sim.now_ns;
}

bool ledger_callback_runs(const struct process *p)
{
    return ledger.callbacks[p->number] > 0;
}

void ledger_cancelling(const hf_cancel *cancel)
{
    if (ledger.fired_count == FIRED_MAX)
        sim_fail("too many cancels");
    ledger.fired[ledger.fired_count++] = cancel;
    for (size_t i = ledger.first_open; i < ledger.call_count; i++) {
        if (!ledger.calls[i].returned && ledger.calls[i].opt.cancel == cancel)
            ledger.calls[i].cancelled_ns = sim.now_ns;
    }
}

void ledger_stopping(struct call *c)
{
    if (!c->returned && c->cancelled_ns == SIM_NEVER)
        c->cancelled_ns = sim.now_ns;
}

/* From here on its new holder may end it. */
void ledger_adopting(struct call *c, const char *text)
{
    struct hf__ticket ticket;

    if (hf__ticket_parse(text, &ticket)) {
        struct bid *b = ledger_bid(&ticket, true);
        b->call = c;
        b->detached = false;
    }
}

void ledger_quiet(void)
{
    ledger.quiet_ns = sim.now_ns;
}

struct call *ledger_numbered(int number)
{
    if (number < 1 || number > (int)ledger.call_count)
        sim_fail("there is no call %d", number);
    return &ledger.calls[number - 1];
}

struct call *ledger_call(const char *note)
{
    struct call *c =
        ledger_numbered(strncmp(note, "call ", 5) == 0 ? (int)strtol(note + 5, NULL, 10) : 0);

    while (c->again != NULL)
        c = c->again;
    return c;
}

bool ledger_all_entered(const struct process *p)
{
    for (size_t i = ledger.first_open; i < ledger.call_count; i++) {
        const struct call *c = &ledger.calls[i];
        /* a callback's call is inside already: hf_close() waits for the callback */
        if (c->process == p && !c->returned && !c->fiber->of_library &&
            c->fiber->mutexes == c->mutexes_before)
            return false;
    }
    return true;
}

/* Bids. ---------------------------------------------------------------------------------------- */
struct bid *ledger_bid(const struct hf__ticket *ticket, bool make)
{
    struct bid **at = &ledger.bids[(ticket->bits[0] | ticket->bits[1] << 8) % BUCKETS];

    for (; *at != NULL; at = &(*at)->next_hash) {
        if (hf__ticket_equal(&(*at)->ticket, ticket))
            return *at;
    }
    if (!make)
        return NULL;
    struct bid *b = sim_alloc(sizeof *b);
    b->ticket = *ticket;
    b->lease_end_ns = b->gone_ns = SIM_NEVER;
    *at = b;
    return b;
}

void ledger_except_all(void)
{
    for (size_t i = 0; i < BUCKETS; i++) {
        for (struct bid *b = ledger.bids[i]; b != NULL; b = b->next_hash)
            b->excepted = true;
    }
}

/* Work: how often the server is asked about one ticket. Short leases are renewed 30 times a second,
 * and what failed is tried again at most 40 times. */
static void count_request(struct bid *b)
{
    if (sim.now_ns - b->asked_since_ns > SIM_S) {
        b->asked_since_ns = sim.now_ns;
        b->asked = 0;
    }
    if (++b->asked > figures.requests_most)
        figures.requests_most = b->asked;
    if (b->asked > ASKED_MAX)
        sim_fail("the server is asked %llu times within a second about one ticket of '%s'",
                 (unsigned long long)b->asked, b->room->name);
}

void ledger_sent(struct request *q, const struct fiber *by)
{
    figures.requests++;
    if (by->call != NULL) {
        by->call->requests++;
        by->call->woken_ns = 0;
    }
    for (size_t i = 0; i < q->count; i++) {
        struct bid *b = q->items[i].bid;
        count_request(b);
        /* A runner's; its renewal is the claim of what the call gave, the renewer's a sign of life. */
        if (b->call != NULL && b->call->started &&
            (q->op != OP_RENEW || strstr(by->name, "hf-runner") != NULL)) {
            b->call->woken_ns = 0;
            b->call->asked_by = by;
        }
        if (b->detached && (q->op == OP_RELEASE || q->op == OP_WITHDRAW))
            sim_fail("'%s' was detached, and is released all the same", b->room->name);
    }
}

void ledger_woken(struct bid *b)
{
    struct call *c = b->call;

    if (c == NULL || c->kind != CALL_ACQUIRE || c->returned || c->bids != b ||
        c->fiber->waits == SIM_REPLY || c->process->frozen ||
        (c->started && c->asked_by != NULL && c->asked_by->waits == SIM_REPLY))
        return;
    c->woken_ns = sim.now_ns;
}

/* What the server has. ------------------------------------------------------------------------- */
static bool occupies(const struct hf__entry *e)
{
    return e->place == HF__PLACE_INSIDE || e->place == HF__PLACE_LINGERING;
}

static void check_exclusion(const struct room *room)
{
    size_t inside = 0, exclusive = 0;
    uint32_t limit = UINT32_MAX;

    for (size_t i = 0; i < room->record.count; i++) {
        const struct hf__entry *e = &room->record.entries[i];
        if (!occupies(e))
            continue;
        inside++;
        exclusive += e->mode == HF_EXCLUSIVE;
        if (e->limit > 0 && e->limit < limit)
            limit = e->limit;
    }
    if ((exclusive > 0 && inside > 1) || inside > limit)
        sim_fail("C1: '%s' has %zu inside, %zu of them exclusive", room->name, inside, exclusive);
}

static const char *const places[] = {"gone", "waiting", "inside", "lingering", "retired"};

/* The server's clock has gone back: what is still there ends so much later. */
void ledger_last_longer(int64_t by_ns)
{
    for (size_t i = 0; i < BUCKETS; i++) {
        for (struct bid *b = ledger.bids[i]; b != NULL; b = b->next_hash) {
            bool is_there = b->place != HF__PLACE_GONE && b->place != HF__PLACE_RETIRED;
            if (b->over && is_there && b->may_stay_ns != SIM_NEVER)
                b->may_stay_ns += by_ns;
        }
    }
}

void ledger_check_over(const struct bid *b)
{
    bool may_linger = b->used && (b->broken || b->release_unanswered || b->kept);
    bool there = b->place == HF__PLACE_INSIDE || b->place == HF__PLACE_WAITING ||
                 (b->place == HF__PLACE_LINGERING && !may_linger);

    if (b->over && there && !b->excepted && b->may_stay_ns != SIM_NEVER &&
        sim.now_ns > b->may_stay_ns)
        sim_fail("C5: ticket %02x%02x of call %d is over, but '%s' has it %s", b->ticket.bits[0],
                 b->ticket.bits[1], b->call != NULL ? b->call->number : 0, b->room->name,
                 places[b->place]);
}

/* It left the queue because no sign of life came, although its client lives and was answered. */
static void check_place_lost(const struct bid *b)
{
    const struct call *c = b->call;
    int64_t calm_ns = sim.now_ns - 11 * SIM_S;

    if (c == NULL || c->returned || b->excepted || b->broken || c->bids != b ||
        sim.now_ns < b->waits_until_ns || c->process->dead || c->process->frozen)
        return;
    if (c->process->thawed_ns > calm_ns || network_trouble_ns(c->process, OP_ATTEMPT) > calm_ns ||
        network_trouble_ns(c->process, OP_RENEW) > calm_ns || ledger_time_up_ns(c) < sim.now_ns)
        return;
    sim_fail("C5: call %d, ticket %02x%02x, lost its place for '%s' although its client lives",
             c->number, b->ticket.bits[0], b->ticket.bits[1], b->room->name);
}

static void see(struct bid *b, const struct hf__entry *e)
{
    int64_t now_ms = server_now_ms(), until_ms = e != NULL ? e->until_ms : 0;
    enum hf__place place = e != NULL ? e->place : HF__PLACE_GONE;

    if (e != NULL && until_ms != HF__NEVER && until_ms - now_ms > e->lease_ms)
        until_ms = now_ms + e->lease_ms; /* its clock went back: what the next sweep will say */
    if (b->place == HF__PLACE_WAITING && (place == HF__PLACE_GONE || place == HF__PLACE_RETIRED))
        check_place_lost(b);
    if (place == HF__PLACE_INSIDE) {
        if (b->place != HF__PLACE_INSIDE)
            b->since_ms = e->since_ms;
        b->lease_end_ns = server_true_ns(until_ms);
        b->gone_ns = SIM_NEVER;
    } else if (b->place == HF__PLACE_INSIDE) {
        b->gone_ns = sim.now_ns;
    }
    if ((place == HF__PLACE_INSIDE || place == HF__PLACE_LINGERING) && now_ms < b->since_ms)
        b->since_ms = now_ms; /* its clock went back, which lengthens nothing */
    if (place != HF__PLACE_INSIDE && place != HF__PLACE_LINGERING &&
        (b->place == HF__PLACE_INSIDE || b->place == HF__PLACE_LINGERING))
        b->opened_ms = now_ms;
    if (place == HF__PLACE_WAITING)
        b->waits_until_ns = server_true_ns(until_ms);
    b->place = place;
    if (e != NULL && place != HF__PLACE_RETIRED) {
        b->generation = e->generation;
        b->claimed = e->claimed;
    }
    ledger_check_over(b);
}

void ledger_looked(struct room *room)
{
    static uint64_t looks;
    struct bid *before = room->present;

    check_exclusion(room);
    room->present = NULL;
    looks++;
    for (size_t i = 0; i < room->record.count; i++) {
        const struct hf__entry *e = &room->record.entries[i];
        struct bid *b = ledger_bid(&e->ticket, false);
        if (e->place == HF__PLACE_WAITING)
            room->waited_ns = sim.now_ns;
        if (b == NULL)
            continue;
        b->room = room;
        b->seen = looks;
        see(b, e);
    }
    for (struct bid *b = before, *next; b != NULL; b = next) {
        next = b->next_present;
        if (b->seen != looks)
            see(b, NULL);
    }
    for (size_t i = 0; i < room->record.count; i++) {
        struct bid *b = ledger_bid(&room->record.entries[i].ticket, false);
        if (b == NULL || b->seen != looks)
            continue;
        b->next_present = room->present;
        room->present = b;
    }
}

bool ledger_is_orphan(const struct bid *b)
{
    for (size_t i = 0; i < ledger.grant_count; i++) {
        if (ledger.grants[i]->bid == b)
            return false;
    }
    return b->call == NULL || b->call->returned || b->call->process->dead;
}
