/* Writes back what the doorman has marked, a statement each. See record.c for how the record is
 * loaded. Nobody is called: waiters ask. */
#include "stores/oracle/oracle.h"

#include "base/banned.h"

#define COLUMNS                                                                              \
    "name, ticket, seq, shared, room, ttl, delay, retire, since_ms, until_ms, lease, host, " \
    "username, program, pid, note"
#define VALUES "HEXTORAW(?), HEXTORAW(?), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, HEXTORAW(?)"
#define KEY    " WHERE name = HEXTORAW(?) AND ticket = HEXTORAW(?)"

static const char add_holder[] = "INSERT INTO holdfast_holder (" COLUMNS
                                 ", lingering, generation, claimed) VALUES (" VALUES ", 0, ?, ?)";
static const char add_waiter[] = "INSERT INTO holdfast_waiter (" COLUMNS ") VALUES (" VALUES ")";
static const char add_retired[] = "INSERT INTO holdfast_retired (name, ticket, until_ms, lease)"
                                  " VALUES (HEXTORAW(?), HEXTORAW(?), ?, ?)";
static const char set_holder[] =
    "UPDATE holdfast_holder SET until_ms = ?, lease = ?, lingering = ?, claimed = ?" KEY;
static const char set_waiter[] = "UPDATE holdfast_waiter SET until_ms = ?, lease = ?" KEY;
static const char copy_waiter[] =
    "INSERT INTO holdfast_holder (" COLUMNS ", lingering, generation, claimed) SELECT " COLUMNS
    ", 0, 0, 0 FROM holdfast_waiter" KEY;
static const char set_entered[] =
    "UPDATE holdfast_holder SET generation = ?, since_ms = ?, until_ms = ?, lease = ?,"
    " claimed = ?" KEY;
static const char drop_holder[] = "DELETE FROM holdfast_holder" KEY;
static const char drop_waiter[] = "DELETE FROM holdfast_waiter" KEY;
static const char drop_retired[] = "DELETE FROM holdfast_retired" KEY;
static const char set_lock_sql[] = "UPDATE holdfast_lock SET generation = ?, line = ?,"
                                   " touched_us = ? WHERE name = HEXTORAW(?)";

static int run(struct hf__ora_record *r)
{
    return hf__ora_run(r->s, r->c, false, r->deadline_ns, r->err);
}

static void add_key(struct hf__ora_record *r, const struct hf__entry *e)
{
    const struct hf__bid *bid = r->op->bid;

    hf__ora_add_bytes(r->c, bid->name, bid->name_len);
    hf__ora_add_bytes(r->c, e->ticket.bits, sizeof e->ticket.bits);
}

static int drop(void *ctx, const struct hf__entry *e, enum hf__place from)
{
    struct hf__ora_record *r = ctx;

    hf__ora_start(r->c, from == HF__PLACE_RETIRED   ? drop_retired
                        : from == HF__PLACE_WAITING ? drop_waiter
                                                    : drop_holder);
    add_key(r, e);
    return run(r);
}

static int set_retired(void *ctx, const struct hf__entry *e)
{
    struct hf__ora_record *r = ctx;
    int code = drop(ctx, e, HF__PLACE_RETIRED);

    if (code != 0)
        return code;
    hf__ora_start(r->c, add_retired);
    add_key(r, e);
    hf__ora_add_number(r->c, e->until_ms);
    hf__ora_add_number(r->c, e->lease_ms);
    return run(r);
}

static int add_entry(void *ctx, const struct hf__entry *e)
{
    struct hf__ora_record *r = ctx;
    struct hf__ora_conn *c = r->c;
    const struct hf__who *who = r->op->bid->who;
    bool inside = e->place == HF__PLACE_INSIDE;

    hf__ora_start(c, inside ? add_holder : add_waiter);
    add_key(r, e);
    hf__ora_add_number(c, r->line);
    hf__ora_add_number(c, e->mode == HF_SHARED);
    hf__ora_add_or_null(c, e->limit, 0);
    hf__ora_add_number(c, e->ttl_ms);
    hf__ora_add_number(c, e->lock_delay_ms);
    hf__ora_add_number(c, e->retire_ms);
    hf__ora_add_number(c, e->since_ms);
    hf__ora_add_number(c, e->until_ms);
    hf__ora_add_or_null(c, e->lease_ms, HF__NEVER);
    hf__ora_add_who(c, who != NULL ? who : r->s->base.host->self);
    if (inside) {
        hf__ora_add_number(c, (int64_t)e->generation);
        hf__ora_add_number(c, e->claimed);
    }
    return run(r);
}

/* A parameter in a list of columns has no type on every server, so the row is copied first. */
static int move_inside(void *ctx, const struct hf__entry *e)
{
    struct hf__ora_record *r = ctx;
    struct hf__ora_conn *c = r->c;

    hf__ora_start(c, copy_waiter);
    add_key(r, e);
    int code = run(r);
    if (code != 0)
        return code;
    hf__ora_start(c, set_entered);
    hf__ora_add_number(c, (int64_t)e->generation);
    hf__ora_add_number(c, e->since_ms);
    hf__ora_add_number(c, e->until_ms);
    hf__ora_add_or_null(c, e->lease_ms, HF__NEVER);
    hf__ora_add_number(c, e->claimed);
    add_key(r, e);
    code = run(r);
    return code != 0 ? code : drop(ctx, e, HF__PLACE_WAITING);
}

static int set_entry(void *ctx, const struct hf__entry *e)
{
    struct hf__ora_record *r = ctx;
    struct hf__ora_conn *c = r->c;
    bool waits = e->place == HF__PLACE_WAITING;

    hf__ora_start(c, waits ? set_waiter : set_holder);
    hf__ora_add_number(c, e->until_ms);
    hf__ora_add_or_null(c, e->lease_ms, HF__NEVER);
    if (!waits) {
        hf__ora_add_number(c, e->place == HF__PLACE_LINGERING);
        hf__ora_add_number(c, e->claimed);
    }
    add_key(r, e);
    return run(r);
}

static int set_lock(void *ctx, bool let_in)
{
    struct hf__ora_record *r = ctx;

    (void)let_in; /* it was touched in any case */
    hf__ora_start(r->c, set_lock_sql);
    hf__ora_add_number(r->c, (int64_t)r->at_hand.record.generation);
    hf__ora_add_number(r->c, r->line);
    hf__ora_add_number(r->c, (int64_t)r->at_hand.at.stamp_us);
    hf__ora_add_bytes(r->c, r->op->bid->name, r->op->bid->name_len);
    return run(r);
}

const struct hf__sql_writer hf__ora_writer = {
    .load = hf__ora_load,
    .end = hf__ora_finish,
    .add = add_entry,
    .set = set_entry,
    .move_inside = move_inside,
    .drop = drop,
    .set_retired = set_retired,
    .set_lock = set_lock,
};
