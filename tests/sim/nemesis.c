/* What goes wrong, and when: planned at the beginning of a seed. Then the quiet, in which all must
 * come right again. */
#include <string.h>

#include "program.h"

#define QUIET_MAX_NS (900 * SIM_S)

static struct program *any_program(void)
{
    return workload.program[sim_between(0, workload.programs - 1)];
}

static bool is_up(const struct program *p)
{
    return p != NULL && !p->process->dead && !p->finished && p->client != NULL;
}

static void restart(void *arg, uint64_t slot)
{
    (void)arg;
    program_start((int)slot);
}

static void kill_one(void *arg, uint64_t n)
{
    struct program *p = any_program();

    (void)arg, (void)n;
    if (!is_up(p) || network.quiet)
        return;
    figures.kills++;
    sim_kill(p->process);
    ledger_forget(p->process);
    sim_at(sim.now_ns + sim_between(0, 3000) * SIM_MS, restart, NULL, (uint64_t)p->slot);
}

static void thaw_one(void *arg, uint64_t n)
{
    struct process *p = arg;

    (void)n;
    if (!p->dead)
        sim_thaw(p);
}

static void freeze_one(void *arg, uint64_t n)
{
    struct program *p = any_program();
    int64_t span_ms = sim_chance(300) ? sim_between(1, 60000) : sim_between(1, 4000);

    (void)arg, (void)n;
    if (!is_up(p) || p->process->frozen || network.quiet)
        return;
    figures.freezes++;
    sim_freeze(p->process);
    sim_at(sim.now_ns + span_ms * SIM_MS, thaw_one, p->process, 0);
}

static void *close_and_open(void *arg)
{
    program_close(arg, true);
    return NULL;
}

static void close_one(void *arg, uint64_t n)
{
    struct program *p = any_program();

    (void)arg, (void)n;
    if (is_up(p) && !p->closing && p->workers_left > 0 && !network.quiet)
        sim_spawn(p->process, "closer", close_and_open, p);
}

static void expect(int got, int wanted, const char *what)
{
    if (got != wanted)
        sim_fail("C13: in a forked child %s gives %s", what, hf_code_name(got));
}

/* The child has a copy of everything, and may touch nothing. */
static void *fork_and_try(void *arg)
{
    struct program *p = arg;
    hf_lock *lock = ledger_any_lock(p->process), *got = NULL;
    hf_options opt = HF_OPTIONS_INIT;
    hf_view *view;

    if (p->client == NULL)
        return NULL;
    figures.forks++;
    sim_child_begin();
    opt.wait_ms = 0;
    expect(hf_acquire(p->client, "a", 1, &opt, &got, NULL), HF_FORKED, "hf_acquire()");
    expect(hf_inspect(p->client, NULL, &view, NULL), HF_FORKED, "hf_inspect()");
    if (lock != NULL) {
        expect(hf_lock_renew(lock, NULL), HF_FORKED, "hf_lock_renew()");
        expect(hf_lock_detach(lock, NULL), HF_FORKED, "hf_lock_detach()");
        expect(hf_lock_release(lock, NULL), HF_FORKED, "hf_lock_release()");
        expect(hf_lock_fd(lock), HF_FORKED, "hf_lock_fd()");
        if (hf_lock_state(lock) != HF_STATE_LOST || hf_lock_remaining_ms(lock) != 0 ||
            hf_lock_cause(lock) != HF_CAUSE_FORKED)
            sim_fail("C13: in a forked child the parent's lock does not say LOST");
    }
    hf_event event = {.size = sizeof event};
    expect(hf_acquire_start(p->client, "a", 1, &opt, 1, NULL), HF_FORKED, "hf_acquire_start()");
    expect(hf_event_next(p->client, 0, &event), HF_FORKED, "hf_event_next()");
    expect(hf_event_fd(p->client), HF_FORKED, "hf_event_fd()");
    hf_close(p->client);
    sim_child_end();
    return NULL;
}

static void fork_one(void *arg, uint64_t n)
{
    struct program *p = any_program();

    (void)arg, (void)n;
    if (is_up(p) && !p->closing)
        sim_spawn(p->process, "forker", fork_and_try, p);
}

static void add_weather(void *arg, uint64_t n)
{
    (void)arg, (void)n;
    if (!network.quiet)
        network_add_weather();
}

static void step_clock(void *arg, uint64_t n)
{
    (void)arg, (void)n;
    server_step_clock(sim_chance(600) ? -sim_between(1, 20000) : sim_between(1, 5000));
}

static void remember(void *arg, uint64_t n)
{
    (void)arg, (void)n;
    server_remember();
}

static void lose(void *arg, uint64_t n)
{
    (void)arg, (void)n;
    server_lose();
    if (sim_chance(500))
        network_tell(sim_chance(200));
}

static void stir(void *arg, uint64_t n)
{
    (void)arg, (void)n;
    if (sim_chance(300))
        network_tell(false);
    if (sim_chance(500))
        network_call_everybody();
    if (sim_chance(500))
        server_sweep();
}

static void thaw_all(void)
{
    for (int i = 0; i < workload.programs; i++) {
        if (workload.program[i] != NULL && !workload.program[i]->process->dead)
            sim_thaw(workload.program[i]->process);
    }
}

static void calm(void *arg, uint64_t n)
{
    (void)arg, (void)n;
    thaw_all();
    network_calm();
    ledger_quiet();
}

static void plan(enum feature feature, void (*what)(void *, uint64_t), int permille, int most)
{
    if (!workload.with[feature] || !sim_chance(permille))
        return;
    for (int64_t i = sim_between(1, most); i > 0; i--)
        sim_at(sim_between(sim.now_ns, workload.quiet_at_ns), what, NULL, 0);
}

/* Removes what nobody will ever release: locks without end whose holders are dead or gave up. */
static void *tidy_up(void *arg)
{
    struct program *p = arg;
    hf_view *view = NULL;
    hf_error err = {0};

    if (hf_open("sim://store", NULL, &p->client, &err) < 0)
        sim_fail("open: %s", err.text);
    for (bool over = false; !over;) {
        sim_sleep(5 * SIM_S);
        over = true;
        for (int i = 0; i < workload.programs; i++)
            over &= workload.program[i]->finished;
        if (hf_inspect(p->client, NULL, &view, &err) < 0)
            sim_fail("inspect: %s", err.text);
        for (size_t i = 0; i < hf_view_count(view); i++) {
            const hf_entry *e = hf_view_entry(view, i);
            struct hf__ticket ticket;
            hf__ticket_parse(e->ticket, &ticket);
            const struct bid *b = ledger_bid(&ticket, true);
            if (e->place != HF_PLACE_INSIDE || e->remaining_ms != HF_NEVER || !ledger_is_orphan(b))
                continue;
            over = false;
            sim_note("'%s' %.4s is nobody's", e->name, e->ticket);
            hf_break(p->client, e->name, e->name_len, e->ticket, 1, &err);
        }
        hf_view_free(view);
    }
    hf_close(p->client);
    p->finished = true;
    return NULL;
}

static void start_tidying(void *arg, uint64_t n)
{
    struct program *p = arg;

    (void)n;
    sim_spawn(p->process, "tidy", tidy_up, p);
}

static void run_out_of_time(void *arg, uint64_t n)
{
    (void)arg, (void)n;
    sim_fail("liveness: the faults are over, and not everybody gets through\n%s",
             ledger_describe_calls());
}

void nemesis_begin(void)
{
    struct program *tidier = sim_alloc(sizeof *tidier);

    workload.quiet_at_ns = sim.now_ns + sim_between(2, sim_chance(300) ? 60 : 15) * SIM_S;
    plan(FEATURE_WEATHER, add_weather, 850, 10);
    plan(FEATURE_KILLS, kill_one, 300, 3);
    plan(FEATURE_FREEZES, freeze_one, 350, 4);
    plan(FEATURE_CLOSES, close_one, 450, 5);
    plan(FEATURE_FORKS, fork_one, 200, 3);
    plan(FEATURE_STEPS, step_clock, 150, 3);
    plan(FEATURE_WEATHER, stir, 300, 4);
    if (workload.with[FEATURE_LOSSES] && sim_chance(100)) {
        int64_t at_ns = sim_between(sim.now_ns, workload.quiet_at_ns);
        sim_at(at_ns, remember, NULL, 0);
        sim_at(at_ns + sim_between(0, 2000) * SIM_MS, lose, NULL, 0);
    }
    sim_at(workload.quiet_at_ns, calm, NULL, 0);
    tidier->process = sim_process_new(0);
    workload.program[workload.programs] = tidier;
    sim_at(workload.quiet_at_ns + 60 * SIM_S, start_tidying, tidier, 0);
    sim_at(workload.quiet_at_ns + QUIET_MAX_NS, run_out_of_time, NULL, 0);
}

/* All programs have ended: what is left? */
void nemesis_check_end(void)
{
    sim.now_ns += 7200 * SIM_S;
    server_sweep();
    for (size_t i = 0; i < server_room_count(); i++) {
        const struct room *room = server_room_at(i);
        if (room->record.count > 0)
            sim_fail("%zu entries are left of '%s', the first of ticket %02x%02x",
                     room->record.count, room->name, room->record.entries[0].ticket.bits[0],
                     room->record.entries[0].ticket.bits[1]);
    }
    sim_check_files();
    sim_check_heap();
}
