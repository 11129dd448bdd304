/* What the tests against a real server share: the server as a stranger sees it, and small helpers.
 * The server is the one of tests/fleet/with-redis. */
#ifndef TESTS_REDIS_LIVE_H
#define TESTS_REDIS_LIVE_H

#include <hiredis/hiredis.h>

#include "lib/live.h"

/* A plain connection, by which the test acts as a stranger. */
redisContext *stranger(void);

/* Such a connection for the length of one test, which begins on an empty server. */
extern redisContext *redis;
int set_up(void **state);
int tear_down(void **state);

/* One command; fails the test if the server refuses it. Free the reply. */
redisReply *ask(redisContext *c, const char *format, ...);

/* The same, for its number, or its text (NULL: nil; free it). */
long long ask_number(redisContext *c, const char *format, ...);
char *ask_text(redisContext *c, const char *format, ...);

/* The number that INFO shows behind "<field>"; 0: it is not there. */
long long info_number(const char *section, const char *field);
long long calls_of(const char *command); /* since CONFIG RESETSTAT */

/* For await(): a script was called since then; one key is watched by somebody. */
int was_called(void *unused);
int is_watched(void *unused);

/* "redis://127.0.0.1:<port>/0?<options>"; port 0: the server's own. Static storage per thread. */
const char *url_of(int port, const char *options);

int free_port(void);

/* Another server, on loopback and in a directory that is thrown away. */
struct server {
    int pid, port;
    char dir[64];
};

/* Starts it, with more options; `s->dir` "" makes a new one, else it starts on what is there. */
void server_start(struct server *s, const char *const *options);
void server_kill(struct server *s);  /* at once */
void server_clear(struct server *s); /* kills it and removes its directory */
redisContext *server_stranger(const struct server *s);

hf_client *open_live(const char *options); /* at the server itself */

#endif
