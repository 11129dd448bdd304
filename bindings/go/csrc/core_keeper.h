/* The keeper: the one thread of a client that sleeps on time.
 *
 * It waits for the earliest timer, a call from the store or a cancel, and never does anything that
 * could block: round trips are the renewer's and the withdrawer's, callbacks the notifier's. So a
 * lock is declared lost on time whatever hangs. Each lock has one timer, set to the next moment at
 * which something is due by its duty.
 *
 * All with the mutex held, unless it says otherwise. */
#ifndef HF_CORE_KEEPER_H
#define HF_CORE_KEEPER_H

#include <pthread.h>
#include <stdbool.h>

#include "base_heap.h"
#include "holdfast.h"

struct hf__keeper {
    bool runs, stop;
    pthread_t thread;
    int epoll_fd, timer_fd, kick_fd;
    int64_t armed_ns; /* what timer_fd is set to */
    struct hf__heap timers;
};

void hf__keeper_init(struct hf__keeper *keeper);

/* Starts the thread if it does not run. HF_SYSTEM. */
int hf__keeper_start(hf_client *client, hf_error *err);
void hf__keeper_stop(hf_client *client); /* joins; mutex not held */

/* Sets the lock's timer to the next moment something is due, or takes it out. */
void hf__keeper_schedule(hf_lock *lock);

/* How long a poll() that should end at `until_ns` may last at most. */
int hf__keeper_limit_ms(const hf_client *client, int64_t until_ns);

/* It will see when this is fired; it forgets it by itself when it is freed. HF_SYSTEM. */
int hf__keeper_watch(hf_client *client, hf_cancel *cancel);

/* The store's wake-up descriptor is read by the keeper from now on; is lent to a caller, or given
 * back. 0 or negative. */
int hf__keeper_read_wakes(hf_client *client);
int hf__keeper_lend_wakes(hf_client *client, bool lent);

#endif
