/* Sets of connections, one to each node, lent to one operation at a time. The last set given back
 * is the first to be lent again; a line that still owes replies stays in its set. */
#include <stdlib.h>
#include <time.h>

#include "stores/redlock/redlock.h"

#include "util/banned.h"

static void free_set(struct hf__redlock *s, struct hf__redlock_set *set)
{
    for (size_t i = 0; i < s->count; i++)
        hf__redlock_hang_up(&set->lines[i]);
    free(set);
}

static void free_all(struct hf__redlock *s, struct hf__redlock_set *set)
{
    while (set != NULL) {
        struct hf__redlock_set *next = set->next;
        free_set(s, set);
        set = next;
    }
}

void hf__redlock_pool_clear(struct hf__redlock *s)
{
    free_all(s, s->idle);
    s->idle = NULL;
}

/* False: the deadline has come. Mutex held. */
static bool wait_for_one(struct hf__redlock *s, int64_t deadline_ns)
{
    int64_t left_ns = deadline_ns - hf__now_ns(s->base.host->env);
    struct timespec until;

    if (left_ns <= 0)
        return false;
    clock_gettime(CLOCK_MONOTONIC, &until);
    left_ns += until.tv_nsec;
    until.tv_sec += left_ns / 1000000000;
    until.tv_nsec = left_ns % 1000000000;
    pthread_cond_timedwait(&s->free_one, &s->mutex, &until);
    return true;
}

static int none_left(struct hf__redlock *s, hf_error *err)
{
    return hf__fail(err, HF_UNAVAILABLE,
                    "all %lld sets of connections are in use; raise max_active in the URL",
                    (long long)s->set.max_active);
}

int hf__redlock_take(struct hf__redlock *s, int64_t deadline_ns, struct hf__redlock_set **ret_set,
                     hf_error *err)
{
    pthread_mutex_lock(&s->mutex);
    while (s->idle == NULL && s->active >= s->set.max_active) {
        if (!s->set.pool_wait || !wait_for_one(s, deadline_ns)) {
            pthread_mutex_unlock(&s->mutex);
            return none_left(s, err);
        }
    }
    struct hf__redlock_set *set = s->idle;
    if (set != NULL)
        s->idle = set->next;
    s->active++;
    pthread_mutex_unlock(&s->mutex);

    if (set == NULL)
        set = calloc(1, sizeof *set + s->count * sizeof set->lines[0]);
    if (set == NULL) {
        pthread_mutex_lock(&s->mutex);
        s->active--;
        pthread_mutex_unlock(&s->mutex);
        return hf__fail(err, HF_NO_MEMORY, NULL);
    }
    *ret_set = set;
    return 0;
}

/* Those at the end of the list that have been idle for too long, or are too many. Mutex held. */
static struct hf__redlock_set *cut_old(struct hf__redlock *s, int64_t now_ns)
{
    struct hf__redlock_set **at = &s->idle;
    int64_t kept = 0;

    while (*at != NULL && kept < s->set.max_idle &&
           now_ns - (*at)->idle_since_ns <= s->set.idle_timeout_ms * HF__NS_PER_MS) {
        at = &(*at)->next;
        kept++;
    }
    struct hf__redlock_set *old = *at;
    *at = NULL;
    return old;
}

void hf__redlock_give(struct hf__redlock *s, struct hf__redlock_set *set)
{
    set->idle_since_ns = hf__now_ns(s->base.host->env);
    pthread_mutex_lock(&s->mutex);
    s->active--;
    set->next = s->idle;
    s->idle = set;
    struct hf__redlock_set *old = cut_old(s, set->idle_since_ns);
    pthread_cond_signal(&s->free_one);
    pthread_mutex_unlock(&s->mutex);
    free_all(s, old);
}
