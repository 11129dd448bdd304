/* Writes back what the doorman has marked. See record.c for how the record is loaded. */
#include <inttypes.h>
#include <stdio.h>

#include "stores/postgres/postgres.h"
#include "stores/postgres/text.h"

#include "util/banned.h"

/* $n, milliseconds since 1970, as an instant; NULL is never. */
#define INSTANT(n) "coalesce(timestamptz 'epoch' + " n " * interval '1 millisecond', 'infinity')"

#define ADD_HOLDER                                                                              \
    "INSERT INTO holdfast_holder (name, ticket, seq, lingering, shared, room, generation, ttl," \
    " delay, retire, since, until, lease, claimed, wake, host, username, program, pid, note)"   \
    " VALUES ($1, $2, nextval('holdfast_line'), false, $3, $4, $5, $6, $7, $8, " INSTANT(       \
        "$9") ", " INSTANT("$10") ", $11, $12, $13, $14, $15, $16, $17, $18)"
#define ADD_WAITER                                                                             \
    "INSERT INTO holdfast_waiter (name, ticket, seq, shared, room, ttl, delay, retire, since," \
    " until, lease, wake, host, username, program, pid, note) VALUES ($1, $2,"                 \
    " nextval('holdfast_line'), $3, $4, $5, $6, $7, " INSTANT("$8") ", " INSTANT(              \
        "$9") ", $10, $11, $12, $13, $14, $15, $16)"
#define MOVE_INSIDE                                                                               \
    "WITH w AS (DELETE FROM holdfast_waiter WHERE name = $1 AND ticket = $2 RETURNING *)"         \
    " INSERT INTO holdfast_holder SELECT name, ticket, seq, false, shared, room, $3, ttl, delay," \
    " retire, " INSTANT("$4") ", " INSTANT("$5") ", $6, $7, wake, host, username, program, pid,"  \
                                                 " note FROM w"
#define SET_HOLDER                                                 \
    "UPDATE holdfast_holder SET lingering = $3, until = " INSTANT( \
        "$4") ", lease = $5,"                                      \
              " claimed = $6 WHERE name = $1 AND ticket = $2"
#define SET_WAITER                                 \
    "UPDATE holdfast_waiter SET until = " INSTANT( \
        "$3") ", lease = $4 WHERE name = $1 AND ticket = $2"
#define SET_WAKE "UPDATE holdfast_waiter SET wake = $3 WHERE name = $1 AND ticket = $2"
#define SET_RETIRED                                                                       \
    "INSERT INTO holdfast_retired (name, ticket, until, lease) VALUES ($1, $2, " INSTANT( \
        "$3") ", $4) ON CONFLICT (name, ticket) DO UPDATE SET until = EXCLUDED.until,"    \
              " lease = EXCLUDED.lease"

struct save {
    struct hf__pg_record *r;
    const struct hf__pg_operation *op;
    hf_error *err;
};

static int run(const struct save *save, const struct hf__pg_query *q)
{
    PGresult *result = NULL;
    int code = hf__pg_ask(save->r->s, save->r->c, q, save->r->deadline_ns, &result, save->err);

    PQclear(result);
    return code;
}

/* A statement about one entry: $1 is the name, $2 the ticket. */
static struct hf__pg_query about(const struct save *save, const char *sql,
                                 const struct hf__entry *e)
{
    struct hf__pg_query q = {.sql = sql};

    hf__pg_bytes(&q, save->op->bid->name, save->op->bid->name_len);
    hf__pg_bytes(&q, e->ticket.bits, sizeof e->ticket.bits);
    return q;
}

static int drop(const struct save *save, const char *sql, const struct hf__entry *e)
{
    struct hf__pg_query q = about(save, sql, e);

    return run(save, &q);
}

static int set_retired(const struct save *save, const struct hf__entry *e)
{
    struct hf__pg_query q = about(save, SET_RETIRED, e);

    hf__pg_number(&q, e->until_ms);
    hf__pg_number(&q, e->lease_ms);
    return run(save, &q);
}

static int add_entry(const struct save *save, const struct hf__entry *e)
{
    bool inside = e->place == HF__INSIDE;
    struct hf__pg_query q = about(save, inside ? ADD_HOLDER : ADD_WAITER, e);
    const struct hf__who *from = save->op->bid->who;
    struct hf__pg_who who;

    hf__pg_who_init(&who, from != NULL ? from : save->r->s->base.host->self);
    hf__pg_flag(&q, e->mode == HF_SHARED);
    hf__pg_number_or_null(&q, e->limit, 0);
    if (inside)
        hf__pg_number(&q, (int64_t)e->generation);
    hf__pg_number(&q, e->ttl_ms);
    hf__pg_number(&q, e->lock_delay_ms);
    hf__pg_number(&q, e->retire_ms);
    hf__pg_number(&q, e->since_ms);
    hf__pg_number_or_null(&q, e->until_ms, HF__NEVER);
    hf__pg_number_or_null(&q, e->lease_ms, HF__NEVER);
    if (inside)
        hf__pg_flag(&q, e->claimed);
    hf__pg_text(&q, save->op->wake);
    hf__pg_text(&q, who.host);
    hf__pg_text(&q, who.user);
    hf__pg_text(&q, who.program);
    hf__pg_number(&q, who.pid);
    hf__pg_text(&q, who.note);
    return run(save, &q);
}

static int move_inside(const struct save *save, const struct hf__entry *e)
{
    struct hf__pg_query q = about(save, MOVE_INSIDE, e);

    hf__pg_number(&q, (int64_t)e->generation);
    hf__pg_number(&q, e->since_ms);
    hf__pg_number_or_null(&q, e->until_ms, HF__NEVER);
    hf__pg_number_or_null(&q, e->lease_ms, HF__NEVER);
    hf__pg_flag(&q, e->claimed);
    return run(save, &q);
}

static int set_entry(const struct save *save, const struct hf__entry *e)
{
    bool waits = e->place == HF__WAITING;
    struct hf__pg_query q = about(save, waits ? SET_WAITER : SET_HOLDER, e);

    if (!waits)
        hf__pg_flag(&q, e->place == HF__LINGERING);
    hf__pg_number_or_null(&q, e->until_ms, HF__NEVER);
    hf__pg_number_or_null(&q, e->lease_ms, HF__NEVER);
    if (!waits)
        hf__pg_flag(&q, e->claimed);
    return run(save, &q);
}

static int save_new(const struct save *save, const struct hf__entry *e)
{
    if (e->place == HF__GONE)
        return 0;
    return e->place == HF__RETIRED ? set_retired(save, e) : add_entry(save, e);
}

static bool differs(const struct hf__entry *a, const struct hf__entry *b)
{
    return a->place != b->place || a->generation != b->generation || a->since_ms != b->since_ms ||
           a->until_ms != b->until_ms || a->lease_ms != b->lease_ms || a->claimed != b->claimed;
}

static int save_old(const struct save *save, const struct hf__entry *e)
{
    const struct hf__pg_row *row = e->who;
    enum hf__place was = row->was.place;

    if (!differs(e, &row->was))
        return 0;
    if (was == HF__RETIRED)
        return e->place == HF__GONE
                   ? drop(save, "DELETE FROM holdfast_retired WHERE name = $1 AND ticket = $2", e)
                   : set_retired(save, e);
    if (was == HF__WAITING && (e->place == HF__INSIDE || e->place == HF__LINGERING))
        return move_inside(save, e);
    if (e->place != HF__GONE && e->place != HF__RETIRED)
        return set_entry(save, e);
    int code =
        drop(save,
             was == HF__WAITING ? "DELETE FROM holdfast_waiter WHERE name = $1 AND ticket = $2"
                                : "DELETE FROM holdfast_holder WHERE name = $1 AND ticket = $2",
             e);
    return code != 0 || e->place == HF__GONE ? code : set_retired(save, e);
}

static int call(const struct save *save, const char *channel, const struct hf__entry *e,
                uint64_t generation)
{
    struct hf__pg_query q = {.sql = "SELECT pg_notify($1, $2)"};
    char payload[64], ticket[HF_TICKET_SIZE];

    hf__ticket_format(&e->ticket, ticket);
    snprintf(payload, sizeof payload, "%s %" PRIu64, ticket, generation);
    hf__pg_text(&q, channel);
    hf__pg_text(&q, payload);
    return run(save, &q);
}

/* Those who were let in and do not learn of it from the answer, and whoever was broken. */
static int tell(const struct save *save, const struct hf__entry *e)
{
    const struct hf__pg_row *row = e->who;
    bool own = hf__ticket_equal(&e->ticket, &save->op->bid->ticket);

    if (row == NULL || row->wake[0] == '\0')
        return 0;
    if ((e->marks & HF__LET_IN) && !(own && save->op->kind == HF__PG_ATTEMPT))
        return call(save, row->wake, e, e->generation);
    if (own && save->op->kind == HF__PG_BREAK)
        return call(save, row->wake, e, 0);
    return 0;
}

static int save_entry(const struct save *save, const struct hf__entry *e)
{
    bool own = hf__ticket_equal(&e->ticket, &save->op->bid->ticket);
    int code = e->marks & HF__NEW ? save_new(save, e) : save_old(save, e);

    if (code == 0)
        code = tell(save, e);
    if (code == 0 && own && save->op->kind == HF__PG_ATTEMPT && e->place == HF__WAITING &&
        !(e->marks & HF__NEW)) {
        struct hf__pg_query q = about(save, SET_WAKE, e);
        hf__pg_text(&q, save->op->wake);
        code = run(save, &q);
    }
    return code;
}

int hf__pg_save(struct hf__pg_record *r, const struct hf__pg_operation *op, hf_error *err)
{
    struct save save = {.r = r, .op = op, .err = err};
    uint64_t before = 0;
    int code = 0;

    for (size_t i = 0; i < r->record.count && code == 0; i++) {
        if (r->record.entries[i].marks != 0)
            code = save_entry(&save, &r->record.entries[i]);
        if (r->record.entries[i].marks & HF__LET_IN)
            before = r->record.generation;
    }
    if (code != 0 || before == 0)
        return code;
    struct hf__pg_query q = {.sql = "UPDATE holdfast_lock SET generation = $2 WHERE name = $1"};
    hf__pg_bytes(&q, op->bid->name, op->bid->name_len);
    hf__pg_number(&q, (int64_t)r->record.generation);
    return run(&save, &q);
}
