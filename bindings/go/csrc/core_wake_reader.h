/* Who reads what the store calls out.
 *
 * A store calls many waiters on one descriptor. The keeper reads it when nobody else does. But a
 * caller that has nothing to do but wait reads it itself, and so a call that is for it costs no
 * second thread; calls for others it passes on, as the keeper would. One at a time reads: the first
 * that goes to sleep while the keeper does. When it is through, the keeper reads again, which takes
 * no waking up. */
#ifndef HF_CORE_WAKE_READER_H
#define HF_CORE_WAKE_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "holdfast.h"

struct hf__waiter;

struct hf__wake_reader {
    enum {
        HF__WAKE_NOT_ASKED,
        HF__WAKE_BEING_ASKED,
        HF__WAKE_ASKED
    } state;          /* the store, for its wake_fd */
    bool listens;     /* it has one, and it is read */
    int64_t retry_ns; /* NOT_ASKED: no descriptor was free; not before then */
    int wake_fd, nudge_fd;
    struct hf__waiter *caller; /* who reads wake_fd now; NULL: the keeper */
    bool keeper_reads;         /* at this moment */
    bool nudged;               /* nudge_fd is readable */
};

void hf__wake_reader_init(struct hf__wake_reader *reader);

/* Asks the store for its wake-up descriptor, the first time only, or until one is free. Mutex held,
 * released meanwhile. */
void hf__wake_reader_open(hf_client *client);
void hf__wake_reader_close(hf_client *client);

/* Whether the store can call this client about what it is asked from now on. Mutex held. */
bool hf__wake_reader_listens(const hf_client *client);

/* For the keeper: there is something to read. Mutex not held. */
void hf__wake_reader_serve(hf_client *client);

/* Mutex held, released meanwhile. Reads until there are news for this waiter; returns without if
 * somebody else reads, or has to. */
void hf__wake_reader_borrow(hf_client *client, struct hf__waiter *waiter);

/* Mutex held. Wakes the caller that reads. */
void hf__wake_reader_nudge(hf_client *client);

#endif
