/* The environment of a command that runs under a lock.
 *
 * It gets HOLDFAST_URL (its password hidden, if it has one), HOLDFAST_NAME, HOLDFAST_MODE,
 * HOLDFAST_TOKEN and HOLDFAST_SEQUENCER (these two only where the store makes tokens), HOLDFAST_VALUE
 * (unless it has a NUL) and HOLDFAST_DOUBT, if the value was read, HOLDFAST_SEQUENCERS (of all, in the
 * order of the command line, if there are several) and HOLDFAST_HELD, and loses what could hold a credential of ours, the variables of password_env=
 * among them. These are handed down to a holdfast inside the command by base/handed_down.h.
 *
 * HOLDFAST_HELD lists what is held around the command: "NAME=STORE=SEQUENCER" for each, separated
 * by blanks. NAME is escaped (%XX), STORE a hash of the URL without its password. It lets a nested
 * `run` of the same lock be refused, instead of waiting for itself. */
#ifndef CLI_ENVIRONMENT_H
#define CLI_ENVIRONMENT_H

#include <stdbool.h>

#include "holdfast.h"

struct environment_lock {
    const char *url;
    hf_mode mode;
    const hf_lock *lock;
    int secrets_fd;    /* of environment_secrets() */
    const char *value; /* NULL: it was not read */
    size_t value_len;
    bool doubt;
    hf_lock *const *others; /* that are held with it */
    size_t other_count;
};

/* Memory with the secrets of this URL, for as long as it is open: -1 if it has none, or a negative
 * errno below that. */
int environment_secrets(const char *url);

/* The environment to give to the command, freed by environment_free(); NULL: out of memory. */
char **environment_new(const struct environment_lock *lock);
void environment_free(char **environment);

/* Whether, and how, this process runs under `name` already, in this very store, by the word of
 * HOLDFAST_HELD and of the store: what has been lost since does not count. */
enum environment_hold { ENVIRONMENT_FREE, ENVIRONMENT_SHARED, ENVIRONMENT_EXCLUSIVE };
enum environment_hold environment_holds(hf_client *client, const char *url, const char *name);

#endif
