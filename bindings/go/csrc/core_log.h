/* What a client tells the program's log. An entry is made where something happens, under the mutex, and
 * told by the notifier, without it. Nothing is made if nobody listens. */
#ifndef HF_CORE_LOG_H
#define HF_CORE_LOG_H

#include "base_error.h"
#include "base_heap.h"

struct hf__log;

/* HF_NO_MEMORY. */
int hf__log_open(hf_client *client, hf_log_callback *on_log, void *arg);
void hf__log_free(struct hf__log *log); /* NULL is fine */

/* Mutex held. `code` is why, HF_OK if it goes without saying. */
void hf__log(hf_client *client, hf_log_kind kind, int code, const char *format, ...)
    HF__PRINTF(4, 5);

/* The same of a lock, whose name comes first in the text. With LOST, its cause. */
void hf__log_lock(const hf_lock *lock, hf_log_kind kind, int code, const char *format, ...)
    HF__PRINTF(4, 5);

/* Mutex held. If the notifier's turn is one of the log's: tells it, the mutex released meanwhile. */
bool hf__log_work(hf_client *client, const struct hf__timer *turn);

#endif
