/* Threads of our own, and conditions with a deadline. */
#ifndef HF_BASE_THREAD_H
#define HF_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

#include "base_env.h"

/* Starts a thread that handles no signal: they belong to the program. `name` is what debuggers and
 * top show (15 bytes); `stack` is its size in bytes, or 0 for the system's default. 0, HF_NO_MEMORY
 * or HF_SYSTEM. */
int hf__thread_start(pthread_t *ret_thread, const char *name, size_t stack, void *(*run)(void *),
                     void *arg);

/* A condition for hf__cond_wait(). Cannot fail on Linux. */
void hf__cond_init(pthread_cond_t *cond);

/* Until it is signalled, or now and then without that: look again. Mutex held. False: the deadline
 * has come. */
bool hf__cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct hf_env *env,
                   int64_t deadline_ns);

#endif
