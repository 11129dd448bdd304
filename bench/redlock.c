/* One acquire and its release on redlock:, against the bare requests in parallel: SET NX PX to
 * every server at once until a majority has answered, then EVALSHA compare-and-delete in the same
 * way.
 *
 *     redlock HOST:PORT,... ROUNDS PAIRS
 *
 * The floor's requests are formatted beforehand; it polls, counts replies by their first byte and
 * does nothing else. */
#include <arpa/inet.h>
#include <errno.h>
#include <holdfast.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench.h"

#define NODES_MAX 15
#define VALUE     "0123456789abcdef0123456789abcdef"
#define DELETE                                                                         \
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) " \
    "else return 0 end"

struct floor {
    size_t count;
    struct pollfd nodes[NODES_MAX];
    unsigned owed[NODES_MAX]; /* replies to earlier requests */
    char set[256], delete[256];
    size_t set_len, delete_len;
};

static int dial(const char *port)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)strtol(port, NULL, 10)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

    BENCH_MUST(fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0, "connect to %s",
               port);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

/* Teaches the script; the SHA-1 that the server answers goes into `sha1`. */
static void teach(int fd, char sha1[41])
{
    char request[512], reply[128];
    int len =
        snprintf(request, sizeof request, "*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n$%zu\r\n%s\r\n",
                 sizeof DELETE - 1, DELETE);

    BENCH_MUST(send(fd, request, (size_t)len, 0) == len, "send");
    BENCH_MUST(recv(fd, reply, sizeof reply, 0) == 47, "SCRIPT LOAD");
    snprintf(sha1, 41, "%.40s", reply + 5);
}

static void floor_open(struct floor *f, const char *list)
{
    char sha1[41];

    for (const char *at = list; at != NULL && f->count < NODES_MAX; at = strchr(at, ',')) {
        at = strchr(at, ':') + 1;
        f->nodes[f->count] = (struct pollfd){.fd = dial(at), .events = POLLIN};
        teach(f->nodes[f->count++].fd, sha1);
    }
    f->set_len = (size_t)snprintf(f->set, sizeof f->set,
                                  "*6\r\n$3\r\nSET\r\n$7\r\nfloor:x\r\n$32\r\n" VALUE
                                  "\r\n$2\r\nNX\r\n$2\r\nPX\r\n$5\r\n"
                                  "30000\r\n");
    f->delete_len = (size_t)snprintf(
        f->delete, sizeof f->delete,
        "*5\r\n$7\r\nEVALSHA\r\n$40\r\n%s\r\n$1\r\n1\r\n$7\r\nfloor:x\r\n$32\r\n" VALUE "\r\n",
        sha1);
}

/* How many replies are there; each is one line. */
static unsigned read_replies(int fd)
{
    char buf[1024];
    ssize_t n = recv(fd, buf, sizeof buf, MSG_DONTWAIT);
    unsigned lines = 0;

    BENCH_MUST(n > 0 && buf[0] != '-' && buf[0] != '$', "a node refused");
    for (ssize_t i = 0; i < n; i++)
        lines += buf[i] == '\n';
    return lines;
}

static void ask_all(struct floor *f, const char *request, size_t len)
{
    bool answered[NODES_MAX] = {false};
    size_t votes = 0;

    for (size_t i = 0; i < f->count; i++)
        BENCH_MUST(send(f->nodes[i].fd, request, len, MSG_NOSIGNAL) == (ssize_t)len, "send");
    while (votes <= f->count / 2) {
        BENCH_MUST(poll(f->nodes, f->count, 5000) > 0 || errno == EINTR, "poll");
        for (size_t i = 0; i < f->count; i++) {
            if (f->nodes[i].revents == 0)
                continue;
            unsigned lines = read_replies(f->nodes[i].fd);
            votes += lines > f->owed[i];
            answered[i] |= lines > f->owed[i];
            f->owed[i] -= lines > f->owed[i] ? f->owed[i] : lines;
        }
    }
    for (size_t i = 0; i < f->count; i++)
        f->owed[i] += !answered[i];
}

static void run_floor(struct floor *f, int pairs)
{
    for (int i = 0; i < pairs; i++) {
        ask_all(f, f->set, f->set_len);
        ask_all(f, f->delete, f->delete_len);
    }
}

static void run_ours(hf_client *client, int pairs)
{
    hf_options opt = HF_OPTIONS_INIT;
    hf_error err;
    hf_lock *lock;

    opt.wait_ms = 0;
    opt.by_hand = 1;
    for (int i = 0; i < pairs; i++) {
        BENCH_MUST(hf_acquire(client, "x", HF_NTS, &opt, &lock, &err) == 0, "%s", err.text);
        BENCH_MUST(hf_lock_release(lock, &err) == 0, "%s", err.text);
    }
}

int main(int argc, char **argv)
{
    BENCH_MUST(argc == 4, "usage: redlock HOST:PORT,... ROUNDS PAIRS");
    int rounds = (int)strtol(argv[2], NULL, 10), pairs = (int)strtol(argv[3], NULL, 10);
    struct floor floor = {0};
    hf_client *client;
    char url[1000];
    hf_error err;

    snprintf(url, sizeof url, "redlock://%s?restart_guard=off", argv[1]);
    BENCH_MUST(hf_open(url, NULL, &client, &err) == 0, "%s", err.text);
    floor_open(&floor, argv[1]);
    run_ours(client, pairs / 10);
    run_floor(&floor, pairs / 10);
    for (int i = 0; i < rounds; i++) {
        int64_t began_ns = bench_now_ns();
        run_ours(client, pairs);
        bench_print("redlock: ours", (double)(bench_now_ns() - began_ns) / pairs / 1e3, "us");
        began_ns = bench_now_ns();
        run_floor(&floor, pairs);
        bench_print("redlock: floor", (double)(bench_now_ns() - began_ns) / pairs / 1e3, "us");
    }
    hf_close(client);
    return 0;
}
