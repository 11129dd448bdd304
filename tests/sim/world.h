/* The world that a seed makes: one clock, processes that read it at rates of their own, and threads
 * of which one runs at a time.
 *
 * The engine runs here unchanged. What it asks of the system (threads, mutexes, conditions,
 * descriptors, clocks, random bits, memory) is answered by the wrap_*.c files, which the linker puts
 * in place of the C library's functions in this one program. A thread is a fiber: it runs until it
 * calls one of those functions, and there the seed decides whether it goes on, or who does. So a
 * seed is one interleaving, always the same.
 *
 * There is one world in a program, and one seed in a process: main.c forks for each. That is why its
 * state is global, and why nothing has to be tidied up after a failure. */
#ifndef TESTS_SIM_WORLD_H
#define TESTS_SIM_WORLD_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/random.h"

#define SIM_US    INT64_C(1000)
#define SIM_MS    INT64_C(1000000)
#define SIM_S     INT64_C(1000000000)
#define SIM_NEVER INT64_MAX

#define SIM_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))

/* A program on a machine of its own. A frozen one (SIGSTOP, a suspended machine) does nothing while
 * its clock runs on; a dead one does nothing any more. */
struct process {
    int number; /* from 1; 0 is the test itself */
    pid_t pid;
    int64_t ppm, base_ns; /* its clock: base + true time, so many millionths faster */
    bool dead, frozen;
    bool is_child; /* what runs now is a forked child of it */
    int64_t frozen_since_ns, frozen_ns, thawed_ns;
    int64_t window_ns; /* the second for which steps are counted */
    uint64_t steps;
    void *program; /* program.h */
};

enum sim_wait {
    SIM_NOT_WAITING,
    SIM_MUTEX,
    SIM_CONDITION,
    SIM_JOIN,
    SIM_FILES,
    SIM_SLEEP,
    SIM_REPLY,
};

struct fiber {
    int number; /* from 1, never used again; also its pthread_self() */
    struct process *process;
    char name[24];
    bool used, started, done, joined;
    bool of_library; /* made by the code under test */
    enum sim_wait waits;
    const void *object; /* what for */
    uint64_t wait_number;
    bool timed_out;
    int64_t not_before_ns; /* preempted until then */
    int64_t priority;
    void *(*run)(void *);
    void *arg;
    jmp_buf here;
    char *stack;
    unsigned char *thread_local_data;
    int saved_errno;
    struct call *call; /* what the program under way here has asked the library for: ledger.h */
    uint64_t mutexes;  /* taken so far */
    bool for_test;     /* what it allocates now is the test's */
};

struct sim {
    uint64_t seed;
    bool history; /* tell what happens */
    int64_t now_ns;
    struct random order, fate, bits; /* who is next; what goes wrong; what the system's bits are */
    struct fiber *self;              /* NULL: the scheduler */
    int switch_percent;              /* how often a call into the system lets others run */
    int stall_permille;
    bool by_priority;
    int spurious_permille;
    uint64_t steps, steps_most; /* of the world; of a process in a second */
};
extern struct sim sim;

void sim_begin(uint64_t seed, bool history);

/* Runs until `over` says so. Calls `look` whenever time has passed. */
void sim_run(bool (*over)(void), void (*look)(void));

/* The seed has found a fault. Does not return. */
void sim_fail(const char *format, ...) SIM_PRINTF(1, 2) __attribute__((noreturn));

/* One line of history. */
void sim_note_line(const char *format, ...) SIM_PRINTF(1, 2);
#define sim_note(...)                   \
    do {                                \
        if (sim.history)                \
            sim_note_line(__VA_ARGS__); \
    } while (0)

/* Events. `what` runs in the scheduler and must not wait. */
void sim_at(int64_t when_ns, void (*what)(void *arg, uint64_t n), void *arg, uint64_t n);

/* Processes. */
struct process *sim_process_new(int64_t ppm);
int64_t sim_local_ns(const struct process *process);                  /* what its clock shows now */
int64_t sim_true_ns(const struct process *process, int64_t local_ns); /* when it shows that */
void sim_kill(struct process *process);
void sim_freeze(struct process *process);
void sim_thaw(struct process *process);
bool sim_is_dead(int process_number);
int sim_library_threads(const struct process *process);

/* Threads. `process` NULL is that of the caller. */
struct fiber *sim_spawn(struct process *process, const char *name, void *(*run)(void *), void *arg);
bool sim_is_finished(const struct fiber *fiber);

/* Waits for somebody to wake it, until `until_ns` of the true time at most. False: that came. */
bool sim_block(enum sim_wait waits, const void *object, int64_t until_ns);
void sim_wake(struct fiber *fiber);
void sim_wake_all(enum sim_wait waits, const void *object);
void sim_wake_one(enum sim_wait waits, const void *object);
void sim_each_waiting(enum sim_wait waits, void (*visit)(struct fiber *fiber, void *ctx),
                      void *ctx);
void sim_sleep(int64_t ns); /* of the true time */

/* Here others may run. */
void sim_pause(void);

/* Chance. */
static inline bool sim_chance(int permille)
{
    return random_below(&sim.fate, 1000) < (uint64_t)permille;
}
static inline int64_t sim_between(int64_t least, int64_t most)
{
    return least + (int64_t)random_below(&sim.fate, (uint64_t)(most - least) + 1);
}

/* Memory of the test's own, for the rest of the seed. Zeroed. */
void *sim_alloc(size_t size);

/* wrap_heap.c: what the processes that live have not freed; what was written after it was freed. */
void sim_check_heap(void);

/* wrap_files.c: open descriptors of processes that live; whether one is readable. */
void sim_check_files(void);
bool sim_is_readable(int fd);
void sim_raise(int fd); /* an eventfd is written to, by nobody in the process */

/* wrap_system.c: between these the caller is a forked child of its process, where the kernel has
 * emptied the pages that asked for it. Nothing may wait, send or take a mutex there. */
void sim_child_begin(void);
void sim_child_end(void);

#endif
