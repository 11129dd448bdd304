/* Finds the store type for a URL scheme, built in or in a module, and opens the store. */
#include "core_registry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core_modules.h"
#include "stores_builtin.h"

#include "base_banned.h"

static const struct hf__store_type *const builtins[] = {
    &hf__memory_store_type,
    &hf__sqlite_store_type,
};
#define BUILTIN_COUNT (sizeof builtins / sizeof builtins[0])

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
static const struct hf__module *find_module(const char *scheme)
{
    const struct hf__module *m;
    size_t first = strcspn(scheme, "+");

    for (size_t i = 0; (m = hf__module_line(i)) != NULL; i++) {
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
    const struct hf__module *m;
    size_t used = 0;

    for (size_t i = 0; i < BUILTIN_COUNT; i++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s:", i > 0 ? ", " : "",
                                 *builtins[i]->schemes);
    for (size_t i = 0; (m = hf__module_line(i)) != NULL && used < sizeof known; i++)
        used += (size_t)snprintf(known + used, sizeof known - used, ", %s%s", m->scheme,
                                 m->wrapper ? "+" : ":");
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

/* `host` NULL: nothing is going to be opened. */
static int find_type(const struct hf__host *host, const char *scheme,
                     const struct hf__store_type **ret_type, bool *ret_wrapper, hf_error *err)
{
    const struct hf__module *m;

    *ret_wrapper = false;
    *ret_type = find_builtin(scheme);
    if (*ret_type != NULL)
        return 0;
    m = find_module(scheme);
    if (m == NULL)
        return unknown_scheme(scheme, err);
    *ret_wrapper = m->wrapper;
    return hf__module_load(m, host != NULL ? host->modules : NULL, ret_type, err);
}

static int open_parsed(const struct hf__host *host, struct hf__url *url,
                       struct hf__store **ret_store, hf_error *err)
{
    const struct hf__store_type *type;
    bool wrapper;
    int r = find_type(host, url->scheme, &type, &wrapper, err);

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
    r = find_type(NULL, parsed.scheme, &type, &wrapper, err);
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
static const struct hf__module *nth_module(size_t i)
{
    const struct hf__module *m, *before = NULL;

    for (size_t at = 0; (m = hf__module_line(at)) != NULL; at++) {
        if ((before == NULL || strcmp(m->name, before->name) != 0) && i-- == 0)
            return m;
        before = m;
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
    const struct hf__module *m = nth_module(i - BUILTIN_COUNT);
    if (m == NULL)
        return false;
    ret_known->name = m->name;
    ret_known->wrapper = m->wrapper;
    if (hf__module_load(m, NULL, &ret_known->type, &err) != 0)
        snprintf(ret_known->missing, sizeof ret_known->missing, "%s", err.text);
    return true;
}
