/* See workers.h. Threads are started under the client's mutex, so that two callers do not start one
 * too many; that takes some 20 us, once. */
#include "core_workers.h"

#include "core_client.h"

#include "base_banned.h"

void hf__workers_init(struct hf__workers *workers)
{
    pthread_cond_init(&workers->has_job, NULL);
}

void hf__workers_clear(struct hf__workers *workers)
{
    hf__heap_clear(&workers->jobs);
    pthread_cond_destroy(&workers->has_job);
}

static void *run(void *arg)
{
    struct hf__workers *workers = arg;

    hf__lock_client(workers->client);
    for (;;) {
        if (hf__heap_first(&workers->jobs) != NULL) {
            workers->work(workers->client);
        } else if (workers->stop) {
            break;
        } else {
            workers->idle++;
            pthread_cond_wait(&workers->has_job, &workers->client->mutex);
            workers->idle--;
        }
    }
    hf__unlock_client(workers->client);
    return NULL;
}

static void start_one(struct hf__workers *workers)
{
    pthread_t *thread = &workers->threads[workers->started];

    if (!workers->stop && workers->started < workers->most &&
        hf__thread_start(thread, workers->thread_name, workers->stack, run, workers) == 0)
        workers->started++;
}

bool hf__workers_add(struct hf__workers *workers, struct hf__timer *job, int64_t urgency)
{
    if (workers->started == 0)
        start_one(workers);
    if (workers->started == 0)
        return false;
    hf__heap_set(&workers->jobs, job, urgency);
    pthread_cond_signal(&workers->has_job);
    return true;
}

void hf__workers_spread(struct hf__workers *workers)
{
    if (workers->idle < workers->jobs.count)
        start_one(workers);
}

void hf__workers_help(struct hf__workers *workers)
{
    if (workers->idle == 0)
        start_one(workers);
}

void hf__workers_stop(struct hf__workers *workers)
{
    hf__lock_client(workers->client);
    workers->stop = true; /* from here on `started` does not change */
    pthread_cond_broadcast(&workers->has_job);
    hf__unlock_client(workers->client);
    for (unsigned i = 0; i < workers->started; i++)
        pthread_join(workers->threads[i], NULL);
}

bool hf__workers_include_me(const struct hf__workers *workers)
{
    for (unsigned i = 0; i < workers->started; i++) {
        if (pthread_equal(workers->threads[i], pthread_self()))
            return true;
    }
    return false;
}
