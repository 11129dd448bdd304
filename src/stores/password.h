/* Where a password may come from: the URL itself, the first line of a file, or the environment. */
#ifndef HF_STORES_PASSWORD_H
#define HF_STORES_PASSWORD_H

#include "core/error.h"

struct hf__password_from {
    const char *given;                    /* in the URL; NULL: not there. So are the next two */
    const char *file, *env;               /* what the options say */
    const char *file_option, *env_option; /* their names, for messages */
};

/* `*ret_password` is the caller's to clear and free, and NULL if there is none. HF_INVALID: two of
 * them, or one that has nothing to give; HF_DENIED: the file cannot be read. */
int hf__read_password(const struct hf__password_from *from, char **ret_password, hf_error *err);

#endif
