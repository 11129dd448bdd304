/* Connections that are lent to one operation at a time. Nobody keeps one while it waits for a lock,
 * so a thousand waiting threads share a few. The last one given back is the first to be lent again:
 * the others grow old and are closed. */
#include <errno.h>
#include <time.h>

#include "stores/mysql/mysql.h"

#include "util/banned.h"

void hf__my_pool_init(struct hf__my_pool *pool)
{
    pthread_condattr_t attr;

    pthread_mutex_init(&pool->mutex, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&pool->free_one, &attr);
    pthread_condattr_destroy(&attr);
}

static void hang_up_all(struct hf__my_conn *c)
{
    while (c != NULL) {
        struct hf__my_conn *next = c->next;
        hf__my_hang_up(c);
        c = next;
    }
}

void hf__my_pool_clear(struct hf__my_pool *pool)
{
    hang_up_all(pool->idle);
    pthread_cond_destroy(&pool->free_one);
    pthread_mutex_destroy(&pool->mutex);
}

uint64_t hf__my_dice(struct hf__my *s, uint64_t below)
{
    pthread_mutex_lock(&s->pool.mutex);
    s->dice ^= s->dice << 13;
    s->dice ^= s->dice >> 7;
    s->dice ^= s->dice << 17;
    uint64_t number = s->dice % below;
    pthread_mutex_unlock(&s->pool.mutex);
    return number;
}

void hf__my_sleep(struct hf__my *s, int64_t ms)
{
    int64_t ns = (ms / 2 + (int64_t)hf__my_dice(s, (uint64_t)ms)) * HF__NS_PER_MS;
    struct timespec span = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};

    nanosleep(&span, NULL);
}

/* False: the deadline has come. Mutex held. */
static bool wait_for_one(struct hf__my *s, int64_t deadline_ns)
{
    int64_t left_ns = deadline_ns - hf__now_ns(s->base.host->env);
    struct timespec until;

    if (left_ns <= 0)
        return false;
    clock_gettime(CLOCK_MONOTONIC, &until);
    left_ns += until.tv_nsec;
    until.tv_sec += left_ns / 1000000000;
    until.tv_nsec = left_ns % 1000000000;
    pthread_cond_timedwait(&s->pool.free_one, &s->pool.mutex, &until);
    return true;
}

/* Takes an idle one out, or those that are too old. Mutex held. */
static struct hf__my_conn *take_idle(struct hf__my *s)
{
    struct hf__my_conn *c = s->pool.idle;

    if (c != NULL) {
        s->pool.idle = c->next;
        s->pool.idle_count--;
    }
    return c;
}

static void leave(struct hf__my *s)
{
    pthread_mutex_lock(&s->pool.mutex);
    s->pool.active--;
    pthread_cond_signal(&s->pool.free_one);
    pthread_mutex_unlock(&s->pool.mutex);
}

int hf__my_borrow(struct hf__my *s, int64_t deadline_ns, struct hf__my_conn **ret_conn,
                  hf_error *err)
{
    int64_t oldest_ns = hf__now_ns(s->base.host->env) - s->set.idle_timeout_ms * HF__NS_PER_MS;

    pthread_mutex_lock(&s->pool.mutex);
    while (s->pool.active >= s->set.max_active) {
        if (!wait_for_one(s, deadline_ns)) {
            pthread_mutex_unlock(&s->pool.mutex);
            return hf__fail(err, HF_UNAVAILABLE,
                            "mysql: all connections are in use; raise max_active");
        }
    }
    s->pool.active++;
    for (;;) {
        struct hf__my_conn *c = take_idle(s);
        pthread_mutex_unlock(&s->pool.mutex);
        if (c == NULL)
            break;
        if (c->idle_since_ns > oldest_ns && hf__my_is_quiet(c)) {
            *ret_conn = c;
            return 0;
        }
        hf__my_hang_up(c);
        pthread_mutex_lock(&s->pool.mutex);
    }
    int r = hf__my_dial(s, deadline_ns, ret_conn, err);
    if (r != 0)
        leave(s);
    return r;
}

void hf__my_give_back(struct hf__my *s, struct hf__my_conn *c)
{
    c->idle_since_ns = hf__now_ns(s->base.host->env);
    pthread_mutex_lock(&s->pool.mutex);
    bool keep = !c->broken && s->pool.idle_count < s->set.max_idle;
    if (keep) {
        c->next = s->pool.idle;
        s->pool.idle = c;
        s->pool.idle_count++;
    }
    pthread_mutex_unlock(&s->pool.mutex);
    if (!keep)
        hf__my_hang_up(c); /* before anybody else can ask on another one */
    leave(s);
}
