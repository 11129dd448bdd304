/* Extending many locks at once: one script call to each node, and a majority for each lock.
 *
 * As its author specified it, a node that has lost the key does not get it again. A lock that has
 * no majority among those that answered is lost, rather than left in doubt: the keeper renews many
 * in one call, and must not lose the others for it. */
#include <stdlib.h>

#include "stores/redlock/redlock.h"

#include "base/banned.h"

struct renewing {
    struct hf__redlock_ask ask;
    const struct hf__redlock *s;
    struct hf__renewal *items;
    size_t count;
    struct tally {
        int64_t ttl_ms;
        unsigned char yes, no;
    } * tallies;
};

static void write_renewals(struct hf__redlock_ask *ask, size_t node, struct hf__redis_conn *c)
{
    const struct renewing *w = (const struct renewing *)ask;
    char ticket[HF_TICKET_SIZE];
    struct hf__redlock_key key;

    (void)node;
    hf__redis_add_number(c, (int64_t)(2 * w->count));
    for (size_t i = 0; i < w->count; i++) {
        hf__redlock_key(w->s, w->items[i].name, w->items[i].name_len, &key, NULL);
        hf__redis_add(c, key.bytes, key.len);
        hf__ticket_format(&w->items[i].ticket, ticket);
        hf__redlock_add_note_name(c, ticket);
    }
    for (size_t i = 0; i < w->count; i++) {
        hf__ticket_format(&w->items[i].ticket, ticket);
        hf__redis_add(c, ticket, HF_TICKET_SIZE - 1);
    }
}

static int count_renewals(struct hf__redlock_ask *ask, size_t node, redisReply **at, hf_error *err)
{
    struct renewing *w = (struct renewing *)ask;
    const redisReply *reply = *at;

    (void)node;
    if (!hf__redis_fits(reply, "[(i)]") || reply->elements != w->count)
        return hf__fail(err, HF_CORRUPT, "renew: the server gave another number of answers");
    for (size_t i = 0; i < w->count; i++) {
        int64_t ttl_ms = reply->element[i]->integer;
        w->tallies[i].yes += ttl_ms > 0;
        w->tallies[i].no += ttl_ms <= 0;
        if (ttl_ms > 0)
            w->tallies[i].ttl_ms = ttl_ms;
    }
    return 0;
}

static bool all_renewed(const struct hf__redlock_ask *ask)
{
    const struct renewing *w = (const struct renewing *)ask;

    for (size_t i = 0; i < w->count; i++) {
        if (w->tallies[i].yes < w->s->quorum && w->tallies[i].no <= w->s->count - w->s->quorum)
            return false;
    }
    return true;
}

/* Without a majority it is not extended. One that a waiter or an adopter asked for without knowing
 * of a grant is then simply not theirs. */
static void answer_renewals(const struct renewing *w)
{
    for (size_t i = 0; i < w->count; i++) {
        struct hf__renewal *item = &w->items[i];
        struct hf__answer *a = &item->answer;
        if (w->tallies[i].yes >= w->s->quorum) {
            a->verdict = HF__VERDICT_GRANTED;
            a->generation = HF__REDLOCK_GRANT;
            a->lease_ms = w->tallies[i].ttl_ms;
            a->claimed = true;
        } else {
            a->verdict = item->generation != 0 ? HF__VERDICT_GONE : HF__VERDICT_QUEUED;
            a->lease_ms = 0;
            a->ask_again_ms = w->s->retry_ms;
        }
    }
}

int hf__redlock_renew(struct hf__store *store, struct hf__renewal *items, size_t count,
                      int64_t deadline_ns, hf_error *err)
{
    struct hf__redlock *s = (struct hf__redlock *)store;
    struct hf__redlock_set *set = NULL;
    struct renewing w = {.s = s, .items = items, .count = count};
    int r = hf__redlock_take(s, deadline_ns, &set, err);

    if (r != 0)
        return r;
    w.tallies = calloc(count, sizeof w.tallies[0]);
    if (w.tallies == NULL) {
        hf__redlock_give(s, set);
        return hf__fail(err, HF_NO_MEMORY, NULL);
    }
    w.ask = (struct hf__redlock_ask){.script = HF__REDLOCK_SCRIPT_RENEW,
                                     .write = write_renewals,
                                     .argc = 1 + 3 * count,
                                     .reply = count_renewals,
                                     .decided = all_renewed,
                                     .to = hf__redlock_all(s)};
    hf__redlock_round(s, set, &w.ask, deadline_ns);
    hf__redlock_give(s, set);
    if (hf__redlock_votes(w.ask.replied) < s->quorum) {
        hf__redlock_too_few(s, &w.ask, hf__redlock_votes(w.ask.replied), err);
        r = hf__wrap(err, HF_UNKNOWN, "renew");
    } else {
        answer_renewals(&w);
    }
    free(w.tallies);
    return r;
}
