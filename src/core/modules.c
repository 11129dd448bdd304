/* See modules.h.
 *
 * The only state is one atomic pointer a line. dlopen() gives the same handle to two threads that
 * come at once, so both store the same pointer and no mutex is needed, which a fork in another
 * thread could leave locked for ever. */
#include "core/modules.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/banned.h"

#ifndef HF__MODULE_DIR /* built without Meson, as a part of another program: where systems have them */
#if defined(__x86_64__)
#define MULTIARCH "/usr/lib/x86_64-linux-gnu/holdfast:"
#elif defined(__aarch64__)
#define MULTIARCH "/usr/lib/aarch64-linux-gnu/holdfast:"
#else
#define MULTIARCH
#endif
#define HF__MODULE_DIR "/usr/local/lib/holdfast:" MULTIARCH "/usr/lib64/holdfast:/usr/lib/holdfast"
#endif
#ifndef HF__STORE_PACKAGE
#define HF__STORE_PACKAGE ""
#endif

static const struct hf__module lines[] = {
    {"zookeeper", "zookeeper", "ZooKeeper's C client", false},
    {"trace", "trace", NULL, true},
    {"fault", "fault", NULL, true},
    {"etcd", "etcd", "nghttp2 and OpenSSL", false},
    {"postgres", "postgres", "libpq", false},
    {"postgresql", "postgres", "libpq", false},
    {"redis", "redis", "hiredis and OpenSSL", false},
    {"rediss", "redis", "hiredis and OpenSSL", false},
    {"redis+unix", "redis", "hiredis and OpenSSL", false},
    {"redis+sentinel", "redis", "hiredis and OpenSSL", false},
    {"redlock", "redlock", "hiredis and OpenSSL", false},
    {"mysql", "mysql", "MariaDB's C connector", false},
    {"mariadb", "mysql", "MariaDB's C connector", false},
    {"oracle", "oracle", "unixODBC", false},
    {"cassandra", "cassandra", "OpenSSL", false},
};
#define LINE_COUNT (sizeof lines / sizeof lines[0])

static _Atomic(const struct hf__store_type *) loaded[LINE_COUNT];

const struct hf__module *hf__module_line(size_t i)
{
    return i < LINE_COUNT ? &lines[i] : NULL;
}

/* What to install, as the build was told that it is packaged. */
static void write_remedy(const struct hf__module *m, bool is_there, char *buf, size_t size)
{
    static const char package[] = HF__STORE_PACKAGE;
    const char *name = strstr(package, "%s");

    if (name != NULL)
        snprintf(buf, size, "%.*s%s%s", (int)(name - package), package, m->name, name + 2);
    else if (package[0] != '\0')
        snprintf(buf, size, "%s", package);
    else if (m->needs == NULL)
        snprintf(buf, size, "holdfast's store modules");
    else if (is_there)
        snprintf(buf, size, "%s", m->needs);
    else
        snprintf(buf, size, "holdfast's store modules (this one is built with %s)", m->needs);
}

static int load_file(const struct hf__module *m, const char *path,
                     const struct hf__store_type **ret_type, hf_error *err)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    char remedy[160];

    if (handle == NULL) {
        write_remedy(m, true, remedy, sizeof remedy);
        return hf__fail(err, HF_NO_STORE, "its module cannot be loaded (%s): install %s", dlerror(),
                        remedy);
    }
    const struct hf__store_type *type = dlsym(handle, HF__STORE_SYMBOL);
    if (type == NULL || type->abi != HF__STORE_ABI)
        return hf__fail(err, HF_NO_STORE,
                        "its module %s is of another version: install the modules of holdfast %s",
                        path, HF_VERSION);
    *ret_type = type;
    return 0;
}

/* The first directory that has the module decides, whatever it is worth: a search that goes on would
 * hide what is wrong with it. */
static int search(const struct hf__module *m, const char *dirs,
                  const struct hf__store_type **ret_type, hf_error *err)
{
    char *path = NULL, remedy[160];
    size_t len;

    for (const char *dir = dirs; *dir != '\0'; dir += len + (dir[len] == ':')) {
        len = strcspn(dir, ":");
        if (len == 0)
            continue;
        free(path);
        if (asprintf(&path, "%.*s/holdfast-%s.so", (int)len, dir, m->name) < 0)
            return hf__fail(err, HF_NO_MEMORY, NULL);
        if (access(path, F_OK) == 0) {
            int r = load_file(m, path, ret_type, err);
            free(path);
            return r;
        }
    }
    write_remedy(m, false, remedy, sizeof remedy);
    hf__fail(err, HF_NO_STORE,
             "its module %s is not there: install %s, or set HOLDFAST_MODULES to the directory of "
             "the modules",
             path != NULL ? path : "", remedy);
    free(path);
    return HF_NO_STORE;
}

/* The environment replaces what the program and the build say: whoever starts a program knows best,
 * unless it runs with more rights than theirs. */
static int search_all(const struct hf__module *m, const char *dirs,
                      const struct hf__store_type **ret_type, hf_error *err)
{
    const char *own = secure_getenv("HOLDFAST_MODULES");
    char *all = NULL;

    if (own != NULL && own[0] != '\0')
        return search(m, own, ret_type, err);
    if (asprintf(&all, "%s:" HF__MODULE_DIR, dirs != NULL ? dirs : "") < 0)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    int r = search(m, all, ret_type, err);
    free(all);
    return r;
}

int hf__module_load(const struct hf__module *m, const char *dirs,
                    const struct hf__store_type **ret_type, hf_error *err)
{
    size_t i = (size_t)(m - lines);
    const struct hf__store_type *type = atomic_load(&loaded[i]);

    if (type == NULL) {
        int r = search_all(m, dirs, &type, err);
        if (r != 0)
            return hf__wrap(err, r, "%s", m->name);
        atomic_store(&loaded[i], type);
    }
    *ret_type = type;
    return 0;
}
