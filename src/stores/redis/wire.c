/* Requests and replies as bytes: RESP2, which every server and proxy speaks. Requests are put
 * together in the connection's own buffer, which is kept; replies are read by hiredis. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stores/redis/link.h"

#include "base/banned.h"

#define OUT_MAX (16 << 20)

/* The memory for a list is taken by what its head says, before its parts have come: a head alone must
 * not take gigabytes. From 1.0 on hiredis has a limit of its own. */
#if HIREDIS_MAJOR >= 1
static void limit_lists(struct hf__redis_conn *c)
{
    c->reader->maxelements = HF__REDIS_LIST_MAX;
}
#else
static void *make_list(const redisReadTask *task, int count)
{
    const struct hf__redis_conn *c = task->privdata;

    return count <= HF__REDIS_LIST_MAX ? c->usual->createArray(task, count) : NULL;
}

static void limit_lists(struct hf__redis_conn *c)
{
    c->usual = c->reader->fn;
    c->limited = *c->usual;
    c->limited.createArray = make_list;
    c->reader->fn = &c->limited;
    c->reader->privdata = c;
}
#endif

struct hf__redis_conn *hf__redis_conn_new(void)
{
    struct hf__redis_conn *c = calloc(1, sizeof *c);

    if (c == NULL)
        return NULL;
    c->reader = redisReaderCreate();
    if (c->reader == NULL) {
        free(c);
        return NULL;
    }
    limit_lists(c);
    return c;
}

void hf__redis_hang_up(struct hf__redis_conn *c)
{
    if (c == NULL)
        return;
    hf__stream_close(&c->stream);
    if (c->reader != NULL)
        redisReaderFree(c->reader);
    free(c->out.data);
    free(c);
}

/* Room for so many bytes more; NULL: there is none. */
static char *reserve(struct hf__redis_out *out, size_t size)
{
    size_t capacity = out->capacity == 0 ? 1024 : out->capacity;

    if (out->capacity - out->len >= size && !out->failed)
        return out->data + out->len;
    if (out->failed || size > OUT_MAX || out->len > OUT_MAX)
        out->failed = true;
    while (!out->failed && capacity - out->len < size)
        capacity *= 2;
    if (!out->failed && capacity > out->capacity) {
        char *data = realloc(out->data, capacity);
        out->failed = data == NULL;
        if (data != NULL) {
            out->data = data;
            out->capacity = capacity;
        }
    }
    return out->failed ? NULL : out->data + out->len;
}

void hf__redis_add_raw(struct hf__redis_conn *c, const void *bytes, size_t len)
{
    char *to = reserve(&c->out, len);

    if (to == NULL)
        return;
    memcpy(to, bytes, len);
    c->out.len += len;
}

char *hf__redis_put_number(char *at, uint64_t number)
{
    char digits[HF__REDIS_DIGITS], *first = digits + sizeof digits;

    do {
        *--first = (char)('0' + number % 10);
    } while ((number /= 10) > 0);
    size_t len = (size_t)(digits + sizeof digits - first);
    memcpy(at, first, len);
    return at + len;
}

/* "<mark><number>\r\n" */
static char *put_head(char *at, char mark, size_t number)
{
    *at++ = mark;
    at = hf__redis_put_number(at, number);
    *at++ = '\r';
    *at++ = '\n';
    return at;
}

void hf__redis_begin(struct hf__redis_conn *c, size_t argc)
{
    char head[HF__REDIS_DIGITS + 3];

    hf__redis_add_raw(c, head, (size_t)(put_head(head, '*', argc) - head));
}

void hf__redis_add(struct hf__redis_conn *c, const void *bytes, size_t len)
{
    char *start = reserve(&c->out, len + HF__REDIS_DIGITS + 5), *at = start;

    if (start == NULL)
        return;
    at = put_head(at, '$', len);
    memcpy(at, bytes, len);
    at += len;
    *at++ = '\r';
    *at++ = '\n';
    c->out.len += (size_t)(at - start);
}

void hf__redis_add_text(struct hf__redis_conn *c, const char *text)
{
    hf__redis_add(c, text, strlen(text));
}

void hf__redis_add_number(struct hf__redis_conn *c, uint64_t number)
{
    char text[HF__REDIS_DIGITS];

    hf__redis_add(c, text, (size_t)(hf__redis_put_number(text, number) - text));
}

void hf__redis_command(struct hf__redis_conn *c, const char *word, ...)
{
    va_list words;
    size_t argc = 1;

    va_start(words, word);
    while (va_arg(words, const char *) != NULL)
        argc++;
    va_end(words);
    hf__redis_begin(c, argc);
    hf__redis_add_text(c, word);
    va_start(words, word);
    for (size_t i = 1; i < argc; i++)
        hf__redis_add_text(c, va_arg(words, const char *));
    va_end(words);
}

int hf__redis_send(struct hf__redis_conn *c, int64_t deadline_ns, hf_error *err)
{
    size_t sent = 0;
    int r = c->out.failed
                ? hf__fail(err, HF_NO_MEMORY, NULL)
                : hf__stream_write(&c->stream, c->out.data, c->out.len, deadline_ns, &sent, err);

    c->broken |= r != 0;
    c->out.len = 0; /* the bytes stay until the next command: see hf__redis_run() */
    c->out.failed = false;
    return r;
}

static int no_reply(struct hf__redis_conn *c, hf_error *err)
{
    c->broken = true;
    if (err != NULL) {
        err->code = HF_UNKNOWN;
        err->retriable = true;
    }
    return HF_UNKNOWN;
}

int hf__redis_feed(struct hf__redis_conn *c, const char *bytes, size_t count, hf_error *err)
{
    c->unread += count;
    if (c->unread > HF__REDIS_REPLY_MAX) {
        hf__fail(err, HF_UNKNOWN, "the server sends a reply of more than %d MiB",
                 HF__REDIS_REPLY_MAX >> 20);
        return no_reply(c, err);
    }
    if (redisReaderFeed(c->reader, bytes, count) == REDIS_OK)
        return 0;
    hf__fail(err, HF_UNKNOWN, "the reply cannot be kept: %s", c->reader->errstr);
    return no_reply(c, err);
}

int hf__redis_next(struct hf__redis_conn *c, redisReply **ret_reply, hf_error *err)
{
    void *reply = NULL;

    if (redisReaderGetReply(c->reader, &reply) != REDIS_OK) {
        hf__fail(err, HF_UNKNOWN, "the server does not speak Redis: %s", c->reader->errstr);
        return no_reply(c, err);
    }
    if (reply != NULL)
        c->unread = 0;
    *ret_reply = reply;
    return 0;
}

int hf__redis_receive(struct hf__redis_conn *c, int64_t deadline_ns, redisReply **ret_reply,
                      hf_error *err)
{
    char buf[16384];
    redisReply *reply = NULL;
    size_t count = 0;
    int r = hf__redis_next(c, &reply, err);

    while (r == 0 && reply == NULL) {
        if (hf__stream_read(&c->stream, buf, sizeof buf, deadline_ns, &count, err) != 0)
            return no_reply(c, err);
        r = hf__redis_feed(c, buf, count, err);
        if (r == 0)
            r = hf__redis_next(c, &reply, err);
    }
    if (r == 0)
        *ret_reply = reply;
    return r;
}

/* Servers before 7 wrap what a command inside a script says, "Error running script (call to f_...):
 * @user_script:12: @user_script: 12: -READONLY You can't ..."; newer ones only add the script's name
 * behind it. What the command itself says. */
static const char *unwrap(const redisReply *reply)
{
    static const char wrapping[] = "ERR Error running script", place[] = "@user_script: ";
    const char *text = reply->str, *at = NULL;

    if (strncmp(text, wrapping, sizeof wrapping - 1) != 0)
        return text;
    at = strstr(text, place);
    at = at != NULL ? strstr(at, ": -") : NULL;
    return at != NULL ? at + 3 : text;
}

/* What the server says, without control bytes, and without what it may repeat of our words. */
static int refuse(const char *text, int code, const char *advice, hf_error *err)
{
    char shown[200];

    hf__sentence(text, strlen(text), shown, sizeof shown);
    return hf__fail(err, code, "%s%s", shown, advice);
}

int hf__redis_error(const redisReply *reply, hf_error *err)
{
    static const char rights[] = "; the rights it takes are in the store's README";
    static const char no_cluster[] = "; clusters are not supported";
    static const struct {
        const char *word;
        int code;
        const char *advice;
    } known[] = {
        {"NOAUTH", HF_DENIED, "; give user and password in the URL, or password_file="},
        {"WRONGPASS", HF_DENIED, ""},
        {"NOPERM", HF_DENIED, rights},
        {"DENIED", HF_DENIED, ""}, /* protected mode */
        {"READONLY", HF_UNAVAILABLE, "; name the master in the URL"},
        {"LOADING", HF_UNAVAILABLE, ""},
        {"MASTERDOWN", HF_UNAVAILABLE, ""},
        {"MISCONF", HF_UNAVAILABLE, ""},
        {"NOREPLICAS", HF_UNAVAILABLE, ""},
        {"BUSY", HF_UNAVAILABLE, ""},
        {"TRYAGAIN", HF_UNAVAILABLE, ""},
        {"NOSCRIPT", HF_UNAVAILABLE, ""},
        {"MOVED", HF_UNSUPPORTED, no_cluster},
        {"ASK", HF_UNSUPPORTED, no_cluster},
        {"CROSSSLOT", HF_UNSUPPORTED, no_cluster},
        {"CLUSTERDOWN", HF_UNSUPPORTED, no_cluster},
        {"ERR max number of clients", HF_UNAVAILABLE, ""},
        {"ERR unknown command", HF_UNSUPPORTED, "; Redis 6 or newer is needed"},
    };

    if (reply->type != REDIS_REPLY_ERROR)
        return 0;
    const char *text = unwrap(reply);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strncmp(text, known[i].word, strlen(known[i].word)) == 0)
            return refuse(text, known[i].code, known[i].advice, err);
    }
    if (strncmp(text, "OOM", 3) == 0)
        return hf__fail(err, HF_FULL, "the server's memory is full; raise maxmemory");
    /* Of a command inside a script; the words differ from version to version. */
    if (strstr(text, "NOPERM") != NULL || strstr(text, "can't run this command") != NULL ||
        strstr(text, "can't access at least one of the keys") != NULL ||
        strstr(text, "ACL failure in script") != NULL)
        return refuse(text, HF_DENIED, rights, err);
    return refuse(text, HF_CORRUPT, "", err);
}

int hf__redis_take_error(struct hf__redis_conn *c, const redisReply *reply, hf_error *err)
{
    int r = hf__redis_error(reply, err);

    if (r == HF_UNAVAILABLE && strncmp(unwrap(reply), "READONLY", 8) == 0)
        c->broken = c->demoted = true; /* it was a master, and is no more: dial again */
    return r;
}

int hf__redis_ask(struct hf__redis_conn *c, int64_t deadline_ns, redisReply **ret_reply,
                  hf_error *err)
{
    redisReply *reply = NULL;
    int r = hf__redis_send(c, deadline_ns, err);

    if (r == 0)
        r = hf__redis_receive(c, deadline_ns, &reply, err);
    if (r == 0)
        r = hf__redis_take_error(c, reply, err);
    if (r != 0) {
        freeReplyObject(reply);
        return r;
    }
    *ret_reply = reply;
    return 0;
}
