/* Calling scripts by their SHA-1, which saves sending them, and reading what they answer. */
#include <stdlib.h>
#include <string.h>

#include "stores/redis/redis.h"

#include "util/banned.h"

#define X(id, name) extern const char hf__redis_lua_##name[], hf__redis_lua_##name##_sha1[];
HF__REDIS_SCRIPTS(X)
#undef X

static const struct {
    const char *text, *sha1;
} scripts[] = {
#define X(id, name) {hf__redis_lua_##name, hf__redis_lua_##name##_sha1},
    HF__REDIS_SCRIPTS(X)
#undef X
};

void hf__redis_script(struct hf__redis_conn *c, enum hf__redis_script script, size_t keys,
                      size_t args)
{
    static const char word[] = "\r\n$7\r\nEVALSHA\r\n$40\r\n";
    char head[HF__REDIS_DIGITS + sizeof word + 40 + 3] = "*";
    char *at = hf__redis_put_number(head + 1, 3 + keys + args);

    memcpy(at, word, sizeof word - 1);
    memcpy(at + sizeof word - 1, scripts[script].sha1, 40);
    memcpy(at + sizeof word - 1 + 40, "\r\n", 2);
    hf__redis_add_raw(c, head, (size_t)(at - head) + sizeof word - 1 + 40 + 2);
    c->out.body = c->out.len;
    hf__redis_add_number(c, keys);
}

void hf__redis_add_names(struct hf__redis_conn *c, const struct hf__redis_names *names)
{
    hf__redis_add(c, names->key, names->key_len);
    hf__redis_add(c, names->book, names->book_len);
}

void hf__redis_add_ticket(struct hf__redis_conn *c, const struct hf__ticket *ticket)
{
    char text[HF_TICKET_SIZE];

    hf__ticket_format(ticket, text);
    hf__redis_add(c, text, HF_TICKET_SIZE - 1);
}

/* The same call with the script itself in place of its name. The old bytes are still in the buffer;
 * their first line is "*<argc>". */
static int teach(struct hf__redis_conn *c, enum hf__redis_script script, size_t len)
{
    size_t body_len = len - c->out.body;
    char *body = malloc(body_len);

    if (body == NULL)
        return HF_NO_MEMORY;
    memcpy(body, c->out.data + c->out.body, body_len);
    hf__redis_begin(c, (size_t)strtoull(c->out.data + 1, NULL, 10));
    hf__redis_add(c, "EVAL", 4);
    hf__redis_add_text(c, scripts[script].text);
    hf__redis_add_raw(c, body, body_len);
    free(body);
    return 0;
}

static bool is_unknown_script(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "NOSCRIPT", 8) == 0;
}

int hf__redis_run(struct hf__redis_conn *c, enum hf__redis_script script, int64_t deadline_ns,
                  redisReply **ret_reply, hf_error *err)
{
    redisReply *reply = NULL;
    size_t len = c->out.len;
    bool asks_time = hf__redis_clock_is_due(c);

    if (asks_time)
        hf__redis_clock_ask(c);
    int r = hf__redis_send(c, deadline_ns, err);
    if (r == 0)
        r = hf__redis_receive(c, deadline_ns, &reply, err);
    if (r == 0 && asks_time)
        hf__redis_clock_hear(c, deadline_ns);
    if (r == 0 && is_unknown_script(reply) && !c->broken) { /* or the time is still owed */
        freeReplyObject(reply);
        if (teach(c, script, len) != 0)
            return hf__fail(err, HF_NO_MEMORY, NULL);
        return hf__redis_ask(c, deadline_ns, ret_reply, err);
    }
    if (r == 0)
        r = hf__redis_judge(c, reply, err);
    if (r != 0) {
        freeReplyObject(reply);
        return r;
    }
    *ret_reply = reply;
    return 0;
}

static int64_t span(long long ms)
{
    return ms < 0 ? HF__NEVER : ms;
}

int hf__redis_answer(const redisReply *reply, struct hf__answer *a, bool *ret_foreign,
                     hf_error *err)
{
    static const struct {
        const char *word;
        enum hf__verdict verdict;
    } words[] = {
        {"granted", HF__GRANTED},     {"queued", HF__QUEUED},  {"busy", HF__BUSY},
        {"withdrawn", HF__WITHDRAWN}, {"full", HF__FULL},      {"done", HF__DONE},
        {"stale", HF__STALE},         {"lost", HF__GONE_LOST},
    };
    const char *text = reply->type == REDIS_REPLY_STRING ? reply->str : "";
    size_t len = strcspn(text, " "), i = 0;
    struct hf__answer answer = {.sent_ns = a->sent_ns};
    long long numbers[5] = {0};

    if (strcmp(text, "deaf") == 0)
        return hf__fail(err, HF_UNSUPPORTED,
                        "another client holds it and cannot be asked to leave; break it now, or "
                        "wait until its time is over");
    while (i < sizeof words / sizeof words[0] &&
           (strlen(words[i].word) != len || memcmp(words[i].word, text, len) != 0))
        i++;
    if (i == sizeof words / sizeof words[0])
        return hf__fail(err, HF_CORRUPT, "a script gave an answer that was not expected");
    answer.verdict = words[i].verdict;
    text += len;
    for (size_t n = 0; n < 5 && *text != '\0'; n++)
        numbers[n] = strtoll(text, (char **)&text, 10);
    answer.generation = (uint64_t)numbers[0];
    answer.lease_ms = span(numbers[1]);
    if (answer.verdict == HF__GRANTED)
        answer.claimed = numbers[2] == 1;
    if (answer.verdict == HF__QUEUED) {
        answer.position = (size_t)numbers[2];
        answer.ask_again_ms = span(numbers[3]);
    }
    if (ret_foreign != NULL)
        *ret_foreign = numbers[4] == 1;
    *a = answer;
    return 0;
}
