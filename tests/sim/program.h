/* The programs that use the library: what their threads do, and their callbacks; and what happens
 * to them. */
#ifndef TESTS_SIM_PROGRAM_H
#define TESTS_SIM_PROGRAM_H

#include "ledger.h"

#define PROGRAMS_MAX 5
#define WORKERS_MAX  4
#define SIM_HOMES    12 /* names "home0" and so on, which few want at a time */

/* What a seed may do: all of it, less what the command line says (--without). */
#define SIM_FEATURES(X)                                                                    \
    X(CALLBACKS, "callbacks", "callbacks call the library")                                \
    X(CLOSES, "closes", "clients are closed while others use them")                        \
    X(KILLS, "kills", "processes die")                                                     \
    X(FREEZES, "freezes", "processes stand still")                                         \
    X(FORKS, "forks", "processes fork")                                                    \
    X(BREAKS, "breaks", "locks are broken")                                                \
    X(ADOPTS, "adopts", "locks are detached and adopted")                                  \
    X(NEVER, "never", "locks that never expire")                                           \
    X(CANCELS, "cancels", "waits are cancelled")                                           \
    X(LOSSES, "losses", "the server loses its last writes")                                \
    X(STEPS, "steps", "the server's clock steps")                                          \
    X(WEATHER, "weather", "requests are lost, late, slow, refused, repeated")              \
    X(CROWDS, "crowds", "many locks in one client")                                        \
    X(EVENTS, "events", "acquires and releases are started, and told by events")           \
    X(VALUES, "values", "values, releases that keep a lock closed, holders that are told") \
    X(METRICS, "metrics", "clients that count and have a log")                             \
    X(CACHE, "cache", "released locks stay with their clients")

enum feature {
#define X(id, name, text) FEATURE_##id,
    SIM_FEATURES(X)
#undef X
        FEATURES
};

struct program {
    struct process *process;
    int slot, workers_left;
    hf_client *client;
    bool closing, finished;
    struct call *kept;         /* whose cached lock was released last, and may be here yet */
    struct grant *side;        /* a lock that whoever likes may release */
    const struct fiber *taker; /* of the next event; NULL: nobody waits for one */
    uint64_t taker_mutexes;    /* that it had taken before */
};

struct workload {
    bool with[FEATURES];
    int rooms, programs, workers, ops;
    struct program *program[PROGRAMS_MAX];
    int64_t quiet_at_ns;
};
extern struct workload workload;

/* program.c */
void program_start(int slot);
void program_close(struct program *program, bool again); /* on a thread of it */
/* `told`: with callbacks. NULL: not obtained. */
struct grant *program_acquire(struct program *program, struct room *room, const hf_options *opt,
                              bool told);
void program_release(struct grant *grant);
hf_client *program_client(struct program *program); /* waits until it is open */

/* events.c: as the functions of the library, but started and told by an event. What `opt` points to
 * may be freed when it returns. */
int acquire_by_event(struct program *program, struct call *call, hf_lock **ret_lock, hf_error *err);
int release_by_event(struct program *program, struct call *call, hf_lock *lock, hf_error *err);

/* worker.c: what one thread does; arg is the program. */
void *worker_run(void *arg);

/* callbacks.c */
void callbacks_choose(struct call *call, hf_options *opt);

/* nemesis.c: plans what goes wrong; ends with the quiet. */
void nemesis_begin(void);
void nemesis_check_end(void);

#endif
