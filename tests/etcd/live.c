/* See live.h. */
#include "etcd/live.h"

#include <curl/curl.h>
#include <stdlib.h>

#include "stores/etcd/etcd.h"

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

hf_client *open_live(const char *options)
{
    return open_url(url_of(0, options));
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

struct figure {
    const char *prefix;
    double than;
};

static int is_more(void *ctx)
{
    const struct figure *f = ctx;

    return metric(f->prefix) > f->than;
}

void await_more(const char *prefix, double than)
{
    await(prefix, is_more, &(struct figure){prefix, than});
}

static int has_watches(void *wanted)
{
    return metric("etcd_debugging_mvcc_watcher_total") - 2 * metric(STREAMS) == *(int *)wanted;
}

void await_watchers(int count)
{
    await("the watches", has_watches, &(int){2 * count});
}

static int has_streams(void *wanted)
{
    return metric(STREAMS) == *(int *)wanted;
}

void await_streams(int count)
{
    await("the streams", has_streams, &(int){count});
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
