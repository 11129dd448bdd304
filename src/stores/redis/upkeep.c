/* Going through all locks, and forgetting those that nobody uses. Nothing has to be set up, but the
 * server must be there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stores/redis/redis.h"

#include "base/banned.h"

#define PER_PAGE "500"

/* A page of keys takes as long as one of all the keys of the server takes, of which there may be
 * millions: so each page has its own time, not all together. */
static int64_t page_deadline_ns(const struct hf__redis *s)
{
    const struct hf__host *host = s->base.host;

    return hf__now_ns(host->env) + host->op_timeout_ms * HF__NS_PER_MS;
}

int hf__redis_scan(struct hf__redis *s, const char *kinds, hf__redis_page *page, void *ctx,
                   hf_error *err)
{
    char pattern[sizeof HF__REDIS_OWN_WORD + 20];
    struct hf__redis_conn *c = NULL;
    char cursor[HF__REDIS_CURSOR_SIZE] = "0";
    int r = hf__redis_take(s, page_deadline_ns(s), &c, err);

    if (r != 0)
        return r;
    snprintf(pattern, sizeof pattern, HF__REDIS_OWN_WORD "[%s][:.]*", kinds);
    do {
        int64_t deadline_ns = page_deadline_ns(s);
        redisReply *reply = NULL;
        hf__redis_command(c, "SCAN", cursor, "MATCH", pattern, "COUNT", PER_PAGE, (char *)NULL);
        r = hf__redis_ask(c, deadline_ns, &reply, err);
        if (r == 0 && !hf__redis_read_page(reply, cursor, err))
            r = HF_CORRUPT;
        if (r == 0 && reply->element[1]->elements > 0)
            r = page(ctx, c, reply->element[1]->element, reply->element[1]->elements, deadline_ns,
                     err);
        freeReplyObject(reply);
    } while (r == 0 && strcmp(cursor, "0") != 0);
    hf__redis_give(s, c);
    return r;
}

struct purge {
    struct hf__redis *s;
    int64_t retain_ms;
    uint64_t count;
};

static int purge_page(void *ctx, struct hf__redis_conn *c, redisReply **books, size_t count,
                      int64_t deadline_ns, hf_error *err)
{
    struct purge *purge = ctx;
    struct hf__redis_names *names = calloc(count, sizeof *names);
    redisReply *reply = NULL;
    const char *name;
    size_t len, kept = 0;

    if (names == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    for (size_t i = 0; i < count; i++)
        kept += hf__redis_unname(purge->s, books[i]->str, (size_t)books[i]->len, &names[kept],
                                 &name, &len);
    /* What is not ours is left alone, even where it looks like a book. */
    if (kept == 0) { /* they were made with another key_format */
        free(names);
        return 0;
    }
    hf__redis_script(c, HF__REDIS_SCRIPT_PURGE, 2 * kept, 2);
    for (size_t i = 0; i < kept; i++)
        hf__redis_add_names(c, &names[i]);
    hf__redis_add_number(c, (uint64_t)purge->retain_ms);
    hf__redis_add_number(c, (uint64_t)purge->s->set.retain_ms);
    int r = hf__redis_run(c, HF__REDIS_SCRIPT_PURGE, deadline_ns, &reply, err);
    if (r == 0 && (!hf__redis_fits(reply, "i") || reply->integer < 0))
        r = hf__fail(err, HF_CORRUPT, "purge: the server gave an answer that was not expected");
    if (r == 0)
        purge->count += (uint64_t)reply->integer;
    freeReplyObject(reply);
    free(names);
    return r;
}

int hf__redis_upkeep(struct hf__store *store, enum hf__upkeep what, int64_t retain_ms,
                     int64_t deadline_ns, uint64_t *ret_count, hf_error *err)
{
    struct purge purge = {.s = (struct hf__redis *)store, .retain_ms = retain_ms};
    struct hf__redis_conn *c = NULL;
    redisReply *pong = NULL;
    int r = 0;

    if (what == HF__UPKEEP_PURGE) {
        r = hf__redis_scan(purge.s, "bv", purge_page, &purge, err);
        if (r == 0)
            *ret_count = purge.count;
        return r;
    }
    r = hf__redis_take(purge.s, deadline_ns, &c, err);
    if (r != 0)
        return r;
    hf__redis_command(c, "PING", (char *)NULL);
    r = hf__redis_ask(c, deadline_ns, &pong, err);
    freeReplyObject(pong);
    hf__redis_give(purge.s, c);
    return r;
}
