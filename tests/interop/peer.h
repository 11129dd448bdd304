/* Somebody else's lock client, in a process of its own: one of tests/interop/peers, as
 * tests/interop/with-peers has set it up. */
#ifndef TESTS_INTEROP_PEER_H
#define TESTS_INTEROP_PEER_H

#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct peer {
    pid_t pid;
    FILE *to, *from;
};

/* Starts it and waits until it is ready; fails the test if it does not come up. */
void peer_start(struct peer *peer);

/* Ends it, as a crash does: with no word to the server. */
void peer_kill(struct peer *peer);

/* Sends a line; the answer is not waited for. */
__attribute__((format(printf, 2, 3))) void peer_tell(struct peer *peer, const char *format, ...);

/* The next answer must be this word; fails the test otherwise, also if none comes in 20 s. The time
 * in it, in microseconds of the monotonic clock. */
int64_t peer_says(struct peer *peer, const char *word);

/* Both. */
__attribute__((format(printf, 3, 4))) int64_t peer_ask(struct peer *peer, const char *word,
                                                       const char *format, ...);

#endif
