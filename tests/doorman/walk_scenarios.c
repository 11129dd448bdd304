/* The scenarios: small enough to be walked to the end, together all that the contract speaks of. */
#include "walk.h"

#define X(ttl, delay, n) {.mode = HF_EXCLUSIVE, .ttl_ms = ttl, .delay_ms = delay, .bids = n}
#define S(lim, ttl, delay, n) {.mode = HF_SHARED, .limit = lim, .ttl_ms = ttl, .delay_ms = delay, .bids = n}

const struct scenario scenarios[] = {
    {.name = "two writers", .tick_ms = 1000, .life = 1, .messages = 3, .deaths = 1,
     .clients = 2, .client = {X(2000, 0, 1), X(2000, 0, 1)}},
};
const size_t scenario_count = sizeof scenarios / sizeof scenarios[0];
