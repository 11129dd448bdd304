/* See backoff.h. */
#include "base_backoff.h"

#include "base_banned.h"

#define PAUSE_MIN_MS  25
#define DOUBLINGS_MAX 20

int64_t hf__backoff_ns(const struct hf_env *env, unsigned failures, int64_t most_ms)
{
    int64_t ms = (int64_t)PAUSE_MIN_MS << (failures < DOUBLINGS_MAX ? failures : DOUBLINGS_MAX);
    uint32_t jitter = 0;

    if (ms > most_ms)
        ms = most_ms;
    env->random(env->ctx, &jitter, sizeof jitter);
    return (ms / 2 + jitter % ms) * HF__NS_PER_MS;
}
