/* The inside of guard.h: what both processes know.
 *
 * The wrapper sends one message, the order to start, with the environment that holds the token.
 * Everything else is in shared memory, where nothing can be queued up or lost: a byte in the socket
 * only says "look". So a wrapper that is stopped for long misses nothing, and a guard that lags
 * holds up nobody. */
#ifndef CLI_GUARD_INSIDE_H
#define CLI_GUARD_INSIDE_H

#include <stdatomic.h>
#include <stddef.h>
#include <sys/socket.h>

#include "guard.h"

struct guard_state {
    _Atomic int64_t kill_at_ns;
    _Atomic int start_error; /* -1: not started yet */
    _Atomic pid_t pid;       /* of the command, once started */
    _Atomic int64_t born_ns;
    _Atomic uint64_t stops; /* how often it was stopped or continued << 32, the signal or 0 */
    _Atomic int wait_status;
    _Atomic bool ended; /* as wait_status says */
};

/* The order to start. The environment follows: `count` strings, `size` bytes with their NULs. */
struct order {
    bool lend_terminal;
    size_t count, size;
};

static inline void guard_poke(int fd)
{
    /* If it does not fit there are others, which are as good. */
    send(fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* guard_process.c: what the guard does, on its end of the socket, all signals blocked. */
void guard_be(int socket_fd, struct guard_state *state, const struct child_plan *plan)
    __attribute__((noreturn));

#endif
