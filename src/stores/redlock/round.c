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

/* How far a node is in this round. ABSENT: not asked, or lost for good. */
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

    if (ask->script == HF__REDLOCK_SCRIPT_NONE) {
        hf__redis_begin(c, ask->argc);
    } else {
        hf__redis_begin(c, 2 + ask->argc);
        hf__redis_add_text(c, whole ? "EVAL" : "EVALSHA");
        hf__redis_add_text(c, hf__redlock_script_text(ask->script, whole));
    }
    ask->write(ask, node, c);
}

/* A refusal tells more than a silence: "wrong password" is what the user can mend. */
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
    /* Scripts are loaded with the log-in, but SCRIPT FLUSH forgets them and keeps the
     * connection. */
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

/* A line that worked until now may simply be old: the server was restarted, or ends what is idle.
 * So it is dialled once more. A request that was on it counts as owed, which tells
 * hf__redlock_fail() that an attempt may be adrift. */
static void lose_line(struct round *r, size_t node, const hf_error *why)
{
    struct hf__redlock_line *line = &r->set->lines[node];
    bool was_ready = line->state == HF__REDLOCK_STATE_READY;
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

static void exchange(struct round *r, size_t node)
{
    struct hf__redlock_line *line = &r->set->lines[node];
    hf_error why = {0};

    r->hearing = node;
    int code = hf__redlock_exchange(r->s, node, line, hear, r, &why);
    if (code == 0 && line->c->out.len > 0 && line->events == 0)
        code = hf__redlock_flush(r->s, node, line, &why); /* what hear() has added */
    if (code != 0)
        lose_line(r, node, &why);
}

/* Whether the restart guard lets it vote: a server that was restarted may have forgotten locks, and
 * after max_ttl all that it could have forgotten are over. */
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

/* A server that hung up while nobody looked, or that has not said a word for too long. The first is
 * seen by one system call, which is spared to lines that were in use just now. */
static void hang_up_if_dead(struct round *r, size_t node, int64_t now_ns)
{
    struct hf__redlock_line *line = &r->set->lines[node];
    int64_t patience_ns = r->s->base.host->op_timeout_ms * HF__NS_PER_MS;
    bool waits = line->state == HF__REDLOCK_STATE_LOGGING_IN || line->owed > 0;
    hf_error why = {0};

    if (line->state == HF__REDLOCK_STATE_DOWN)
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

/* Sends the question if the line is up, and dials if it is down. A node that is far behind gets no
 * bids until it has caught up, but releases all the same. Hanging up on it instead would set its
 * attempts adrift, and every release would have to leave a note there for a minute. */
static void send_or_dial(struct round *r, size_t node, int64_t now_ns)
{
    struct hf__redlock_line *line = &r->set->lines[node];
    hf_error why = {0};

    if (r->parts[node] != TO_SEND)
        return;
    if (line->state == HF__REDLOCK_STATE_DOWN &&
        hf__redlock_dial(r->s, node, line, r->deadline_ns, &why) != 0) {
        r->parts[node] = ABSENT;
        note_why(r, &why);
        return;
    }
    if (line->state == HF__REDLOCK_STATE_READY) {
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

/* What poll() has to watch; the number of nodes that are worth waiting for. Those that lag are
 * watched too, so that one of them is heard if it answers while others are waited for. */
static size_t fill_poll(struct round *r, struct pollfd *polled, int64_t now_ns)
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

/* Dials, sends and reads until the votes decide. */
static void ask_all(struct round *r)
{
    const struct hf_env *env = r->s->base.host->env;
    struct hf__redlock_ask *ask = r->ask;
    struct pollfd polled[HF__REDLOCK_NODES_MAX];

    for (;;) {
        int64_t now_ns = hf__now_ns(env);
        for (size_t i = 0; i < r->s->count; i++)
            send_or_dial(r, i, now_ns);
        if ((ask->decided != NULL && ask->decided(ask)) || fill_poll(r, polled, now_ns) == 0 ||
            now_ns >= r->deadline_ns)
            return;
        /* Short enough to notice in time that a node has begun to lag. */
        int64_t left_ms = (r->deadline_ns - now_ns) / HF__NS_PER_MS + 1;
        int wait_ms = (int)(left_ms > r->s->node_timeout_ms ? r->s->node_timeout_ms : left_ms);
        if (poll(polled, r->s->count, wait_ms) < 0 && errno != EINTR)
            return;
        for (size_t i = 0; i < r->s->count; i++) {
            if (polled[i].fd >= 0 && polled[i].revents & EVENTS_ANY)
                exchange(r, i);
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
        hang_up_if_dead(&r, i, now_ns);
        r.parts[i] = TO_SEND;
    }
    ask_all(&r);
    /* Replies that nobody waits for now will still come, and must not be taken for those of the
     * next round. */
    for (size_t i = 0; i < s->count; i++)
        set->lines[i].owed += r.parts[i] == SENT;
}

/* Servers that answer but may not vote yet are counted apart: who has just restarted them all would
 * otherwise look for a fault of the network. */
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
