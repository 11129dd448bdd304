/* What the cases of the suite share.
 *
 * A case is a function that runs in a process of its own, with names of its own, and ends at the
 * first expectation that does not hold. It uses the public header only. It waits for events, never
 * for luck: everything named await_ ends with the event, or fails the case after AWAIT_MS.
 *
 * Where a case needs other processes it starts them as actors, before it opens its first client: a
 * process that has threads is not forked. */
#ifndef CONFORMANCE_HARNESS_H
#define CONFORMANCE_HARNESS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "holdfast.h"

/* ThreadSanitizer cannot follow a child of a process with threads that starts threads of its
 * own. */
#if defined(__SANITIZE_THREAD__)
#define UNDER_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNDER_TSAN 1
#endif
#endif
#ifndef UNDER_TSAN
#define UNDER_TSAN 0
#endif

/* AddressSanitizer's allocator, unlike the C library's, is not made ready for a fork: if another
 * thread is in it just then, the child stands still when it comes there. */
#if defined(__SANITIZE_ADDRESS__)
#define UNDER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define UNDER_ASAN 1
#endif
#endif
#ifndef UNDER_ASAN
#define UNDER_ASAN 0
#endif

#define AWAIT_MS 15000 /* an event that has not come by then does not come */
#define SHORT_MS 300   /* a lease that is meant to run out */
#define LONG_MS  20000 /* a lease that is not */

struct ctx {
    const char *url;
    uint32_t can;
    int crowd;       /* how many wait where many wait */
    bool in_turn;    /* each of them comes when the one before is seen to wait */
    char prefix[40]; /* of every name of this case */
    hf_client *clients[32];
    size_t client_count;
    char names[64][128];
    size_t name_count;
    hf_error err;
};

/* The case says which capabilities it needs; without them it is skipped, and `declared` cases see
 * to it that the calls are refused. */
struct conformance_case {
    const char *name; /* the rule, with its clause in front: "c5_timed_out_waiter_never_holds" */
    uint32_t needs;   /* enum hf_capability */
    void (*run)(struct ctx *ctx);
    bool alone; /* it keeps the store so busy that no other case runs beside it */
};
/* clang-format off */
#define CASE(needs, name)       {#name, needs, name, false}
#define CASE_ALONE(needs, name) {#name, needs, name, true}
/* clang-format on */

/* Each file of cases ends in such a table, which ends with a NULL name. */
extern const struct conformance_case cases_declared[], cases_mutex[], cases_wait[], cases_rw[],
    cases_lease[], cases_lost[], cases_delay[], cases_names[], cases_reentry[], cases_fence[],
    cases_never[], cases_fork[], cases_crowd[], cases_lost_reply[], cases_wake[], cases_broken[],
    cases_close[], cases_detach[], cases_cut_off[], cases_attacks[], cases_at_least[],
    cases_value[], cases_wanted[], cases_watch[], cases_together[], cases_history[], cases_cached[];

/* Expectations ------------------------------------------------------------- */
#define CHECK(condition) \
    ((condition) ? (void)0 : fail_at(__FILE__, __LINE__, "not true: %s", #condition))
#define EXPECT(code, call) expect_at(__FILE__, __LINE__, #call, code, call)

_Noreturn void fail_at(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void expect_at(const char *file, int line, const char *call, int expected, int got);

/* By calls or, with --events, by events: by_events.c. */
extern bool by_events;
int acquire_either_way(hf_client *client, const char *name, size_t name_len, const hf_options *opt,
                       hf_lock **ret_lock, hf_error *err);
int release_either_way(hf_lock *lock, hf_error *err);
int release_after_and_forget(hf_lock *lock, int64_t at_least_ms, hf_error *err);
int detach_and_forget(hf_lock *lock, hf_error *err);
#define hf_acquire            acquire_either_way
#define hf_lock_release       release_either_way
#define hf_lock_release_after release_after_and_forget
#define hf_lock_detach        detach_and_forget

/* Clients, names, options -------------------------------------------------- */

/* "<prefix of the case><suffix>". On the case's main thread only. */
const char *name_of(struct ctx *ctx, const char *suffix);

/* Closed at the end of the case, unless it was closed with close_client(). */
hf_client *open_client(struct ctx *ctx);
hf_client *open_impatient(struct ctx *ctx);                  /* with an op_timeout of 300 ms */
hf_client *open_with(struct ctx *ctx, const char *options);  /* URL with these options */
hf_client *open_fault(struct ctx *ctx, const char *options); /* fault+URL with these options */
hf_client *open_traced(struct ctx *ctx, const char *options,
                       const char *path); /* fault+trace+URL */
void close_client(struct ctx *ctx, hf_client *client);

/* Exclusive, and of an owner that nobody else is. */
hf_options options(int64_t ttl_ms, int64_t wait_ms);
hf_options shared(int64_t ttl_ms, int64_t wait_ms);

/* Acquires; fails the case if it cannot. */
#define TAKE(ctx, client, name, opt) take_at(__FILE__, __LINE__, ctx, client, name, opt)
hf_lock *take_at(const char *file, int line, struct ctx *ctx, hf_client *client, const char *name,
                 hf_options opt);

/* Acquires without waiting and releases at once: HF_OK, HF_BUSY, ... */
int probe(hf_client *client, const char *name);
int probe_shared(hf_client *client, const char *name);

uint64_t generation_of(const hf_lock *lock);

int64_t now_ms(void); /* CLOCK_BOOTTIME */

/* Looking into the store, and waiting for what it shows -------------------- */
size_t count_place(hf_client *client, const char *name, hf_place place);
void await_count(hf_client *client, const char *name, hf_place place, size_t count);
size_t in_queue(hf_client *client, size_t waiting);   /* how many of them the store can show */
void await_free(hf_client *client, const char *name); /* nobody inside, lingering or waiting */
void await_lost(hf_lock *lock);                       /* by its descriptor */
void await_renewal(const hf_lock *lock);              /* until the keeper has renewed its lease */
void await_age(int64_t since_ms, int64_t ms);         /* until so much time has passed */
/* Until a trace has so many lines of this operation ("": any) with this answer. */
void await_line(const char *path, const char *operation, const char *answer, size_t count);

/* The only entry of this name; fails the case if there are more or less. */
struct found {
    hf_place place;
    hf_mode mode;
    uint64_t generation;
    int64_t ttl_ms, lock_delay_ms, age_ms, remaining_ms, pid;
    int claimed;
    char ticket[HF_TICKET_SIZE], note[HF_NOTE_MAX + 1];
};
struct found look_at(hf_client *client, const char *name);

/* Bids on threads ---------------------------------------------------------- */
struct bid {
    hf_client *client;
    const char *name;
    hf_options opt;
    pthread_t thread;
    int code; /* what hf_acquire gave */
    hf_lock *lock;
    hf_error err;
    int64_t at_ms;  /* when it returned */
    uint64_t order; /* counts the bids of a case that have got their lock, from 1 */
    bool done;      /* use bid_is_done() */
    bool joined;
    bool waits; /* it has been told to wait, on a store that shows no queue */
};

/* Starts a thread that acquires. `bid` must stay where it is until bid_join(). */
void bid_start(struct bid *bid, hf_client *client, const char *name, hf_options opt);
/* The same, and waits until the store shows `waiting` bidders in the queue; if it has none, until
 * this one has been told to wait. */
void bid_queue(struct bid *bid, hf_client *client, const char *name, hf_options opt,
               size_t waiting);
bool bid_is_done(struct bid *bid);
int bid_join(struct bid *bid);           /* its code */
hf_lock *bid_join_lock(struct bid *bid); /* it must have got it */

/* Other processes ---------------------------------------------------------- */
struct actor {
    pid_t pid;
    int fd;
};
typedef void actor_part(struct ctx *ctx, int fd, void *arg);

/* Before the first client of the case. The part runs in a process of its own, which ends with it,
 * without closing its clients: what it holds then, it has abandoned. */
struct actor actor_start(struct ctx *ctx, actor_part *part, void *arg);
void actor_kill(struct actor *actor); /* kill -9 */
/* SIGSTOP, and not inside a step of the store: what a process that was stopped there has locked
 * stays locked for everybody, which is true of any store with locks of its own and not what cases
 * ask. */
void actor_stop(struct ctx *ctx, struct actor *actor);
void actor_go_on(struct actor *actor);
void actor_join(struct actor *actor); /* it must have ended well */
void say(int fd, char word);
void hear(int fd, char word); /* waits for it; any other fails the case */

/* A part: it waits for a lock when it hears 'b', and says 'h' when it has it; when it hears 'r' it
 * releases it, and says 'd'. */
struct waiting_part {
    const char *name;
    hf_options opt;
};
actor_part wait_and_hold;

/* A lock that this process holds, and an actor with that part, alone in the queue. Before the first
 * client of the case. */
struct turn {
    struct actor next;
    hf_client *client;
    const char *name;
    hf_lock *lock;
};
struct turn turn_start(struct ctx *ctx, hf_options opt);

/* A lock is released to a waiter that is frozen, and goes on to the next one. */
void pass_over_frozen(struct ctx *ctx, hf_options frozen, hf_options next);

void *shared_memory(size_t size); /* zeroed; with actors that are started later */

/* The runner's side -------------------------------------------------------- */

/* Runs one case in this process, checks that nothing is left in the store, and exits. */
_Noreturn void run_case(const struct conformance_case *c, struct ctx *ctx);

#endif
