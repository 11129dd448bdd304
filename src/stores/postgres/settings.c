/* What a URL says: postgres://user@h1:5432,h2:5432/database?options, or
 * postgres:///database?socket=DIR for a socket on this machine.
 *
 * TLS means chain and host name verified: tls=verify is the default for every host but loopback and
 * sockets. Passwords come, best first, from a client certificate or peer (none at all), ~/.pgpass
 * or `passfile`, `password_file`, `password_env`; one in the URL works but is seen by everybody who
 * sees the command line. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "stores/postgres/postgres.h"

#include "util/banned.h"

#define PASSWORD_MAX 1024
#define SYSTEM_CA    "/etc/ssl/certs/ca-certificates.crt"
#define SOCKET_DIR   "/var/run/postgresql"

const struct hf__option hf__pg_options[] = {
    {"hold", HF__TEXT, "lease", 0, 0,
     "lease: rows with a lease; session, advisory: a lock of the server that lives as long as a "
     "connection"},
    {"socket", HF__TEXT, NULL, 0, 0, "the directory of the server's socket, instead of a host"},
    {"port", HF__NUMBER, "5432", 1, 65535, "the port in the name of that socket"},
    {"password_file", HF__TEXT, NULL, 0, 0, "a file whose first line is the password"},
    {"password_env", HF__TEXT, NULL, 0, 0, "the environment variable that has the password"},
    {"passfile", HF__TEXT, NULL, 0, 0, "a password file of PostgreSQL's own form (~/.pgpass)"},
    {"application_name", HF__TEXT, NULL, 0, 0,
     "shown in pg_stat_activity; holdfast and the program by default"},
    {"tls", HF__TEXT, NULL, 0, 0,
     "verify (the default, but not for loopback and sockets), insecure or off"},
    {"tls_ca", HF__TEXT, NULL, 0, 0, "the authority that signed the server's certificate (PEM)"},
    {"tls_cert", HF__TEXT, NULL, 0, 0, "our own certificate (PEM)"},
    {"tls_key", HF__TEXT, NULL, 0, 0, "its key"},
    {"mode", HF__TEXT, "push", 0, 0, "push: waiters are called by NOTIFY; poll: they ask"},
    {"poll", HF__DURATION, "100ms", 1, 60000,
     "how often to ask when nobody calls, give or take 25 %"},
    {"max_active", HF__NUMBER, "16", 1, 10000, "connections in use at the same time"},
    {"max_idle", HF__NUMBER, "8", 0, 10000, "connections kept when they are not in use"},
    {"max_held", HF__NUMBER, "64", 1, 10000,
     "hold=session, advisory: connections that hold or wait, one a lock"},
    {"idle_timeout", HF__DURATION, "60s", 100, 86400000, "for how long idle ones are kept"},
    {0},
};

static const char *text(const struct hf__url *url, const char *name)
{
    return hf__url_text(url, hf__pg_options, name);
}

static int copy(const char *from, char **to, hf_error *err)
{
    *to = from != NULL ? strdup(from) : NULL;
    return from != NULL && *to == NULL ? hf__fail(err, HF_NO_MEMORY, NULL) : 0;
}

/* Choices ------------------------------------------------------------------ */

struct choice {
    const char *word;
    int value;
};

static int choose(const struct hf__url *url, const char *name, const struct choice *choices,
                  int *ret_value, hf_error *err)
{
    const char *word = text(url, name);
    char known[80] = "";
    size_t used = 0;

    if (word == NULL)
        return 0;
    for (const struct choice *c = choices; c->word != NULL; c++) {
        if (strcmp(c->word, word) == 0) {
            *ret_value = c->value;
            return 0;
        }
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", used > 0 ? ", " : "",
                                 c->word);
    }
    return hf__fail(err, HF_INVALID, "%s is one of %s", name, known);
}

enum { TLS_BY_HOST, TLS_VERIFY, TLS_INSECURE, TLS_OFF };

/* Servers ------------------------------------------------------------------ */

static bool is_here(const char *host)
{
    return host[0] == '/' || strcmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 ||
           strcmp(host, "::1") == 0;
}

static const char *sslmode(int tls, const char *host)
{
    if (host[0] == '/' || tls == TLS_OFF || (tls == TLS_BY_HOST && is_here(host)))
        return "disable";
    return tls == TLS_INSECURE ? "require" : "verify-full";
}

static int add_host(struct hf__pg_settings *set, const char *from, size_t len, hf_error *err)
{
    bool bracket = from[0] == '[';
    const char *end = from + len, *name = from + bracket;
    size_t name_len = strcspn(name, bracket ? "]" : ":,");
    const char *colon = memchr(name + name_len, ':', (size_t)(end - name) - name_len);
    struct hf__pg_host *host = &set->hosts[set->host_count];

    if (set->host_count == HF__PG_HOSTS_MAX)
        return hf__fail(err, HF_INVALID, "at most %d servers", HF__PG_HOSTS_MAX);
    set->host_count++;
    host->host = strndup(name, name_len);
    host->port = colon != NULL ? strndup(colon + 1, (size_t)(end - colon) - 1) : strdup("5432");
    return host->host != NULL && host->port != NULL ? 0 : hf__fail(err, HF_NO_MEMORY, NULL);
}

static int read_hosts(const struct hf__url *url, struct hf__pg_settings *set, int tls,
                      hf_error *err)
{
    const char *socket = text(url, "socket"), *at = url->host;
    int r = 0;

    if (socket != NULL && socket[0] != '/')
        return hf__fail(err, HF_INVALID, "socket is the whole path of a directory");
    if (socket != NULL && at[0] != '\0')
        return hf__fail(err, HF_INVALID, "give either a host or a socket");
    if (at[0] == '\0' || socket != NULL) {
        set->host_count = 1;
        r = copy(socket != NULL ? socket : SOCKET_DIR, &set->hosts[0].host, err);
        if (r == 0)
            r = copy(text(url, "port"), &set->hosts[0].port, err);
    } else {
        for (; r == 0 && *at != '\0'; at += *at == ',') {
            size_t len = strcspn(at, ",");
            r = add_host(set, at, len, err);
            at += len;
        }
    }
    for (size_t i = 0; r == 0 && i < set->host_count; i++)
        set->hosts[i].sslmode = sslmode(tls, set->hosts[i].host);
    return r;
}

/* Passwords ---------------------------------------------------------------- */

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

static int read_password(const struct hf__url *url, struct hf__pg_settings *set, hf_error *err)
{
    const char *file = text(url, "password_file"), *env = text(url, "password_env");

    if ((url->password != NULL) + (file != NULL) + (env != NULL) > 1)
        return hf__fail(
            err, HF_INVALID,
            "the password is given twice: keep one of URL, password_file, password_env");
    if (file != NULL)
        return read_password_file(file, &set->password, err);
    if (env != NULL && secure_getenv(env) == NULL)
        return hf__fail(err, HF_INVALID, "the environment variable of password_env is not set");
    return copy(env != NULL ? secure_getenv(env) : url->password, &set->password, err);
}

/* libpq 15 knows no system-wide authorities; it looks into ~/.postgresql/root.crt only. */
static int read_ca(const struct hf__url *url, struct hf__pg_settings *set, hf_error *err)
{
    const char *ca = text(url, "tls_ca"), *home = secure_getenv("HOME");
    char *own = NULL;
    bool there = false;

    if (ca == NULL && home != NULL && asprintf(&own, "%s/.postgresql/root.crt", home) >= 0) {
        there = access(own, R_OK) == 0;
        free(own);
    }
    if (ca == NULL && !there && access(SYSTEM_CA, R_OK) == 0)
        ca = SYSTEM_CA;
    return copy(ca, &set->tls_ca, err);
}

/* "holdfast: nightly (4711)": a DBA who looks at pg_stat_activity knows whom to ask. */
static int name_application(const struct hf__url *url, struct hf__pg_settings *set,
                            const struct hf__host *host, hf_error *err)
{
    const char *given = text(url, "application_name");
    char name[64];

    snprintf(name, sizeof name, "holdfast: %.30s (%lld)", host->self->program,
             (long long)host->self->pid);
    return copy(given != NULL ? given : name, &set->application, err);
}

static void read_numbers(const struct hf__url *url, struct hf__pg_settings *set)
{
    set->max_active = hf__url_number(url, hf__pg_options, "max_active");
    set->max_idle = hf__url_number(url, hf__pg_options, "max_idle");
    set->max_held = hf__url_number(url, hf__pg_options, "max_held");
    set->idle_timeout_ms = hf__url_number(url, hf__pg_options, "idle_timeout");
    set->poll_ms = hf__url_number(url, hf__pg_options, "poll");
    set->retain_ms = hf__url_number(url, hf__pg_options, "retain");
}

int hf__pg_read_url(const struct hf__url *url, struct hf__pg_settings *set,
                    const struct hf__host *host, hf_error *err)
{
    static const struct choice holds[] = {
        {"lease", HF__PG_LEASE}, {"session", HF__PG_SESSION}, {"advisory", HF__PG_ADVISORY}, {0}};
    static const struct choice tlss[] = {
        {"verify", TLS_VERIFY}, {"insecure", TLS_INSECURE}, {"off", TLS_OFF}, {0}};
    static const struct choice modes[] = {{"push", 1}, {"poll", 0}, {0}};
    int hold = HF__PG_LEASE, tls = TLS_BY_HOST, push = 1;
    const char *database = url->path + (url->path[0] == '/');
    int r = choose(url, "hold", holds, &hold, err);

    if (r == 0)
        r = choose(url, "tls", tlss, &tls, err);
    if (r == 0)
        r = choose(url, "mode", modes, &push, err);
    if (r == 0)
        r = read_hosts(url, set, tls, err);
    if (r == 0)
        r = read_password(url, set, err);
    if (r == 0)
        r = read_ca(url, set, err);
    if (r == 0)
        r = copy(url->user, &set->user, err);
    if (r == 0)
        r = copy(text(url, "passfile"), &set->passfile, err);
    if (r == 0)
        r = copy(database[0] != '\0' ? database : NULL, &set->database, err);
    if (r == 0)
        r = copy(text(url, "tls_cert"), &set->tls_cert, err);
    if (r == 0)
        r = copy(text(url, "tls_key"), &set->tls_key, err);
    if (r == 0)
        r = name_application(url, set, host, err);
    set->hold = (enum hf__pg_hold)hold;
    set->push = push;
    read_numbers(url, set);
    return r;
}

void hf__pg_settings_clear(struct hf__pg_settings *set)
{
    for (size_t i = 0; i < set->host_count; i++) {
        free(set->hosts[i].host);
        free(set->hosts[i].port);
    }
    if (set->password != NULL)
        explicit_bzero(set->password, strlen(set->password));
    free(set->password);
    free(set->user);
    free(set->passfile);
    free(set->database);
    free(set->application);
    free(set->tls_ca);
    free(set->tls_cert);
    free(set->tls_key);
}
