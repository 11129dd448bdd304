/* What `run` tells: the JSON line of --status-fd, and notices that never block. */
#ifndef CLI_STATUS_H
#define CLI_STATUS_H

#include <stdbool.h>

#include "cli.h"
#include "holdfast.h"

/* Everything that became of one run. */
struct status {
    const char *name;
    bool obtained;
    int64_t waited_ms, held_ms;
    uint64_t generation; /* 0: none */
    bool lost;           /* or given up */
    hf_cause cause;
    char error[sizeof((hf_error *)0)->text]; /* behind the cause; "": none */
    bool started;
    bool ended; /* the command has ended, as wait_status says */
    int wait_status;
    int release;         /* what hf_lock_release() gave; once obtained */
    int64_t may_hold_ms; /* of an unknown outcome: so long the store may hold it; 0: known */
    int status;          /* ours */
    bool of_command;     /* it is the command's own */
};

/* One JSON object in one line, with one write. False, and errno, if it could not be written. */
bool status_write(int fd, const struct status *status);

/* One line on stderr, "holdfast: ...", control characters escaped. Given up if stderr does not take
 * it at once: a terminal held by Ctrl-S must not keep us from killing in time. */
void status_notice(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
