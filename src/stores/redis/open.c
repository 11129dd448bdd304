/* From the URL to a store.
 *
 * A server that cannot be reached is no error yet: it may come. One that answers and must not be
 * used (a wrong password, a cluster, a server that evicts locks) is refused at once. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stores/redis/redis.h"

#include "util/banned.h"

#define PASSWORD_MAX 1024

const struct hf__option hf__redis_options[] = {
    {"key_format", HF__TEXT, "holdfast:%s", 0, 0,
     "the key of a lock; %s is its name (written %25s in a URL). %s, lock:%s, redlock:%s ... meet "
     "other "
     "clients on their keys"},
    {"db", HF__NUMBER, "0", 0, 1000000, "the database, if it is not in the path"},
    {"password_file", HF__TEXT, NULL, 0, 0, "a file whose first line is the password"},
    {"password_env", HF__TEXT, NULL, 0, 0, "the environment variable that has the password"},
    {"client_name", HF__TEXT, "holdfast", 0, 0, "shown by CLIENT LIST"},
    {"tls", HF__TEXT, NULL, 0, 0, "for rediss: verify (the default) or insecure"},
    {"tls_ca", HF__TEXT, NULL, 0, 0, "the authority that signed the server's certificate (PEM)"},
    {"tls_cert", HF__TEXT, NULL, 0, 0, "our own certificate (PEM)"},
    {"tls_key", HF__TEXT, NULL, 0, 0, "its key, if it is not in the same file"},
    {"mode", HF__TEXT, "push", 0, 0,
     "push: waiters are called; poll: they ask, for a proxy without pub/sub"},
    {"poll", HF__DURATION, "100ms", 1, 60000,
     "how often to ask when nobody calls, give or take 25 %"},
    {"recheck", HF__DURATION, "1s", 10, 60000,
     "how often the first in the queue asks although it will be called"},
    {"yield", HF__NUMBER, "0", 0, 1000000,
     "after so many hand-overs leave the key free, for clients that poll it; 0: never"},
    {"yield_for", HF__DURATION, "250ms", 1, 60000, "for how long"},
    {"max_active", HF__NUMBER, "16", 1, 100000, "connections in use at the same time"},
    {"max_idle", HF__NUMBER, "8", 0, 100000, "connections kept when they are not in use"},
    {"idle_timeout", HF__DURATION, "60s", 100, 86400000, "for how long they are kept"},
    {"pool_wait", HF__SWITCH, "yes", 0, 0, "wait for a connection when all are in use, or fail"},
    {"force", HF__TEXT, NULL, 0, 0,
     "'evicting': use a server that may evict locks when its memory is full"},
    {0},
};

static const char *text(const struct hf__url *url, const char *name)
{
    return hf__url_text(url, hf__redis_options, name);
}

static int64_t number(const struct hf__url *url, const char *name)
{
    return hf__url_number(url, hf__redis_options, name);
}

static int copy(const char *from, char **to, hf_error *err)
{
    *to = from != NULL ? strdup(from) : NULL;
    return from != NULL && *to == NULL ? hf__fail(err, HF_NO_MEMORY, NULL) : 0;
}

/* "host:port", "[::1]:port"; the URL parser has checked its form. */
static int read_host(const struct hf__url *url, struct hf__redis_settings *set, hf_error *err)
{
    const char *host = url->host[0] != '\0' ? url->host : "localhost";
    bool bracket = host[0] == '[';
    const char *from = host + bracket;
    size_t len = strcspn(from, bracket ? "]" : ":");
    const char *colon = strchr(from + len, ':');

    if (strchr(host, ',') != NULL)
        return hf__fail(err, HF_INVALID, "name one server only: redis://host:6379/0");
    set->host = strndup(from, len);
    set->port = strdup(colon != NULL ? colon + 1 : "6379");
    return set->host != NULL && set->port != NULL ? 0 : hf__fail(err, HF_NO_MEMORY, NULL);
}

/* The database is the path of a TCP URL: redis://host/3. */
static int read_db(const struct hf__url *url, struct hf__redis_settings *set, hf_error *err)
{
    const char *path = url->path + (url->path[0] == '/');

    set->db = number(url, "db");
    if (path[0] == '\0')
        return 0;
    if (strspn(path, "0123456789") != strlen(path) || strlen(path) > 7)
        return hf__fail(err, HF_INVALID,
                        "the path of the URL is the number of a database, as in redis://host/0");
    set->db = strtoll(path, NULL, 10);
    return 0;
}

static int read_place(const struct hf__url *url, struct hf__redis_settings *set, hf_error *err)
{
    if (strcmp(url->scheme, "redis+unix") != 0) {
        int r = read_host(url, set, err);
        return r != 0 ? r : read_db(url, set, err);
    }
    if (url->host[0] != '\0' || url->path[0] != '/')
        return hf__fail(err, HF_INVALID,
                        "name the socket with its whole path: redis+unix:///run/redis.sock?db=0");
    set->db = number(url, "db");
    return copy(url->path, &set->path, err);
}

static int read_password_file(const char *path, char **ret_password, hf_error *err)
{
    char line[PASSWORD_MAX] = "", shown[100];
    FILE *file = fopen(path, "re");

    hf__printable(path, strlen(path), shown, sizeof shown);
    if (file == NULL)
        return hf__fail_errno(err, HF_DENIED, "password_file '%s' cannot be read", shown);
    bool read = fgets(line, sizeof line, file) != NULL;
    fclose(file);
    line[strcspn(line, "\r\n")] = '\0';
    int r = read && line[0] != '\0'
                ? copy(line, ret_password, err)
                : hf__fail(err, HF_INVALID, "password_file '%s' has no first line", shown);
    explicit_bzero(line, sizeof line);
    return r;
}

static int read_password(const struct hf__url *url, struct hf__redis_settings *set, hf_error *err)
{
    const char *file = text(url, "password_file"), *env = text(url, "password_env");

    if ((url->password != NULL) + (file != NULL) + (env != NULL) > 1)
        return hf__fail(
            err, HF_INVALID,
            "the password is given twice: keep one of URL, password_file, password_env");
    if (url->user != NULL && url->user[0] != '\0') {
        int r = copy(url->user, &set->user, err);
        if (r != 0)
            return r;
    }
    if (file != NULL)
        return read_password_file(file, &set->password, err);
    if (env != NULL && secure_getenv(env) == NULL)
        return hf__fail(err, HF_INVALID, "password_env: there is no such environment variable");
    int r = copy(env != NULL ? secure_getenv(env) : url->password, &set->password, err);
    if (r == 0 && set->user != NULL && set->password == NULL)
        r = hf__fail(err, HF_INVALID, "the URL names a user but there is no password");
    return r;
}

static int read_tls(const struct hf__url *url, struct hf__redis_settings *set, hf_error *err)
{
    const char *tls = text(url, "tls");
    struct hf__tls_options options = {.insecure = tls != NULL && strcmp(tls, "insecure") == 0,
                                      .ca_file = text(url, "tls_ca"),
                                      .cert_file = text(url, "tls_cert"),
                                      .key_file = text(url, "tls_key")};
    bool plain = strcmp(url->scheme, "rediss") != 0;

    if (plain && ((tls != NULL && strcmp(tls, "off") != 0) || options.ca_file != NULL ||
                  options.cert_file != NULL || options.key_file != NULL))
        return hf__fail(err, HF_INVALID, "TLS options go with rediss://, not with %s://",
                        url->scheme);
    if (plain)
        return 0;
    if (tls != NULL && !options.insecure && strcmp(tls, "verify") != 0)
        return hf__fail(err, HF_INVALID,
                        "tls is verify or insecure; for a connection without TLS write redis://");
    return hf__tls_new(&options, &set->tls, err);
}

static int read_words(const struct hf__url *url, struct hf__redis_settings *set, hf_error *err)
{
    const char *mode = text(url, "mode"), *force = text(url, "force");

    if (strcmp(mode, "push") != 0 && strcmp(mode, "poll") != 0)
        return hf__fail(err, HF_INVALID, "mode is push or poll");
    if (force != NULL && strcmp(force, "evicting") != 0)
        return hf__fail(err, HF_INVALID, "force: the only thing to force is 'evicting'");
    set->poll = strcmp(mode, "poll") == 0;
    set->allow_evicting = force != NULL;
    const char *name = text(url, "client_name");
    for (const char *c = name; *c != '\0'; c++) {
        if (*c <= ' ' || *c > '~')
            return hf__fail(err, HF_INVALID, "client_name may not have blanks or special bytes");
    }
    return copy(name, &set->client_name, err);
}

static int read_settings(const struct hf__url *url, struct hf__redis_settings *set, hf_error *err)
{
    int r = read_place(url, set, err);

    if (r == 0)
        r = read_password(url, set, err);
    if (r == 0)
        r = read_tls(url, set, err);
    if (r == 0)
        r = read_words(url, set, err);
    if (r == 0)
        r = hf__redis_key_format(text(url, "key_format"), set, err);
    set->poll_ms = number(url, "poll");
    set->recheck_ms = number(url, "recheck");
    set->yield = number(url, "yield");
    set->yield_for_ms = number(url, "yield_for");
    set->max_active = number(url, "max_active");
    set->max_idle = number(url, "max_idle");
    set->idle_timeout_ms = number(url, "idle_timeout");
    set->pool_wait = hf__url_switch(url, hf__redis_options, "pool_wait");
    return r;
}

/* "pid\0host\0user\0program\0" */
static void describe_self(struct hf__redis *s)
{
    const struct hf__who *self = s->base.host->self;
    int n = snprintf(s->self, sizeof s->self, "%lld%c%.127s%c%.63s%c%.127s%c", (long long)self->pid,
                     0, self->host, 0, self->user, 0, self->program, 0);

    s->self_len = (size_t)n;
}

static int look_at_server(struct hf__redis *s, hf_error *err)
{
    const struct hf__host *host = s->base.host;
    struct hf__redis_conn *c = NULL;
    int64_t deadline_ns = hf__now_ns(host->env) + host->op_timeout_ms * HF__NS_PER_MS;
    int r = hf__redis_take(s, deadline_ns, &c, err);

    if (r == 0)
        hf__redis_give(s, c);
    return r == HF_UNAVAILABLE ? 0 : r;
}

int hf__redis_open(const struct hf__url *url, const struct hf__host *host,
                   struct hf__store **ret_store, hf_error *err)
{
    struct hf__redis *s = calloc(1, sizeof *s);

    if (s == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    s->base = (struct hf__store){
        .type = &hf_store_type_v1, .host = host, .capabilities = hf_store_type_v1.capabilities};
    hf__redis_pool_init(&s->pool);
    int r = hf__redis_listener_init(s, err);
    if (r == 0)
        r = read_settings(url, &s->set, err);
    if (r == 0) {
        if (s->set.poll)
            s->base.capabilities &= ~(uint32_t)HF_CAN_PUSH;
        describe_self(s);
        r = look_at_server(s, err);
    }
    if (r != 0) {
        hf__redis_close(&s->base);
        return r;
    }
    *ret_store = &s->base;
    return 0;
}

void hf__redis_close(struct hf__store *store)
{
    struct hf__redis *s = (struct hf__redis *)store;
    struct hf__redis_settings *set = &s->set;
    char *texts[] = {set->host,        set->port,       set->path,     set->user,
                     set->client_name, set->key_before, set->key_after};

    hf__redis_listener_clear(s);
    hf__redis_pool_clear(&s->pool);
    hf__tls_free(set->tls);
    if (set->password != NULL)
        explicit_bzero(set->password, strlen(set->password));
    free(set->password);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        free(texts[i]);
    free(s);
}
