/* Writes back what the doorman has marked. See record.c for how the record is loaded. */
#include <inttypes.h>
#include <stdio.h>

#include "stores/mysql/mysql.h"

#include "base/banned.h"

static int run(struct hf__my_record *r, struct hf__my_text *t)
{
    int code = hf__my_ask(r->s, r->c, t, false, r->deadline_ns, NULL, r->err);

    hf__my_text_clear(t);
    return code;
}

static void add_key(struct hf__my_record *r, struct hf__my_text *t, const struct hf__entry *e)
{
    hf__my_add_bytes(t, r->op->bid->name, r->op->bid->name_len);
    hf__my_add(t, ", ");
    hf__my_add_bytes(t, e->ticket.bits, sizeof e->ticket.bits);
}

static void add_where(struct hf__my_record *r, struct hf__my_text *t, const struct hf__entry *e)
{
    hf__my_add(t, " WHERE (name, ticket) = (");
    add_key(r, t, e);
    hf__my_add(t, ")");
}

static int drop(void *ctx, const struct hf__entry *e, enum hf__place from)
{
    struct hf__my_record *r = ctx;
    struct hf__my_text t = {0};

    hf__my_add(&t, "DELETE FROM %s",
               from == HF__PLACE_RETIRED   ? "holdfast_retired"
               : from == HF__PLACE_WAITING ? "holdfast_waiter"
                                           : "holdfast_holder");
    add_where(r, &t, e);
    return run(r, &t);
}

static int set_retired(void *ctx, const struct hf__entry *e)
{
    struct hf__my_record *r = ctx;
    struct hf__my_text t = {0};

    hf__my_add(&t, "INSERT INTO holdfast_retired (name, ticket, until, lease) VALUES (");
    add_key(r, &t, e);
    hf__my_add(&t, ", ");
    hf__my_add_instant(&t, e->until_ms);
    hf__my_add(&t,
               ", %" PRId64 ") ON DUPLICATE KEY UPDATE until = VALUES(until),"
               " lease = VALUES(lease)",
               e->lease_ms);
    return run(r, &t);
}

/* since, until, lease. */
static void add_times(struct hf__my_text *t, const struct hf__entry *e)
{
    hf__my_add_instant(t, e->since_ms);
    hf__my_add(t, ", ");
    hf__my_add_instant(t, e->until_ms);
    hf__my_add(t, ", ");
    hf__my_add_or_null(t, e->lease_ms, HF__NEVER);
}

static int add_entry(void *ctx, const struct hf__entry *e)
{
    struct hf__my_record *r = ctx;
    const struct hf__who *who = r->op->bid->who;
    bool inside = e->place == HF__PLACE_INSIDE;
    struct hf__my_text t = {0};

    hf__my_add(&t,
               "INSERT INTO %s (name, ticket, seq, shared, room, ttl, delay, retire, since, until,"
               " lease, %swake, host, username, program, pid, note) VALUES (",
               inside ? "holdfast_holder" : "holdfast_waiter",
               inside ? "lingering, generation, claimed, " : "");
    add_key(r, &t, e);
    hf__my_add(&t, ", %" PRId64 ", %d, ", r->line, e->mode == HF_SHARED);
    hf__my_add_or_null(&t, e->limit, 0);
    hf__my_add(&t, ", %" PRId64 ", %" PRId64 ", %" PRId64 ", ", e->ttl_ms, e->lock_delay_ms,
               e->retire_ms);
    add_times(&t, e);
    if (inside)
        hf__my_add(&t, ", 0, %" PRIu64 ", %d", e->generation, e->claimed);
    hf__my_add(&t, ", ");
    hf__my_add_text(&t, r->op->wake);
    hf__my_add_who(&t, who != NULL ? who : r->s->base.host->self);
    hf__my_add(&t, ")");
    return run(r, &t);
}

static int move_inside(void *ctx, const struct hf__entry *e)
{
    struct hf__my_record *r = ctx;
    struct hf__my_text t = {0};

    hf__my_add(&t,
               "INSERT INTO holdfast_holder SELECT name, ticket, seq, 0, shared, room, %" PRIu64
               ", ttl, delay, retire, ",
               e->generation);
    add_times(&t, e);
    hf__my_add(&t, ", %d, wake, host, username, program, pid, note FROM holdfast_waiter",
               e->claimed);
    add_where(r, &t, e);
    int code = run(r, &t);
    return code != 0 ? code : drop(ctx, e, HF__PLACE_WAITING);
}

static int set_entry(void *ctx, const struct hf__entry *e)
{
    struct hf__my_record *r = ctx;
    bool waits = e->place == HF__PLACE_WAITING;
    struct hf__my_text t = {0};

    hf__my_add(&t, "UPDATE %s SET until = ", waits ? "holdfast_waiter" : "holdfast_holder");
    hf__my_add_instant(&t, e->until_ms);
    hf__my_add(&t, ", lease = ");
    hf__my_add_or_null(&t, e->lease_ms, HF__NEVER);
    if (!waits)
        hf__my_add(&t, ", lingering = %d, claimed = %d", e->place == HF__PLACE_LINGERING,
                   e->claimed);
    add_where(r, &t, e);
    return run(r, &t);
}

static int set_wake(void *ctx, const struct hf__entry *e)
{
    struct hf__my_record *r = ctx;
    struct hf__my_text t = {0};

    hf__my_add(&t, "UPDATE holdfast_waiter SET wake = ");
    hf__my_add_text(&t, r->op->wake);
    add_where(r, &t, e);
    return run(r, &t);
}

/* Noted, to be called after the commit. */
static int call(void *ctx, const char *wake, const struct hf__entry *e, uint64_t generation)
{
    struct hf__my_record *r = ctx;

    (void)e, (void)generation; /* the call has no payload */
    hf__my_add(&r->calls, "%s,", wake);
    return 0;
}

static bool is_empty(const struct hf__record *record)
{
    for (size_t i = 0; i < record->count; i++) {
        if (record->entries[i].place != HF__PLACE_GONE)
            return false;
    }
    return true;
}

static int set_lock(void *ctx, bool let_in)
{
    struct hf__my_record *r = ctx;
    struct hf__my_text t = {0};

    (void)let_in; /* it was touched in any case */
    hf__my_add(&t,
               "UPDATE holdfast_lock SET generation = %" PRIu64
               ", `before` = touched, touched = '1970-01-01' + INTERVAL %" PRIu64
               " MICROSECOND, inside = %s WHERE name = ",
               r->at_hand.record.generation, r->at_hand.at.stamp_us,
               is_empty(&r->at_hand.record) ? HF__MY_NOBODY : "NULL");
    hf__my_add_bytes(&t, r->op->bid->name, r->op->bid->name_len);
    return run(r, &t);
}

const struct hf__sql_writer hf__my_writer = {
    .load = hf__my_load,
    .end = hf__my_finish,
    .add = add_entry,
    .set = set_entry,
    .move_inside = move_inside,
    .drop = drop,
    .set_retired = set_retired,
    .set_wake = set_wake,
    .call = call,
    .set_lock = set_lock,
};
