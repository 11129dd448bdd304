/* See ledger.h: what callers believe, and whether they are told in time. */
#include <string.h>

#include "ledger_inside.h"

static bool conflict(const struct grant *a, const struct grant *b)
{
    return a->mode == HF_EXCLUSIVE || b->mode == HF_EXCLUSIVE;
}

/* One that closes its client knows what it does. */
static bool believes(const struct grant *g)
{
    return !g->ended && !g->closed && !g->process->dead && !sim_is_readable(g->fd) &&
           g->believed_until_ns > sim.now_ns;
}

static void check_alone(const struct grant *g)
{
    uint32_t limit = UINT32_MAX, beside = 0;

    for (size_t i = 0; i < ledger.grant_count; i++) {
        const struct grant *other = ledger.grants[i];
        if (other->bid->room != g->bid->room || !believes(other) || other->bid->excepted)
            continue;
        if (other != g && other->bid == g->bid && g->call->opt.cached)
            sim_fail("C20: '%s' was handed out twice, to call %d and call %d", g->bid->room->name,
                     other->call->number, g->call->number);
        beside++;
        if (other->limit > 0 && other->limit < limit)
            limit = other->limit;
        if (other != g && other->bid != g->bid && !g->bid->excepted && conflict(g, other))
            sim_fail("C1: '%s' is p%d's (call %d) for %.3f ms yet, and p%d (call %d) has it too",
                     g->bid->room->name, other->process->number, other->call->number,
                     (double)(other->believed_until_ns - sim.now_ns) / 1e6, g->process->number,
                     g->call->number);
    }
    if (beside > limit && !g->bid->excepted)
        sim_fail("C1: %u hold '%s', which has a limit of %u", beside, g->bid->room->name, limit);
}

/* Nothing kept it from being renewed: its own client was too slow, or did not try. */
static void check_needless(struct grant *g)
{
    int64_t lease_ms = g->bid->call != NULL ? g->call->opt.ttl_ms : 0;
    int64_t calm_ns = g->lost_ns - lease_ms * SIM_MS - 30 * SIM_MS;
    const struct process *p = g->process;

    if (g->checked_loss || g->call->kind != CALL_ACQUIRE || lease_ms < 300 ||
        g->call->opt.by_hand || g->bid->excepted || g->bid->broken || g->lost_ns == SIM_NEVER)
        return;
    g->checked_loss = true;
    if (p->thawed_ns > calm_ns || network_trouble_ns(p, OP_RENEW) > calm_ns ||
        g->remaining_ms < lease_ms / 2 || network.latency_ns > SIM_MS)
        return;
    sim_fail("'%s' (call %d) was lost although every renewal would have been answered",
             g->bid->room->name, g->call->number);
}

static void believe_lost(struct grant *g)
{
    g->believed_until_ns = sim.now_ns;
    if (!g->lost)
        figures.losses++;
    g->lost = true;
    if (g->fd >= 0 && !sim_is_readable(g->fd))
        sim_fail("C7: '%s' (call %d) says LOST, but its descriptor is not readable",
                 g->bid->room->name, g->call->number);
    if (hf_lock_cause(g->lock) == HF_CAUSE_EXPIRED && !g->closed)
        check_needless(g);
}

void ledger_believe(struct grant *g)
{
    int64_t before_ns = sim_local_ns(g->process);
    bool was_closed = g->closed && !ledger.closing[g->process->number];
    hf_state state = hf_lock_state(g->lock);
    int64_t left_ms = hf_lock_remaining_ms(g->lock);

    if (state == HF_STATE_LOST) {
        believe_lost(g);
        return;
    }
    g->believed_until_ns = sim.now_ns;
    if (left_ms == 0)
        return;
    if (g->lost)
        sim_fail("C7: '%s' (call %d) was LOST and is held again", g->bid->room->name,
                 g->call->number);
    if (was_closed)
        sim_fail("'%s' (call %d) is held, says a client that was closed", g->bid->room->name,
                 g->call->number);
    int64_t until_ns =
        left_ms == INT64_MAX ? SIM_NEVER : sim_true_ns(g->process, before_ns + left_ms * SIM_MS);
    g->believed_until_ns = until_ns;
    if (g->bid->excepted || g->closed)
        return;
    if (g->bid->place != HF__PLACE_INSIDE && g->bid->place != HF__PLACE_LINGERING &&
        until_ns > sim.now_ns)
        sim_fail("C3: '%s' (call %d) is held by its client's account, but not by the server's",
                 g->bid->room->name, g->call->number);
    if (until_ns > g->bid->lease_end_ns)
        sim_fail("C3: '%s' (call %d) is believed %.3f ms longer than the server's lease",
                 g->bid->room->name, g->call->number,
                 (double)(until_ns - g->bid->lease_end_ns) / 1e6);
}

static void set_spent(struct bid *b)
{
    for (; b != NULL; b = b->next) {
        b->over = true;
        b->may_stay_ns = sim.now_ns;
        ledger_check_over(b);
    }
}

void ledger_acquired(struct call *call, hf_lock *lock)
{
    struct grant *g = sim_alloc(sizeof *g);
    struct hf__ticket ticket;

    if (ledger.grant_count == GRANTS_MAX || !hf__ticket_parse(hf_lock_ticket(lock), &ticket))
        sim_fail("too many locks, or a ticket that is none");
    *g = (struct grant){.call = call,
                        .lock = lock,
                        .bid = ledger_bid(&ticket, true),
                        .process = call->process,
                        .fd = sim_chance(850) ? hf_lock_fd(lock) : -1,
                        .count = 1,
                        .returned_local_ns = sim_local_ns(call->process),
                        .returned_ns = sim.now_ns,
                        .lost_ns = SIM_NEVER,
                        .closed = call->closed_ns != SIM_NEVER};
    ledger.grants[ledger.grant_count++] = call->grant = g;
    call->used = g->bid->used = true;
    figures.grants++;
    if (call->kind == CALL_ADOPT) {
        g->bid->call = call;
        g->mode = g->bid->mode;
        g->limit = g->bid->limit;
        figures.adopted++;
    } else {
        if (call->opt.cached && g->bid->call != call && g->bid->call != NULL) {
            if (g->bid->call->process != call->process)
                sim_fail("C20: call %d was given what another process has", call->number);
            g->bid->call = call;
            figures.cached++;
        }
        g->mode = g->bid->mode = call->opt.mode;
        g->limit = g->bid->limit = call->opt.limit;
        set_spent(g->bid->next);
    }
    g->remaining_ms = hf_lock_remaining_ms(lock);
    bool has_token = hf_lock_generation(lock, &g->token) == 0;
    /* A client that cannot know yet that the store has forgotten its grant goes on with it (C20). */
    bool is_behind = call->opt.cached && g->bid->excepted;
    if (!has_token || (call->kind == CALL_ACQUIRE && g->token <= call->tokens_before && !is_behind))
        sim_fail("C4: '%s' has token %llu, after %llu", call->room->name,
                 (unsigned long long)g->token, (unsigned long long)call->tokens_before);
    if (g->token > call->room->returned)
        call->room->returned = g->token;
    if (call->opt.confirmed && call->kind == CALL_ACQUIRE && g->bid->place == HF__PLACE_INSIDE &&
        !g->bid->claimed && !g->bid->excepted)
        sim_fail("'%s' is returned as confirmed, but the server does not know", call->room->name);
    ledger_believe(g);
    if (believes(g))
        check_alone(g);
}

/* After HF_UNKNOWN. A renewal that is still on its way may give it one more lease. */
static int64_t may_stay_ns(const struct call *c, int64_t may_hold_ms)
{
    int64_t ttl_ms = c->opt.ttl_ms > 10000 ? c->opt.ttl_ms : 10000;

    if (may_hold_ms < 0)
        return SIM_NEVER;
    return sim.now_ns + network.late_ns +
           (may_hold_ms + c->opt.lock_delay_ms + ttl_ms) * SIM_MS * 101 / 100;
}

/* What an acquire that failed leaves behind. */
void ledger_refused(struct call *c, int code, const hf_error *err)
{
    int64_t waited_ms = (sim_local_ns(c->process) - c->began_local_ns) / SIM_MS;
    int64_t stay_ns = sim.now_ns;
    bool quiet = network.quiet && c->began_ns > ledger.quiet_ns;

    if ((code == HF_TIMEOUT && (c->opt.wait_ms <= 0 || waited_ms < c->opt.wait_ms)) ||
        (code == HF_CANCELLED && c->cancelled_ns == SIM_NEVER) ||
        (code == HF_CLOSED && c->closed_ns == SIM_NEVER) ||
        (code == HF_BUSY && c->opt.wait_ms != 0))
        sim_fail("call %d had no reason to return %s after %lld ms", c->number, hf_code_name(code),
                 (long long)waited_ms);
    if (quiet && code != HF_TIMEOUT && code != HF_CANCELLED && code != HF_CLOSED &&
        code != HF_BUSY && code != HF_STALE)
        sim_fail("call %d returns %s from a store that answers: %s", c->number, hf_code_name(code),
                 err->text);
    if (code == HF_UNKNOWN) {
        figures.unknown++;
        if (err->may_hold_ms < 0 && c->opt.ttl_ms != HF_NEVER)
            sim_fail("call %d may hold for ever, by its account", c->number);
        stay_ns = may_stay_ns(c, err->may_hold_ms);
    }
    figures.timeouts += code == HF_TIMEOUT;
    figures.cancelled += code == HF_CANCELLED;
    for (struct bid *b = c->bids; b != NULL; b = b->next) {
        b->over = true;
        b->may_stay_ns = stay_ns;
        ledger_check_over(b);
    }
}

/* Giving back. --------------------------------------------------------------------------------- */
static bool is_told(const struct grant *g)
{
    if (g->fd >= 0)
        return sim_is_readable(g->fd);
    if (g->call->opt.on_lost == NULL || g->call->lost_told > 0)
        return true;
    /* Another lock's callback takes its time. */
    return ledger.callbacks[g->process->number] > 0 ||
           sim.now_ns - ledger.callback_ended_ns[g->process->number] < 50 * SIM_MS;
}

void ledger_giving_back(struct grant *g)
{
    g->ended = true;
    g->in_order = g->bid->place == HF__PLACE_INSIDE && !g->bid->broken && !g->bid->excepted &&
                  !network_data_lost(g->process) && network.quiet && !g->lost && !g->closed &&
                  !sim_is_readable(g->fd) && ledger.callbacks[g->process->number] == 0 &&
                  g->believed_until_ns > sim.now_ns + 50 * SIM_MS;
}

static void drop(struct grant *g)
{
    for (size_t i = 0; i < ledger.grant_count; i++) {
        if (ledger.grants[i] == g)
            ledger.grants[i] = ledger.grants[--ledger.grant_count];
    }
    g->call->used = false;
}

void ledger_gave_back(struct grant *g, struct call *call, int code, const hf_error *err)
{
    struct bid *b = g->bid;
    bool closing = g->closed || call->closed_ns != SIM_NEVER;

    drop(g);
    bool may_stay = code == HF_OK && g->call->opt.cached; /* with its client */
    if ((code == HF_OK || code == HF_UNKNOWN) && !may_stay) {
        b->over = true;
        b->may_stay_ns = sim.now_ns;
        if (code == HF_UNKNOWN)
            b->may_stay_ns = may_stay_ns(g->call, err->may_hold_ms);
        ledger_check_over(b);
    }
    if (code == HF_CLOSED && !closing)
        sim_fail("a release says HF_CLOSED, but nobody closed the client");
    if (g->in_order && !closing && code != HF_OK && !b->excepted && !b->broken)
        sim_fail("C2: '%s' (call %d) was held, and its release says %s: %s", b->room->name,
                 g->call->number, hf_code_name(code), err->text);
}

void ledger_detached(struct grant *g)
{
    g->bid->detached = true;
    drop(g);
}

void ledger_forget(struct process *p)
{
    for (size_t i = ledger.grant_count; i-- > 0;) {
        if (ledger.grants[i]->process == p)
            drop(ledger.grants[i]);
    }
    for (size_t i = 0; i < ledger.call_count; i++) {
        if (ledger.calls[i].process == p)
            ledger.calls[i].returned = true;
    }
}

/* It was held when hf_close() began, and the store has answered since. */
static void check_given_back(const struct grant *g)
{
    const struct process *p = g->process;
    int64_t since_ns = ledger.closing_ns[p->number];
    bool answered = network_trouble_ns(p, OP_RELEASE) < since_ns &&
                    network_trouble_ns(p, OP_WITHDRAW) < since_ns &&
                    network_trouble_ns(p, OP_RENEW) < since_ns - 30 * SIM_S &&
                    p->thawed_ns < since_ns - SIM_S;

    if (answered && g->fd >= 0 && g->lost_ns >= since_ns && g->bid->place == HF__PLACE_INSIDE &&
        !g->bid->excepted && !g->call->opt.by_hand && g->call->opt.max_hold_ms == 0)
        sim_fail("'%s' (call %d): the client is closed, and has not given it back",
                 g->bid->room->name, g->call->number);
}

void ledger_closing(struct process *p, bool closed)
{
    if (!closed)
        ledger.closing_ns[p->number] = sim.now_ns;
    for (size_t i = 0; i < ledger.grant_count; i++) {
        struct grant *g = ledger.grants[i];
        if (g->process != p || g->ended)
            continue;
        g->closed = true;
        if (closed)
            check_given_back(g);
        if (closed && g->fd >= 0 && !sim_is_readable(g->fd))
            sim_fail("C7: '%s' (call %d): the client is closed, and its descriptor does not say so",
                     g->bid->room->name, g->call->number);
    }
    for (size_t i = ledger.first_open; i < ledger.call_count; i++) {
        struct call *c = &ledger.calls[i];
        if (c->process == p && !c->returned && c->closed_ns == SIM_NEVER)
            c->closed_ns = sim.now_ns;
    }
    ledger.closing[p->number] = !closed;
}

/* Time. ---------------------------------------------------------------------------------------- */
static int64_t earliest(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t ledger_time_up_ns(const struct call *c)
{
    if (c->kind == CALL_RELEASE && c->closed_ns != SIM_NEVER)
        return SIM_NEVER; /* it may wait for hf_close(), which has a limit of its own */
    if (c->kind != CALL_ACQUIRE)
        return c->began_ns;
    int64_t end_ns = earliest(c->cancelled_ns, c->closed_ns);
    if (c->opt.wait_ms != HF_FOREVER)
        end_ns = earliest(end_ns, c->began_ns + c->opt.wait_ms * SIM_MS * 101 / 100);
    return end_ns;
}

int64_t ledger_limit_ns(const struct call *c)
{
    const struct process *p = c->process;
    int64_t end_ns = ledger_time_up_ns(c);

    if (end_ns == SIM_NEVER || (c->started && c->closed_ns != SIM_NEVER))
        return SIM_NEVER; /* the close has a limit of its own */
    end_ns += PATIENCE(c->kind) * network.op_timeout_ms * SIM_MS + SLACK_NS + p->frozen_ns -
              c->frozen_before_ns + c->callback_ns;
    if (c->kind != CALL_ACQUIRE)
        end_ns += ledger.callback_ns[p->number] - c->callbacks_before_ns;
    if (c->kind == CALL_CLOSE) /* each lock may take a slow release */
        end_ns += (int64_t)c->locks_before * network.op_timeout_ms * SIM_MS;
    return end_ns;
}

static void look_at_call(struct call *c)
{
    static const char *const names[] = {"acquire", "adopt", "release", "renew",
                                        "detach",  "close", "question"};
    const struct process *p = c->process;
    bool busy = c->in_callback || (c->kind != CALL_ACQUIRE && ledger.callbacks[p->number] > 0);

    if (p->frozen || busy)
        return;
    if (sim.now_ns > ledger_limit_ns(c))
        sim_fail("call %d, %s, does not return: %.3f s since it began", c->number, names[c->kind],
                 (double)(sim.now_ns - c->began_ns) / 1e9);
    if (c->woken_ns != 0 && p->thawed_ns > c->woken_ns)
        c->woken_ns = p->thawed_ns;
    bool given_up = c->started && c->closed_ns != SIM_NEVER; /* and callbacks hold up the close */
    if (c->woken_ns != 0 && !given_up && sim.now_ns - c->woken_ns > 100 * SIM_MS &&
        network_trouble_ns(p, OP_RENEW) < sim.now_ns - 12 * SIM_S &&
        network_trouble_ns(p, OP_ATTEMPT) < sim.now_ns - 12 * SIM_S)
        sim_fail("C12: the server called for call %d, and nobody heeded it", c->number);
}

static void look_at_grant(struct grant *g)
{
    const struct process *p = g->process;
    const struct bid *b = g->bid;
    int64_t held_ms = (sim_local_ns(p) - g->returned_local_ns) / SIM_MS;

    if (g->lost_ns == SIM_NEVER && sim_is_readable(g->fd))
        g->lost_ns = sim.now_ns;
    if (g->ended || g->closed || p->frozen || sim.now_ns - p->thawed_ns < 5 * SIM_MS ||
        ledger.closing[p->number] || is_told(g))
        return;
    if (!b->excepted && b->lease_end_ns != SIM_NEVER && sim.now_ns > b->lease_end_ns)
        sim_fail("C7: the lease of '%s' (call %d) is over, and its holder was not told",
                 b->room->name, g->call->number);
    if (g->call->opt.max_hold_ms > 0 && held_ms > g->call->opt.max_hold_ms + 20)
        sim_fail("C13: '%s' (call %d) outstays its max_hold, and its holder was not told",
                 b->room->name, g->call->number);
    if (!network.quiet || g->call->opt.by_hand || b->gone_ns == SIM_NEVER)
        return;
    int64_t since_ns = b->gone_ns > ledger.quiet_ns ? b->gone_ns : ledger.quiet_ns;
    if (b->lease_end_ns == SIM_NEVER &&
        sim.now_ns > since_ns + 12 * SIM_S + 4 * network.op_timeout_ms * SIM_MS)
        sim_fail("C7: '%s' (call %d) is gone from the store, and its holder was never told",
                 b->room->name, g->call->number);
}

void ledger_look(void)
{
    while (ledger.first_open < ledger.call_count && ledger.calls[ledger.first_open].returned)
        ledger.first_open++;
    for (size_t i = ledger.first_open; i < ledger.call_count; i++) {
        if (!ledger.calls[i].returned)
            look_at_call(&ledger.calls[i]);
    }
    for (size_t i = 0; i < ledger.grant_count; i++)
        look_at_grant(ledger.grants[i]);
}

hf_lock *ledger_any_lock(const struct process *p)
{
    for (size_t i = 0; i < ledger.grant_count; i++) {
        if (ledger.grants[i]->process == p && !ledger.grants[i]->ended)
            return ledger.grants[i]->lock;
    }
    return NULL;
}

const char *ledger_describe_calls(void)
{
    static char text[1500];
    size_t at = 0;

    text[0] = '\0';
    for (size_t i = ledger.first_open; i < ledger.call_count && at < sizeof text - 100; i++) {
        const struct call *c = &ledger.calls[i];
        if (!c->returned)
            at += (size_t)snprintf(text + at, sizeof text - at,
                                   "    call %d of p%d for '%s' since %.3f s\n", c->number,
                                   c->process->number, c->room != NULL ? c->room->name : "-",
                                   (double)c->began_ns / 1e9);
    }
    return text;
}
