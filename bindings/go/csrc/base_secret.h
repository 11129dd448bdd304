/* A password, from wherever a URL says it is; or another secret of one line. */
#ifndef HF_BASE_SECRET_H
#define HF_BASE_SECRET_H

#include <stdio.h>

#include "holdfast.h"

struct hf__secret_source {
    const char *given;                /* in the URL itself */
    const char *file, *env;           /* a file whose first line it is; a variable */
    FILE *stream;                     /* instead of all these: whose next line it is */
    const char *file_name, *env_name; /* what these options are called; NULL: password_file, _env */
};

/* One of the three, or none: *ret_secret is NULL then. A file must
 * not be open to others: mode 0600, or 0640 if it is root's. Errors: HF_INVALID (given twice, or no
 * such variable or line), HF_DENIED (the file), HF_NO_MEMORY. */
int hf__secret_read(const struct hf__secret_source *from, char **ret_secret, hf_error *err);

/* Wipes it and frees it; NULL is fine. */
void hf__secret_free(char *secret);

#endif
