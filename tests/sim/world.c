/* See world.h: the scheduler, and what happens when. */
#include "world.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fiber.h"

#define EVENTS_MAX    65536
#define PROCESSES_MAX 64
#define STEPS_MAX     200000 /* of one process in one second: a thread that never pauses */

struct event {
    int64_t when_ns;
    uint64_t number; /* first come, first served */
    void (*what)(void *, uint64_t);
    void *arg;
    uint64_t n;
};

struct sim sim;

static struct {
    struct event events[EVENTS_MAX]; /* a heap, the earliest first */
    size_t event_count;
    uint64_t event_number;
    struct process processes[PROCESSES_MAX];
    int process_count;
} world;

/* Telling. ------------------------------------------------------------------------------------- */
static void who(char buf[40])
{
    snprintf(buf, 40, "%s", sim.self != NULL ? sim.self->name : "-");
}

void sim_note_line(const char *format, ...)
{
    char name[40];
    va_list args;

    who(name);
    printf("%14.6f  %-10s ", (double)sim.now_ns / 1e9, name);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
}

void sim_fail(const char *format, ...)
{
    char name[40], text[600];
    va_list args;

    who(name);
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    printf("FAULT seed %" PRIu64 " at %.6f s, %s: %s\n", sim.seed, (double)sim.now_ns / 1e9, name,
           text);
    fflush(stdout);
    _exit(1);
}

/* Events. -------------------------------------------------------------------------------------- */
static bool is_earlier(const struct event *a, const struct event *b)
{
    return a->when_ns != b->when_ns ? a->when_ns < b->when_ns : a->number < b->number;
}

void sim_at(int64_t when_ns, void (*what)(void *, uint64_t), void *arg, uint64_t n)
{
    size_t i = world.event_count++;

    if (i >= EVENTS_MAX)
        sim_fail("more is under way than this world holds");
    struct event event = {when_ns, world.event_number++, what, arg, n};
    for (; i > 0 && is_earlier(&event, &world.events[(i - 1) / 2]); i = (i - 1) / 2)
        world.events[i] = world.events[(i - 1) / 2];
    world.events[i] = event;
}

static struct event pop_event(void)
{
    struct event first = world.events[0], last = world.events[--world.event_count];
    size_t i = 0, n = world.event_count;

    for (;;) {
        size_t child = 2 * i + 1;
        if (child + 1 < n && is_earlier(&world.events[child + 1], &world.events[child]))
            child++;
        if (child >= n || !is_earlier(&world.events[child], &last))
            break;
        world.events[i] = world.events[child];
        i = child;
    }
    world.events[i] = last;
    return first;
}

/* Processes. ----------------------------------------------------------------------------------- */
struct process *sim_process_new(int64_t ppm)
{
    if (world.process_count == PROCESSES_MAX)
        sim_fail("too many processes");
    struct process *p = &world.processes[world.process_count++];
    p->number = world.process_count;
    p->pid = 10000 + p->number;
    p->ppm = ppm;
    p->base_ns = sim_between(1, 1000000) * SIM_S;
    p->thawed_ns = -SIM_S;
    return p;
}

int64_t sim_local_ns(const struct process *p)
{
    return p->base_ns + sim.now_ns + (int64_t)((__int128)sim.now_ns * p->ppm / 1000000);
}

/* The first moment at which sim_local_ns() is not below. */
int64_t sim_true_ns(const struct process *p, int64_t local_ns)
{
    if (local_ns == INT64_MAX)
        return SIM_NEVER;
    __int128 span = (__int128)(local_ns - p->base_ns) * 1000000;
    return (int64_t)((span + 1000000 + p->ppm - 1) / (1000000 + p->ppm));
}

void sim_kill(struct process *p)
{
    sim_note("p%d is killed", p->number);
    p->dead = true;
    fiber_drop_all(p);
}

bool sim_is_dead(int process_number)
{
    return world.processes[process_number - 1].dead;
}

void sim_freeze(struct process *p)
{
    sim_note("p%d is frozen", p->number);
    p->frozen = true;
    p->frozen_since_ns = sim.now_ns;
}

void sim_thaw(struct process *p)
{
    if (!p->frozen)
        return;
    sim_note("p%d runs again", p->number);
    p->frozen = false;
    p->frozen_ns += sim.now_ns - p->frozen_since_ns;
    p->thawed_ns = sim.now_ns;
}

/* Waiting. ------------------------------------------------------------------------------------- */
static void time_out(void *arg, uint64_t wait_number)
{
    struct fiber *f = arg;

    if (!f->used || f->waits == SIM_NOT_WAITING || f->wait_number != wait_number)
        return;
    f->timed_out = true;
    f->waits = SIM_NOT_WAITING;
}

bool sim_block(enum sim_wait waits, const void *object, int64_t until_ns)
{
    static uint64_t waits_so_far;
    struct fiber *f = sim.self;

    if (f == NULL)
        sim_fail("the test waits outside of every thread");
    if (f->process->is_child)
        sim_fail("C13: a forked child waits");
    f->waits = waits;
    f->object = object;
    f->wait_number = ++waits_so_far;
    f->timed_out = false;
    if (until_ns != SIM_NEVER)
        sim_at(until_ns > sim.now_ns ? until_ns : sim.now_ns, time_out, f, f->wait_number);
    fiber_leave();
    return !f->timed_out;
}

void sim_wake(struct fiber *f)
{
    f->waits = SIM_NOT_WAITING;
}

static void wake_visited(struct fiber *f, void *object)
{
    if (f->object == object)
        sim_wake(f);
}

void sim_wake_all(enum sim_wait waits, const void *object)
{
    sim_each_waiting(waits, wake_visited, (void *)object);
}

struct choice {
    const void *object;
    struct fiber *fiber;
    uint64_t seen;
};

static void choose_visited(struct fiber *f, void *ctx)
{
    struct choice *c = ctx;

    if (f->object == c->object && random_below(&sim.order, ++c->seen) == 0)
        c->fiber = f;
}

void sim_wake_one(enum sim_wait waits, const void *object)
{
    struct choice c = {.object = object};

    sim_each_waiting(waits, choose_visited, &c);
    if (c.fiber != NULL)
        sim_wake(c.fiber);
}

void sim_sleep(int64_t ns)
{
    sim_block(SIM_SLEEP, NULL, sim.now_ns + ns);
}

void sim_pause(void)
{
    if (sim.self != NULL && !sim.self->process->is_child &&
        random_below(&sim.order, 100) < (uint64_t)sim.switch_percent)
        fiber_leave();
}

/* Who is next. --------------------------------------------------------------------------------- */
static struct fiber *pick(void)
{
    struct fiber *ready[FIBERS_MAX], *best = NULL;
    size_t count = fiber_list_ready(ready);

    if (count == 0)
        return NULL;
    if (!sim.by_priority)
        return ready[random_below(&sim.order, count)];
    for (size_t i = 0; i < count; i++) {
        if (best == NULL || ready[i]->priority > best->priority)
            best = ready[i];
    }
    if (random_below(&sim.order, 40) == 0)
        best->priority -= 1 + (int64_t)random_below(&sim.order, 1000);
    return best;
}

static void count_step(struct process *p)
{
    sim.steps++;
    if (sim.now_ns - p->window_ns > SIM_S) {
        p->window_ns = sim.now_ns;
        p->steps = 0;
    }
    if (++p->steps > sim.steps_most)
        sim.steps_most = p->steps;
    if (p->steps > STEPS_MAX)
        sim_fail("a thread of p%d never pauses: %" PRIu64 " steps in %.3f s", p->number, p->steps,
                 (double)(sim.now_ns - p->window_ns) / 1e9);
}

void sim_run(bool (*over)(void), void (*look)(void))
{
    while (!over()) {
        while (world.event_count > 0 && world.events[0].when_ns <= sim.now_ns) {
            struct event e = pop_event();
            e.what(e.arg, e.n);
        }
        look();
        struct fiber *next = pick();
        if (next != NULL) {
            sim.now_ns += 200 + (int64_t)random_below(&sim.order, 3000);
            if (random_below(&sim.order, 1000) < (uint64_t)sim.stall_permille) {
                next->not_before_ns = sim.now_ns + (int64_t)random_below(&sim.order, 300 * SIM_US);
                continue;
            }
            count_step(next->process);
            fiber_enter(next);
            continue;
        }
        int64_t soon_ns = fiber_next_start();
        if (world.event_count > 0 && world.events[0].when_ns < soon_ns)
            soon_ns = world.events[0].when_ns;
        if (soon_ns == SIM_NEVER)
            sim_fail("nobody can go on, and nothing is due\n%s", fiber_describe_waiting());
        sim.now_ns = soon_ns;
    }
}

void sim_begin(uint64_t seed, bool history)
{
    sim = (struct sim){.seed = seed, .history = history};
    sim.order.state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    sim.fate.state = seed * UINT64_C(0xd1342543de82ef95) + 2;
    sim.bits.state = seed * UINT64_C(0xaf251af3b0f025b5) + 3;
    for (int i = 0; i < 4; i++) /* neighbouring seeds begin with neighbouring states */
        random_next(&sim.order), random_next(&sim.fate), random_next(&sim.bits);
    sim.now_ns = SIM_S;
    sim.switch_percent = (int)sim_between(5, 60);
    sim.by_priority = sim_chance(400);
    sim.stall_permille = sim_chance(500) ? (int)sim_between(1, 40) : 0;
    sim.spurious_permille = sim_chance(300) ? (int)sim_between(1, 50) : 0;
}
