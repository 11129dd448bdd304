/* The scenarios: each small enough to be walked to its end, together all that the contract speaks of.
 *
 * A far client's messages may be late, lost, overtaken or doubled; a near one's are not, which keeps
 * three clients within reach (all wake-ups, near or far, may be late, lost or doubled). That a client
 * dies needs no move of its own in most of them: it is a client that does nothing more, and every walk
 * contains that. */
#include "walk.h"

#define WRITER(ttl, delay) .mode = HF_EXCLUSIVE, .ttl_ms = ttl, .delay_ms = delay
#define READER(most, ttl, delay)                                                                   \
    .mode = HF_SHARED, .limit = most, .ttl_ms = ttl, .delay_ms = delay
#define FAR(...)  {__VA_ARGS__, .bids = 1}
#define FAR2(...) {__VA_ARGS__, .bids = 2}
#define NEAR(...) {__VA_ARGS__, .bids = 1, .near = true}
#define NEAR2(...) {__VA_ARGS__, .bids = 2, .near = true}

const struct scenario scenarios[] = {
    {.name = "two writers", .tick_ms = 1000, .life = 1, .messages = 2, .clients = 2,
     .client = {FAR(WRITER(1000, 0)), FAR(WRITER(1000, 0))}},
    {.name = "requests twice, two bids", .tick_ms = 1000, .life = 1, .messages = 2, .twice = true,
     .clients = 2, .client = {FAR2(WRITER(1000, 0)), NEAR2(WRITER(1000, 0))}},
    {.name = "long delays on the way", .tick_ms = 1000, .life = 3, .messages = 2, .deaths = 1, .clients = 2,
     .client = {FAR(WRITER(2000, 0)), NEAR(WRITER(2000, 0))}},
    {.name = "three writers", .tick_ms = 1000, .life = 1, .messages = 2, .clients = 3,
     .client = {FAR(WRITER(1000, 0)), NEAR(WRITER(1000, 0)), NEAR(WRITER(2000, 0))}},
    {.name = "lock-delay", .tick_ms = 1000, .life = 1, .messages = 2, .breaks = 1, .clients = 2,
     .client = {FAR(WRITER(2000, 1000)), NEAR2(WRITER(1000, 2000))}},
    {.name = "readers and a writer", .tick_ms = 1000, .life = 1, .messages = 2, .clients = 3,
     .client = {FAR(READER(0, 1000, 0)), NEAR(WRITER(1000, 0)), NEAR(READER(0, 1000, 0))}},
    {.name = "a writer among readers", .tick_ms = 1000, .life = 1, .messages = 2, .clients = 3,
     .client = {FAR(WRITER(1000, 0)), NEAR(READER(0, 1000, 0)), NEAR(READER(0, 1000, 0))}},
    {.name = "two limits", .tick_ms = 1000, .life = 1, .messages = 2, .clients = 3,
     .client = {FAR(READER(2, 1000, 0)), NEAR(READER(3, 1000, 0)), NEAR(READER(0, 1000, 0))}},
    {.name = "readers broken", .tick_ms = 1000, .life = 1, .messages = 1, .breaks = 2, .clients = 3,
     .client = {NEAR(READER(0, 1000, 1000)), NEAR(READER(0, 1000, 2000)), FAR(WRITER(1000, 0))}},
    {.name = "a limit of one", .tick_ms = 1000, .life = 1, .messages = 2, .breaks = 1, .clients = 2,
     .client = {FAR(READER(1, 1000, 1000)), NEAR(READER(2, 1000, 0))}},
    {.name = "never expires", .tick_ms = 2500, .life = 1, .messages = 2, .breaks = 1, .clients = 2,
     .client = {FAR(WRITER(0, 2500)), NEAR(WRITER(0, 0))}},
    {.name = "clock back", .tick_ms = 2500, .life = 1, .messages = 2, .steps_back = 1,
     .back_ms = 5000, .clients = 2, .client = {FAR(WRITER(0, 0)), NEAR(WRITER(5000, 2500))}},
    {.name = "a ttl below the own lease", .tick_ms = 500, .life = 1, .messages = 2, .clients = 2,
     .client = {FAR2(WRITER(500, 500)), NEAR(WRITER(500, 0))}},
    {.name = "no waiting", .tick_ms = 1000, .life = 1, .messages = 2, .clients = 3,
     .client = {FAR2(WRITER(1000, 0), .no_wait = true), NEAR(WRITER(1000, 0)),
                NEAR(READER(0, 1000, 0))}},
    {.name = "a waiting ticket released", .tick_ms = 1000, .life = 1, .messages = 2, .unlock = true,
     .clients = 2, .client = {FAR(WRITER(1000, 0)), NEAR(WRITER(1000, 0))}},
};
const size_t scenario_count = sizeof scenarios / sizeof scenarios[0];
