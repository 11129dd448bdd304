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
 * InnoDB from purging old versions of rows. Without the procedures nobody listens: waiters ask.
 *
 * The keeper reads without blocking. It never dials: if the connection is lost everybody is told to
 * ask, and whoever asks dials again, on its own time. What the keeper polls is an epoll descriptor,
 * which stays while the connection in it changes. `conn` is put in by a thread that dials, while it
 * is NULL, and from then on belongs to the keeper, which alone takes it out. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "stores/mysql/mysql.h"

#include "util/banned.h"

#define RETRY_MS       500
#define SLEEP_S        10
#define CALL_BEHIND_MS 200 /* a call comes at most so long after the commit it is for */
#define OURS           "FROM holdfast_holder WHERE wake = '%s' AND NOT claimed"

int hf__my_listener_init(struct hf__my *s, hf_error *err)
{
    struct hf__my_listener *l = &s->listener;
    const struct hf_env *env = s->base.host->env;
    struct hf__ticket bits;

    pthread_mutex_init(&l->mutex, NULL);
    l->epoll_fd = l->kick_fd = -1;
    if (env->random(env->ctx, &bits, sizeof bits) != 0)
        return hf__fail(err, HF_SYSTEM, "there is no randomness to be had");
    hf__ticket_format(&bits, l->word);
    return 0;
}

void hf__my_listener_clear(struct hf__my *s)
{
    struct hf__my_listener *l = &s->listener;

    if (l->conn != NULL)
        l->conn->broken = true; /* it sleeps: no good-bye */
    hf__my_hang_up(l->conn);
    hf__my_hang_up(l->gate);
    if (l->epoll_fd >= 0)
        close(l->epoll_fd);
    if (l->kick_fd >= 0)
        close(l->kick_fd);
    pthread_mutex_destroy(&l->mutex);
}

/* The connection that keeps the lock the other one waits for. */
static int dial_gate(struct hf__my *s, int64_t deadline_ns, struct hf__my_conn **ret_gate)
{
    struct hf__my_conn *c = NULL;
    MYSQL_RES *result = NULL;
    MYSQL_ROW row = NULL;
    char sql[80];
    int r = hf__my_dial(s, deadline_ns, &c, NULL);

    snprintf(sql, sizeof sql, "SELECT GET_LOCK('%s', 0)", s->listener.word);
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

/* 0, HF_UNSUPPORTED: something stands in between that gives connections other numbers. */
static int dial(struct hf__my *s, int64_t deadline_ns, struct hf__my_conn **ret_conn,
                struct hf__my_conn **ret_gate)
{
    struct hf__my_conn *c = NULL, *gate = NULL;
    struct epoll_event event = {.events = EPOLLIN};
    int r = hf__my_dial(s, deadline_ns, &c, NULL);

    if (r == 0 && (c->proxied || atomic_load(&s->sql.way) != HF__SQL_ROUTINES))
        r = HF_UNSUPPORTED;
    if (r == 0)
        r = dial_gate(s, deadline_ns, &gate);
    if (r == 0 &&
        epoll_ctl(s->listener.epoll_fd, EPOLL_CTL_ADD, mysql_get_socket(c->my), &event) < 0)
        r = HF_SYSTEM;
    if (r != 0) {
        hf__my_hang_up(c);
        hf__my_hang_up(gate);
        return r;
    }
    *ret_conn = c;
    *ret_gate = gate;
    return 0;
}

/* Mutex held, released meanwhile. The keeper begins the sleep. */
static void connect_again(struct hf__my *s, int64_t deadline_ns)
{
    struct hf__my_listener *l = &s->listener;
    struct hf__my_conn *c = NULL, *gate = NULL;

    l->dialling = true;
    pthread_mutex_unlock(&l->mutex);
    int r = dial(s, deadline_ns, &c, &gate);
    pthread_mutex_lock(&l->mutex);
    l->dialling = false;
    if (r != 0) {
        l->wanted = r != HF_UNSUPPORTED;
        l->retry_ns = hf__now_ns(s->base.host->env) + RETRY_MS * HF__NS_PER_MS;
        return;
    }
    l->conn = c;
    l->gate = gate;
    l->ear = HF__MY_DEAF;
    l->missed = true; /* who was let in meanwhile */
    snprintf(l->wake, sizeof l->wake, "%" PRIu64 " %s", c->id, l->word);
    eventfd_write(l->kick_fd, 1);
}

int hf__my_wake_fd(struct hf__store *store)
{
    struct hf__my *s = (struct hf__my *)store;
    struct hf__my_listener *l = &s->listener;
    struct epoll_event event = {.events = EPOLLIN};
    int64_t now_ns = hf__now_ns(s->base.host->env);

    if (!s->set.push)
        return -1;
    pthread_mutex_lock(&l->mutex);
    l->kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (l->kick_fd >= 0 && l->epoll_fd >= 0 &&
        epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, l->kick_fd, &event) == 0) {
        l->wanted = true;
        connect_again(s, now_ns + s->base.host->op_timeout_ms * HF__NS_PER_MS);
        l->missed = false; /* nobody could have been called before */
    }
    int fd = l->wanted ? l->epoll_fd : -1;
    pthread_mutex_unlock(&l->mutex);
    return fd;
}

bool hf__my_listens(struct hf__my *s, int64_t deadline_ns, char wake[HF__SQL_WAKE])
{
    struct hf__my_listener *l = &s->listener;
    int64_t now_ns = hf__now_ns(s->base.host->env);

    pthread_mutex_lock(&l->mutex);
    if (l->wanted && l->conn == NULL && !l->dialling && now_ns >= l->retry_ns)
        connect_again(s, now_ns + (deadline_ns - now_ns) / 2);
    bool listens = l->conn != NULL;
    if (listens)
        memcpy(wake, l->wake, sizeof l->wake);
    pthread_mutex_unlock(&l->mutex);
    return listens;
}

/* Reading, on the keeper's thread. ------------------------------------------------------------- */

struct ear {
    struct hf__my *s;
    struct hf__my_listener *l;
    MYSQL *my;
    hf__wake_sink *sink;
    void *ctx;
};

enum step { WAITS, IS_LOST };

static enum step begin_ask(const struct ear *ear, int bad);
static enum step begin_read(const struct ear *ear, int bad);

static enum step begin_sleep(const struct ear *ear)
{
    struct hf__my_listener *l = ear->l;
    int bad = 0;

    snprintf(l->sql, sizeof l->sql, "CALL holdfast_listen('%s', %" PRIu64 ")", l->wake, l->told);
    l->ear = HF__MY_SLEEPS;
    l->slept_ns = hf__now_ns(ear->s->base.host->env);
    int wants = mysql_real_query_start(&bad, ear->my, l->sql, strlen(l->sql));
    if (wants == 0)
        return begin_ask(ear, bad); /* it was answered at once: somebody was let in already */
    return wants & MYSQL_WAIT_READ ? WAITS : IS_LOST; /* it sends no more than fits at once */
}

static enum step begin_ask(const struct ear *ear, int bad)
{
    struct hf__my_listener *l = ear->l;
    unsigned number = bad != 0 ? mysql_errno(ear->my) : 0;

    if (bad != 0 && number != 1317 && number != 1969 && number != 3024)
        return IS_LOST;
    l->called = number == 1317 || hf__now_ns(ear->s->base.host->env) - l->slept_ns <
                                      (SLEEP_S - 1) * 1000 * HF__NS_PER_MS;
    snprintf(l->sql, sizeof l->sql, "SELECT HEX(ticket), generation " OURS, l->wake);
    l->ear = HF__MY_ASKS;
    int wants = mysql_real_query_start(&bad, ear->my, l->sql, strlen(l->sql));
    if (wants == 0)
        return begin_read(ear, bad);
    return wants & MYSQL_WAIT_READ ? WAITS : IS_LOST;
}

/* Tells whom it concerns. Called for nothing that can be seen: somebody was broken, so everybody
 * asks. But a grant may have been seen before its call came, and then the call is for nothing too;
 * with hundreds of waiters all of them would ask for each grant. */
static void tell(const struct ear *ear, MYSQL_RES *result)
{
    int64_t now_ns = hf__now_ns(ear->s->base.host->env);
    uint64_t all = 0;
    MYSQL_ROW row;

    while ((row = mysql_fetch_row(result)) != NULL) {
        struct hf__ticket ticket;
        uint64_t generation = (uint64_t)hf__sql_integer(row[1], 0);
        all ^= generation;
        if (row[0] != NULL && hf__ticket_parse(row[0], &ticket))
            ear->sink(ear->ctx, &ticket, generation);
    }
    if (all != ear->l->told)
        ear->l->news_ns = now_ns;
    else if (ear->l->called && now_ns - ear->l->news_ns > CALL_BEHIND_MS * HF__NS_PER_MS)
        ear->sink(ear->ctx, NULL, 0);
    ear->l->told = all;
}

static enum step finish_ask(const struct ear *ear, MYSQL_RES *result)
{
    if (result == NULL && mysql_errno(ear->my) == 1317)
        return begin_ask(ear, 1); /* the call came while we read */
    if (result == NULL)
        return IS_LOST;
    tell(ear, result);
    mysql_free_result(result);
    return begin_sleep(ear);
}

static enum step begin_read(const struct ear *ear, int bad)
{
    MYSQL_RES *result = NULL;

    if (bad != 0 && mysql_errno(ear->my) == 1317)
        return begin_ask(ear, bad); /* the call came while we asked */
    if (bad != 0)
        return IS_LOST;
    ear->l->ear = HF__MY_READS;
    int wants = mysql_store_result_start(&result, ear->my);
    if (wants == 0)
        return finish_ask(ear, result);
    return wants & MYSQL_WAIT_READ ? WAITS : IS_LOST;
}

/* Takes up what is under way, now that there is something to read. */
static enum step go_on(const struct ear *ear)
{
    MYSQL_RES *result = NULL;
    int bad = 0, wants;

    switch (ear->l->ear) {
    case HF__MY_DEAF:
        return begin_sleep(ear);
    case HF__MY_SLEEPS:
        wants = mysql_real_query_cont(&bad, ear->my, MYSQL_WAIT_READ);
        return wants != 0 ? WAITS : begin_ask(ear, bad);
    case HF__MY_ASKS:
        wants = mysql_real_query_cont(&bad, ear->my, MYSQL_WAIT_READ);
        return wants != 0 ? WAITS : begin_read(ear, bad);
    default:
        wants = mysql_store_result_cont(&result, ear->my, MYSQL_WAIT_READ);
        return wants != 0 ? WAITS : finish_ask(ear, result);
    }
}

void hf__my_wake(struct hf__store *store, hf__wake_sink *sink, void *ctx)
{
    struct hf__my *s = (struct hf__my *)store;
    struct hf__my_listener *l = &s->listener;
    struct ear ear = {.s = s, .l = l, .sink = sink, .ctx = ctx};
    eventfd_t kicks = 0;

    pthread_mutex_lock(&l->mutex);
    eventfd_read(l->kick_fd, &kicks);
    struct hf__my_conn *c = l->conn;
    bool missed = l->missed;
    l->missed = false;
    pthread_mutex_unlock(&l->mutex);

    if (c != NULL)
        ear.my = c->my;
    bool readable = c != NULL && (l->ear == HF__MY_DEAF || !hf__my_is_quiet(c));
    if (readable && go_on(&ear) == IS_LOST) {
        pthread_mutex_lock(&l->mutex);
        struct hf__my_conn *gate = l->gate;
        l->conn = l->gate = NULL;
        pthread_mutex_unlock(&l->mutex);
        c->broken = gate->broken = true;
        hf__my_hang_up(c);
        hf__my_hang_up(gate);
        l->told = 0;
        missed = true;
    }
    if (missed)
        sink(ctx, NULL, 0);
}
