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
 * The server drops a session that says nothing for half a minute; signs of life keep it. */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "stores/mysql/hold.h"

#include "base/banned.h"

#define FIRST_LOOK_MS 20

static struct hf__my_held *held_of(struct hf__held *base)
{
    return (struct hf__my_held *)base;
}

/* The answer --------------------------------------------------------------- */

static bool is_lost(unsigned number)
{
    return number == 2013 || number == 2006 || number == 2027 || number == 1927 || number == 1053 ||
           number == 4031;
}

static void answered(struct hf__my_held *h, int bad);

/* Sends it; it is short enough to leave at once, and the answer may be there at once. */
static void ask(struct hf__my_held *h, const struct hf__my_text *t)
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

static void go_on(struct hf__my_held *h, enum hf__my_step step)
{
    h->step = step;
    if (step == HF__MY_AT_THE_ROW)
        ask(h, &h->texts.to_row);
    else if (step == HF__MY_LEAVES_THE_DOOR)
        ask(h, &h->texts.from_door);
    else if (step == HF__MY_HAS_IT)
        h->base.state = HF__HELD_INSIDE;
}

/* Somebody else is there: an error of NOWAIT, or the door was closed and no row was tried. */
static void refuse(struct hf__my_held *h, unsigned number, bool busy)
{
    h->base.state = is_lost(number) ? HF__HELD_DEAD : HF__HELD_REFUSED;
    if (!busy)
        hf__my_fail(number, mysql_error(h->c->my), true, &h->base.refusal);
}

/* A statement has ended. */
static void take_answer(struct hf__my_held *h, int bad)
{
    unsigned number = bad != 0 ? mysql_errno(h->c->my) : 0;
    bool in_time = number != 1205 && number != 3572;

    if (bad != 0 && in_time)
        refuse(h, number, false);
    else if (h->ended && h->step != HF__MY_LEAVES_THE_DOOR)
        refuse(h, 0, true);
    else if (h->step == HF__MY_AT_THE_DOOR)
        go_on(h, HF__MY_AT_THE_ROW);
    else if (h->step == HF__MY_AT_THE_ROW && bad != 0 && h->patient)
        go_on(h, HF__MY_AT_THE_ROW); /* nobody else can come before us */
    else if (h->step == HF__MY_AT_THE_ROW && (bad != 0 || mysql_affected_rows(h->c->my) != 1))
        refuse(h, 0, true);
    else
        go_on(h, h->step == HF__MY_AT_THE_ROW ? HF__MY_LEAVES_THE_DOOR : HF__MY_HAS_IT);
}

/* To a bid, or to a sign of life. */
static void answered(struct hf__my_held *h, int bad)
{
    if (h->base.state == HF__HELD_WAITING)
        take_answer(h, bad);
    else if (bad != 0)
        h->base.state = HF__HELD_DEAD;
}

static void look(struct hf__held *base)
{
    struct hf__my_held *h = held_of(base);
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
    const struct hf__my_held *h = (const struct hf__my_held *)base;

    return h->c != NULL ? mysql_get_socket(h->c->my) : -1;
}

static void touch(struct hf__held *base)
{
    static char word[] = "DO 1";
    static const struct hf__my_text sign = {.data = word, .len = sizeof word - 1};
    struct hf__my_held *h = held_of(base);

    if (!h->asked && h->c != NULL)
        ask(h, &sign);
}

/* The end ------------------------------------------------------------------ */

static void drop(struct hf__held *base)
{
    struct hf__my_held *h = held_of(base);

    if (h->c != NULL)
        h->c->broken = true; /* it may be waiting: no good-bye */
    hf__my_hang_up(h->c);
    hf__my_hold_texts_clear(&h->texts);
}

/* Ends the transaction, and leaves the door if that was not done yet. */
static bool undo(struct hf__my *s, struct hf__my_held *h, int64_t deadline_ns)
{
    if (h->asked || hf__my_run(s, h->c, "ROLLBACK AND NO CHAIN NO RELEASE", deadline_ns, NULL) != 0)
        return false;
    return h->step == HF__MY_HAS_IT ||
           hf__my_ask(s, h->c, &h->texts.from_door, false, deadline_ns, NULL, NULL) == 0;
}

static bool leave(void *owner, struct hf__held *base, int64_t deadline_ns)
{
    struct hf__my_held *h = held_of(base);

    if (h->c == NULL)
        return false;
    while (h->asked && base->state != HF__HELD_DEAD && wait(owner, base, deadline_ns))
        look(base);
    bool whole = base->state == HF__HELD_INSIDE || base->state == HF__HELD_REFUSED;
    bool undone = whole && undo(owner, h, deadline_ns);
    h->c->broken = !undone;
    hf__my_give_back(owner, h->c);
    h->c = NULL;
    hf__my_hold_texts_clear(&h->texts);
    return undone;
}

/* Attempt ------------------------------------------------------------------ */

static int send(void *owner, struct hf__held *base, const struct hf__bid *bid, int64_t deadline_ns,
                hf_error *err)
{
    struct hf__my *s = owner;
    struct hf__my_held *h = held_of(base);
    int r = hf__my_borrow(s, deadline_ns, &h->c, err);

    if (r != 0)
        return r;
    r = hf__my_hold_begin(s, h->c, bid, deadline_ns, &h->texts, err);
    h->id = h->c->session;
    hf__ticket_format(&bid->ticket, h->ticket);
    if (r == 0) {
        h->patient = bid->queue;
        h->step = bid->queue ? HF__MY_AT_THE_DOOR : HF__MY_AT_THE_ROW;
        ask(h, bid->queue ? &h->texts.to_door : &h->texts.to_row);
        if (base->state == HF__HELD_DEAD)
            r = hf__fail(err, HF_UNAVAILABLE, "mysql: the connection failed");
    }
    if (r == 0)
        return 0;
    h->c->broken = true;
    hf__my_give_back(s, h->c);
    hf__my_hold_texts_clear(&h->texts);
    return r == HF_UNKNOWN ? hf__wrap(err, HF_UNAVAILABLE, "mysql") : r;
}

/* Committed elsewhere before anybody is told; then noted in our own row, for people. */
static int finish(void *owner, struct hf__held *base, const struct hf__bid *bid,
                  int64_t deadline_ns, hf_error *err)
{
    struct hf__my *s = owner;
    struct hf__my_held *h = held_of(base);
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
    .held_size = sizeof(struct hf__my_held),
    .first_look_ms = FIRST_LOOK_MS,
    .send = send,
    .look = look,
    .wait = wait,
    .fd = fd,
    .finish = finish,
    .touch = touch,
    .cancel = hf__my_hold_cancel,
    .leave = leave,
    .kill = hf__my_hold_kill,
    .drop = drop,
};

HF__IS_HOLDING(struct hf__my);

int hf__my_hold_init(struct hf__my *s, hf_error *err)
{
    return hf__hold_init((struct hf__holding *)s, &hold_type, err);
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
    .operate = hf__hold_operate,
    .renew = hf__hold_renew,
    .inspect = hf__my_hold_inspect,
    .upkeep = hf__sql_upkeep,
    .diagnose = hf__my_diagnose,
    .wake_fd = hf__hold_wake_fd,
    .wake = hf__hold_wake,
};
