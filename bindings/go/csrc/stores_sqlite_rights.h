/* Who may share the database, and what its files and directories have to look like then.
 *
 * Whoever can create files beside a database can replace it: by a journal of his own that SQLite
 * would play back, a WAL, an index. No look at those files before SQLite opens them helps, as they
 * can be put there in between. So nobody but those who share the locks may create anything in the
 * directory, nor exchange it or one above it. */
#ifndef HF_STORES_SQLITE_RIGHTS_H
#define HF_STORES_SQLITE_RIGHTS_H

#include <sys/stat.h>

#include "base_error.h"

/* One user (0700 and 0600), or the members of a group (2770 and 0660). */
struct hf__rights {
    bool by_group;
    gid_t gid;
    uid_t root; /* who owns "/": another than 0 in a user namespace without root */
    mode_t file, directory;
    char group[64]; /* as the URL names it */
};

/* `group` NULL: one user. HF_INVALID: there is no such group; HF_DENIED: it is not ours. */
int hf__rights_init(struct hf__rights *r, const char *group, hf_error *err);

/* What is wrong with it, and what to do; NULL: nothing. */
const char *hf__rights_of_file(const struct hf__rights *r, const struct stat *st);
const char *hf__rights_of_directory(const struct hf__rights *r, const struct stat *st);

/* The same for a directory above the one of the database, which has that owner. */
const char *hf__rights_above(const struct hf__rights *r, const struct stat *st, uid_t owner);

#endif
