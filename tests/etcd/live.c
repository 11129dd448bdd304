/* See live.h. */
#include "etcd/live.h"

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

static void split(const char *server, char host[64], const char **ret_port)
{
    snprintf(host, 64, "%.*s", (int)strcspn(server, ":"), server);
    *ret_port = server + strlen(host) + 1;
}

/* What it shows for others to count, over plain HTTP; free it. */
static char *fetch_metrics(const char *server)
{
    static const char request[] = "GET /metrics HTTP/1.0\r\n\r\n";
    struct hf__address to = {0};
    struct hf__buffer page = {.cap = 64 << 20};
    struct hf__stream stream;
    char host[64], chunk[16384];
    size_t count;
    int64_t deadline_ns = hf__now_ns(&hf__system_env) + 10000 * HF__NS_PER_MS;

    split(server, host, &to.port);
    to.host = host;
    assert_int_equal(hf__stream_connect(&stream, &to, &hf__system_env, deadline_ns, NULL), 0);
    assert_int_equal(
        hf__stream_write(&stream, request, sizeof request - 1, deadline_ns, NULL, NULL), 0);
    while (hf__stream_read(&stream, chunk, sizeof chunk, deadline_ns, &count, NULL) == 0)
        hf__buffer_add(&page, chunk, count);
    hf__stream_close(&stream);
    hf__buffer_add(&page, "", 1);
    assert_false(page.failed);
    return page.data;
}

/* One call of a stranger, on a connection of its own: its status; the answer is to be cleared. */
static int call_server(const char *path, struct hf__buffer body, struct hf__buffer *ret_answer)
{
    struct hf__grpc_route route = {.env = &hf__system_env};
    struct hf__grpc_request request = {.path = path, .body = &body};
    struct hf__grpc_conn *conn = NULL;
    int64_t deadline_ns = hf__now_ns(&hf__system_env) + 10000 * HF__NS_PER_MS;
    char host[64];
    hf_error err;

    split(server_address(), host, &route.address.port);
    route.address.host = host;
    assert_int_equal(hf__grpc_dial(&route, deadline_ns, &conn, &err), 0);
    struct hf__grpc_call *call = hf__grpc_begin(conn, &request, &err);
    assert_non_null(call);
    assert_int_equal(hf__grpc_finish(conn, call, deadline_ns, &err), HF__GRPC_END_ANSWERED);
    int status = call->status;
    *ret_answer = call->in;
    call->in = (struct hf__buffer){0};
    hf__grpc_release(conn, call);
    hf__grpc_unref(conn);
    return status;
}

static struct hf__buffer ask(const char *path, struct hf__buffer body)
{
    struct hf__buffer answer;

    assert_int_equal(call_server(path, body, &answer), HF__GRPC_STATUS_OK);
    return answer;
}

static struct hf__etcd_answer commit(struct hf__etcd_txn *t)
{
    struct hf__etcd_answer answer;
    struct hf__buffer bytes = ask("/etcdserverpb.KV/Txn", hf__etcd_written(t));
    struct hf__slice rest = {bytes.data, bytes.len}, message;

    assert_int_equal(hf__grpc_take(&rest, &message), 1);
    assert_int_equal(hf__etcd_answer_read(message, &answer), 0);
    answer.bytes = bytes;
    return answer;
}

static double metric_of(const char *server, const char *prefix)
{
    char *text = fetch_metrics(server), *rest = text, *line;
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

/* In the order of their creation. */
static struct hf__etcd_answer fetch_keys(void)
{
    struct hf__etcd_txn t = {0};
    struct hf__etcd_key all = {.len = 1};

    hf__etcd_range(&t, &(struct hf__etcd_range){.from = &all, .to = &all});
    return commit(&t);
}

static bool is_below(const struct hf__etcd_kv *kv, const char *root)
{
    return kv->key.len > strlen(root) && memcmp(kv->key.data, root, strlen(root)) == 0;
}

size_t count_keys(const char *root)
{
    struct hf__etcd_answer answer = fetch_keys();
    struct hf__etcd_result range = hf__etcd_nth(&answer, 0);
    size_t found = 0;

    for (size_t i = 0; i < range.count; i++)
        found += is_below(&range.kvs[i], root);
    hf__etcd_answer_clear(&answer);
    return found;
}

void delete_place(const char *name, size_t nth)
{
    struct hf__etcd_answer answer = fetch_keys(), done;
    struct hf__etcd_result range = hf__etcd_nth(&answer, 0);
    struct hf__etcd_txn t = {0};
    struct hf__etcd_key key = {0};
    char root[100];

    snprintf(root, sizeof root, "test/%s/", name);
    for (size_t i = 0; i < range.count; i++) {
        if (is_below(&range.kvs[i], root) && nth-- == 0) {
            key.len = range.kvs[i].key.len;
            memcpy(key.bytes, range.kvs[i].key.data, key.len);
        }
    }
    assert_true(key.len > 0);
    hf__etcd_answer_clear(&answer);
    hf__etcd_delete(&t, &key);
    done = commit(&t);
    hf__etcd_answer_clear(&done);
}

void compact(void)
{
    struct hf__etcd_answer now = fetch_keys();
    struct hf__buffer body = {0};
    size_t place = hf__grpc_begin_message(&body);

    hf__proto_number(&body, 1, now.revision);
    hf__proto_number(&body, 2, true); /* physical */
    hf__grpc_end_message(&body, place);
    hf__etcd_answer_clear(&now);
    struct hf__buffer done = ask("/etcdserverpb.KV/Compact", body);
    hf__buffer_clear(&done);
}

/* Quotas are looked at before a put is agreed on, and again when it is applied. */
void fill_up(void)
{
    struct hf__etcd_key key = {.len = 4, .bytes = "fill"};
    char value[60001];
    int status = HF__GRPC_STATUS_OK;

    memset(value, 'x', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    while (status == HF__GRPC_STATUS_OK) {
        struct hf__etcd_txn t = {0};
        struct hf__buffer answer;
        hf__etcd_put(&t, &key, value, 0);
        status = call_server("/etcdserverpb.KV/Txn", hf__etcd_written(&t), &answer);
        hf__buffer_clear(&answer);
    }
    assert_int_equal(status, HF__GRPC_STATUS_EXHAUSTED);
}

/* The alarm of one member: the first that is raised. */
static struct hf__buffer disarm_request(void)
{
    struct hf__buffer request = {0};
    struct hf__buffer raised = ask("/etcdserverpb.Maintenance/Alarm", hf__etcd_empty_request());
    struct hf__slice rest = {raised.data, raised.len}, message;
    struct hf__proto_field f;

    assert_int_equal(hf__grpc_take(&rest, &message), 1);
    size_t place = hf__grpc_begin_message(&request);
    hf__proto_number(&request, 1, 2); /* deactivate */
    for (struct hf__proto_reader r = hf__proto_reader_of(message); hf__proto_next(&r, &f);) {
        struct hf__proto_reader alarm = hf__proto_reader_of(f.bytes);
        if (f.number != 2)
            continue;
        while (hf__proto_next(&alarm, &f)) /* whose it is, and which */
            hf__proto_number(&request, f.number + 1, f.value);
        break;
    }
    hf__grpc_end_message(&request, place);
    hf__buffer_clear(&raised);
    return request;
}

void make_room(void)
{
    compact();
    struct hf__buffer done = ask("/etcdserverpb.Maintenance/Defragment", hf__etcd_empty_request());
    hf__buffer_clear(&done);
    done = ask("/etcdserverpb.Maintenance/Alarm", disarm_request());
    hf__buffer_clear(&done);
}
