#include "zookeeper/live.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_BOOTTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

const char *servers(void)
{
    const char *hosts = getenv("HOLDFAST_TEST_ZOOKEEPER");

    assert_non_null(hosts);
    return hosts;
}

static void say_nothing(const char *message)
{
    (void)message;
}

static int is_connected(void *zh)
{
    return zoo_state(zh) == ZOO_CONNECTED_STATE;
}

zhandle_t *stranger(void)
{
    zhandle_t *zh = zookeeper_init2(servers(), NULL, 10000, NULL, NULL, 0, say_nothing);

    assert_non_null(zh);
    await("a connection", is_connected, zh);
    return zh;
}

int child_count(zhandle_t *zh, const char *path)
{
    struct String_vector names = {0};
    int rc = zoo_get_children(zh, path, 0, &names), count = names.count;

    assert_true(rc == ZOK || rc == ZNONODE);
    if (rc == ZOK)
        deallocate_String_vector(&names);
    return rc == ZOK ? count : 0;
}

const char *url_of(const char *hosts, const char *options)
{
    static _Thread_local char url[500];

    snprintf(url, sizeof url, "zookeeper://%s/locks?acl=world%s%s", hosts, options[0] ? "&" : "",
             options);
    return url;
}

hf_client *open_at(const char *hosts, const char *options)
{
    hf_client *client = NULL;
    hf_error err;

    if (hf_open(url_of(hosts, options), NULL, &client, &err) != HF_OK)
        fail_msg("%s", err.text);
    return client;
}

int try_lock(hf_client *client, const char *name, int64_t ttl_ms, hf_lock **ret_lock)
{
    hf_options opt = HF_OPTIONS_INIT;

    opt.ttl_ms = ttl_ms;
    opt.wait_ms = 0;
    return hf_acquire(client, name, HF_NTS, &opt, ret_lock, NULL);
}

hf_lock *take(hf_client *client, const char *name, int64_t ttl_ms)
{
    hf_options opt = HF_OPTIONS_INIT;
    hf_lock *lock = NULL;
    hf_error err;

    opt.ttl_ms = ttl_ms;
    opt.wait_ms = 2 * PATIENCE_MS;
    if (hf_acquire(client, name, HF_NTS, &opt, &lock, &err) != HF_OK)
        fail_msg("%s", err.text);
    return lock;
}

static void *wait_for_it(void *arg)
{
    struct waiter *w = arg;

    w->result = hf_acquire(w->client, w->name, HF_NTS, &w->opt, &w->lock, &w->err);
    w->done = true;
    return NULL;
}

void wait_in_thread(struct waiter *w, hf_client *client, const char *name, int64_t ttl_ms)
{
    wait_with(w, client, name, ttl_ms, NULL);
}

void wait_with(struct waiter *w, hf_client *client, const char *name, int64_t ttl_ms,
               hf_cancel *cancel)
{
    static _Atomic uint64_t owner = 1;

    *w = (struct waiter){.client = client, .name = name, .opt = HF_OPTIONS_INIT};
    w->opt.ttl_ms = ttl_ms;
    w->opt.wait_ms = 4 * PATIENCE_MS;
    w->opt.owner = owner++;
    w->opt.cancel = cancel;
    assert_int_equal(pthread_create(&w->thread, NULL, wait_for_it, w), 0);
}

int join_waiter(struct waiter *w)
{
    assert_int_equal(pthread_join(w->thread, NULL), 0);
    return w->result;
}

static void *visit(void *arg)
{
    struct visitor *v = arg;
    hf_options opt = HF_OPTIONS_INIT;
    hf_lock *lock = NULL;

    opt.ttl_ms = v->ttl_ms;
    opt.owner = (uint64_t)(uintptr_t)v;
    if (hf_acquire(v->client, v->name, HF_NTS, &opt, &lock, NULL) != HF_OK ||
        hf_lock_release(lock, NULL) != HF_OK)
        return v;
    return NULL;
}

void send_visitor(struct visitor *v, hf_client *client, const char *name, int64_t ttl_ms)
{
    *v = (struct visitor){.client = client, .name = name, .ttl_ms = ttl_ms};
    assert_int_equal(pthread_create(&v->thread, NULL, visit, v), 0);
}

void join_visitor(struct visitor *v)
{
    void *failed = NULL;

    assert_int_equal(pthread_join(v->thread, &failed), 0);
    assert_null(failed);
}

void await(const char *what, int (*is_true)(void *), void *ctx)
{
    int64_t until_ms = now_ms() + PATIENCE_MS;
    struct timespec pause = {.tv_nsec = 5000000};

    while (!is_true(ctx)) {
        if (now_ms() > until_ms)
            fail_msg("waited in vain for %s", what);
        nanosleep(&pause, NULL);
    }
}

struct queue {
    hf_client *client;
    const char *name;
    size_t count;
};

static int has_queue(void *ctx)
{
    struct queue *q = ctx;
    hf_query query = {.size = sizeof query, .name = q->name, .name_len = HF_NTS};
    hf_view *view = NULL;
    size_t waiting = 0;

    if (hf_inspect(q->client, &query, &view, NULL) != HF_OK)
        return 0;
    for (size_t i = 0; i < hf_view_count(view); i++)
        waiting += hf_view_entry(view, i)->place == HF_PLACE_WAITING;
    hf_view_free(view);
    return waiting == q->count;
}

void await_waiting(hf_client *client, const char *name, size_t count)
{
    struct queue q = {client, name, count};

    await("the queue", has_queue, &q);
}

void await_lost(hf_lock *lock)
{
    struct pollfd p = {.fd = hf_lock_fd(lock), .events = POLLIN};

    assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
    assert_int_equal(hf_lock_state(lock), HF_STATE_LOST);
}

static int watches_on_servers(void)
{
    char text[1000], hosts[300], *save = NULL;
    int count = 0;

    snprintf(hosts, sizeof hosts, "%s", servers());
    for (char *host = strtok_r(hosts, ",", &save); host != NULL;
         host = strtok_r(NULL, ",", &save)) {
        ask_server_at(host, "wchs", text, sizeof text);
        const char *at = strstr(text, "Total watches:");
        assert_non_null(at);
        count += (int)strtol(at + 14, NULL, 10);
    }
    return count;
}

struct watched {
    int least, seen;
};

static int all_watch(void *arg)
{
    struct watched *w = arg;
    int before = w->seen;

    usleep(200000);
    w->seen = watches_on_servers();
    return w->seen >= w->least && w->seen == before;
}

int await_watches(int least)
{
    struct watched watched = {.least = least};

    await("all to watch", all_watch, &watched);
    return watched.seen;
}

void ask_server_at(const char *address, const char *word, char *buf, size_t size)
{
    struct timeval patience = {.tv_sec = 1};
    struct sockaddr_in to = {.sin_family = AF_INET};
    const char *colon = strrchr(address, ':');
    char host[40];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    size_t used = 0;
    ssize_t n = 1;

    snprintf(host, sizeof host, "%.*s", (int)(colon - address), address);
    to.sin_port = htons((uint16_t)strtol(colon + 1, NULL, 10));
    assert_int_equal(inet_pton(AF_INET, host, &to.sin_addr), 1);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience); /* of connect(), too */
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0 && send(fd, word, 4, 0) == 4) {
        while (n > 0 && used + 1 < size) {
            n = recv(fd, buf + used, size - 1 - used, 0);
            used += n > 0 ? (size_t)n : 0;
        }
    }
    buf[used] = '\0';
    close(fd);
}

void ask_server(int port, const char *word, char *buf, size_t size)
{
    char address[40];

    snprintf(address, sizeof address, "127.0.0.1:%d", port);
    ask_server_at(address, word, buf, size);
}
