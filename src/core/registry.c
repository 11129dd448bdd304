/* Finds the store type for a URL scheme and opens the store.
 *
 * Two stores are built in. Every other one is a module, holdfast-<module>.so, so that a machine
 * needs only the libraries of the stores it uses; it is loaded when its scheme is first asked for
 * and stays loaded, since its threads and its code may be in use for as long as the process lives.
 *
 * The only state is one atomic pointer a module. dlopen() gives the same handle to two threads that
 * come at once, so both store the same pointer and no mutex is needed, which a fork in another
 * thread could leave locked for ever. */
#include "core/registry.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stores/builtin.h"

#include "base/banned.h"

static const struct hf__store_type *const builtins[] = {
    &hf__memory_store_type,
    &hf__sqlite_store_type,
};
#define BUILTIN_COUNT (sizeof builtins / sizeof builtins[0])

/* One line a scheme. `needs`: the library a module is linked with, as Debian calls it; NULL:
 * none. */
static const struct module {
    const char *scheme, *module, *needs;
    bool wrapper;
} modules[] = {
    {"zookeeper", "zookeeper", "libzookeeper-mt2", false},
    {"trace", "trace", NULL, true},
    {"fault", "fault", NULL, true},
    {"etcd", "etcd", "libnghttp2-14 and libssl3", false},
    {"postgres", "postgres", "libpq5", false},
    {"postgresql", "postgres", "libpq5", false},
    {"redis", "redis", "libhiredis0.14 and libssl3", false},
    {"rediss", "redis", "libhiredis0.14 and libssl3", false},
    {"redis+unix", "redis", "libhiredis0.14 and libssl3", false},
    {"redis+sentinel", "redis", "libhiredis0.14 and libssl3", false},
    {"redlock", "redlock", "libhiredis0.14 and libssl3", false},
    {"mysql", "mysql", "libmariadb3", false},
    {"mariadb", "mysql", "libmariadb3", false},
    {"oracle", "oracle", "libodbc2", false},
    {"cassandra", "cassandra", "libssl3", false},
};
#define MODULE_COUNT (sizeof modules / sizeof modules[0])

static _Atomic(const struct hf__store_type *) loaded[MODULE_COUNT];

static const char *module_dir(void)
{
    const char *dir = secure_getenv("HOLDFAST_MODULES");

    return dir != NULL && dir[0] != '\0' ? dir : HF__MODULE_DIR;
}

/* One sentence that says what to install. */
static int cannot_load(const struct module *m, const char *path, hf_error *err)
{
    const char *reason = dlerror();

    if (access(path, F_OK) != 0)
        return hf__fail(err, HF_NO_STORE,
                        "its module %s is not there: install holdfast's store modules%s%s%s, or "
                        "set HOLDFAST_MODULES to their directory",
                        path, m->needs != NULL ? " (this one is built with " : "",
                        m->needs != NULL ? m->needs : "", m->needs != NULL ? ")" : "");
    if (m->needs != NULL)
        return hf__fail(err, HF_NO_STORE, "its module cannot be loaded (%s): install %s", reason,
                        m->needs);
    return hf__fail(err, HF_NO_STORE,
                    "its module cannot be loaded (%s): install holdfast's store modules anew",
                    reason);
}

static int load_file(const struct module *m, const char *path,
                     const struct hf__store_type **ret_type, hf_error *err)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    const struct hf__store_type *type = NULL;

    if (handle == NULL)
        return cannot_load(m, path, err);
    type = dlsym(handle, HF__STORE_SYMBOL);
    if (type == NULL || type->abi != HF__STORE_ABI)
        return hf__fail(err, HF_NO_STORE,
                        "its module %s is of another version: install the modules of holdfast %s",
                        path, HF_VERSION);
    *ret_type = type;
    return 0;
}

static int load(const struct module *m, const struct hf__store_type **ret_type, hf_error *err)
{
    size_t i = (size_t)(m - modules);
    const struct hf__store_type *type = atomic_load(&loaded[i]);
    char *path = NULL;

    if (type != NULL) {
        *ret_type = type;
        return 0;
    }
    if (asprintf(&path, "%s/holdfast-%s.so", module_dir(), m->module) < 0)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    int r = load_file(m, path, &type, err);
    free(path);
    if (r != 0)
        return hf__wrap(err, r, "%s", m->module);
    atomic_store(&loaded[i], type);
    *ret_type = type;
    return 0;
}

static const struct hf__store_type *find_builtin(const char *scheme)
{
    for (size_t i = 0; i < BUILTIN_COUNT; i++) {
        for (const char *const *s = builtins[i]->schemes; *s != NULL; s++) {
            if (strcmp(*s, scheme) == 0)
                return builtins[i];
        }
    }
    return NULL;
}

/* "trace+sqlite" belongs to the wrapper "trace"; "a+b" without such a wrapper is a scheme like
 * any. */
static const struct module *find_module(const char *scheme)
{
    size_t first = strcspn(scheme, "+");

    for (size_t i = 0; i < MODULE_COUNT; i++) {
        const struct module *m = &modules[i];
        size_t len = strlen(m->scheme);
        if (!m->wrapper && strcmp(m->scheme, scheme) == 0)
            return m;
        if (m->wrapper && len == first && memcmp(m->scheme, scheme, len) == 0 && scheme[len] == '+')
            return m;
    }
    return NULL;
}

static int unknown_scheme(const char *scheme, hf_error *err)
{
    char known[200] = "", shown[60];
    size_t used = 0;

    for (size_t i = 0; i < BUILTIN_COUNT + MODULE_COUNT && used < sizeof known; i++) {
        const char *name =
            i < BUILTIN_COUNT ? *builtins[i]->schemes : modules[i - BUILTIN_COUNT].scheme;
        bool wrapper = i >= BUILTIN_COUNT && modules[i - BUILTIN_COUNT].wrapper;
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s%s", i > 0 ? ", " : "",
                                 name, wrapper ? "+" : ":");
    }
    hf__printable(scheme, strlen(scheme), shown, sizeof shown);
    return hf__fail(err, HF_NO_STORE, "there is no store '%s:'; those known are %s", shown, known);
}

static bool in_table(const struct hf__option *table, const char *name)
{
    for (; table != NULL && table->name != NULL; table++) {
        if (strcmp(table->name, name) == 0)
            return true;
    }
    return false;
}

/* A wrapper answers for its own options only; the store inside checks the others when it is
 * opened. */
static int check_wrapper(struct hf__url *url, const struct hf__option *table, hf_error *err)
{
    struct hf__url own = *url;

    own.setting_count = 0;
    own.settings = calloc(url->setting_count + 1, sizeof *own.settings);
    if (own.settings == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    for (size_t i = 0; i < url->setting_count; i++) {
        if (in_table(table, url->settings[i].name))
            own.settings[own.setting_count++] = url->settings[i];
    }
    int r = hf__url_check(&own, table, err);
    url->options = own.options;
    free(own.settings);
    return r;
}

/* A store that names itself in its messages is not named twice. */
static int name_store(hf_error *err, int code, const char *name)
{
    size_t len = strlen(name);

    if (err != NULL && strncmp(err->text, name, len) == 0 && err->text[len] == ':')
        return code;
    return hf__wrap(err, code, "%s", name);
}

static int find_type(const char *scheme, const struct hf__store_type **ret_type, bool *ret_wrapper,
                     hf_error *err)
{
    const struct module *m;

    *ret_wrapper = false;
    *ret_type = find_builtin(scheme);
    if (*ret_type != NULL)
        return 0;
    m = find_module(scheme);
    if (m == NULL)
        return unknown_scheme(scheme, err);
    *ret_wrapper = m->wrapper;
    return load(m, ret_type, err);
}

static int open_parsed(const struct hf__host *host, struct hf__url *url,
                       struct hf__store **ret_store, hf_error *err)
{
    const struct hf__store_type *type;
    bool wrapper;
    int r = find_type(url->scheme, &type, &wrapper, err);

    if (r != 0)
        return r;
    if (wrapper)
        r = check_wrapper(url, type->options, err);
    else
        r = hf__url_check(url, type->options, err);
    if (r == 0)
        r = type->open(url, host, ret_store, err);
    return r == 0 ? 0 : name_store(err, r, type->name);
}

int hf__store_open(const struct hf__host *host, const char *url, struct hf__store **ret_store,
                   hf_error *err)
{
    struct hf__url parsed;
    char *found = NULL;
    int r = 0;

    if (url == NULL)
        r = hf__default_url(&found, err);
    if (r == 0)
        r = hf__url_parse(url != NULL ? url : found, &parsed, err);
    if (found != NULL)
        explicit_bzero(found, strlen(found));
    free(found);
    if (r != 0)
        return r;
    r = open_parsed(host, &parsed, ret_store, err);
    hf__url_clear(&parsed);
    return r;
}

static int write_setup(const struct hf__store_type *type, const struct hf__url *url,
                       char **ret_text, hf_error *err)
{
    *ret_text = NULL;
    if (type->ddl_of != NULL) {
        int r = type->ddl_of(url, ret_text, err);
        return r == 0 ? 0 : name_store(err, r, type->name);
    }
    if (type->ddl == NULL)
        return 0;
    *ret_text = strdup(type->ddl);
    return *ret_text != NULL ? 0 : hf__fail(err, HF_NO_MEMORY, NULL);
}

int hf__setup_text(const char *url, const char **ret_store, char **ret_text, hf_error *err)
{
    const char *text = url != NULL ? url : "sqlite:";
    const struct hf__store_type *type;
    struct hf__url parsed;
    bool wrapper;
    int r = hf__url_parse(text, &parsed, err);

    if (r != 0)
        return r;
    r = find_type(parsed.scheme, &type, &wrapper, err);
    if (r == 0 && wrapper) {
        r = hf__setup_text(strchr(text, '+') + 1, ret_store, ret_text, err);
    } else if (r == 0) {
        *ret_store = type->name;
        parsed.options = type->options; /* not checked: who only prints has not decided on all */
        r = write_setup(type, &parsed, ret_text, err);
    }
    hf__url_clear(&parsed);
    return r;
}

/* The i-th module: one that serves several schemes has its lines together. */
static const struct module *nth_module(size_t i)
{
    for (size_t at = 0; at < MODULE_COUNT; at++) {
        bool again = at > 0 && strcmp(modules[at].module, modules[at - 1].module) == 0;
        if (!again && i-- == 0)
            return &modules[at];
    }
    return NULL;
}

bool hf__known_store(size_t i, struct hf__known *ret_known)
{
    hf_error err;

    *ret_known = (struct hf__known){0};
    if (i < BUILTIN_COUNT) {
        ret_known->type = builtins[i];
        ret_known->name = builtins[i]->name;
        return true;
    }
    const struct module *m = nth_module(i - BUILTIN_COUNT);
    if (m == NULL)
        return false;
    ret_known->name = m->module;
    ret_known->wrapper = m->wrapper;
    if (load(m, &ret_known->type, &err) != 0)
        snprintf(ret_known->missing, sizeof ret_known->missing, "%s", err.text);
    return true;
}
