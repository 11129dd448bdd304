/* See environment.h. A grant is recognised by its sequencer: the store itself says whether that
 * very grant is live, so that a lock of the same name in another store is never taken for it,
 * whatever the URLs look like. Where a store makes no tokens, the same spelling of the URL has to
 * do. */
#include "environment.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/handed_down.h"
#include "base/sequencer.h"

#include "base/banned.h"

#define PREFIX "HOLDFAST_"

/* Made new for each command, so that an outer lock's are never seen with an inner lock's. */
static const char *const made[] = {"URL",  "NAME",        "MODE",  "TOKEN", "SEQUENCER",
                                   "HELD", "HANDED_DOWN", "VALUE", "DOUBT", "SEQUENCERS"};
static const char *const secret_words[] = {"PASSWORD", "PASSWD", "SECRET", "CREDENTIAL", "TICKET"};

enum {
    MADE = sizeof made / sizeof made[0],
    SECRETS = sizeof secret_words / sizeof secret_words[0]
};

/* Whether the command may inherit "HOLDFAST_" + entry. */
static bool is_kept(const char *entry)
{
    size_t len = strcspn(entry, "=");
    char name[64];

    for (size_t i = 0; i < MADE; i++)
        if (strlen(made[i]) == len && memcmp(made[i], entry, len) == 0)
            return false;
    if (len >= sizeof name)
        return false;
    memcpy(name, entry, len);
    name[len] = '\0';
    for (size_t i = 0; i < SECRETS; i++)
        if (strstr(name, secret_words[i]))
            return false;
    return true;
}

static bool ends_with(const char *text, const char *end)
{
    size_t len = strlen(text), end_len = strlen(end);

    return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

/* Whether the entry is the variable of a password_env= of the URL. */
static bool is_password_of(const struct hf__url *url, const char *entry)
{
    size_t len = strcspn(entry, "=");

    for (size_t i = 0; i < url->setting_count; i++) {
        const struct hf__setting *setting = &url->settings[i];
        if (ends_with(setting->name, "password_env") && strlen(setting->value) == len &&
            memcmp(setting->value, entry, len) == 0)
            return true;
    }
    return false;
}

/* "HOLDFAST_URL=..." and the variables of passwords. */
static bool write_secrets(FILE *out, const char *url, const struct hf__url *parsed)
{
    fprintf(out, PREFIX "URL=%s", url);
    putc('\0', out);
    bool any = false;
    for (char **entry = environ; *entry; entry++) {
        if (!is_password_of(parsed, *entry))
            continue;
        any = true;
        fputs(*entry, out);
        putc('\0', out);
    }
    return any;
}

/* Sealed memory with this in it, or a negative errno. */
static int keep_in_memory(const char *text, size_t len)
{
    const int seals = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;
    int fd = memfd_create(HF__HANDED_DOWN_MEMORY, MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd >= 0 && (write(fd, text, len) != (ssize_t)len || fcntl(fd, F_ADD_SEALS, seals) < 0)) {
        int failed = errno;
        close(fd);
        return -failed;
    }
    return fd >= 0 ? fd : -errno;
}

int environment_secrets(const char *url)
{
    char shown[HF__URL_SHOWN], *text = NULL;
    struct hf__url parsed;
    size_t len;

    if (hf__url_parse(url, &parsed, NULL) != 0)
        return -1; /* nothing was opened by it either */
    FILE *out = open_memstream(&text, &len);
    bool secret = hf__url_redact(url, shown, sizeof shown);
    if (out)
        secret = write_secrets(out, url, &parsed) || secret;
    hf__url_clear(&parsed);
    int fd = out && fclose(out) == 0 ? -1 : -ENOMEM;
    if (fd == -1 && secret)
        fd = keep_in_memory(text, len);
    if (text)
        explicit_bzero(text, len);
    free(text);
    return fd;
}

static bool is_inherited(const struct hf__url *url, const char *entry)
{
    bool ours = strncmp(entry, PREFIX, strlen(PREFIX)) == 0;

    return !is_password_of(url, entry) && (!ours || is_kept(entry + strlen(PREFIX)));
}

static void print_escaped(FILE *out, const char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c <= ' ' || c >= 0x7f || c == '%' || c == '=')
            fprintf(out, "%%%02X", c);
        else
            fputc(c, out);
    }
}

/* "NAME=STORE=", the part of an entry that does not depend on the grant. */
static char *held_key(const char *url, const char *name)
{
    char shown[2 * HF__URL_MAX], *key = NULL;
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
    size_t size;
    FILE *out = open_memstream(&key, &size);

    if (!out)
        return NULL;
    hf__url_redact(url, shown, sizeof shown);
    for (const char *c = shown; *c; c++)
        hash = (hash ^ (unsigned char)*c) * UINT64_C(1099511628211);
    print_escaped(out, name);
    fprintf(out, "=%016" PRIx64 "=", hash);
    if (fclose(out) == 0)
        return key;
    free(key);
    return NULL;
}

/* "NAME=STORE=SEQUENCER" of one lock. */
static bool print_held(FILE *out, const char *url, const hf_lock *lock)
{
    char sequencer[HF_SEQUENCER_MAX] = "", *key = held_key(url, hf_lock_name(lock, NULL));

    hf_lock_sequencer(lock, sequencer, sizeof sequencer);
    if (key != NULL)
        fprintf(out, "%s%s", key, sequencer);
    free(key);
    return key != NULL;
}

static char *held_list(const struct environment_lock *lock)
{
    const char *outer = getenv(PREFIX "HELD");
    char *list = NULL;
    size_t size;
    FILE *out = open_memstream(&list, &size);

    if (!out)
        return NULL;
    fprintf(out, PREFIX "HELD=%s%s", outer ? outer : "", outer ? " " : "");
    bool ok = print_held(out, lock->url, lock->lock);
    for (size_t i = 0; i < lock->other_count && ok; i++) {
        putc(' ', out);
        ok = print_held(out, lock->url, lock->others[i]);
    }
    if (fclose(out) == 0 && ok)
        return list;
    free(list);
    return NULL;
}

/* Each lock has its own. */
static char *sequencer_list(const struct environment_lock *lock, const char *first)
{
    char *list = NULL, sequencer[HF_SEQUENCER_MAX];
    size_t size;
    FILE *out = open_memstream(&list, &size);

    if (!out)
        return NULL;
    fprintf(out, PREFIX "SEQUENCERS=%s", first);
    for (size_t i = 0; i < lock->other_count; i++) {
        if (hf_lock_sequencer(lock->others[i], sequencer, sizeof sequencer) == HF_OK)
            fprintf(out, " %s", sequencer);
    }
    if (fclose(out) == 0)
        return list;
    free(list);
    return NULL;
}

static bool add(char **environment, size_t *count, char *entry)
{
    environment[*count] = entry;
    *count += entry != NULL;
    return entry != NULL;
}

static char *join(const char *name, const char *value)
{
    char *entry;

    return asprintf(&entry, PREFIX "%s=%s", name, value) < 0 ? NULL : entry;
}

/* The store of the lock, wherever we have its URL from: a holdfast inside of the command must never
 * end up in another one. It refuses a URL whose password is hidden and was not handed down. */
static bool add_url(char **environment, size_t *count, const struct environment_lock *lock)
{
    char shown[HF__URL_SHOWN], path[64];

    hf__url_for_environment(lock->url, shown, sizeof shown);
    if (!add(environment, count, join("URL", shown)))
        return false;
    if (lock->secrets_fd < 0)
        return true;
    snprintf(path, sizeof path, "/proc/%lld/fd/%d", (long long)getpid(), lock->secrets_fd);
    return add(environment, count, join("HANDED_DOWN", path));
}

static bool add_ours(char **environment, size_t *count, const struct environment_lock *lock)
{
    if (!add_url(environment, count, lock))
        return false;

    char sequencer[HF_SEQUENCER_MAX] = "", token[24];
    uint64_t generation;

    if (hf_lock_generation(lock->lock, &generation) == HF_OK &&
        hf_lock_sequencer(lock->lock, sequencer, sizeof sequencer) == HF_OK) {
        snprintf(token, sizeof token, "%" PRIu64, generation);
        if (!add(environment, count, join("TOKEN", token)) ||
            !add(environment, count, join("SEQUENCER", sequencer)) ||
            (lock->other_count > 0 && !add(environment, count, sequencer_list(lock, sequencer))))
            return false;
    }
    if (lock->value != NULL && strlen(lock->value) == lock->value_len &&
        !add(environment, count, join("VALUE", lock->value)))
        return false;
    if (lock->value != NULL && !add(environment, count, join("DOUBT", lock->doubt ? "1" : "0")))
        return false;
    return add(environment, count, join("NAME", hf_lock_name(lock->lock, NULL))) &&
           add(environment, count,
               join("MODE", lock->mode == HF_SHARED ? "shared" : "exclusive")) &&
           add(environment, count, held_list(lock));
}

char **environment_new(const struct environment_lock *lock)
{
    size_t inherited = 0, count = 0;
    struct hf__url url = {0};

    while (environ[inherited])
        inherited++;
    char **environment = calloc(inherited + MADE + 1, sizeof *environment);
    if (!environment)
        return NULL;

    bool ok = hf__url_parse(lock->url, &url, NULL) == 0;
    for (size_t i = 0; i < inherited && ok; i++) {
        if (is_inherited(&url, environ[i]))
            ok = add(environment, &count, strdup(environ[i]));
    }
    hf__url_clear(&url);
    if (ok && add_ours(environment, &count, lock))
        return environment;
    environment_free(environment);
    return NULL;
}

void environment_free(char **environment)
{
    for (size_t i = 0; environment && environment[i]; i++)
        free(environment[i]);
    free(environment);
}

/* Whether one entry of the list is a live grant of the lock with this key. Of a lock without a token
 * nothing more is known: it counts as exclusive. */
static enum environment_hold entry_holds(hf_client *client, const char *entry, const char *key)
{
    size_t name_len = strcspn(key, "=") + 1, key_len = strlen(key);

    if (strncmp(entry, key, name_len) != 0)
        return ENVIRONMENT_FREE;
    const char *sequencer = strchr(entry + name_len, '=');
    if (!sequencer || sequencer[1] == '\0')
        return strncmp(entry, key, key_len) == 0 ? ENVIRONMENT_EXCLUSIVE : ENVIRONMENT_FREE;
    struct hf__sequencer grant;
    if (hf__sequencer_parse(sequencer + 1, &grant, NULL) != 0 ||
        hf_check(client, sequencer + 1, NULL) != HF_OK)
        return ENVIRONMENT_FREE;
    return grant.mode == HF_SHARED ? ENVIRONMENT_SHARED : ENVIRONMENT_EXCLUSIVE;
}

enum environment_hold environment_holds(hf_client *client, const char *url, const char *name)
{
    const char *held = getenv(PREFIX "HELD");
    enum environment_hold found = ENVIRONMENT_FREE;

    if (!held || *held == '\0')
        return found;
    char *key = held_key(url, name), *list = strdup(held), *rest = list, *entry;
    while (key && list && !found && (entry = strsep(&rest, " ")))
        found = entry_holds(client, entry, key);
    free(list);
    free(key);
    return found;
}
