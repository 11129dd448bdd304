/* The scripts against the doorman: random operations go through both, on the same made-up clock,
 * and every answer and every call must be the same.
 *
 * The scripts here are those of the store with two replacements made at build: the clock is the
 * last two arguments, and the key's PX is a thousand times longer, so that only the made-up time
 * counts. */
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "doorman/doorman.h"
#include "lib/check.h"
#include "lib/random.h"

#define SCRIPTS(X) \
    X(attempt)     \
    X(release)     \
    X(withdraw)    \
    X(renew)       \
    X(break)
#define X(name) extern const char hf__redis_lua_##name[], hf__redis_lua_##name##_sha1[];
SCRIPTS(X)
#undef X

enum { ATTEMPT, RELEASE, WITHDRAW, RENEW, BREAK };
static const char *const kind_names[] = {"attempt", "release", "withdraw", "renew", "break"};
static const struct {
    const char *text, *sha1;
} scripts[] = {
#define X(name) {hf__redis_lua_##name, hf__redis_lua_##name##_sha1},
    SCRIPTS(X)
#undef X
};

#define TICKETS  12
#define PER_LOCK 400
#define CAPACITY 64

struct world {
    redisContext *redis, *ear;
    struct random random;
    unsigned lock, step;
    int64_t now_ms, now_us; /* the latter from the start of the millisecond */
    bool calm; /* mostly exclusive, and little time passes: where the short ways are taken */
    struct hf__record record;
    struct hf__entry entries[CAPACITY];
    struct hf__ticket tickets[TICKETS];
    uint64_t known[TICKETS]; /* a generation this ticket was told of, perhaps an old one */
    unsigned quick_attempts, quick_releases, quick_handovers;
};

struct request {
    int kind;
    struct hf__bid bid;
    size_t who;
    int64_t number;
    uint64_t generation;
};

static uint64_t pick(struct world *w, const int64_t *from, size_t count)
{
    return (uint64_t)from[random_below(&w->random, count)];
}

/* What happens on a quiet day: plain bids, and whoever is inside leaves. */
static void calm_down(struct world *w, struct request *q)
{
    q->bid.retire_ms = 0;
    if (random_below(&w->random, 2) == 0)
        q->bid.lock_delay_ms = 0;
    q->kind = random_below(&w->random, 5) < 3 ? ATTEMPT : RELEASE;
    for (size_t t = 0; q->kind == RELEASE && t < TICKETS; t++) {
        const struct hf__entry *e = hf__record_find(&w->record, &w->tickets[t]);
        if (e != NULL && e->place == HF__INSIDE)
            q->who = t;
    }
    q->bid.ticket = w->tickets[q->who];
}

static struct request make_request(struct world *w)
{
    static const int64_t ttls[] = {0, 100, 700, 1000, 5000, 12000, 60000};
    static const int64_t delays[] = {0, 0, 0, 500, 9000};
    static const int64_t retires[] = {0, 0, 3000, 60000};
    static const int64_t limits[] = {0, 0, 1, 2, 3};
    static const int kinds[] = {ATTEMPT, ATTEMPT, ATTEMPT, ATTEMPT,  RENEW,
                                RENEW,   RELEASE, RELEASE, WITHDRAW, BREAK};
    struct request q = {.kind = kinds[random_below(&w->random, COUNT(kinds))],
                        .who = random_below(&w->random, TICKETS)};
    bool shared = random_below(&w->random, w->calm ? 12 : 2) == 0;

    q.bid = (struct hf__bid){.ticket = w->tickets[q.who],
                             .mode = shared ? HF_SHARED : HF_EXCLUSIVE,
                             .limit = shared ? (uint32_t)pick(w, limits, COUNT(limits)) : 0,
                             .ttl_ms = (int64_t)pick(w, ttls, COUNT(ttls)),
                             .lock_delay_ms = (int64_t)pick(w, delays, COUNT(delays)),
                             .retire_ms = (int64_t)pick(w, retires, COUNT(retires)),
                             .queue = random_below(&w->random, 4) != 0};
    if (w->calm && random_below(&w->random, 8) != 0)
        calm_down(w, &q);
    if (q.kind == BREAK)
        q.number = (int64_t)random_below(&w->random, 2);
    else if (q.kind == RELEASE || q.kind == WITHDRAW)
        q.number = (int64_t)pick(w, retires, w->calm ? 2 : COUNT(retires));
    if (q.kind == RENEW && random_below(&w->random, 3) != 0)
        q.generation = w->known[q.who];
    return q;
}

static struct hf__moment moment(const struct world *w)
{
    return (struct hf__moment){.now_ms = w->now_ms,
                               .stamp_us = (uint64_t)(w->now_ms * 1000 + w->now_us)};
}

static struct hf__answer ask_doorman(struct world *w, const struct request *q)
{
    const struct hf__ticket *ticket = &q->bid.ticket;

    switch (q->kind) {
    case ATTEMPT:
        return hf__doorman_attempt(&w->record, &q->bid, NULL, moment(w));
    case RELEASE:
        return hf__doorman_release(&w->record, ticket, q->number, moment(w));
    case WITHDRAW:
        return hf__doorman_withdraw(&w->record, ticket, q->number, moment(w));
    case RENEW:
        return hf__doorman_renew(&w->record, ticket, q->generation, moment(w));
    default:
        return hf__doorman_break(&w->record, ticket, q->number != 0, moment(w));
    }
}

/* The words of an attempt after its ticket, as redis.c makes them. */
struct terms {
    char span[24], terms[240];
    size_t terms_len;
};

static void make_terms(const struct world *w, const struct hf__bid *bid, struct terms *t)
{
    char ticket[HF_TICKET_SIZE];
    int64_t lease_ms = bid->ttl_ms > 0 ? bid->ttl_ms : hf__provisional_lease_ms(0);
    int64_t delay_ms = bid->ttl_ms > 0 ? bid->lock_delay_ms : 0;

    if (bid->mode == HF_EXCLUSIVE)
        snprintf(t->span, sizeof t->span, "%" PRId64, lease_ms + delay_ms);
    else
        t->span[0] = '\0';
    hf__ticket_format(&bid->ticket, ticket);
    t->terms_len = (size_t)snprintf(
        t->terms, sizeof t->terms,
        "%" PRIu64 "%c%" PRId64 " %" PRId64 " %" PRId64 " %c %u %d 0:0%cabc%cwho%s",
        moment(w).stamp_us, bid->lock_delay_ms > 0 ? 'd' : 'H', bid->ttl_ms, bid->lock_delay_ms,
        bid->retire_ms, bid->mode == HF_SHARED ? 'S' : 'X', bid->limit, bid->queue, 0, 0, ticket);
}

static redisReply *ask_redis(struct world *w, const struct request *q)
{
    char key[32], book[48], ticket[HF_TICKET_SIZE], number[24], word[64];
    char second[24], fraction[24];
    const char *sha1 = scripts[q->kind].sha1;
    redisReply *reply = NULL;
    struct terms t;

    hf__ticket_format(&q->bid.ticket, ticket);
    snprintf(key, sizeof key, "rules:%u", w->lock);
    snprintf(book, sizeof book, "holdfast.b:{%s}", key);
    snprintf(second, sizeof second, "%" PRId64, w->now_ms / 1000);
    snprintf(fraction, sizeof fraction, "%" PRId64, w->now_ms % 1000 * 1000 + w->now_us);
    if (q->kind == ATTEMPT) {
        make_terms(w, &q->bid, &t);
        reply = redisCommand(w->redis, "EVALSHA %s 2 %s %s %s %s %b %s %s", sha1, key, book, ticket,
                             t.span, t.terms, t.terms_len, second, fraction);
    } else if (q->kind == RENEW) {
        snprintf(number, sizeof number, "%" PRIu64, q->generation);
        reply = redisCommand(w->redis, "EVALSHA %s 2 %s %s %s %s %s %s", sha1, key, book, ticket,
                             number, second, fraction);
    } else {
        snprintf(number, sizeof number, " %" PRId64, q->number);
        snprintf(word, sizeof word, "%s%s", ticket, q->number != 0 ? number : "");
        reply = redisCommand(w->redis, "EVALSHA %s 2 %s %s %s %s %s", sha1, key, book, word, second,
                             fraction);
    }
    if (reply == NULL || reply->type == REDIS_REPLY_ERROR)
        fail_msg("lock %u step %u %s: %s", w->lock, w->step, kind_names[q->kind],
                 reply != NULL ? reply->str : w->redis->errstr);
    return reply;
}

static const char *word_of(enum hf__verdict verdict)
{
    static const char *const words[] = {"granted", "queued", "busy", "withdrawn", "full",
                                        "done",    "stale",  "lost", "more"};

    return words[verdict];
}

static int64_t shown(int64_t ms)
{
    return ms == HF__NEVER ? -1 : ms;
}

static bool is_quick_grant(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_STRING && reply->str[0] >= '0' && reply->str[0] <= '9';
}

static bool is_quick_release(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_STRING && strcmp(reply->str, "quick") == 0;
}

static void count_quick(struct world *w, const redisReply *reply, size_t calls)
{
    w->quick_attempts += is_quick_grant(reply);
    w->quick_releases += is_quick_release(reply) && calls == 0;
    w->quick_handovers += is_quick_release(reply) && calls > 0;
}

/* Both answers as text, so that a difference can be read. */
static void compare(const struct world *w, const struct request *q, const struct hf__answer *a,
                    const redisReply *reply)
{
    char wanted[160], got[160];

    snprintf(wanted, sizeof wanted, "%s", word_of(a->verdict));
    if (a->verdict == HF__GRANTED)
        snprintf(wanted, sizeof wanted, "granted %" PRIu64 " %" PRId64 " %d", a->generation,
                 shown(a->lease_ms), a->claimed);
    if (a->verdict == HF__QUEUED)
        snprintf(wanted, sizeof wanted, "queued %" PRIu64 " %" PRId64 " %zu %" PRId64 " 0",
                 a->generation, shown(a->lease_ms), a->position, shown(a->ask_again_ms));
    if (is_quick_grant(reply))
        snprintf(got, sizeof got, "granted %s %" PRId64 " %d", reply->str,
                 q->bid.ttl_ms > 0 ? q->bid.ttl_ms : hf__provisional_lease_ms(0),
                 q->bid.ttl_ms > 0);
    else if (is_quick_release(reply))
        snprintf(got, sizeof got, "done");
    else
        snprintf(got, sizeof got, "%s", reply->str);
    if (strcmp(wanted, got) != 0)
        fail_msg("lock %u step %u at %" PRId64 ": %s of ticket %zu: doorman '%s', script '%s'",
                 w->lock, w->step, w->now_ms, kind_names[q->kind], q->who, wanted, got);
}

/* Whoever was let in must have been called with its generation, except the asker of an attempt. */
static size_t count_calls(const struct world *w, const struct request *q)
{
    size_t count = 0;

    for (size_t i = 0; i < w->record.count; i++) {
        const struct hf__entry *e = &w->record.entries[i];
        bool asker = q->kind == ATTEMPT && hf__ticket_equal(&e->ticket, &q->bid.ticket);
        count += (e->marks & HF__LET_IN) && !asker;
    }
    return count;
}

static void hear_calls(struct world *w, size_t count)
{
    while (count-- > 0) {
        redisReply *reply = NULL;
        struct hf__ticket ticket;
        assert_int_equal(redisGetReply(w->ear, (void **)&reply), REDIS_OK);
        reply->element[2]->str[HF_TICKET_SIZE - 1] = '\0';
        assert_true(hf__ticket_parse(reply->element[2]->str, &ticket));
        uint64_t generation = strtoull(reply->element[2]->str + HF_TICKET_SIZE, NULL, 10);
        const struct hf__entry *e = hf__record_find(&w->record, &ticket);
        if (generation > 0) {
            assert_non_null(e);
            check_number("generation of a call", (int64_t)generation, (int64_t)e->generation);
        } else {
            count++; /* "you were broken": not counted */
        }
        freeReplyObject(reply);
    }
}

/* The key's own time is over as well, as it would be on a real clock: at the end of the last lease,
 * or of the lock-delay that follows it. */
static void expire_key(struct world *w)
{
    int64_t until_ms = INT64_MIN;

    for (size_t i = 0; i < w->record.count; i++) {
        const struct hf__entry *e = &w->record.entries[i];
        bool inside = e->place == HF__INSIDE;
        int64_t end_ms = e->until_ms == HF__NEVER
                             ? HF__NEVER
                             : e->until_ms + (inside && e->claimed ? e->lock_delay_ms : 0);
        if ((inside || e->place == HF__LINGERING) && end_ms > until_ms)
            until_ms = end_ms;
    }
    if (until_ms != INT64_MIN && until_ms <= w->now_ms)
        freeReplyObject(redisCommand(w->redis, "DEL rules:%u", w->lock));
}

static void step(struct world *w)
{
    static const int64_t passes[] = {0, 0, 0, 1, 20, 99, 100, 350, 1000, 2500, 5000, 9000, 61000};
    static const int64_t fractions[] = {0, 7, 7, 500, 999};
    struct request q = make_request(w);

    w->now_ms += (int64_t)pick(w, passes, w->calm ? 7 : COUNT(passes));
    w->now_us = (int64_t)pick(w, fractions, COUNT(fractions));
    if (random_below(&w->random, 60) == 0)
        w->now_ms -= (int64_t)random_below(&w->random, 30000); /* the clock goes back */

    expire_key(w);
    struct hf__answer a = ask_doorman(w, &q);
    redisReply *reply = ask_redis(w, &q);
    compare(w, &q, &a, q.kind == RENEW ? reply->element[0] : reply);
    size_t calls = count_calls(w, &q);
    count_quick(w, reply, calls);
    freeReplyObject(reply);
    hear_calls(w, calls);

    for (size_t i = 0; i < w->record.count; i++) {
        const struct hf__entry *e = &w->record.entries[i];
        for (size_t t = 0; t < TICKETS; t++) {
            if (e->generation > 0 && hf__ticket_equal(&e->ticket, &w->tickets[t]))
                w->known[t] = e->generation;
        }
    }
    hf__record_settle(&w->record);
    if (random_below(&w->random, 12) == 0) { /* somebody new */
        size_t t = random_below(&w->random, TICKETS);
        random_fill(&w->random, &w->tickets[t], sizeof w->tickets[t]);
        w->known[t] = 0;
    }
    assert_true(w->record.count < CAPACITY);
}

static void start_lock(struct world *w, unsigned lock)
{
    w->lock = lock;
    w->calm = lock % 2 == 1;
    w->now_ms = 1700000000000 + (int64_t)random_below(&w->random, 1000000);
    w->record = (struct hf__record){.entries = w->entries, .capacity = CAPACITY};
    for (size_t t = 0; t < TICKETS; t++) {
        random_fill(&w->random, &w->tickets[t], sizeof w->tickets[t]);
        w->known[t] = 0;
    }
}

static void connect_world(struct world *w)
{
    const char *path = getenv("HOLDFAST_TEST_REDIS_SOCKET");

    assert_non_null(path);
    w->redis = redisConnectUnix(path);
    w->ear = redisConnectUnix(path);
    assert_true(w->redis != NULL && w->redis->err == 0 && w->ear != NULL && w->ear->err == 0);
    for (size_t i = 0; i < COUNT(scripts); i++)
        freeReplyObject(redisCommand(w->redis, "SCRIPT LOAD %s", scripts[i].text));
    freeReplyObject(redisCommand(w->ear, "SUBSCRIBE holdfast.wake:abc"));
}

static void c1_to_c9_scripts_answer_like_the_doorman(void **state)
{
    const char *seed = getenv("HOLDFAST_TEST_SEED"), *steps = getenv("HOLDFAST_TEST_STEPS");
    unsigned total = steps != NULL ? (unsigned)strtoul(steps, NULL, 10) : 120000, done = 0;
    struct world w = {.random.state = seed != NULL ? strtoull(seed, NULL, 10) : 2024};

    (void)state;
    connect_world(&w);
    for (unsigned lock = 0; done < total; lock++) {
        start_lock(&w, lock);
        for (w.step = 0; w.step < PER_LOCK; w.step++, done++)
            step(&w);
        freeReplyObject(redisCommand(w.redis, "FLUSHALL"));
    }
    printf(
        "%u operations, seed %s: the scripts and the doorman agree; by the short ways: %u grants, "
        "%u releases, %u hand-overs\n",
        done, seed != NULL ? seed : "2024", w.quick_attempts, w.quick_releases, w.quick_handovers);
    assert_true(w.quick_attempts >= done / 100 && w.quick_releases >= done / 1000 &&
                w.quick_handovers >= done / 500);
    redisFree(w.redis);
    redisFree(w.ear);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c1_to_c9_scripts_answer_like_the_doorman),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
