/* Calling scripts by their SHA-1, which saves sending them. */
#include <stdlib.h>
#include <string.h>

#include "stores/redis/redis.h"

#include "base/banned.h"

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

int hf__redis_run(struct hf__redis_conn *c, enum hf__redis_script script, int64_t deadline_ns,
                  redisReply **ret_reply, hf_error *err)
{
    redisReply *reply = NULL;
    size_t len = c->out.len;
    bool asks_time = hf__redis_clock_is_due(c);

    /* Behind the script, in the same write: it costs no round trip, and delays nothing. */
    if (asks_time)
        hf__redis_clock_ask(c);
    int r = hf__redis_send(c, deadline_ns, err);
    if (r == 0)
        r = hf__redis_receive(c, deadline_ns, &reply, err);
    if (r == 0 && asks_time)
        hf__redis_clock_hear(c, deadline_ns);
    if (r == 0 && hf__redis_is_error(reply, "NOSCRIPT") &&
        !c->broken) { /* or the time is still owed */
        freeReplyObject(reply);
        /* The same call with the script itself in place of its name. Sending does not clear the buffer:
         * the old bytes are still there, and their first line is "*<argc>". */
        size_t body_len = len - c->out.body;
        char *body = malloc(body_len);
        if (body == NULL)
            return hf__fail(err, HF_NO_MEMORY, NULL);
        memcpy(body, c->out.data + c->out.body, body_len);
        hf__redis_begin(c, (size_t)strtoull(c->out.data + 1, NULL, 10));
        hf__redis_add(c, "EVAL", 4);
        hf__redis_add_text(c, scripts[script].text);
        hf__redis_add_raw(c, body, body_len);
        free(body);
        return hf__redis_ask(c, deadline_ns, ret_reply, err);
    }
    if (r == 0)
        r = hf__redis_take_error(c, reply, err);
    if (r != 0) {
        freeReplyObject(reply);
        return r;
    }
    *ret_reply = reply;
    return 0;
}
