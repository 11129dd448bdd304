/* Waiting for others: conditions with a deadline of our clock, and pauses that grow. */
#ifndef HF_UTIL_PATIENCE_H
#define HF_UTIL_PATIENCE_H

#include <pthread.h>
#include <stdbool.h>

#include "util/env.h"

/* A condition for hf__cond_wait(). Cannot fail on Linux. */
void hf__cond_init(pthread_cond_t *cond);

/* Until it is signalled, or now and then without that: look again. Mutex held. False: the deadline
 * has come. */
bool hf__cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct hf_env *env,
                   int64_t deadline_ns);

/* How long to leave a server alone that has failed so often in a row: twice as long each time, half
 * more or less at random, `most_ms` at most but for that. */
int64_t hf__backoff_ns(const struct hf_env *env, unsigned failures, int64_t most_ms);

#endif
