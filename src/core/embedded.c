/* The store when no URL is given, and where the embedded one lives. Follows the XDG base directories, which also
 * ask that missing directories be made with mode 0700. The environment of a set-user-id program is
 * not believed. */
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/handed_down.h"
#include "base/percent.h"
#include "core/registry.h"

#include "base/banned.h"

#define ROOT_DIR  "/var/lib/holdfast"
#define FILE_NAME "locks.db"

/* "/" is what systemd gives a user that it has made up (DynamicUser). */
static bool is_home(const char *dir)
{
    return dir[0] == '/' && dir[1] != '\0';
}

/* The home directory, to be freed; NULL if there is none. */
static char *find_home(void)
{
    const char *home = secure_getenv("HOME");
    struct passwd entry, *found = NULL;
    char buf[4096];

    if (home != NULL && home[0] == '/')
        return is_home(home) ? strdup(home) : NULL;
    if (getpwuid_r(geteuid(), &entry, buf, sizeof buf, &found) != 0 || found == NULL)
        return NULL;
    return is_home(found->pw_dir) ? strdup(found->pw_dir) : NULL;
}

/* A service's own directory, the first of a list, for a service without a home. Not for any other: two
 * services of one user are to find the same locks. -1: there is none, or no memory. */
static int print_service_dir(char **ret_dir)
{
    const char *dirs = secure_getenv("STATE_DIRECTORY");

    if (dirs == NULL || dirs[0] != '/')
        return -1;
    return asprintf(ret_dir, "%.*s", (int)strcspn(dirs, ":"), dirs);
}

static int state_dir(char **ret_dir, hf_error *err)
{
    const char *state = secure_getenv("XDG_STATE_HOME");
    char *dir = NULL;
    int n;

    if (geteuid() == 0) {
        n = asprintf(&dir, "%s", ROOT_DIR);
    } else if (state != NULL && state[0] == '/') {
        n = asprintf(&dir, "%s/holdfast", state);
    } else {
        char *home = find_home();
        n = home != NULL ? asprintf(&dir, "%s/.local/state/holdfast", home)
                         : print_service_dir(&dir);
        if (home == NULL && n < 0)
            return hf__fail(
                err, HF_NO_STORE,
                "there is no home directory for the embedded store: set HOME, or name a "
                "store by its URL");
        free(home);
    }
    if (n < 0)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    *ret_dir = dir;
    return 0;
}

/* mkdir -p -m 0700; `dir` is absolute and is as before afterwards. */
static int make_dirs(char *dir, hf_error *err)
{
    for (char *slash = strchr(dir + 1, '/');; slash = strchr(slash + 1, '/')) {
        if (slash != NULL)
            *slash = '\0';
        if (mkdir(dir, 0700) != 0 && errno != EEXIST)
            return hf__fail_errno(err, HF_DENIED,
                                  "the embedded store has no place (set XDG_STATE_HOME, or name a "
                                  "store by its URL): the directory %s cannot be made",
                                  dir);
        if (slash == NULL)
            return 0;
        *slash = '/';
    }
}

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           memchr("/-._~", c, 5) != NULL;
}

/* "sqlite:" and the path, percent-escaped. */
static char *make_url(const char *dir)
{
    size_t room = sizeof "sqlite:" + 3 * strlen(dir) + sizeof "/" FILE_NAME;
    char *url = malloc(room);
    size_t used = 0;

    if (url == NULL)
        return NULL;
    used += (size_t)snprintf(url, room, "sqlite:");
    for (const char *c = dir; *c != '\0'; c++)
        used += hf__percent_put(url + used, room - used, *c, is_plain(*c));
    snprintf(url + used, room - used, "/" FILE_NAME);
    return url;
}

int hf__embedded_url(char **ret_url, hf_error *err)
{
    char *dir = NULL;
    int r = state_dir(&dir, err);

    if (r == 0)
        r = make_dirs(dir, err);
    if (r == 0 && (*ret_url = make_url(dir)) == NULL)
        r = hf__fail(err, HF_NO_MEMORY, NULL);
    free(dir);
    return r;
}

int hf__default_url(char **ret_url, hf_error *err)
{
    char *url = NULL;
    int r = hf__environment_url(&url, err);

    if (r == 0 && url == NULL)
        r = hf__embedded_url(&url, err);
    if (r == 0)
        *ret_url = url;
    return r;
}
