/* What one thread of a program does: takes locks in every way there is, holds them for a while,
 * looks at them, uses them at a resource, and gives them back. */
#include <stdio.h>
#include <string.h>

#include "program.h"
#include "values.h"

#define LETTERS_MAX 16

/* Tickets of locks that were detached. */
static struct {
    struct {
        struct room *room;
        char ticket[HF_TICKET_SIZE];
    } letters[LETTERS_MAX];
    int count;
} mail;

static struct room *any_room(void)
{
    return server_room_at((size_t)sim_between(0, workload.rooms - 1));
}

static hf_options choose_options(void)
{
    static const int64_t ttls_ms[] = {100, 150, 300, 1000, 1000, 2000, 6000, 30000, HF_NEVER};
    hf_options opt = HF_OPTIONS_INIT;

    opt.ttl_ms = ttls_ms[sim_between(0, workload.with[FEATURE_NEVER] ? 8 : 7)];
    opt.mode = sim_chance(600) ? HF_EXCLUSIVE : HF_SHARED;
    opt.limit = opt.mode == HF_SHARED && sim_chance(400) ? (uint32_t)sim_between(1, 3) : 0;
    opt.wait_ms = sim_chance(200) ? 0 : sim_chance(500) ? sim_between(1, 4000) : HF_FOREVER;
    opt.lock_delay_ms = sim_chance(100) ? sim_between(50, 5000) : 0;
    opt.max_hold_ms = opt.ttl_ms != HF_NEVER && sim_chance(100) ? sim_between(20, 3000) : 0;
    opt.by_hand = sim_chance(100);
    opt.confirmed = sim_chance(150);
    opt.reentrant = sim_chance(200);
    opt.wanted = workload.with[FEATURE_VALUES] && sim_chance(300);
    opt.cached = workload.with[FEATURE_CACHE] && opt.mode == HF_EXCLUSIVE &&
                 opt.ttl_ms != HF_NEVER && sim_chance(400);
    return opt;
}

/* The resource takes what is not older than it has seen. */
static void use_resource(struct grant *g)
{
    char sequencer[HF_SEQUENCER_MAX];
    hf_error err = {0};

    if (hf_lock_sequencer(g->lock, sequencer, sizeof sequencer) < 0)
        sim_fail("there is no sequencer for '%s'", g->bid->room->name);
    sim.self->for_test = true;
    int r = hf_gate_pass(g->bid->room->gate, sequencer, &err);
    sim.self->for_test = false;
    if (r != 0 && r != (g->limit > 0 ? HF_UNSUPPORTED : 0) && !g->bid->excepted &&
        g->believed_until_ns > sim.now_ns)
        sim_fail("C10: the resource refuses the holder of '%s' (call %d): %s", g->bid->room->name,
                 g->call->number, err.text);
}

static void renew_by_hand(struct grant *g)
{
    hf_error err = {0};
    struct call *c = ledger_begin(CALL_RENEW, g->bid->room, NULL);
    int r = hf_lock_renew(g->lock, &err);

    sim_note("call %d: renew by hand %s", c->number, r == 0 ? "OK" : hf_code_name(r));
    ledger_end(c);
}

/* By hand: each time it comes to be at risk, that is told. */
static void wait_for_risk(struct grant *g)
{
    unsigned before = g->call->risk_told;

    if (g->call->opt.on_at_risk == NULL || g->call->opt.ttl_ms == HF_NEVER || g->closed)
        return;
    sim_sleep(g->call->opt.ttl_ms * SIM_MS * 3 / 4);
    struct program *p = g->process->program;
    if (hf_lock_state(g->lock) != HF_STATE_AT_RISK || g->call->risk_told > before)
        return;
    for (int i = 0; i < 40 && g->call->risk_told == before; i++)
        sim_sleep(g->call->opt.ttl_ms * SIM_MS / 400);
    if (hf_lock_state(g->lock) == HF_STATE_AT_RISK && g->call->risk_told == before && !p->closing &&
        !ledger_callback_runs(g->process) && !g->closed)
        sim_fail("'%s' (call %d) is at risk, and on_at_risk was not called", g->bid->room->name,
                 g->call->number);
}

static void hold(struct grant *g, int64_t span_ns)
{
    int64_t until_ns = sim.now_ns + span_ns;
    int64_t piece_ns = span_ns / sim_between(1, 5) + 1;

    if (g->call->opt.by_hand && sim_chance(300) && g->count == 1)
        wait_for_risk(g);
    while (sim.now_ns < until_ns) {
        sim_sleep(sim_between(piece_ns / 2, piece_ns));
        ledger_believe(g);
        if (g->lost)
            break;
        if (g->call->opt.by_hand && sim_chance(600))
            renew_by_hand(g);
        values_check_wanted(g);
        if (workload.with[FEATURE_VALUES] && sim_chance(250))
            values_use(g);
        use_resource(g);
    }
}

/* A thread that fires the cancel after a while. */
struct firing {
    hf_cancel *cancel;
    struct process *process;
    int64_t after_ns;
    bool done;
};

static void *fire(void *arg)
{
    struct firing *f = arg;

    sim_sleep(f->after_ns);
    ledger_cancelling(f->cancel);
    hf_cancel_fire(f->cancel);
    sim_note("cancel fired");
    f->done = true;
    return NULL;
}

static struct grant *acquire_with_cancel(struct program *p, struct room *room, hf_options *opt)
{
    struct firing f = {.after_ns = sim_between(0, 3000) * SIM_MS, .done = true};

    if (hf_cancel_new(&f.cancel) != 0)
        sim_fail("there is no cancel object");
    opt->cancel = f.cancel;
    if (sim_chance(150)) {
        ledger_cancelling(f.cancel);
        hf_cancel_fire(f.cancel);
    } else if (sim_chance(800)) {
        f.done = false;
        sim_spawn(p->process, "cancel", fire, &f);
    }
    struct grant *g = program_acquire(p, room, opt, true);
    while (!f.done)
        sim_sleep(SIM_MS);
    hf_cancel_free(f.cancel);
    return g;
}

/* Once more by the same owner, on purpose or by mistake (C11). */
static void acquire_again(struct program *p, struct grant *g)
{
    hf_options opt = g->call->opt;
    hf_lock *again = NULL;
    hf_error err = {0};

    opt.wait_ms = 0;
    hf_client *client = program_client(p);
    opt.on_lost = opt.on_at_risk = NULL;
    opt.on_wait = NULL;
    opt.cancel = NULL;
    struct call *c = ledger_begin(CALL_ACQUIRE, g->bid->room, &opt);
    opt.arg = c;
    opt.note = c->note;
    int r = hf_acquire(client, g->bid->room->name, g->bid->room->name_len, &opt, &again, &err);
    sim_note("call %d: acquire '%s' again: %s", c->number, g->bid->room->name,
             r == 0 ? "OK" : hf_code_name(r));
    if (r == 0 && again == g->lock) {
        if (!opt.reentrant)
            sim_fail("C11: a second plain acquire gives the same handle");
        g->count++;
    } else if (r == 0) {
        ledger_believe(g);
        if (!g->lost && !g->closed)
            sim_fail("C11: a second acquire gives another handle");
        ledger_acquired(c, again);
    } else if (r == HF_LOST && !g->closed) {
        ledger_believe(g);
        if (!g->lost)
            sim_fail("C11: the second acquire says LOST, and the lock does not");
    } else if (r != HF_DEADLOCK && r != HF_LOST) {
        ledger_refused(c, r, &err);
    }
    ledger_end(c);
    if (c->grant != NULL)
        program_release(c->grant);
}

static void detach(struct grant *g)
{
    char ticket[HF_TICKET_SIZE];
    hf_error err = {0};
    struct room *room = g->bid->room;

    snprintf(ticket, sizeof ticket, "%s", hf_lock_ticket(g->lock));
    struct call *c = ledger_begin(CALL_DETACH, room, NULL);
    g->ended = true;
    int r = hf_lock_detach(g->lock, &err);
    sim_note("call %d: detach '%s' %s", c->number, room->name, r == 0 ? "OK" : hf_code_name(r));
    if (r == 0)
        ledger_detached(g);
    else
        g->ended = false;
    g->closed |= c->closed_ns != SIM_NEVER; /* meanwhile, when it counted as given back */
    ledger_end(c);
    if (r < 0) {
        program_release(g);
    } else if (mail.count < LETTERS_MAX) {
        mail.letters[mail.count].room = room;
        memcpy(mail.letters[mail.count++].ticket, ticket, sizeof ticket);
    }
}

static void give_back(struct grant *g)
{
    while (g->count > 1)
        program_release(g);
    if (workload.with[FEATURE_ADOPTS] && !g->closed && sim_chance(120))
        detach(g);
    else
        program_release(g);
}

/* What was released last, and may still be here. */
static void take_again(struct program *p)
{
    hf_options opt = p->kept->opt;

    opt.cancel = NULL;
    opt.on_at_risk = opt.on_lost = opt.on_wanted = NULL;
    opt.on_wait = NULL;
    opt.max_hold_ms = sim_chance(100) ? sim_between(20, 3000) : 0;
    opt.wait_ms = sim_chance(300) ? 0 : sim_between(1, 4000);
    struct grant *g = program_acquire(p, p->kept->room, &opt, sim_chance(300));
    if (g == NULL)
        return;
    hold(g, sim_chance(400) ? 0 : sim_between(0, opt.ttl_ms / 2) * SIM_MS);
    give_back(g);
}

/* Its own, but for others who want it now and then. */
static struct room *home_room(void)
{
    char name[16];

    snprintf(name, sizeof name, "home%d",
             sim_chance(900) ? sim.self->number % SIM_HOMES : (int)sim_between(0, SIM_HOMES - 1));
    return server_room(name, strlen(name));
}

static void take_and_hold(struct program *p)
{
    hf_options opt = choose_options();
    struct room *room = opt.cached && sim_chance(600) ? home_room() : any_room();
    bool cancels = workload.with[FEATURE_CANCELS] && sim_chance(200);
    struct grant *g =
        cancels ? acquire_with_cancel(p, room, &opt) : program_acquire(p, room, &opt, true);

    if (g == NULL)
        return;
    int64_t most_ms = opt.ttl_ms == HF_NEVER || opt.ttl_ms > 3000 ? 3000 : 2 * opt.ttl_ms;
    hold(g, sim_chance(200) ? 0 : sim_between(0, sim_chance(100) ? 12000 : most_ms) * SIM_MS);
    if (sim_chance(150) && !g->closed)
        acquire_again(p, g);
    hold(g, sim_chance(500) ? 0 : sim_between(0, most_ms) * SIM_MS);
    give_back(g);
    for (int i = 0; i < 4 && opt.cached && p->kept != NULL && sim_chance(800); i++)
        take_again(p);
}

static void adopt(struct program *p)
{
    hf_options opt = HF_OPTIONS_INIT;
    hf_lock *lock = NULL;
    hf_error err = {0};

    if (mail.count == 0)
        return;
    hf_client *client = program_client(p);
    if (mail.count == 0)
        return;
    int i = --mail.count;
    struct room *room = mail.letters[i].room;
    char ticket[HF_TICKET_SIZE];
    memcpy(ticket, mail.letters[i].ticket, sizeof ticket);
    struct call *c = ledger_begin(CALL_ADOPT, room, &opt);
    ledger_adopting(c, ticket);
    int r = hf_adopt(client, room->name, room->name_len, ticket, &c->opt, &lock, &err);
    sim_note("call %d: adopt '%s' %.4s %s", c->number, room->name, ticket,
             r == 0 ? "OK" : hf_code_name(r));
    if (r == 0)
        ledger_acquired(c, lock);
    ledger_end(c);
    if (r < 0)
        return;
    hold(c->grant, sim_between(0, 1500) * SIM_MS);
    program_release(c->grant);
}

static void look_and_break(struct program *p)
{
    hf_view *view = NULL;
    hf_error err = {0};
    hf_client *client = program_client(p);
    struct call *c = ledger_begin(CALL_ASK, NULL, NULL);

    c->opt.wait_ms = 0;
    if (hf_inspect(client, NULL, &view, &err) == 0) {
        size_t n = hf_view_count(view);
        const hf_entry *e =
            n > 0 ? hf_view_entry(view, (size_t)sim_between(0, (int64_t)n - 1)) : NULL;
        if (e != NULL && workload.with[FEATURE_BREAKS] && sim_chance(500) &&
            c->closed_ns == SIM_NEVER) {
            int now = sim_chance(500);
            int r = hf_break(client, e->name, e->name_len, e->ticket, now, &err);
            figures.breaks += r == 0;
            sim_note("break '%s' %.4s%s: %s", e->name, e->ticket, now ? " now" : "",
                     r == 0 ? "OK" : hf_code_name(r));
        }
        hf_view_free(view);
    }
    ledger_end(c);
}

/* A lock that nobody else wants, for callbacks to release. */
static void keep_beside(struct program *p)
{
    hf_options opt = HF_OPTIONS_INIT;
    char name[16];

    if (p->side != NULL)
        return;
    snprintf(name, sizeof name, "side%d", p->process->number);
    opt.wait_ms = 1000;
    opt.owner = 4711 + (uint64_t)sim_between(0, 1000000);
    struct grant *g = program_acquire(p, server_room(name, strlen(name)), &opt, false);
    if (g != NULL && p->side == NULL)
        p->side = g;
    else if (g != NULL)
        program_release(g);
}

/* Many locks at once, none of which may be lost for being one of many. */
static void take_crowd(struct program *p)
{
    struct grant *grants[120];
    int wanted = (int)sim_between(30, 120), n = 0;
    hf_options opt = HF_OPTIONS_INIT;
    char name[24];

    opt.ttl_ms = sim_chance(500) ? 1000 : 2000;
    opt.wait_ms = 0;
    for (int i = 0; i < wanted && !network.quiet; i++) {
        snprintf(name, sizeof name, "crowd%d-%d", p->process->number, i);
        opt.owner = 1000 * (uint64_t)sim.self->number + (uint64_t)i + 100; /* two may take one */
        struct grant *g = program_acquire(p, server_room(name, strlen(name)), &opt, true);
        if (g != NULL)
            grants[n++] = g;
    }
    sim_sleep(sim_between(0, 3000) * SIM_MS);
    for (int i = 0; i < n; i++) {
        ledger_believe(grants[i]);
        program_release(grants[i]);
    }
}

/* When all is well again, everybody gets through. */
static void get_through(struct program *p)
{
    hf_options opt = HF_OPTIONS_INIT;

    for (int i = 0; i < workload.rooms; i++) {
        opt.ttl_ms = 3000;
        opt.mode = sim_chance(700) ? HF_EXCLUSIVE : HF_SHARED;
        struct grant *g = program_acquire(p, server_room_at((size_t)i), &opt, true);
        if (g == NULL)
            continue;
        hold(g, sim_between(0, 20) * SIM_MS);
        program_release(g);
    }
}

void *worker_run(void *arg)
{
    struct program *p = arg;

    for (int i = 0; i < workload.ops && !network.quiet; i++) {
        int choice = (int)sim_between(0, 99);
        sim_sleep(sim_chance(300) ? 0 : sim_between(0, 400) * SIM_MS);
        if (choice < 8)
            look_and_break(p);
        else if (choice < 16 && workload.with[FEATURE_ADOPTS])
            adopt(p);
        else if (choice < 24 && workload.with[FEATURE_CALLBACKS])
            keep_beside(p);
        else if (choice < 25 && workload.with[FEATURE_CROWDS])
            take_crowd(p);
        else
            take_and_hold(p);
    }
    while (!network.quiet)
        sim_sleep(200 * SIM_MS);
    get_through(p);
    p->workers_left--;
    return NULL;
}
