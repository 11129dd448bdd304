/* A few threads that work off jobs, the most urgent first.
 *
 * A client has four of these: the renewer, the withdrawer, the notifier and the runner. They differ in what a
 * job is, and in nothing else. The first thread starts with the first job, another one when
 * somebody sees that a pressing job waits behind one that hangs. */
#ifndef HF_CORE_WORKERS_H
#define HF_CORE_WORKERS_H

#include <pthread.h>
#include <stdbool.h>

#include "base_heap.h"
#include "holdfast.h"

#define HF__WORKERS_MAX 4

struct hf__workers {
    hf_client *client;
    const char *thread_name; /* at most 15 bytes */
    size_t stack;            /* 0: the default size, for threads that run the user's callbacks */
    unsigned most;           /* threads, HF__WORKERS_MAX at most */

    /* Takes one or more jobs off `jobs` and does them. Mutex held, released meanwhile. */
    void (*work)(hf_client *client);

    struct hf__heap jobs; /* by urgency: the lowest first */
    pthread_cond_t has_job;
    pthread_t threads[HF__WORKERS_MAX];
    unsigned started, idle;
    bool stop;
};

void hf__workers_init(struct hf__workers *workers);
void hf__workers_clear(struct hf__workers *workers); /* they are stopped, or never started */

/* Mutex held. Adds a job, or moves one that is there. False: there is no thread to do it, and none
 * could be started. */
bool hf__workers_add(struct hf__workers *workers, struct hf__timer *job, int64_t urgency);

/* Mutex held. Starts one more thread if more jobs stand than threads wait for one: no job is to stand
 * behind one that hangs. */
void hf__workers_spread(struct hf__workers *workers);

/* Mutex held. A job is in danger of being done too late: starts one more thread if all are busy. */
void hf__workers_help(struct hf__workers *workers);

/* Does what is left to do, and joins. Takes the mutex. */
void hf__workers_stop(struct hf__workers *workers);

/* Whether this is one of its threads. Mutex held. */
bool hf__workers_include_me(const struct hf__workers *workers);

#endif
