/* See live.h. */
#include "etcd/live.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "stores/etcd/etcd.h"

#define AWAIT_MS 15000

static const char *servers(void)
{
    const char *all = getenv("HOLDFAST_TEST_ETCD");

    assert_non_null(all);
    return all;
}

const char *server_address(void)
{
    static __thread char first[64];

    snprintf(first, sizeof first, "%.*s", (int)strcspn(servers(), ","), servers());
    return first;
}

const char *url_of(int port, const char *options)
{
    static __thread char url[400];

    if (port == 0)
        snprintf(url, sizeof url, "etcd://%s/test?%s", servers(), options);
    else
        snprintf(url, sizeof url, "etcd://127.0.0.1:%d/test?%s", port, options);
    if (options[0] == '\0')
        url[strlen(url) - 1] = '\0';
    return url;
}

hf_client *open_at(const char *url)
{
    hf_client *client = NULL;
    hf_error err;

    if (hf_open(url, NULL, &client, &err) != HF_OK)
        fail_msg("open: %s", err.text);
    return client;
}

int try_lock(hf_client *client, const char *name, int64_t ttl_ms, hf_lock **ret_lock, hf_error *err)
{
    hf_options opt = HF_OPTIONS_INIT;

    opt.ttl_ms = ttl_ms;
    opt.wait_ms = 0;
    opt.owner = 77;
    return hf_acquire(client, name, HF_NTS, &opt, ret_lock, err);
}

static void *acquire(void *arg)
{
    struct waiter *w = arg;
    hf_options opt = HF_OPTIONS_INIT;

    opt.owner = (uint64_t)(uintptr_t)w;
    if (w->never_expires)
        opt.ttl_ms = 0;
    if (w->wait_ms > 0)
        opt.wait_ms = w->wait_ms;
    w->result = hf_acquire(w->client, w->name, HF_NTS, &opt, &w->lock, &w->err);
    w->got_ms = now_ms();
    if (w->result == HF_OK && w->releases)
        w->result = hf_lock_release(w->lock, &w->err);
    return NULL;
}

void wait_in_thread(struct waiter *w, hf_client *client, const char *name)
{
    w->client = client;
    w->name = name;
    assert_int_equal(pthread_create(&w->thread, NULL, acquire, w), 0);
}

int join_waiter(struct waiter *w)
{
    pthread_join(w->thread, NULL);
    return w->result;
}

int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static size_t count(hf_client *client, const char *name, size_t *ret_waiting)
{
    hf_query query = {.size = sizeof query, .name = name, .name_len = HF_NTS};
    hf_view *view = NULL;

    *ret_waiting = SIZE_MAX;
    if (hf_inspect(client, &query, &view, NULL) != HF_OK)
        return SIZE_MAX; /* a busy machine: whoever awaits something looks again */
    size_t all = hf_view_count(view);
    *ret_waiting = 0;
    for (size_t i = 0; i < all; i++)
        *ret_waiting += hf_view_entry(view, i)->place == HF_PLACE_WAITING;
    hf_view_free(view);
    return all;
}

size_t count_entries(hf_client *client, const char *name)
{
    size_t waiting;

    return count(client, name, &waiting);
}

void await_waiting(hf_client *client, const char *name, size_t wanted)
{
    int64_t until_ms = now_ms() + AWAIT_MS;
    size_t waiting = 0;

    for (count(client, name, &waiting); waiting != wanted; count(client, name, &waiting)) {
        if (now_ms() > until_ms)
            fail_msg("%zu wait, not %zu", waiting, wanted);
        usleep(5000);
    }
}

void await_free(hf_client *client, const char *name)
{
    int64_t until_ms = now_ms() + AWAIT_MS;

    while (count_entries(client, name) > 0) {
        if (now_ms() > until_ms)
            fail_msg("%s does not become free", name);
        usleep(5000);
    }
}

struct page {
    char *text;
    size_t len;
};

static size_t take(char *from, size_t size, size_t n, void *ctx)
{
    struct page *page = ctx;
    char *text = realloc(page->text, page->len + size * n + 1);

    assert_non_null(text);
    memcpy(text + page->len, from, size * n);
    page->text = text;
    page->len += size * n;
    text[page->len] = '\0';
    return size * n;
}

/* One bare request; free what it gives. */
static char *fetch(const char *server, const char *path, const char *body)
{
    CURL *curl = curl_easy_init();
    struct page page = {0};
    char url[200];

    assert_non_null(curl);
    snprintf(url, sizeof url, "http://%s/%s", server, path);
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &page);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, 10000L);
    if (body != NULL)
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
    assert_int_equal(curl_easy_perform(curl), CURLE_OK);
    curl_easy_cleanup(curl);
    assert_non_null(page.text);
    return page.text;
}

static double metric_of(const char *server, const char *prefix)
{
    char *text = fetch(server, "metrics", NULL), *rest = text, *line;
    double sum = 0;

    while ((line = strsep(&rest, "\n")) != NULL) {
        const char *value = strrchr(line, ' ');
        if (strncmp(line, prefix, strlen(prefix)) == 0 && value != NULL)
            sum += strtod(value, NULL);
    }
    free(text);
    return sum;
}

double metric(const char *prefix)
{
    char *all = strdup(servers()), *rest = all, *server;
    double sum = 0;

    assert_non_null(all);
    while ((server = strsep(&rest, ",")) != NULL)
        sum += metric_of(server, prefix);
    free(all);
    return sum;
}

void await_more(const char *prefix, double than)
{
    int64_t until_ms = now_ms() + AWAIT_MS;

    while (metric(prefix) <= than) {
        if (now_ms() > until_ms)
            fail_msg("%s stays at %.0f", prefix, than);
        usleep(5000);
    }
}

static int watches(void)
{
    return (int)(metric("etcd_debugging_mvcc_watcher_total") -
                 2 * metric("etcd_debugging_mvcc_watch_stream_total"));
}

void await_watchers(int wanted)
{
    int64_t until_ms = now_ms() + AWAIT_MS;

    while (watches() != 2 * wanted) {
        if (now_ms() > until_ms)
            fail_msg("there are %d watches, not %d", watches(), 2 * wanted);
        usleep(5000);
    }
}

void await_streams(int wanted)
{
    int64_t until_ms = now_ms() + AWAIT_MS;

    while ((int)metric("etcd_debugging_mvcc_watch_stream_total") != wanted) {
        if (now_ms() > until_ms)
            fail_msg("there are not %d streams", wanted);
        usleep(5000);
    }
}

/* One page of keys is enough, in the order of their creation. */
static json_t *fetch_keys(void)
{
    char *all = fetch(server_address(), "v3/kv/range",
                      "{\"key\":\"AA==\",\"range_end\":\"AA==\",\"keys_only\":true,"
                      "\"sort_target\":\"CREATE\",\"sort_order\":\"ASCEND\"}");
    json_t *answer = json_loads(all, 0, NULL);

    free(all);
    assert_non_null(answer);
    return answer;
}

static bool is_below(const json_t *kv, const char *root)
{
    struct hf__etcd_key key;

    return hf__etcd_unb64(json_object_get(kv, "key"), &key) && key.len > strlen(root) &&
           memcmp(key.bytes, root, strlen(root)) == 0;
}

size_t count_keys(const char *root)
{
    json_t *answer = fetch_keys(), *kv;
    size_t i, found = 0;

    json_array_foreach(json_object_get(answer, "kvs"), i, kv) found += is_below(kv, root);
    json_decref(answer);
    return found;
}

void delete_place(const char *name, size_t nth)
{
    json_t *answer = fetch_keys(), *kv, *found = NULL;
    char root[100];
    size_t i;

    snprintf(root, sizeof root, "test/%s/", name);
    json_array_foreach(json_object_get(answer, "kvs"), i, kv)
    {
        if (is_below(kv, root) && nth-- == 0)
            found = json_object_get(kv, "key");
    }
    assert_non_null(found);
    json_t *request = json_pack("{s:O}", "key", found);
    char *body = json_dumps(request, 0);
    free(fetch(server_address(), "v3/kv/deleterange", body));
    free(body);
    json_decref(request);
    json_decref(answer);
}

void compact(void)
{
    char *now = fetch(server_address(), "v3/kv/range", "{\"key\":\"AA==\"}"), body[100];
    const char *revision = strstr(now, "\"revision\":\"");

    assert_non_null(revision);
    snprintf(body, sizeof body, "{\"revision\":\"%lld\",\"physical\":true}",
             strtoll(revision + strlen("\"revision\":\""), NULL, 10));
    free(now);
    free(fetch(server_address(), "v3/kv/compaction", body));
}
