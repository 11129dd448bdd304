/* See program.h: a program opens its client, lets its threads work, and closes it. */
#include "program.h"
#include "values.h"

#include <stdio.h>

struct workload workload;

/* Each lock that was had is held, or its hold is over. */
static void check_counters(hf_client *client)
{
    hf_metrics m = {.size = sizeof m};
    uint64_t lost = 0;
    hf_error err = {0};
    int r = hf_metrics_read(client, &m, &err);

    if (r == HF_CLOSED || r == HF_FORKED)
        return;
    if (r < 0)
        sim_fail("metrics: %s", err.text);
    for (size_t i = 0; i < HF_METRICS_CAUSES; i++)
        lost += m.lost[i];
    if (m.grants != m.held + m.hold.count || m.wait.count > m.grants || lost > m.hold.count ||
        m.hand_over.count > m.wait.count || m.renewal_left.count > m.renewals)
        sim_fail("counters: %llu grants, %llu held, %llu holds over, %llu lost",
                 (unsigned long long)m.grants, (unsigned long long)m.held,
                 (unsigned long long)m.hold.count, (unsigned long long)lost);
}

/* Takes its time now and then, so that entries have to wait. */
static void on_log(const hf_log_entry *entry, void *arg)
{
    struct program *p = arg;
    struct call *c = ledger_begin(CALL_ASK, NULL, NULL);
    int64_t began_ns = sim.now_ns;

    ledger_callback_begin(c, false);
    sim_note("log: %s", entry->text);
    if (entry->text[0] == '\0' || (entry->name == NULL) != (entry->name_len == 0) ||
        entry->level < 1 || entry->level > 3 ||
        (entry->kind == HF_LOG_LOST) != (entry->cause != HF_CAUSE_NONE))
        sim_fail("log: an entry that makes no sense: '%s'", entry->text);
    if (sim_chance(300))
        sim_sleep(sim_between(1, 300) * SIM_MS);
    check_counters(p->client);
    hf_close(p->client); /* must do nothing */
    ledger_callback_end(c, false, began_ns);
    ledger_end(c);
}

static void open_client(struct program *p)
{
    char url[64];
    /* By the seed itself: what others do is the same with it and without. */
    bool counts = workload.with[FEATURE_METRICS] && (sim.seed + (uint64_t)p->slot) % 3 == 0;
    hf_client_options opt = {
        .size = sizeof opt, .metrics = counts, .on_log = counts ? on_log : NULL, .log_arg = p};
    hf_error err = {0};

    snprintf(url, sizeof url, "sim://store?op_timeout=%lldms", (long long)network.op_timeout_ms);
    if (hf_open(url, &opt, &p->client, &err) < 0)
        sim_fail("open: %s", err.text);
    sim_note("open");
}

hf_client *program_client(struct program *p)
{
    while (p->closing || p->client == NULL)
        sim_sleep(sim_between(1, 20) * SIM_MS);
    return p->client;
}

/* On the same terms as before, the note among them. If it is bid for all the same, its bid is the new
 * call's. */
static void bid_as_before(struct program *p, struct call *c)
{
    struct call *before = p->kept;

    if (!c->opt.cached || before == NULL || before->room != c->room ||
        before->process != c->process)
        return;
    p->kept = NULL;
    before->again = c;
    c->opt.ttl_ms = before->opt.ttl_ms;
    c->opt.lock_delay_ms = before->opt.lock_delay_ms;
    c->opt.note = before->opt.note;
}

struct grant *program_acquire(struct program *p, struct room *room, const hf_options *opt,
                              bool told)
{
    hf_lock *lock = NULL;
    hf_error err = {0};
    hf_client *client = program_client(p);
    struct call *c = ledger_begin(CALL_ACQUIRE, room, opt);

    if (told)
        callbacks_choose(c, &c->opt);
    c->opt.note = c->note;
    c->opt.arg = c;
    bid_as_before(p, c);
    sim_note(
        "call %d: acquire '%s' %s limit %u ttl %lld wait %lld delay %lld max_hold %lld%s%s%s%s",
        c->number, room->name, opt->mode == HF_SHARED ? "shared" : "exclusive", opt->limit,
        (long long)opt->ttl_ms, (long long)opt->wait_ms, (long long)opt->lock_delay_ms,
        (long long)opt->max_hold_ms, opt->by_hand ? " by_hand" : "",
        opt->confirmed ? " confirmed" : "", opt->reentrant ? " reentrant" : "",
        opt->cached ? " cached" : "");
    bool by_event = told && workload.with[FEATURE_EVENTS] && sim_chance(350) &&
                    !c->opt.cached; /* else ignored */
    int r = by_event ? acquire_by_event(p, c, &lock, &err)
                     : hf_acquire(client, room->name, room->name_len, &c->opt, &lock, &err);
    sim_note("call %d: acquire '%s' %s %s", c->number, room->name, r == 0 ? "OK" : hf_code_name(r),
             r == 0 ? hf_lock_ticket(lock) : err.text);
    if (r == 0)
        ledger_acquired(c, lock);
    else
        ledger_refused(c, r, &err);
    ledger_end(c);
    return r == 0 ? c->grant : NULL;
}

void program_release(struct grant *g)
{
    hf_error err = {0};
    bool last = g->count == 1;

    if (last)
        ledger_giving_back(g);
    else
        g->count--;
    struct call *c = ledger_begin(CALL_RELEASE, g->bid->room, NULL);
    sim_note("call %d: release '%s' of call %d%s", c->number, g->bid->room->name, g->call->number,
             last ? "" : ", once of several times");
    struct program *p = g->process->program;
    /* Not in a callback: hf_close() waits for that, and it would wait for hf_close(). */
    bool by_event = workload.with[FEATURE_EVENTS] && c->outer == NULL && !sim.self->of_library &&
                    !p->closing && sim_chance(350);
    int64_t at_least_ms = !by_event && last && workload.with[FEATURE_VALUES] && sim_chance(120)
                              ? sim_between(20, 1500)
                              : 0;
    g->bid->kept = at_least_ms > 0;
    int r = by_event ? release_by_event(p, c, g->lock, &err)
                     : hf_lock_release_after(g->lock, at_least_ms, &err);
    if (r == 0 && at_least_ms > 0)
        values_check_closed(g, at_least_ms);
    sim_note("call %d: release %s %s", c->number, r == 0 ? "OK" : hf_code_name(r), err.text);
    if (last && r == 0 && g->call->opt.cached && !by_event)
        p->kept = g->call;
    if (last)
        ledger_gave_back(g, c, r, &err);
    ledger_end(c);
}

/* A call that is still on its way to the client would find it freed: that is the program's mistake,
 * not the library's, and does not happen here. */
void program_close(struct program *p, bool again)
{
    while (p->closing)
        sim_sleep(SIM_MS);
    p->closing = true;
    while (!ledger_all_entered(p->process) ||
           (p->taker != NULL && p->taker->mutexes == p->taker_mutexes))
        sim_sleep(sim_between(1, 1000) * SIM_US);
    ledger_closing(p->process, false);
    struct call *c = ledger_begin(CALL_CLOSE, NULL, NULL);
    sim_note("call %d: close", c->number);
    hf_close(p->client);
    sim_note("call %d: closed", c->number);
    ledger_end(c);
    figures.closes++;
    p->client = NULL;
    if (sim_library_threads(p->process) > 0)
        sim_fail("%d threads run on after hf_close()", sim_library_threads(p->process));
    ledger_closing(p->process, true);
    if (again) {
        sim_sleep(sim_between(0, 200) * SIM_MS);
        open_client(p);
        p->closing = false;
    }
}

static void *run_program(void *arg)
{
    struct program *p = arg;

    open_client(p);
    p->workers_left = workload.workers;
    for (int i = 0; i < workload.workers; i++)
        sim_spawn(p->process, "w", worker_run, p);
    while (p->workers_left > 0 || p->closing)
        sim_sleep(sim_between(10, 300) * SIM_MS);
    if (p->side != NULL) {
        struct grant *side = p->side;
        p->side = NULL;
        program_release(side);
    }
    program_close(p, false);
    p->finished = true;
    return NULL;
}

void program_start(int slot)
{
    struct program *p = sim_alloc(sizeof *p);

    *p = (struct program){.process = sim_process_new(sim_between(-9000, 9000)), .slot = slot};
    p->process->program = p;
    workload.program[slot] = p;
    sim_note("p%d begins; its clock is %+lld ppm", p->process->number, (long long)p->process->ppm);
    sim_spawn(p->process, "main", run_program, p);
}
