/* Acquires and releases that are started. One thread of a program takes events at a time, whosever
 * they are, and lays each beside its call; the others look there. */
#include "ledger_inside.h"
#include "program.h"

#define OWNER 1000000 /* and the number of the call: a thread's own would be nobody's */

/* The tag is the call's number: that of the acquire tells of its lock, too. */
static void lay_down(const hf_event *event)
{
    struct call *c = ledger_numbered((int)event->tag);

    if (event->kind == HF_EVENT_AT_RISK || event->kind == HF_EVENT_LOST ||
        event->kind == HF_EVENT_WANTED) {
        if (c->kind == CALL_ACQUIRE && c->event == NULL && c->here)
            return; /* kept, and lost or wanted before the call returned */
        if (c->kind != CALL_ACQUIRE || c->event == NULL || c->event->lock != event->lock)
            sim_fail("an event of call %d tells of a lock that it has not got", c->number);
        return; /* its owner may be giving it back in this moment */
    }
    if (!c->started || c->event != NULL)
        sim_fail("call %d has an event too many", c->number);
    hf_event *copy = sim_alloc(sizeof *copy);
    *copy = *event;
    c->event = copy;
}

/* Takes the next event, or waits while another thread does. False: the client was closed. */
static bool take_one(struct program *p, hf_client *client)
{
    hf_event event = {.size = sizeof event};

    if (p->client != client || p->closing)
        return false;
    if (p->taker != NULL) {
        sim_sleep(sim_between(1, 2000) * SIM_US);
        return true;
    }
    p->taker = sim.self;
    p->taker_mutexes = sim.self->mutexes;
    int r = hf_event_next(client, sim_chance(500) ? HF_FOREVER : sim_between(0, 50), &event);
    p->taker = NULL;
    if (r == 0)
        lay_down(&event);
    else if (r != HF_TIMEOUT && r != HF_CLOSED)
        sim_fail("hf_event_next() gives %s", hf_code_name(r));
    return r != HF_CLOSED;
}

/* Closed: what the bid points to is used until hf_close() has returned. */
static const hf_event *await(struct program *p, hf_client *client, struct call *c)
{
    while (c->event == NULL && take_one(p, client))
        ;
    while (c->event == NULL && p->client == client)
        sim_sleep(SIM_MS);
    c->started = false;
    return c->event;
}

/* Nobody has said whether its end was answered: a store that stays away may keep it for a while. */
static int closed(const struct call *c, hf_error *err)
{
    err->code = network.quiet && c->began_ns > ledger.quiet_ns ? HF_CLOSED : HF_UNKNOWN;
    err->may_hold_ms =
        c->opt.ttl_ms == HF_NEVER ? HF_NEVER : 10000 + c->opt.ttl_ms + c->opt.lock_delay_ms;
    return err->code;
}

/* A thread that stops the acquire after a while. */
struct stopping {
    struct program *program;
    hf_client *client;
    struct call *call;
    int64_t after_ns;
};

static void *stop(void *arg)
{
    const struct stopping *s = arg;

    sim_sleep(s->after_ns);
    if (s->program->client != s->client || s->program->closing || s->call->event != NULL)
        return NULL;
    struct call *c = ledger_begin(CALL_ASK, NULL, NULL);
    ledger_stopping(s->call);
    int r = hf_acquire_stop(s->client, (uint64_t)s->call->number);
    sim_note("call %d: stop %s", s->call->number, r == 0 ? "OK" : hf_code_name(r));
    if (r != 0 && r != HF_NOT_FOUND && r != HF_CLOSED)
        sim_fail("hf_acquire_stop() gives %s", hf_code_name(r));
    ledger_end(c);
    return NULL;
}

static void stop_later(struct program *p, hf_client *client, struct call *c)
{
    struct stopping *s = sim_alloc(sizeof *s);

    *s = (struct stopping){.program = p, .client = client, .call = c};
    s->after_ns = sim_chance(500) ? sim_between(0, 100) * SIM_US : sim_between(0, 3000) * SIM_MS;
    sim_spawn(p->process, "stop", stop, s);
}

int acquire_by_event(struct program *p, struct call *c, hf_lock **ret_lock, hf_error *err)
{
    hf_client *client = p->client;

    if (c->opt.owner == 0)
        c->opt.owner = OWNER + (uint64_t)c->number;
    c->started = true;
    c->here = sim_chance(500);
    hf_lock *lock = NULL;
    int r = c->here ? hf_acquire_or_start(client, c->room->name, c->room->name_len, &c->opt,
                                          (uint64_t)c->number, &lock, err)
                    : hf_acquire_start(client, c->room->name, c->room->name_len, &c->opt,
                                       (uint64_t)c->number, err);
    if (lock != NULL)
        lay_down(&(hf_event){.kind = HF_EVENT_ACQUIRED, .tag = (uint64_t)c->number, .lock = lock});
    if (r < 0) {
        c->started = false;
        return r;
    }
    if (workload.with[FEATURE_CANCELS] && sim_chance(200))
        stop_later(p, client, c);
    const hf_event *event = await(p, client, c);
    if (event == NULL)
        return closed(c, err);
    *ret_lock = event->lock;
    *err = event->err;
    return event->err.code;
}

int release_by_event(struct program *p, struct call *c, hf_lock *lock, hf_error *err)
{
    hf_client *client = p->client;

    c->started = true;
    int r = hf_release_start(lock, (uint64_t)c->number, err);
    if (r < 0) {
        c->started = false;
        return r;
    }
    const hf_event *event = await(p, client, c);
    if (event == NULL) {
        err->code = HF_CLOSED;
        return HF_CLOSED;
    }
    *err = event->err;
    return event->err.code;
}
