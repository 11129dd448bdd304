/* One run of a command under a lock, from the bid to the exit status. cmd_run.c checks the command
 * line and fills in what is asked for here. */
#ifndef CLI_RUN_H
#define CLI_RUN_H

#include "cli.h"
#include "leash.h"

struct run_settings {
    const char *name;
    const struct cli_names *with; /* what is to be held besides */
    char **argv;                  /* the command, ends with NULL */
    hf_mode mode;
    uint32_t limit;
    int64_t ttl_ms; /* HF_NEVER */
    int64_t wait_ms, patience_ms, lock_delay_ms;
    int64_t max_hold_ms; /* 0: none */
    int64_t kill_after_ms, margin_ms;
    enum leash_policy policy;
    int signal;
    bool guard;
    int conflict_status;
    int status_fd; /* -1: none */
    const char *note;
    int64_t at_least_ms; /* the lock stays closed so long after it was taken; 0: it opens at once */
    bool once;           /* --every: only if the command ends well, and a busy lock is no failure */
    int wanted_signal;   /* for the command, when others wait; 0: none */
    const char *value;   /* to be written before the command runs; NULL */
    const char *value_file; /* filled before it runs, kept if it ends well; NULL */
};

/* Gives the exit status, after every sentence and the JSON line. */
int run(const struct cli *cli, const struct run_settings *settings);

#endif
