/* hold=session and hold=advisory: what sql/session needs to know of PostgreSQL.
 *
 *      PREPARE holdfast_...                                    once in each session: statements.sql
 *      / *holdfast TICKET ...* / EXECUTE holdfast_wait_x(...)  a bid: hold=advisory
 *      ... BEGIN; EXECUTE holdfast_door_wait(...); EXECUTE holdfast_row_wait_x(...);
 *          EXECUTE holdfast_inside(...)                        the same: hold=session
 *      [COMMIT;] EXECUTE holdfast_leave                        the release
 *
 * The text of an EXECUTE says who asks, in a comment that others see in pg_stat_activity, and costs
 * the server a third of the whole statement.
 *
 * Whoever waits in the server is not granted after its death: client_connection_check_interval
 * makes the server search, once a second, whether there is still somebody, and the keepalives end a
 * connection whose other side vanished without a word. */
#include <poll.h>
#include <stdlib.h>

#include "base/table.h"
#include "stores/postgres/session/session.h"

#include "base/banned.h"

#define FIRST_LOOK_MS 20    /* for an answer, before an attempt says "queued" */
#define KNOWN_MS      60000 /* how long a name counts as registered: `holdfast gc` may remove it */
#define CANCELED      "57014"

struct session_lock {
    struct hf__session_lock base;
    struct hf__pg_conn *c; /* NULL: hung up */
    struct hf__pg_backend backend;
    _Atomic uint64_t *registered; /* where its name is noted */
    bool failed;                  /* a statement was refused */
};

/* The answer --------------------------------------------------------------- */

/* One statement's result. The last one brings the generation; none: somebody else is there. */
static void take_part(struct session_lock *lock, const PGresult *part)
{
    ExecStatusType status = PQresultStatus(part);

    if (status == PGRES_TUPLES_OK) {
        if (PQntuples(part) == 0) {
            lock->failed = true;
            atomic_store(lock->registered, 0);
            hf__fail(&lock->base.refusal, HF_UNAVAILABLE, "postgres: the name's row was removed");
        } else {
            lock->base.generation =
                (uint64_t)hf__pg_cell(part, 0, 1, 0); /* null: it was not let in */
            lock->failed |= lock->base.generation == 0;
        }
    } else if (status == PGRES_FATAL_ERROR) {
        lock->failed = true;
        if (!hf__pg_state_is(part, "55P03") && !hf__pg_state_is(part, "22012"))
            hf__pg_fail(part, &lock->base.refusal);
    }
}

static void look(struct hf__session_lock *base)
{
    struct session_lock *lock = (struct session_lock *)base;

    if (base->state == HF__SESSION_STATE_DEAD)
        return;
    if (lock->c == NULL || !PQconsumeInput(lock->c->pg) || PQstatus(lock->c->pg) != CONNECTION_OK) {
        base->state = HF__SESSION_STATE_DEAD;
        return;
    }
    while (base->state == HF__SESSION_STATE_WAITING && !PQisBusy(lock->c->pg)) {
        PGresult *part = PQgetResult(lock->c->pg);
        if (part == NULL)
            base->state = lock->failed ? HF__SESSION_STATE_REFUSED : HF__SESSION_STATE_INSIDE;
        else
            take_part(lock, part);
        PQclear(part);
    }
}

static bool wait(void *owner, struct hf__session_lock *base, int64_t deadline_ns)
{
    PGconn *pg = ((struct session_lock *)base)->c->pg;
    short events = PQflush(pg) == 1 ? POLLIN | POLLOUT : POLLIN;

    return hf__pg_wait(owner, pg, events, deadline_ns) != 0;
}

static int fd(const struct hf__session_lock *base)
{
    const struct session_lock *lock = (const struct session_lock *)base;

    return lock->c != NULL ? PQsocket(lock->c->pg) : -1;
}

/* The end ------------------------------------------------------------------ */

/* Asks about the backend of this lock; how many there are, or -1. Nothing of ours is changed by it, so
 * a lost reply is no more than not knowing. */
static int ask_about_backend(void *owner, const struct hf__session_lock *base, void *other,
                             const char *sql, int64_t deadline_ns)
{
    const struct session_lock *lock = (const struct session_lock *)base;
    struct hf__pg_query q = {.sql = sql, .reads = true};
    PGresult *result = NULL;

    hf__pg_number(&q, lock->backend.pid);
    hf__pg_number(&q, lock->backend.seen_us);
    int r = hf__pg_ask(owner, other, &q, deadline_ns, &result, NULL);
    int count = r == 0 ? PQntuples(result) : -1;
    PQclear(result);
    return count;
}

static enum hf__session_gone kill_session(void *owner, const struct hf__session_lock *base,
                                          void *other, int64_t deadline_ns)
{
    int count = ask_about_backend(owner, base, other, hf__pg_kill_sql, deadline_ns);

    return count < 0   ? HF__SESSION_GONE_NOT_SAID
           : count > 0 ? HF__SESSION_GONE_NOT
                       : HF__SESSION_GONE_YES;
}

/* PQcancel would do it too, but nobody could say for how long. */
static bool cancel(void *owner, struct hf__session_lock *base, void *other, int64_t deadline_ns)
{
    return ask_about_backend(owner, base, other, hf__pg_cancel_sql, deadline_ns) >= 0;
}

/* A connection in the middle of a statement cannot be lent again; nor one that was refused: what it
 * has prepared may be for tables that were made anew. */
static bool leave(void *owner, struct hf__session_lock *base, int64_t deadline_ns)
{
    struct hf__pg *s = owner;
    struct session_lock *lock = (struct session_lock *)base;
    bool whole =
        base->state == HF__SESSION_STATE_INSIDE || base->state == HF__SESSION_STATE_REFUSED;
    bool sound = base->refusal.code == 0 || base->refusal.store_code == strtol(CANCELED, NULL, 36);

    if (lock->c == NULL)
        return false;
    const char *unlock = s->set.hold == HF__PG_HOLD_ADVISORY ? "EXECUTE holdfast_leave"
                                                             : "COMMIT; EXECUTE holdfast_leave";
    bool undone = whole && hf__pg_run(s, lock->c, unlock, deadline_ns, NULL) == 0;
    if (undone && sound)
        hf__pg_give_back(s, lock->c);
    else
        hf__pg_hang_up_borrowed(s, lock->c);
    lock->c = NULL;
    return undone;
}

static void drop(struct hf__session_lock *base)
{
    hf__pg_hang_up(((struct session_lock *)base)->c);
}

/* Attempt ------------------------------------------------------------------ */

/* Once per connection: settings and prepared statements, in one round trip. The last answer is what
 * the server calls the session, and the time. A pooler gives out a process id of its own making: then
 * the first statement divides by zero, and nothing is left in a session that is not ours. */
static int make_ready(struct hf__pg *s, struct hf__pg_conn *c, int64_t deadline_ns, hf_error *err)
{
    struct hf__pg_query q = {.reads = true, .bare = true};
    PGresult *result = NULL;
    hf_error why = {0};
    char *sql = NULL;

    if (c->backend.pid != 0)
        return 0;
    if (asprintf(&sql,
                 HF__PG_SAFE_PATH "; SELECT 1 / (pg_backend_pid() = %d)::int; %s; %s;"
                                  " SELECT pg_backend_pid(),"
                                  " (extract(epoch FROM clock_timestamp()) * 1000000.0)::bigint",
                 PQbackendPID(c->pg), hf__pg_session_settings_sql,
                 s->set.hold == HF__PG_HOLD_ADVISORY ? hf__pg_prepare_advisory_sql
                                                     : hf__pg_prepare_row_sql) < 0)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    q.sql = sql;
    int r = hf__pg_ask(s, c, &q, deadline_ns, &result, &why);
    if (r == 0) {
        c->backend.pid = hf__pg_cell(result, 0, 0, 0);
        c->backend.seen_us = hf__pg_cell(result, 0, 1, 0);
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

/* So that `ls` can tell what a key stands for. That a name is registered is noted, and all notes are thrown away
 * now and then: somebody may have purged it. */
static int register_name(struct hf__pg *s, struct session_lock *lock, const struct hf__bid *bid,
                         int64_t deadline_ns, hf_error *err)
{
    struct hf__pg_query q = {.sql = hf__pg_register_sql, .bare = true};
    int64_t now_ns = hf__now_ns(s->base.host->env), since_ns = atomic_load(&s->registered_ns);
    uint64_t name = hf__hash(0, bid->name, bid->name_len) | 1; /* 0: no note */
    PGresult *result = NULL;

    if (now_ns - since_ns > KNOWN_MS * HF__NS_PER_MS &&
        atomic_compare_exchange_strong(&s->registered_ns, &since_ns, now_ns)) {
        for (size_t i = 0; i < HF__PG_REGISTERED; i++)
            atomic_store(&s->registered[i], 0);
    }
    lock->registered = &s->registered[name / 2 % HF__PG_REGISTERED];
    if (atomic_load(lock->registered) == name)
        return 0;
    hf__pg_bytes(&q, bid->name, bid->name_len);
    int r = hf__pg_ask(s, lock->c, &q, deadline_ns, &result, err);
    PQclear(result);
    if (r == 0)
        atomic_store(lock->registered, name);
    return r;
}

/* What a backslash in a literal means is a matter of settings: there is none. */
#define NAME "decode('%s', 'hex')"

/* The statements of a bid. For the caller to free; NULL: no memory. */
static char *write_statement(const struct hf__pg *s, const struct hf__bid *bid)
{
    char hex[2 * HF_NAME_MAX + 1], comment[HF__SESSION_COMMENT_MAX], *sql = NULL;
    const char *how = bid->queue ? "wait" : "try";
    char mode = bid->mode == HF_SHARED ? 's' : 'x';
    int len;

    *hf__pg_put_hex(hex, bid->name, bid->name_len) = '\0';
    hf__session_comment_format(bid, bid->who != NULL ? bid->who : s->base.host->self, comment);
    if (s->set.hold == HF__PG_HOLD_ADVISORY)
        len = asprintf(&sql, "%s EXECUTE holdfast_%s_%c(" NAME ")", comment, how, mode, hex);
    else
        len =
            asprintf(&sql,
                     "%s BEGIN ISOLATION LEVEL READ COMMITTED; EXECUTE holdfast_door_%s(" NAME ");"
                     " EXECUTE holdfast_row_%s_%c(" NAME "); EXECUTE holdfast_inside(" NAME ")",
                     comment, how, hex, how, mode, hex, hex);
    return len < 0 ? NULL : sql;
}

/* What was not sent wholly is over with its connection: the server runs nothing without its end. */
static int send_statement(struct hf__pg *s, struct hf__pg_conn *c, const struct hf__bid *bid,
                          int64_t deadline_ns, hf_error *err)
{
    char *sql = write_statement(s, bid);
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

static int send(void *owner, struct hf__session_lock *base, const struct hf__bid *bid,
                int64_t deadline_ns, hf_error *err)
{
    struct hf__pg *s = owner;
    struct session_lock *lock = (struct session_lock *)base;
    int r = hf__pg_borrow(s, deadline_ns, &lock->c, err);

    if (r != 0)
        return r;
    r = make_ready(s, lock->c, deadline_ns, err);
    if (r == 0)
        r = register_name(s, lock, bid, deadline_ns, err);
    if (r == 0)
        r = send_statement(s, lock->c, bid, deadline_ns, err);
    if (r == 0) {
        lock->backend = lock->c->backend;
        return 0;
    }
    hf__pg_hang_up_borrowed(s, lock->c);
    return r == HF_UNKNOWN ? hf__wrap(err, HF_UNAVAILABLE, "postgres") : r;
}

static const struct hf__session_type session_type = {
    .store = "postgres",
    .lock_size = sizeof(struct session_lock),
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

int hf__pg_session_init(struct hf__pg *s, hf_error *err)
{
    return hf__session_init((struct hf__session_store *)s, &session_type, err);
}

HF__IS_SESSION_STORE(struct hf__pg);

static const char *const schemes[] = {"postgres", "postgresql", NULL};

const struct hf__store_type hf__pg_session_type = {
    .abi = HF__STORE_ABI,
    .name = "postgres",
    .schemes = schemes,
    .summary = "locks of a PostgreSQL server that live as long as a connection",
    .capabilities = HF__SESSION_CAPABILITIES,
    .options = hf__pg_options,
    .ddl = hf__pg_ddl,
    .ddl_of = hf__pg_ddl_of,
    .open = hf__pg_open,
    .close = hf__pg_close,
    .operate = hf__session_operate,
    .renew = hf__session_renew,
    .inspect = hf__pg_session_inspect,
    .upkeep = hf__sql_upkeep,
    .diagnose = hf__pg_diagnose,
    .wake_fd = hf__session_wake_fd,
    .wake = hf__session_wake,
};
