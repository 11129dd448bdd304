/* See pool.h. The mutex is for the fields; nothing that may block is done with it held. */
#include "net/pool.h"

#include <time.h>

#include "util/banned.h"

int hf__pool_init(struct hf__pool *pool, const struct hf__pool_type *type, void *owner,
                  const struct hf_env *env, hf_error *err)
{
    pthread_condattr_t attr;

    *pool = (struct hf__pool){.type = type, .owner = owner, .env = env};
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&pool->free_one, &attr);
    pthread_condattr_destroy(&attr);
    if (env->random(env->ctx, &pool->dice, sizeof pool->dice) != 0)
        return hf__fail(err, HF_SYSTEM, "there is no randomness to be had");
    pool->dice |= 1;
    return 0;
}

void hf__pool_clear(struct hf__pool *pool)
{
    for (struct hf__pooled *c = pool->idle, *next; c != NULL; c = next) {
        next = c->next;
        pool->type->hang_up(c);
    }
    pthread_cond_destroy(&pool->free_one);
    pthread_mutex_destroy(&pool->mutex);
}

uint64_t hf__pool_dice(struct hf__pool *pool, uint64_t below)
{
    pthread_mutex_lock(&pool->mutex);
    pool->dice ^= pool->dice << 13;
    pool->dice ^= pool->dice >> 7;
    pool->dice ^= pool->dice << 17;
    uint64_t number = pool->dice % below;
    pthread_mutex_unlock(&pool->mutex);
    return number;
}

void hf__pool_sleep(struct hf__pool *pool, int64_t ms)
{
    int64_t ns = (ms / 2 + (int64_t)hf__pool_dice(pool, (uint64_t)ms)) * HF__NS_PER_MS;
    struct timespec span = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};

    nanosleep(&span, NULL);
}

/* Dialling ----------------------------------------------------------------- */

static size_t best_host(struct hf__pool *pool)
{
    pthread_mutex_lock(&pool->mutex);
    size_t best = pool->best_host;
    pthread_mutex_unlock(&pool->mutex);
    return best;
}

static void note_host(struct hf__pool *pool, size_t host)
{
    pthread_mutex_lock(&pool->mutex);
    pool->best_host = host;
    pthread_mutex_unlock(&pool->mutex);
}

int hf__pool_dial(struct hf__pool *pool, int64_t deadline_ns, struct hf__pooled **ret_conn,
                  hf_error *err)
{
    size_t count = pool->host_count, first = best_host(pool);
    int r = hf__fail(err, HF_UNAVAILABLE, "%s: no server is named", pool->type->store);

    for (size_t i = 0; i < count; i++) {
        size_t host = (first + i) % count;
        int64_t now_ns = hf__now_ns(pool->env);
        int64_t share_ns = (deadline_ns - now_ns) / (int64_t)(count - i);
        r = pool->type->dial(pool->owner, host, now_ns + share_ns, ret_conn, err);
        if (r == 0) {
            note_host(pool, host);
            return 0;
        }
    }
    return r;
}

/* Lending ------------------------------------------------------------------ */

/* False: the deadline has come. Mutex held. */
static bool wait_for_one(struct hf__pool *pool, int64_t deadline_ns)
{
    int64_t left_ns = deadline_ns - hf__now_ns(pool->env);
    struct timespec until;

    if (left_ns <= 0)
        return false;
    clock_gettime(CLOCK_MONOTONIC, &until);
    left_ns += until.tv_nsec;
    until.tv_sec += left_ns / 1000000000;
    until.tv_nsec = left_ns % 1000000000;
    pthread_cond_timedwait(&pool->free_one, &pool->mutex, &until);
    return true;
}

static bool enter(struct hf__pool *pool, int64_t deadline_ns)
{
    bool room;

    pthread_mutex_lock(&pool->mutex);
    while (!(room = pool->active < pool->limits.max_active) && wait_for_one(pool, deadline_ns))
        continue;
    pool->active += room;
    pthread_mutex_unlock(&pool->mutex);
    return room;
}

static void leave(struct hf__pool *pool)
{
    pthread_mutex_lock(&pool->mutex);
    pool->active--;
    pthread_cond_signal(&pool->free_one);
    pthread_mutex_unlock(&pool->mutex);
}

static struct hf__pooled *take_idle(struct hf__pool *pool)
{
    pthread_mutex_lock(&pool->mutex);
    struct hf__pooled *c = pool->idle;
    if (c != NULL) {
        pool->idle = c->next;
        pool->idle_count--;
    }
    pthread_mutex_unlock(&pool->mutex);
    return c;
}

/* False: there are enough of them. */
static bool put_idle(struct hf__pool *pool, struct hf__pooled *c)
{
    c->idle_since_ns = hf__now_ns(pool->env);
    pthread_mutex_lock(&pool->mutex);
    bool keep = pool->idle_count < pool->limits.max_idle;
    if (keep) {
        c->next = pool->idle;
        pool->idle = c;
        pool->idle_count++;
    }
    pthread_mutex_unlock(&pool->mutex);
    return keep;
}

int hf__pool_take(struct hf__pool *pool, int64_t deadline_ns, struct hf__pooled **ret_conn,
                  hf_error *err)
{
    int64_t oldest_ns = hf__now_ns(pool->env) - pool->limits.idle_timeout_ms * HF__NS_PER_MS;

    if (!enter(pool, deadline_ns))
        return hf__fail(err, HF_UNAVAILABLE, "%s: all connections are in use; raise max_active",
                        pool->type->store);
    for (struct hf__pooled *c; (c = take_idle(pool)) != NULL;) {
        if (c->idle_since_ns > oldest_ns && pool->type->is_quiet(c)) {
            *ret_conn = c;
            return 0;
        }
        pool->type->hang_up(c);
    }
    int r = hf__pool_dial(pool, deadline_ns, ret_conn, err);
    if (r != 0)
        leave(pool);
    return r;
}

void hf__pool_give(struct hf__pool *pool, struct hf__pooled *conn, bool whole)
{
    if (!whole || !put_idle(pool, conn))
        pool->type->hang_up(conn);
    leave(pool);
}
