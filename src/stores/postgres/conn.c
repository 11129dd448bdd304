/* One connection. libpq is used without blocking, so that nothing outlives its deadline; only its
 * look-up of host names blocks. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "stores/postgres/postgres.h"

#include "base/banned.h"

#define PARAMETERS_MAX 32

struct parameters {
    const char *keywords[PARAMETERS_MAX], *values[PARAMETERS_MAX];
    int count;
};

static void add(struct parameters *p, const char *keyword, const char *value)
{
    if (value == NULL)
        return;
    p->keywords[p->count] = keyword;
    p->values[p->count++] = value;
}

static const char *sslmode(enum hf__tls_mode tls)
{
    return tls == HF__TLS_MODE_OFF        ? "disable"
           : tls == HF__TLS_MODE_INSECURE ? "require"
                                          : "verify-full";
}

/* No `options`, and nothing else that a pooler would refuse or a shared connection keep. */
static void fill_in(const struct hf__pg *s, const struct hf__server *host, struct parameters *p)
{
    const struct hf__sql_settings *set = &s->sql.set;

    *p = (struct parameters){0};
    add(p, "host", host->host);
    add(p, "port", host->port);
    add(p, "user", set->account.user);
    add(p, "password", set->account.password);
    add(p, "passfile", s->set.passfile);
    add(p, "dbname", set->database);
    add(p, "application_name", s->set.application);
    add(p, "client_encoding", "UTF8");
    add(p, "sslmode", sslmode(host->tls));
    /* With an authority at hand libpq would check the chain even where we asked it not to. */
    add(p, "sslrootcert", host->tls == HF__TLS_MODE_INSECURE ? "/dev/null/none" : set->tls_ca);
    add(p, "sslcert", set->tls_cert);
    add(p, "sslkey", set->tls_key);
    add(p, "gssencmode", "disable");
    add(p, "target_session_attrs", "read-write");
    add(p, "keepalives_idle", "10");
    add(p, "keepalives_interval", "3");
    add(p, "keepalives_count", "3");
    add(p, "tcp_user_timeout", "15000");
}

int hf__pg_wait(struct hf__pg *s, PGconn *pg, short events, int64_t deadline_ns)
{
    for (;;) {
        struct pollfd fd = {.fd = PQsocket(pg), .events = events};
        int64_t left_ns = deadline_ns - hf__now_ns(s->base.host->env);
        int64_t left_ms = (left_ns + HF__NS_PER_MS - 1) / HF__NS_PER_MS;
        if (left_ns <= 0)
            return 0;
        int n = poll(&fd, 1, left_ms > 60000 ? 60000 : (int)left_ms);
        if (n > 0 || (n < 0 && errno != EINTR))
            return 1;
    }
}

static bool connect_by(struct hf__pg *s, PGconn *pg, int64_t deadline_ns)
{
    PostgresPollingStatusType status = PGRES_POLLING_WRITING;

    while (status != PGRES_POLLING_OK && status != PGRES_POLLING_FAILED) {
        short events = status == PGRES_POLLING_READING ? POLLIN : POLLOUT;
        if (!hf__pg_wait(s, pg, events, deadline_ns))
            return false;
        status = PQconnectPoll(pg);
    }
    return true;
}

static void ignore_notice(void *arg, const PGresult *result)
{
    (void)arg, (void)result;
}

static int dial_host(struct hf__pg *s, const struct hf__server *host, int64_t deadline_ns,
                     PGconn **ret_pg, hf_error *err)
{
    struct parameters p;

    fill_in(s, host, &p);
    PGconn *pg = PQconnectStartParams(p.keywords, p.values, 0);
    if (pg == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    PQsetErrorVerbosity(pg, PQERRORS_VERBOSE); /* with the SQLSTATE */
    PQsetNoticeReceiver(pg, ignore_notice, NULL);
    bool answered = PQstatus(pg) == CONNECTION_BAD || connect_by(s, pg, deadline_ns);
    int r = 0;
    if (!answered)
        r = hf__fail(err, HF_UNAVAILABLE, "postgres: %s:%s does not answer", host->host,
                     host->port);
    else if (PQstatus(pg) != CONNECTION_OK || PQsetnonblocking(pg, 1) != 0)
        r = hf__pg_fail_connect(pg, err);
    if (r != 0) {
        PQfinish(pg);
        return r;
    }
    *ret_pg = pg;
    return 0;
}

static int dial(void *owner, size_t host, int64_t deadline_ns, struct hf__pooled **ret_conn,
                hf_error *err)
{
    struct hf__pg *s = owner;
    struct hf__pg_conn *c = calloc(1, sizeof *c);
    int r = c == NULL ? hf__fail(err, HF_NO_MEMORY, NULL)
                      : dial_host(s, &s->sql.set.servers.list[host], deadline_ns, &c->pg, err);

    if (r != 0) {
        free(c);
        return r;
    }
    hf__sql_note_dial(&s->base);
    *ret_conn = &c->pooled;
    return 0;
}

void hf__pg_hang_up(struct hf__pg_conn *c)
{
    if (c == NULL)
        return;
    PQfinish(c->pg);
    free(c);
}

static void hang_up(struct hf__pooled *conn)
{
    hf__pg_hang_up((struct hf__pg_conn *)conn);
}

static bool is_alive(void *owner, struct hf__pooled *conn, int64_t idle_ns, int64_t deadline_ns)
{
    struct hf__pg_conn *c = (struct hf__pg_conn *)conn;
    struct pollfd fd = {.fd = PQsocket(c->pg), .events = POLLIN};

    (void)idle_ns, (void)deadline_ns;
    bool alive = PQstatus(c->pg) == CONNECTION_OK && poll(&fd, 1, 0) == 0;
    if (!alive)
        hf__sql_note_loss(&((struct hf__pg *)owner)->sql);
    return alive;
}

static bool is_crowded(const hf_error *why)
{
    return why->store_code == strtol("53300", NULL, 36);
}

const struct hf__pool_type hf__pg_pool_type = {
    .store = "postgres",
    .dial = dial,
    .hang_up = hang_up,
    .is_alive = is_alive,
    .is_crowded = is_crowded,
};

int hf__pg_dial(struct hf__pg *s, int64_t deadline_ns, struct hf__pg_conn **ret_conn, hf_error *err)
{
    struct hf__pooled *conn = NULL;
    int r = hf__pool_dial(&s->sql.pool, deadline_ns, &conn, err);

    if (r == 0)
        *ret_conn = (struct hf__pg_conn *)conn;
    return r;
}

int hf__pg_borrow(struct hf__pg *s, int64_t deadline_ns, struct hf__pg_conn **ret_conn,
                  hf_error *err)
{
    struct hf__pooled *conn = NULL;
    int r = hf__pool_take(&s->sql.pool, deadline_ns, &conn, err);

    if (r == 0)
        *ret_conn = (struct hf__pg_conn *)conn;
    return r;
}

void hf__pg_give_back(void *store, void *conn)
{
    struct hf__pg *s = store;
    struct hf__pg_conn *c = conn;
    bool sound = !c->replica && PQstatus(c->pg) == CONNECTION_OK;

    if (!sound)
        hf__sql_note_loss(&s->sql);
    hf__pool_give(&s->sql.pool, &c->pooled, sound && PQtransactionStatus(c->pg) == PQTRANS_IDLE);
}

void hf__pg_hang_up_borrowed(struct hf__pg *s, struct hf__pg_conn *c)
{
    hf__pool_give(&s->sql.pool, &c->pooled, false);
}
