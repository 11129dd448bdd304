/* The scripts against the doorman: see lib/walk.h. Every call must be the same, too.
 *
 * The scripts here are those of the store with two replacements made at build: the clock is the
 * last two arguments, and the key's PX is a thousand times longer, so that only the made-up time
 * counts. */
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdlib.h>

#include "lib/check.h"
#include "lib/walk.h"

#define SCRIPTS(X) \
    X(attempt)     \
    X(release)     \
    X(withdraw)    \
    X(renew)       \
    X(break)
#define X(name) extern const char hf__redis_lua_##name[], hf__redis_lua_##name##_sha1[];
SCRIPTS(X)
#undef X

/* In the order of enum walk_kind. */
static const struct {
    const char *text, *sha1;
} scripts[] = {
#define X(name) {hf__redis_lua_##name, hf__redis_lua_##name##_sha1},
    SCRIPTS(X)
#undef X
};

#define RETAIN "3600000" /* longer than the test takes, and shorter than some of its leases */

struct world {
    struct walk walk;
    redisContext *redis, *ear;
    bool quick; /* the last request went a short way */
    unsigned quick_attempts, quick_releases, quick_handovers;
};

/* The words of an attempt after its ticket, as redis.c makes them. */
struct terms {
    char span[24], terms[240];
    size_t terms_len;
};

static void make_terms(const struct hf__bid *bid, int64_t now_us, struct terms *t)
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
        "%" PRId64 "%c%" PRId64 " %" PRId64 " %" PRId64 " %c %u %d 0:0%cabc%cwho%s", now_us,
        bid->lock_delay_ms > 0 || bid->ttl_ms == 0 ? 'd' : 'H', bid->ttl_ms, bid->lock_delay_ms,
        bid->retire_ms, bid->mode == HF_SHARED ? 'S' : 'X', bid->limit, bid->queue, 0, 0, ticket);
}

/* The key's own time is over as well, as it would be on a real clock: at the end of the last lease,
 * or of the lock-delay that follows it. */
static void expire_key(struct world *w)
{
    int64_t until_ms = INT64_MIN;

    for (size_t i = 0; i < w->walk.record.count; i++) {
        const struct hf__entry *e = &w->walk.record.entries[i];
        bool inside = e->place == HF__PLACE_INSIDE;
        int64_t end_ms = e->until_ms == HF__NEVER
                             ? HF__NEVER
                             : e->until_ms + (inside && e->claimed ? e->lock_delay_ms : 0);
        if ((inside || e->place == HF__PLACE_LINGERING) && end_ms > until_ms)
            until_ms = end_ms;
    }
    if (until_ms != INT64_MIN && until_ms <= w->walk.now_us / 1000)
        freeReplyObject(redisCommand(w->redis, "DEL rules:%u", w->walk.lock));
}

static redisReply *run(struct world *w, const struct walk_request *q)
{
    char key[32], book[48], ticket[HF_TICKET_SIZE], number[24], word[64];
    char second[24], fraction[24];
    const char *sha1 = scripts[q->kind].sha1;
    redisReply *reply = NULL;
    struct terms t;

    hf__ticket_format(&q->bid.ticket, ticket);
    snprintf(key, sizeof key, "rules:%u", w->walk.lock);
    snprintf(book, sizeof book, "holdfast.b:{%s}", key);
    snprintf(second, sizeof second, "%" PRId64, w->walk.now_us / 1000000);
    snprintf(fraction, sizeof fraction, "%" PRId64, w->walk.now_us % 1000000);
    if (q->kind == WALK_ATTEMPT) {
        make_terms(&q->bid, w->walk.now_us, &t);
        reply = redisCommand(w->redis, "EVALSHA %s 2 %s %s %s %s %b " RETAIN " %s %s", sha1, key,
                             book, ticket, t.span, t.terms, t.terms_len, second, fraction);
    } else if (q->kind == WALK_RENEW) {
        snprintf(number, sizeof number, "%" PRIu64, q->generation);
        reply = redisCommand(w->redis, "EVALSHA %s 2 %s %s %s %s " RETAIN " %s %s", sha1, key, book,
                             ticket, number, second, fraction);
    } else {
        snprintf(number, sizeof number, " %" PRId64, q->number);
        snprintf(word, sizeof word, "%s%s", ticket, q->number != 0 ? number : "");
        reply = redisCommand(w->redis, "EVALSHA %s 2 %s %s %s " RETAIN " %s %s", sha1, key, book,
                             word, second, fraction);
    }
    if (reply == NULL || reply->type == REDIS_REPLY_ERROR)
        fail_msg("lock %u, kind %d: %s", w->walk.lock, q->kind,
                 reply != NULL ? reply->str : w->redis->errstr);
    return reply;
}

static int64_t span(const char *text)
{
    int64_t ms = strtoll(text, NULL, 10);

    return ms == -1 ? HF__NEVER : ms;
}

/* "granted GENERATION LEASE CLAIMED", "queued GENERATION LEASE POSITION ASK-AGAIN HINT", or a word
 * alone. */
static struct hf__answer read_answer(const char *text)
{
    static const char *const words[] = {"granted", "queued", "busy",  "withdrawn",
                                        "full",    "done",   "stale", "lost"};
    char word[16], lease[24], third[24], ask[24] = "0";
    struct hf__answer a = {0};

    int count =
        sscanf(text, "%15s %" SCNu64 " %23s %23s %23s", word, &a.generation, lease, third, ask);
    while (a.verdict < COUNT(words) && strcmp(word, words[a.verdict]) != 0)
        a.verdict++;
    if (a.verdict == COUNT(words) || count < (a.verdict <= HF__VERDICT_QUEUED ? 4 : 1))
        fail_msg("the script says '%s'", text);
    if (a.verdict <= HF__VERDICT_QUEUED)
        a.lease_ms = span(lease);
    if (a.verdict == HF__VERDICT_GRANTED)
        a.claimed = strcmp(third, "1") == 0;
    if (a.verdict == HF__VERDICT_QUEUED) {
        a.position = strtoul(third, NULL, 10);
        a.ask_again_ms = span(ask);
    }
    return a;
}

/* The short ways answer with the generation alone, and here with "quick". */
static struct hf__answer ask(struct walk *walk, const struct walk_request *q)
{
    struct world *w = (struct world *)walk;

    expire_key(w);
    redisReply *all = run(w, q), *reply = q->kind == WALK_RENEW ? all->element[0] : all;
    bool granted = reply->str[0] >= '0' && reply->str[0] <= '9';
    bool released = strcmp(reply->str, "quick") == 0;
    struct hf__answer a =
        granted ? (struct hf__answer){.verdict = HF__VERDICT_GRANTED,
                                      .generation = strtoull(reply->str, NULL, 10),
                                      .lease_ms = q->bid.ttl_ms > 0 ? q->bid.ttl_ms
                                                                    : hf__provisional_lease_ms(0),
                                      .claimed = q->bid.ttl_ms > 0}
                : read_answer(released ? "done" : reply->str);
    w->quick = granted || released;
    freeReplyObject(all);
    return a;
}

static void hear_call(struct world *w)
{
    redisReply *reply = NULL;
    struct hf__ticket ticket;
    uint64_t generation = 0;

    while (generation == 0) { /* "you were broken" is not about a grant */
        assert_int_equal(redisGetReply(w->ear, (void **)&reply), REDIS_OK);
        char *text = reply->element[2]->str;
        text[HF_TICKET_SIZE - 1] = '\0';
        assert_true(hf__ticket_parse(text, &ticket));
        generation = strtoull(text + HF_TICKET_SIZE, NULL, 10);
        freeReplyObject(reply);
    }
    const struct hf__entry *e = hf__record_find(&w->walk.record, &ticket);
    assert_non_null(e);
    check_number("generation of a call", (int64_t)generation, (int64_t)e->generation);
}

/* Whoever was let in by somebody else's request was called. */
static void compare_calls(struct walk *walk, const struct walk_request *q)
{
    struct world *w = (struct world *)walk;
    size_t calls = 0;

    for (size_t i = 0; walk_next_called(walk, q, &i) != NULL; calls++)
        hear_call(w);
    w->quick_attempts += w->quick && q->kind == WALK_ATTEMPT;
    w->quick_releases += w->quick && q->kind == WALK_RELEASE && calls == 0;
    w->quick_handovers += w->quick && q->kind == WALK_RELEASE && calls > 0;
}

static const struct walk_type lua = {.ask = ask, .compare = compare_calls};

static void connect_world(struct world *w)
{
    const char *path = getenv("HOLDFAST_TEST_REDIS_SOCKET");

    assert_non_null(path);
    w->redis = redisConnectUnix(path);
    w->ear = redisConnectUnix(path);
    assert_true(w->redis != NULL && w->redis->err == 0 && w->ear != NULL && w->ear->err == 0);
    for (size_t i = 0; i < COUNT(scripts); i++)
        freeReplyObject(redisCommand(w->redis, "SCRIPT LOAD %s", scripts[i].text));
    redisSetTimeout(w->ear, (struct timeval){.tv_sec = 10}); /* for a call that does not come */
    freeReplyObject(redisCommand(w->ear, "SUBSCRIBE holdfast.wake:abc"));
}

static void c1_to_c9_scripts_answer_like_the_doorman(void **state)
{
    struct world w = {0};

    (void)state;
    walk_init(&w.walk, &lua);
    connect_world(&w);
    walk(&w.walk, 40000);
    w.walk.quiet = true;
    walk(&w.walk, 40000); /* hand-overs */
    w.walk.bidders = 1;
    walk(&w.walk, 40000); /* grants and releases */
    print_message("by the short ways: %u grants, %u releases, %u hand-overs\n", w.quick_attempts,
                  w.quick_releases, w.quick_handovers);
    assert_true(w.quick_attempts > 1200 && w.quick_releases > 120 && w.quick_handovers > 240);
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
