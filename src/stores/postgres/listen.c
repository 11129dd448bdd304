/* Wake-ups: one connection per client that has said LISTEN to a channel whose name nobody can
 * guess.
 *
 *      NOTIFY <our channel>, '<ticket> <generation>'       this ticket was let in; 0: ask
 *
 * Since the channel's name stays the same, what is noted in the rows stays right.
 *
 * LISTEN belongs to a session. Behind a pooler there is none, so there is no push, and waiters
 * ask. */
#include <poll.h>
#include <stdio.h>

#include "stores/postgres/postgres.h"

#include "base/banned.h"

/* A pooler gives out a process id of its own making, since it has to find the right one to
 * cancel. */
int hf__pg_find_pooler(struct hf__pg *s, struct hf__pg_conn *c, int64_t deadline_ns,
                       bool *ret_pooled, hf_error *err)
{
    struct hf__pg_query q = {.sql = "SELECT pg_backend_pid()", .reads = true};
    PGresult *result = NULL;
    int r = hf__pg_ask(s, c, &q, deadline_ns, &result, err);

    if (r == 0)
        *ret_pooled = hf__pg_cell(result, 0, 0, 0) != PQbackendPID(c->pg);
    PQclear(result);
    return r;
}

static int dial(void *owner, int64_t deadline_ns, struct hf__line *ret_line)
{
    struct hf__pg *s = owner;
    struct hf__pg_conn *c = NULL;
    char listen[80];
    bool pooled = false;
    int r = hf__pg_dial(s, deadline_ns, &c, NULL);

    if (r == 0)
        r = hf__pg_find_pooler(s, c, deadline_ns, &pooled, NULL);
    if (r == 0 && pooled)
        r = HF_UNSUPPORTED;
    snprintf(ret_line->address, sizeof ret_line->address, "holdfast_%s", s->sql.listener.word);
    snprintf(listen, sizeof listen, "LISTEN %s", ret_line->address);
    if (r == 0)
        r = hf__pg_run(s, c, listen, deadline_ns, NULL);
    if (r != 0) {
        hf__pg_hang_up(c);
        return r;
    }
    ret_line->conn = c;
    ret_line->fd = PQsocket(c->pg);
    return 0;
}

int hf__pg_call_self(struct hf__pg *s, struct hf__pg_conn *c, int64_t deadline_ns, int64_t *ret_us,
                     hf_error *err)
{
    struct hf__pg_query q = {.sql = "SELECT pg_notify($1, 'doctor')", .reads = true};
    struct hf__line line = {0};
    PGresult *result = NULL;

    if (dial(s, deadline_ns, &line) != 0)
        return hf__fail(err, HF_UNAVAILABLE, "postgres: no connection to listen on");
    hf__pg_text(&q, line.address);
    int64_t before_ns = hf__now_ns(s->base.host->env);
    int r = hf__pg_ask(s, c, &q, deadline_ns, &result, err);
    PQclear(result);
    PGconn *pg = ((struct hf__pg_conn *)line.conn)->pg;
    PGnotify *call = NULL;
    while (r == 0 && (call = PQnotifies(pg)) == NULL) {
        if (!hf__pg_wait(s, pg, POLLIN, deadline_ns) || !PQconsumeInput(pg))
            r = hf__fail(err, HF_UNAVAILABLE, "postgres: no call came");
    }
    PQfreemem(call);
    *ret_us = (hf__now_ns(s->base.host->env) - before_ns) / 1000;
    hf__pg_hang_up(line.conn);
    return r;
}

static void hang_up(void *conn, bool lost)
{
    (void)lost;
    hf__pg_hang_up(conn);
}

const struct hf__listener_type hf__pg_listener_type = {.dial = dial, .hang_up = hang_up};

void hf__pg_wake(struct hf__store *store, hf__wake_sink *sink, void *ctx)
{
    struct hf__listener *l = &((struct hf__pg *)store)->sql.listener;
    bool missed;
    struct hf__pg_conn *c = hf__listener_wake(l, &missed);
    struct hf__ticket ticket;
    uint64_t generation;
    PGnotify *call;

    /* What came before the end of a lost connection is still told. */
    bool whole = c == NULL || (PQconsumeInput(c->pg) && PQstatus(c->pg) == CONNECTION_OK);
    while (c != NULL && (call = PQnotifies(c->pg)) != NULL) {
        if (hf__call_parse(call->extra, &ticket, &generation))
            sink(ctx, &ticket, generation);
        PQfreemem(call);
    }
    if (!whole) {
        hf__sql_note_loss(&((struct hf__pg *)store)->sql);
        hf__listener_lost(l);
        missed = true;
    }
    if (missed)
        sink(ctx, NULL, 0);
}
