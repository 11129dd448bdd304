/* hold=session: what sql/session needs to know of MariaDB and MySQL.
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

#include "stores/mysql/session/session.h"

#include "base/banned.h"

#define FIRST_LOOK_MS 20

static struct hf__my_session_lock *lock_of(struct hf__session_lock *base)
{
    return (struct hf__my_session_lock *)base;
}

/* The answer --------------------------------------------------------------- */

static bool is_lost(unsigned number)
{
    return number == 2013 || number == 2006 || number == 2027 || number == 1927 || number == 1053 ||
           number == 4031;
}

static void answered(struct hf__my_session_lock *lock, int bad);

/* Sends it; it is short enough to leave at once, and the answer may be there at once. */
static void ask(struct hf__my_session_lock *lock, const struct hf__my_text *t)
{
    int bad = 0;
    int wants =
        t->failed ? MYSQL_WAIT_WRITE : mysql_real_query_start(&bad, lock->c->my, t->data, t->len);

    lock->asked = (wants & MYSQL_WAIT_READ) != 0;
    if (wants == 0)
        answered(lock, bad);
    else if (!lock->asked)
        lock->base.state = HF__SESSION_STATE_DEAD;
}

static void go_on(struct hf__my_session_lock *lock, enum hf__my_step step)
{
    lock->step = step;
    if (step == HF__MY_STEP_AT_THE_ROW)
        ask(lock, &lock->texts.to_row);
    else if (step == HF__MY_STEP_LEAVES_THE_DOOR)
        ask(lock, &lock->texts.from_door);
    else if (step == HF__MY_STEP_HAS_IT)
        lock->base.state = HF__SESSION_STATE_INSIDE;
}

/* Somebody else is there: an error of NOWAIT, or the door was closed and no row was tried. */
static void refuse(struct hf__my_session_lock *lock, unsigned number, bool busy)
{
    lock->base.state = is_lost(number) ? HF__SESSION_STATE_DEAD : HF__SESSION_STATE_REFUSED;
    if (!busy)
        hf__my_fail(number, mysql_error(lock->c->my), true, &lock->base.refusal);
}

/* A statement has ended. */
static void take_answer(struct hf__my_session_lock *lock, int bad)
{
    unsigned number = bad != 0 ? mysql_errno(lock->c->my) : 0;
    bool in_time = number != 1205 && number != 3572;

    if (bad != 0 && in_time)
        refuse(lock, number, false);
    else if (lock->ended && lock->step != HF__MY_STEP_LEAVES_THE_DOOR)
        refuse(lock, 0, true);
    else if (lock->step == HF__MY_STEP_AT_THE_DOOR)
        go_on(lock, HF__MY_STEP_AT_THE_ROW);
    else if (lock->step == HF__MY_STEP_AT_THE_ROW && bad != 0 && lock->patient)
        go_on(lock, HF__MY_STEP_AT_THE_ROW); /* nobody else can come before us */
    else if (lock->step == HF__MY_STEP_AT_THE_ROW &&
             (bad != 0 || mysql_affected_rows(lock->c->my) != 1))
        refuse(lock, 0, true);
    else
        go_on(lock, lock->step == HF__MY_STEP_AT_THE_ROW ? HF__MY_STEP_LEAVES_THE_DOOR
                                                         : HF__MY_STEP_HAS_IT);
}

/* To a bid, or to a sign of life. */
static void answered(struct hf__my_session_lock *lock, int bad)
{
    if (lock->base.state == HF__SESSION_STATE_WAITING)
        take_answer(lock, bad);
    else if (bad != 0)
        lock->base.state = HF__SESSION_STATE_DEAD;
}

static void look(struct hf__session_lock *base)
{
    struct hf__my_session_lock *lock = lock_of(base);
    int bad = 0;

    if (base->state == HF__SESSION_STATE_DEAD)
        return;
    if (lock->c == NULL) {
        base->state = HF__SESSION_STATE_DEAD;
        return;
    }
    if (hf__my_is_quiet(lock->c))
        return;
    if (!lock->asked) { /* nobody asked, so this is the end */
        base->state = HF__SESSION_STATE_DEAD;
        return;
    }
    if (mysql_real_query_cont(&bad, lock->c->my, MYSQL_WAIT_READ) != 0)
        return;
    lock->asked = false;
    answered(lock, bad);
}

static bool wait(void *owner, struct hf__session_lock *base, int64_t deadline_ns)
{
    return hf__my_wait(owner, lock_of(base)->c->my, MYSQL_WAIT_READ, deadline_ns) != 0;
}

static int fd(const struct hf__session_lock *base)
{
    const struct hf__my_session_lock *lock = (const struct hf__my_session_lock *)base;

    return lock->c != NULL ? mysql_get_socket(lock->c->my) : -1;
}

static void touch(struct hf__session_lock *base)
{
    static char word[] = "DO 1";
    static const struct hf__my_text sign = {.data = word, .len = sizeof word - 1};
    struct hf__my_session_lock *lock = lock_of(base);

    if (!lock->asked && lock->c != NULL)
        ask(lock, &sign);
}

/* The end ------------------------------------------------------------------ */

static void drop(struct hf__session_lock *base)
{
    struct hf__my_session_lock *lock = lock_of(base);

    if (lock->c != NULL)
        lock->c->broken = true; /* it may be waiting: no good-bye */
    hf__my_hang_up(lock->c);
    hf__my_lock_texts_clear(&lock->texts);
}

/* Ends the transaction, and leaves the door if that was not done yet. */
static bool undo(struct hf__my *s, struct hf__my_session_lock *lock, int64_t deadline_ns)
{
    if (lock->asked ||
        hf__my_run(s, lock->c, "ROLLBACK AND NO CHAIN NO RELEASE", deadline_ns, NULL) != 0)
        return false;
    return lock->step == HF__MY_STEP_HAS_IT ||
           hf__my_ask(s, lock->c, &lock->texts.from_door, false, deadline_ns, NULL, NULL) == 0;
}

static bool leave(void *owner, struct hf__session_lock *base, int64_t deadline_ns)
{
    struct hf__my_session_lock *lock = lock_of(base);

    if (lock->c == NULL)
        return false;
    while (lock->asked && base->state != HF__SESSION_STATE_DEAD && wait(owner, base, deadline_ns))
        look(base);
    bool whole =
        base->state == HF__SESSION_STATE_INSIDE || base->state == HF__SESSION_STATE_REFUSED;
    bool undone = whole && undo(owner, lock, deadline_ns);
    lock->c->broken = !undone;
    hf__my_give_back(owner, lock->c);
    lock->c = NULL;
    hf__my_lock_texts_clear(&lock->texts);
    return undone;
}

/* Attempt ------------------------------------------------------------------ */

static int send(void *owner, struct hf__session_lock *base, const struct hf__bid *bid,
                int64_t deadline_ns, hf_error *err)
{
    struct hf__my *s = owner;
    struct hf__my_session_lock *lock = lock_of(base);
    int r = hf__my_borrow(s, deadline_ns, &lock->c, err);

    if (r != 0)
        return r;
    r = hf__my_session_begin(s, lock->c, bid, deadline_ns, &lock->texts, err);
    lock->id = lock->c->process;
    hf__ticket_format(&bid->ticket, lock->ticket);
    if (r == 0) {
        lock->patient = bid->queue;
        lock->step = bid->queue ? HF__MY_STEP_AT_THE_DOOR : HF__MY_STEP_AT_THE_ROW;
        ask(lock, bid->queue ? &lock->texts.to_door : &lock->texts.to_row);
        if (base->state == HF__SESSION_STATE_DEAD)
            r = hf__fail(err, HF_UNAVAILABLE, "mysql: the connection failed");
    }
    if (r == 0)
        return 0;
    lock->c->broken = true;
    hf__my_give_back(s, lock->c);
    hf__my_lock_texts_clear(&lock->texts);
    return r == HF_UNKNOWN ? hf__wrap(err, HF_UNAVAILABLE, "mysql") : r;
}

/* Committed elsewhere before anybody is told; then noted in our own row, for people. */
static int finish(void *owner, struct hf__session_lock *base, const struct hf__bid *bid,
                  int64_t deadline_ns, hf_error *err)
{
    struct hf__my *s = owner;
    struct hf__my_session_lock *lock = lock_of(base);
    struct hf__my_conn *c = NULL;
    char literal[HF__MY_LITERAL], note[100];
    const char *name = hf__my_literal(bid->name, bid->name_len, literal);
    struct hf__my_text t = {0};
    int r = hf__my_borrow(s, deadline_ns, &c, err);

    if (r != 0)
        return r;
    hf__my_add_statement(&t, hf__my_token_sql, &name);
    r = hf__my_ask(s, c, &t, false, deadline_ns, NULL, err);
    uint64_t generation = r == 0 ? mysql_insert_id(c->my) : 0;
    hf__my_text_clear(&t);
    hf__my_give_back(s, c);
    if (r != 0)
        return r;
    snprintf(note, sizeof note,
             "UPDATE holdfast_session_holder SET generation = %" PRIu64
             " WHERE connection = %" PRIu64,
             generation, lock->id.number);
    r = hf__my_run(s, lock->c, note, deadline_ns, err);
    if (r != 0)
        base->state = HF__SESSION_STATE_DEAD;
    else
        base->generation = generation;
    return r;
}

static const struct hf__session_type session_type = {
    .store = "mysql",
    .lock_size = sizeof(struct hf__my_session_lock),
    .first_look_ms = FIRST_LOOK_MS,
    .send = send,
    .look = look,
    .wait = wait,
    .fd = fd,
    .finish = finish,
    .touch = touch,
    .cancel = hf__my_session_cancel,
    .leave = leave,
    .kill = hf__my_session_kill,
    .drop = drop,
};

HF__IS_SESSION_STORE(struct hf__my);

int hf__my_session_init(struct hf__my *s, hf_error *err)
{
    return hf__session_init((struct hf__session_store *)s, &session_type, err);
}

static const char *const schemes[] = {"mysql", "mariadb", NULL};

const struct hf__store_type hf__my_session_type = {
    .abi = HF__STORE_ABI,
    .name = "mysql",
    .schemes = schemes,
    .summary = "row locks of a MariaDB or MySQL server that live as long as a connection",
    .capabilities = HF__SESSION_CAPABILITIES,
    .options = hf__my_options,
    .ddl = hf__my_ddl,
    .open = hf__my_open,
    .close = hf__my_close,
    .operate = hf__session_operate,
    .renew = hf__session_renew,
    .inspect = hf__my_session_inspect,
    .upkeep = hf__sql_upkeep,
    .diagnose = hf__my_diagnose,
    .wake_fd = hf__session_wake_fd,
    .wake = hf__session_wake,
};
