/* What `holdfast doctor` says about a live server. It reads and changes nothing. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/report.h"
#include "stores/oracle/oracle.h"

#include "base/banned.h"

struct report {
    struct hf__report to;
    struct hf__ora *s;
    struct hf__ora_conn *c;
    int64_t deadline_ns;
};

/* One row; false if it cannot be had, which is told. */
static bool ask(const struct report *r, const char *sql)
{
    hf_error err = {0};

    hf__ora_start(r->c, sql);
    if (hf__ora_run(r->s, r->c, true, r->deadline_ns, &err) == 0 && r->c->job.rows.count > 0)
        return true;
    hf__say(&r->to, HF__LEVEL_WARNING, NULL, "%s", err.code != 0 ? err.text : "oracle: no answer");
    return false;
}

static const char *cell(const struct report *r, size_t column)
{
    const char *text = hf__ora_cell(r->c, column);

    return text != NULL ? text : "?";
}

static void look_at_server(const struct report *r)
{
    const struct hf__ora_link *link = &r->c->link;

    hf__say(&r->to, HF__LEVEL_FINE, NULL, "server %s %s, dialect %s, driver %s", link->dbms,
            link->version, r->c->dialect->name, link->driver);
    if (strcmp(r->c->dialect->name, "oracle") == 0)
        hf__say(&r->to, HF__LEVEL_NOTE, NULL,
                "this store was never run on an Oracle server by those who wrote it: try it with"
                " your own before you rely on it");
    hf__say(&r->to, HF__LEVEL_FINE, "C1",
            "isolation: READ COMMITTED, autocommit off, set for each session");
    if (!ask(r, r->c->dialect->self))
        return;
    hf__say(&r->to, HF__LEVEL_FINE, NULL, "account %s, schema %s", cell(r, 0), cell(r, 1));
    bool primary = strcmp(cell(r, 2), "PRIMARY") == 0;
    hf__say(&r->to, primary ? HF__LEVEL_FINE : HF__LEVEL_PROBLEM, "C1",
            primary ? "this database takes writes%s%s"
                    : "this database is a %s: name the primary%s",
            primary ? "" : cell(r, 2), "");
}

/* Two schemas are two sets of locks. */
static void look_at_schema(const struct report *r)
{
    if (r->s->set.schema == NULL)
        hf__say(&r->to, HF__LEVEL_NOTE, "C1",
                "the URL names no schema, so the account or the data source decides, and another"
                " account may have other locks; name one for all: oracle://user@/SCHEMA?...");
    if (ask(r, r->c->dialect->others) && hf__ora_cell(r->c, 0) != NULL)
        hf__say(&r->to, HF__LEVEL_WARNING, "C1",
                "holdfast's tables are also in schema %s: locks there and here do not exclude each"
                " other",
                cell(r, 0));
}

/* Each right is tried on no row at all. */
static void look_at_rights(const struct report *r)
{
#define TRIES(table)                                                 \
    "SELECT name FROM " table " WHERE 1 = 0",                        \
        "INSERT INTO " table " SELECT * FROM " table " WHERE 1 = 0", \
        "UPDATE " table " SET name = name WHERE 1 = 0", "DELETE FROM " table " WHERE 1 = 0"
    static const char *const tries[] = {TRIES("holdfast_lock"), TRIES("holdfast_holder"),
                                        TRIES("holdfast_waiter"), TRIES("holdfast_retired")};
    bool whole = true;

    for (size_t i = 0; i < sizeof tries / sizeof tries[0] && !r->c->broken; i++) {
        hf_error err = {0};
        hf__ora_start(r->c, tries[i]);
        if (hf__ora_run(r->s, r->c, false, r->deadline_ns, &err) != 0) {
            whole = false;
            hf__say(&r->to, HF__LEVEL_PROBLEM, NULL, "%s", err.text);
        }
    }
    if (whole)
        hf__say(&r->to, HF__LEVEL_FINE, NULL, "the account may read and write all tables");
}

static void look_at_rows(const struct report *r)
{
    if (ask(r, hf__ora_rows_sql))
        hf__say(&r->to, HF__LEVEL_FINE, NULL,
                "locks known %s, held or closed %s, waiting %s, tickets remembered %s", cell(r, 0),
                cell(r, 1), cell(r, 2), cell(r, 3));
    hf__ora_start(r->c, "SELECT state FROM holdfast_now WHERE 1 = 0");
    if (hf__ora_run(r->s, r->c, true, r->deadline_ns, NULL) != 0)
        hf__say(&r->to, HF__LEVEL_NOTE, NULL,
                "the view holdfast_now is missing: people cannot read the tables at a glance");
}

static void look_at_clock(const struct report *r)
{
    int64_t before_us = (int64_t)r->to.env->wall_us(r->to.env->ctx);

    if (ask(r, hf__ora_clock_sql))
        hf__say_clock(&r->to, hf__sql_integer(hf__ora_cell(r->c, 0), 0), before_us, "; in UTC");
}

static int ask_little(void *ctx)
{
    return ask(ctx, "SELECT 1 FROM DUAL") ? 0 : -1;
}

int hf__ora_diagnose(struct hf__store *store, hf_finding_callback *found, void *arg,
                     int64_t deadline_ns, hf_error *err)
{
    struct report r = {.to = {.found = found, .arg = arg, .env = store->host->env},
                       .s = (struct hf__ora *)store,
                       .deadline_ns = deadline_ns};
    int code = hf__ora_borrow(r.s, deadline_ns, &r.c, err);

    if (code != 0)
        return code;
    look_at_server(&r);
    look_at_schema(&r);
    if (hf__sql_say_learnt(&r.to, store, r.c, deadline_ns)) {
        look_at_rights(&r);
        look_at_rows(&r);
        hf__say_gc(&r.to);
    }
    hf__say(&r.to, HF__LEVEL_FINE, "C12",
            "waiters ask: the first of the queue every %" PRId64 " ms", r.s->sql.set.poll_ms);
    look_at_clock(&r);
    hf__say_latency(&r.to, ask_little, &r);
    hf__ora_give_back(r.s, r.c);
    return 0;
}
