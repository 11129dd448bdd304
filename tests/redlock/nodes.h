/* The five servers that with-redlock has started, for tests that freeze, kill and restart them. */
#ifndef TEST_REDLOCK_NODES_H
#define TEST_REDLOCK_NODES_H

#include <stdbool.h>
#include <stddef.h>

#define NODES 5

/* From the environment. False: it is not set. */
bool nodes_find(void);

const char *nodes_list(void); /* "host:port,..." */

void node_freeze(size_t node); /* returns when it has stopped */
void node_thaw(size_t node);
void node_kill(size_t node);    /* kill -9; returns when it is gone */
void node_restart(size_t node); /* without its data; returns when it answers */

/* A command of plain words; the reply as text, borrowed until the next call: "(nil)", "1", "OK". */
const char *node_ask(size_t node, const char *command, const char *key);

/* Thaws and restarts what is not running, empties all, and waits for their answers. */
void nodes_reset(void);
void nodes_stop(void); /* those that were restarted */

#endif
