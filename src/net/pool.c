/* See pool.h. The mutex is for the fields; nothing that may block is done with it held: neither
 * dialling nor hanging up, both of which may wait for a server that does not answer.
 *
 * A connection counts as active from before it is dialled: threads that dial at the same time would
 * otherwise together overrun max_active, which is there to spare the server. */
#include "net/pool.h"

#include <time.h>

#include "base/backoff.h"
#include "base/thread.h"

#include "base/banned.h"

#define BACKOFF_MAX_MS 250

/* The first pause before a crowded server is asked again, up to 16 times as long. */
#define CROWDED_MS 25

int hf__pool_init(struct hf__pool *pool, const struct hf__pool_type *type, void *owner,
                  const struct hf_env *env, hf_error *err)
{
    *pool = (struct hf__pool){.type = type, .owner = owner, .env = env};
    pthread_mutex_init(&pool->mutex, NULL);
    hf__cond_init(&pool->free_one);
    if (env->random(env->ctx, &pool->jitter, sizeof pool->jitter) != 0)
        return hf__fail(err, HF_SYSTEM, "there is no randomness to be had");
    pool->jitter |= 1; /* a xorshift that is zero stays zero */
    return 0;
}

static void hang_up_all(struct hf__pool *pool, struct hf__pooled *c)
{
    while (c != NULL) {
        struct hf__pooled *next = c->next;
        pool->type->hang_up(c);
        c = next;
    }
}

void hf__pool_clear(struct hf__pool *pool)
{
    hang_up_all(pool, pool->idle);
    pthread_cond_destroy(&pool->free_one);
    pthread_mutex_destroy(&pool->mutex);
}

uint64_t hf__pool_jitter(struct hf__pool *pool, uint64_t below)
{
    pthread_mutex_lock(&pool->mutex);
    uint64_t number = hf__jitter(&pool->jitter, below);
    pthread_mutex_unlock(&pool->mutex);
    return number;
}

void hf__pool_sleep(struct hf__pool *pool, int64_t ms)
{
    int64_t ns = (ms / 2 + (int64_t)hf__pool_jitter(pool, (uint64_t)ms)) * HF__NS_PER_MS;
    struct timespec span = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};

    nanosleep(&span, NULL);
}

/* Dialling ----------------------------------------------------------------- */

/* It begins with the host that answered last: with a list of replicas of which one may be written
 * to, every other order would ask the wrong ones first, each time. */
int hf__pool_dial(struct hf__pool *pool, int64_t deadline_ns, struct hf__pooled **ret_conn,
                  hf_error *err)
{
    size_t count = pool->host_count;
    int r = hf__fail(err, HF_UNAVAILABLE, "%s: no server is named", pool->type->store);

    pthread_mutex_lock(&pool->mutex);
    size_t first = pool->best_host;
    pthread_mutex_unlock(&pool->mutex);
    for (size_t i = 0; i < count; i++) {
        size_t host = (first + i) % count;
        int64_t now_ns = hf__now_ns(pool->env);
        int64_t share_ns = (deadline_ns - now_ns) / (int64_t)(count - i);
        r = pool->type->dial(pool->owner, host, now_ns + share_ns, ret_conn, err);
        if (r == 0) {
            pthread_mutex_lock(&pool->mutex);
            pool->best_host = host;
            pool->failures = 0;
            pthread_mutex_unlock(&pool->mutex);
            return 0;
        }
    }
    return r;
}

/* Lending ------------------------------------------------------------------ */

/* The mutex is held, and given back; the connection counts as active already. Soon after a failure
 * nobody dials: a thousand threads would otherwise all knock at a server that is just starting
 * again. */
static int lend_new(struct hf__pool *pool, int64_t deadline_ns, struct hf__pooled **ret_conn,
                    hf_error *err)
{
    int64_t now_ns = hf__now_ns(pool->env);

    if (pool->failures == 0 || now_ns >= pool->retry_ns) {
        hf_error why = {0};
        pthread_mutex_unlock(&pool->mutex);
        int r = hf__pool_dial(pool, deadline_ns, ret_conn, &why);
        if (r == 0)
            return 0;
        why.code = r;
        pthread_mutex_lock(&pool->mutex);
        /* Who asks bears an outage for the time it has: within that it must be tried more than
         * once. */
        int64_t pause_ns = hf__backoff_ns(pool->env, pool->failures++, BACKOFF_MAX_MS);
        int64_t longest_ns = (deadline_ns - now_ns) / 4;
        pool->retry_ns = hf__now_ns(pool->env) + (pause_ns < longest_ns ? pause_ns : longest_ns);
        pool->failure = why;
    }
    hf_error failure = pool->failure;
    pool->active--;
    pthread_cond_signal(
        &pool->free_one); /* the next who waits is to hear the same, not to wait on */
    pthread_mutex_unlock(&pool->mutex);
    if (err != NULL)
        *err = failure;
    return failure.code;
}

/* The mutex is held, and given back. False: it was dead, and the mutex is held again. Whether it is
 * alive is asked now and not when it was given back: servers and firewalls end connections that are
 * idle. */
static bool lend_idle(struct hf__pool *pool, struct hf__pooled *c, int64_t deadline_ns)
{
    int64_t idle_ns = hf__now_ns(pool->env) - c->idle_since_ns;

    pool->idle = c->next;
    pool->active++;
    pthread_mutex_unlock(&pool->mutex);
    if (idle_ns <= pool->limits.idle_timeout_ms * HF__NS_PER_MS &&
        (pool->type->is_alive == NULL ||
         pool->type->is_alive(pool->owner, c, idle_ns, deadline_ns)))
        return true;
    pool->type->hang_up(c);
    pthread_mutex_lock(&pool->mutex);
    pool->active--;
    return false;
}

static int take(struct hf__pool *pool, int64_t deadline_ns, struct hf__pooled **ret_conn,
                hf_error *err)
{
    const struct hf__pool_limits *limits = &pool->limits;

    pthread_mutex_lock(&pool->mutex);
    for (;;) {
        struct hf__pooled *c = pool->idle;
        if (c != NULL && lend_idle(pool, c, deadline_ns)) {
            *ret_conn = c;
            return 0;
        }
        if (c != NULL)
            continue;
        if (pool->active < limits->max_active) {
            pool->active++;
            return lend_new(pool, deadline_ns, ret_conn, err);
        }
        if (limits->fail_at_once ||
            !hf__cond_wait(&pool->free_one, &pool->mutex, pool->env, deadline_ns))
            break;
    }
    pthread_mutex_unlock(&pool->mutex);
    return hf__fail(err, HF_UNAVAILABLE,
                    "%s: all %lld connections are in use; raise max_active in the URL",
                    pool->type->store, (long long)limits->max_active);
}

/* A server that has no connection left for us is not down: those who have them give them back,
 * often within milliseconds. So that one failure is waited out, while there is time for another
 * try. */
int hf__pool_take(struct hf__pool *pool, int64_t deadline_ns, struct hf__pooled **ret_conn,
                  hf_error *err)
{
    hf_error why = {0};
    int r;

    for (unsigned tries = 0;; tries++) {
        int64_t pause_ms = CROWDED_MS << (tries < 4 ? tries : 4);
        r = take(pool, deadline_ns, ret_conn, &why);
        if (r == 0 || pool->type->is_crowded == NULL || !pool->type->is_crowded(&why) ||
            hf__now_ns(pool->env) + 2 * pause_ms * HF__NS_PER_MS > deadline_ns)
            break;
        hf__pool_sleep(pool, pause_ms);
    }
    if (r != 0 && err != NULL)
        *err = why;
    return r;
}

/* Those at the end of the list that have been idle for too long, or are too many. Mutex held. */
static struct hf__pooled *cut_old(struct hf__pool *pool, int64_t now_ns)
{
    struct hf__pooled **at = &pool->idle;
    int64_t oldest_ns = now_ns - pool->limits.idle_timeout_ms * HF__NS_PER_MS;

    for (int64_t kept = 0;
         *at != NULL && kept < pool->limits.max_idle && (*at)->idle_since_ns >= oldest_ns; kept++)
        at = &(*at)->next;
    struct hf__pooled *old = *at;
    *at = NULL;
    return old;
}

void hf__pool_give(struct hf__pool *pool, struct hf__pooled *c, bool whole)
{
    struct hf__pooled *old = NULL;

    c->idle_since_ns = hf__now_ns(pool->env);
    pthread_mutex_lock(&pool->mutex);
    if (whole && c->epoch == pool->epoch) {
        c->next = pool->idle;
        pool->idle = c;
        old = cut_old(pool, c->idle_since_ns);
    } else {
        /* Hung up before its place is free: a transaction that is open on it holds the rows that
         * whoever takes the place asks for. */
        pthread_mutex_unlock(&pool->mutex);
        pool->type->hang_up(c);
        pthread_mutex_lock(&pool->mutex);
    }
    pool->active--;
    pthread_cond_signal(&pool->free_one);
    pthread_mutex_unlock(&pool->mutex);
    hang_up_all(pool, old);
}

void hf__pool_flush(struct hf__pool *pool)
{
    pthread_mutex_lock(&pool->mutex);
    struct hf__pooled *old = pool->idle;
    pool->epoch++; /* by which hf__pool_give() knows those that are lent now */
    pool->failures = 0;
    pool->idle = NULL;
    pthread_mutex_unlock(&pool->mutex);
    hang_up_all(pool, old);
}
