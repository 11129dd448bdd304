/* See live.h. */
#include "zookeeper/live.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

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
    return open_url(url_of(hosts, options));
}

hf_lock *take(hf_client *client, const char *name, int64_t ttl_ms)
{
    hf_options opt = HF_OPTIONS_INIT;
    hf_lock *lock = NULL;
    hf_error err;

    opt.ttl_ms = ttl_ms;
    opt.wait_ms = 2 * AWAIT_MS;
    if (hf_acquire(client, name, HF_NTS, &opt, &lock, &err) != HF_OK)
        fail_msg("%s", err.text);
    return lock;
}

void make_listen(hf_client *client)
{
    assert_int_equal(hf_lock_release(take(client, "listen", 20000), NULL), HF_OK);
}

void send_waiter(struct waiter *w, hf_client *client, const char *name, int64_t ttl_ms,
                 hf_cancel *cancel)
{
    *w = (struct waiter){.opt = HF_OPTIONS_INIT};
    w->opt.ttl_ms = ttl_ms;
    w->opt.cancel = cancel;
    wait_in_thread(w, client, name);
}

void send_visitor(struct waiter *w, hf_client *client, const char *name, int64_t ttl_ms)
{
    *w = (struct waiter){.opt = HF_OPTIONS_INIT, .releases = true};
    w->opt.ttl_ms = ttl_ms;
    wait_in_thread(w, client, name);
}

int count_watches(void)
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
