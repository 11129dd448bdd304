/* The end of a client: what becomes of its sessions.
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

struct closing {
    struct session *s;
    int64_t deadline_ns;
    struct bidding *delays;  /* one of those whose lock-delay runs */
    struct bidding *broken;  /* one that no delay keeps, with a request to break it in the store */
    struct bidding *leaving; /* one that has no more business here */
};

static void sort_one(struct hf__link *link, void *ctx)
{
    struct bidding *b = (struct bidding *)link;
    struct closing *f = ctx;

    if (b->session != f->s || b->permanent)
        return; /* what never expires stays: it was released before, or passed on */
    bool lost = b->state == HF__ZK_JOINED && b->inside && b->claimed;
    if (b->lock_delay_ms > 0 && (lost || b->state == HF__ZK_LINGERING))
        f->delays = b;
    else if (b->break_requested)
        f->broken = b;
    else
        f->leaving = b;
}

/* The library says nothing when it closes a handle that is not connected. */
static void cut(struct session *s)
{
    int rc = ZSYSTEMERROR;

    for (size_t i = 0; rc != ZOK && i < sizeof nowhere / sizeof nowhere[0]; i++)
        rc = zoo_set_servers(s->zh, nowhere[i]);
}

static void let_expire(struct closing *f)
{
    zoo_op_t op;
    struct call *call = hf__zk_call_new();

    zoo_check_op_init(&op, f->delays->path, -1);
    if (call != NULL && hf__zk_await(f->s, 0))
        hf__zk_multi(f->s, &op, 1, f->deadline_ns, call);
    hf__zk_call_free(call);
    cut(f->s);
}

/* Those whose requests would stay behind; and beside a delay all others, for they would stay as long. */
static struct bidding *next_to_remove(struct closing *f)
{
    f->delays = f->broken = f->leaving = NULL;
    hf__table_each(&f->s->zk->biddings, sort_one, f);
    if (f->broken != NULL)
        return f->broken;
    return f->delays != NULL ? f->leaving : NULL;
}

static void leave_session(struct closing *f)
{
    struct zk *zk = f->s->zk;
    struct bidding *b;

    while ((b = next_to_remove(f)) != NULL) {
        hf__zk_remove(b, f->deadline_ns);
        pthread_mutex_lock(&zk->mutex);
        hf__zk_spend(b, 0);
        pthread_mutex_unlock(&zk->mutex);
    }
    if (f->delays != NULL)
        let_expire(f);
}

/* Which sessions answer: all are asked at once. The library waits for a second and a half for the
 * answer to its farewell, for each session in turn, so what does not answer now is not told. */
static void leave_silent_ones(struct zk *zk, int64_t deadline_ns)
{
    struct call *calls[HF__ZK_SESSIONS_MAX] = {NULL};
    int sent[HF__ZK_SESSIONS_MAX] = {0};
    size_t i = 0;

    for (struct session *s = zk->sessions; s != NULL; s = s->next, i++) {
        if (s->zh == NULL || !hf__zk_await(s, 0) || (calls[i] = hf__zk_call_new()) == NULL)
            continue;
        hf__zk_call_ref(calls[i]);
        sent[i] = zoo_aexists(s->zh, "/", 0, hf__zk_on_stat, calls[i]);
    }
    i = 0;
    for (struct session *s = zk->sessions; s != NULL; s = s->next, i++) {
        if (calls[i] != NULL &&
            hf__zk_wait(zk, calls[i], sent[i], deadline_ns) == ZOPERATIONTIMEOUT)
            cut(s);
        hf__zk_call_free(calls[i]);
    }
}

/* Nobody else is here any more: the timer thread has stopped, and no call is under way. */
void hf__zk_close_all(struct zk *zk)
{
    int64_t deadline_ns = hf__now_ns(zk->base.host->env) + CLOSE_NS;

    leave_silent_ones(zk, deadline_ns);
    for (struct session *s = zk->sessions; s != NULL; s = s->next) {
        struct closing f = {.s = s, .deadline_ns = deadline_ns};
        if (s->zh != NULL)
            leave_session(&f);
    }
    pthread_mutex_lock(&zk->mutex);
    while (zk->sessions != NULL)
        hf__zk_close_session(zk->sessions);
    pthread_mutex_unlock(&zk->mutex);
}
