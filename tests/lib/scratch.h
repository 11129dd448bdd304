/* A directory that is thrown away, as cmocka's group set-up and tear-down. In memory if it can be:
 * tests that make thousands of files need no disk. *state is its path. */
#ifndef TESTS_LIB_SCRATCH_H
#define TESTS_LIB_SCRATCH_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline int scratch_make(void **state)
{
    static char shm[] = "/dev/shm/holdfast-test-XXXXXX", tmp[] = "/tmp/holdfast-test-XXXXXX";

    *state = mkdtemp(shm);
    if (*state == NULL)
        *state = mkdtemp(tmp);
    return *state != NULL ? 0 : -1;
}

static inline int scratch_remove_one(const char *path, const struct stat *info, int kind,
                                     struct FTW *where)
{
    (void)info, (void)kind, (void)where;
    return remove(path);
}

static inline int scratch_remove(void **state)
{
    return nftw(*state, scratch_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

#endif
