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

#include "base/bytes.h"
#include "stores/postgres/postgres.h"

#include "base/banned.h"

#define SOCKET_DIR "/var/run/postgresql"

const struct hf__option hf__pg_options[] = {
    {"hold", HF__OPTION_TEXT, "lease", 0, 0,
     "lease: rows with a lease; session, advisory: a lock of the server that lives as long as a "
     "connection"},
    {"schema", HF__OPTION_TEXT, NULL, 0, 0,
     "the schema of the tables, whatever the search_path; public by default"},
    {"socket", HF__OPTION_TEXT, NULL, 0, 0,
     "the directory of the server's socket, instead of a host"},
    {"port", HF__OPTION_NUMBER, "5432", 1, 65535, "the port in the name of that socket"},
    HF__PASSWORD_OPTIONS,
    {"passfile", HF__OPTION_TEXT, NULL, 0, 0,
     "a password file of PostgreSQL's own form (~/.pgpass)"},
    {"application_name", HF__OPTION_TEXT, NULL, 0, 0,
     "shown in pg_stat_activity; holdfast and the program by default"},
    HF__TLS_OPTIONS,
    {"mode", HF__OPTION_TEXT, "push", 0, 0, "push: waiters are woken by NOTIFY; poll: they ask"},
    {"poll", HF__OPTION_DURATION, "100ms", 1, 60000,
     "how often waiters poll if they are not woken, give or take 25 %"},
    {"max_held", HF__OPTION_NUMBER, "64", 1, 10000,
     "hold=session, advisory: connections that hold or wait, one a lock"},
    HF__SQL_POOL_OPTIONS,
    {0},
};

/* libpq 15 knows no system-wide authorities; it looks into ~/.postgresql/root.crt only. */
static bool has_ca(void)
{
    const char *home = secure_getenv("HOME");
    char *own = NULL;
    bool there = false;

    if (home != NULL && asprintf(&own, "%s/.postgresql/root.crt", home) >= 0) {
        there = access(own, R_OK) == 0;
        free(own);
    }
    return there;
}

int hf__pg_read_url(struct hf__pg *s, const struct hf__url *url, hf_error *err)
{
    static const struct hf__choice holds[] = {{"lease", HF__PG_HOLD_LEASE},
                                              {"session", HF__PG_HOLD_SESSION},
                                              {"advisory", HF__PG_HOLD_ADVISORY},
                                              {0}};
    const struct hf__sql_defaults preset = {.preset_socket = SOCKET_DIR,
                                            .port = "5432",
                                            .socket_port = hf__url_text(url, "port"),
                                            .has_ca = has_ca()};
    const char *application = hf__url_text(url, "application_name");
    const struct hf__who *self = s->base.host->self;
    char name[64];
    int hold = HF__PG_HOLD_LEASE, r = hf__url_choose(url, "hold", holds, &hold, err);

    s->set.hold = (enum hf__pg_hold)hold;
    if (r == 0)
        r = hf__sql_read_account(url, &s->sql.set, err);
    if (r == 0)
        r = hf__sql_read_servers(url, &preset, &s->sql.set, err);
    if (r == 0)
        r = hf__copy_text(hf__url_text(url, "passfile"), &s->set.passfile, err);
    if (r == 0)
        r = hf__pg_check_schema(hf__url_text(url, "schema"), err);
    if (r == 0)
        r = hf__copy_text(hf__url_text(url, "schema"), &s->set.schema, err);
    /* "holdfast: nightly (4711)": a DBA who looks at pg_stat_activity knows whom to ask. */
    snprintf(name, sizeof name, "holdfast: %.30s (%lld)", self->program, (long long)self->pid);
    return r != 0
               ? r
               : hf__copy_text(application != NULL ? application : name, &s->set.application, err);
}
