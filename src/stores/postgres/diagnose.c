/* What `holdfast doctor` says about a live server. It reads and changes nothing. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "stores/postgres/postgres.h"

#include "util/banned.h"

enum { FINE, NOTE, WARNING, PROBLEM };

#define LATENCY_ROUNDS 9

struct report {
    struct hf__pg *s;
    struct hf__pg_conn *c;
    int64_t deadline_ns;
    hf_finding_callback *found;
    void *arg;
};

static void say(const struct report *r, int level, const char *clause, const char *format, ...)
    HF__PRINTF(4, 5);

static void say(const struct report *r, int level, const char *clause, const char *format, ...)
{
    char text[400];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    r->found(level, clause, text, r->arg);
}

static PGresult *ask(const struct report *r, const char *sql)
{
    struct hf__pg_query q = {.sql = sql, .reads = true};
    PGresult *result = NULL;
    hf_error err = {0};

    if (hf__pg_ask(r->s, r->c, &q, r->deadline_ns, &result, &err) != 0) {
        say(r, PROBLEM, NULL, "%s", err.text);
        return NULL;
    }
    if (PQntuples(result) == 0) {
        PQclear(result);
        return NULL;
    }
    return result;
}

static void look_at_server(const struct report *r)
{
    PGresult *a = ask(r, "SELECT current_setting('server_version'), pg_is_in_recovery(),"
                         " current_setting('transaction_isolation'), current_setting('fsync'),"
                         " current_setting('synchronous_commit'),"
                         " current_setting('synchronous_standby_names'),"
                         " current_setting('server_version_num')::bigint");
    if (a == NULL)
        return;
    const char *standbys = PQgetvalue(a, 0, 5), *sync = PQgetvalue(a, 0, 4);
    say(r, hf__pg_cell(a, 0, 6, 0) < 120000 ? WARNING : FINE, NULL, "PostgreSQL %s on %s:%s",
        PQgetvalue(a, 0, 0), PQhost(r->c->pg), PQport(r->c->pg));
    if (hf__pg_cell_flag(a, 0, 1))
        say(r, PROBLEM, "C1", "this server is a replica: name the primary");
    else
        say(r, FINE, "C1", "this server is a primary");
    if (strcmp(PQgetvalue(a, 0, 2), "read committed") != 0)
        say(r, NOTE, "C1",
            "default isolation is '%s': each operation sets READ COMMITTED, in three round trips"
            " instead of one",
            PQgetvalue(a, 0, 2));
    else
        say(r, FINE, "C1", "isolation: read committed");
    if (strcmp(PQgetvalue(a, 0, 3), "on") != 0)
        say(r, WARNING, "C4",
            "fsync is off: a crash of the machine may lose locks and damage the data");
    if (strcmp(sync, "off") == 0)
        say(r, WARNING, "C3",
            "synchronous_commit is off: a crash of the server forgets the last grants, also those"
            " that never expire");
    if (standbys[0] != '\0')
        say(r, FINE, "C1", "synchronous replication to %s (synchronous_commit %s)", standbys, sync);
    else
        say(r, NOTE, "C1",
            "no synchronous standby: a failover may forget the last grants; the fencing token"
            " makes that harmless");
    PQclear(a);
}

static void look_at_routines(const struct report *r)
{
    hf_error err = {0};

    if (hf__pg_learn(r->s, r->c, r->deadline_ns, &err) != 0)
        say(r, PROBLEM, NULL, "%s", err.text);
    else if (atomic_load(&r->s->way) == HF__PG_ROUTINES)
        say(r, FINE, NULL, "tables and functions of version %d: one round trip an operation",
            HF__PG_SCHEMA);
    else
        say(r, WARNING, NULL,
            "the functions are missing or may not be executed: plain statements, six round trips"
            " and more an operation; `holdfast setup` creates them");
}

static void look_at_rights(const struct report *r)
{
    static const char *const tables[] = {"holdfast_lock", "holdfast_holder", "holdfast_waiter",
                                         "holdfast_retired"};
    char sql[400];
    bool whole = true;

    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        snprintf(sql, sizeof sql,
                 "SELECT coalesce(has_table_privilege(to_regclass('%s'), 'select') AND"
                 " has_table_privilege(to_regclass('%s'), 'insert') AND"
                 " has_table_privilege(to_regclass('%s'), 'update') AND"
                 " has_table_privilege(to_regclass('%s'), 'delete'), false), current_user",
                 tables[i], tables[i], tables[i], tables[i]);
        PGresult *a = ask(r, sql);
        if (a != NULL && !hf__pg_cell_flag(a, 0, 0)) {
            whole = false;
            say(r, PROBLEM, NULL, "role %s needs SELECT, INSERT, UPDATE and DELETE on %s",
                PQgetvalue(a, 0, 1), tables[i]);
        }
        PQclear(a);
    }
    if (whole)
        say(r, FINE, NULL, "the role may read and write all tables");
}

static void look_at_pooler(const struct report *r)
{
    bool pooled = false;
    hf_error err = {0};

    if (hf__pg_find_pooler(r->s, r->c, r->deadline_ns, &pooled, &err) != 0)
        say(r, PROBLEM, NULL, "%s", err.text);
    else if (pooled)
        say(r, NOTE, "C12",
            "a pooler stands between: leases work, waiters ask every %" PRId64
            " ms instead of being called, hold=session and hold=advisory are refused",
            r->s->set.poll_ms);
    else
        say(r, FINE, "C12", "no pooler in between: waiters are called by NOTIFY");
    if (PQsslInUse(r->c->pg))
        say(r, FINE, NULL, "%s", PQsslAttribute(r->c->pg, "protocol"));
    else
        say(r, FINE, NULL, "no TLS on this connection");
}

static void look_at_clock(const struct report *r)
{
    const struct hf_env *env = r->s->base.host->env;
    int64_t before_us = (int64_t)env->wall_us(env->ctx);
    PGresult *a = ask(r, "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint");
    int64_t after_us = (int64_t)env->wall_us(env->ctx);

    if (a == NULL)
        return;
    int64_t apart_ms = (hf__pg_cell(a, 0, 0, 0) - (before_us + after_us) / 2) / 1000;
    say(r, apart_ms > 60000 || apart_ms < -60000 ? WARNING : FINE, "C3",
        "the server's clock decides; it is %" PRId64 " ms ahead of this machine's", apart_ms);
    PQclear(a);
}

static void look_at_rows(const struct report *r)
{
    PGresult *a = ask(
        r, "SELECT (SELECT count(*) FROM holdfast_lock), (SELECT count(*) FROM holdfast_holder),"
           " (SELECT count(*) FROM holdfast_waiter), (SELECT count(*) FROM holdfast_retired)");
    if (a == NULL)
        return;
    say(r, FINE, NULL, "locks known %s, held or closed %s, waiting %s, tickets remembered %s",
        PQgetvalue(a, 0, 0), PQgetvalue(a, 0, 1), PQgetvalue(a, 0, 2), PQgetvalue(a, 0, 3));
    PQclear(a);
    a = ask(
        r,
        "SELECT coalesce(sum(n_dead_tup), 0), pg_size_pretty(sum(pg_total_relation_size(relid))),"
        " coalesce(sum(n_dead_tup), 0) > 100000 AND coalesce(sum(n_dead_tup), 0) >"
        " 10 * coalesce(sum(n_live_tup), 0) FROM pg_stat_user_tables WHERE relid IN"
        " (to_regclass('holdfast_lock'), to_regclass('holdfast_holder'),"
        " to_regclass('holdfast_waiter'), to_regclass('holdfast_retired'))");
    if (a == NULL)
        return;
    say(r, hf__pg_cell_flag(a, 0, 2) ? WARNING : FINE, NULL,
        "the tables take %s, with %s dead rows%s", PQgetvalue(a, 0, 1), PQgetvalue(a, 0, 0),
        hf__pg_cell_flag(a, 0, 2) ? ": autovacuum does not keep up" : "");
    PQclear(a);
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static void look_at_latency(const struct report *r)
{
    const struct hf_env *env = r->s->base.host->env;
    int64_t took_ns[LATENCY_ROUNDS];

    for (int i = 0; i < LATENCY_ROUNDS; i++) {
        int64_t from_ns = hf__now_ns(env);
        PGresult *a = ask(r, "SELECT 1");
        took_ns[i] = hf__now_ns(env) - from_ns;
        if (a == NULL)
            return;
        PQclear(a);
    }
    qsort(took_ns, LATENCY_ROUNDS, sizeof took_ns[0], compare);
    int64_t median_us = took_ns[LATENCY_ROUNDS / 2] / 1000;
    say(r, median_us > 50000 ? WARNING : FINE, NULL, "a round trip takes %" PRId64 " us (median)",
        median_us);
}

int hf__pg_diagnose(struct hf__store *store, hf_finding_callback *found, void *arg,
                    int64_t deadline_ns, hf_error *err)
{
    struct report r = {
        .s = (struct hf__pg *)store, .deadline_ns = deadline_ns, .found = found, .arg = arg};
    int code = hf__pg_borrow(r.s, deadline_ns, &r.c, err);

    if (code != 0)
        return code;
    look_at_server(&r);
    look_at_pooler(&r);
    look_at_routines(&r);
    if (atomic_load(&r.s->way) != HF__PG_NOT_KNOWN) {
        look_at_rights(&r);
        look_at_rows(&r);
    }
    look_at_clock(&r);
    look_at_latency(&r);
    hf__pg_give_back(r.s, r.c);
    return 0;
}
