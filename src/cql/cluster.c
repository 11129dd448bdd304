/* Contact points. The one that worked last is asked again, so that a client mostly sees one
 * coordinator and one clock; one that failed is left alone for 0.1 s, then 0.2 s, up to 2 s, less a
 * random part of up to a half, so that clients of a node that comes back do not come all at
 * once. */
#include "cql/cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/backoff.h"
#include "base/thread.h"

#include "base/banned.h"

#define BACK_OFF_MAX_MS 2000
#define IDLE_MS         30000 /* an older connection is asked for a sign of life first */

int hf__cql_open(struct hf__cql_settings *settings, const struct hf_env *env,
                 struct hf__cql **ret_cql, hf_error *err)
{
    struct hf__cql *cql = calloc(1, sizeof *cql);

    if (cql == NULL) {
        hf__cql_settings_clear(settings);
        return hf__fail(err, HF_NO_MEMORY, NULL);
    }
    cql->settings = *settings;
    *settings = (struct hf__cql_settings){0};
    cql->env = env;
    pthread_mutex_init(&cql->mutex, NULL);
    hf__cond_init(&cql->changed);

    const struct hf__cql_settings *set = &cql->settings;
    for (size_t i = 0; i < set->contacts.count; i++) {
        const struct hf__server *from = &set->contacts.list[i];
        struct hf__cql_node *n = &cql->nodes[i];
        snprintf(n->name, sizeof n->name, "%s:%s", from->host, from->port);
        n->version = set->protocol != 0 ? set->protocol : 4;
        n->route = (struct hf__cql_route){.address = {.host = from->host, .port = from->port},
                                          .tls = from->tls == HF__TLS_MODE_OFF ? NULL : set->tls,
                                          .user = set->account.user,
                                          .password = set->account.password,
                                          .env = env};
    }
    *ret_cql = cql;
    return 0;
}

void hf__cql_close(struct hf__cql *cql)
{
    if (cql == NULL)
        return;
    for (size_t i = 0; i < cql->settings.contacts.count; i++)
        hf__cql_conn_unref(cql->nodes[i].conn);
    pthread_cond_destroy(&cql->changed);
    pthread_mutex_destroy(&cql->mutex);
    hf__cql_settings_clear(&cql->settings);
    free(cql);
}

size_t hf__cql_node_count(const struct hf__cql *cql)
{
    return cql->settings.contacts.count;
}

const char *hf__cql_node_name(const struct hf__cql *cql, size_t index)
{
    return cql->nodes[index].name;
}

/* Choosing ----------------------------------------------------------------- */

/* The better of two: the one that may be tried sooner, then the one that is not doubted, then the
 * first. */
static int better(const struct hf__cql *cql, int a, int b, int64_t now_ns)
{
    if (a < 0)
        return b;
    const struct hf__cql_node *of_a = &cql->nodes[a], *of_b = &cql->nodes[b];
    int64_t when_a = of_a->not_before_ns > now_ns ? of_a->not_before_ns : now_ns;
    int64_t when_b = of_b->not_before_ns > now_ns ? of_b->not_before_ns : now_ns;
    if (when_a != when_b)
        return when_b < when_a ? b : a;
    return of_a->doubted && !of_b->doubted ? b : a;
}

static int best(const struct hf__cql *cql, int wanted, unsigned tried)
{
    size_t count = cql->settings.contacts.count;
    int64_t now_ns = hf__now_ns(cql->env);
    int found = -1;

    if (wanted > 0 && (size_t)wanted <= count && !(tried & 1u << (wanted - 1)))
        found = wanted - 1;
    for (size_t i = 0; i < count; i++) {
        size_t node = (cql->preferred + i) % count;
        if (!(tried & 1u << node))
            found = better(cql, found, (int)node, now_ns);
    }
    return found;
}

int hf__cql_choose(struct hf__cql *cql, int wanted, unsigned tried, int64_t deadline_ns)
{
    int node;

    pthread_mutex_lock(&cql->mutex);
    for (;;) {
        node = best(cql, wanted, tried);
        if (node < 0 || cql->nodes[node].not_before_ns <= hf__now_ns(cql->env))
            break;
        if (cql->nodes[node].not_before_ns >= deadline_ns) {
            node = -1;
            break;
        }
        hf__cond_wait(&cql->changed, &cql->mutex, cql->env, cql->nodes[node].not_before_ns);
    }
    pthread_mutex_unlock(&cql->mutex);
    return node;
}

static void back_off(struct hf__cql *cql, struct hf__cql_node *n)
{
    n->not_before_ns =
        hf__now_ns(cql->env) + hf__backoff_ns(cql->env, n->failures++, BACK_OFF_MAX_MS);
}

void hf__cql_worked(struct hf__cql *cql, size_t node)
{
    pthread_mutex_lock(&cql->mutex);
    cql->nodes[node].failures = 0;
    cql->nodes[node].not_before_ns = 0;
    cql->nodes[node].doubted = false;
    cql->preferred = node;
    pthread_mutex_unlock(&cql->mutex);
}

/* Lets go of a broken connection, unless somebody else has. */
static bool drop(struct hf__cql_node *n, struct hf__cql_conn *conn)
{
    if (n->conn != conn)
        return false;
    n->conn = NULL;
    hf__cql_conn_unref(conn); /* not the last: the caller has one */
    return true;
}

void hf__cql_failed(struct hf__cql *cql, size_t node, struct hf__cql_conn *conn, bool silent)
{
    struct hf__cql_node *n = &cql->nodes[node];

    pthread_mutex_lock(&cql->mutex);
    n->doubted = n->doubted || silent;
    if (hf__cql_conn_is_broken(conn) && drop(n, conn))
        back_off(cql, n);
    pthread_mutex_unlock(&cql->mutex);
}

/* Connecting --------------------------------------------------------------- */

/* With the version we know; a server that refuses v4 is tried with v5, unless the URL names one. */
static int connect_node(struct hf__cql *cql, struct hf__cql_node *n, int64_t deadline_ns,
                        struct hf__cql_conn **ret_conn, hf_error *err)
{
    int code = hf__cql_conn_open(&n->route, n->version, deadline_ns, ret_conn, err);

    if (code != HF_UNSUPPORTED || cql->settings.protocol != 0 || n->version != 4)
        return code;
    code = hf__cql_conn_open(&n->route, 5, deadline_ns, ret_conn, err);
    if (code == 0)
        n->version = 5; /* ours alone while `connecting` */
    return code;
}

static int give_error(const hf_error *from, hf_error *err)
{
    if (err != NULL)
        *err = *from;
    return from->code;
}

/* Makes the connection, without the mutex meanwhile. */
static int connect_now(struct hf__cql *cql, struct hf__cql_node *n, int64_t deadline_ns,
                       hf_error *err)
{
    struct hf__cql_conn *conn = NULL;

    n->connecting = true;
    pthread_mutex_unlock(&cql->mutex);
    hf_error why = {0};
    int code = connect_node(cql, n, deadline_ns, &conn, &why);
    pthread_mutex_lock(&cql->mutex);
    n->connecting = false;
    n->conn = conn;
    if (code != 0) {
        n->refusal = why;
        back_off(cql, n);
        give_error(&why, err);
    }
    pthread_cond_broadcast(&cql->changed);
    return code;
}

/* What somebody else tried in vain while we waited is not tried again. */
static int get_conn(struct hf__cql *cql, struct hf__cql_node *n, int64_t deadline_ns,
                    struct hf__cql_conn **ret_conn, hf_error *err)
{
    bool waited = n->connecting;

    while (n->connecting) {
        if (hf__now_ns(cql->env) >= deadline_ns)
            return hf__fail(err, HF_UNAVAILABLE, "no answer in time");
        hf__cond_wait(&cql->changed, &cql->mutex, cql->env, deadline_ns);
    }
    if (waited && n->conn == NULL && n->not_before_ns > hf__now_ns(cql->env))
        return give_error(&n->refusal, err);
    int code = n->conn == NULL ? connect_now(cql, n, deadline_ns, err) : 0;
    if (code == 0)
        *ret_conn = hf__cql_conn_ref(n->conn);
    return code;
}

static bool is_alive(struct hf__cql *cql, struct hf__cql_conn *c, int64_t deadline_ns)
{
    struct hf__cql_call call;
    struct hf__cql_writer w;
    hf_error err;

    if (!hf__cql_conn_look(c))
        return false;
    int64_t now_ns = hf__now_ns(cql->env);
    if (now_ns - hf__cql_conn_heard_ns(c) < IDLE_MS * HF__NS_PER_MS)
        return true;
    int64_t half_ns = now_ns + (deadline_ns - now_ns) / 2; /* the rest is for a new connection */
    hf__cql_writer_init(&w, HF__CQL_REQUEST_MAX);
    hf__cql_write_options(&w, hf__cql_conn_version(c));
    int code = hf__cql_ask(c, &call, &w, half_ns, &err);
    hf__cql_writer_clear(&w);
    if (code == 0)
        free(call.answer.body);
    else
        hf__cql_conn_break(c, "the connection was idle for long, and then dead");
    return code == 0;
}

int hf__cql_reach(struct hf__cql *cql, size_t node, int64_t deadline_ns,
                  struct hf__cql_conn **ret_conn, hf_error *err)
{
    struct hf__cql_node *n = &cql->nodes[node];
    struct hf__cql_conn *conn = NULL;

    for (;;) {
        pthread_mutex_lock(&cql->mutex);
        int code = get_conn(cql, n, deadline_ns, &conn, err);
        pthread_mutex_unlock(&cql->mutex);
        if (code != 0)
            return hf__wrap(err, code, "%s", n->name);
        if (is_alive(cql, conn, deadline_ns)) {
            *ret_conn = conn;
            return 0;
        }
        pthread_mutex_lock(&cql->mutex);
        drop(n, conn); /* without a pause: it was well once, and nothing was asked of it */
        pthread_mutex_unlock(&cql->mutex);
        hf__cql_conn_unref(conn);
    }
}

/* Prepared statements ------------------------------------------------------ */
static struct hf__cql_known *find_known(struct hf__cql_node *n,
                                        const struct hf__cql_statement *statement)
{
    for (size_t i = 0; i < n->known_count; i++) {
        if (n->known[i].statement == statement)
            return &n->known[i];
    }
    return NULL;
}

bool hf__cql_recall(struct hf__cql *cql, size_t node, const struct hf__cql_statement *statement,
                    struct hf__cql_prepared *ret_prepared)
{
    pthread_mutex_lock(&cql->mutex);
    const struct hf__cql_known *known = find_known(&cql->nodes[node], statement);
    if (known != NULL)
        *ret_prepared = known->prepared;
    pthread_mutex_unlock(&cql->mutex);
    return known != NULL;
}

int hf__cql_remember(struct hf__cql *cql, size_t node, const struct hf__cql_statement *statement,
                     const struct hf__cql_prepared *prepared, hf_error *err)
{
    struct hf__cql_node *n = &cql->nodes[node];

    pthread_mutex_lock(&cql->mutex);
    struct hf__cql_known *known = find_known(n, statement);
    if (known == NULL && n->known_count < HF__CQL_STATEMENTS)
        known = &n->known[n->known_count++];
    if (known != NULL)
        *known = (struct hf__cql_known){statement, *prepared};
    pthread_mutex_unlock(&cql->mutex);
    return known != NULL ? 0
                         : hf__fail(err, HF_SYSTEM, "more than %d statements", HF__CQL_STATEMENTS);
}
