/* Writes back what the doorman has marked. See record.c for how the record is loaded. */
#include <inttypes.h>
#include <stdio.h>

#include "stores/mysql/mysql.h"

#include "util/banned.h"

struct save {
    struct hf__my_record *r;
    const struct hf__my_operation *op;
    hf_error *err;
};

static int run(const struct save *save, struct hf__my_text *t)
{
    int code = hf__my_ask(save->r->s, save->r->c, t, false, save->r->deadline_ns, NULL, save->err);

    hf__my_text_clear(t);
    return code;
}

static void add_key(const struct save *save, struct hf__my_text *t, const struct hf__entry *e)
{
    hf__my_add_bytes(t, save->op->bid->name, save->op->bid->name_len);
    hf__my_add(t, ", ");
    hf__my_add_bytes(t, e->ticket.bits, sizeof e->ticket.bits);
}

static void add_where(const struct save *save, struct hf__my_text *t, const struct hf__entry *e)
{
    hf__my_add(t, " WHERE (name, ticket) = (");
    add_key(save, t, e);
    hf__my_add(t, ")");
}

static int drop(const struct save *save, const char *table, const struct hf__entry *e)
{
    struct hf__my_text t = {0};

    hf__my_add(&t, "DELETE FROM %s", table);
    add_where(save, &t, e);
    return run(save, &t);
}

static int set_retired(const struct save *save, const struct hf__entry *e)
{
    struct hf__my_text t = {0};

    hf__my_add(&t, "INSERT INTO holdfast_retired (name, ticket, until, lease) VALUES (");
    add_key(save, &t, e);
    hf__my_add(&t, ", ");
    hf__my_add_instant(&t, e->until_ms);
    hf__my_add(&t,
               ", %" PRId64 ") ON DUPLICATE KEY UPDATE until = VALUES(until),"
               " lease = VALUES(lease)",
               e->lease_ms);
    return run(save, &t);
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

static int add_entry(const struct save *save, const struct hf__entry *e)
{
    const struct hf__who *who = save->op->bid->who;
    bool inside = e->place == HF__INSIDE;
    struct hf__my_text t = {0};

    hf__my_add(&t,
               "INSERT INTO %s (name, ticket, seq, shared, room, ttl, delay, retire, since, until,"
               " lease, %swake, host, username, program, pid, note) VALUES (",
               inside ? "holdfast_holder" : "holdfast_waiter",
               inside ? "lingering, generation, claimed, " : "");
    add_key(save, &t, e);
    hf__my_add(&t, ", %" PRId64 ", %d, ", save->r->line, e->mode == HF_SHARED);
    hf__my_add_or_null(&t, e->limit, 0);
    hf__my_add(&t, ", %" PRId64 ", %" PRId64 ", %" PRId64 ", ", e->ttl_ms, e->lock_delay_ms,
               e->retire_ms);
    add_times(&t, e);
    if (inside)
        hf__my_add(&t, ", 0, %" PRIu64 ", %d", e->generation, e->claimed);
    hf__my_add(&t, ", ");
    hf__my_add_text(&t, save->op->wake);
    hf__my_add_who(&t, who != NULL ? who : save->r->s->base.host->self);
    hf__my_add(&t, ")");
    return run(save, &t);
}

static int move_inside(const struct save *save, const struct hf__entry *e)
{
    struct hf__my_text t = {0};

    hf__my_add(&t,
               "INSERT INTO holdfast_holder SELECT name, ticket, seq, 0, shared, room, %" PRIu64
               ", ttl, delay, retire, ",
               e->generation);
    add_times(&t, e);
    hf__my_add(&t, ", %d, wake, host, username, program, pid, note FROM holdfast_waiter",
               e->claimed);
    add_where(save, &t, e);
    int code = run(save, &t);
    return code != 0 ? code : drop(save, "holdfast_waiter", e);
}

static int set_entry(const struct save *save, const struct hf__entry *e)
{
    bool waits = e->place == HF__WAITING;
    struct hf__my_text t = {0};

    hf__my_add(&t, "UPDATE %s SET until = ", waits ? "holdfast_waiter" : "holdfast_holder");
    hf__my_add_instant(&t, e->until_ms);
    hf__my_add(&t, ", lease = ");
    hf__my_add_or_null(&t, e->lease_ms, HF__NEVER);
    if (!waits)
        hf__my_add(&t, ", lingering = %d, claimed = %d", e->place == HF__LINGERING, e->claimed);
    add_where(save, &t, e);
    return run(save, &t);
}

static int set_wake(const struct save *save, const struct hf__entry *e)
{
    struct hf__my_text t = {0};

    hf__my_add(&t, "UPDATE holdfast_waiter SET wake = ");
    hf__my_add_text(&t, save->op->wake);
    add_where(save, &t, e);
    return run(save, &t);
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
    const struct hf__my_row *row = e->who;
    enum hf__place was = row->was.place;

    if (!differs(e, &row->was))
        return 0;
    if (was == HF__RETIRED)
        return e->place == HF__GONE ? drop(save, "holdfast_retired", e) : set_retired(save, e);
    if (was == HF__WAITING && (e->place == HF__INSIDE || e->place == HF__LINGERING))
        return move_inside(save, e);
    if (e->place != HF__GONE && e->place != HF__RETIRED)
        return set_entry(save, e);
    int code = drop(save, was == HF__WAITING ? "holdfast_waiter" : "holdfast_holder", e);
    return code != 0 || e->place == HF__GONE ? code : set_retired(save, e);
}

/* Those who were let in and do not learn of it from the answer, and whoever was broken. */
static void tell(const struct save *save, const struct hf__entry *e)
{
    const struct hf__my_row *row = e->who;
    bool own = hf__ticket_equal(&e->ticket, &save->op->bid->ticket);
    bool let_in = (e->marks & HF__LET_IN) && !(own && save->op->kind == HF__MY_ATTEMPT);

    if (row != NULL && row->wake[0] != '\0' && (let_in || (own && save->op->kind == HF__MY_BREAK)))
        hf__my_add(&save->r->calls, "%s,", row->wake);
}

static int save_lock(const struct save *save)
{
    struct hf__my_text t = {0};

    hf__my_add(&t,
               "UPDATE holdfast_lock SET generation = %" PRIu64
               ", `before` = touched, touched = '1970-01-01' + INTERVAL %" PRIu64
               " MICROSECOND WHERE name = ",
               save->r->record.generation, save->r->at.stamp_us);
    hf__my_add_bytes(&t, save->op->bid->name, save->op->bid->name_len);
    return run(save, &t);
}

int hf__my_save(struct hf__my_record *r, const struct hf__my_operation *op, hf_error *err)
{
    struct save save = {.r = r, .op = op, .err = err};
    int code = 0;

    for (size_t i = 0; i < r->record.count && code == 0; i++) {
        const struct hf__entry *e = &r->record.entries[i];
        bool own = hf__ticket_equal(&e->ticket, &op->bid->ticket);
        if (e->marks != 0)
            code = e->marks & HF__NEW ? save_new(&save, e) : save_old(&save, e);
        if (code == 0 && own && op->kind == HF__MY_ATTEMPT && e->place == HF__WAITING &&
            e->who != NULL)
            code = set_wake(&save, e);
        tell(&save, e);
    }
    return code != 0 ? code : save_lock(&save);
}
