/* What a run hands down to the holdfasts inside it, and what they believe of it: the memory and the
 * environment may be anybody's. A URL is given back only if the memory is sealed and of that name, and if
 * it is the one that the environment shows. */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/handed_down.h"
#include "shape.h"

static const char *const texts[] = {
    "HOLDFAST_URL=", "redis://u:secret@h/0", "redis://u:***@h/0", "redis://h/0?password=secret",
    "***",           "HOLDFAST_URLX=",       "PGPASSWORD=",       "=",
};
#define TEXTS (sizeof texts / sizeof texts[0])

/* Entries, each with a NUL behind it but perhaps the last. */
static size_t build(struct shape *s, char *to, size_t room)
{
    size_t len = 0;

    for (unsigned left = shape_choose(s, 12); left > 0 && len + 300 < room; left--) {
        unsigned choice = shape_choose(s, TEXTS + 2);
        if (choice < TEXTS)
            len += (size_t)snprintf(to + len, room - len, "%s", texts[choice]);
        else if (choice == TEXTS)
            to[len++] = '\0';
        else
            len += shape_bytes(s, to + len, room - len);
    }
    return len;
}

static int make_memory(const char *text, size_t len, bool sealed, const char *name)
{
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

    REQUIRE(fd >= 0 && write(fd, text, len) == (ssize_t)len);
    if (sealed)
        REQUIRE(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK) == 0);
    return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct shape s = {data, size};
    char memory[4096], shown[1024], path[64];
    bool sealed = shape_choose(&s, 8) != 7, named = shape_choose(&s, 8) != 7;
    size_t shown_len = build(&s, shown, sizeof shown - 1);
    size_t len = build(&s, memory, sizeof memory);
    hf_error err;
    char *url;

    shown[shown_len] = '\0';
    int fd = make_memory(memory, len, sealed, named ? HF__HANDED_DOWN_MEMORY : "other");
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    setenv("HOLDFAST_HANDED_DOWN", path, 1);
    setenv("HOLDFAST_URL", shown, 1);
    char *value = hf__handed_down("HOLDFAST_URL");
    if (value != NULL) {
        char again[HF__URL_SHOWN];
        REQUIRE(sealed && named);
        hf__url_for_environment(value, again, sizeof again);
        REQUIRE(strcmp(again, shown) == 0);
    }
    free(value);
    if (hf__environment_url(&url, &err) == 0)
        free(url);
    else
        REQUIRE(err.code == HF_INVALID && is_printable(err.text));
    close(fd);
    return 0;
}
