/* Pauses that grow with every failure, and a little chance in them, so that a crowd does not move in
 * step. */
#ifndef HF_BASE_BACKOFF_H
#define HF_BASE_BACKOFF_H

#include "base_env.h"

/* A number below `below` (> 0). `*state` is any number but 0 at first, and not for secrets. */
static inline uint64_t hf__jitter(uint64_t *state, uint64_t below)
{
    *state ^= *state << 13; /* xorshift64 */
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state % below;
}

/* How long to leave a server alone that has failed so often in a row: twice as long each time, half
 * more or less at random, `most_ms` at most but for that. */
int64_t hf__backoff_ns(const struct hf_env *env, unsigned failures, int64_t most_ms);

#endif
