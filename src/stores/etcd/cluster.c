/* Calls to the cluster, on one connection, to whichever server answers.
 *
 * Each call goes to the server that answered last, and from there down the list, each server once;
 * each but the last gets half of the time that is left, so that one which hangs does not use it up. A
 * call that may have been applied is sent again only if the operation allows it (all but a release
 * do: they are answered by ticket). A token that has expired is renewed once.
 *
 * Whoever finds no connection makes one, for all; the others wait for it. If it could not be made
 * that counts for all of them: a thousand threads do not dial one after the other. */
#include <stdlib.h>
#include <time.h>

#include "base/thread.h"
#include "stores/etcd/etcd.h"

#include "base/banned.h"

#define CYCLES 4 /* through the list of servers */

/* Connections. --------------------------------------------------------------------------------- */
int hf__etcd_dial(struct hf__etcd *e, size_t endpoint, int64_t deadline_ns,
                  struct hf__grpc_conn **ret_conn, hf_error *err)
{
    const struct hf__etcd_endpoint *to = &e->set.endpoints[endpoint];
    struct hf__grpc_route route = {.address = {.host = to->host, .port = to->port},
                                   .tls = to->plain ? NULL : e->set.tls,
                                   .env = e->base.host->env};
    hf_error why = {0};
    int r = hf__grpc_dial(&route, deadline_ns, ret_conn, &why);

    if (r == 0)
        return 0;
    hf__fail(err, r, "etcd: %s: %s%s", to->url, why.text, hf__etcd_dial_hint(to->plain, &why));
    hf__set_store_code(err, why.store_code);
    return r;
}

/* Mutex held. Gives the reference that the cluster had. */
static struct hf__grpc_conn *take_conn(struct hf__etcd *e)
{
    struct hf__grpc_conn *conn = e->cluster.conn;

    e->cluster.conn = NULL;
    hf__etcd_watches_lose(e);
    return conn;
}

void hf__etcd_move_on(struct hf__etcd *e, struct hf__grpc_conn *conn)
{
    struct hf__etcd_cluster *c = &e->cluster;
    struct hf__grpc_conn *old = NULL;

    pthread_mutex_lock(&e->mutex);
    if (conn != NULL && c->conn == conn) {
        old = take_conn(e);
        c->endpoint = (c->endpoint + 1) % e->set.endpoint_count;
    }
    pthread_mutex_unlock(&e->mutex);
    hf__grpc_unref(old);
}

/* A reference to the connection, with its endpoint; made if there is none. */
static int reach(struct hf__etcd *e, int64_t deadline_ns, struct hf__grpc_conn **ret_conn,
                 size_t *ret_endpoint, hf_error *err)
{
    struct hf__etcd_cluster *c = &e->cluster;
    struct hf__grpc_conn *old = NULL, *conn = NULL;
    int r = 0;

    pthread_mutex_lock(&e->mutex);
    unsigned dials = c->dials;
    while (c->dialling && hf__cond_wait(&c->dialled, &e->mutex, e->base.host->env, deadline_ns))
        ;
    if (c->conn != NULL && !hf__grpc_is_usable(c->conn))
        old = take_conn(e);
    *ret_endpoint = c->endpoint;
    if (c->conn != NULL) {
        conn = hf__grpc_ref(c->conn);
    } else if (c->dialling || (c->dials != dials && c->refusal.code != 0)) {
        r = c->dialling ? hf__fail(err, HF_UNAVAILABLE, "etcd: no connection in time")
                        : hf__fail(err, c->refusal.code, "%s", c->refusal.text);
    } else {
        c->dialling = true;
        pthread_mutex_unlock(&e->mutex);
        hf__grpc_unref(old);
        old = NULL;
        hf_error why = {0};
        r = hf__etcd_dial(e, *ret_endpoint, deadline_ns, &conn, &why);
        pthread_mutex_lock(&e->mutex);
        c->dialling = false;
        c->dials++;
        c->refusal = why;
        if (r == 0) {
            c->conn = hf__grpc_ref(conn);
            hf__etcd_watches_begin(e);
        } else {
            c->endpoint = (*ret_endpoint + 1) % e->set.endpoint_count;
            hf__fail(err, r, "%s", why.text);
        }
        pthread_cond_broadcast(&c->dialled);
    }
    pthread_mutex_unlock(&e->mutex);
    hf__grpc_unref(old);
    if (r == 0)
        *ret_conn = conn;
    return r;
}

void hf__etcd_hang_up(struct hf__etcd *e, int64_t deadline_ns)
{
    struct hf__etcd_cluster *c = &e->cluster;

    if (c->conn != NULL)
        hf__grpc_settle(c->conn, deadline_ns);
    pthread_mutex_lock(&e->mutex);
    struct hf__grpc_conn *conn = take_conn(e);
    pthread_mutex_unlock(&e->mutex);
    hf__grpc_unref(conn);
    if (c->token != NULL)
        explicit_bzero(c->token, strlen(c->token));
    free(c->token);
    c->token = NULL;
}

/* One call on one server. ----------------------------------------------------------------------- */
static struct hf__grpc_call *send(struct hf__etcd *e, struct hf__grpc_conn *conn,
                                  const struct hf__etcd_request *q, int64_t until_ns, hf_error *err)
{
    struct hf__buffer body = {0};
    int64_t left_ms = (until_ns - hf__now_ns(e->base.host->env)) / HF__NS_PER_MS;

    /* A copy: it may have to be sent again. */
    body.cap = q->body.cap;
    hf__buffer_add(&body, q->body.data, q->body.len);
    pthread_mutex_lock(&e->mutex);
    char *token = e->cluster.token != NULL ? strdup(e->cluster.token) : NULL;
    pthread_mutex_unlock(&e->mutex);
    struct hf__grpc_request request = {
        .path = q->path, .body = &body, .token = token, .timeout_ms = left_ms > 0 ? left_ms : 1};
    struct hf__grpc_call *call = hf__grpc_begin(conn, &request, err);
    if (token != NULL)
        explicit_bzero(token, strlen(token));
    free(token);
    return call;
}

/* Waits for it, and gives what it said. */
static struct hf__etcd_outcome finish(struct hf__etcd *e, struct hf__grpc_conn *conn,
                                      struct hf__grpc_call *call, size_t endpoint, int64_t until_ns,
                                      struct hf__buffer *ret_answer, hf_error *err)
{
    hf_error why = {0};
    enum hf__grpc_end end = hf__grpc_finish(conn, call, until_ns, &why);
    struct hf__etcd_outcome o =
        hf__etcd_outcome_of(call, end, e->set.endpoints[endpoint].url, &why, err);

    if (o.code == 0) {
        *ret_answer = call->in;
        call->in = (struct hf__buffer){0};
    }
    hf__grpc_release(conn, call);
    return o;
}

static struct hf__etcd_outcome perform(struct hf__etcd *e, struct hf__grpc_conn *conn,
                                       size_t endpoint, const struct hf__etcd_request *q,
                                       int64_t until_ns, struct hf__buffer *ret_answer,
                                       hf_error *err)
{
    hf_error why = {0};
    struct hf__grpc_call *call = send(e, conn, q, until_ns, &why);

    if (call != NULL)
        return finish(e, conn, call, endpoint, until_ns, ret_answer, err);
    hf__fail(err, why.code, "etcd: %s: %s", e->set.endpoints[endpoint].url, why.text);
    return (struct hf__etcd_outcome){
        .code = why.code, .next = why.code == HF_UNAVAILABLE, .passing = true};
}

static void set_token(struct hf__etcd *e, char *token)
{
    pthread_mutex_lock(&e->mutex);
    char *old = e->cluster.token;
    e->cluster.token = token;
    pthread_mutex_unlock(&e->mutex);
    free(old);
}

static struct hf__etcd_outcome log_in(struct hf__etcd *e, struct hf__grpc_conn *conn,
                                      size_t endpoint, int64_t until_ns, hf_error *err)
{
    struct hf__etcd_request q = {
        .path = "/etcdserverpb.Auth/Authenticate",
        .body = hf__etcd_login_request(e->set.account.user, e->set.account.password)};
    struct hf__buffer answer = {0};
    struct hf__slice message, token;

    set_token(e, NULL);
    struct hf__etcd_outcome o = perform(e, conn, endpoint, &q, until_ns, &answer, err);
    if (q.body.data != NULL)
        explicit_bzero(q.body.data, q.body.len);
    hf__buffer_clear(&q.body);
    if (o.code == 0) {
        o.code = hf__etcd_message(&answer, &message, err);
        if (o.code == 0 && hf__etcd_token_read(message, &token))
            set_token(e, strndup(token.data, token.len));
        pthread_mutex_lock(&e->mutex);
        hf__etcd_watches_begin(e);
        pthread_mutex_unlock(&e->mutex);
    }
    hf__buffer_clear(&answer);
    /* Nothing was asked yet. */
    if (o.code == HF_UNKNOWN)
        o.code = HF_UNAVAILABLE;
    o.maybe = false;
    o.next = true;
    return o;
}

/* With a token if one is needed. */
static struct hf__etcd_outcome ask(struct hf__etcd *e, struct hf__grpc_conn *conn, size_t endpoint,
                                   const struct hf__etcd_request *q, int64_t until_ns,
                                   struct hf__buffer *ret_answer, hf_error *err)
{
    struct hf__etcd_outcome o = {0};

    pthread_mutex_lock(&e->mutex);
    bool wants_token = e->set.account.user != NULL && e->cluster.token == NULL;
    pthread_mutex_unlock(&e->mutex);
    for (int tries = 0; tries < 2; tries++) {
        if (wants_token || tries > 0) {
            o = log_in(e, conn, endpoint, until_ns, err);
            if (o.code < 0)
                return o;
        }
        o = perform(e, conn, endpoint, q, until_ns, ret_answer, err);
        if (!o.no_token || e->set.account.user == NULL)
            break;
    }
    return o;
}

int hf__etcd_call_on(struct hf__etcd *e, struct hf__grpc_conn *conn, size_t endpoint,
                     struct hf__etcd_request q, struct hf__buffer *ret_answer, hf_error *err)
{
    if (q.body.failed)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    struct hf__etcd_outcome o = ask(e, conn, endpoint, &q, q.deadline_ns, ret_answer, err);
    hf__buffer_clear(&q.body);
    return o.code;
}

/* On whichever server answers. ------------------------------------------------------------------ */
static bool pause_before(const struct hf__etcd *e, int64_t deadline_ns, size_t round)
{
    int64_t pause_ms = 20 << round;
    struct timespec pause = {.tv_nsec = pause_ms * HF__NS_PER_MS};

    if (hf__now_ns(e->base.host->env) + 2 * pause_ms * HF__NS_PER_MS >= deadline_ns)
        return false;
    nanosleep(&pause, NULL);
    return true;
}

int hf__etcd_call(struct hf__etcd *e, struct hf__etcd_request q, struct hf__buffer *ret_answer,
                  hf_error *err)
{
    size_t count = e->set.endpoint_count, endpoint = 0;
    bool maybe = false, passing = false;
    struct hf__etcd_outcome o = {0};

    if (q.body.failed) {
        hf__buffer_clear(&q.body);
        return hf__fail(err, HF_NO_MEMORY, NULL);
    }
    for (size_t i = 0; i < CYCLES * count; i++) {
        struct hf__grpc_conn *conn = NULL;
        int64_t now_ns = hf__now_ns(e->base.host->env);
        size_t left = count - i % count;
        int64_t until_ns = now_ns + (q.deadline_ns - now_ns) / (left > 1 ? 2 : 1);
        int r = reach(e, until_ns, &conn, &endpoint, err);
        o = r < 0 ? (struct hf__etcd_outcome){.code = r, .next = true}
                  : ask(e, conn, endpoint, &q, until_ns, ret_answer, err);
        if (o.next && conn != NULL && (count > 1 || !hf__grpc_is_usable(conn)))
            hf__etcd_move_on(e, conn);
        hf__grpc_unref(conn);
        maybe |= o.maybe;
        passing |= o.passing;
        if (q.doubted != NULL)
            *q.doubted |= o.maybe;
        if (!o.next || (o.maybe && q.once))
            break;
        if (left > 1)
            continue;
        /* Another round only if there is one that is there, and for the moment cannot. */
        if (!passing || !pause_before(e, q.deadline_ns, i / count))
            break;
        passing = false;
    }
    hf__buffer_clear(&q.body);
    if (o.code == HF_UNAVAILABLE && maybe)
        return hf__wrap(err, HF_UNKNOWN, "after a request without an answer");
    return o.code;
}

int hf__etcd_message(const struct hf__buffer *answer, struct hf__slice *ret_message, hf_error *err)
{
    struct hf__slice rest = {answer->data, answer->len};

    return hf__grpc_take(&rest, ret_message) == 1 && rest.len == 0
               ? 0
               : hf__fail(err, HF_CORRUPT, "etcd: an answer that is not one message");
}

int hf__etcd_commit(struct hf__etcd *e, struct hf__etcd_txn *t, int64_t deadline_ns,
                    struct hf__etcd_answer *ret_answer, hf_error *err)
{
    struct hf__etcd_request q = {.path = "/etcdserverpb.KV/Txn",
                                 .deadline_ns = deadline_ns,
                                 .once = t->once,
                                 .doubted = t->doubted};
    struct hf__buffer bytes = {0};
    struct hf__slice message;

    q.body = hf__etcd_written(t);
    *ret_answer = (struct hf__etcd_answer){0};
    int r = hf__etcd_call(e, q, &bytes, err);
    if (r == 0)
        r = hf__etcd_message(&bytes, &message, err);
    if (r == 0 && (r = hf__etcd_answer_read(message, ret_answer)) < 0)
        hf__fail(err, r, r == HF_CORRUPT ? "etcd: an answer that is no transaction's" : NULL);
    if (r == 0)
        ret_answer->bytes = bytes;
    else
        hf__buffer_clear(&bytes);
    return r;
}

/* Several at once. ------------------------------------------------------------------------------ */
void hf__etcd_call_many(struct hf__etcd *e, struct hf__etcd_many *all, size_t count, hf_error *err)
{
    struct hf__grpc_conn *conn = NULL;
    size_t endpoint = 0;
    int r = count > 1 ? reach(e, all[0].request.deadline_ns, &conn, &endpoint, NULL) : HF_BUSY;

    for (size_t i = 0; i < count; i++) {
        all[i].code = HF_UNAVAILABLE;
        if (r == 0 && !all[i].request.body.failed)
            all[i].call = send(e, conn, &all[i].request, all[i].request.deadline_ns, err);
    }
    for (size_t i = 0; i < count; i++) {
        if (all[i].call == NULL)
            continue;
        struct hf__etcd_outcome o =
            finish(e, conn, all[i].call, endpoint, all[i].request.deadline_ns, &all[i].answer, err);
        all[i].code = o.next || o.no_token ? HF_UNAVAILABLE : o.code;
    }
    hf__grpc_unref(conn);
    for (size_t i = 0; i < count; i++) {
        if (all[i].code == HF_UNAVAILABLE)
            all[i].code = hf__etcd_call(e, all[i].request, &all[i].answer, err);
        else
            hf__buffer_clear(&all[i].request.body);
    }
}

void hf__etcd_send_off(struct hf__etcd *e, struct hf__etcd_request q)
{
    struct hf__grpc_conn *conn = NULL;
    size_t endpoint;

    if (reach(e, q.deadline_ns, &conn, &endpoint, NULL) == 0) {
        struct hf__grpc_call *call = send(e, conn, &q, q.deadline_ns, NULL);
        if (call != NULL)
            hf__grpc_leave(conn, call);
        hf__grpc_unref(conn);
    }
    hf__buffer_clear(&q.body);
}
