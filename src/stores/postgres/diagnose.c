/* What `holdfast doctor` says about a live server. It changes nothing, and claims only what it has tried. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/report.h"
#include "stores/postgres/postgres.h"

#include "base/banned.h"

struct report {
    struct hf__report to;
    struct hf__pg *s;
    struct hf__pg_conn *c;
    int64_t deadline_ns;
};

static PGresult *ask(const struct report *r, const char *sql)
{
    struct hf__pg_query q = {.sql = sql, .reads = true};
    PGresult *result = NULL;
    hf_error err = {0};

    if (hf__pg_ask(r->s, r->c, &q, r->deadline_ns, &result, &err) != 0) {
        hf__say(&r->to, HF__LEVEL_PROBLEM, NULL, "%s", err.text);
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
    PGresult *a = ask(r, hf__pg_server_sql);

    if (a == NULL)
        return;
    const char *standbys = PQgetvalue(a, 0, 5), *sync = PQgetvalue(a, 0, 4);
    hf__say(&r->to, hf__pg_cell(a, 0, 6, 0) < 120000 ? HF__LEVEL_WARNING : HF__LEVEL_FINE, NULL,
            "PostgreSQL %s on %s:%s", PQgetvalue(a, 0, 0), PQhost(r->c->pg), PQport(r->c->pg));
    if (hf__pg_cell_flag(a, 0, 1))
        hf__say(&r->to, HF__LEVEL_PROBLEM, "C1", "this server is a replica: name the primary");
    else
        hf__say(&r->to, HF__LEVEL_FINE, "C1", "this server is a primary");
    if (strcmp(PQgetvalue(a, 0, 2), "read committed") != 0)
        hf__say(
            &r->to, HF__LEVEL_NOTE, "C1",
            "default isolation is '%s': each operation sets READ COMMITTED, in three round trips"
            " instead of one",
            PQgetvalue(a, 0, 2));
    else
        hf__say(&r->to, HF__LEVEL_FINE, "C1", "isolation: read committed");
    if (strcmp(PQgetvalue(a, 0, 3), "on") != 0)
        hf__say(&r->to, HF__LEVEL_WARNING, "C4",
                "fsync is off: a crash of the machine may lose locks and damage the data");
    if (strcmp(sync, "off") == 0)
        hf__say(
            &r->to, HF__LEVEL_WARNING, "C3",
            "synchronous_commit is off: a crash of the server forgets the last grants, also those"
            " that never expire");
    if (standbys[0] != '\0')
        hf__say(&r->to, HF__LEVEL_FINE, "C1",
                "synchronous replication to %s (synchronous_commit %s)", standbys, sync);
    else
        hf__say(&r->to, HF__LEVEL_NOTE, "C1",
                "no synchronous standby: a failover may forget the last grants; the fencing token"
                " makes that harmless");
    PQclear(a);
}

static void look_at_schema(const struct report *r)
{
    const char *schema = hf__pg_schema(r->s);
    struct hf__pg_location at;
    hf_error err = {0};

    if (hf__pg_look_around(r->s, r->c, r->deadline_ns, &at, &err) != 0) {
        hf__say(&r->to, HF__LEVEL_PROBLEM, NULL, "%s", err.text);
        return;
    }
    hf__say(&r->to, HF__LEVEL_FINE, NULL, "database %s, schema %s, role %s", at.database, schema,
            at.role);
    if (at.other[0] != '\0')
        hf__say(&r->to, HF__LEVEL_WARNING, "C1",
                "holdfast's tables are also in schema %s: locks there and here do not exclude each"
                " other",
                at.others);
    if (at.all_may_create)
        hf__say(&r->to, HF__LEVEL_WARNING, NULL,
                "everybody may create functions and operators in schema %s, which may then run with"
                " the rights of others: REVOKE CREATE ON SCHEMA \"%s\" FROM PUBLIC",
                schema, schema);
}

static void look_at_rights(const struct report *r)
{
    PGresult *missing = ask(r, hf__pg_rights_sql);

    for (int i = 0; i < PQntuples(missing); i++)
        hf__say(&r->to, HF__LEVEL_PROBLEM, NULL,
                "role %s needs SELECT, INSERT, UPDATE and DELETE on %s", PQgetvalue(missing, i, 1),
                PQgetvalue(missing, i, 0));
    if (PQntuples(missing) == 0)
        hf__say(&r->to, HF__LEVEL_FINE, NULL, "the role may read and write all tables");
    PQclear(missing);
}

static void look_at_calls(const struct report *r)
{
    const struct hf__sql_settings *set = &r->s->sql.set;
    int64_t took_us = 0;
    hf_error err = {0};

    if (r->s->set.hold != HF__PG_HOLD_LEASE)
        hf__say(&r->to, HF__LEVEL_FINE, "C12",
                "no pooler in between: a waiter is answered on its own connection");
    else if (!set->push)
        hf__say(&r->to, HF__LEVEL_FINE, "C12", "mode=poll: waiters ask every %" PRId64 " ms",
                set->poll_ms);
    else if (hf__pg_call_self(r->s, r->c, hf__sql_soon(&r->s->base, r->deadline_ns), &took_us,
                              &err) == 0)
        hf__say(&r->to, HF__LEVEL_FINE, "C12",
                "no pooler in between: a call by NOTIFY came after %" PRId64 " us", took_us);
    else
        hf__say(&r->to, HF__LEVEL_WARNING, "C12", "waiters are not called, and ask instead: %s",
                err.text);
}

static void look_at_pooler(const struct report *r)
{
    bool pooled = false;
    hf_error err = {0};

    if (hf__pg_find_pooler(r->s, r->c, r->deadline_ns, &pooled, &err) != 0)
        hf__say(&r->to, HF__LEVEL_PROBLEM, NULL, "%s", err.text);
    else if (pooled)
        hf__say(&r->to, HF__LEVEL_NOTE, "C12",
                "a pooler stands between: leases work, waiters ask every %" PRId64
                " ms instead of being called, hold=session and hold=advisory are refused",
                r->s->sql.set.poll_ms);
    else
        look_at_calls(r);
    if (PQsslInUse(r->c->pg))
        hf__say(&r->to, HF__LEVEL_FINE, NULL, "%s", PQsslAttribute(r->c->pg, "protocol"));
    else
        hf__say(&r->to, HF__LEVEL_FINE, NULL, "no TLS on this connection");
}

static void look_at_clock(const struct report *r)
{
    const struct hf_env *env = r->s->base.host->env;
    int64_t before_us = (int64_t)env->wall_us(env->ctx);
    PGresult *a = ask(r, "SELECT (extract(epoch FROM clock_timestamp()) * 1000000.0)::bigint");

    if (a != NULL)
        hf__say_clock(&r->to, hf__pg_cell(a, 0, 0, 0), before_us, "");
    PQclear(a);
}

static void look_at_rows(const struct report *r)
{
    PGresult *a = ask(r, hf__pg_rows_sql);

    if (a == NULL)
        return;
    hf__say(&r->to, HF__LEVEL_FINE, NULL,
            "locks known %s, held or closed %s, waiting %s, tickets remembered %s",
            PQgetvalue(a, 0, 0), PQgetvalue(a, 0, 1), PQgetvalue(a, 0, 2), PQgetvalue(a, 0, 3));
    PQclear(a);
    a = ask(r, hf__pg_sizes_sql);
    if (a == NULL)
        return;
    hf__say(&r->to, hf__pg_cell_flag(a, 0, 2) ? HF__LEVEL_WARNING : HF__LEVEL_FINE, NULL,
            "the tables take %s, with %s dead rows%s", PQgetvalue(a, 0, 1), PQgetvalue(a, 0, 0),
            hf__pg_cell_flag(a, 0, 2) ? ": autovacuum does not keep up" : "");
    PQclear(a);
}

static int ask_nothing(void *ctx)
{
    PGresult *a = ask(ctx, "SELECT 1");
    bool answered = a != NULL;

    PQclear(a);
    return answered ? 0 : -1;
}

int hf__pg_diagnose(struct hf__store *store, hf_finding_callback *found, void *arg,
                    int64_t deadline_ns, hf_error *err)
{
    struct report r = {.to = {.found = found, .arg = arg, .env = store->host->env},
                       .s = (struct hf__pg *)store,
                       .deadline_ns = deadline_ns};
    int code = hf__pg_borrow(r.s, deadline_ns, &r.c, err);

    if (code != 0)
        return code;
    look_at_server(&r);
    look_at_pooler(&r);
    look_at_schema(&r);
    if (hf__sql_say_learnt(&r.to, &r.s->base, r.c, deadline_ns)) {
        look_at_rights(&r);
        look_at_rows(&r);
        hf__say_gc(&r.to);
    }
    look_at_clock(&r);
    hf__say_latency(&r.to, ask_nothing, &r);
    hf__pg_give_back(r.s, r.c);
    return 0;
}
