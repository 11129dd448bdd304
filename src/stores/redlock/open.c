/* From the URL to a store.
 *
 * Servers that cannot be reached are no error yet: they may come. One that answers and must not be
 * used (a wrong password, a cluster, a server that evicts locks) is refused at once, and so is a
 * server that is named twice: it would vote twice. */
#include <stdlib.h>
#include <string.h>

#include "stores/redlock/redlock.h"

#include "base/banned.h"

const struct hf__option hf__redlock_options[] = {
    HF__REDIS_LINK_OPTIONS,
    {"tls", HF__OPTION_TEXT, "off", 0, 0, "off, verify or insecure, to all servers"},
    {"max_ttl", HF__OPTION_DURATION, "60s", HF_TTL_MIN_MS, HF_TTL_MAX_MS,
     "the longest ttl that any client asks for; must be the same for all clients"},
    {"restart_guard", HF__OPTION_SWITCH, "on", 0, 0,
     "a server that has been up for less than max_ttl has no vote: it may have forgotten locks"},
    {"node_timeout", HF__OPTION_DURATION, "250ms", 5, 60000,
     "how long to wait for a server when no majority has answered yet; at most a fifth of the ttl"},
    {"retry", HF__OPTION_DURATION, "100ms", 1, 60000,
     "how often waiters ask, half more or less at random"},
    {"max_active", HF__OPTION_NUMBER, "16", 1, 10000,
     "operations at the same time; each has a connection to every server"},
    {"max_idle", HF__OPTION_NUMBER, "4", 0, 10000,
     "sets of connections kept when they are not in use"},
    {"idle_timeout", HF__OPTION_DURATION, "60s", 100, 86400000, "for how long they are kept"},
    {"pool_wait", HF__OPTION_SWITCH, "yes", 0, 0,
     "wait for a connection when all are in use, or fail"},
    {0},
};

/* A server that is named twice would vote twice. Two names of one server are found out only when it
 * answers, by its run_id (line.c). */
static int name_nodes(struct hf__redlock *s, hf_error *err)
{
    for (s->count = 0; s->count < s->set.servers.count; s->count++) {
        const struct hf__server *server = &s->set.servers.list[s->count];
        for (size_t i = 0; i < s->count; i++) {
            if (strcmp(s->nodes[i].host, server->host) == 0 &&
                strcmp(s->nodes[i].port, server->port) == 0)
                return hf__fail(err, HF_INVALID, "a server is named twice: it would vote twice");
        }
        s->nodes[s->count].host = server->host;
        s->nodes[s->count].port = server->port;
    }
    s->quorum = s->count / 2 + 1;
    return 0;
}

static int read_settings(struct hf__redlock *s, const struct hf__url *url, hf_error *err)
{
    static const struct hf__servers_form form = {
        .port = "6379", .max = HF__REDLOCK_NODES_MAX, .example = "redlock://h1,h2,h3/db"};
    int r = hf__redis_read_link(url, &form, &s->set, err);

    if (r == 0)
        r = name_nodes(s, err);
    if (r == 0)
        r = hf__redis_read_db(url, &s->set.db, err);
    s->max_ttl_ms = hf__url_number(url, "max_ttl");
    s->node_timeout_ms = hf__url_number(url, "node_timeout");
    s->retry_ms = hf__url_number(url, "retry");
    s->guard = hf__url_switch(url, "restart_guard");
    return r;
}

/* Whether the servers are there -------------------------------------------- */

static void write_ping(struct hf__redlock_ask *ask, size_t node, struct hf__redis_conn *c)
{
    (void)ask, (void)node;
    hf__redis_add_text(c, "PING");
}

static int take_pong(struct hf__redlock_ask *ask, size_t node, redisReply **reply, hf_error *err)
{
    (void)ask, (void)node, (void)reply, (void)err;
    return 0;
}

/* Those that are away or slow are not waited for. */
struct ping {
    struct hf__redlock_ask ask;
    size_t quorum;
};

static bool enough(const struct hf__redlock_ask *ask)
{
    return hf__redlock_votes(ask->replied) >= ((const struct ping *)ask)->quorum;
}

static int ping_servers(struct hf__redlock *s, struct ping *w, int64_t deadline_ns, hf_error *err)
{
    struct hf__redlock_set *set = NULL;
    int r = hf__redlock_take(s, deadline_ns, &set, err);

    if (r != 0)
        return r;
    w->ask = (struct hf__redlock_ask){.script = HF__REDLOCK_SCRIPT_NONE,
                                      .write = write_ping,
                                      .argc = 1,
                                      .reply = take_pong,
                                      .decided = enough,
                                      .to = hf__redlock_all(s)};
    w->quorum = s->quorum;
    hf__redlock_round(s, set, &w->ask, deadline_ns);
    hf__redlock_give(s, set);
    return 0;
}

/* The log-in has found out whether a server may be used. What is wrong with one that answers will
 * not mend itself, so it is told now, even if the others are enough. */
static int refuse_wrong_servers(struct hf__redlock *s, hf_error *err)
{
    struct ping w;
    const hf_error *why = &w.ask.why;
    int64_t deadline_ns = hf__redlock_soon(s, s->node_timeout_ms, INT64_MAX);
    int r = ping_servers(s, &w, deadline_ns, err);

    if (r != 0 || why->code == 0 || why->code == HF_UNAVAILABLE)
        return r;
    if (err != NULL)
        *err = *why;
    return why->code;
}

int hf__redlock_upkeep(struct hf__store *store, enum hf__upkeep what, int64_t retain_ms,
                       int64_t deadline_ns, uint64_t *ret_count, hf_error *err)
{
    struct hf__redlock *s = (struct hf__redlock *)store;
    struct ping w;
    int r = ping_servers(s, &w, deadline_ns, err);

    (void)what, (void)retain_ms;
    *ret_count = 0;
    if (r != 0 || enough(&w.ask))
        return r;
    return hf__redlock_too_few(s, &w.ask, hf__redlock_votes(w.ask.replied), err);
}

int hf__redlock_open(const struct hf__url *url, const struct hf__host *host,
                     struct hf__store **ret_store, hf_error *err)
{
    struct hf__redlock *s = calloc(1, sizeof *s);

    if (s == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    s->base = (struct hf__store){
        .type = &hf_store_type_v1, .host = host, .capabilities = hf_store_type_v1.capabilities};
    pthread_mutex_init(&s->mutex, NULL);
    int r = hf__pool_init(&s->pool, &hf__redlock_pool_type, s, host->env, err);
    if (r == 0)
        r = read_settings(s, url, err);
    if (r == 0) {
        s->pool.limits = s->set.limits;
        s->pool.host_count = 1;
        s->self_len = hf__redis_put_self(host->self, s->self, sizeof s->self);
        r = refuse_wrong_servers(s, err);
    }
    if (r != 0) {
        hf__redlock_close(&s->base);
        return r;
    }
    *ret_store = &s->base;
    return 0;
}

void hf__redlock_close(struct hf__store *store)
{
    struct hf__redlock *s = (struct hf__redlock *)store;

    hf__pool_clear(&s->pool);
    for (size_t i = 0; i < s->count; i++) {
        if (s->nodes[i].addresses != NULL)
            freeaddrinfo(s->nodes[i].addresses);
    }
    hf__redis_settings_clear(&s->set);
    pthread_mutex_destroy(&s->mutex);
    free(s);
}
