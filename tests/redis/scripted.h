/* A server that answers what the test says: a thread that reads requests on a port of loopback. */
#ifndef TESTS_REDIS_SCRIPTED_H
#define TESTS_REDIS_SCRIPTED_H

#include <stddef.h>

struct scripted;

/* It answers the log-in, TIME and PING as a server does. `info` is what INFO says. */
struct scripted *scripted_start(const char *info);
/* It is another server from now on: this is what INFO says, and all connections are closed. */
void scripted_restart(struct scripted *server, const char *info);
int scripted_port(const struct scripted *server);
void scripted_stop(struct scripted *server);

/* From now on a request whose first word is `command` ("EVALSHA", in upper case) is answered by these
 * bytes; NULL: by an error. One at a time; `command` NULL: every request but those of the log-in. */
void scripted_answer(struct scripted *server, const char *command, const char *bytes, size_t len);

/* How many requests came, and how many bytes were sent. */
size_t scripted_requests(struct scripted *server);
size_t scripted_sent(struct scripted *server);

#endif
