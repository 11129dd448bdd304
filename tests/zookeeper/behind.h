/* For tests of what goes wrong on the way to a server: a proxy before the first of them, and a
 * stranger who sees what the server has. */
#ifndef TESTS_ZOOKEEPER_BEHIND_H
#define TESTS_ZOOKEEPER_BEHIND_H

#include "lib/proxy.h"
#include "zookeeper/live.h"

extern struct proxy *proxy;
extern zhandle_t *zh;
extern char behind[40]; /* the address of the proxy */

int set_up(void **state);
int tear_down(void **state);

/* For await(). */
int has_children(void *path);
int is_empty(void *path);
int has_answered(void *count); /* more than so many replies came through the proxy */

#endif
