/* Which names there are: those of all keys that were made with our key_format. A node that answers
 * no more is left out, as long as enough of them have told all.
 *
 * All nodes are asked, since no single one has every name, and SCAN of Redis may tell a key twice:
 * so the names are sorted and each is kept once. A lock that is taken or released meanwhile may be
 * told or not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "stores/redlock/inspect.h"
#include "stores/search.h"

#include "base/banned.h"

#define SCAN_COUNT \
    "1000" /* keys that a server looks at in one go, in which it serves nobody else */

int hf__redlock_add_name(struct hf__redlock_names *n, const char *bytes, size_t len, hf_error *err)
{
    if (n->count == n->capacity) {
        size_t capacity = n->capacity == 0 ? 64 : 2 * n->capacity;
        struct hf__redlock_name *list = realloc(n->list, capacity * sizeof *list);
        if (list == NULL)
            return hf__fail(err, HF_NO_MEMORY, NULL);
        n->list = list;
        n->capacity = capacity;
    }
    char *copy = malloc(len + 1);
    if (copy == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    memcpy(copy, bytes, len);
    n->list[n->count++] = (struct hf__redlock_name){.len = len, .bytes = copy};
    return 0;
}

static int by_bytes(const void *a, const void *b)
{
    const struct hf__redlock_name *x = a, *y = b;

    return hf__bytes_order(x->bytes, x->len, y->bytes, y->len);
}

/* In order, each once. */
static void sort_names(struct hf__redlock_names *n)
{
    size_t kept = 0;

    if (n->count > 1)
        qsort(n->list, n->count, sizeof n->list[0], by_bytes);
    for (size_t i = 0; i < n->count; i++) {
        if (kept > 0 && by_bytes(&n->list[kept - 1], &n->list[i]) == 0)
            free(n->list[i].bytes);
        else
            n->list[kept++] = n->list[i];
    }
    n->count = kept;
}

/* MATCH takes a pattern, and a key_format may have any of its special characters. */
static char *put_plainly(char *to, const char *text)
{
    for (; *text != '\0'; text++) {
        if (strchr("*?[]\\^-", *text) != NULL)
            *to++ = '\\';
        *to++ = *text;
    }
    return to;
}

static void write_scan(struct hf__redlock_ask *ask, size_t node, struct hf__redis_conn *c)
{
    const struct hf__redlock_inspection *w = (const struct hf__redlock_inspection *)ask;

    hf__redis_add_text(c, "SCAN");
    hf__redis_add_text(c, w->cursors[node]);
    hf__redis_add_text(c, "MATCH");
    hf__redis_add_text(c, w->pattern);
    hf__redis_add_text(c, "COUNT");
    hf__redis_add_text(c, SCAN_COUNT);
}

/* The name in a key, if it was made with our key_format and is looked for. With a key_format of
 * "%s" our own notes match the pattern, too. */
static int take_key(struct hf__redlock_inspection *w, const redisReply *key, hf_error *err)
{
    size_t before = strlen(w->s->set.key_before), after = strlen(w->s->set.key_after);
    size_t word = sizeof HF__REDLOCK_OWN_WORD - 1, key_len = (size_t)key->len;

    if (key_len < before + after + 1 ||
        (key_len >= word && memcmp(key->str, HF__REDLOCK_OWN_WORD, word) == 0))
        return 0;
    const char *name = key->str + before;
    size_t len = key_len - before - after;
    if (memcmp(key->str, w->s->set.key_before, before) != 0 ||
        memcmp(name + len, w->s->set.key_after, after) != 0 || len > HF_NAME_MAX ||
        !hf__search_wants(w->search, name, len))
        return 0;
    return hf__redlock_add_name(&w->names, name, len, err);
}

static int take_scan(struct hf__redlock_ask *ask, size_t node, redisReply **at, hf_error *err)
{
    struct hf__redlock_inspection *w = (struct hf__redlock_inspection *)ask;
    const redisReply *reply = *at;
    int r = 0;

    if (!hf__redis_read_page(reply, w->cursors[node], err))
        return HF_CORRUPT;
    for (size_t i = 0; r == 0 && i < reply->element[1]->elements; i++)
        r = take_key(w, reply->element[1]->element[i], err);
    return r;
}

int hf__redlock_ask_nodes(struct hf__redlock_inspection *w, hf_error *err)
{
    uint32_t to = w->ask.to;

    w->ask.sent = w->ask.replied = 0;
    w->ask.patient = true;
    if (w->search->name == NULL) /* there may be millions of keys: each page has its own time */
        w->deadline_ns = hf__redlock_soon(w->s, w->s->base.host->op_timeout_ms, INT64_MAX);
    hf__redlock_round(w->s, w->set, &w->ask,
                      hf__redlock_soon(w->s, 2 * w->s->node_timeout_ms, w->deadline_ns));
    size_t answered = hf__redlock_votes(w->ask.replied);
    if (w->ask.why.code == HF_NO_MEMORY)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    if (answered < w->s->quorum && w->ask.replied != to)
        return hf__redlock_too_few(w->s, &w->ask, answered, err);
    return 0;
}

/* Page by page, as long as any node has more. */
int hf__redlock_find_names(struct hf__redlock_inspection *w, hf_error *err)
{
    uint32_t all = hf__redlock_all(w->s), answered = all;
    int r = 0;

    for (size_t i = 0; i < w->s->count; i++)
        snprintf(w->cursors[i], sizeof w->cursors[i], "0");
    char *at = put_plainly(w->pattern, w->s->set.key_before);
    *at++ = '*';
    *put_plainly(at, w->s->set.key_after) = '\0';
    w->ask = (struct hf__redlock_ask){.script = HF__REDLOCK_SCRIPT_NONE,
                                      .write = write_scan,
                                      .argc = 6,
                                      .reply = take_scan,
                                      .to = all};
    while (r == 0 && w->ask.to != 0) {
        r = hf__redlock_ask_nodes(w, err);
        answered &= ~w->ask.to | w->ask.replied;
        w->ask.to &= answered;
        for (size_t i = 0; i < w->s->count; i++) { /* a cursor of 0 again: that node has told all */
            if (strcmp(w->cursors[i], "0") == 0)
                w->ask.to &= ~(1U << i);
        }
    }
    if (r == 0 && hf__redlock_votes(answered) < w->s->quorum)
        r = hf__redlock_too_few(w->s, &w->ask, hf__redlock_votes(answered), err);
    sort_names(&w->names);
    return r;
}
