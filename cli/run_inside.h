/* The inside of run.h. */
#ifndef CLI_RUN_INSIDE_H
#define CLI_RUN_INSIDE_H

#include "base/env.h"
#include "inherited_fds.h"
#include "run.h"
#include "status.h"
#include "supervise.h"

struct run {
    const struct cli *cli;
    const struct run_settings *set;
    const char *url; /* of the store, whatever named it */
    char *embedded;  /* the same if nobody did; NULL otherwise */
    int secrets_fd;  /* memory with the URL's password, for the command's own calls; -1: none */
    hf_cancel *cancel;
    hf_client *client;
    hf_lock *lock;
    hf_lock *others[HF_TOGETHER_MAX]; /* that it is held with */
    size_t other_count;
    int lost_fd; /* readable when any of several is lost; -1: there is one lock only */
    int signal_fd;
    struct inherited_fds inherited;
    struct terminal terminal;
    struct guard guard;
    struct child_plan plan;
    struct child child;
    struct supervise watched;
    struct leash leash;
    struct status status;
    char shown[CLI_NAME_SHOWN];       /* the name */
    char why[sizeof(hf_error) + 200]; /* it was lost */
    struct progress *progress;
    bool inside_a_reader;         /* of the same lock: a wait would be for ourselves */
    bool had_terminal;            /* the command, when it ended */
    int64_t obtained_ns, lost_ns; /* 0: not lost */
    int wanted_fd;                /* readable when others have come to wait; -1: not asked for */
    char value[HF_VALUE_MAX + 1]; /* with --value or --value-file */
    size_t value_len;
    int doubt;
};

/* run_together.c: of all the locks that the command runs under. */
int64_t run_remaining_ms(const struct run *r); /* of the one that ends first */
hf_cause run_cause(const struct run *r);       /* of the first that is lost */
void run_renew(struct run *r);
int run_acquire_all(struct run *r, const hf_options *options, hf_error *err);
int run_lost_fd(struct run *r); /* negative: there is none, look now and then */
int run_release_all(struct run *r, int64_t at_least_ms, hf_error *err);

/* Whether the command has ended with status 0. */
bool run_ended_well(const struct run *r);

static inline int64_t run_now_ns(void)
{
    return hf__now_ns(&hf__system_env);
}

/* run_bid.c: obtains the lock. 0, or the exit status. */
int run_acquire(struct run *r);

/* A lease that has little left (a slow claim, a stopped machine) would end the command at once: it
 * is renewed before. 0, or the exit status. */
int run_freshen(struct run *r);

/* run_value.c: reads the value that the command is to see, or writes its own; afterwards keeps what it has
 * left. 0, or the exit status. */
int run_open_value(struct run *r);
int run_keep_value(struct run *r);

/* The cause in words, and behind a lease that ran out what kept it from being renewed: r->why. */
void run_explain(struct run *r, hf_cause cause);

/* run_release.c: gives the lock back, if it is there, and notes whether it was still ours. */
void run_release(struct run *r);

#endif
