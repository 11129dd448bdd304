/* The descriptors that we were given, which are the command's too. What the store's libraries open
 * is not, and not all of them see to it: a connection would be the command's as well, logged in. */
#ifndef CLI_INHERITED_FDS_H
#define CLI_INHERITED_FDS_H

#include <stdbool.h>
#include <stddef.h>

struct inherited_fds {
    bool known;
    int *fds;
    size_t count;
};

/* To be called before anything is opened. Where it cannot be known nothing is changed later. */
void inherited_fds_note(struct inherited_fds *ret_inherited);

/* All others are closed by exec. */
void inherited_fds_only(const struct inherited_fds *inherited);

void inherited_fds_clear(struct inherited_fds *inherited);

#endif
