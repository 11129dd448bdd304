/* What a URL says: mysql://user@h1:3306,h2:3306/database?options, or mysql:///database?socket=PATH.
 *
 * TLS means chain and host name verified: tls=verify is the default for every host but loopback and
 * sockets. Passwords come from `password_file`, `password_env` or an option file of MySQL's own
 * form (its group [client]); one in the URL works but is seen by everybody who sees the command
 * line. */
#include <stdio.h>

#include "base/bytes.h"
#include "stores/mysql/mysql.h"

#include "base/banned.h"

#define SOCKET "/run/mysqld/mysqld.sock"

const struct hf__option hf__my_options[] = {
    {"hold", HF__OPTION_TEXT, "lease", 0, 0,
     "lease: rows with a lease; session: a row lock of the server that lives as long as a "
     "connection"},
    {"socket", HF__OPTION_TEXT, NULL, 0, 0, "the server's socket, instead of a host"},
    HF__PASSWORD_OPTIONS,
    {"option_file", HF__OPTION_TEXT, NULL, 0, 0,
     "a file of MySQL's own form; user and password of its group [client] are used"},
    {"program_name", HF__OPTION_TEXT, NULL, 0, 0,
     "shown in performance_schema.session_connect_attrs; holdfast and the program by default"},
    HF__TLS_OPTIONS,
    {"mode", HF__OPTION_TEXT, "push", 0, 0,
     "push: waiters are woken, by KILL QUERY; poll: they ask"},
    {"poll", HF__OPTION_DURATION, "50ms", 1, 60000,
     "how often waiters poll if they are not woken, give or take 25 %"},
    {"recheck", HF__OPTION_DURATION, "1s", 10, 60000,
     "how often the first in the queue asks, although it will be woken"},
    {"max_held", HF__OPTION_NUMBER, "64", 1, 10000,
     "hold=session: connections that hold or wait, one a lock"},
    HF__SQL_POOL_OPTIONS,
    {0},
};

int hf__my_read_url(struct hf__my *s, const struct hf__url *url, hf_error *err)
{
    static const struct hf__choice holds[] = {{"lease", 0}, {"session", 1}, {0}};
    static const struct hf__sql_defaults preset = {.preset_socket = SOCKET, .port = "3306"};
    const char *program = hf__url_text(url, "program_name");
    char name[64];
    int session = 0, r = hf__url_choose(url, "hold", holds, &session, err);

    s->set.session = session;
    s->sql.set.recheck_ms = hf__url_number(url, "recheck");
    if (r == 0)
        r = hf__sql_read_account(url, &s->sql.set, err);
    if (r == 0)
        r = hf__sql_read_servers(url, &preset, &s->sql.set, err);
    if (r == 0 && s->sql.set.database == NULL)
        r = hf__fail(err, HF_INVALID, "name a database: mysql://user@host/locks");
    if (r == 0)
        r = hf__copy_text(hf__url_text(url, "option_file"), &s->set.option_file, err);
    /* "holdfast: nightly": a DBA who looks at the connection's attributes knows whom to ask. */
    snprintf(name, sizeof name, "holdfast: %.40s", s->base.host->self->program);
    return r != 0 ? r : hf__copy_text(program != NULL ? program : name, &s->set.program, err);
}
