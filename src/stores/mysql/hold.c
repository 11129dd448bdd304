/* hold=session: what sql/hold.c needs to know of MariaDB and MySQL.
 *
 *      START TRANSACTION
 *      DO GET_LOCK(DOOR, ...)                                              -- the queue
 *      INSERT INTO holdfast_session_holder ... SELECT ... FROM holdfast_session
 *          WHERE name = NAME FOR UPDATE | LOCK IN SHARE MODE               -- the lock
 *      DO RELEASE_LOCK(DOOR)
 *      (elsewhere) INSERT INTO holdfast_lock ... ON DUPLICATE KEY UPDATE generation = ...
 *      ROLLBACK                                                            -- the release
 *
 * InnoDB does not look whether somebody who waits for a row is still there; whoever waits in
 * GET_LOCK is looked after, and is served in turn. So the queue is at the door, and only whoever
 * stands in it waits for the row, a second at a time: if it has died, that is when it is noticed.
 *
 * The row that was inserted is never committed: it is there for as long as the lock is, and others
 * see it because they look with READ UNCOMMITTED. Who waits is in the process list. The generation
 * is committed by another connection, so a rollback cannot repeat it.
 *
 * The server drops a session that says nothing for WAIT_TIMEOUT_S; signs of life keep it. */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "stores/mysql/hold.h"

#include "util/banned.h"

#define FIRST_LOOK_MS  20
#define GONE_YET_MS    5
#define WAIT_TIMEOUT_S 30

/* Where a bid stands: what it has asked for last. */
enum step { AT_THE_DOOR, AT_THE_ROW, LEAVES_THE_DOOR, HAS_IT };

struct held {
    struct hf__held base;
    struct hf__my_conn *c;       /* NULL: hung up */
    struct hf__my_session id;    /* how the server calls it */
    char ticket[HF_TICKET_SIZE]; /* by which the process list shows it while it waits */
    enum step step;
    bool asked;                                    /* a statement is under way */
    bool patient;                                  /* it waits, at the door and for the row */
    bool ended;                                    /* its wait was cancelled: no further step */
    struct hf__my_text to_door, to_row, from_door; /* the library does not copy them */
};

static struct held *held_of(struct hf__held *base)
{
    return (struct held *)base;
}

/* The answer --------------------------------------------------------------- */

static bool is_lost(unsigned number)
{
    return number == 2013 || number == 2006 || number == 2027 || number == 1927 || number == 1053;
}

static void answered(struct held *h, int bad);

/* Sends it; it is short enough to leave at once, and the answer may be there at once. */
static void ask(struct held *h, const struct hf__my_text *t)
{
    int bad = 0;
    int wants =
        t->failed ? MYSQL_WAIT_WRITE : mysql_real_query_start(&bad, h->c->my, t->data, t->len);

    h->asked = (wants & MYSQL_WAIT_READ) != 0;
    if (wants == 0)
        answered(h, bad);
    else if (!h->asked)
        h->base.state = HF__HELD_DEAD;
}

static void go_on(struct held *h, enum step step)
{
    h->step = step;
    if (step == AT_THE_ROW)
        ask(h, &h->to_row);
    else if (step == LEAVES_THE_DOOR)
        ask(h, &h->from_door);
    else if (step == HAS_IT)
        h->base.state = HF__HELD_INSIDE;
}

/* Somebody else is there: an error of NOWAIT, or the door was closed and no row was tried. */
static void refuse(struct held *h, unsigned number, bool busy)
{
    h->base.state = is_lost(number) ? HF__HELD_DEAD : HF__HELD_REFUSED;
    if (!busy)
        hf__my_fail(number, mysql_error(h->c->my), true, &h->base.refusal);
}

/* A statement has ended. */
static void take_answer(struct held *h, int bad)
{
    unsigned number = bad != 0 ? mysql_errno(h->c->my) : 0;
    bool in_time = number != 1205 && number != 3572;

    if (bad != 0 && in_time)
        refuse(h, number, false);
    else if (h->ended && h->step != LEAVES_THE_DOOR)
        refuse(h, 0, true);
    else if (h->step == AT_THE_DOOR)
        go_on(h, AT_THE_ROW);
    else if (h->step == AT_THE_ROW && bad != 0 && h->patient)
        go_on(h, AT_THE_ROW); /* nobody else can come before us */
    else if (h->step == AT_THE_ROW && (bad != 0 || mysql_affected_rows(h->c->my) != 1))
        refuse(h, 0, true);
    else
        go_on(h, h->step == AT_THE_ROW ? LEAVES_THE_DOOR : HAS_IT);
}

/* To a bid, or to a sign of life. */
static void answered(struct held *h, int bad)
{
    if (h->base.state == HF__HELD_WAITING)
        take_answer(h, bad);
    else if (bad != 0)
        h->base.state = HF__HELD_DEAD;
}

static void look(struct hf__held *base)
{
    struct held *h = held_of(base);
    int bad = 0;

    if (base->state == HF__HELD_DEAD)
        return;
    if (h->c == NULL) {
        base->state = HF__HELD_DEAD;
        return;
    }
    if (hf__my_is_quiet(h->c))
        return;
    if (!h->asked) { /* nobody asked, so this is the end */
        base->state = HF__HELD_DEAD;
        return;
    }
    if (mysql_real_query_cont(&bad, h->c->my, MYSQL_WAIT_READ) != 0)
        return;
    h->asked = false;
    answered(h, bad);
}

static bool wait(void *owner, struct hf__held *base, int64_t deadline_ns)
{
    return hf__my_wait(owner, held_of(base)->c->my, MYSQL_WAIT_READ, deadline_ns) != 0;
}

static int fd(const struct hf__held *base)
{
    const struct held *h = (const struct held *)base;

    return h->c != NULL ? mysql_get_socket(h->c->my) : -1;
}

static void touch(struct hf__held *base)
{
    static char word[] = "DO 1";
    static const struct hf__my_text sign = {.data = word, .len = sizeof word - 1};
    struct held *h = held_of(base);

    if (!h->asked && h->c != NULL)
        ask(h, &sign);
}

/* The end ------------------------------------------------------------------ */

/* Runs on another connection; false: not answered. `*ret_there`: it had a row to show. */
static bool ask_elsewhere(struct hf__my *s, struct hf__my_conn *c, const char *sql,
                          int64_t deadline_ns, bool *ret_there)
{
    struct hf__my_text t = {0};
    MYSQL_RES *result = NULL;

    hf__my_add(&t, "%s", sql);
    int r = hf__my_ask(s, c, &t, true, deadline_ns, &result, NULL);
    *ret_there = result != NULL && mysql_num_rows(result) > 0;
    mysql_free_result(result);
    hf__my_text_clear(&t);
    return r == 0;
}

/* Kills the session, if the server still has it. The host names the port of our end, or it is a
 * socket of this machine, whose sessions are ours only while they show our ticket. True: it is
 * gone. */
static bool end_session(struct hf__my *s, const struct held *h, int64_t deadline_ns)
{
    struct hf__my_conn *c = NULL;
    char find[400], kill[60];
    bool there = true, answered = true;

    if (hf__my_borrow(s, deadline_ns, &c, NULL) != 0)
        return false;
    snprintf(find, sizeof find,
             "SELECT 1 FROM information_schema.processlist WHERE id = %" PRIu64
             " AND host = '%s' AND (host LIKE '%%:%%' OR info LIKE '/*holdfast %s%%')",
             h->id.number, h->id.host, h->ticket);
    snprintf(kill, sizeof kill, "KILL CONNECTION %" PRIu64, h->id.number);
    while (answered && there && hf__now_ns(s->base.host->env) < deadline_ns) {
        answered = ask_elsewhere(s, c, find, deadline_ns, &there);
        if (!answered || !there)
            break;
        bool none;
        ask_elsewhere(s, c, kill, deadline_ns, &none);
        hf__pool_sleep(&s->pool, GONE_YET_MS);
    }
    hf__my_give_back(s, c);
    return answered && !there;
}

static void drain(struct hf__my *s, struct held *h, int64_t deadline_ns)
{
    while (h->asked && h->base.state != HF__HELD_DEAD && wait(s, &h->base, deadline_ns))
        look(&h->base);
}

/* Ends the wait in the server; its answer says how. */
static void cancel_wait(struct hf__my *s, struct held *h, int64_t deadline_ns)
{
    struct hf__my_conn *c = NULL;
    char sql[60];
    bool none;

    if (hf__my_borrow(s, deadline_ns, &c, NULL) != 0)
        return;
    h->ended = true;
    snprintf(sql, sizeof sql, "KILL QUERY %" PRIu64, h->id.number);
    if (ask_elsewhere(s, c, sql, deadline_ns, &none))
        drain(s, h, deadline_ns);
    hf__my_give_back(s, c);
}

static void clear_texts(struct held *h)
{
    hf__my_text_clear(&h->to_door);
    hf__my_text_clear(&h->to_row);
    hf__my_text_clear(&h->from_door);
}

/* The transaction, and the door if it was not left yet. */
static bool undo(struct hf__my *s, struct held *h, int64_t deadline_ns)
{
    if (h->asked || hf__my_run(s, h->c, "ROLLBACK", deadline_ns, NULL) != 0)
        return false;
    return h->step == HAS_IT ||
           hf__my_ask(s, h->c, &h->from_door, false, deadline_ns, NULL, NULL) == 0;
}

static bool end(void *owner, struct hf__held *base, int64_t deadline_ns)
{
    struct hf__my *s = owner;
    struct held *h = held_of(base);
    int64_t now_ns = hf__now_ns(s->base.host->env);
    bool gone = false;

    if (h->c != NULL && base->state == HF__HELD_WAITING)
        cancel_wait(s, h, now_ns + (deadline_ns - now_ns) / 2);
    if (h->c != NULL) {
        drain(s, h, deadline_ns);
        bool whole = base->state == HF__HELD_INSIDE || base->state == HF__HELD_REFUSED;
        gone = whole && undo(s, h, deadline_ns);
        h->c->broken = !gone;
        hf__my_give_back(s, h->c);
        h->c = NULL;
    }
    gone = gone || end_session(s, h, deadline_ns);
    if (gone)
        clear_texts(h);
    return gone;
}

static void drop(void *owner, struct hf__held *base)
{
    struct held *h = held_of(base);

    (void)owner;
    if (h->c != NULL)
        h->c->broken = true; /* it may be waiting: no good-bye */
    hf__my_hang_up(h->c);
    clear_texts(h);
    free(h);
}

/* Attempt ------------------------------------------------------------------ */

/* Once per connection. Galera's row locks are known to one node only. */
static int make_ready(struct hf__my *s, struct hf__my_conn *c, int64_t deadline_ns, hf_error *err)
{
    MYSQL_ROW row;
    char set[120];

    if (c->session.number != 0)
        return 0;
    if (c->proxied)
        return hf__fail(err, HF_DENIED,
                        "mysql: something stands between, and hold=session needs a connection of "
                        "its own; name the server itself, or use hold=lease");
    snprintf(set, sizeof set, "SET innodb_lock_wait_timeout = 1, wait_timeout = %d",
             WAIT_TIMEOUT_S);
    int r = hf__my_run(s, c, set, deadline_ns, err);
    if (r != 0)
        return r;
    MYSQL_RES *result =
        hf__my_look(s, c,
                    "SELECT id, host, (SELECT COUNT(*) FROM information_schema.global_status WHERE"
                    " variable_name = 'wsrep_cluster_size' AND variable_value > 0) FROM"
                    " information_schema.processlist WHERE id = CONNECTION_ID()",
                    deadline_ns, &row, err);
    if (result == NULL)
        return HF_UNAVAILABLE;
    if (hf__sql_integer(row[2], 0) != 0)
        r = hf__fail(err, HF_DENIED,
                     "mysql: hold=session does not work on a Galera cluster, whose nodes do not "
                     "know each other's row locks; use hold=lease");
    c->session.number = r == 0 ? (uint64_t)hf__sql_integer(row[0], 0) : 0;
    snprintf(c->session.host, sizeof c->session.host, "%s", row[1]);
    mysql_free_result(result);
    return r;
}

static int register_name(struct hf__my *s, struct hf__my_conn *c, const struct hf__bid *bid,
                         int64_t deadline_ns, hf_error *err)
{
    struct hf__my_text t = {0};

    hf__my_add(&t, "INSERT IGNORE INTO holdfast_session (name) SELECT x FROM (SELECT ");
    hf__my_add_bytes(&t, bid->name, bid->name_len);
    hf__my_add(&t, " AS x) n WHERE NOT EXISTS (SELECT 1 FROM holdfast_session WHERE name = ");
    hf__my_add_bytes(&t, bid->name, bid->name_len);
    hf__my_add(&t, ")");
    int r = hf__my_ask(s, c, &t, false, deadline_ns, NULL, err);
    hf__my_text_clear(&t);
    return r;
}

/* MySQL has no NOWAIT after LOCK IN SHARE MODE, MariaDB no FOR SHARE. */
static const char *lock_clause(const struct hf__my_conn *c, const struct hf__bid *bid)
{
    const char *shared = mariadb_connection(c->my) ? " LOCK IN SHARE MODE" : " FOR SHARE";

    return bid->mode == HF_SHARED ? shared : " FOR UPDATE";
}

/* The door's name: user-level locks are the server's, not the database's. */
static void add_door(struct hf__my_text *t, const struct hf__bid *bid)
{
    hf__my_add(t, "CONCAT('holdfast ', LEFT(SHA2(CONCAT(DATABASE(), '/");
    hf__my_add_hex(t, bid->name, bid->name_len);
    hf__my_add(t, "'), 256), 40))");
}

static void write_bid(struct hf__my *s, struct held *h, const struct hf__bid *bid)
{
    const struct hf__who *who = bid->who != NULL ? bid->who : s->base.host->self;
    char about[HF__ABOUT_MAX];

    hf__about_format(bid, who, about);
    hf__ticket_format(&bid->ticket, h->ticket);
    hf__my_add(&h->to_door, "%s DO GET_LOCK(", about);
    add_door(&h->to_door, bid);
    hf__my_add(&h->to_door, ", 100000000) -- name = ");
    hf__my_add_bytes(&h->to_door, bid->name, bid->name_len);
    hf__my_add(&h->from_door, "DO RELEASE_LOCK(");
    add_door(&h->from_door, bid);
    hf__my_add(&h->from_door, ")");
    hf__my_add(&h->to_row,
               "%s INSERT INTO holdfast_session_holder (name, about, connection, since) SELECT"
               " name, '%s', %" PRIu64 ", SYSDATE(6) FROM holdfast_session WHERE ",
               about, about, h->id.number);
    if (!bid->queue) {
        hf__my_add(&h->to_row, "GET_LOCK(");
        add_door(&h->to_row, bid);
        hf__my_add(&h->to_row, ", 0) = 1 AND ");
    }
    hf__my_add(&h->to_row, "name = ");
    hf__my_add_bytes(&h->to_row, bid->name, bid->name_len);
    hf__my_add(&h->to_row, "%s%s", lock_clause(h->c, bid), bid->queue ? "" : " NOWAIT");
}

static int send(void *owner, struct hf__held *base, const struct hf__bid *bid, int64_t deadline_ns,
                hf_error *err)
{
    struct hf__my *s = owner;
    struct held *h = held_of(base);
    int r = hf__my_borrow(s, deadline_ns, &h->c, err);

    if (r != 0)
        return r;
    r = make_ready(s, h->c, deadline_ns, err);
    h->id = h->c->session;
    if (r == 0)
        r = register_name(s, h->c, bid, deadline_ns, err);
    if (r == 0)
        r = hf__my_run(s, h->c, "START TRANSACTION", deadline_ns, err);
    if (r == 0) {
        write_bid(s, h, bid);
        h->patient = bid->queue;
        h->step = bid->queue ? AT_THE_DOOR : AT_THE_ROW;
        ask(h, bid->queue ? &h->to_door : &h->to_row);
        if (base->state == HF__HELD_DEAD)
            r = hf__fail(err, HF_UNAVAILABLE, "mysql: the connection failed");
    }
    if (r == 0)
        return 0;
    h->c->broken = true;
    hf__my_give_back(s, h->c);
    clear_texts(h);
    return r == HF_UNKNOWN ? hf__wrap(err, HF_UNAVAILABLE, "mysql") : r;
}

/* Committed elsewhere before anybody is told; then noted in our own row, for people. */
static int finish(void *owner, struct hf__held *base, const struct hf__bid *bid,
                  int64_t deadline_ns, hf_error *err)
{
    struct hf__my *s = owner;
    struct held *h = held_of(base);
    struct hf__my_conn *c = NULL;
    struct hf__my_text t = {0};
    char note[100];
    int r = hf__my_borrow(s, deadline_ns, &c, err);

    if (r != 0)
        return r;
#define STAMP "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6))"
    hf__my_add(&t,
               "INSERT INTO holdfast_lock (name, generation, line, touched, `before`) VALUES (");
    hf__my_add_bytes(&t, bid->name, bid->name_len);
    hf__my_add(&t,
               ", LAST_INSERT_ID(" STAMP "), 1, SYSDATE(6), '1970-01-01') ON DUPLICATE KEY UPDATE"
               " `before` = touched, touched = SYSDATE(6),"
               " generation = LAST_INSERT_ID(GREATEST(generation + 1, " STAMP "))");
    r = hf__my_ask(s, c, &t, false, deadline_ns, NULL, err);
    uint64_t generation = r == 0 ? mysql_insert_id(c->my) : 0;
    hf__my_text_clear(&t);
    hf__my_give_back(s, c);
    if (r != 0)
        return r;
    snprintf(note, sizeof note,
             "UPDATE holdfast_session_holder SET generation = %" PRIu64
             " WHERE connection = %" PRIu64,
             generation, h->id.number);
    r = hf__my_run(s, h->c, note, deadline_ns, err);
    if (r != 0)
        base->state = HF__HELD_DEAD;
    else
        base->generation = generation;
    return r;
}

static const struct hf__hold_type hold_type = {
    .store = "mysql",
    .held_size = sizeof(struct held),
    .first_look_ms = FIRST_LOOK_MS,
    .send = send,
    .look = look,
    .wait = wait,
    .fd = fd,
    .finish = finish,
    .touch = touch,
    .end = end,
    .drop = drop,
};

HF__IS_HOLDING(struct hf__my);

int hf__my_hold_init(struct hf__my *s, hf_error *err)
{
    s->pool.limits.max_active = s->set.max_held + 4; /* some are needed for looking */
    int r = hf__hold_init(&s->hold, &hold_type, s, s->base.host->env, err);
    s->hold.max_held = s->set.max_held;
    return r;
}

static const char *const schemes[] = {"mysql", "mariadb", NULL};

const struct hf__store_type hf__my_hold_type = {
    .abi = HF__STORE_ABI,
    .name = "mysql",
    .schemes = schemes,
    .summary = "row locks of a MariaDB or MySQL server that live as long as a connection",
    .capabilities = HF__HOLD_CAPABILITIES,
    .options = hf__my_options,
    .ddl = hf__my_ddl,
    .open = hf__my_open,
    .close = hf__my_close,
    .attempt = hf__hold_attempt,
    .withdraw = hf__hold_withdraw,
    .release = hf__hold_release,
    .renew = hf__hold_renew,
    .inspect = hf__my_hold_inspect,
    .upkeep = hf__my_upkeep,
    .diagnose = hf__my_diagnose,
    .wake_fd = hf__hold_wake_fd,
    .wake = hf__hold_wake,
};
