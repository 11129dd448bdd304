/* Writes back what the doorman has marked. See record.c for how the record is loaded. */
#include <inttypes.h>
#include <stdio.h>

#include "base/who.h"
#include "stores/postgres/postgres.h"

#include "base/banned.h"

/* $n, milliseconds since 1970, as an instant; NULL is never. */
#define INSTANT(n) \
    "coalesce(timestamptz 'epoch' + " n "::float8 * interval '1 millisecond', 'infinity')"

#define ADD_HOLDER                                                                           \
    "INSERT INTO public.holdfast_holder (name, ticket, seq, lingering, shared, room,"        \
    " generation, ttl, delay, retire, since, until, lease, claimed, wake, host, username,"   \
    " program, pid, note) VALUES ($1, $2, nextval('public.holdfast_line'::regclass), false," \
    " $3, $4, $5, $6, $7, $8, " INSTANT("$9") ", " INSTANT(                                  \
        "$10") ", $11, $12, $13, $14, $15, $16, $17, $18)"
#define ADD_WAITER                                                                                 \
    "INSERT INTO public.holdfast_waiter (name, ticket, seq, shared, room, ttl, delay,"             \
    " retire, since, until, lease, wake, host, username, program, pid, note) VALUES ($1, $2,"      \
    " nextval('public.holdfast_line'::regclass), $3, $4, $5, $6, $7, " INSTANT("$8") ", " INSTANT( \
        "$9") ", $10, $11, $12, $13, $14, $15, $16)"
#define MOVE_INSIDE                                                                               \
    "WITH w AS (DELETE FROM public.holdfast_waiter WHERE name = $1 AND ticket = $2 RETURNING *)"  \
    " INSERT INTO public.holdfast_holder SELECT name, ticket, seq, false, shared, room, $3, ttl," \
    " delay, retire, " INSTANT("$4") ", " INSTANT(                                                \
        "$5") ", $6, $7, wake, host, username, program, pid,"                                     \
              " note FROM w"
#define SET_HOLDER                                                        \
    "UPDATE public.holdfast_holder SET lingering = $3, until = " INSTANT( \
        "$4") ", lease = $5,"                                             \
              " claimed = $6 WHERE name = $1 AND ticket = $2"
#define SET_WAITER                                        \
    "UPDATE public.holdfast_waiter SET until = " INSTANT( \
        "$3") ", lease = $4 WHERE name = $1 AND ticket = $2"
#define SET_WAKE "UPDATE public.holdfast_waiter SET wake = $3 WHERE name = $1 AND ticket = $2"
#define SET_RETIRED                                                                              \
    "INSERT INTO public.holdfast_retired (name, ticket, until, lease) VALUES ($1, $2, " INSTANT( \
        "$3") ", $4) ON CONFLICT (name, ticket) DO UPDATE SET until = EXCLUDED.until,"           \
              " lease = EXCLUDED.lease"

static int run(struct hf__pg_record *r, const struct hf__pg_query *q)
{
    PGresult *result = NULL;
    int code = hf__pg_ask(r->s, r->c, q, r->deadline_ns, &result, r->err);

    PQclear(result);
    return code;
}

/* A statement about one entry: $1 is the name, $2 the ticket. */
static struct hf__pg_query about(struct hf__pg_record *r, const char *sql,
                                 const struct hf__entry *e)
{
    struct hf__pg_query q = {.sql = sql};

    hf__pg_bytes(&q, r->op->bid->name, r->op->bid->name_len);
    hf__pg_bytes(&q, e->ticket.bits, sizeof e->ticket.bits);
    return q;
}

static int drop(void *ctx, const struct hf__entry *e, enum hf__place from)
{
    struct hf__pg_record *r = ctx;
    struct hf__pg_query q =
        about(r,
              from == HF__PLACE_RETIRED
                  ? "DELETE FROM public.holdfast_retired WHERE name = $1 AND ticket = $2"
              : from == HF__PLACE_WAITING
                  ? "DELETE FROM public.holdfast_waiter WHERE name = $1 AND ticket = $2"
                  : "DELETE FROM public.holdfast_holder WHERE name = $1 AND ticket = $2",
              e);

    return run(r, &q);
}

static int set_retired(void *ctx, const struct hf__entry *e)
{
    struct hf__pg_record *r = ctx;
    struct hf__pg_query q = about(r, SET_RETIRED, e);

    hf__pg_number(&q, e->until_ms);
    hf__pg_number(&q, e->lease_ms);
    return run(r, &q);
}

static int add_entry(void *ctx, const struct hf__entry *e)
{
    struct hf__pg_record *r = ctx;
    bool inside = e->place == HF__PLACE_INSIDE;
    struct hf__pg_query q = about(r, inside ? ADD_HOLDER : ADD_WAITER, e);
    const struct hf__who *from = r->op->bid->who;
    struct hf__who_text who;

    hf__who_text_init(&who, from != NULL ? from : r->s->base.host->self);
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
    hf__pg_text(&q, r->op->wake);
    hf__pg_text(&q, who.host);
    hf__pg_text(&q, who.user);
    hf__pg_text(&q, who.program);
    hf__pg_number(&q, who.pid);
    hf__pg_text(&q, who.note);
    return run(r, &q);
}

static int move_inside(void *ctx, const struct hf__entry *e)
{
    struct hf__pg_record *r = ctx;
    struct hf__pg_query q = about(r, MOVE_INSIDE, e);

    hf__pg_number(&q, (int64_t)e->generation);
    hf__pg_number(&q, e->since_ms);
    hf__pg_number_or_null(&q, e->until_ms, HF__NEVER);
    hf__pg_number_or_null(&q, e->lease_ms, HF__NEVER);
    hf__pg_flag(&q, e->claimed);
    return run(r, &q);
}

static int set_entry(void *ctx, const struct hf__entry *e)
{
    struct hf__pg_record *r = ctx;
    bool waits = e->place == HF__PLACE_WAITING;
    struct hf__pg_query q = about(r, waits ? SET_WAITER : SET_HOLDER, e);

    if (!waits)
        hf__pg_flag(&q, e->place == HF__PLACE_LINGERING);
    hf__pg_number_or_null(&q, e->until_ms, HF__NEVER);
    hf__pg_number_or_null(&q, e->lease_ms, HF__NEVER);
    if (!waits)
        hf__pg_flag(&q, e->claimed);
    return run(r, &q);
}

static int call(void *ctx, const char *channel, const struct hf__entry *e, uint64_t generation)
{
    struct hf__pg_query q = {.sql = "SELECT pg_notify($1, $2)"};
    struct hf__pg_record *r = ctx;
    char payload[64], ticket[HF_TICKET_SIZE];

    if (r->op->silent)
        return 0;
    hf__ticket_format(&e->ticket, ticket);
    snprintf(payload, sizeof payload, "%s %" PRIu64, ticket, generation);
    hf__pg_text(&q, channel);
    hf__pg_text(&q, payload);
    return run(ctx, &q);
}

static int set_wake(void *ctx, const struct hf__entry *e)
{
    struct hf__pg_record *r = ctx;
    struct hf__pg_query q = about(r, SET_WAKE, e);

    hf__pg_text(&q, r->op->wake);
    return run(r, &q);
}

static int set_lock(void *ctx, bool let_in)
{
    struct hf__pg_record *r = ctx;
    struct hf__pg_query q = {.sql =
                                 "UPDATE public.holdfast_lock SET generation = $2 WHERE name = $1"};

    if (!let_in)
        return 0;
    hf__pg_bytes(&q, r->op->bid->name, r->op->bid->name_len);
    hf__pg_number(&q, (int64_t)r->at_hand.record.generation);
    return run(r, &q);
}

const struct hf__sql_writer hf__pg_writer = {
    .load = hf__pg_load,
    .end = hf__pg_finish,
    .add = add_entry,
    .set = set_entry,
    .move_inside = move_inside,
    .drop = drop,
    .set_retired = set_retired,
    .set_wake = set_wake,
    .call = call,
    .set_lock = set_lock,
};
