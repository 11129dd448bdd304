/* What a program is told by events instead of callbacks: how that ended which it has started, and what
 * becomes of the locks it got so. A descriptor is readable while one stands there. Mutex held throughout. */
#ifndef HF_CORE_EVENTS_H
#define HF_CORE_EVENTS_H

#include "holdfast.h"

struct hf__started;

enum hf__tell {
    HF__TELL_OUTCOME = 1,
    HF__TELL_AT_RISK = 2,
    HF__TELL_LOST = 4,
    HF__TELL_WANTED = 8
};

/* One more thing to tell about what was started. */
void hf__event_push(struct hf__started *started, enum hf__tell what);

/* Tells of a lock that was acquired so; nothing for any other. */
void hf__tell_event(hf_lock *lock, enum hf__tell what);
void hf__forget_events(hf_lock *lock); /* it is given back */

/* The client is closed: what nobody has taken goes. */
void hf__drop_events(hf_client *client);

#endif
