/* What the callbacks of a lock do: mostly nothing, sometimes something slow, sometimes they call the
 * library themselves. */
#include "program.h"

enum action { NOTHING, TAKE_TIME, RELEASE_ANOTHER, INSPECT, CLOSE, RELEASE_OWN, ACTIONS };

static void release_another(struct program *p)
{
    struct grant *side = p->side;

    p->side = NULL;
    if (side != NULL)
        program_release(side);
}

static void inspect(struct program *p)
{
    hf_view *view = NULL;
    hf_error err = {0};
    struct call *c = ledger_begin(CALL_ASK, NULL, NULL);

    if (hf_inspect(p->client, NULL, &view, &err) == 0)
        hf_view_free(view);
    ledger_end(c);
}

static void release_own(hf_lock *lock)
{
    hf_error err = {0};
    int r = hf_lock_release(lock, &err);

    if (r != HF_DEADLOCK)
        sim_fail("a callback releases its own lock, and is told %s", hf_code_name(r));
}

static void act(struct call *c, enum action action, hf_lock *lock)
{
    struct program *p = c->process->program;

    switch (action) {
    case TAKE_TIME:
        sim_sleep(sim_chance(200) ? sim_between(1, 4000) * SIM_MS : sim_between(1, 300) * SIM_MS);
        break;
    case RELEASE_ANOTHER:
        sim_sleep(sim_between(0, 20) * SIM_MS);
        release_another(p);
        break;
    case INSPECT:
        inspect(p);
        break;
    case CLOSE:
        hf_close(p->client); /* must do nothing */
        break;
    case RELEASE_OWN:
        if (lock != NULL)
            release_own(lock);
        break;
    default:
        break;
    }
}

static void check_handle(const struct call *c, const char *what)
{
    if (c->returned && !c->used)
        sim_fail("%s of call %d runs after its lock was given back", what, c->number);
}

static void on_lost(hf_lock *lock, hf_cause cause, void *arg)
{
    struct call *c = arg;
    int64_t began_ns = sim.now_ns;

    sim_note("call %d: on_lost, %s", c->number, hf_cause_text(cause));
    check_handle(c, "on_lost");
    if (++c->lost_told > 1)
        sim_fail("C7: call %d is told twice that it has lost", c->number);
    if (hf_lock_state(lock) != HF_STATE_LOST)
        sim_fail("on_lost of call %d, and the lock does not say LOST", c->number);
    ledger_callback_begin(c, false);
    act(c, (enum action)c->on_lost, lock);
    ledger_callback_end(c, false, began_ns);
    check_handle(c, "on_lost");
    sim_note("call %d: on_lost ends", c->number);
}

static void on_at_risk(hf_lock *lock, hf_cause cause, void *arg)
{
    struct call *c = arg;
    int64_t began_ns = sim.now_ns;

    (void)cause;
    sim_note("call %d: on_at_risk", c->number);
    check_handle(c, "on_at_risk");
    if (c->lost_told > 0)
        sim_fail("on_at_risk of call %d comes after on_lost", c->number);
    c->risk_told++;
    ledger_callback_begin(c, false);
    act(c, (enum action)c->on_at_risk, lock);
    ledger_callback_end(c, false, began_ns);
    check_handle(c, "on_at_risk");
}

static void on_wait(size_t position, void *arg)
{
    struct call *c = arg;
    int64_t began_ns = sim.now_ns;

    sim_note("call %d: on_wait, position %zu", c->number, position);
    if (position == 0)
        sim_fail("on_wait of call %d is told that it is not in the queue", c->number);
    ledger_callback_begin(c, true);
    act(c, (enum action)c->on_wait, NULL);
    ledger_callback_end(c, true, began_ns);
}

static int choose(bool for_wait)
{
    if (!workload.with[FEATURE_CALLBACKS] || sim_chance(600))
        return NOTHING;
    int action = (int)sim_between(TAKE_TIME, ACTIONS - 1);
    return for_wait && action == RELEASE_OWN ? NOTHING : action;
}

void callbacks_choose(struct call *c, hf_options *opt)
{
    if (sim_chance(600))
        opt->on_lost = on_lost;
    if (sim_chance(300))
        opt->on_at_risk = on_at_risk;
    if (sim_chance(300))
        opt->on_wait = on_wait;
    c->on_lost = choose(false);
    c->on_at_risk = choose(false);
    c->on_wait = choose(true);
}
