/* The line that tells, on a terminal, who holds the lock that is waited for. */
#ifndef CLI_WAITING_H
#define CLI_WAITING_H

#include <stdbool.h>

#include "holdfast.h"

struct waiting;

/* For a wait for `name`, which must stay valid. Shows nothing before waiting_tell(). NULL if stderr
 * is not a terminal, or on failure: the wait goes on without the line. */
struct waiting *waiting_new(hf_client *client, const char *name);

/* An hf_wait_callback with a struct waiting (or NULL): from now on the line is shown and kept up to
 * date once a second, by a thread, until waiting_free(). */
void waiting_tell(size_t position, void *arg);

/* Ends the line, leaving nothing on the screen. NULL is fine. */
void waiting_free(struct waiting *waiting);

#endif
