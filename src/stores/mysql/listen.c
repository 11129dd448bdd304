/* Wake-ups without a payload: one connection per client, which waits in the server until somebody
 * ends its statement.
 *
 *      CALL holdfast_listen(WAKE, told)     waits 10 s, unless somebody was let in already
 *      KILL QUERY <its connection>          by whoever lets one of our tickets in, after its COMMIT
 *      SELECT ticket, generation ...        which of them it was
 *
 * WAKE is the connection's number and a random word, which stands in the process list as long as
 * the statement runs: who calls looks for it first, since the server gives numbers anew after a
 * restart, and a stranger's statement must not die. A grant that is committed before the procedure
 * looks is seen by it, a later one finds it running: none falls in between. `told` is the
 * exclusive-or of the generations of our unclaimed grants that we know of. It waits for a lock of
 * the server that a second connection of ours keeps. Nothing is read meanwhile, which would keep
 * InnoDB from purging old versions of rows. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "stores/mysql/mysql.h"

#include "base/banned.h"

#define SLEEP_S        10
#define CALL_BEHIND_MS 200 /* a call comes at most so long after the commit it is for */
#define HEARD_MS       50  /* a call that was made is heard within so long, or nobody waited yet */
#define OURS           "FROM holdfast_holder WHERE wake = '%s' AND (NOT claimed OR flags & 2)"

/* Our connection that sleeps in the server. */
struct sleeper {
    struct hf__my *s;
    struct hf__my_conn *conn;
    struct hf__my_conn *gate;        /* keeps what the other one waits for */
    char wake[HF__LISTENER_ADDRESS]; /* "connection word" */
    enum { AWAKE, SLEEPS, ASKS, READS } state;
    int64_t news_ns;  /* when it last saw a grant that it had not known */
    bool called;      /* the sleep was ended from outside */
    uint64_t told;    /* the generations of the grants we know of, all in one */
    uint64_t wanted;  /* those of the holders that somebody waits for, likewise */
    char sql[400];    /* what is being asked */
    int64_t slept_ns; /* since when it sleeps */
    hf__wake_sink *sink;
    void *ctx;
};

/* The connection that keeps the lock the other one waits for. */
static int dial_gate(struct hf__my *s, int64_t deadline_ns, struct hf__my_conn **ret_gate)
{
    struct hf__my_conn *c = NULL;
    MYSQL_RES *result = NULL;
    MYSQL_ROW row = NULL;
    char sql[80];
    int r = hf__my_dial(s, deadline_ns, &c, NULL);

    snprintf(sql, sizeof sql, "SELECT GET_LOCK('%s', 0)", s->sql.listener.word);
    if (r == 0)
        result = hf__my_look(s, c, sql, deadline_ns, &row, NULL);
    if (r == 0 && (result == NULL || hf__sql_integer(row[0], 0) != 1))
        r = HF_UNAVAILABLE; /* Galera has no such locks; or an older one of ours is not gone yet */
    mysql_free_result(result);
    if (r != 0)
        hf__my_hang_up(c);
    else
        *ret_gate = c;
    return r;
}

static void hang_up(void *conn, bool lost)
{
    struct sleeper *sleeper = conn;

    if (sleeper->conn != NULL)
        sleeper->conn->broken |= sleeper->state != AWAKE; /* it sleeps: no good-bye */
    if (sleeper->gate != NULL)
        sleeper->gate->broken |= lost;
    hf__my_hang_up(sleeper->conn);
    hf__my_hang_up(sleeper->gate);
    free(sleeper);
}

/* HF_UNSUPPORTED: something stands in between that gives connections other numbers. wake()
 * begins the sleep. */
static int dial(void *owner, int64_t deadline_ns, struct hf__line *ret_line)
{
    struct hf__my *s = owner;
    struct sleeper *sleeper = calloc(1, sizeof *sleeper);

    if (sleeper == NULL)
        return HF_NO_MEMORY;
    sleeper->s = s;
    int r = hf__my_dial(s, deadline_ns, &sleeper->conn, NULL);
    if (r == 0 && sleeper->conn->proxied)
        r = HF_UNSUPPORTED;
    if (r == 0)
        r = dial_gate(s, deadline_ns, &sleeper->gate);
    if (r != 0) {
        hang_up(sleeper, false);
        return r;
    }
    snprintf(sleeper->wake, sizeof sleeper->wake, "%" PRIu64 " %s", sleeper->conn->id,
             s->sql.listener.word);
    memcpy(ret_line->address, sleeper->wake, sizeof sleeper->wake);
    ret_line->conn = sleeper;
    ret_line->fd = mysql_get_socket(sleeper->conn->my);
    return 0;
}

const struct hf__listener_type hf__my_listener_type = {.dial = dial, .hang_up = hang_up};

/* A call that comes before the other connection waits finds nobody, so it is made again until one is heard. */
int hf__my_call_self(struct hf__my *s, struct hf__my_conn *c, int64_t deadline_ns, int64_t *ret_us,
                     hf_error *err)
{
    const struct hf_env *env = s->base.host->env;
    struct hf__line line = {0};
    char listen[120], call[120];
    int bad = 0, r = dial(s, deadline_ns, &line);

    if (r != 0)
        return hf__fail(err, r, "mysql: it cannot listen here");
    struct sleeper *sleeper = line.conn;
    snprintf(listen, sizeof listen, "CALL holdfast_listen('%s', 0)", sleeper->wake);
    snprintf(call, sizeof call, "CALL holdfast_call('%s,')", sleeper->wake);
    sleeper->state = SLEEPS;
    mysql_real_query_start(&bad, sleeper->conn->my, listen, strlen(listen));
    bool came = false;
    while (r == 0 && !came && hf__now_ns(env) < deadline_ns) {
        int64_t before_ns = hf__now_ns(env);
        r = hf__my_run(s, c, call, deadline_ns, err);
        came = r == 0 && hf__my_wait(s, sleeper->conn->my, MYSQL_WAIT_READ,
                                     hf__now_ns(env) + HEARD_MS * HF__NS_PER_MS) != 0;
        *ret_us = (hf__now_ns(env) - before_ns) / 1000;
    }
    hang_up(sleeper, false);
    return r != 0 || came ? r : hf__fail(err, HF_UNAVAILABLE, "mysql: no call came");
}

/* Reading, in wake() ------------------------------------------------------- */

enum step { WAITS, IS_LOST };

static enum step begin_ask(struct sleeper *sleeper, int bad);
static enum step begin_read(struct sleeper *sleeper, int bad);

static enum step begin_sleep(struct sleeper *sleeper)
{
    int bad = 0;

    snprintf(sleeper->sql, sizeof sleeper->sql, "CALL holdfast_listen('%s', %" PRIu64 ")",
             sleeper->wake, sleeper->told);
    sleeper->state = SLEEPS;
    sleeper->slept_ns = hf__now_ns(sleeper->s->base.host->env);
    int wants = mysql_real_query_start(&bad, sleeper->conn->my, sleeper->sql, strlen(sleeper->sql));
    if (wants == 0)
        return begin_ask(sleeper, bad); /* it was answered at once: somebody was let in already */
    return wants & MYSQL_WAIT_READ ? WAITS : IS_LOST; /* it sends no more than fits at once */
}

static enum step begin_ask(struct sleeper *sleeper, int bad)
{
    unsigned number = bad != 0 ? mysql_errno(sleeper->conn->my) : 0;

    if (bad != 0 && number != 1317 && number != 1969 && number != 3024)
        return IS_LOST;
    sleeper->called = number == 1317 || hf__now_ns(sleeper->s->base.host->env) - sleeper->slept_ns <
                                            (SLEEP_S - 1) * 1000 * HF__NS_PER_MS;
    snprintf(sleeper->sql, sizeof sleeper->sql,
             "SELECT HEX(ticket), generation, NOT claimed, flags & 2 " OURS, sleeper->wake);
    sleeper->state = ASKS;
    int wants = mysql_real_query_start(&bad, sleeper->conn->my, sleeper->sql, strlen(sleeper->sql));
    if (wants == 0)
        return begin_read(sleeper, bad);
    return wants & MYSQL_WAIT_READ ? WAITS : IS_LOST;
}

/* Tells whom it concerns: of a grant, or that somebody waits. Called for nothing that can be seen: somebody was broken, so everybody
 * asks. But a grant may have been seen before its call came, and then the call is for nothing too;
 * with hundreds of waiters all of them would ask for each grant. */
static void tell(struct sleeper *sleeper, MYSQL_RES *result)
{
    int64_t now_ns = hf__now_ns(sleeper->s->base.host->env);
    uint64_t all = 0, wanted = 0;
    MYSQL_ROW row;

    while ((row = mysql_fetch_row(result)) != NULL) {
        struct hf__ticket ticket;
        uint64_t generation = (uint64_t)hf__sql_integer(row[1], 0);
        bool is_grant = hf__sql_flag(row[2]), is_wanted = hf__sql_flag(row[3]);
        all ^= is_grant ? generation : 0;
        wanted ^= is_wanted ? generation : 0;
        if (row[0] == NULL || !hf__ticket_parse(row[0], &ticket))
            continue;
        if (is_grant)
            sleeper->sink(sleeper->ctx, &ticket, generation);
        if (is_wanted)
            sleeper->sink(sleeper->ctx, &ticket, 0);
    }
    if (all != sleeper->told || wanted != sleeper->wanted)
        sleeper->news_ns = now_ns;
    else if (sleeper->called && now_ns - sleeper->news_ns > CALL_BEHIND_MS * HF__NS_PER_MS)
        sleeper->sink(sleeper->ctx, NULL, 0);
    sleeper->told = all;
    sleeper->wanted = wanted;
}

static enum step finish_ask(struct sleeper *sleeper, MYSQL_RES *result)
{
    if (result == NULL && mysql_errno(sleeper->conn->my) == 1317)
        return begin_ask(sleeper, 1); /* the call came while we read */
    if (result == NULL)
        return IS_LOST;
    tell(sleeper, result);
    mysql_free_result(result);
    return begin_sleep(sleeper);
}

static enum step begin_read(struct sleeper *sleeper, int bad)
{
    MYSQL_RES *result = NULL;

    if (bad != 0 && mysql_errno(sleeper->conn->my) == 1317)
        return begin_ask(sleeper, bad); /* the call came while we asked */
    if (bad != 0)
        return IS_LOST;
    sleeper->state = READS;
    int wants = mysql_store_result_start(&result, sleeper->conn->my);
    if (wants == 0)
        return finish_ask(sleeper, result);
    return wants & MYSQL_WAIT_READ ? WAITS : IS_LOST;
}

/* Takes up what is under way, now that there is something to read. */
static enum step go_on(struct sleeper *sleeper)
{
    MYSQL_RES *result = NULL;
    int bad = 0, wants;

    switch (sleeper->state) {
    case AWAKE:
        return begin_sleep(sleeper);
    case SLEEPS:
        wants = mysql_real_query_cont(&bad, sleeper->conn->my, MYSQL_WAIT_READ);
        return wants != 0 ? WAITS : begin_ask(sleeper, bad);
    case ASKS:
        wants = mysql_real_query_cont(&bad, sleeper->conn->my, MYSQL_WAIT_READ);
        return wants != 0 ? WAITS : begin_read(sleeper, bad);
    default:
        wants = mysql_store_result_cont(&result, sleeper->conn->my, MYSQL_WAIT_READ);
        return wants != 0 ? WAITS : finish_ask(sleeper, result);
    }
}

void hf__my_wake(struct hf__store *store, hf__wake_sink *sink, void *ctx)
{
    struct hf__listener *l = &((struct hf__my *)store)->sql.listener;
    bool missed;
    struct sleeper *sleeper = hf__listener_wake(l, &missed);

    if (sleeper != NULL && (sleeper->state == AWAKE || !hf__my_is_quiet(sleeper->conn))) {
        sleeper->sink = sink;
        sleeper->ctx = ctx;
        if (go_on(sleeper) == IS_LOST) {
            hf__sql_note_loss(&((struct hf__my *)store)->sql);
            hf__listener_lost(l);
            missed = true;
        }
    }
    if (missed)
        sink(ctx, NULL, 0);
}
