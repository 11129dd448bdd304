/* See handed_down.h. What is opened is believed only if it is sealed memory of that name which is
 * ours, and if the URL in it is the very one that the environment shows: the number of the process
 * may be another one's by now. */
#include "base_handed_down.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base_error.h"

#include "base_banned.h"

#define URL "HOLDFAST_URL"

void hf__url_for_environment(const char *url, char *buf, size_t size)
{
    if (!hf__url_redact(url, buf, size))
        snprintf(buf, size, "%s", url);
    else if (!hf__url_is_redacted(buf))
        snprintf(buf, size, "%s", HF__URL_HIDDEN);
}

static bool is_memory_of_a_run(int fd, struct stat *ret_stat)
{
    static const char wanted[] = "/memfd:" HF__HANDED_DOWN_MEMORY;
    char path[64], target[sizeof wanted] = "";
    const int seals = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK;
    int sealed = fcntl(fd, F_GET_SEALS);

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return sealed >= 0 && (sealed & seals) == seals && fstat(fd, ret_stat) == 0 &&
           ret_stat->st_uid == geteuid() &&
           readlink(path, target, sizeof target - 1) == sizeof target - 1 &&
           strcmp(target, wanted) == 0;
}

/* All of it, with a NUL more at the end; NULL: there is nothing that could be believed. */
static char *read_memory(const char *path, size_t *ret_len)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;
    char *text = NULL;

    if (fd < 0)
        return NULL;
    if (is_memory_of_a_run(fd, &st) && st.st_size > 0 && st.st_size <= HF__HANDED_DOWN_MAX)
        text = calloc(1, (size_t)st.st_size + 1);
    if (text != NULL && pread(fd, text, (size_t)st.st_size, 0) != st.st_size) {
        free(text);
        text = NULL;
    }
    close(fd);
    if (text != NULL)
        *ret_len = (size_t)st.st_size;
    return text;
}

static const char *find(const char *text, size_t len, const char *name)
{
    size_t name_len = strlen(name);

    for (const char *at = text; at < text + len; at += strlen(at) + 1) {
        if (strncmp(at, name, name_len) == 0 && at[name_len] == '=')
            return at + name_len + 1;
    }
    return NULL;
}

char *hf__handed_down(const char *name)
{
    const char *path = secure_getenv(HF__HANDED_DOWN), *shown = secure_getenv(URL);
    char expected[HF__URL_SHOWN], *copy = NULL;
    size_t len = 0;

    if (path == NULL || shown == NULL)
        return NULL;
    char *text = read_memory(path, &len);
    const char *url = text != NULL ? find(text, len, URL) : NULL;
    if (url != NULL) {
        const char *value = find(text, len, name);
        hf__url_for_environment(url, expected, sizeof expected);
        if (value != NULL && strcmp(expected, shown) == 0)
            copy = strdup(value);
    }
    if (text != NULL)
        explicit_bzero(text, len);
    free(text);
    return copy;
}

int hf__environment_url(char **ret_url, hf_error *err)
{
    const char *set = secure_getenv(URL);
    char *url = NULL;

    if (set != NULL && set[0] == '\0')
        return hf__fail(err, HF_INVALID,
                        "HOLDFAST_URL is set but empty; unset it, or name a store");
    if (set != NULL && hf__url_is_redacted(set)) {
        url = hf__handed_down(URL);
        if (url == NULL)
            return hf__fail(err, HF_INVALID,
                            "the URL (HOLDFAST_URL) has its password removed; the 'holdfast run' "
                            "that knows it has ended, or is another user's: give it with -u, or "
                            "use password_file");
    } else if (set != NULL) {
        url = strdup(set);
        if (url == NULL)
            return hf__fail(err, HF_NO_MEMORY, NULL);
    }
    *ret_url = url;
    return 0;
}
