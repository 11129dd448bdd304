/* One connection to one node: dial, log in, exchange, all without waiting. Whoever asks polls the
 * lines of all nodes together (round.c).
 *
 *      DOWN --dial--> LOGGING_IN --replies--> READY
 *        ^                 |                    |
 *        `-----------------+----- failed -------'
 *
 * A node that does not answer keeps its line: what is sent later queues up behind what it has not
 * read yet, so that a release can never overtake its attempt. For the same reason the scripts are
 * loaded with the log-in: nobody may be there to teach them when a late request is read. The
 * replies are then owed, and dropped when they come. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/backoff.h"
#include "net/resolve.h"
#include "stores/redlock/redlock.h"

#include "base/banned.h"

#define BACKOFF_MAX_MS 500

#define X(id, name) extern const char hf__redlock_lua_##name[], hf__redlock_lua_##name##_sha1[];
HF__REDLOCK_SCRIPTS(X)
#undef X

static const struct {
    const char *text, *sha1;
} scripts[] = {
#define X(id, name) {hf__redlock_lua_##name, hf__redlock_lua_##name##_sha1},
    HF__REDLOCK_SCRIPTS(X)
#undef X
};

#define SCRIPT_COUNT (sizeof scripts / sizeof scripts[0])

const char *hf__redlock_script_text(enum hf__redlock_script script, bool whole)
{
    return whole ? scripts[script].text : scripts[script].sha1;
}

void hf__redlock_hang_up(struct hf__redlock_line *line)
{
    hf__redis_hang_up(line->c);
    *line = (struct hf__redlock_line){.state = HF__REDLOCK_STATE_DOWN};
}

bool hf__redlock_lags(const struct hf__redlock *s, const struct hf__redlock_line *line,
                      int64_t now_ns)
{
    return (line->state == HF__REDLOCK_STATE_LOGGING_IN || line->owed > 0) &&
           now_ns - line->since_ns > s->node_timeout_ms * HF__NS_PER_MS;
}

static int explain(const struct hf__redlock_node *node, int code, const char *why, hf_error *err)
{
    char shown[100];

    hf__printable(node->host, strlen(node->host), shown, sizeof shown);
    return hf__fail(err, code, "%s:%s: %s", shown, node->port, why);
}

void hf__redlock_fail(struct hf__redlock *s, size_t i, struct hf__redlock_line *line,
                      const hf_error *why)
{
    struct hf__redlock_node *node = &s->nodes[i];
    const struct hf_env *env = s->base.host->env;
    int64_t now_ns = hf__now_ns(env);

    pthread_mutex_lock(&s->mutex);
    if (line->state != HF__REDLOCK_STATE_READY) {
        node->retry_ns = now_ns + hf__backoff_ns(env, node->failures++, BACKOFF_MAX_MS);
        node->why = *why;
    } else if (line->owed > 0) {
        /* What was sent on it may lie in buffers on the way, and no release can follow it there any
         * more. */
        node->adrift_ns = now_ns + 60000 * HF__NS_PER_MS;
    }
    pthread_mutex_unlock(&s->mutex);
    hf__redlock_hang_up(line);
}

/* The next address to try, copied out so that nobody frees it meanwhile. */
struct endpoint {
    struct addrinfo info;
    struct sockaddr_storage address;
};

/* One address a dial, since a line cannot wait for the first to fail: the next dial takes the next.
 * Mutex held. */
static bool pick_address(struct hf__redlock_node *node, struct endpoint *ret_endpoint)
{
    unsigned count = 0, at = 0;
    struct addrinfo *a;

    for (a = node->addresses; a != NULL; a = a->ai_next)
        count++;
    if (count == 0)
        return false;
    for (a = node->addresses; at < node->tries % count; at++)
        a = a->ai_next;
    node->tries++;
    ret_endpoint->info = *a;
    memcpy(&ret_endpoint->address, a->ai_addr, a->ai_addrlen);
    ret_endpoint->info.ai_addr = (struct sockaddr *)&ret_endpoint->address;
    return true;
}

/* Looked up once, and again when none of the addresses has worked for a while: the server may have
 * moved. */
static int find_address(struct hf__redlock *s, struct hf__redlock_node *node, int64_t deadline_ns,
                        struct endpoint *ret_endpoint, hf_error *err)
{
    struct addrinfo *fresh = NULL, *stale = NULL;

    pthread_mutex_lock(&s->mutex);
    bool known = node->failures % 8 != 7 && pick_address(node, ret_endpoint);
    pthread_mutex_unlock(&s->mutex);
    if (known)
        return 0;
    int r = hf__resolve(node->host, node->port, s->base.host->env, deadline_ns, &fresh, err);
    if (r != 0)
        return r;
    pthread_mutex_lock(&s->mutex);
    stale = node->addresses;
    node->addresses = fresh;
    pick_address(node, ret_endpoint);
    pthread_mutex_unlock(&s->mutex);
    if (stale != NULL)
        freeaddrinfo(stale);
    return 0;
}

/* The whole log-in is written before the connection stands, and goes out in one piece when it
 * does. */
static int begin_login(struct hf__redlock *s, struct hf__redlock_node *node,
                       struct hf__redlock_line *line, const struct endpoint *to, hf_error *err)
{
    line->c = hf__redis_conn_new();
    if (line->c == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    int error = -hf__stream_begin(&line->c->stream, &to->info, s->base.host->env);
    if (error != 0)
        return explain(node, HF_UNAVAILABLE, strerror(error), err);
    if (s->set.tls != NULL) {
        int r = hf__tls_prepare(s->set.tls, &line->c->stream, node->host, err);
        if (r != 0)
            return r;
    }
    line->state = HF__REDLOCK_STATE_LOGGING_IN;
    line->step = hf__redis_login_first(&s->set);
    line->since_ns = hf__now_ns(s->base.host->env);
    hf__redis_login_ask(&s->set, line->c);
    for (size_t i = 0; i < SCRIPT_COUNT; i++)
        hf__redis_command(line->c, "SCRIPT", "LOAD", scripts[i].text, (char *)NULL);
    return 0;
}

int hf__redlock_dial(struct hf__redlock *s, size_t i, struct hf__redlock_line *line,
                     int64_t deadline_ns, hf_error *err)
{
    struct hf__redlock_node *node = &s->nodes[i];
    hf_error why = {0};
    struct endpoint to;

    pthread_mutex_lock(&s->mutex);
    bool too_early = node->failures > 0 && hf__now_ns(s->base.host->env) < node->retry_ns;
    if (too_early && err != NULL)
        *err = node->why;
    pthread_mutex_unlock(&s->mutex);
    if (too_early)
        return HF_UNAVAILABLE;
    int r = find_address(s, node, deadline_ns, &to, &why);
    if (r == 0)
        r = begin_login(s, node, line, &to, &why);
    if (r != 0) {
        hf__redlock_fail(s, i, line, &why);
        if (err != NULL)
            *err = why;
    }
    return r;
}

static int stream_failed(struct hf__redlock *s, size_t i, struct hf__redlock_line *line, ssize_t n,
                         hf_error *err)
{
    struct hf__stream *stream = &line->c->stream;
    char buf[160];

    if (hf__tls_refused(stream, err) != 0)
        return HF_DENIED;
    return explain(&s->nodes[i], HF_UNAVAILABLE,
                   n == 0 ? "the server closed the connection"
                          : stream->layer->why(stream, (int)-n, buf, sizeof buf),
                   err);
}

int hf__redlock_flush(struct hf__redlock *s, size_t i, struct hf__redlock_line *line, hf_error *err)
{
    struct hf__redis_out *out = &line->c->out;
    struct hf__stream *stream = &line->c->stream;

    if (out->failed)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    line->events = 0;
    while (line->sent < out->len) {
        short events = 0;
        ssize_t n =
            stream->layer->write(stream, out->data + line->sent, out->len - line->sent, &events);
        if (n == -EAGAIN) {
            line->events = events;
            return 0;
        }
        if (n == -EINTR)
            continue;
        if (n <= 0)
            return stream_failed(s, i, line, n, err);
        line->sent += (size_t)n;
    }
    line->sent = out->len = 0;
    return 0;
}

/* Since when the server has been up, for the restart guard. It says so itself, but by its wall
 * clock, which may have been stepped since it started. So we hold against it what we know by our
 * own clock: the same run was not up before we first thought so, and another run was there when we
 * heard of that last. Mutex held. */
static int64_t up_since_ns(const struct hf__redlock_node *node, const struct hf__redis_facts *facts,
                           int64_t now_ns)
{
    int64_t said_ns = now_ns - facts->uptime_s * 1000 * HF__NS_PER_MS;
    int64_t known_ns = INT64_MIN;

    if (node->run_id[0] != '\0' && facts->run_id[0] != '\0')
        known_ns = strcmp(node->run_id, facts->run_id) == 0 ? node->up_since_ns : node->heard_ns;
    return said_ns > known_ns ? said_ns : known_ns;
}

/* Two names may lead to one server, which would vote twice: by the second of them it has no vote.
 * What was found is noted in any case, as servers may have changed their places. */
static int note_server(struct hf__redlock *s, size_t i, struct hf__redlock_line *line,
                       hf_error *err)
{
    struct hf__redlock_node *node = &s->nodes[i];
    const struct hf__redis_facts *facts = &line->c->facts;
    const char *run_id = facts->run_id;
    int64_t now_ns = hf__now_ns(s->base.host->env);
    size_t twin = s->count;
    char why[160];

    pthread_mutex_lock(&s->mutex);
    node->up_since_ns = line->up_since_ns = up_since_ns(node, facts, now_ns);
    node->heard_ns = now_ns;
    snprintf(node->run_id, sizeof node->run_id, "%s", run_id);
    for (size_t k = 0; k < s->count && run_id[0] != '\0'; k++) {
        if (k != i && strcmp(s->nodes[k].run_id, run_id) == 0)
            twin = k;
    }
    pthread_mutex_unlock(&s->mutex);
    if (twin == s->count)
        return 0;
    snprintf(why, sizeof why, "this is the same server as %.80s:%s; name each server once",
             s->nodes[twin].host, s->nodes[twin].port);
    return explain(node, HF_INVALID, why, err);
}

/* The guard's only question, asked once per connection: for how long has the server been up? Once
 * is enough, as a restart ends the connection. The replies to SCRIPT LOAD are still to come, and
 * nobody waits for them. */
static int finish_login(struct hf__redlock *s, size_t i, struct hf__redlock_line *line,
                        hf_error *err)
{
    if (s->guard && !line->c->facts.known)
        return explain(&s->nodes[i], HF_DENIED,
                       "INFO is not allowed to this user, and the restart guard needs it "
                       "(restart_guard=off does without)",
                       err);
    int r = note_server(s, i, line, err);
    if (r != 0)
        return r;
    line->state = HF__REDLOCK_STATE_READY;
    line->owed = SCRIPT_COUNT;
    pthread_mutex_lock(&s->mutex);
    s->nodes[i].failures = 0;
    pthread_mutex_unlock(&s->mutex);
    return 0;
}

/* All replies that are there. One that is owed to an earlier round is dropped, but it shows that
 * the node is at least that far, so its patience begins anew. */
static int hear_all(struct hf__redlock *s, size_t i, struct hf__redlock_line *line,
                    hf__redlock_hear *hear, void *ctx, hf_error *err)
{
    int r = 0;

    while (r == 0) {
        redisReply *reply = NULL;
        hf_error why = {0};
        if (hf__redis_next(line->c, &reply, &why) != 0)
            return explain(&s->nodes[i], HF_UNAVAILABLE, why.text, err);
        if (reply == NULL)
            break;
        if (line->state == HF__REDLOCK_STATE_LOGGING_IN) {
            r = hf__redis_login_step(&s->set, line->c, &line->step, reply, &why);
            if (r != 0)
                explain(&s->nodes[i], r, why.text, err);
            else if (line->step == HF__REDIS_LOGGED_IN)
                r = finish_login(s, i, line, err);
        } else if (line->owed > 0) {
            line->owed--;
            line->since_ns = hf__now_ns(s->base.host->env);
        } else {
            r = hear(ctx, &reply, err);
        }
        s->nodes[i].heard_ns = hf__now_ns(s->base.host->env);
        freeReplyObject(reply);
    }
    return r;
}

int hf__redlock_exchange(struct hf__redlock *s, size_t i, struct hf__redlock_line *line,
                         hf__redlock_hear *hear, void *ctx, hf_error *err)
{
    struct hf__stream *stream = &line->c->stream;
    int r = line->c->out.len > 0 ? hf__redlock_flush(s, i, line, err) : 0;
    char buf[4096];

    while (r == 0) {
        short events = 0;
        ssize_t n = stream->layer->read(stream, buf, sizeof buf, &events);
        if (n == -EAGAIN)
            break;
        if (n == -EINTR)
            continue;
        if (n <= 0)
            return stream_failed(s, i, line, n, err);
        hf_error why = {0};
        if (hf__redis_feed(line->c, buf, (size_t)n, &why) != 0)
            return explain(&s->nodes[i], HF_UNAVAILABLE, why.text, err);
        r = hear_all(s, i, line, hear, ctx, err);
        if ((size_t)n < sizeof buf && s->set.tls == NULL)
            break; /* saves the read that would find nothing */
    }
    return r;
}
