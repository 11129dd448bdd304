/* Replies of a Redis server: whatever bytes come, and whatever shape they have, nothing is read that
 * is not there, and no answer is believed that says nothing.
 *
 * The first byte chooses: the rest is RESP as it is, or a program of small steps that builds a reply of
 * any shape around texts that the decoders know. */
#include "base/lease.h"
#include "fuzz.h"
#include "stores/redis/redis.h"
#include "stores/redis/room.h"

#define BUILT_MAX 20000

static const char *const texts[] = {
    "granted 1700000000000000 30000 1",
    "granted 5 0 1",
    "granted 5 9007199254740991 1",
    "queued 1 30000 1 -1 2",
    "granted 5 -1 0",
    "granted 5 30000 1 1",
    "queued 1 30000 1 100 0",
    "1700000000000000",
    "busy",
    "withdrawn",
    "full",
    "done",
    "stale",
    "deaf",
    "lost",
    "0",
    "17",
    "message",
    "00112233445566778899aabbccddeeff",
    "IXY 1700000000000 1700000030000 1700000000000000 30000 0 60000",
    "WSN 1700000000000 1700000001000 0 30000 0 60000 3",
    "LXY 0 9007199254740991 1 1 1 1 0 5",
    "shared:1700000000000000",
    "1700000000",
    "123456",
    "",
};
#define TEXTS (sizeof texts / sizeof texts[0])

struct builder {
    char text[BUILT_MAX];
    size_t len;
    const uint8_t *data;
    size_t size;
};

static unsigned take(struct builder *b)
{
    if (b->size == 0)
        return 0;
    b->size--;
    return *b->data++;
}

static void put(struct builder *b, const char *text)
{
    size_t len = strlen(text);

    if (b->len + len < BUILT_MAX) {
        memcpy(b->text + b->len, text, len);
        b->len += len;
    }
}

static void build(struct builder *b, int depth)
{
    unsigned kind = take(b) % 8, number = take(b);
    char text[200];

    switch (kind) {
    case 0:
        put(b, "$-1\r\n");
        return;
    case 1:
        snprintf(text, sizeof text, ":%lld\r\n",
                 number < 200 ? (long long)number - 3 : (long long)number << 36);
        put(b, text);
        return;
    case 2:
    case 3:
    case 4:
        snprintf(text, sizeof text, "$%zu\r\n%s\r\n", strlen(texts[number % TEXTS]),
                 texts[number % TEXTS]);
        put(b, text);
        return;
    case 5:
        put(b, number % 2 == 0 ? "+OK\r\n" : "-ERR x\r\n");
        return;
    default:
        number = depth < 4 ? number % 9 : 0;
        snprintf(text, sizeof text, "*%u\r\n", number);
        put(b, text);
        while (number-- > 0)
            build(b, depth + 1);
    }
}

static int found(void *ctx, const char *name, size_t name_len, const struct hf__entry *e)
{
    const struct hf__who *who = e->who;

    (void)ctx;
    REQUIRE(name_len == 1 && name[0] == 'a' && e->place != HF__PLACE_RETIRED);
    REQUIRE(strlen(who->host) + strlen(who->program) + strlen(who->note) < BUILT_MAX);
    return 0;
}

static void try_answers(const redisReply *reply)
{
    static const struct hf__who nobody = {"", "", "", "", 0};
    struct hf__bid bids[2] = {{.ttl_ms = 30000, .who = &nobody},
                              {.ttl_ms = 30000, .who = &nobody, .queue = true}};

    for (int script = 0; script <= HF__REDIS_SCRIPT_BREAK; script++) {
        for (size_t i = 0; i < 2; i++) {
            struct hf__answer a = {0};
            enum hf__redis_strangers strangers = HF__REDIS_STRANGERS_NONE;
            hf_error err;
            if (hf__redis_answer(script, &bids[i], reply, &a, &strangers, &err) != 0)
                continue;
            REQUIRE(a.verdict != HF__VERDICT_GRANTED || (a.generation > 0 && a.lease_ms > 0));
            REQUIRE(a.verdict != HF__VERDICT_QUEUED || a.lease_ms > 0);
            if (a.verdict == HF__VERDICT_GRANTED || a.verdict == HF__VERDICT_QUEUED)
                (void)hf__lease_deadline_ns(INT64_C(1) << 60, a.lease_ms);
            REQUIRE(a.verdict != HF__VERDICT_QUEUED || script == HF__REDIS_SCRIPT_RENEW || i == 1);
            REQUIRE(strangers <= HF__REDIS_STRANGERS_LEFT_TO_THEM);
        }
    }
}

static void try_all(redisReply *reply)
{
    struct hf__search search = {.found = found};
    char cursor[HF__REDIS_CURSOR_SIZE] = "5";
    int64_t us;

    try_answers(reply);
    if (hf__redis_rooms_are_good(reply, 4)) {
        for (size_t i = 1; i < reply->elements; i++) {
            struct hf__redis_room room = {.name = "a",
                                          .name_len = 1,
                                          .found = reply->element[i],
                                          .now_ms = reply->element[0]->integer,
                                          .search = &search};
            REQUIRE(hf__redis_room_is_empty(room.found) || hf__redis_show_room(&room) == 0);
        }
    }
    if (hf__redis_read_page(reply, cursor, NULL))
        REQUIRE(strcmp(cursor, "5") != 0);
    static struct hf__value value;
    if (hf__redis_read_value(reply, &value))
        REQUIRE(value.len <= HF_VALUE_MAX && value.generation <= HF__REDIS_NUMBER_MAX);
    if (hf__redis_read_time(reply, &us))
        REQUIRE(us >= 0);
    hf__redis_error(reply, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hf__redis_conn *c = hf__redis_conn_new();
    struct builder b = {.data = data, .size = size};
    redisReply *reply = NULL;

    REQUIRE(c != NULL);
    if (take(&b) % 2 == 0) {
        build(&b, 0);
        hf__redis_feed(c, b.text, b.len, NULL);
    } else {
        hf__redis_feed(c, (const char *)b.data, b.size, NULL);
    }
    while (!c->broken && hf__redis_next(c, &reply, NULL) == 0 && reply != NULL) {
        try_all(reply);
        freeReplyObject(reply);
    }
    c->stream.fd = -1;
    hf__redis_hang_up(c);
    return 0;
}
