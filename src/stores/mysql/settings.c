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

#define SOCKET "/run/mysqld/mysqld.sock"

const struct hf__option hf__my_options[] = {
    {"hold", HF__TEXT, "lease", 0, 0,
     "lease: rows with a lease; session: a row lock of the server that lives as long as a "
     "connection"},
    {"socket", HF__TEXT, NULL, 0, 0, "the server's socket, instead of a host"},
    HF__SQL_PASSWORD_OPTIONS,
    {"option_file", HF__TEXT, NULL, 0, 0,
     "a file of MySQL's own form; user and password of its group [client] are used"},
    {"program_name", HF__TEXT, NULL, 0, 0,
     "shown in performance_schema.session_connect_attrs; holdfast and the program by default"},
    HF__SQL_TLS_OPTIONS,
    {"mode", HF__TEXT, "push", 0, 0, "push: waiters are called, by KILL QUERY; poll: they ask"},
    {"poll", HF__DURATION, "50ms", 1, 60000,
     "how often to ask when nobody calls, give or take 25 %"},
    {"recheck", HF__DURATION, "1s", 10, 60000,
     "how often the first in the queue asks although it will be called"},
    {"routines", HF__SWITCH, "yes", 0, 0, "no: plain statements even if the procedures are there"},
    {"max_held", HF__NUMBER, "64", 1, 10000,
     "hold=session: connections that hold or wait, one a lock"},
    HF__SQL_POOL_OPTIONS,
    {0},
};

static int read_ca(const struct hf__sql_url *from, struct hf__my_settings *set, hf_error *err)
{
    const char *ca = hf__sql_text(from, "tls_ca");

    if (ca == NULL && access(HF__SQL_SYSTEM_CA, R_OK) == 0)
        ca = HF__SQL_SYSTEM_CA;
    return hf__sql_copy(ca, &set->tls_ca, err);
}

/* "holdfast: nightly": a DBA who looks at the connection's attributes knows whom to ask. */
static int name_program(const struct hf__sql_url *from, struct hf__my_settings *set,
                        const struct hf__host *host, hf_error *err)
{
    const char *given = hf__sql_text(from, "program_name");
    char name[64];

    snprintf(name, sizeof name, "holdfast: %.40s", host->self->program);
    return hf__sql_copy(given != NULL ? given : name, &set->program, err);
}

static void read_numbers(const struct hf__sql_url *from, struct hf__my_settings *set)
{
    set->limits.max_active = hf__sql_number(from, "max_active");
    set->limits.max_idle = hf__sql_number(from, "max_idle");
    set->limits.idle_timeout_ms = hf__sql_number(from, "idle_timeout");
    set->recheck_ms = hf__sql_number(from, "recheck");
    set->max_held = hf__sql_number(from, "max_held");
    set->poll_ms = hf__sql_number(from, "poll");
    set->retain_ms = hf__sql_number(from, "retain");
}

int hf__my_read_url(const struct hf__url *url, struct hf__my_settings *set,
                    const struct hf__host *host, hf_error *err)
{
    static const struct hf__sql_choice holds[] = {{"lease", 0}, {"session", 1}, {0}};
    static const struct hf__sql_choice modes[] = {{"push", 1}, {"poll", 0}, {0}};
    static const struct hf__sql_defaults preset = {.preset_socket = SOCKET, .port = "3306"};
    struct hf__sql_url whole = {.url = url, .options = hf__my_options}, *from = &whole;
    const char *database = url->path + (url->path[0] == '/');
    int push = 1, session = 0, r = hf__sql_choose(from, "mode", modes, &push, err);

    if (r == 0)
        r = hf__sql_choose(from, "hold", holds, &session, err);
    if (r == 0 && database[0] == '\0')
        r = hf__fail(err, HF_INVALID, "name a database: mysql://user@host/locks");
    if (r == 0)
        r = hf__sql_read_hosts(from, &preset, &set->hosts, err);
    if (r == 0)
        r = hf__sql_read_password(from, &set->password, err);
    if (r == 0)
        r = read_ca(from, set, err);
    if (r == 0)
        r = hf__sql_copy(url->user, &set->user, err);
    if (r == 0)
        r = hf__sql_copy(hf__sql_text(from, "option_file"), &set->option_file, err);
    if (r == 0)
        r = hf__sql_copy(database, &set->database, err);
    if (r == 0)
        r = hf__sql_copy(hf__sql_text(from, "tls_cert"), &set->tls_cert, err);
    if (r == 0)
        r = hf__sql_copy(hf__sql_text(from, "tls_key"), &set->tls_key, err);
    if (r == 0)
        r = name_program(from, set, host, err);
    set->push = push;
    set->session = session;
    set->routines = hf__url_switch(url, hf__my_options, "routines");
    read_numbers(from, set);
    return r;
}

void hf__my_settings_clear(struct hf__my_settings *set)
{
    char *texts[] = {set->user,   set->option_file, set->database, set->program,
                     set->tls_ca, set->tls_cert,    set->tls_key};

    hf__sql_hosts_clear(&set->hosts);
    hf__sql_forget(set->password);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        free(texts[i]);
}
