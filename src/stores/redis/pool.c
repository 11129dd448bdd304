/* Connections that are lent to one operation at a time. Nobody keeps one while it waits for a lock,
 * so a thousand waiting threads share a few. The last one given back is the first to be lent again:
 * the others grow old and are closed. */
#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "stores/redis/redis.h"

#include "util/banned.h"

#define PEEK_AFTER_MS  5     /* idle for so long: look whether the server has hung up */
#define PING_AFTER_MS  15000 /* idle for so long: ask whether it is still there */
#define PING_WITHIN_MS 1000
#define BACKOFF_MIN_MS 10
#define BACKOFF_MAX_MS 250

void hf__redis_pool_init(struct hf__redis_pool *pool)
{
    pthread_condattr_t attr;

    pthread_mutex_init(&pool->mutex, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&pool->free_one, &attr);
    pthread_condattr_destroy(&attr);
}

static void hang_up_all(struct hf__redis_conn *c)
{
    while (c != NULL) {
        struct hf__redis_conn *next = c->next;
        hf__redis_hang_up(c);
        c = next;
    }
}

void hf__redis_pool_clear(struct hf__redis_pool *pool)
{
    hang_up_all(pool->idle);
    pthread_cond_destroy(&pool->free_one);
    pthread_mutex_destroy(&pool->mutex);
}

void hf__redis_pool_flush(struct hf__redis *s)
{
    pthread_mutex_lock(&s->pool.mutex);
    struct hf__redis_conn *old = s->pool.idle;
    s->pool.epoch++;
    s->pool.failures = 0; /* what comes next may be dialled at once */
    s->pool.idle = NULL;
    s->pool.idle_count = 0;
    pthread_mutex_unlock(&s->pool.mutex);
    hang_up_all(old);
}

int64_t hf__redis_backoff_ns(const struct hf_env *env, unsigned failures)
{
    int64_t ms = failures >= 5 ? BACKOFF_MAX_MS : BACKOFF_MIN_MS << failures;
    uint32_t jitter = 0;

    env->random(env->ctx, &jitter, sizeof jitter);
    return (ms / 2 + jitter % ms) * HF__NS_PER_MS;
}

/* False: the deadline has come. Mutex held. */
static bool wait_for_one(struct hf__redis *s, int64_t deadline_ns)
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

static bool is_alive(struct hf__redis *s, struct hf__redis_conn *c, int64_t deadline_ns)
{
    int64_t now_ns = hf__now_ns(s->base.host->env), idle_ns = now_ns - c->idle_since_ns;
    redisReply *reply = NULL;

    if (idle_ns < PEEK_AFTER_MS * HF__NS_PER_MS)
        return true;
    if (idle_ns > s->set.idle_timeout_ms * HF__NS_PER_MS || !hf__stream_is_quiet(&c->stream))
        return false;
    if (idle_ns < PING_AFTER_MS * HF__NS_PER_MS)
        return true;
    int64_t soon_ns = now_ns + PING_WITHIN_MS * HF__NS_PER_MS;
    hf__redis_command(c, "PING", (char *)NULL);
    int r = hf__redis_ask(c, soon_ns < deadline_ns ? soon_ns : deadline_ns, &reply, NULL);
    freeReplyObject(reply);
    return r == 0;
}

static void note_dial(struct hf__redis *s, int r, const hf_error *err)
{
    struct hf__redis_pool *pool = &s->pool;
    const struct hf_env *env = s->base.host->env;
    int64_t most_ns = s->base.host->op_timeout_ms * HF__NS_PER_MS / 4;

    pthread_mutex_lock(&pool->mutex);
    if (r == 0) {
        pool->failures = 0;
    } else {
        /* Who asks bears an outage for one op_timeout: within that it must be tried more than once. */
        int64_t pause_ns = hf__redis_backoff_ns(env, pool->failures++);
        pool->active--;
        pool->retry_ns = hf__now_ns(env) + (pause_ns < most_ns ? pause_ns : most_ns);
        pool->failure_code = r;
        snprintf(pool->failure, sizeof pool->failure, "%.199s", err->text);
        pthread_cond_signal(&pool->free_one);
    }
    pthread_mutex_unlock(&pool->mutex);
}

/* Mutex held, and given back. The connection counts as active already. */
static int dial(struct hf__redis *s, int64_t deadline_ns, struct hf__redis_conn **ret_conn,
                hf_error *err)
{
    struct hf__redis_pool *pool = &s->pool;
    hf_error why = {0};
    int r;

    if (pool->failures > 0 && hf__now_ns(s->base.host->env) < pool->retry_ns) {
        pool->active--;
        r = hf__fail(err, pool->failure_code, "%s", pool->failure);
        pthread_mutex_unlock(&pool->mutex);
        return r;
    }
    pthread_mutex_unlock(&pool->mutex);
    r = hf__redis_dial(s, deadline_ns, ret_conn, &why);
    note_dial(s, r, &why);
    if (r != 0 && err != NULL)
        *err = why;
    return r;
}

/* Mutex held, and given back. False: it was dead; the mutex is held again. */
static bool reuse(struct hf__redis *s, struct hf__redis_conn *c, int64_t deadline_ns)
{
    struct hf__redis_pool *pool = &s->pool;

    pool->idle = c->next;
    pool->idle_count--;
    pool->active++;
    pthread_mutex_unlock(&pool->mutex);
    if (is_alive(s, c, deadline_ns))
        return true;
    hf__redis_hang_up(c);
    pthread_mutex_lock(&pool->mutex);
    pool->active--;
    return false;
}

int hf__redis_take(struct hf__redis *s, int64_t deadline_ns, struct hf__redis_conn **ret_conn,
                   hf_error *err)
{
    struct hf__redis_pool *pool = &s->pool;

    pthread_mutex_lock(&pool->mutex);
    for (;;) {
        struct hf__redis_conn *c = pool->idle;
        if (c != NULL && reuse(s, c, deadline_ns)) {
            *ret_conn = c;
            return 0;
        }
        if (c != NULL)
            continue;
        if (pool->active < s->set.max_active) {
            pool->active++;
            return dial(s, deadline_ns, ret_conn, err);
        }
        if (!s->set.pool_wait || !wait_for_one(s, deadline_ns))
            break;
    }
    pthread_mutex_unlock(&pool->mutex);
    return hf__fail(err, HF_UNAVAILABLE,
                    "all %lld connections are in use; raise max_active in the URL",
                    (long long)s->set.max_active);
}

/* Those at the end of the list that have been idle for too long, or are too many. Mutex held. */
static struct hf__redis_conn *cut_old(struct hf__redis *s, int64_t now_ns)
{
    struct hf__redis_conn **at = &s->pool.idle;
    int64_t kept = 0;

    while (*at != NULL && kept < s->set.max_idle &&
           now_ns - (*at)->idle_since_ns <= s->set.idle_timeout_ms * HF__NS_PER_MS) {
        at = &(*at)->next;
        kept++;
    }
    struct hf__redis_conn *old = *at;
    *at = NULL;
    s->pool.idle_count = kept;
    return old;
}

void hf__redis_give(struct hf__redis *s, struct hf__redis_conn *c)
{
    struct hf__redis_pool *pool = &s->pool;
    struct hf__redis_conn *old = NULL;

    if (c->demoted && s->sentinels.count > 0) {
        s->sentinels.demoted = true;
        hf__redis_pool_flush(s);
    }
    if (c->broken || c->epoch != s->pool.epoch) {
        hf__redis_hang_up(c); /* before anything else is sent for the same ticket */
        c = NULL;
    } else {
        c->idle_since_ns = hf__now_ns(s->base.host->env);
    }
    pthread_mutex_lock(&pool->mutex);
    pool->active--;
    if (c != NULL) {
        c->next = pool->idle;
        pool->idle = c;
        old = cut_old(s, c->idle_since_ns);
    }
    pthread_cond_signal(&pool->free_one);
    pthread_mutex_unlock(&pool->mutex);
    hang_up_all(old);
}
