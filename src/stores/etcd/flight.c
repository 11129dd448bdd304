/* One request on its way: a pooled connection, its headers, its text and what comes back. */
#include <stdio.h>
#include <stdlib.h>

#include "stores/etcd/http.h"

#include "util/banned.h"

#define ANSWER_MAX (64 << 20)
#define URL_MAX    512

static size_t take(char *from, size_t size, size_t count, void *ctx)
{
    struct hf__etcd_body *body = ctx;
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

/* One that was used before is set up already. */
static CURL *borrow(struct hf__etcd *e)
{
    pthread_mutex_lock(&e->mutex);
    CURL *curl = e->idle_count > 0 ? e->idle[--e->idle_count] : NULL;
    pthread_mutex_unlock(&e->mutex);
    return curl != NULL ? curl : hf__etcd_new_curl(e);
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
    hf__etcd_partings_clear(e);
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

CURL *hf__etcd_new_curl(const struct hf__etcd *e)
{
    const struct hf__etcd_settings *set = &e->set;
    CURL *curl = curl_easy_init();
    CURLcode c = CURLE_OK;

    if (curl == NULL)
        return NULL;
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2); /* or later */
    if (set->tls_insecure) {
        curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 0L);
        curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L);
    }
    if (set->tls_ca != NULL)
        c = curl_easy_setopt(curl, CURLOPT_CAINFO, set->tls_ca);
    if (c == CURLE_OK && set->tls_cert != NULL)
        c = curl_easy_setopt(curl, CURLOPT_SSLCERT, set->tls_cert);
    if (c == CURLE_OK && set->tls_key != NULL)
        c = curl_easy_setopt(curl, CURLOPT_SSLKEY, set->tls_key);
    if (c == CURLE_OK)
        return curl;
    curl_easy_cleanup(curl);
    return NULL;
}

int hf__etcd_aim(const struct hf__etcd *e, CURL *curl, size_t endpoint, const char *path)
{
    char url[URL_MAX];

    snprintf(url, sizeof url, "%s/v3/%s", e->set.endpoints[endpoint], path);
    return curl_easy_setopt(curl, CURLOPT_URL, url) == CURLE_OK ? 0 : HF_NO_MEMORY;
}

struct curl_slist *hf__etcd_headers(struct hf__etcd *e)
{
    /* "hasleader": a server that has lost its leader says so instead of keeping silent. */
    static const char *const fixed[] = {"Content-Type: application/json",
                                        "Expect:", "Grpc-Metadata-hasleader: true"};
    struct curl_slist *list = NULL;

    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++) {
        struct curl_slist *longer = curl_slist_append(list, fixed[i]);
        if (longer == NULL) {
            curl_slist_free_all(list);
            return NULL;
        }
        list = longer;
    }
    pthread_mutex_lock(&e->mutex);
    bool has_token = e->token != NULL; /* of any length: it may be a JWT */
    char *line = has_token ? hf__etcd_format("Authorization: %s", e->token) : NULL;
    pthread_mutex_unlock(&e->mutex);
    if (!has_token)
        return list;
    struct curl_slist *longer = line != NULL ? curl_slist_append(list, line) : NULL;
    if (longer == NULL)
        curl_slist_free_all(list);
    if (line != NULL)
        explicit_bzero(line, strlen(line));
    free(line);
    return longer;
}

int hf__etcd_take_off(struct hf__etcd *e, size_t endpoint, const struct hf__etcd_request *q,
                      int64_t until_ns, struct hf__etcd_flight *f)
{
    int64_t left_ms = (until_ns - hf__now_ns(e->base.host->env)) / HF__NS_PER_MS;

    f->curl = f->in_multi ? hf__etcd_new_curl(e) : borrow(e);
    f->headers = hf__etcd_headers(e);
    if (f->curl == NULL || f->headers == NULL || hf__etcd_aim(e, f->curl, endpoint, q->path) < 0)
        return HF_NO_MEMORY;
    curl_easy_setopt(f->curl, CURLOPT_HTTPHEADER, f->headers);
    curl_easy_setopt(f->curl, CURLOPT_POSTFIELDS, q->body);
    curl_easy_setopt(f->curl, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(f->curl, CURLOPT_WRITEDATA, &f->body);
    curl_easy_setopt(f->curl, CURLOPT_TIMEOUT_MS, (long)(left_ms > 0 ? left_ms : 1));
    return 0;
}

void hf__etcd_land(struct hf__etcd *e, struct hf__etcd_flight *f)
{
    free(f->body.text);
    free(f->text);
    curl_slist_free_all(f->headers);
    if (f->in_multi)
        curl_easy_cleanup(f->curl);
    else if (f->curl != NULL)
        give_back(e, f->curl);
}
