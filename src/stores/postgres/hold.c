/* hold=session and hold=advisory: the server's own locks, each on a connection of its own.
 *
 * The lock lives and dies with its connection; the server queues those who wait. There is no lease:
 * what keeps a lock from being held for ever is that the server sees when the connection is gone.
 * An attempt sends the statement and looks whether it was answered at once; if not the connection
 * waits in the server, and the keeper hears from it. A lost connection is heard the same way: the
 * core then asks, and is told that the lock is gone.
 *
 *      attempt ---> WAITING ---answered---> INSIDE ---release---> the connection is lent again
 *                      |                       |
 *                      `--- withdraw, error ---`--- the connection is lost: DEAD
 *
 * Whoever waits in the server is not granted after its death: client_connection_check_interval
 * makes the server look, once a second, whether there is still somebody. */
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "stores/postgres/hold.h"

#include "util/banned.h"

#define FIRST_LOOK_MS 20   /* how long an attempt waits for an answer before it says "queued" */
#define ASK_AGAIN_MS  1000 /* although the keeper hears */
#define SESSION                                                                                 \
    "SET client_connection_check_interval = '1s'; SET statement_timeout = 0; SET lock_timeout " \
    "= 0; SET idle_in_transaction_session_timeout = 0"

enum state { WAITING, INSIDE, REFUSED, DEAD };

struct hf__pg_held {
    struct hf__pg_held *next;
    struct hf__ticket ticket;
    int64_t ttl_ms; /* only for how often the core gives signs of life */
    struct hf__pg_conn *c;
    enum state state;
    uint64_t generation;
    bool failed;      /* a statement was refused */
    hf_error refusal; /* why, if it was not that somebody else is there */
};

int hf__pg_hold_init(struct hf__pg *s, hf_error *err)
{
    pthread_mutex_init(&s->held.mutex, NULL);
    s->held.epoll_fd = -1;
    if (s->set.hold == HF__PG_LEASE)
        return 0;
    s->pool.limits.max_active = s->set.max_held + 4; /* some are needed for looking */
    s->held.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    return s->held.epoll_fd >= 0 ? 0 : hf__fail_errno(err, HF_SYSTEM, "no descriptor to be had");
}

void hf__pg_hold_clear(struct hf__pg *s)
{
    while (s->held.first != NULL) {
        struct hf__pg_held *next = s->held.first->next;
        hf__pg_hang_up(s->held.first->c);
        free(s->held.first);
        s->held.first = next;
    }
    if (s->held.epoll_fd >= 0)
        close(s->held.epoll_fd);
    pthread_mutex_destroy(&s->held.mutex);
}

/* The answer --------------------------------------------------------------- */

/* "1", or the session's new name, "holdfast <generation>"; "" if it was not let in. */
static uint64_t read_token(const char *text)
{
    size_t word = strncmp(text, "holdfast ", 9) == 0 ? 9 : 0;

    return strtoull(text + word, NULL, 10);
}

/* One statement's result. The last one brings the generation; none: somebody else is there. */
static void take_part(struct hf__pg_held *h, const PGresult *part)
{
    ExecStatusType status = PQresultStatus(part);

    if (status == PGRES_TUPLES_OK) {
        if (PQntuples(part) == 0) {
            h->failed = true;
            hf__fail(&h->refusal, HF_CORRUPT, "postgres: the name's row is missing");
        } else {
            h->generation = read_token(PQgetvalue(part, 0, 1));
            h->failed |= h->generation == 0;
        }
    } else if (status == PGRES_FATAL_ERROR) {
        h->failed = true;
        if (!hf__pg_state_is(part, "55P03") && !hf__pg_state_is(part, "22012"))
            hf__pg_fail(part, &h->refusal);
    }
}

/* Takes what has come, without blocking. */
static void look(struct hf__pg_held *h)
{
    PGresult *part;

    if (h->state == DEAD)
        return;
    if (!PQconsumeInput(h->c->pg) || PQstatus(h->c->pg) != CONNECTION_OK) {
        h->state = DEAD;
        return;
    }
    while (h->state == WAITING && !PQisBusy(h->c->pg)) {
        part = PQgetResult(h->c->pg);
        if (part == NULL)
            h->state = h->failed ? REFUSED : INSIDE;
        else
            take_part(h, part);
        PQclear(part);
    }
}

static struct hf__answer granted(const struct hf__pg_held *h)
{
    return (struct hf__answer){.verdict = HF__GRANTED,
                               .generation = h->generation,
                               .lease_ms = HF__NEVER,
                               .claimed = true};
}

static struct hf__answer queued(const struct hf__pg_held *h)
{
    return (struct hf__answer){.verdict = HF__QUEUED,
                               .lease_ms = hf__provisional_lease_ms(h->ttl_ms),
                               .ask_again_ms = ASK_AGAIN_MS};
}

/* The list ----------------------------------------------------------------- */

/* Mutex held. */
static struct hf__pg_held **find(struct hf__pg *s, const struct hf__ticket *ticket)
{
    struct hf__pg_held **at = &s->held.first;

    while (*at != NULL && !hf__ticket_equal(&(*at)->ticket, ticket))
        at = &(*at)->next;
    return at;
}

/* Takes it out; from then on it is the caller's. Mutex held. */
static struct hf__pg_held *take_out(struct hf__pg *s, struct hf__pg_held **at)
{
    struct hf__pg_held *h = *at;

    if (h != NULL) {
        *at = h->next;
        epoll_ctl(s->held.epoll_fd, EPOLL_CTL_DEL, PQsocket(h->c->pg), NULL);
    }
    return h;
}

static void put_in(struct hf__pg *s, struct hf__pg_held *h)
{
    struct epoll_event event = {.events = EPOLLIN};

    pthread_mutex_lock(&s->held.mutex);
    h->next = s->held.first;
    s->held.first = h;
    epoll_ctl(s->held.epoll_fd, EPOLL_CTL_ADD, PQsocket(h->c->pg), &event);
    pthread_mutex_unlock(&s->held.mutex);
}

static bool count_in(struct hf__pg *s)
{
    pthread_mutex_lock(&s->held.mutex);
    bool room = s->held.count < s->set.max_held;
    s->held.count += room;
    pthread_mutex_unlock(&s->held.mutex);
    return room;
}

static void count_out(struct hf__pg *s)
{
    pthread_mutex_lock(&s->held.mutex);
    s->held.count--;
    pthread_mutex_unlock(&s->held.mutex);
}

static void await_answer(struct hf__pg *s, struct hf__pg_held *h, int64_t until_ns)
{
    look(h);
    while (h->state == WAITING) {
        short events = PQflush(h->c->pg) == 1 ? POLLIN | POLLOUT : POLLIN;
        if (!hf__pg_wait(s, h->c->pg, events, until_ns))
            return;
        look(h);
    }
}

/* Ends the wait in the server, so that nothing of it is left there when we say so. (PQcancel would
 * do it too, but nobody could say for how long.) */
static void cancel_wait(struct hf__pg *s, struct hf__pg_held *h, int64_t deadline_ns)
{
    struct hf__pg_query q = {.sql = "SELECT pg_cancel_backend($1::int)", .reads = true};
    struct hf__pg_conn *c = NULL;
    PGresult *result = NULL;

    if (hf__pg_borrow(s, deadline_ns, &c, NULL) != 0)
        return;
    hf__pg_number(&q, PQbackendPID(h->c->pg));
    if (hf__pg_ask(s, c, &q, deadline_ns, &result, NULL) == 0)
        await_answer(s, h, deadline_ns);
    PQclear(result);
    hf__pg_give_back(s, c);
}

/* Ends what is held or waited for. A connection in the middle of a statement cannot be lent again.
 */
static void end(struct hf__pg *s, struct hf__pg_held *h, int64_t deadline_ns)
{
    if (h->c != NULL && h->state == WAITING && PQtransactionStatus(h->c->pg) == PQTRANS_ACTIVE)
        cancel_wait(s, h, deadline_ns);
    bool whole = h->state == INSIDE || h->state == REFUSED;
    if (h->c != NULL) {
        if (whole && hf__pg_run(s, h->c, hf__pg_unhold_sql(s), deadline_ns, NULL) == 0)
            hf__pg_give_back(s, h->c);
        else
            hf__pg_hang_up_borrowed(s, h->c);
    }
    count_out(s);
    free(h);
}

/* Attempt ------------------------------------------------------------------ */

/* Once per connection. */
static int make_ready(struct hf__pg *s, struct hf__pg_conn *c, int64_t deadline_ns, hf_error *err)
{
    bool pooled = false;
    int r = 0;

    if (c->ready_to_hold)
        return 0;
    r = hf__pg_find_pooler(s, c, deadline_ns, &pooled, err);
    if (r == 0 && pooled)
        return hf__fail(
            err, HF_DENIED,
            "postgres: a pooler stands between, and hold=session and hold=advisory need "
            "a connection of their own; name the server itself, or use hold=lease");
    if (r == 0)
        r = hf__pg_run(s, c, SESSION, deadline_ns, err);
    c->ready_to_hold = r == 0;
    return r;
}

static uint64_t hash(const struct hf__bid *bid)
{
    uint64_t h = UINT64_C(14695981039346656037);

    for (size_t i = 0; i < bid->name_len; i++)
        h = (h ^ (unsigned char)bid->name[i]) * UINT64_C(1099511628211);
    return h | 1;
}

/* So that others can tell what a key stands for. */
static int register_name(struct hf__pg *s, struct hf__pg_conn *c, const struct hf__bid *bid,
                         int64_t deadline_ns, hf_error *err)
{
    struct hf__pg_query q = {.sql = "INSERT INTO holdfast_name (name, key) VALUES ($1, " HF__PG_KEY(
                                 "$1") ") ON CONFLICT DO NOTHING"};
    uint64_t name = hash(bid), *slot = &s->held.registered[name / 2 % 64];
    PGresult *result = NULL;

    pthread_mutex_lock(&s->held.mutex);
    bool known = *slot == name;
    pthread_mutex_unlock(&s->held.mutex);
    if (known)
        return 0;
    hf__pg_bytes(&q, bid->name, bid->name_len);
    int r = hf__pg_ask(s, c, &q, deadline_ns, &result, err);
    PQclear(result);
    pthread_mutex_lock(&s->held.mutex);
    if (r == 0)
        *slot = name;
    pthread_mutex_unlock(&s->held.mutex);
    return r;
}

static int send_bid(struct hf__pg *s, struct hf__pg_held *h, const struct hf__bid *bid,
                    int64_t deadline_ns, hf_error *err)
{
    int r = hf__pg_borrow(s, deadline_ns, &h->c, err);

    if (r == 0)
        r = make_ready(s, h->c, deadline_ns, err);
    if (r == 0)
        r = register_name(s, h->c, bid, deadline_ns, err);
    char *sql = r == 0 ? hf__pg_hold_sql(s, bid) : NULL;
    if (r == 0 && sql == NULL)
        r = hf__fail(err, HF_NO_MEMORY, NULL);
    if (r == 0 && (!PQsendQuery(h->c->pg, sql) || PQflush(h->c->pg) < 0))
        r = hf__fail(err, HF_UNAVAILABLE, "postgres: the connection failed");
    free(sql);
    /* What was not sent, or not wholly, is over with its connection. */
    return r == HF_UNKNOWN ? hf__wrap(err, HF_UNAVAILABLE, "postgres") : r;
}

/* What became of it: 0 with an answer, after which it stays in the list or was ended. */
static int settle(struct hf__pg *s, struct hf__pg_held *h, const struct hf__bid *bid,
                  int64_t deadline_ns, struct hf__answer *ret_answer, hf_error *err)
{
    int64_t sent_ns = ret_answer->sent_ns;
    int r = 0;

    if (h->state == INSIDE || (h->state == WAITING && bid->queue)) {
        *ret_answer = h->state == INSIDE ? granted(h) : queued(h);
        ret_answer->sent_ns = sent_ns;
        put_in(s, h);
        return 0;
    }
    if (h->state == REFUSED && h->refusal.code == 0)
        *ret_answer = (struct hf__answer){.verdict = HF__BUSY, .sent_ns = sent_ns};
    else if (h->state == REFUSED && err != NULL)
        *err = h->refusal;
    if (h->state == REFUSED)
        r = h->refusal.code;
    else
        r = hf__fail(err, HF_UNAVAILABLE, "postgres: the server did not answer, or hung up");
    end(s, h, deadline_ns);
    return r;
}

static int begin(struct hf__pg *s, const struct hf__bid *bid, int64_t deadline_ns,
                 struct hf__answer *ret_answer, hf_error *err)
{
    int64_t soon_ns = hf__now_ns(s->base.host->env) + FIRST_LOOK_MS * HF__NS_PER_MS;

    if (!count_in(s))
        return hf__fail(err, HF_UNAVAILABLE,
                        "postgres: %d locks are held or waited for, one connection each; raise "
                        "max_held",
                        (int)s->set.max_held);
    struct hf__pg_held *h = calloc(1, sizeof *h);
    if (h == NULL) {
        count_out(s);
        return hf__fail(err, HF_NO_MEMORY, NULL);
    }
    h->ticket = bid->ticket;
    h->ttl_ms = bid->ttl_ms;
    int r = send_bid(s, h, bid, deadline_ns, err);
    if (r != 0) {
        end(s, h, deadline_ns);
        return r;
    }
    await_answer(s, h, bid->queue && soon_ns < deadline_ns ? soon_ns : deadline_ns);
    return settle(s, h, bid, deadline_ns, ret_answer, err);
}

static int attempt(struct hf__store *store, const struct hf__bid *bid, int64_t deadline_ns,
                   struct hf__answer *ret_answer, hf_error *err)
{
    struct hf__pg *s = (struct hf__pg *)store;

    pthread_mutex_lock(&s->held.mutex);
    struct hf__pg_held **at = find(s, &bid->ticket), *h = *at;
    if (h != NULL)
        look(h);
    if (h != NULL)
        take_out(s, at);
    pthread_mutex_unlock(&s->held.mutex);
    return h != NULL ? settle(s, h, bid, deadline_ns, ret_answer, err)
                     : begin(s, bid, deadline_ns, ret_answer, err);
}

/* The end, and signs of life ----------------------------------------------- */

static enum state end_bid(struct hf__store *store, const struct hf__bid *bid, int64_t deadline_ns)
{
    struct hf__pg *s = (struct hf__pg *)store;
    enum state was = DEAD;

    pthread_mutex_lock(&s->held.mutex);
    struct hf__pg_held *h = take_out(s, find(s, &bid->ticket));
    if (h != NULL)
        look(h);
    pthread_mutex_unlock(&s->held.mutex);
    if (h != NULL) {
        was = h->state;
        end(s, h, deadline_ns);
    }
    return was;
}

static int withdraw(struct hf__store *store, const struct hf__bid *bid, int64_t retire_ms,
                    int64_t deadline_ns, struct hf__answer *ret_answer, hf_error *err)
{
    enum state was = end_bid(store, bid, deadline_ns);

    (void)retire_ms, (void)err; /* a request of ours cannot be late: its connection is closed */
    ret_answer->verdict = was == INSIDE || was == WAITING ? HF__DONE : HF__STALE;
    return 0;
}

static int release(struct hf__store *store, const struct hf__bid *bid, int64_t retire_ms,
                   int64_t deadline_ns, struct hf__answer *ret_answer, hf_error *err)
{
    enum state was = end_bid(store, bid, deadline_ns);

    (void)retire_ms, (void)err;
    ret_answer->verdict = was == INSIDE ? HF__DONE : HF__STALE;
    return 0;
}

/* Mutex held. A lost one is taken out, since nobody will release it: it is put before `*dead`. */
static struct hf__answer sign_of_life(struct hf__pg *s, const struct hf__renewal *item,
                                      struct hf__pg_held **dead)
{
    struct hf__pg_held **at = find(s, &item->ticket), *h = *at;
    struct hf__answer lost = {.verdict = HF__GONE_LOST};

    if (h == NULL)
        return lost;
    look(h);
    if (h->state == WAITING)
        return queued(h);
    if (h->state == INSIDE)
        return item->generation == 0 || item->generation == h->generation ? granted(h) : lost;
    if (item->generation == 0)
        return lost; /* the waiter asks, and is told why */
    take_out(s, at);
    h->next = *dead;
    *dead = h;
    return lost;
}

static int renew(struct hf__store *store, struct hf__renewal *items, size_t count,
                 int64_t deadline_ns, hf_error *err)
{
    struct hf__pg *s = (struct hf__pg *)store;
    struct hf__pg_held *dead = NULL;

    (void)err;
    pthread_mutex_lock(&s->held.mutex);
    for (size_t i = 0; i < count; i++) {
        struct hf__answer a = sign_of_life(s, &items[i], &dead);
        a.sent_ns = items[i].answer.sent_ns;
        items[i].answer = a;
    }
    pthread_mutex_unlock(&s->held.mutex);
    while (dead != NULL) {
        struct hf__pg_held *next = dead->next;
        end(s, dead, deadline_ns);
        dead = next;
    }
    return 0;
}

static int wake_fd(struct hf__store *store)
{
    return ((struct hf__pg *)store)->held.epoll_fd;
}

/* Whoever is no longer what it was is told to ask. The sink takes the client's mutex, and whoever
 * has that never waits for ours. */
static void wake(struct hf__store *store, hf__wake_sink *sink, void *ctx)
{
    struct hf__pg *s = (struct hf__pg *)store;

    pthread_mutex_lock(&s->held.mutex);
    for (struct hf__pg_held *h = s->held.first; h != NULL; h = h->next) {
        enum state was = h->state;
        look(h);
        if (h->state == was)
            continue;
        if (h->state == DEAD)
            epoll_ctl(s->held.epoll_fd, EPOLL_CTL_DEL, PQsocket(h->c->pg), NULL);
        sink(ctx, &h->ticket, 0);
    }
    pthread_mutex_unlock(&s->held.mutex);
}

static const char *const schemes[] = {"postgres", "postgresql", NULL};

const struct hf__store_type hf__pg_hold_type = {
    .abi = HF__STORE_ABI,
    .name = "postgres",
    .schemes = schemes,
    .summary = "locks of a PostgreSQL server that live as long as a connection",
    .capabilities = HF_CAN_SHARE | HF_CAN_QUEUE | HF_CAN_PUSH | HF_CAN_TOKEN | HF_CAN_PROCESS,
    .options = hf__pg_options,
    .ddl = hf__pg_ddl,
    .open = hf__pg_open,
    .close = hf__pg_close,
    .attempt = attempt,
    .withdraw = withdraw,
    .release = release,
    .renew = renew,
    .inspect = hf__pg_hold_inspect,
    .upkeep = hf__pg_upkeep,
    .diagnose = hf__pg_diagnose,
    .wake_fd = wake_fd,
    .wake = wake,
};
