/* hold=session and hold=advisory: what sql/hold.c needs to know of PostgreSQL. The statements are
 * in hold_text.c.
 *
 * Whoever waits in the server is not granted after its death: client_connection_check_interval
 * makes the server look, once a second, whether there is still somebody, and the keepalives end a
 * connection whose other side vanished without a word. */
#include <poll.h>
#include <stdlib.h>

#include "stores/postgres/hold.h"

#include "base/banned.h"

#define FIRST_LOOK_MS 20    /* for an answer, before an attempt says "queued" */
#define KNOWN_MS      60000 /* how long a name counts as registered: `holdfast gc` may remove it */
#define CANCELED      "57014"

struct held {
    struct hf__held base;
    struct hf__pg_conn *c; /* NULL: hung up */
    struct hf__pg_session session;
    _Atomic uint64_t *registered; /* where its name is noted */
    bool failed;                  /* a statement was refused */
};

/* The answer --------------------------------------------------------------- */

/* One statement's result. The last one brings the generation; none: somebody else is there. */
static void take_part(struct held *h, const PGresult *part)
{
    ExecStatusType status = PQresultStatus(part);

    if (status == PGRES_TUPLES_OK) {
        if (PQntuples(part) == 0) {
            h->failed = true;
            atomic_store(h->registered, 0);
            hf__fail(&h->base.refusal, HF_UNAVAILABLE, "postgres: the name's row was removed");
        } else {
            h->base.generation = (uint64_t)hf__pg_cell(part, 0, 1, 0); /* null: it was not let in */
            h->failed |= h->base.generation == 0;
        }
    } else if (status == PGRES_FATAL_ERROR) {
        h->failed = true;
        if (!hf__pg_state_is(part, "55P03") && !hf__pg_state_is(part, "22012"))
            hf__pg_fail(part, &h->base.refusal);
    }
}

static void look(struct hf__held *held)
{
    struct held *h = (struct held *)held;

    if (held->state == HF__HELD_DEAD)
        return;
    if (h->c == NULL || !PQconsumeInput(h->c->pg) || PQstatus(h->c->pg) != CONNECTION_OK) {
        held->state = HF__HELD_DEAD;
        return;
    }
    while (held->state == HF__HELD_WAITING && !PQisBusy(h->c->pg)) {
        PGresult *part = PQgetResult(h->c->pg);
        if (part == NULL)
            held->state = h->failed ? HF__HELD_REFUSED : HF__HELD_INSIDE;
        else
            take_part(h, part);
        PQclear(part);
    }
}

static bool wait(void *owner, struct hf__held *held, int64_t deadline_ns)
{
    PGconn *pg = ((struct held *)held)->c->pg;
    short events = PQflush(pg) == 1 ? POLLIN | POLLOUT : POLLIN;

    return hf__pg_wait(owner, pg, events, deadline_ns) != 0;
}

static int fd(const struct hf__held *held)
{
    const struct held *h = (const struct held *)held;

    return h->c != NULL ? PQsocket(h->c->pg) : -1;
}

/* The end ------------------------------------------------------------------ */

/* Our session's process: a later one of the same number began later, and is left alone. */
#define OURS "pid = $1 AND (extract(epoch FROM backend_start) * 1000000.0)::bigint <= $2"

static struct hf__pg_query about_session(const struct hf__held *held, const char *sql)
{
    const struct held *h = (const struct held *)held;
    struct hf__pg_query q = {.sql = sql, .reads = true};

    hf__pg_number(&q, h->session.pid);
    hf__pg_number(&q, h->session.seen_us);
    return q;
}

static enum hf__held_gone kill_session(void *owner, const struct hf__held *held, void *other,
                                       int64_t deadline_ns)
{
    struct hf__pg_query q =
        about_session(held, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE " OURS);
    PGresult *result = NULL;
    int r = hf__pg_ask(owner, other, &q, deadline_ns, &result, NULL);
    bool there = r == 0 && PQntuples(result) > 0;
    PQclear(result);
    return r != 0 ? HF__HELD_NOT_SAID : there ? HF__HELD_STILL_THERE : HF__HELD_GONE;
}

/* PQcancel would do it too, but nobody could say for how long. */
static bool cancel(void *owner, struct hf__held *held, void *other, int64_t deadline_ns)
{
    struct hf__pg_query q =
        about_session(held, "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE " OURS);
    PGresult *result = NULL;
    int r = hf__pg_ask(owner, other, &q, deadline_ns, &result, NULL);
    PQclear(result);
    return r == 0;
}

/* A connection in the middle of a statement cannot be lent again; nor one that was refused: what it
 * has prepared may be for tables that were made anew. */
static bool leave(void *owner, struct hf__held *held, int64_t deadline_ns)
{
    struct hf__pg *s = owner;
    struct held *h = (struct held *)held;
    bool whole = held->state == HF__HELD_INSIDE || held->state == HF__HELD_REFUSED;
    bool sound = held->refusal.code == 0 || held->refusal.store_code == strtol(CANCELED, NULL, 36);

    if (h->c == NULL)
        return false;
    bool undone = whole && hf__pg_run(s, h->c, hf__pg_unhold_sql(s), deadline_ns, NULL) == 0;
    if (undone && sound)
        hf__pg_give_back(s, h->c);
    else
        hf__pg_hang_up_borrowed(s, h->c);
    h->c = NULL;
    return undone;
}

static void drop(struct hf__held *held)
{
    hf__pg_hang_up(((struct held *)held)->c);
}

/* Attempt ------------------------------------------------------------------ */

/* Once per connection. */
static int make_ready(struct hf__pg *s, struct hf__pg_conn *c, int64_t deadline_ns, hf_error *err)
{
    struct hf__pg_query q = {.reads = true, .bare = true};
    PGresult *result = NULL;
    hf_error why = {0};

    if (c->session.pid != 0)
        return 0;
    char *sql = hf__pg_session_sql(s, PQbackendPID(c->pg));
    if (sql == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    q.sql = sql;
    int r = hf__pg_ask(s, c, &q, deadline_ns, &result, &why);
    if (r == 0) {
        c->session.pid = hf__pg_cell(result, 0, 0, 0);
        c->session.seen_us = hf__pg_cell(result, 0, 1, 0);
    } else if (why.store_code == strtol("22012", NULL, 36)) {
        r = hf__fail(err, HF_DENIED,
                     "postgres: a pooler stands between, and hold=session and hold=advisory need "
                     "a connection of their own; name the server itself, or use hold=lease");
    } else if (err != NULL) {
        *err = why;
    }
    PQclear(result);
    free(sql);
    return r;
}

static uint64_t hash(const struct hf__bid *bid)
{
    uint64_t h = UINT64_C(14695981039346656037);

    for (size_t i = 0; i < bid->name_len; i++)
        h = (h ^ (unsigned char)bid->name[i]) * UINT64_C(1099511628211);
    return h | 1;
}

/* Where it is noted that the name is registered. All notes are thrown away now and then. */
static _Atomic uint64_t *find_note(struct hf__pg *s, uint64_t name)
{
    int64_t now_ns = hf__now_ns(s->base.host->env), since_ns = atomic_load(&s->registered_ns);

    if (now_ns - since_ns > KNOWN_MS * HF__NS_PER_MS &&
        atomic_compare_exchange_strong(&s->registered_ns, &since_ns, now_ns)) {
        for (size_t i = 0; i < HF__PG_REGISTERED; i++)
            atomic_store(&s->registered[i], 0);
    }
    return &s->registered[name / 2 % HF__PG_REGISTERED];
}

/* So that others can tell what a key stands for. */
static int register_name(struct hf__pg *s, struct held *h, const struct hf__bid *bid,
                         int64_t deadline_ns, hf_error *err)
{
    struct hf__pg_query q = {
        .sql = "INSERT INTO public.holdfast_name (name, key) VALUES ($1, " HF__PG_KEY(
            "$1") ") ON CONFLICT DO NOTHING",
        .bare = true};
    uint64_t name = hash(bid);
    PGresult *result = NULL;

    h->registered = find_note(s, name);
    if (atomic_load(h->registered) == name)
        return 0;
    hf__pg_bytes(&q, bid->name, bid->name_len);
    int r = hf__pg_ask(s, h->c, &q, deadline_ns, &result, err);
    PQclear(result);
    if (r == 0)
        atomic_store(h->registered, name);
    return r;
}

/* What was not sent wholly is over with its connection: the server runs nothing without its end. */
static int send_statement(struct hf__pg *s, struct hf__pg_conn *c, const struct hf__bid *bid,
                          int64_t deadline_ns, hf_error *err)
{
    char *sql = hf__pg_hold_sql(s, bid);
    int r = sql == NULL ? hf__fail(err, HF_NO_MEMORY, NULL) : 0, left = 1;

    if (r == 0 && !PQsendQuery(c->pg, sql))
        left = -1;
    while (r == 0 && left == 1 && (left = PQflush(c->pg)) == 1) {
        if (!hf__pg_wait(s, c->pg, POLLIN | POLLOUT, deadline_ns))
            left = -1;
    }
    free(sql);
    return r == 0 && left < 0 ? hf__fail(err, HF_UNAVAILABLE, "postgres: the connection failed")
                              : r;
}

static int send(void *owner, struct hf__held *held, const struct hf__bid *bid, int64_t deadline_ns,
                hf_error *err)
{
    struct hf__pg *s = owner;
    struct held *h = (struct held *)held;
    int r = hf__pg_borrow(s, deadline_ns, &h->c, err);

    if (r != 0)
        return r;
    r = make_ready(s, h->c, deadline_ns, err);
    if (r == 0)
        r = register_name(s, h, bid, deadline_ns, err);
    if (r == 0)
        r = send_statement(s, h->c, bid, deadline_ns, err);
    if (r == 0) {
        h->session = h->c->session;
        return 0;
    }
    hf__pg_hang_up_borrowed(s, h->c);
    return r == HF_UNKNOWN ? hf__wrap(err, HF_UNAVAILABLE, "postgres") : r;
}

static const struct hf__hold_type hold_type = {
    .store = "postgres",
    .held_size = sizeof(struct held),
    .first_look_ms = FIRST_LOOK_MS,
    .send = send,
    .look = look,
    .wait = wait,
    .fd = fd,
    .cancel = cancel,
    .leave = leave,
    .kill = kill_session,
    .drop = drop,
};

int hf__pg_hold_init(struct hf__pg *s, hf_error *err)
{
    return hf__hold_init((struct hf__holding *)s, &hold_type, err);
}

HF__IS_HOLDING(struct hf__pg);

static const char *const schemes[] = {"postgres", "postgresql", NULL};

const struct hf__store_type hf__pg_hold_type = {
    .abi = HF__STORE_ABI,
    .name = "postgres",
    .schemes = schemes,
    .summary = "locks of a PostgreSQL server that live as long as a connection",
    .capabilities = HF__HOLD_CAPABILITIES,
    .options = hf__pg_options,
    .ddl = hf__pg_ddl,
    .ddl_of = hf__pg_ddl_of,
    .open = hf__pg_open,
    .close = hf__pg_close,
    .operate = hf__hold_operate,
    .renew = hf__hold_renew,
    .inspect = hf__pg_hold_inspect,
    .upkeep = hf__sql_upkeep,
    .diagnose = hf__pg_diagnose,
    .wake_fd = hf__hold_wake_fd,
    .wake = hf__hold_wake,
};
