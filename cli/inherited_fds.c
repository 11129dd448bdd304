/* See inherited_fds.h. */
#include "inherited_fds.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/banned.h"

/* Calls `found` for each that is open; false: it stopped, or there is no /proc. */
static bool each(bool (*found)(int fd, void *arg), void *arg)
{
    DIR *dir = opendir("/proc/self/fd");
    const struct dirent *entry;
    bool goes_on = dir != NULL;

    while (goes_on && (entry = readdir(dir)) != NULL) {
        char *end;
        long fd = strtol(entry->d_name, &end, 10);
        if (end != entry->d_name && *end == '\0' && fd != dirfd(dir))
            goes_on = found((int)fd, arg);
    }
    if (dir != NULL)
        closedir(dir);
    return goes_on;
}

static bool note(int fd, void *arg)
{
    struct inherited_fds *inherited = arg;
    int *grown = realloc(inherited->fds, (inherited->count + 1) * sizeof *grown);

    if (grown == NULL)
        return false;
    inherited->fds = grown;
    inherited->fds[inherited->count++] = fd;
    return true;
}

void inherited_fds_note(struct inherited_fds *ret_inherited)
{
    *ret_inherited = (struct inherited_fds){0};
    ret_inherited->known = each(note, ret_inherited);
}

static bool hide(int fd, void *arg)
{
    const struct inherited_fds *inherited = arg;

    for (size_t i = 0; i < inherited->count; i++) {
        if (inherited->fds[i] == fd)
            return true;
    }
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    return true;
}

void inherited_fds_only(const struct inherited_fds *inherited)
{
    if (inherited->known)
        each(hide, (void *)inherited);
}

void inherited_fds_clear(struct inherited_fds *inherited)
{
    free(inherited->fds);
    *inherited = (struct inherited_fds){0};
}
