/* See workers.h. A thread is started when there is a job and nobody is idle, and stays. */
#include "workers.h"

#include <signal.h>

#include "base/banned.h"

void workers_init(struct workers *workers, struct loop *loop)
{
    *workers = (struct workers){
        .loop = loop, .mutex = PTHREAD_MUTEX_INITIALIZER, .news = PTHREAD_COND_INITIALIZER};
    workers->last = &workers->first;
}

/* Mutex held, released meanwhile. NULL: it is over. */
static struct job *next_job(struct workers *workers)
{
    while (workers->first == NULL) {
        if (workers->ending)
            return NULL;
        workers->idle++;
        pthread_cond_wait(&workers->news, &workers->mutex);
        workers->idle--;
    }
    struct job *job = workers->first;
    workers->first = job->next;
    if (workers->first == NULL)
        workers->last = &workers->first;
    workers->waiting--;
    return job;
}

static void *work(void *arg)
{
    struct workers *workers = arg;
    struct job *job;

    pthread_mutex_lock(&workers->mutex);
    while ((job = next_job(workers)) != NULL) {
        pthread_mutex_unlock(&workers->mutex);
        job->work(job);
        loop_post(workers->loop, &job->posted);
        pthread_mutex_lock(&workers->mutex);
    }
    pthread_mutex_unlock(&workers->mutex);
    return NULL;
}

/* Mutex held. Signals are the loop's. */
static bool start_thread(struct workers *workers)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool ok = pthread_create(&workers->threads[workers->started], NULL, work, workers) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    workers->started += ok;
    return ok;
}

bool workers_give(struct workers *workers, struct job *job)
{
    pthread_mutex_lock(&workers->mutex);
    bool ok = workers->waiting < WORKERS_QUEUE;
    if (ok && workers->idle <= workers->waiting && workers->started < WORKERS_MAX)
        ok = start_thread(workers) || workers->started > 0;
    if (ok) {
        job->next = NULL;
        *workers->last = job;
        workers->last = &job->next;
        workers->waiting++;
        pthread_cond_signal(&workers->news);
    }
    pthread_mutex_unlock(&workers->mutex);
    return ok;
}

void workers_clear(struct workers *workers)
{
    pthread_mutex_lock(&workers->mutex);
    workers->ending = true;
    pthread_cond_broadcast(&workers->news);
    pthread_mutex_unlock(&workers->mutex);
    for (size_t i = 0; i < workers->started; i++)
        pthread_join(workers->threads[i], NULL);
    pthread_cond_destroy(&workers->news);
    pthread_mutex_destroy(&workers->mutex);
}
