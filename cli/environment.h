/* The environment of a command that runs under a lock.
 *
 * It gets HOLDFAST_URL (its password hidden, if it has one; none for the embedded default),
 * HOLDFAST_NAME, HOLDFAST_MODE, HOLDFAST_TOKEN and HOLDFAST_SEQUENCER (these two only where
 * the store makes tokens) and HOLDFAST_HELD, and loses what could hold a credential of ours, the
 * variables of password_env= among them.
 *
 * HOLDFAST_HELD lists what is held around the command: "NAME=STORE=SEQUENCER" for each, separated
 * by blanks. NAME is escaped (%XX), STORE a hash of the URL without its password. It lets a nested
 * `run` of the same lock be refused, instead of waiting for itself. */
#ifndef CLI_ENVIRONMENT_H
#define CLI_ENVIRONMENT_H

#include <stdbool.h>

#include "holdfast.h"

struct environment_lock {
    const char *url; /* NULL: the embedded default */
    hf_mode mode;
    const hf_lock *lock;
};

/* The environment to give to the command, freed by environment_free(); NULL: out of memory. */
char **environment_new(const struct environment_lock *lock);
void environment_free(char **environment);

/* Whether this process runs under `name` already, in this very store, by the word of HOLDFAST_HELD
 * and of the store: what has been lost since does not count. */
bool environment_holds(hf_client *client, const char *url, const char *name);

#endif
