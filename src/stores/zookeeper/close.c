/* The end of sessions: of one that nobody uses, and of all, with their client.
 *
 * A session is closed politely, which deletes what it has left, unless a lock-delay runs in it: of a
 * holder that was lost, or that is being lost by this very end, since nobody released it. Such a
 * session is let go of. It gives one more sign of life and is then forgotten without a word, so the
 * server counts to its end as if the process had died: the lock opens ttl + lock-delay later, at
 * the latest, and nothing of ours has to run for that. A server that does not answer is left in
 * the same way, since nothing can be said to it. A request, by which somebody was broken, belongs to no
 * session: it goes with its bid. */
#include <stdlib.h>

#include "stores/zookeeper/zk.h"

#include "base/banned.h"

#define CLOSE_NS (1000 * HF__NS_PER_MS) /* for all that is still to be said */

/* No connection can be made to it, nor is any packet sent. */
static const char *const nowhere[] = {"255.255.255.255:1", "[ff00::]:1"};

/* One session. --------------------------------------------------------------------------------- */
/* Under the mutex, which is let go meanwhile: the library joins its threads, and they may be waiting
 * for it. Out of the list first, so that nobody uses it any more. */
void hf__zk_close_session(struct hf__zk_session *s)
{
    struct hf__zk *zk = s->zk;
    struct hf__zk_session **at = &zk->sessions;

    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    zk->session_count--;
    if (zk->break_session == s)
        zk->break_session = NULL;
    pthread_mutex_unlock(&zk->mutex);
    if (s->zh != NULL)
        zookeeper_close(s->zh);
    pthread_mutex_lock(&zk->mutex);
    hf__zk_free_watches(s);
    free(s);
}

/* The next in line for a lock will want the session of a holder at once. */
static void find_next_in_line(struct hf__link *link, void *ctx)
{
    const struct hf__zk_bidding *b = (struct hf__zk_bidding *)link;
    struct hf__zk_session **s = ctx;

    if (*s != NULL && b->state == HF__ZK_STATE_JOINED && !b->inside && b->blockers <= 1 &&
        hf__zk_hold_ms(b->ttl_ms, b->lock_delay_ms) == (*s)->asked_ms)
        *s = NULL;
}

/* A server lets a machine have so many connections (60 by default), and those who wait need one. So a
 * session that is not used goes at once if there is another, and stays for a minute if it is the last:
 * to begin one takes three round trips. */
static bool is_over(struct hf__zk_session *s, int64_t now)
{
    struct hf__zk *zk = s->zk;
    bool spare = false;

    if (s->users > 0)
        return false;
    if (s->state == HF__ZK_SESSION_DEAD)
        return true;
    for (const struct hf__zk_session *other = zk->sessions; other != NULL; other = other->next)
        spare |= other->users > 0;
    if (spare && now - s->idle_ns > HF__ZK_SPARE_MS * HF__NS_PER_MS) {
        struct hf__zk_session *unneeded = s;
        hf__table_each(&zk->biddings, find_next_in_line, &unneeded);
        if (unneeded != NULL)
            return true;
    }
    return now - s->idle_ns > HF__ZK_IDLE_MS * HF__NS_PER_MS;
}

void hf__zk_close_idle(struct hf__zk *zk, int64_t now)
{
    struct hf__zk_session *s = zk->sessions;

    while (s != NULL) {
        if (is_over(s, now)) {
            hf__zk_close_session(s);
            s = zk->sessions; /* the list may have changed */
        } else {
            s = s->next;
        }
    }
}

/* All of them. ---------------------------------------------------------------------------------- */
struct closing {
    struct hf__zk_session *s;
    int64_t deadline_ns;
    struct hf__zk_bidding *delays; /* one of those whose lock-delay runs */
    struct hf__zk_bidding
        *broken; /* one that no delay keeps, with a request to break it in the store */
    struct hf__zk_bidding *leaving; /* one that has no more business here */
};

static void sort_one(struct hf__link *link, void *ctx)
{
    struct hf__zk_bidding *b = (struct hf__zk_bidding *)link;
    struct closing *f = ctx;

    if (b->session != f->s || b->permanent)
        return; /* what never expires stays: it was released before, or passed on */
    bool lost = b->state == HF__ZK_STATE_JOINED && b->inside && b->claimed;
    if (b->lock_delay_ms > 0 && (lost || b->state == HF__ZK_STATE_LINGERING))
        f->delays = b;
    else if (b->break_requested)
        f->broken = b;
    else
        f->leaving = b;
}

/* The library sends nothing when it closes a handle that is not connected, and it has no call that
 * only disconnects: so the handle is sent to where nobody can be. */
static void cut(struct hf__zk_session *s)
{
    int rc = ZSYSTEMERROR;

    for (size_t i = 0; rc != ZOK && i < sizeof nowhere / sizeof nowhere[0]; i++)
        rc = zoo_set_servers(s->zh, nowhere[i]);
}

/* Takes out those whose requests would stay behind, and then, beside a lock-delay, all others: the
 * session will last as long as the delay, and they would stay as long. */
static void leave_session(struct closing *f)
{
    struct hf__zk *zk = f->s->zk;

    for (;;) {
        f->delays = f->broken = f->leaving = NULL;
        hf__table_each(&zk->biddings, sort_one, f);
        struct hf__zk_bidding *b = f->broken != NULL   ? f->broken
                                   : f->delays != NULL ? f->leaving
                                                       : NULL;
        if (b == NULL)
            break;
        hf__zk_remove(b, f->deadline_ns);
        pthread_mutex_lock(&zk->mutex);
        hf__zk_retire(b, 0);
        pthread_mutex_unlock(&zk->mutex);
    }
    if (f->delays == NULL)
        return;
    /* The last sign of life: from here the server counts the whole session. */
    zoo_op_t op;
    struct hf__zk_call *call = hf__zk_call_new();
    zoo_check_op_init(&op, f->delays->path, -1);
    if (call != NULL && hf__zk_await(f->s, 0))
        hf__zk_multi(f->s, &op, 1, f->deadline_ns, call);
    hf__zk_call_free(call);
    cut(f->s);
}

/* Which sessions answer: all are asked at once. When the library closes a session it waits for a
 * second and a half for the server's answer, one session after the other; so one that does not
 * answer now is cut instead of closed. */
static void leave_silent_ones(struct hf__zk *zk, int64_t deadline_ns)
{
    struct hf__zk_call *calls[HF__ZK_SESSIONS_MAX] = {NULL};
    int sent[HF__ZK_SESSIONS_MAX] = {0};
    size_t i = 0;

    for (struct hf__zk_session *s = zk->sessions; s != NULL; s = s->next, i++) {
        if (s->zh == NULL || !hf__zk_await(s, 0) || (calls[i] = hf__zk_call_new()) == NULL)
            continue;
        hf__zk_call_ref(calls[i]);
        sent[i] = zoo_aexists(s->zh, "/", 0, hf__zk_on_stat, calls[i]);
    }
    i = 0;
    for (struct hf__zk_session *s = zk->sessions; s != NULL; s = s->next, i++) {
        if (calls[i] != NULL &&
            hf__zk_wait(zk, calls[i], sent[i], deadline_ns) == ZOPERATIONTIMEOUT)
            cut(s);
        hf__zk_call_free(calls[i]);
    }
}

/* Nobody else is here any more: the timer thread has stopped, and no call is under way. */
void hf__zk_close_all(struct hf__zk *zk)
{
    int64_t deadline_ns = hf__now_ns(zk->base.host->env) + CLOSE_NS;

    leave_silent_ones(zk, deadline_ns);
    for (struct hf__zk_session *s = zk->sessions; s != NULL; s = s->next) {
        struct closing f = {.s = s, .deadline_ns = deadline_ns};
        if (s->zh != NULL)
            leave_session(&f);
    }
    pthread_mutex_lock(&zk->mutex);
    while (zk->sessions != NULL)
        hf__zk_close_session(zk->sessions);
    pthread_mutex_unlock(&zk->mutex);
}
