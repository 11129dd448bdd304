/* Watches (hf_watch_new() and the rest), as the client sees them. */
#ifndef HF_CORE_WATCH_H
#define HF_CORE_WATCH_H

#include "holdfast.h"

/* The client is closed: wakes whoever sleeps in hf_watch_next(), and makes every descriptor readable
 * for good. Mutex held. */
void hf__watches_close(hf_client *client);

#endif
