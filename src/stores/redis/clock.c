/* What time it is at the server, without asking it each time.
 *
 * A generation is the server's time in microseconds, or one more than the last if that is larger.
 * Reading the clock in the script costs as much as setting the key; so a bid brings along what this
 * connection knows: the time the server told last, and how long ago that was. It is a little
 * behind, and ahead only by what two clocks drift apart until it is read again. The script takes it
 * if it is larger than the last generation, and reads the clock itself if not: generations rise in
 * any case, and after lost data if the drift is shorter than the server was away. Nothing else
 * hangs on it; leases count on the server's own clock. */
#include <stdlib.h>

#include "stores/redis/redis.h"

#include "util/banned.h"

#define READ_AGAIN_AFTER_NS (10000 * HF__NS_PER_MS)
#define GOOD_FOR_NS         (60000 * HF__NS_PER_MS)
#define SMALLEST_US         INT64_C(1000000000000000) /* a generation has 16 digits, ... */
#define LARGEST_US          INT64_C(9000000000000000) /* ... and is a whole number in Lua */

bool hf__redis_clock_is_due(const struct hf__redis_conn *c)
{
    return c->clock.read_ns == 0 ||
           hf__now_ns(c->stream.env) - c->clock.read_ns > READ_AGAIN_AFTER_NS;
}

void hf__redis_clock_ask(struct hf__redis_conn *c)
{
    hf__redis_command(c, "TIME", (char *)NULL);
}

void hf__redis_clock_hear(struct hf__redis_conn *c, int64_t deadline_ns)
{
    redisReply *reply = NULL;

    if (hf__redis_receive(c, deadline_ns, &reply, NULL) != 0)
        return; /* and the connection is of no more use */
    bool told = reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
                reply->element[0]->type == REDIS_REPLY_STRING &&
                reply->element[1]->type == REDIS_REPLY_STRING;
    c->clock.read_ns = hf__now_ns(c->stream.env);
    c->clock.time_us = told ? 1000000 * strtoll(reply->element[0]->str, NULL, 10) +
                                  strtoll(reply->element[1]->str, NULL, 10)
                            : 0;
    freeReplyObject(reply);
}

uint64_t hf__redis_clock_us(const struct hf__redis_conn *c, int64_t now_ns)
{
    int64_t since_ns = now_ns > c->clock.read_ns ? now_ns - c->clock.read_ns : 0;

    if (c->clock.time_us < SMALLEST_US || c->clock.time_us > LARGEST_US || since_ns > GOOD_FOR_NS)
        return 0;
    return (uint64_t)(c->clock.time_us + since_ns / 1000);
}
