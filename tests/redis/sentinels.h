/* A master, its replica and the sentinels that watch them: those of tests/fleet/with-sentinel. */
#ifndef TESTS_REDIS_SENTINELS_H
#define TESTS_REDIS_SENTINELS_H

#include "redis/live.h"

extern struct pair {
    struct server master, replica; /* as they are now */
} now;
extern const char *sentinels; /* "127.0.0.1:26379,..." */

bool find_servers(void);                   /* from the environment; false: it is not set */
redisContext *sentinel(void);              /* a connection to the first */
const char *url_with(const char *options); /* "&name=value"; static storage */

int settle(void **state);  /* returns when the replica could take over */
int is_switched(void *at); /* for await(): by what this sentinel says, the replica is the master */
/* Sentinel's own, without a crash; makes the old master a replica at once. */
void fail_over(bool hang_up);

/* Each test has a name of its own: a replica may still remember what the last one did. */
void await_copied(const char *name);
void forget_copy(const char *name); /* as if it had never come to the replica */

#endif
