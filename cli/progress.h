/* The line that tells, on a terminal, who holds the lock that is waited for. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdbool.h>

#include "holdfast.h"

struct progress;

/* For a wait for `name`, which must stay valid. Shows nothing before progress_tell(). NULL if stderr
 * is not a terminal, or on failure: the wait goes on without the line. */
struct progress *progress_new(hf_client *client, const char *name);

/* An hf_wait_callback with a struct progress (or NULL): from now on the line is shown and kept up to
 * date once a second, by a thread, until progress_free(). */
void progress_tell(size_t position, void *arg);

/* Ends the line, leaving nothing on the screen. NULL is fine. */
void progress_free(struct progress *progress);

#endif
