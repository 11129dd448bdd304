/* What belongs to this process and not to a forked child: that the client may be used here, and
 * random bits for tickets. */
#ifndef HF_CORE_FORK_GUARD_H
#define HF_CORE_FORK_GUARD_H

#include <stdbool.h>

#include "base_ticket.h"
#include "holdfast.h"

struct hf__fork_guard;

void hf__fork_guard_init(hf_client *client);
void hf__fork_guard_clear(hf_client *client);

/* This is a child of the process that opened the client. */
bool hf__is_forked(const hf_client *client);

/* A ticket that nobody had before. 0 or HF_SYSTEM. Mutex held, may be released meanwhile. */
int hf__draw_ticket(hf_client *client, struct hf__ticket *ret_ticket);

#endif
