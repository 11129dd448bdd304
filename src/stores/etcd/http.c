/* Requests to the gateway, over pooled connections, on whichever server answers.
 *
 * Each request goes to the server that answered last, and from there down the list, each server
 * once; each but the last gets half of the time that is left, so that one which hangs does not use
 * it up. A request that may have been applied is sent again only if the operation allows it
 * (all but a release do: they are answered by ticket). A token that has expired is renewed once. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "stores/etcd/etcd.h"

#include "util/banned.h"

#define ANSWER_MAX (64 << 20)
#define URL_MAX    512
#define CYCLES     4 /* through the list of servers */
#define WAVE       8 /* requests under way at once in a batch */

/* gRPC's codes, as the gateway shows them. */
enum {
    NOT_FOUND = 5,
    DENIED = 7,
    EXHAUSTED = 8,
    PRECONDITION = 9,
    UNAVAILABLE = 14,
    NO_TOKEN = 16
};

struct body {
    char *text;
    size_t len;
};

static size_t take(char *from, size_t size, size_t count, void *ctx)
{
    struct body *body = ctx;
    size_t len = size * count;

    if (len > ANSWER_MAX - body->len)
        return 0;
    char *text = realloc(body->text, body->len + len + 1);
    if (text == NULL)
        return 0;
    memcpy(text + body->len, from, len);
    body->text = text;
    body->len += len;
    return len;
}

static CURL *borrow(struct hf__etcd *e)
{
    pthread_mutex_lock(&e->mutex);
    CURL *curl = e->idle_count > 0 ? e->idle[--e->idle_count] : NULL;
    pthread_mutex_unlock(&e->mutex);
    return curl != NULL ? curl : curl_easy_init();
}

static void give_back(struct hf__etcd *e, CURL *curl)
{
    pthread_mutex_lock(&e->mutex);
    bool kept = e->idle_count < HF__ETCD_IDLE;
    if (kept)
        e->idle[e->idle_count++] = curl;
    pthread_mutex_unlock(&e->mutex);
    if (!kept)
        curl_easy_cleanup(curl);
}

void hf__etcd_http_clear(struct hf__etcd *e)
{
    while (e->idle_count > 0)
        curl_easy_cleanup(e->idle[--e->idle_count]);
    if (e->multi != NULL)
        curl_multi_cleanup(e->multi);
    e->multi = NULL;
    if (e->token != NULL)
        explicit_bzero(e->token, strlen(e->token));
    free(e->token);
    e->token = NULL;
}

int hf__etcd_prepare(struct hf__etcd *e, CURL *curl, size_t endpoint, const char *path)
{
    const struct hf__etcd_settings *set = &e->set;
    char url[URL_MAX];

    snprintf(url, sizeof url, "%s/v3/%s", set->endpoints[endpoint], path);
    curl_easy_reset(curl); /* keeps the connection */
    CURLcode c = curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    if (set->tls_insecure) {
        curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 0L);
        curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L);
    }
    if (c == CURLE_OK && set->tls_ca != NULL)
        c = curl_easy_setopt(curl, CURLOPT_CAINFO, set->tls_ca);
    if (c == CURLE_OK && set->tls_cert != NULL)
        c = curl_easy_setopt(curl, CURLOPT_SSLCERT, set->tls_cert);
    if (c == CURLE_OK && set->tls_key != NULL)
        c = curl_easy_setopt(curl, CURLOPT_SSLKEY, set->tls_key);
    return c == CURLE_OK ? 0 : HF_NO_MEMORY;
}

struct curl_slist *hf__etcd_headers(struct hf__etcd *e)
{
    /* "hasleader": a server that has lost its leader says so instead of keeping silent. */
    static const char *const fixed[] = {"Content-Type: application/json",
                                        "Expect:", "Grpc-Metadata-hasleader: true"};
    struct curl_slist *list = NULL;
    char line[1100];

    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++) {
        struct curl_slist *longer = curl_slist_append(list, fixed[i]);
        if (longer == NULL) {
            curl_slist_free_all(list);
            return NULL;
        }
        list = longer;
    }
    pthread_mutex_lock(&e->mutex);
    snprintf(line, sizeof line, "Authorization: %s", e->token != NULL ? e->token : "");
    bool has_token = e->token != NULL;
    pthread_mutex_unlock(&e->mutex);
    struct curl_slist *longer = has_token ? curl_slist_append(list, line) : list;
    explicit_bzero(line, sizeof line);
    if (longer == NULL)
        curl_slist_free_all(list);
    return longer;
}

struct outcome {
    int code;       /* HF_ */
    bool maybe;     /* it may have been applied */
    bool no_token;  /* ask again with a fresh one */
    bool next;      /* another server may do better */
    bool passing;   /* and so may this one, later */
    json_t *answer; /* if code is 0 */
};

static bool never_sent(CURLcode c)
{
    return c == CURLE_COULDNT_CONNECT || c == CURLE_COULDNT_RESOLVE_HOST ||
           c == CURLE_SSL_CONNECT_ERROR || c == CURLE_PEER_FAILED_VERIFICATION ||
           c == CURLE_SSL_CERTPROBLEM || c == CURLE_SSL_CACERT_BADFILE;
}

/* Servers end a connection without a word when it is not the kind they want. */
static const char *tls_hint(CURLcode c, const char *where)
{
    bool plain = strncmp(where, "http:", 5) == 0;

    if (plain && (c == CURLE_GOT_NOTHING || c == CURLE_WEIRD_SERVER_REPLY))
        return " (if it wants TLS: tls=verify)";
    if (!plain && (c == CURLE_RECV_ERROR || c == CURLE_SEND_ERROR))
        return " (if it wants a certificate: tls_cert=FILE)";
    if (!plain && c == CURLE_SSL_CONNECT_ERROR)
        return " (if it has no TLS: tls=off)";
    if (c == CURLE_PEER_FAILED_VERIFICATION)
        return " (name its authority: tls_ca=FILE)";
    return "";
}

static void transport_failed(struct outcome *o, CURL *curl, CURLcode c, const char *where,
                             hf_error *err)
{
    double connected = 0;

    curl_easy_getinfo(curl, CURLINFO_PRETRANSFER_TIME, &connected);
    bool denied = c == CURLE_PEER_FAILED_VERIFICATION || c == CURLE_SSL_CERTPROBLEM ||
                  c == CURLE_SSL_CACERT_BADFILE;
    o->maybe = !never_sent(c) && connected > 0;
    o->next = true;
    o->passing = o->maybe && c != CURLE_OPERATION_TIMEDOUT;
    o->code = o->maybe ? HF_UNKNOWN : denied ? HF_DENIED : HF_UNAVAILABLE;
    hf__fail(err, o->code, "etcd: %s: %s%s", where, curl_easy_strerror(c), tls_hint(c, where));
    hf__set_store_code(err, c);
}

/* One line, with blanks left as they are. */
static const char *printable(const char *text, char *buf, size_t size)
{
    snprintf(buf, size, "%s", text);
    for (char *c = buf; *c != '\0'; c++) {
        if (*c < ' ' || *c > '~')
            *c = '?';
    }
    return buf;
}

static void server_refused(struct outcome *o, const json_t *answer, const char *where,
                           hf_error *err)
{
    const json_t *inner = json_object_get(answer, "error");
    const json_t *from = json_is_object(inner) ? inner : answer; /* in a stream it is one deeper */
    const char *text = json_string_value(json_object_get(from, "message"));
    int64_t grpc = hf__etcd_int(from, json_is_object(inner) ? "grpc_code" : "code");
    char shown[160];

    if (text == NULL)
        text = json_string_value(inner);
    if (text == NULL)
        text = "an answer without a reason";
    o->no_token = grpc == NO_TOKEN || strstr(text, "invalid auth token") != NULL ||
                  strstr(text, "user name is empty") != NULL ||
                  strstr(text, "revision of auth store is old") != NULL;
    bool full = grpc == EXHAUSTED && strstr(text, "space") != NULL;
    o->next = o->maybe =
        grpc == UNAVAILABLE || grpc == 4 || (grpc == EXHAUSTED && !full) || grpc == 0 || grpc == 2;
    o->passing = grpc == UNAVAILABLE;
    o->code = grpc == NOT_FOUND                              ? HF_NOT_FOUND
              : strstr(text, "lease already exists") != NULL ? HF_BUSY
              : full                                         ? HF_FULL
              : o->no_token || grpc == DENIED || grpc == 3   ? HF_DENIED
              : o->maybe                                     ? HF_UNKNOWN
                                                             : HF_CORRUPT;
    hf__fail(err, o->code, "etcd: %s: %s", where, printable(text, shown, sizeof shown));
    hf__set_store_code(err, grpc);
}

/* A refusal in a stream is given alone, whatever came before it. */
static json_t *load(const struct body *body, bool stream)
{
    json_t *all = stream ? json_array() : NULL;
    size_t at = 0;

    while (at < body->len) {
        json_error_t where;
        json_t *one = json_loadb(body->text + at, body->len - at, JSON_DISABLE_EOF_CHECK, &where);
        if (one == NULL)
            break;
        if (!stream)
            return one;
        if (json_object_get(one, "error") != NULL) {
            json_decref(all);
            return one;
        }
        json_array_append_new(all, one);
        at += (size_t)where.position;
        while (at < body->len && (body->text[at] == '\n' || body->text[at] == ' '))
            at++;
    }
    return all;
}

static void read_answer(struct outcome *o, CURL *curl, const struct body *body, bool stream,
                        hf_error *err)
{
    long status = 0;
    char *url = NULL, where[HF__ETCD_WHERE];

    curl_easy_getinfo(curl, CURLINFO_EFFECTIVE_URL, &url);
    snprintf(where, sizeof where, "%s", url != NULL ? url : "");
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    json_t *answer = load(body, stream);
    if (answer == NULL) {
        o->maybe = o->next = o->passing = true;
        o->code = hf__fail(err, status == 404 ? HF_CORRUPT : HF_UNKNOWN,
                           "etcd: %s: no JSON (HTTP status %ld)", where, status);
        hf__set_store_code(err, status);
    } else if (status != 200 || json_object_get(answer, "error") != NULL) {
        server_refused(o, answer, where, err);
        json_decref(answer);
    } else {
        o->code = 0;
        o->answer = answer;
    }
}

/* A request on its way: all it needs until it is over. */
struct flight {
    CURL *curl;
    struct curl_slist *headers;
    char *text;
    struct body body;
};

static char *dump_stream(const json_t *messages)
{
    char *text = NULL;
    size_t len = 0, i;
    const json_t *message;
    FILE *out = open_memstream(&text, &len);

    if (out == NULL)
        return NULL;
    json_array_foreach(messages, i, message)
    {
        json_dumpf(message, out, JSON_COMPACT);
        fputc('\n', out);
    }
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

static int take_off(struct hf__etcd *e, size_t endpoint, const struct hf__etcd_request *q,
                    int64_t until_ns, struct flight *f)
{
    int64_t left_ms = (until_ns - hf__now_ns(e->base.host->env)) / HF__NS_PER_MS;

    *f = (struct flight){.curl = borrow(e),
                         .headers = hf__etcd_headers(e),
                         .text =
                             q->stream ? dump_stream(q->body) : json_dumps(q->body, JSON_COMPACT)};
    if (f->curl == NULL || f->headers == NULL || f->text == NULL ||
        hf__etcd_prepare(e, f->curl, endpoint, q->path) < 0)
        return HF_NO_MEMORY;
    curl_easy_setopt(f->curl, CURLOPT_HTTPHEADER, f->headers);
    curl_easy_setopt(f->curl, CURLOPT_POSTFIELDS, f->text);
    curl_easy_setopt(f->curl, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(f->curl, CURLOPT_WRITEDATA, &f->body);
    curl_easy_setopt(f->curl, CURLOPT_TIMEOUT_MS, (long)(left_ms > 0 ? left_ms : 1));
    return 0;
}

static void land(struct hf__etcd *e, struct flight *f)
{
    free(f->body.text);
    if (f->text != NULL)
        explicit_bzero(f->text, strlen(f->text)); /* it may be the password's */
    free(f->text);
    curl_slist_free_all(f->headers);
    if (f->curl != NULL)
        give_back(e, f->curl);
}

static void perform(struct hf__etcd *e, size_t endpoint, const struct hf__etcd_request *q,
                    int64_t until_ns, struct outcome *o, hf_error *err)
{
    const char *where = e->set.endpoints[endpoint];
    struct flight f;

    *o = (struct outcome){.code = HF_NO_MEMORY};
    if (take_off(e, endpoint, q, until_ns, &f) < 0) {
        hf__fail(err, HF_NO_MEMORY, NULL);
    } else {
        CURLcode c = curl_easy_perform(f.curl);
        if (c != CURLE_OK)
            transport_failed(o, f.curl, c, where, err);
        else
            read_answer(o, f.curl, &f.body, q->stream, err);
    }
    land(e, &f);
}

static int log_in(struct hf__etcd *e, size_t endpoint, int64_t until_ns, hf_error *err)
{
    struct outcome o;
    struct hf__etcd_request q = {
        .path = "auth/authenticate",
        .body = json_pack("{s:s, s:s}", "name", e->set.user, "password", e->set.password)};

    pthread_mutex_lock(&e->mutex);
    char *old = e->token;
    e->token = NULL;
    pthread_mutex_unlock(&e->mutex);
    free(old);
    perform(e, endpoint, &q, until_ns, &o, err);
    json_decref(q.body);
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
                int64_t until_ns, struct outcome *o, hf_error *err)
{
    pthread_mutex_lock(&e->mutex);
    bool first = e->set.user != NULL && e->token == NULL;
    pthread_mutex_unlock(&e->mutex);

    for (int tries = 0; tries < 2; tries++) {
        if (first || tries > 0) {
            int r = log_in(e, endpoint, until_ns, err);
            if (r < 0) {
                *o = (struct outcome){.code = r == HF_UNKNOWN ? HF_UNAVAILABLE : r, .next = true};
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
    struct outcome o;

    if (q.body == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    ask(e, endpoint, &q, q.deadline_ns, &o, err);
    json_decref(q.body);
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
    struct outcome o = {.code = HF_NO_MEMORY};

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
    json_decref(q.body);
    *ret_answer = o.answer;
    if (o.code == HF_UNAVAILABLE && maybe)
        return hf__wrap(err, HF_UNKNOWN, "after a request without an answer");
    return o.code;
}

/* One wave: as many as there are connections, all sent before the first answer is awaited. */
static void fly(struct hf__etcd *e, CURLM *multi, size_t endpoint, struct hf__etcd_many *all,
                size_t count, hf_error *err)
{
    struct flight flights[WAVE];
    struct outcome o;
    int running = 0, left;
    CURLMsg *done;

    for (size_t i = 0; i < count; i++) {
        const struct hf__etcd_request *q = &all[i].request;
        if (q->body != NULL && take_off(e, endpoint, q, q->deadline_ns, &flights[i]) == 0)
            curl_multi_add_handle(multi, flights[i].curl);
        else if (q->body == NULL)
            flights[i] = (struct flight){0};
    }
    do {
        curl_multi_perform(multi, &running);
        if (running > 0)
            curl_multi_poll(multi, NULL, 0, 100, NULL);
    } while (running > 0);
    while ((done = curl_multi_info_read(multi, &left)) != NULL) {
        size_t i = 0;
        while (i < count && flights[i].curl != done->easy_handle)
            i++;
        if (done->msg != CURLMSG_DONE || i == count)
            continue;
        o = (struct outcome){0};
        if (done->data.result != CURLE_OK)
            transport_failed(&o, flights[i].curl, done->data.result, e->set.endpoints[endpoint],
                             err);
        else
            read_answer(&o, flights[i].curl, &flights[i].body, all[i].request.stream, err);
        all[i].answer = o.answer;
        all[i].code = o.next || o.no_token ? HF_UNAVAILABLE : o.code;
    }
    for (size_t i = 0; i < count; i++) {
        if (flights[i].curl != NULL)
            curl_multi_remove_handle(multi, flights[i].curl);
        land(e, &flights[i]);
    }
}

/* The connections belong to the multi handle: it is kept with the store, for one batch at a time.
 */
void hf__etcd_call_many(struct hf__etcd *e, struct hf__etcd_many *all, size_t count, hf_error *err)
{
    pthread_mutex_lock(&e->mutex);
    size_t endpoint = e->endpoint;
    bool no_token = e->set.user != NULL && e->token == NULL;
    CURLM *multi = e->multi;
    e->multi = NULL;
    pthread_mutex_unlock(&e->mutex);

    for (size_t i = 0; i < count; i++)
        all[i].code = HF_UNAVAILABLE;
    if (multi == NULL)
        multi = curl_multi_init();
    for (size_t i = 0; multi != NULL && !no_token && count > 1 && i < count; i += WAVE)
        fly(e, multi, endpoint, all + i, count - i < WAVE ? count - i : WAVE, err);
    for (size_t i = 0; i < count; i++) {
        if (all[i].code == HF_UNAVAILABLE)
            all[i].code = hf__etcd_call(e, all[i].request, &all[i].answer, err);
        else
            json_decref(all[i].request.body);
        all[i].request.body = NULL;
    }
    pthread_mutex_lock(&e->mutex);
    bool kept = e->multi == NULL;
    if (kept)
        e->multi = multi;
    pthread_mutex_unlock(&e->mutex);
    if (!kept)
        curl_multi_cleanup(multi);
}
