/* What time it is at the server, without asking it each time.
 *
 * A generation is the server's time in microseconds, or one more than the last if that is larger.
 * Reading the clock in the script costs as much as setting the key; so a bid brings along what this
 * connection knows: the time the server told last, and how long ago that was. The script takes it,
 * or one more than the book's last generation if that is larger, but only where there is a book; a
 * lock without one is numbered by the server's own clock (attempt_quick.lua).
 *
 * Why generations rise, also when books are lost (FLUSHALL) or purged, as long as the server's clock
 * does not go back:
 *
 *  1. None is ahead of the server's clock. What the bid brings is not: it is counted from when the
 *     answer was *read*, which is later than the server looked at its clock, and 1 % slower than our
 *     clock runs (C3 allows no more). One more than the last is not either, because the last was not
 *     when it was given, and that is a microsecond ago.
 *  2. While there is a book, each is larger than the one in it.
 *  3. When there is none, it is the clock itself, which by 1 is not below any that was given.
 *
 * So it does no harm that what the bid brings may be late: a process may be frozen between reading
 * the answer's bytes and looking at its own clock, or between looking and sending. It counts only
 * where an *older* book comes back on a living connection (a replica's data, DEBUG RELOAD): there it
 * is what keeps generations above those that were lost. Therefore a reading whose own round trip was
 * long is not used, nor one that is old; then the script reads the clock. Nothing else hangs on it;
 * leases count on the server's own clock. */
#include "stores/redis/redis.h"

#include "base/banned.h"

#define READ_AGAIN_AFTER_NS (5000 * HF__NS_PER_MS)
#define GOOD_FOR_NS         (10000 * HF__NS_PER_MS)
#define ROUND_TRIP_MAX_NS   (100 * HF__NS_PER_MS)
#define SMALLEST_US         INT64_C(1000000000000000) /* a generation has 16 digits, ... */
#define LARGEST_US          INT64_C(9000000000000000) /* ... and is a whole number in Lua */

bool hf__redis_clock_is_due(const struct hf__redis_conn *c)
{
    return c->clock.asked_ns == 0 ||
           hf__now_ns(c->stream.env) - c->clock.asked_ns > READ_AGAIN_AFTER_NS;
}

void hf__redis_clock_ask(struct hf__redis_conn *c)
{
    c->clock.asked_ns = hf__now_ns(c->stream.env);
    hf__redis_command(c, "TIME", (char *)NULL);
}

void hf__redis_clock_hear(struct hf__redis_conn *c, int64_t deadline_ns)
{
    redisReply *reply = NULL;

    c->clock.time_us = 0;
    if (hf__redis_receive(c, deadline_ns, &reply, NULL) != 0)
        return; /* and the connection is of no more use */
    int64_t time_us = 0, now_ns = hf__now_ns(c->stream.env);
    if (hf__redis_read_time(reply, &time_us) && now_ns - c->clock.asked_ns <= ROUND_TRIP_MAX_NS) {
        c->clock.time_us = time_us;
        c->clock.read_ns = now_ns;
    }
    freeReplyObject(reply);
}

uint64_t hf__redis_clock_us(const struct hf__redis_conn *c, int64_t now_ns)
{
    int64_t since_ns = now_ns > c->clock.read_ns ? now_ns - c->clock.read_ns : 0;

    if (c->clock.time_us < SMALLEST_US || c->clock.time_us > LARGEST_US || since_ns > GOOD_FOR_NS)
        return 0;
    return (uint64_t)(c->clock.time_us + (since_ns - since_ns / 100) / 1000);
}
