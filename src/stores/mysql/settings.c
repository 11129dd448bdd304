/* What a URL says: mysql://user@h1:3306,h2:3306/database?options, or mysql:///database?socket=PATH.
 *
 * TLS means chain and host name verified: tls=verify is the default for every host but loopback and
 * sockets. Passwords come from `password_file`, `password_env` or an option file of MySQL's own
 * form (its group [client]); one in the URL works but is seen by everybody who sees the command
 * line. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "stores/mysql/mysql.h"

#include "util/banned.h"

#define PASSWORD_MAX 1024
#define SYSTEM_CA    "/etc/ssl/certs/ca-certificates.crt"
#define SOCKET       "/run/mysqld/mysqld.sock"
#define PORT         3306

const struct hf__option hf__my_options[] = {
    {"socket", HF__TEXT, NULL, 0, 0, "the server's socket, instead of a host"},
    {"password_file", HF__TEXT, NULL, 0, 0, "a file whose first line is the password"},
    {"password_env", HF__TEXT, NULL, 0, 0, "the environment variable that has the password"},
    {"option_file", HF__TEXT, NULL, 0, 0,
     "a file of MySQL's own form; user and password of its group [client] are used"},
    {"program_name", HF__TEXT, NULL, 0, 0,
     "shown in performance_schema.session_connect_attrs; holdfast and the program by default"},
    {"tls", HF__TEXT, NULL, 0, 0,
     "verify (the default, but not for loopback and sockets), insecure or off"},
    {"tls_ca", HF__TEXT, NULL, 0, 0, "the authority that signed the server's certificate (PEM)"},
    {"tls_cert", HF__TEXT, NULL, 0, 0, "our own certificate (PEM)"},
    {"tls_key", HF__TEXT, NULL, 0, 0, "its key"},
    {"mode", HF__TEXT, "push", 0, 0,
     "poll: waiters ask; push: they are called by KILL QUERY (see the README before you choose "
     "it)"},
    {"poll", HF__DURATION, "50ms", 1, 60000,
     "how often to ask when nobody calls, give or take 25 %"},
    {"recheck", HF__DURATION, "1s", 10, 60000,
     "how often the first in the queue asks although it will be called"},
    {"routines", HF__SWITCH, "yes", 0, 0, "no: plain statements even if the procedures are there"},
    {"max_active", HF__NUMBER, "16", 1, 10000, "connections in use at the same time"},
    {"max_idle", HF__NUMBER, "8", 0, 10000, "connections kept when they are not in use"},
    {"idle_timeout", HF__DURATION, "60s", 100, 86400000, "for how long idle ones are kept"},
    {0},
};

static const char *text(const struct hf__url *url, const char *name)
{
    return hf__url_text(url, hf__my_options, name);
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

/* Servers ------------------------------------------------------------------ */

static bool is_here(const char *host)
{
    return strcmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 ||
           strcmp(host, "::1") == 0;
}

static int add_host(struct hf__my_settings *set, const char *from, size_t len, hf_error *err)
{
    bool bracket = from[0] == '[';
    const char *end = from + len, *name = from + bracket;
    size_t name_len = strcspn(name, bracket ? "]" : ":,");
    const char *colon = memchr(name + name_len, ':', (size_t)(end - name) - name_len);
    struct hf__my_host *host = &set->hosts[set->host_count];

    if (set->host_count == HF__MY_HOSTS_MAX)
        return hf__fail(err, HF_INVALID, "at most %d servers", HF__MY_HOSTS_MAX);
    set->host_count++;
    host->host = strndup(name, name_len);
    host->port = colon != NULL ? (unsigned)strtoul(colon + 1, NULL, 10) : PORT;
    return host->host != NULL ? 0 : hf__fail(err, HF_NO_MEMORY, NULL);
}

static int read_hosts(const struct hf__url *url, struct hf__my_settings *set, int tls,
                      hf_error *err)
{
    const char *socket = text(url, "socket"), *at = url->host;
    int r = 0;

    if (socket != NULL && socket[0] != '/')
        return hf__fail(err, HF_INVALID, "socket is the whole path of the server's socket");
    if (socket != NULL && at[0] != '\0' && strcmp(at, "localhost") != 0)
        return hf__fail(err, HF_INVALID, "give either a host or a socket");
    if (at[0] == '\0' || socket != NULL) {
        set->host_count = 1;
        set->hosts[0].tls = HF__MY_TLS_OFF;
        return copy(socket != NULL ? socket : SOCKET, &set->socket, err);
    }
    for (; r == 0 && *at != '\0'; at += *at == ',') {
        size_t len = strcspn(at, ",");
        r = add_host(set, at, len, err);
        at += len;
    }
    for (size_t i = 0; r == 0 && i < set->host_count; i++) {
        bool here = is_here(set->hosts[i].host);
        set->hosts[i].tls = tls != HF__MY_TLS_BY_HOST ? (enum hf__my_tls)tls
                            : here                    ? HF__MY_TLS_OFF
                                                      : HF__MY_TLS_VERIFY;
    }
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

static int read_password(const struct hf__url *url, struct hf__my_settings *set, hf_error *err)
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

static int read_ca(const struct hf__url *url, struct hf__my_settings *set, hf_error *err)
{
    const char *ca = text(url, "tls_ca");

    if (ca == NULL && access(SYSTEM_CA, R_OK) == 0)
        ca = SYSTEM_CA;
    return copy(ca, &set->tls_ca, err);
}

/* "holdfast: nightly": a DBA who looks at the connection's attributes knows whom to ask. */
static int name_program(const struct hf__url *url, struct hf__my_settings *set,
                        const struct hf__host *host, hf_error *err)
{
    const char *given = text(url, "program_name");
    char name[64];

    snprintf(name, sizeof name, "holdfast: %.40s", host->self->program);
    return copy(given != NULL ? given : name, &set->program, err);
}

static void read_numbers(const struct hf__url *url, struct hf__my_settings *set)
{
    set->max_active = hf__url_number(url, hf__my_options, "max_active");
    set->max_idle = hf__url_number(url, hf__my_options, "max_idle");
    set->idle_timeout_ms = hf__url_number(url, hf__my_options, "idle_timeout");
    set->recheck_ms = hf__url_number(url, hf__my_options, "recheck");
    set->poll_ms = hf__url_number(url, hf__my_options, "poll");
    set->retain_ms = hf__url_number(url, hf__my_options, "retain");
}

int hf__my_read_url(const struct hf__url *url, struct hf__my_settings *set,
                    const struct hf__host *host, hf_error *err)
{
    static const struct choice tlss[] = {{"verify", HF__MY_TLS_VERIFY},
                                         {"insecure", HF__MY_TLS_INSECURE},
                                         {"off", HF__MY_TLS_OFF},
                                         {0}};
    static const struct choice modes[] = {{"push", 1}, {"poll", 0}, {0}};
    int tls = HF__MY_TLS_BY_HOST, push = 1;
    const char *database = url->path + (url->path[0] == '/');
    int r = choose(url, "tls", tlss, &tls, err);

    if (r == 0)
        r = choose(url, "mode", modes, &push, err);
    if (r == 0 && database[0] == '\0')
        r = hf__fail(err, HF_INVALID, "name a database: mysql://user@host/locks");
    if (r == 0)
        r = read_hosts(url, set, tls, err);
    if (r == 0)
        r = read_password(url, set, err);
    if (r == 0)
        r = read_ca(url, set, err);
    if (r == 0)
        r = copy(url->user, &set->user, err);
    if (r == 0)
        r = copy(text(url, "option_file"), &set->option_file, err);
    if (r == 0)
        r = copy(database, &set->database, err);
    if (r == 0)
        r = copy(text(url, "tls_cert"), &set->tls_cert, err);
    if (r == 0)
        r = copy(text(url, "tls_key"), &set->tls_key, err);
    if (r == 0)
        r = name_program(url, set, host, err);
    set->push = push;
    set->routines = hf__url_switch(url, hf__my_options, "routines");
    read_numbers(url, set);
    return r;
}

void hf__my_settings_clear(struct hf__my_settings *set)
{
    char *texts[] = {set->socket,  set->user,   set->option_file, set->database,
                     set->program, set->tls_ca, set->tls_cert,    set->tls_key};

    for (size_t i = 0; i < set->host_count; i++)
        free(set->hosts[i].host);
    if (set->password != NULL)
        explicit_bzero(set->password, strlen(set->password));
    free(set->password);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        free(texts[i]);
}
