/* A lock that was granted, as it is told. */
#ifndef SERVE_GRANT_H
#define SERVE_GRANT_H

#include "reply.h"

/* Its ticket, generation, sequencer and lease (ttl_ms, which a lock does not tell), as the fields of an object that is
 * open. */
void grant_json(struct cli_json *json, const hf_lock *lock, int64_t ttl_ms);

/* The same as a reply. */
void grant_reply(struct reply *reply, const hf_lock *lock, int64_t ttl_ms);

#endif
