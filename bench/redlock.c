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
    struct request {
        char bytes[1024];
        size_t len;
    } set, delete; /* by turns */
};

extern const char hf__redlock_lua_attempt_sha1[], hf__redlock_lua_release_sha1[];

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

static void dial_all(struct floor *f, const char *list, char sha1[41])
{
    for (const char *at = list; at != NULL && f->count < NODES_MAX; at = strchr(at, ',')) {
        at = strchr(at, ':') + 1;
        f->nodes[f->count] = (struct pollfd){.fd = dial(at), .events = POLLIN};
        teach(f->nodes[f->count++].fd, sha1);
    }
}

static void format(struct request *r, size_t count, const char *const *words)
{
    r->len = (size_t)snprintf(r->bytes, sizeof r->bytes, "*%zu\r\n", count);
    for (size_t i = 0; i < count; i++)
        r->len += (size_t)snprintf(r->bytes + r->len, sizeof r->bytes - r->len, "$%zu\r\n%s\r\n",
                                   strlen(words[i]), words[i]);
}

#define FORMAT(request, ...)                                    \
    do {                                                        \
        const char *words[] = {__VA_ARGS__};                    \
        format(request, sizeof words / sizeof words[0], words); \
    } while (0)

static void plain_open(struct floor *f, const char *list)
{
    char sha1[41];

    dial_all(f, list, sha1);
    FORMAT(&f->set, "SET", "plain:x", VALUE, "NX", "PX", "30000");
    FORMAT(&f->delete, "EVALSHA", sha1, "1", "plain:x", VALUE);
}

/* After ours has taught the servers its scripts. */
static void floor_open(struct floor *f, const char *list)
{
    char sha1[41];

    dial_all(f, list, sha1);
    FORMAT(&f->set, "EVALSHA", hf__redlock_lua_attempt_sha1, "2", "holdfast:y",
           "holdfast.redlock:" VALUE, VALUE, "30000", "90000",
           "30000 90000 12345 a-host.example.org a-user bench_redlock");
    FORMAT(&f->delete, "EVALSHA", hf__redlock_lua_release_sha1, "2", "holdfast:y",
           "holdfast.redlock:" VALUE, VALUE, "0");
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

static void ask_all(struct floor *f, const struct request *request)
{
    bool answered[NODES_MAX] = {false};
    size_t votes = 0;

    for (size_t i = 0; i < f->count; i++)
        BENCH_MUST(send(f->nodes[i].fd, request->bytes, request->len, MSG_NOSIGNAL) ==
                       (ssize_t)request->len,
                   "send");
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
        ask_all(f, &f->set);
        ask_all(f, &f->delete);
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

struct sides {
    hf_client *client;
    struct floor floor, plain;
};

static void run_side(struct sides *sides, const char *side, int pairs)
{
    if (strcmp(side, "ours") == 0)
        run_ours(sides->client, pairs);
    else
        run_floor(strcmp(side, "plain") == 0 ? &sides->plain : &sides->floor, pairs);
}

static void measure(struct sides *sides, const char *side, int pairs)
{
    char figure[40];
    int64_t wall = bench_now_ns(), cpu = bench_cpu_ns();

    run_side(sides, side, pairs);
    cpu = bench_cpu_ns() - cpu;
    wall = bench_now_ns() - wall;
    snprintf(figure, sizeof figure, "redlock: %s", side);
    bench_print(figure, (double)wall / pairs / 1e3, "us");
    snprintf(figure, sizeof figure, "redlock: %s, client's processor", side);
    bench_print(figure, (double)cpu / pairs / 1e3, "us");
}

int main(int argc, char **argv)
{
    static const char *const all[] = {"ours", "floor", "plain"};
    BENCH_MUST(argc == 4, "usage: redlock HOST:PORT,... ROUNDS PAIRS");
    int rounds = (int)strtol(argv[2], NULL, 10), pairs = (int)strtol(argv[3], NULL, 10);
    struct sides sides = {0};
    char url[1000];
    hf_error err;

    snprintf(url, sizeof url, "redlock://%s?restart_guard=off", argv[1]);
    BENCH_MUST(hf_open(url, NULL, &sides.client, &err) == 0, "%s", err.text);
    run_ours(sides.client, 100);
    plain_open(&sides.plain, argv[1]);
    floor_open(&sides.floor, argv[1]);
    for (int i = 0; i < rounds; i++) {
        for (int k = 0; k < 3; k++)
            measure(&sides, all[(i + k) % 3], pairs);
    }
    hf_close(sides.client);
    return 0;
}
