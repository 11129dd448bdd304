/* Requests to the gateway, over pooled connections, on whichever server answers.
 *
 * Each request goes to the server that answered last, and from there down the list, each server
 * once; each but the last gets half of the time that is left, so that one which hangs does not use
 * it up. A request that may have been applied is sent again only if the operation allows it
 * (all but a release do: they are answered by ticket). A token that has expired is renewed once. */
#include <stdlib.h>
#include <time.h>

#include "stores/etcd/http.h"

#include "util/banned.h"

#define CYCLES 4 /* through the list of servers */

static void perform(struct hf__etcd *e, size_t endpoint, const struct hf__etcd_request *q,
                    int64_t until_ns, struct hf__etcd_outcome *o, hf_error *err)
{
    const char *where = e->set.endpoints[endpoint];
    struct hf__etcd_flight f = {0};

    *o = (struct hf__etcd_outcome){.code = HF_NO_MEMORY};
    if (hf__etcd_take_off(e, endpoint, q, until_ns, &f) < 0) {
        hf__fail(err, HF_NO_MEMORY, NULL);
    } else {
        CURLcode c = curl_easy_perform(f.curl);
        if (c != CURLE_OK)
            hf__etcd_transport_failed(o, f.curl, c, where, err);
        else
            hf__etcd_read_answer(o, f.curl, &f.body, q->stream, err);
    }
    hf__etcd_land(e, &f);
}

static int log_in(struct hf__etcd *e, size_t endpoint, int64_t until_ns, hf_error *err)
{
    struct hf__etcd_outcome o = {.code = HF_NO_MEMORY};
    json_t *who = json_pack("{s:s, s:s}", "name", e->set.user, "password", e->set.password);
    struct hf__etcd_request q = {.path = "auth/authenticate", .body = json_dumps(who, 0)};

    json_decref(who);
    pthread_mutex_lock(&e->mutex);
    char *old = e->token;
    e->token = NULL;
    pthread_mutex_unlock(&e->mutex);
    free(old);
    if (q.body == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    perform(e, endpoint, &q, until_ns, &o, err);
    explicit_bzero(q.body, strlen(q.body));
    free(q.body);
    const char *token = json_string_value(json_object_get(o.answer, "token"));
    if (token != NULL) {
        char *copy = strdup(token);
        pthread_mutex_lock(&e->mutex);
        old = e->token;
        e->token = copy;
        pthread_mutex_unlock(&e->mutex);
        free(old);
    }
    json_decref(o.answer);
    return o.code;
}

/* On one server, with a token if one is needed. */
static void ask(struct hf__etcd *e, size_t endpoint, const struct hf__etcd_request *q,
                int64_t until_ns, struct hf__etcd_outcome *o, hf_error *err)
{
    pthread_mutex_lock(&e->mutex);
    bool first = e->set.user != NULL && e->token == NULL;
    pthread_mutex_unlock(&e->mutex);

    for (int tries = 0; tries < 2; tries++) {
        if (first || tries > 0) {
            int r = log_in(e, endpoint, until_ns, err);
            if (r < 0) {
                *o = (struct hf__etcd_outcome){.code = r == HF_UNKNOWN ? HF_UNAVAILABLE : r,
                                               .next = true};
                return;
            }
        }
        perform(e, endpoint, q, until_ns, o, err);
        if (!o->no_token || e->set.user == NULL)
            return;
    }
}

int hf__etcd_call_at(struct hf__etcd *e, size_t endpoint, struct hf__etcd_request q,
                     json_t **ret_answer, hf_error *err)
{
    struct hf__etcd_outcome o;

    if (q.body == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    ask(e, endpoint, &q, q.deadline_ns, &o, err);
    free(q.body);
    *ret_answer = o.answer;
    return o.code;
}

static bool pause_before(const struct hf__etcd *e, int64_t deadline_ns, size_t round)
{
    int64_t pause_ms = 20 << round;
    struct timespec pause = {.tv_nsec = pause_ms * HF__NS_PER_MS};

    if (hf__now_ns(e->base.host->env) + 2 * pause_ms * HF__NS_PER_MS >= deadline_ns)
        return false;
    nanosleep(&pause, NULL);
    return true;
}

int hf__etcd_call(struct hf__etcd *e, struct hf__etcd_request q, json_t **ret_answer, hf_error *err)
{
    size_t count = e->set.endpoint_count;
    bool maybe = false;
    struct hf__etcd_outcome o = {.code = HF_NO_MEMORY};

    if (q.body == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    pthread_mutex_lock(&e->mutex);
    size_t first = e->endpoint;
    pthread_mutex_unlock(&e->mutex);
    for (size_t i = 0; i < CYCLES * count; i++) {
        size_t endpoint = (first + i) % count;
        int64_t now_ns = hf__now_ns(e->base.host->env);
        size_t others = count - i % count;
        int64_t share_ns = (q.deadline_ns - now_ns) / (others > 1 ? 2 : 1);
        ask(e, endpoint, &q, now_ns + share_ns, &o, err);
        maybe |= o.maybe;
        if (q.doubted != NULL)
            *q.doubted |= o.maybe || o.reconnected;
        if (!o.next) {
            pthread_mutex_lock(&e->mutex);
            e->endpoint = endpoint;
            pthread_mutex_unlock(&e->mutex);
            break;
        }
        if (o.maybe && q.once)
            break;
        /* Another round only for servers that are there and for the moment cannot. */
        if (others == 1 && (!o.passing || !pause_before(e, q.deadline_ns, i / count)))
            break;
    }
    free(q.body);
    *ret_answer = o.answer;
    if (o.code == HF_UNAVAILABLE && maybe)
        return hf__wrap(err, HF_UNKNOWN, "after a request without an answer");
    return o.code;
}
