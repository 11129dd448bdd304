/* What `holdfast doctor` says about a live server. It changes nothing, and claims only what it has tried. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/report.h"
#include "stores/mysql/mysql.h"

#include "base/banned.h"

struct report {
    struct hf__report to;
    struct hf__my *s;
    struct hf__my_conn *c;
    int64_t deadline_ns;
};

/* One row; NULL if it cannot be had, which is told. */
static MYSQL_RES *ask(const struct report *r, const char *sql, MYSQL_ROW *ret_row)
{
    hf_error err = {0};
    MYSQL_RES *result = hf__my_look(r->s, r->c, sql, r->deadline_ns, ret_row, &err);

    if (result == NULL)
        hf__say(&r->to, HF__LEVEL_WARNING, NULL, "%s", err.text);
    return result;
}

static void look_at_server(const struct report *r)
{
    MYSQL_ROW row;
    MYSQL_RES *a = ask(r, hf__my_server_sql, &row);

    if (a == NULL)
        return;
    hf__say(&r->to, HF__LEVEL_FINE, NULL, "server %s, database %s, account %s", row[0], row[7],
            row[6]);
    if (hf__sql_integer(row[1], 0) != 0)
        hf__say(&r->to, HF__LEVEL_PROBLEM, "C1", "this server is read-only: name the primary");
    else
        hf__say(&r->to, HF__LEVEL_FINE, "C1", "this server takes writes");
    hf__say(&r->to, HF__LEVEL_FINE, "C1", "isolation: READ COMMITTED, set by each operation");
    hf__say(
        &r->to, HF__LEVEL_FINE, NULL,
        "innodb_lock_wait_timeout is %s s in our sessions (%s s in others): a statement does not "
        "wait"
        " for a row longer than its client does",
        row[2], row[8]);
    if (strcmp(row[3], "1") != 0)
        hf__say(
            &r->to, HF__LEVEL_WARNING, "C3",
            "innodb_flush_log_at_trx_commit is %s: a crash forgets the last grants, also those that"
            " never expire",
            row[3]);
    if (hf__sql_integer(row[5], 0) != 0 && strcmp(row[4], "STATEMENT") == 0)
        hf__say(&r->to, HF__LEVEL_PROBLEM, "C1",
                "binlog_format is STATEMENT, which refuses READ COMMITTED: set MIXED or ROW");
    mysql_free_result(a);
}

static int64_t status(const struct report *r, const char *name)
{
    char sql[160];
    hf_error err = {0};
    MYSQL_ROW row;

    snprintf(sql, sizeof sql, "SHOW GLOBAL STATUS LIKE '%s'", name);
    MYSQL_RES *a = hf__my_look(r->s, r->c, sql, r->deadline_ns, &row, &err);
    int64_t value = a != NULL ? hf__sql_integer(row[1], 0) : 0;
    mysql_free_result(a);
    return value;
}

static void look_at_replication(const struct report *r)
{
    int64_t nodes = status(r, "wsrep_cluster_size");
    int64_t waits = status(r, "Rpl_semi_sync_master_clients");

    if (nodes > 0)
        hf__say(&r->to, HF__LEVEL_NOTE, "C1",
                "a Galera cluster of %" PRId64
                " nodes: a conflict at COMMIT is not granted and tried"
                " again; best let all clients use one node",
                nodes);
    else if (waits > 0)
        hf__say(&r->to, HF__LEVEL_FINE, "C1",
                "semi-synchronous replication to %" PRId64 " replicas", waits);
    else
        hf__say(
            &r->to, HF__LEVEL_NOTE, "C1",
            "no synchronous replication: a failover may forget the last grants; the fencing token"
            " makes that harmless");
}

/* Each right is tried on no row at all. */
static void look_at_rights(const struct report *r)
{
    static const char *const tables[] = {"holdfast_lock", "holdfast_holder", "holdfast_waiter",
                                         "holdfast_retired"};
    static const char *const tries[] = {
        "SELECT 1 FROM ?1 WHERE 1 = 0", "INSERT INTO ?1 SELECT * FROM ?1 WHERE 1 = 0",
        "UPDATE ?1 SET name = name WHERE 1 = 0", "DELETE FROM ?1 WHERE 1 = 0"};
    bool whole = true;

    for (size_t i = 0; i < 16 && !r->c->broken; i++) {
        struct hf__my_text t = {0};
        hf_error err = {0};
        hf__my_add_statement(&t, tries[i % 4], &tables[i / 4]);
        if (hf__my_ask(r->s, r->c, &t, false, r->deadline_ns, NULL, &err) != 0) {
            whole = false;
            hf__say(&r->to, HF__LEVEL_PROBLEM, NULL, "%s", err.text);
        }
        hf__my_text_clear(&t);
    }
    if (whole)
        hf__say(&r->to, HF__LEVEL_FINE, NULL, "the account may read and write all tables");
}

/* The one call is tried: what a server shows in its process list, and lets an account see and end, differs. */
static void look_at_calls(const struct report *r)
{
    int64_t took_us = 0;
    hf_error err = {0};

    if (hf__my_call_self(r->s, r->c, hf__sql_soon(&r->s->base, r->deadline_ns), &took_us, &err) ==
        0)
        hf__say(&r->to, HF__LEVEL_FINE, "C12", "a call by KILL QUERY came after %" PRId64 " us",
                took_us);
    else
        hf__say(&r->to, HF__LEVEL_WARNING, "C12",
                "waiters are not called, and ask every %" PRId64 " ms instead: %s",
                r->s->sql.set.poll_ms, err.text);
}

static void look_at_connection(const struct report *r, bool learnt)
{
    const char *cipher = mysql_get_ssl_cipher(r->c->my);

    if (r->s->set.session)
        hf__say(&r->to, HF__LEVEL_FINE, "C12", "a waiter is answered on its own connection");
    else if (r->c->proxied)
        hf__say(&r->to, HF__LEVEL_NOTE, "C12",
                "something stands in between: waiters ask every %" PRId64 " ms",
                r->s->sql.set.poll_ms);
    else if (!r->s->sql.set.push)
        hf__say(&r->to, HF__LEVEL_FINE, "C12",
                "nobody is called (mode=poll): the first of the queue asks every %" PRId64 " ms",
                r->s->sql.set.poll_ms);
    else if (learnt) /* whoever listens does so in a procedure */
        look_at_calls(r);
    hf__say(&r->to, HF__LEVEL_FINE, NULL,
            cipher != NULL ? "TLS: %s" : "no TLS on this connection%s",
            cipher != NULL ? cipher : "");
}

static void look_at_clock(const struct report *r)
{
    const struct hf_env *env = r->s->base.host->env;
    MYSQL_ROW row;
    int64_t before_us = (int64_t)env->wall_us(env->ctx);
    MYSQL_RES *a = ask(r, hf__my_clock_sql, &row);
    char zone[100];

    if (a == NULL)
        return;
    snprintf(zone, sizeof zone, "; our sessions are in UTC, others in %s", row[1]);
    hf__say_clock(&r->to, hf__sql_integer(row[0], 0), before_us, zone);
    if (hf__sql_integer(row[2], 0) != 0)
        hf__say(&r->to, HF__LEVEL_PROBLEM, "C3",
                "the server runs with sysdate-is-now: the clock would be read before the"
                " lock is had");
    mysql_free_result(a);
}

static void look_at_rows(const struct report *r)
{
    MYSQL_ROW row;
    MYSQL_RES *a = ask(r, hf__my_rows_sql, &row);

    if (a == NULL)
        return;
    hf__say(
        &r->to, HF__LEVEL_FINE, NULL,
        "locks known %s, held or closed %s, waiting %s, tickets remembered %s; the tables take %s "
        "kB",
        row[0], row[1], row[2], row[3], row[4]);
    mysql_free_result(a);
    int64_t history = status(r, "Innodb_history_list_length");
    if (history > 100000)
        hf__say(&r->to, HF__LEVEL_WARNING, NULL,
                "InnoDB keeps %" PRId64
                " old versions of rows: a long transaction keeps it from purging,"
                " and all queues get slow",
                history);
}

static int ask_nothing(void *ctx)
{
    MYSQL_ROW row;
    MYSQL_RES *a = ask(ctx, "SELECT 1", &row);
    bool answered = a != NULL;

    mysql_free_result(a);
    return answered ? 0 : -1;
}

int hf__my_diagnose(struct hf__store *store, hf_finding_callback *found, void *arg,
                    int64_t deadline_ns, hf_error *err)
{
    struct report r = {.to = {.found = found, .arg = arg, .env = store->host->env},
                       .s = (struct hf__my *)store,
                       .deadline_ns = deadline_ns};
    int code = hf__my_borrow(r.s, deadline_ns, &r.c, err);

    if (code != 0)
        return code;
    look_at_server(&r);
    look_at_replication(&r);
    bool learnt = hf__sql_say_learnt(&r.to, store, r.c, deadline_ns);
    look_at_connection(&r, learnt);
    if (learnt) {
        look_at_rights(&r);
        look_at_rows(&r);
        hf__say_gc(&r.to);
    }
    look_at_clock(&r);
    hf__say_latency(&r.to, ask_nothing, &r);
    r.c->broken = true; /* it was used for more than locks */
    hf__my_give_back(r.s, r.c);
    return 0;
}
