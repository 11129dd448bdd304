/* What the doctor tries rather than claims: it takes a lock and lets it go, calls itself, and has the
 * server tell it of a key that changes, each once, and says how long that took. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "stores/redis/redis.h"

#include "base/banned.h"

#define WITHIN_MS 2000 /* for a message to come */

struct trial {
    struct hf__redis *s;
    struct hf__redis_conn *c, *subscriber;
    const struct hf__report *to;
    int64_t deadline_ns;
    char word[HF_TICKET_SIZE]; /* random: nobody else has this name */
};

static int64_t took_us(const struct trial *t, int64_t from_ns)
{
    return (hf__now_ns(t->s->base.host->env) - from_ns) / 1000;
}

static void try_lock(const struct trial *t)
{
    struct hf__store *store = &t->s->base;
    struct hf__answer answer = {.sent_ns = hf__now_ns(store->host->env)};
    struct hf__bid bid = {
        .name = t->word, .name_len = strlen(t->word), .ttl_ms = 10000, .who = store->host->self};
    struct hf__operation attempt = {.kind = HF__OPERATION_ATTEMPT, .bid = &bid};
    struct hf__operation release = {.kind = HF__OPERATION_RELEASE, .bid = &bid};
    hf_error err = {0};
    int64_t from_ns = answer.sent_ns;

    store->host->env->random(store->host->env->ctx, &bid.ticket, sizeof bid.ticket);
    int r = store->type->operate(store, &attempt, t->deadline_ns, &answer, &err);
    uint64_t token = answer.generation;
    bool granted = r == 0 && answer.verdict == HF__VERDICT_GRANTED;
    if (granted)
        r = store->type->operate(store, &release, t->deadline_ns, &answer, &err);
    if (granted && r == 0 && answer.verdict == HF__VERDICT_DONE)
        hf__say(t->to, HF__LEVEL_FINE, "C4",
                "a lock was taken and let go in %" PRId64 " us, with the token %" PRIu64,
                took_us(t, from_ns), token);
    else
        hf__say(t->to, HF__LEVEL_PROBLEM, "C1", "a lock could not be taken and let go: %s",
                r != 0 ? err.text : "it was refused");
}

/* The next message on the channel; false: none came. */
static bool hear(const struct trial *t, const char *channel)
{
    int64_t until_ns = hf__now_ns(t->s->base.host->env) + WITHIN_MS * HF__NS_PER_MS;
    bool heard = false;

    while (!heard) {
        redisReply *reply = NULL;
        if (hf__redis_receive(t->subscriber, until_ns < t->deadline_ns ? until_ns : t->deadline_ns,
                              &reply, NULL) != 0)
            return false;
        heard = hf__redis_fits(reply, "[ssa]") && strcmp(reply->element[1]->str, channel) == 0 &&
                strcmp(reply->element[0]->str, "message") == 0;
        freeReplyObject(reply);
    }
    return true;
}

/* Sends what was made; how many of the replies were errors. */
static int ask_all(const struct trial *t, int count)
{
    int refused = 0, r = hf__redis_send(t->c, t->deadline_ns, NULL);

    for (int i = 0; r == 0 && i < count; i++) {
        redisReply *reply = NULL;
        r = hf__redis_receive(t->c, t->deadline_ns, &reply, NULL);
        if (r == 0)
            refused += reply->type == REDIS_REPLY_ERROR;
        freeReplyObject(reply);
    }
    return r != 0 ? count : refused;
}

static void try_call(const struct trial *t)
{
    char channel[sizeof HF__REDIS_WAKE_WORD + HF_TICKET_SIZE];
    int64_t from_ns = hf__now_ns(t->s->base.host->env);

    snprintf(channel, sizeof channel, HF__REDIS_WAKE_WORD "%s", t->word);
    hf__redis_command(t->c, "PUBLISH", channel, "x", (char *)NULL);
    if (ask_all(t, 1) == 0 && hear(t, channel))
        hf__say(t->to, HF__LEVEL_FINE, "C12", "a waiter is called: that took %" PRId64 " us",
                took_us(t, from_ns));
    else
        hf__say(t->to, HF__LEVEL_WARNING, "C12",
                "a waiter was called and did not hear it: waiters ask every %" PRId64 " ms",
                t->s->set.poll_ms);
}

static void try_watch(const struct trial *t)
{
    char key[64], id[24];

    snprintf(key, sizeof key, HF__REDIS_OWN_WORD "n:%s", t->word);
    snprintf(id, sizeof id, "%" PRId64, t->subscriber->id);
    hf__redis_command(t->c, "CLIENT", "TRACKING", "ON", "REDIRECT", id, "OPTIN", (char *)NULL);
    hf__redis_command(t->c, "CLIENT", "CACHING", "YES", (char *)NULL);
    hf__redis_command(t->c, "PTTL", key, (char *)NULL);
    bool asked = t->subscriber->id != 0 && ask_all(t, 3) == 0;
    t->c->out.len = 0;
    int64_t from_ns = hf__now_ns(t->s->base.host->env);
    hf__redis_command(t->c, "SET", key, "x", "PX", "1000", (char *)NULL);
    if (asked && ask_all(t, 1) == 0 && hear(t, HF__REDIS_INVALIDATE))
        hf__say(t->to, HF__LEVEL_FINE, "C12",
                "the server tells when another client lets go: that took %" PRId64 " us",
                took_us(t, from_ns));
    else
        hf__say(t->to, HF__LEVEL_WARNING, "C12",
                "the server does not tell when another client lets go: the first in the queue asks "
                "every %" PRId64 " ms",
                t->s->set.recheck_ms);
}

void hf__redis_try(struct hf__redis *s, struct hf__redis_conn *c, const struct hf__report *to,
                   int64_t deadline_ns)
{
    struct trial t = {.s = s, .c = c, .to = to, .deadline_ns = deadline_ns};
    const struct hf_env *env = s->base.host->env;
    struct hf__ticket word;

    env->random(env->ctx, &word, sizeof word);
    hf__ticket_format(&word, t.word);
    try_lock(&t);
    if (s->set.poll)
        return;
    int r = hf__redis_dial(s, deadline_ns, &t.subscriber, NULL);
    if (r == 0)
        r = hf__redis_subscribe(t.subscriber, t.word, deadline_ns);
    if (r == 0) {
        try_call(&t);
        try_watch(&t);
    } else {
        hf__say(to, HF__LEVEL_WARNING, "C12",
                "nobody can subscribe here: waiters ask every %" PRId64 " ms", s->set.poll_ms);
    }
    hf__redis_hang_up(t.subscriber);
}
