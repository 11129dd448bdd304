/* What is sent to the JSON gateway, written as text: a tree of objects that is only made to be
 * written down would take longer than the rest of a release. What comes back is read in json.c.
 *
 * Bytes are base64, 64-bit numbers are strings, and what is 0, empty or the server's own choice is
 * left out. A transaction is written in its order: conditions, what is done if they hold, and what is
 * done otherwise. One that finds no memory is spoilt as a whole, since a condition must not just be
 * missing: it is never sent. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "stores/etcd/etcd.h"

#include "util/banned.h"

#define ROOM 1024 /* most fit */

bool hf__etcd_bytes_add(struct hf__etcd_bytes *b, const char *from, size_t len)
{
    if (b->len + len > b->size) {
        size_t size = 2 * (b->len + len) + ROOM;
        char *at = realloc(b->at, size);
        if (at == NULL)
            return false;
        b->at = at;
        b->size = size;
    }
    memcpy(b->at + b->len, from, len);
    b->len += len;
    return true;
}

char *hf__etcd_format(const char *format, ...)
{
    char *text = NULL;
    va_list arguments;

    va_start(arguments, format);
    int len = vasprintf(&text, format, arguments);
    va_end(arguments);
    return len < 0 ? NULL : text;
}

char *hf__etcd_key_request(const struct hf__etcd_key *key)
{
    char base64[HF__ETCD_BASE64(HF__ETCD_KEY_MAX)];

    hf__etcd_to_base64(key->bytes, key->len, base64);
    return hf__etcd_format("{\"key\":\"%s\"}", base64);
}

/* Words. --------------------------------------------------------------------------------------- */
static void add(struct hf__etcd_txn *t, const char *text)
{
    t->spoilt |= !hf__etcd_bytes_add(&t->text, text, strlen(text));
}

/* ,"field":"number" */
static void add_number(struct hf__etcd_txn *t, const char *field, int64_t number)
{
    char text[64];

    snprintf(text, sizeof text, ",\"%s\":\"%" PRId64 "\"", field, number);
    add(t, text);
}

/* "field":"bytes" */
static void add_bytes(struct hf__etcd_txn *t, const char *field, const char *bytes, size_t len)
{
    char base64[HF__ETCD_BASE64(384)];

    add(t, "\"");
    add(t, field);
    add(t, "\":\"");
    while (len > 384) { /* whole groups of three */
        hf__etcd_to_base64(bytes, 384, base64);
        add(t, base64);
        bytes += 384;
        len -= 384;
    }
    hf__etcd_to_base64(bytes, len, base64);
    add(t, base64);
    add(t, "\"");
}

static void add_key(struct hf__etcd_txn *t, const struct hf__etcd_key *key)
{
    add_bytes(t, "key", key->bytes, key->len);
}

/* Sentences. ----------------------------------------------------------------------------------- */
enum { NOTHING, COMPARE, SUCCESS, FAILURE };
static const char *const lists[] = {"", "\"compare\":[", "\"success\":[", "\"failure\":["};

/* The next item of a list, which begins with it or goes on. */
static void begin_item(struct hf__etcd_txn *t, int list)
{
    if (t->list == list) {
        add(t, ",");
        return;
    }
    add(t, t->list == NOTHING ? "{" : "],");
    add(t, lists[list]);
    t->list = list;
}

static void begin_step(struct hf__etcd_txn *t, const char *what)
{
    begin_item(t, t->otherwise ? FAILURE : SUCCESS);
    add(t, what);
}

static void end_lists(struct hf__etcd_txn *t)
{
    add(t, t->list == NOTHING ? "{}" : "]}");
}

static void compare_creation(struct hf__etcd_txn *t, const struct hf__etcd_key *key,
                             const struct hf__etcd_key *end, uint64_t revision)
{
    add_key(t, key);
    if (end != NULL) {
        add(t, ",");
        add_bytes(t, "range_end", end->bytes, end->len);
    }
    if (revision != 0)
        add_number(t, "create_revision", (int64_t)revision);
    add(t, "}");
}

void hf__etcd_compare(struct hf__etcd_txn *t, const struct hf__etcd_key *key, uint64_t revision)
{
    begin_item(t, COMPARE);
    add(t, "{\"target\":\"CREATE\",");
    compare_creation(t, key, NULL, revision);
}

void hf__etcd_compare_none(struct hf__etcd_txn *t, const struct hf__etcd_key *from,
                           const struct hf__etcd_key *end)
{
    begin_item(t, COMPARE);
    add(t, "{\"target\":\"CREATE\",");
    compare_creation(t, from, end, 0);
}

void hf__etcd_compare_above(struct hf__etcd_txn *t, const struct hf__etcd_key *key,
                            const struct hf__etcd_key *end, uint64_t revision)
{
    begin_item(t, COMPARE);
    add(t, "{\"target\":\"CREATE\",\"result\":\"GREATER\",");
    compare_creation(t, key, end, revision);
}

void hf__etcd_compare_put(struct hf__etcd_txn *t, const struct hf__etcd_key *key,
                          uint64_t mod_revision)
{
    begin_item(t, COMPARE);
    add(t, "{\"target\":\"MOD\",");
    add_key(t, key);
    add_number(t, "mod_revision", (int64_t)mod_revision);
    add(t, "}");
}

static void begin_put(struct hf__etcd_txn *t, const struct hf__etcd_key *key, int64_t lease)
{
    begin_step(t, "{\"request_put\":{");
    add_key(t, key);
    if (lease != 0)
        add_number(t, "lease", lease);
}

void hf__etcd_put(struct hf__etcd_txn *t, const struct hf__etcd_key *key, const char *value,
                  int64_t lease)
{
    begin_put(t, key, lease);
    if (value == NULL)
        t->spoilt = true;
    if (value != NULL && value[0] != '\0') {
        add(t, ",");
        add_bytes(t, "value", value, strlen(value));
    }
    add(t, "}}");
}

void hf__etcd_put_again(struct hf__etcd_txn *t, const struct hf__etcd_key *key, int64_t lease)
{
    begin_put(t, key, lease);
    add(t, ",\"ignore_value\":true}}");
}

void hf__etcd_delete(struct hf__etcd_txn *t, const struct hf__etcd_key *key)
{
    begin_step(t, "{\"request_delete_range\":{");
    add_key(t, key);
    add(t, "}}");
}

void hf__etcd_get(struct hf__etcd_txn *t, const struct hf__etcd_key *key)
{
    begin_step(t, "{\"request_range\":{");
    add_key(t, key);
    add(t, "}}");
}

void hf__etcd_range(struct hf__etcd_txn *t, const struct hf__etcd_range *range)
{
    begin_step(t, "{\"request_range\":{");
    add_key(t, range->from);
    add(t, ",");
    add_bytes(t, "range_end", range->to->bytes, range->to->len);
    add(t, range->newest > 0 ? ",\"sort_target\":\"CREATE\",\"sort_order\":\"DESCEND\""
                             : ",\"sort_target\":\"CREATE\",\"sort_order\":\"ASCEND\"");
    if (range->newest > 0)
        add_number(t, "limit", range->newest);
    if (range->before > 0)
        add_number(t, "max_create_revision", (int64_t)range->before - 1);
    add(t, "}}");
}

void hf__etcd_otherwise(struct hf__etcd_txn *t)
{
    t->otherwise = true;
}

void hf__etcd_nest(struct hf__etcd_txn *t)
{
    begin_step(t, "{\"request_txn\":");
    t->outer = t->list;
    t->outer_otherwise = t->otherwise;
    t->list = NOTHING;
    t->otherwise = false;
}

void hf__etcd_unnest(struct hf__etcd_txn *t)
{
    end_lists(t);
    add(t, "}");
    t->list = t->outer;
    t->otherwise = t->outer_otherwise;
}

char *hf__etcd_written(struct hf__etcd_txn *t)
{
    end_lists(t);
    t->spoilt |= !hf__etcd_bytes_add(&t->text, "", 1);
    if (!t->spoilt)
        return t->text.at;
    free(t->text.at);
    return NULL;
}
