/* The timer thread: does in time what ZooKeeper would only do at the end of a session.
 *
 * The library keeps a session alive for as long as the process runs, whether anybody renews or not.
 * So a bid whose lease is over by our own clock is taken out of the store here: later than its
 * client has given it up, since that counts from before the request, and with its lock-delay in
 * between. The timer thread also forgets tickets, and closes sessions that nobody uses. It starts with
 * the first bid. */
#include <stdlib.h>
#include <time.h>

#include "base/thread.h"
#include "stores/zookeeper/zk.h"

#include "base/banned.h"

#define TRY_NS   (1000 * HF__NS_PER_MS) /* for one deletion */
#define AGAIN_NS (100 * HF__NS_PER_MS)

static int64_t now_ns(const struct hf__zk *zk)
{
    return hf__now_ns(zk->base.host->env);
}

/* Its node goes; what cannot be reached now is tried again. Under the mutex, let go meanwhile. */
static void take_out(struct hf__zk_bidding *b)
{
    struct hf__zk *zk = b->zk;
    int64_t deadline_ns = now_ns(zk) + TRY_NS;

    b->state = HF__ZK_STATE_LEAVING;
    b->busy = true;
    pthread_mutex_unlock(&zk->mutex);
    int rc = hf__zk_remove(b, deadline_ns);
    pthread_mutex_lock(&zk->mutex);
    b->busy = false;
    pthread_cond_broadcast(&zk->changed);
    if (rc == ZOK || rc == ZNONODE)
        hf__zk_retire(b, b->retire_ms > 0 ? b->retire_ms : 1);
    else
        hf__zk_set_timer(b, now_ns(zk) + AGAIN_NS);
}

/* Everybody shall see that the holder is over and only its lock-delay lasts. What says so is a node of
 * the same session, and goes with it: nobody has to clean up. It may fail: the delay is kept anyway. */
static void linger(struct hf__zk_bidding *b)
{
    struct hf__zk *zk = b->zk;

    b->state = HF__ZK_STATE_LINGERING;
    b->break_requested = true;
    b->until_ns += b->lock_delay_ms * HF__NS_PER_MS;
    hf__zk_set_timer(b, b->until_ns);
    struct hf__zk_session *s = b->session;
    if (s == NULL || s->state != HF__ZK_SESSION_CONNECTED)
        return;
    b->busy = true;
    pthread_mutex_unlock(&zk->mutex);
    struct hf__zk_break_request request = {.now = true, .mode = ZOO_EPHEMERAL, .why = "lock-delay"};
    hf__zk_put_break_request(s, &b->ticket, &request, now_ns(zk) + TRY_NS);
    pthread_mutex_lock(&zk->mutex);
    b->busy = false;
    pthread_cond_broadcast(&zk->changed);
}

/* The timer of this bid has run out. One that somebody works on is looked at again soon: what that
 * one finds may have made its time longer. */
static void attend(struct hf__zk_bidding *b)
{
    struct hf__zk *zk = b->zk;

    b->refs++;
    hf__heap_remove(&zk->timers, &b->timer);
    if (b->busy)
        hf__zk_set_timer(b, now_ns(zk) + 5 * HF__NS_PER_MS);
    else if (b->state == HF__ZK_STATE_RETIRED)
        hf__zk_retire(b, 0);
    else if (b->state == HF__ZK_STATE_JOINED && b->inside && b->claimed && b->lock_delay_ms > 0)
        linger(b);
    else
        take_out(b);
    pthread_mutex_unlock(&zk->mutex);
    hf__zk_bidding_unref(b);
    pthread_mutex_lock(&zk->mutex);
}

static void *run(void *arg)
{
    struct hf__zk *zk = arg;

    pthread_mutex_lock(&zk->mutex);
    while (!zk->stop) {
        struct hf__timer *timer = hf__heap_first(&zk->timers);
        int64_t now = now_ns(zk);
        if (timer != NULL && timer->when_ns <= now) {
            attend(
                (struct hf__zk_bidding *)((char *)timer - offsetof(struct hf__zk_bidding, timer)));
            continue;
        }
        hf__zk_close_idle(zk, now); /* lets go of the mutex: anything may have happened */
        if (zk->stop)
            break;
        timer = hf__heap_first(&zk->timers);
        int64_t look_ms = zk->session_count > 1 ? HF__ZK_SPARE_MS : HF__ZK_IDLE_MS / 4;
        int64_t next_ns = now + look_ms * HF__NS_PER_MS;
        if (timer != NULL && timer->when_ns < next_ns)
            next_ns = timer->when_ns;
        struct timespec at = hf__zk_moment(zk, next_ns);
        if (next_ns <= now_ns(zk))
            continue;
        zk->armed_ns = next_ns;
        pthread_cond_clockwait(&zk->due, &zk->mutex, CLOCK_MONOTONIC, &at);
        zk->armed_ns = 0; /* awake: nobody needs to call */
    }
    pthread_mutex_unlock(&zk->mutex);
    return NULL;
}

int hf__zk_start_timer_thread(struct hf__zk *zk, hf_error *err)
{
    int r = 0;

    pthread_mutex_lock(&zk->mutex);
    if (!zk->timer_thread_runs) {
        r = hf__thread_start(&zk->timer_thread, "hf-zookeeper", 0, run, zk);
        zk->timer_thread_runs = r == 0;
    }
    pthread_mutex_unlock(&zk->mutex);
    return r == 0 ? 0 : hf__fail(err, HF_SYSTEM, "the store's thread cannot be started");
}

void hf__zk_stop_timer_thread(struct hf__zk *zk)
{
    pthread_mutex_lock(&zk->mutex);
    bool runs = zk->timer_thread_runs;
    zk->stop = true;
    pthread_cond_signal(&zk->due);
    pthread_mutex_unlock(&zk->mutex);
    if (runs)
        pthread_join(zk->timer_thread, NULL);
}
