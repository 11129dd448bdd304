/* The descriptors that we were given, which are the command's too. What the store's libraries open
 * is not, and not all of them see to it: a connection would be the command's as well, logged in. */
#ifndef CLI_INHERITED_H
#define CLI_INHERITED_H

#include <stdbool.h>
#include <stddef.h>

struct inherited {
    bool known;
    int *fds;
    size_t count;
};

/* To be called before anything is opened. Where it cannot be known nothing is changed later. */
void inherited_note(struct inherited *ret_inherited);

/* All others are closed by exec. */
void inherited_only(const struct inherited *inherited);

void inherited_clear(struct inherited *inherited);

#endif
