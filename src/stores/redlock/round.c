/* One question to all nodes at once, from one thread.
 *
 * Each node has a line that never blocks; poll() waits for all of them. The round ends as soon as
 * the votes decide, so that a node that is slow or dead delays nobody; one that has been silent for
 * longer than node_timeout is still asked, but no longer waited for. Every question is answered by
 * ticket, so a line that breaks is dialled again once, and asked again. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "stores/redlock/redlock.h"

#include "base/banned.h"

#define OWED_MAX   32   /* a node that owes more replies gets no bids until it has caught up */
#define QUIET_MS   1000 /* idle for so long: look whether the server has hung up */
#define EVENTS_ANY (POLLIN | POLLOUT | POLLERR | POLLHUP)

enum part { ABSENT, TO_SEND, SENT, ANSWERED };

struct round {
    struct hf__redlock *s;
    struct hf__redlock_set *set;
    struct hf__redlock_ask *ask;
    int64_t deadline_ns;
    size_t hearing; /* the node whose replies are read now */
    enum part parts[HF__REDLOCK_NODES_MAX];
    uint32_t again; /* nodes that were dialled a second time */
};

static void write_request(struct round *r, size_t node, bool whole)
{
    struct hf__redlock_ask *ask = r->ask;
    struct hf__redis_conn *c = r->set->lines[node].c;

    if (ask->script == HF__REDLOCK_NO_SCRIPT) {
        hf__redis_begin(c, ask->argc);
    } else {
        hf__redis_begin(c, 2 + ask->argc);
        hf__redis_add_text(c, whole ? "EVAL" : "EVALSHA");
        hf__redis_add_text(c, hf__redlock_script_text(ask->script, whole));
    }
    ask->write(ask, node, c);
}

/* A refusal tells more than a silence. */
static void note_why(struct round *r, const hf_error *why)
{
    hf_error *kept = &r->ask->why;

    if (kept->code == 0 || (kept->code == HF_UNAVAILABLE && why->code != HF_UNAVAILABLE))
        *kept = *why;
}

static int hear(void *ctx, redisReply **at, hf_error *err)
{
    struct round *r = ctx;
    const redisReply *reply = *at;
    size_t node = r->hearing;
    struct hf__redlock_ask *ask = r->ask;

    if (r->parts[node] != SENT)
        return hf__fail(err, HF_CORRUPT, "a reply that nobody asked for");
    if (reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "NOSCRIPT", 8) == 0) {
        write_request(r, node, true);
        return 0;
    }
    r->parts[node] = ANSWERED;
    hf_error why = {0};
    int code = hf__redis_error(reply, &why);
    if (code == 0)
        code = ask->reply(ask, node, at, &why);
    if (code == 0)
        ask->replied |= 1U << node;
    else
        note_why(r, &why); /* the line itself is well */
    return 0;
}

static void lose_line(struct round *r, size_t node, const hf_error *why)
{
    struct hf__redlock_line *line = &r->set->lines[node];
    bool was_ready = line->state == HF__REDLOCK_READY;
    bool again = was_ready && !(r->again & 1U << node);

    line->owed += r->parts[node] == SENT;
    hf__redlock_fail(r->s, node, line, why);
    if (r->parts[node] == ABSENT || r->parts[node] == ANSWERED)
        return;
    r->again |= 1U << node;
    r->parts[node] = again ? TO_SEND : ABSENT;
    if (!again)
        note_why(r, why);
}

static void move(struct round *r, size_t node)
{
    struct hf__redlock_line *line = &r->set->lines[node];
    hf_error why = {0};

    r->hearing = node;
    int code = hf__redlock_move(r->s, node, line, hear, r, &why);
    if (code == 0 && line->c->out.len > 0 && line->events == 0)
        code = hf__redlock_flush(r->s, node, line, &why); /* what hear() has added */
    if (code != 0)
        lose_line(r, node, &why);
}

/* Whether the restart guard lets it vote. */
static bool may_vote(struct round *r, size_t node, int64_t now_ns)
{
    const struct hf__redlock *s = r->s;
    int64_t up_ms = (now_ns - r->set->lines[node].up_since_ns) / HF__NS_PER_MS;
    hf_error why = {0};

    if (!r->ask->voters_only || !s->guard || up_ms >= s->max_ttl_ms)
        return true;
    hf__fail(&why, HF_UNAVAILABLE,
             "%s:%s has been up for %lld ms only, and votes after max_ttl (%lld ms)",
             s->nodes[node].host, s->nodes[node].port, (long long)up_ms, (long long)s->max_ttl_ms);
    note_why(r, &why);
    r->ask->kept_out |= 1U << node;
    return false;
}

/* A server that hung up while nobody looked, or that has not said a word for too long. */
static void refresh(struct round *r, size_t node, int64_t now_ns)
{
    struct hf__redlock_line *line = &r->set->lines[node];
    int64_t patience_ns = r->s->base.host->op_timeout_ms * HF__NS_PER_MS;
    bool waits = line->state == HF__REDLOCK_LOGGING_IN || line->owed > 0;
    hf_error why = {0};

    if (line->state == HF__REDLOCK_DOWN)
        return;
    if (waits && now_ns - line->since_ns > patience_ns) {
        hf__fail(&why, HF_UNAVAILABLE, "%s:%s does not answer", r->s->nodes[node].host,
                 r->s->nodes[node].port);
        hf__redlock_fail(r->s, node, line, &why);
    } else if (!waits && now_ns - line->used_ns > QUIET_MS * HF__NS_PER_MS &&
               !hf__stream_is_quiet(&line->c->stream)) {
        hf__redlock_hang_up(line);
    }
}

/* Sends the question if the line is up, and dials if it is down. */
static void push(struct round *r, size_t node, int64_t now_ns)
{
    struct hf__redlock_line *line = &r->set->lines[node];
    hf_error why = {0};

    if (r->parts[node] != TO_SEND)
        return;
    if (line->state == HF__REDLOCK_DOWN &&
        hf__redlock_dial(r->s, node, line, r->deadline_ns, &why) != 0) {
        r->parts[node] = ABSENT;
        note_why(r, &why);
        return;
    }
    if (line->state == HF__REDLOCK_READY) {
        if (r->ask->voters_only && line->owed >= OWED_MAX)
            return;
        if (!may_vote(r, node, now_ns)) {
            r->parts[node] = ABSENT;
            return;
        }
        if (line->owed == 0)
            line->since_ns = now_ns;
        write_request(r, node, false);
        r->parts[node] = SENT;
        r->ask->sent |= 1U << node;
        line->used_ns = now_ns;
    }
    if (line->events == 0 && line->c->out.len > 0 && hf__redlock_flush(r->s, node, line, &why) != 0)
        lose_line(r, node, &why);
}

/* What poll() has to look at; the number of nodes that are worth waiting for. */
static size_t gather(struct round *r, struct pollfd *polled, int64_t now_ns)
{
    size_t worth = 0;

    for (size_t i = 0; i < r->s->count; i++) {
        const struct hf__redlock_line *line = &r->set->lines[i];
        bool open = r->parts[i] == TO_SEND || r->parts[i] == SENT;
        polled[i] = (struct pollfd){.fd = open && line->c != NULL ? line->c->stream.fd : -1,
                                    .events = (short)(POLLIN | line->events)};
        if (open && (r->ask->patient || !hf__redlock_lags(r->s, line, now_ns)))
            worth++;
    }
    return worth;
}

static int wait_ms(const struct round *r, int64_t now_ns)
{
    int64_t ms = (r->deadline_ns - now_ns) / HF__NS_PER_MS + 1;

    /* Short enough to notice in time that a node has begun to lag. */
    return (int)(ms > r->s->node_timeout_ms ? r->s->node_timeout_ms : ms);
}

static void ask_all(struct round *r)
{
    const struct hf_env *env = r->s->base.host->env;
    struct pollfd polled[HF__REDLOCK_NODES_MAX];

    for (;;) {
        int64_t now_ns = hf__now_ns(env);
        for (size_t i = 0; i < r->s->count; i++)
            push(r, i, now_ns);
        if (r->ask->decided(r->ask) || gather(r, polled, now_ns) == 0 || now_ns >= r->deadline_ns)
            return;
        if (poll(polled, r->s->count, wait_ms(r, now_ns)) < 0 && errno != EINTR)
            return;
        for (size_t i = 0; i < r->s->count; i++) {
            if (polled[i].fd >= 0 && polled[i].revents & EVENTS_ANY)
                move(r, i);
        }
    }
}

int64_t hf__redlock_soon(const struct hf__redlock *s, int64_t ms, int64_t deadline_ns)
{
    int64_t soon_ns = hf__now_ns(s->base.host->env) + ms * HF__NS_PER_MS;

    return soon_ns < deadline_ns ? soon_ns : deadline_ns;
}

void hf__redlock_round(struct hf__redlock *s, struct hf__redlock_set *set,
                       struct hf__redlock_ask *ask, int64_t deadline_ns)
{
    struct round r = {.s = s, .set = set, .ask = ask, .deadline_ns = deadline_ns};
    int64_t now_ns = hf__now_ns(s->base.host->env);

    for (size_t i = 0; i < s->count; i++) {
        if (!(ask->to & 1U << i))
            continue;
        refresh(&r, i, now_ns);
        r.parts[i] = TO_SEND;
    }
    ask_all(&r);
    for (size_t i = 0; i < s->count; i++)
        set->lines[i].owed += r.parts[i] == SENT;
}

int hf__redlock_too_few(const struct hf__redlock *s, const struct hf__redlock_ask *ask,
                        size_t answered, hf_error *err)
{
    const hf_error *why = &ask->why;
    bool refused = why->code != 0 && why->code != HF_UNAVAILABLE && why->code != HF_UNKNOWN;

    size_t kept_out = hf__redlock_votes(ask->kept_out);
    char guard[80] = "answered";

    if (kept_out > 0)
        snprintf(guard, sizeof guard, "can vote (%zu answer and have no vote yet)", kept_out);
    return hf__fail(err, refused ? why->code : HF_UNAVAILABLE,
                    "only %zu of %zu servers %s, %zu are needed%s%s", answered, s->count, guard,
                    s->quorum, why->code != 0 ? ": " : "", why->code != 0 ? why->text : "");
}
