/* Two processes that work together, each with an end of a pair of sockets to tell the other. */
#ifndef BENCH_TWO_H
#define BENCH_TWO_H

#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

/* One of the two; `peer` leads to the other. */
typedef void two_role(const void *plan, int first, int peer);

static inline void tell(int peer)
{
    BENCH_MUST(send(peer, "", 1, 0) == 1, "send failed");
}

static inline void be_told(int peer)
{
    char byte;
    BENCH_MUST(recv(peer, &byte, 1, 0) == 1, "recv failed");
}

/* For hf_options.on_wait: tells the other one, once in a wait, that this one is queued. */
struct waiting {
    int peer, told;
};

static inline void tell_of_wait(size_t position, void *arg)
{
    struct waiting *waiting = arg;
    (void)position;
    if (!waiting->told)
        tell(waiting->peer);
    waiting->told = 1;
}

/* Until both have ended. */
static inline void run_two(const void *plan, two_role *play)
{
    int ends[2];
    BENCH_MUST(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) == 0, "socketpair failed");
    for (int i = 0; i < 2; i++) {
        pid_t pid = fork();
        BENCH_MUST(pid >= 0, "fork failed");
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL); /* if the other one fails */
            play(plan, i == 0, ends[i]);
            exit(0);
        }
    }
    for (int i = 0; i < 2; i++) {
        int status;
        BENCH_MUST(wait(&status) > 0 && status == 0, "one of the two failed");
    }
    close(ends[0]);
    close(ends[1]);
}

#endif
