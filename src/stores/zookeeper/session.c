/* Sessions: one for each length that is in use.
 *
 * The library connects, pings and reconnects by itself, on threads of its own; here is only which
 * session there is, whether it is connected, and when it is over. A session that has expired is
 * never used again, and nothing that lived in it is taken over by another: its nodes are gone.
 *
 * The end of a session is the end of the lock-delays in it. So one in which a lock-delay runs when
 * the client is closed is not closed, only let go of: the server counts to its end, as it would if
 * the process had died. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "stores/zookeeper/zk.h"

#include "base/banned.h"

#define ANY_MS    10000 /* a session for looking */
#define STEADY_MS 2000
#define PROBE_NS  (500 * HF__NS_PER_MS)
#define ANSWER_NS (100 * HF__NS_PER_MS) /* a server that is there has answered by then, as a rule */

static int64_t now_ns(const struct hf__zk *zk)
{
    return hf__now_ns(zk->base.host->env);
}

/* Everything that lived in it is over; who waited asks again and learns it. Under the mutex. */
static void end_bid(struct hf__link *link, void *ctx)
{
    struct hf__zk_bidding *b = (struct hf__zk_bidding *)link;

    if (b->session != ctx)
        return;
    hf__zk_call_ticket(b->zk, &b->ticket, 0);
    if (!hf__zk_may_be_permanent(b) && b->state != HF__ZK_STATE_RETIRED) {
        b->state = HF__ZK_STATE_LEAVING; /* the timer thread forgets it in its turn */
        hf__zk_set_timer(b, 0);
    }
}

/* ZooKeeper's thread. Each change is a new connection: what was missed in between is told in any
 * order, so nobody may conclude from events of two of them. */
static void on_session(zhandle_t *zh, int type, int state, const char *path, void *ctx)
{
    struct hf__zk_session *s = ctx;

    (void)path;
    if (type != ZOO_SESSION_EVENT)
        return;
    pthread_mutex_lock(&s->zk->mutex);
    if (s->state != HF__ZK_SESSION_DEAD) {
        s->connection++;
        s->state = HF__ZK_SESSION_CONNECTING;
        if (state == ZOO_CONNECTED_STATE) {
            s->id = zoo_client_id(zh)->client_id;
            s->timeout_ms = zoo_recv_timeout(zh);
            s->state = HF__ZK_SESSION_CONNECTED;
        } else if (state == ZOO_EXPIRED_SESSION_STATE || state == ZOO_AUTH_FAILED_STATE) {
            s->state = HF__ZK_SESSION_DEAD;
            hf__table_each(&s->zk->biddings, end_bid, s);
        }
    }
    pthread_cond_broadcast(&s->zk->changed);
    pthread_mutex_unlock(&s->zk->mutex);
}

/* Under the mutex, which it lets go while the servers' names are looked up. */
static int add(struct hf__zk *zk, int64_t timeout_ms, struct hf__zk_session **ret_session,
               hf_error *err)
{
    struct hf__zk_session *idle = zk->sessions;

    while (idle != NULL && idle->users > 0)
        idle = idle->next;
    if (zk->session_count >= HF__ZK_SESSIONS_MAX && idle != NULL)
        hf__zk_close_session(idle);
    if (zk->session_count >= HF__ZK_SESSIONS_MAX)
        return hf__fail(err, HF_FULL,
                        "this client uses %d sessions already, one for each ttl + lock-delay: use "
                        "fewer different ones",
                        HF__ZK_SESSIONS_MAX);
    struct hf__zk_session *s = calloc(1, sizeof *s);
    if (s == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    s->zk = zk;
    s->asked_ms = timeout_ms;
    s->users = 1;
    s->next = zk->sessions;
    zk->sessions = s;
    if (++zk->session_count == 2) { /* one of them may be closed soon */
        zk->armed_ns = 0;
        pthread_cond_signal(&zk->due);
    }
    pthread_mutex_unlock(&zk->mutex);
    zhandle_t *zh = hf__zk_connect(s, on_session);
    int why = errno;
    pthread_mutex_lock(&zk->mutex);
    s->zh = zh;
    if (zh == NULL) {
        s->state = HF__ZK_SESSION_DEAD;
        hf__zk_unuse_locked(s);
        /* What the library says of names that nobody knows is that there is no such file. */
        if (why == ENOENT || why == EINVAL)
            return hf__fail(err, HF_UNAVAILABLE,
                            "none of %s can be looked up: no such server is known", zk->hosts);
        errno = why;
        return hf__fail_errno(err, HF_UNAVAILABLE, "no session with %s can be begun", zk->hosts);
    }
    *ret_session = s;
    return 0;
}

/* Under the mutex. */
static bool await_locked(struct hf__zk_session *s, int64_t deadline_ns)
{
    struct hf__zk *zk = s->zk;

    while ((s->state == HF__ZK_SESSION_CONNECTING || s->zh == NULL) &&
           s->state != HF__ZK_SESSION_DEAD) {
        struct timespec at = hf__zk_moment(zk, deadline_ns);
        if (deadline_ns <= now_ns(zk))
            return false;
        pthread_cond_clockwait(&zk->changed, &zk->mutex, CLOCK_MONOTONIC, &at);
    }
    return s->state == HF__ZK_SESSION_CONNECTED;
}

bool hf__zk_await(struct hf__zk_session *s, int64_t deadline_ns)
{
    pthread_mutex_lock(&s->zk->mutex);
    bool ok = await_locked(s, deadline_ns);
    pthread_mutex_unlock(&s->zk->mutex);
    return ok;
}

bool hf__zk_is_dead(struct hf__zk_session *s)
{
    pthread_mutex_lock(&s->zk->mutex);
    bool dead = s->state == HF__ZK_SESSION_DEAD;
    pthread_mutex_unlock(&s->zk->mutex);
    return dead;
}

/* The library goes on dialling servers that refuse, and says nothing. A session that was connected is
 * worth that: its server may be restarting. A new one is not. Under the mutex, which it lets go. */
static bool is_refused(struct hf__zk_session *s, int64_t deadline_ns)
{
    struct hf__zk *zk = s->zk;
    int64_t soon_ns = now_ns(zk) + ANSWER_NS;

    if (s->id != 0 || soon_ns > deadline_ns || await_locked(s, soon_ns) ||
        s->state == HF__ZK_SESSION_DEAD)
        return false;
    pthread_mutex_unlock(&zk->mutex);
    bool refused = hf__zk_all_refuse(zk, deadline_ns);
    pthread_mutex_lock(&zk->mutex);
    return refused && s->state == HF__ZK_SESSION_CONNECTING;
}

/* Under the mutex, which it lets go to find out why there is no session: the last part of the time is
 * for that. */
static int check(struct hf__zk_session *s, int64_t deadline_ns, hf_error *err)
{
    struct hf__zk *zk = s->zk;
    int64_t left_ns = deadline_ns - now_ns(zk), probe_ns = left_ns / 4;

    if (is_refused(s, deadline_ns))
        return hf__fail(err, HF_UNAVAILABLE, "connect to %s: Connection refused", zk->hosts);
    if (probe_ns > PROBE_NS)
        probe_ns = PROBE_NS;
    if (await_locked(s, deadline_ns - probe_ns))
        return 0;
    if (s->zh != NULL && zoo_state(s->zh) == ZOO_AUTH_FAILED_STATE)
        return hf__fail(err, HF_DENIED, "the user or the password is wrong");
    pthread_mutex_unlock(&zk->mutex);
    hf_error why = {0};
    int r = hf__zk_fail_to_connect(zk, deadline_ns, &why);
    pthread_mutex_lock(&zk->mutex);
    if (await_locked(s, deadline_ns))
        return 0; /* meanwhile */
    if (err != NULL)
        *err = why;
    return r;
}

int hf__zk_session(struct hf__zk *zk, int64_t timeout_ms, int64_t deadline_ns,
                   struct hf__zk_session **ret_session, hf_error *err)
{
    int r = 0;

    pthread_mutex_lock(&zk->mutex);
    struct hf__zk_session *s = zk->sessions;
    while (s != NULL && (s->asked_ms != timeout_ms || s->state == HF__ZK_SESSION_DEAD))
        s = s->next;
    if (s != NULL)
        hf__zk_use_locked(s);
    else
        r = add(zk, timeout_ms, &s, err);
    if (r == 0) {
        r = check(s, deadline_ns, err);
        if (r != 0)
            hf__zk_unuse_locked(s);
    }
    pthread_mutex_unlock(&zk->mutex);
    if (r == 0)
        *ret_session = s;
    return r;
}

int hf__zk_hold_session(struct hf__zk_bidding *b, int64_t deadline_ns,
                        struct hf__zk_session **ret_session, hf_error *err)
{
    struct hf__zk_session *s;
    int64_t hold_ms = hf__zk_hold_ms(b->ttl_ms, b->lock_delay_ms);
    int r = hf__zk_session(b->zk, hold_ms, deadline_ns, &s, err);

    if (r != 0)
        return r;
    if (b->ttl_ms != HF__NEVER && s->timeout_ms < hold_ms) {
        r = hf__fail(err, HF_UNSUPPORTED,
                     "ttl and lock-delay are %lld ms, but the server ends sessions after %lld ms: "
                     "ask for less, or raise its maxSessionTimeout",
                     (long long)hold_ms, (long long)s->timeout_ms);
        hf__zk_unuse(s);
        return r;
    }
    *ret_session = s;
    return 0;
}

int64_t hf__zk_negotiate(struct hf__zk *zk, int64_t asked_ms, int64_t deadline_ns)
{
    struct hf__zk_session *s;
    int64_t given_ms = 0;

    pthread_mutex_lock(&zk->mutex);
    if (add(zk, asked_ms, &s, NULL) == 0) {
        if (await_locked(s, deadline_ns))
            given_ms = s->timeout_ms;
        hf__zk_unuse_locked(s);
        if (s->users == 0)
            hf__zk_close_session(s);
    }
    pthread_mutex_unlock(&zk->mutex);
    return given_ms;
}

int hf__zk_any_session(struct hf__zk *zk, int64_t deadline_ns, struct hf__zk_session **ret_session,
                       hf_error *err)
{
    struct hf__zk_session *best = NULL;

    /* Not one that is gone as soon as the machine is busy. */
    pthread_mutex_lock(&zk->mutex);
    for (struct hf__zk_session *s = zk->sessions; s != NULL; s = s->next) {
        if (s->state == HF__ZK_SESSION_CONNECTED && s->timeout_ms >= STEADY_MS &&
            (best == NULL || s->timeout_ms > best->timeout_ms))
            best = s;
    }
    if (best != NULL)
        hf__zk_use_locked(best);
    pthread_mutex_unlock(&zk->mutex);
    *ret_session = best;
    if (best != NULL)
        return 0;
    return hf__zk_session(zk, ANY_MS, deadline_ns, ret_session, err);
}

void hf__zk_use_locked(struct hf__zk_session *s)
{
    s->users++;
}

void hf__zk_unuse_locked(struct hf__zk_session *s)
{
    if (--s->users > 0)
        return;
    s->idle_ns = now_ns(s->zk);
    if (s->state == HF__ZK_SESSION_DEAD) {
        s->zk->armed_ns = 0;
        pthread_cond_signal(&s->zk->due); /* the timer thread closes it */
    }
}

/* Who only looks leaves no thread behind (C13). */
void hf__zk_unuse(struct hf__zk_session *s)
{
    struct hf__zk *zk = s->zk;

    pthread_mutex_lock(&zk->mutex);
    hf__zk_unuse_locked(s);
    if (!zk->timer_thread_runs && s->users == 0)
        hf__zk_close_session(s);
    pthread_mutex_unlock(&zk->mutex);
}

void hf__zk_unuse_new(struct hf__zk_session *s)
{
    struct hf__zk *zk = s->zk;

    pthread_mutex_lock(&zk->mutex);
    bool unused = s->idle_ns == 0;
    hf__zk_unuse_locked(s);
    if (unused && s->users == 0)
        hf__zk_close_session(s);
    pthread_mutex_unlock(&zk->mutex);
}

int64_t hf__zk_lease_ms(const struct hf__zk_session *s, int64_t wanted_ms)
{
    int64_t most_ms = s->timeout_ms * 2 / 3;

    return wanted_ms < most_ms ? wanted_ms : most_ms;
}

void hf__zk_proved(struct hf__zk_session *s, int64_t sent_ns)
{
    pthread_mutex_lock(&s->zk->mutex);
    if (sent_ns > s->proved_ns)
        s->proved_ns = sent_ns;
    pthread_mutex_unlock(&s->zk->mutex);
}
