/* The scripts against the doorman: see lib/walk.h. Every call must be the same, too.
 *
 * They are those of the store, as they are: the server's own clock is made up (clock_shim.c), and so
 * are the ends of its keys. */
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/check.h"
#include "lib/walk.h"
#include "redis/live.h"
#include "stores/redis/redis.h"

#define SCRIPTS(X) \
    X(attempt)     \
    X(release)     \
    X(withdraw)    \
    X(renew)       \
    X(break)       \
    X(value)       \
    X(release_after)
#define X(name) extern const char hf__redis_lua_##name[], hf__redis_lua_##name##_sha1[];
SCRIPTS(X)
#undef X

/* In the order of enum walk_kind, but for the last two: a value is READ and WRITE. */
static const struct {
    const char *text, *sha1;
} scripts[] = {
#define X(name) {hf__redis_lua_##name, hf__redis_lua_##name##_sha1},
    SCRIPTS(X)
#undef X
};

#define RETAIN "3600000" /* longer than one lock is used, and shorter than some of its leases */

struct world {
    struct walk walk;
    int64_t *server_us; /* the server's clock */
    struct server server;
    redisContext *redis, *subscriber;
    bool quick; /* the last request went a short way */
    unsigned quick_attempts, quick_releases, quick_handovers;
};

/* The words of an attempt after its ticket, as redis.c makes them. */
struct terms {
    char span[24], terms[240];
    size_t terms_len;
};

/* What goes on from the book is no time: of such a bid the notes do not say when it was let in, but for
 * what its key has left to live. So a bid is not quick while the clock is behind the last generation. */
static void make_terms(const struct walk *walk, const struct hf__bid *bid, struct terms *t)
{
    char ticket[HF_TICKET_SIZE];
    int64_t lease_ms = bid->ttl_ms != HF__NEVER ? bid->ttl_ms : hf__provisional_lease_ms(HF__NEVER);
    int64_t delay_ms = bid->ttl_ms != HF__NEVER ? bid->lock_delay_ms : 0;

    t->span[0] = '\0';
    if (bid->mode == HF_EXCLUSIVE && walk->record.generation < (uint64_t)walk->now_us)
        snprintf(t->span, sizeof t->span, "%" PRId64, lease_ms + delay_ms);
    hf__ticket_format(&bid->ticket, ticket);
    t->terms_len = (size_t)snprintf(
        t->terms, sizeof t->terms,
        "%" PRId64 "%c%" PRId64 " %" PRId64 " %" PRId64 " %c %u %d 0:0%cabc%s%cwho%s", walk->now_us,
        bid->lock_delay_ms > 0 || bid->ttl_ms == HF__NEVER ? 'd' : 'H', hf__ttl_stored(bid->ttl_ms),
        bid->lock_delay_ms, bid->retire_ms, bid->mode == HF_SHARED ? 'S' : 'X', bid->limit,
        bid->queue, 0,
        bid->cached ? "wk"
        : bid->tell ? "w"
                    : "",
        0, ticket);
}

static long long calls_in(const char *commandstats, const char *command)
{
    char field[40];

    snprintf(field, sizeof field, "cmdstat_%s:calls=", command);
    const char *at = strstr(commandstats, field);
    return at != NULL ? strtoll(at + strlen(field), NULL, 10) : 0;
}

static redisReply *take_reply(redisContext *c)
{
    redisReply *reply = NULL;

    assert_int_equal(redisGetReply(c, (void **)&reply), REDIS_OK);
    if (reply->type == REDIS_REPLY_ERROR)
        fail_msg("%s", reply->str);
    return reply;
}

/* The long way reads the clock once, and the short one of a hand-over too, but that one alone takes
 * the first of the queue out by ZPOPMIN; the shortest reads no clock. */
static redisReply *run_release(struct world *w, const char *key, const char *book, const char *word)
{
    redisAppendCommand(w->redis, "CONFIG RESETSTAT");
    redisAppendCommand(w->redis, "EVALSHA %s 2 %s %s %s " RETAIN, scripts[WALK_RELEASE].sha1, key,
                       book, word);
    redisAppendCommand(w->redis, "INFO commandstats");
    freeReplyObject(take_reply(w->redis));
    redisReply *reply = take_reply(w->redis), *stats = take_reply(w->redis);
    long long clocks = calls_in(stats->str, "time"), popped = calls_in(stats->str, "zpopmin");
    w->quick = strcmp(reply->str, "done") == 0 && clocks == popped;
    freeReplyObject(stats);
    return reply;
}

static redisReply *run_value(struct world *w, const struct walk_request *q, const char *key,
                             const char *book)
{
    char ticket[HF_TICKET_SIZE], generation[24], order[24];

    hf__ticket_format(&q->bid.ticket, ticket);
    snprintf(generation, sizeof generation, "%" PRIu64, q->generation);
    snprintf(order, sizeof order, "%" PRIu64, q->value.order);
    if (q->kind == WALK_READ)
        return ask(w->redis, "EVALSHA %s 2 %s %s %s %s " RETAIN, hf__redis_lua_value_sha1, key,
                   book, ticket, generation);
    return ask(w->redis, "EVALSHA %s 2 %s %s %s %s " RETAIN " %s %b", hf__redis_lua_value_sha1, key,
               book, ticket, generation, order, q->value.bytes, q->value.len);
}

static redisReply *run(struct world *w, const struct walk_request *q)
{
    char key[32], book[48], ticket[HF_TICKET_SIZE], number[24], word[64], after[110];
    const char *sha1 = scripts[q->kind].sha1;
    struct terms t;

    hf__ticket_format(&q->bid.ticket, ticket);
    snprintf(key, sizeof key, "rules:%u", w->walk.lock);
    snprintf(book, sizeof book, "holdfast.b:{%s}", key);
    snprintf(number, sizeof number, " %" PRId64, q->number);
    snprintf(word, sizeof word, "%s%s", ticket, q->number != 0 ? number : "");
    snprintf(after, sizeof after, "%s %" PRId64 " %" PRId64 " %" PRIu64, ticket, q->number,
             q->at_least_ms, q->generation);
    if (q->kind == WALK_RELEASE && (q->at_least_ms > 0 || q->generation > 0))
        return ask(w->redis, "EVALSHA %s 2 %s %s %s " RETAIN, hf__redis_lua_release_after_sha1, key,
                   book, after);
    if (q->kind == WALK_RELEASE)
        return run_release(w, key, book, word);
    if (q->kind == WALK_READ || q->kind == WALK_WRITE)
        return run_value(w, q, key, book);
    if (q->kind == WALK_ATTEMPT) {
        make_terms(&w->walk, &q->bid, &t);
        return ask(w->redis, "EVALSHA %s 2 %s %s %s %s %b " RETAIN, sha1, key, book, ticket, t.span,
                   t.terms, t.terms_len);
    }
    if (q->kind == WALK_RENEW) {
        snprintf(number, sizeof number, "%" PRIu64, q->generation);
        return ask(w->redis, "EVALSHA %s 2 %s %s %s %s " RETAIN, sha1, key, book, ticket, number);
    }
    return ask(w->redis, "EVALSHA %s 2 %s %s %s " RETAIN, sha1, key, book, word);
}

/* The short way of an attempt answers with the generation alone. */
static struct hf__answer ask_scripts(struct walk *walk, const struct walk_request *q)
{
    static const enum hf__redis_script asked[] = {
        HF__REDIS_SCRIPT_ATTEMPT, HF__REDIS_SCRIPT_RELEASE, HF__REDIS_SCRIPT_WITHDRAW,
        HF__REDIS_SCRIPT_RENEW,   HF__REDIS_SCRIPT_BREAK,   HF__REDIS_SCRIPT_VALUE,
        HF__REDIS_SCRIPT_VALUE};
    struct world *w = (struct world *)walk;
    struct hf__answer a = {0};
    hf_error err;

    *w->server_us = walk->now_us;
    w->quick = false;
    redisReply *all = run(w, q);
    redisReply *reply = q->kind == WALK_RENEW || q->kind == WALK_READ ? all->element[0] : all;
    const struct hf__bid *bid = q->kind == WALK_ATTEMPT ? &q->bid : NULL;
    if (hf__redis_answer(asked[q->kind], bid, reply, &a, NULL, &err) != 0 ||
        (q->kind == WALK_READ && !hf__redis_read_value(all, &walk->read)))
        fail_msg("the script says '%s'", reply->str);
    w->quick |= reply->str[0] >= '0' && reply->str[0] <= '9';
    freeReplyObject(all);
    return a;
}

static bool let_in_by_another(const struct hf__entry *e, const struct walk_request *q)
{
    bool asker = q->kind == WALK_ATTEMPT && hf__ticket_equal(&e->ticket, &q->bid.ticket);

    return (e->effects & HF__EFFECT_LET_IN) && !asker;
}

/* The calls of one request, which are all here when the answer to PING is. Whoever was broken is called
 * with 0, too, but that is not the doorman's. */
static size_t hear_calls(struct world *w, const struct walk_request *q)
{
    size_t calls = 0;
    char *end;

    redisAppendCommand(w->subscriber, "PING");
    for (;;) {
        redisReply *reply = take_reply(w->subscriber);
        struct hf__ticket ticket;
        if (reply->elements < 3) {
            freeReplyObject(reply);
            return calls;
        }
        char *text = reply->element[2]->str;
        uint64_t generation = strtoull(text + HF_TICKET_SIZE, &end, 10);
        text[HF_TICKET_SIZE - 1] = '\0';
        assert_true(hf__ticket_parse(text, &ticket));
        const struct hf__entry *e = hf__record_find(&w->walk.record, &ticket);
        bool broken = q->kind == WALK_BREAK && hf__ticket_equal(&ticket, &q->bid.ticket);
        if (generation > 0 &&
            (e == NULL || !let_in_by_another(e, q) || e->generation != generation))
            fail_msg("%s was called for %" PRIu64, text, generation);
        if (generation == 0 && !broken && (e == NULL || !(e->effects & HF__EFFECT_WANTED)))
            fail_msg("%s was called, and nobody waits", text);
        calls += generation > 0 || !broken;
        freeReplyObject(reply);
    }
}

/* Whoever was let in by somebody else's request was called, and whoever is wanted; and nobody else. */
static void compare_calls(struct walk *walk, const struct walk_request *q)
{
    struct world *w = (struct world *)walk;
    size_t expected = 0, calls = hear_calls(w, q);

    for (size_t i = 0; i < walk->record.count; i++) {
        const struct hf__entry *e = &walk->record.entries[i];
        expected += let_in_by_another(e, q);
        expected += (e->effects & HF__EFFECT_WANTED) != 0;
    }
    check_number("calls", (int64_t)calls, (int64_t)expected);
    w->quick_attempts += w->quick && q->kind == WALK_ATTEMPT;
    w->quick_releases += w->quick && q->kind == WALK_RELEASE && calls == 0;
    w->quick_handovers += w->quick && q->kind == WALK_RELEASE && calls > 0;
}

static const struct walk_type lua = {.ask = ask_scripts, .compare = compare_calls};

static redisContext *connect_to(const struct server *server)
{
    redisContext *c = server_stranger(server);

    redisSetTimeout(
        c, (struct timeval){.tv_sec = AWAIT_MS / 1000}); /* for a call that does not come */
    return c;
}

/* A server of our own, because its clock is ours. */
static void start_world(struct world *w)
{
    char path[] = "/tmp/holdfast-moment.XXXXXX";
    int fd = mkstemp(path);

    assert_int_equal(ftruncate(fd, sizeof *w->server_us), 0);
    w->server_us = mmap(NULL, sizeof *w->server_us, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(w->server_us, MAP_FAILED);
    close(fd);
    *w->server_us = w->walk.now_us;
    setenv("HOLDFAST_TEST_MOMENT", path, 1);
    setenv("LD_PRELOAD", getenv("HOLDFAST_TEST_CLOCK_SHIM"), 1);
    server_start(&w->server, NULL);
    unsetenv("LD_PRELOAD");
    unlink(path);
    w->redis = connect_to(&w->server);
    w->subscriber = connect_to(&w->server);
    for (size_t i = 0; i < COUNT(scripts); i++)
        freeReplyObject(ask(w->redis, "SCRIPT LOAD %s", scripts[i].text));
    freeReplyObject(ask(w->subscriber, "SUBSCRIBE holdfast.wake:abc"));
}

/* Valkey 9 counts on by itself between two looks at the system's clock. */
static bool clock_is_ours(const struct world *w)
{
    redisReply *reply = ask(w->redis, "TIME");
    int64_t us = 0;
    bool ours = hf__redis_read_time(reply, &us) && us == *w->server_us;

    freeReplyObject(reply);
    return ours;
}

static int result;

static void c1_to_c16_scripts_answer_like_the_doorman(void **state)
{
    struct world w = {0};

    (void)state;
    walk_init(&w.walk, &lua);
    start_world(&w);
    if (!clock_is_ours(&w)) {
        print_message("skipped: this server's clock cannot be set\n");
        result = 77;
        server_clear(&w.server);
        return;
    }
    w.walk.can = HF_CAN_AT_LEAST | HF_CAN_VALUE | HF_CAN_WANTED | HF_CAN_CACHE;
    walk(&w.walk, 40000);
    w.walk.quiet = true;
    w.walk.can = HF_CAN_VALUE | HF_CAN_WANTED;
    walk(&w.walk, 20000);
    w.walk.can = 0;
    walk(&w.walk, 40000); /* hand-overs */
    w.walk.bidders = 1;
    walk(&w.walk, 40000); /* grants and releases */
    assert_true(w.walk.kept > 300 && w.walk.wanted > 100 && w.walk.written > 150);
    print_message("by the short ways: %u grants, %u releases, %u hand-overs\n", w.quick_attempts,
                  w.quick_releases, w.quick_handovers);
    assert_true(w.quick_attempts > 1200 && w.quick_releases > 120 && w.quick_handovers > 240);
    redisFree(w.redis);
    redisFree(w.subscriber);
    server_clear(&w.server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c1_to_c16_scripts_answer_like_the_doorman),
    };

    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed != 0 ? failed : result;
}
