/* The server under load: STREAMS clients that listen to all changes, and pairs (acquire a lease, release it) at a given
 * RATE for some SECONDS, all on loopback and in one process beside the server.
 *
 *     bench_serve HOLDFAST-SERVE URL STREAMS RATE SECONDS
 *
 * It tells how long a pair takes, how many were made of those that were due, what processor time and memory the server
 * needs for them, and how long it takes until all streams have been told of one change. They listen to other locks than those of the pairs. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define PAIRS_AT_ONCE 32
#define ANSWER_MAX    4096
#define SAMPLES_MAX   1000000

struct pair {
    int fd;
    int lock; /* the number in its name */
    int step; /* 0: idle, 1: acquire, 2: release */
    int64_t due_ns;
    size_t len;
    char answer[ANSWER_MAX];
};

static struct {
    pid_t pid;
    struct sockaddr_in address;
} server;

static struct {
    int64_t *ns;
    size_t count;
} samples;

static void start_server(const char *program, const char *url, const char *connections)
{
    int out[2];
    char line[128] = "";

    BENCH_MUST(pipe(out) == 0, "pipe: %s", strerror(errno));
    server.pid = fork();
    if (server.pid == 0) {
        dup2(out[1], STDOUT_FILENO);
        execl(program, program, "-u", url, "-l", "127.0.0.1:0", "--max-connections", connections,
              (char *)NULL);
        _exit(127);
    }
    FILE *file = fdopen(out[0], "r");
    const char *said = fgets(line, sizeof line, file);
    const char *colon = said != NULL ? strrchr(line, ':') : NULL;
    BENCH_MUST(colon != NULL, "%s does not listen", program);
    server.address = (struct sockaddr_in){.sin_family = AF_INET,
                                          .sin_port = htons((uint16_t)strtol(colon + 1, NULL, 10)),
                                          .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static int dial(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;

    BENCH_MUST(fd >= 0, "socket: %s", strerror(errno));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    BENCH_MUST(connect(fd, (struct sockaddr *)&server.address, sizeof server.address) == 0,
               "connect: %s", strerror(errno));
    return fd;
}

static void send_text(int fd, const char *text, size_t len)
{
    BENCH_MUST(write(fd, text, len) == (ssize_t)len, "write: %s", strerror(errno));
}

/* KiB of resident memory, and the processor time in nanoseconds. */
static void read_usage(int64_t *ret_kib, int64_t *ret_cpu_ns)
{
    char path[64], text[512];
    unsigned long user, system;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)server.pid);
    FILE *file = fopen(path, "r");
    long pages;
    BENCH_MUST(file != NULL && fgets(text, sizeof text, file) != NULL, "%s", path);
    fclose(file);
    int got = sscanf(strrchr(text, ')') + 2,
                     "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %*d %*d %*d %*d %*d "
                     "%*d %*u %*u %ld",
                     &user, &system, &pages);
    BENCH_MUST(got == 3, "%s is not understood", path);
    *ret_cpu_ns = (int64_t)(user + system) * (1000000000 / sysconf(_SC_CLK_TCK));
    *ret_kib = pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* Streams ------------------------------------------------------------------- */

/* Reads until every stream has had one more event. */
static void await_event(int epoll_fd, char *told, size_t streams)
{
    struct epoll_event events[256];
    char buf[65536];

    memset(told, 0, streams);
    for (size_t left = streams; left > 0;) {
        int count = epoll_wait(epoll_fd, events, 256, 60000);
        BENCH_MUST(count > 0, "%zu of %zu streams were told nothing", left, streams);
        for (int i = 0; i < count; i++) {
            int fd = (int)(events[i].data.u64 >> 32);
            size_t number = events[i].data.u64 & 0xffffffff;
            ssize_t got = read(fd, buf, sizeof buf);
            BENCH_MUST(got > 0, "a stream was cut");
            if (!told[number] && memmem(buf, (size_t)got, "event: locks", 12) != NULL) {
                told[number] = 1;
                left--;
            }
        }
    }
}

static int open_streams(size_t streams, char *told)
{
    static const char request[] = "GET /v1/stores/main/events?prefix=told HTTP/1.1\r\nHost: "
                                  "localhost\r\nAccept: text/event-stream\r\n\r\n";
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC);

    for (size_t i = 0; i < streams; i++) {
        int fd = dial();
        struct epoll_event event = {.events = EPOLLIN, .data.u64 = (uint64_t)fd << 32 | i};
        send_text(fd, request, sizeof request - 1);
        BENCH_MUST(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0, "epoll");
    }
    await_event(epoll_fd, told, streams);
    return epoll_fd;
}

/* Pairs --------------------------------------------------------------------- */

static void ask(struct pair *pair, const char *what, const char *body)
{
    char text[512];
    int len = snprintf(text, sizeof text,
                       "POST /v1/stores/main/locks/%s%%2F%d/%s HTTP/1.1\r\nHost: localhost\r\n"
                       "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                       pair->lock < PAIRS_AT_ONCE ? "pair" : "told", pair->lock, what, strlen(body),
                       body);

    pair->len = 0;
    send_text(pair->fd, text, (size_t)len);
}

/* Whether the answer is complete. */
static int has_answer(struct pair *pair)
{
    ssize_t got = read(pair->fd, pair->answer + pair->len, ANSWER_MAX - 1 - pair->len);

    BENCH_MUST(got > 0, "a pair was cut");
    pair->len += (size_t)got;
    pair->answer[pair->len] = '\0';
    const char *body = strstr(pair->answer, "\r\n\r\n");
    const char *length = strcasestr(pair->answer, "content-length:");
    if (body == NULL || length == NULL)
        return 0;
    size_t head = (size_t)(body + 4 - pair->answer);
    return pair->len >= head + strtoul(length + 15, NULL, 10);
}

static void go_on(struct pair *pair)
{
    char body[128];

    if (!has_answer(pair))
        return;
    BENCH_MUST(strncmp(pair->answer, "HTTP/1.1 200", 12) == 0, "answered: %s", pair->answer);
    if (pair->step == 1) {
        const char *ticket = strstr(pair->answer, "\"ticket\":\"");
        BENCH_MUST(ticket != NULL, "answered: %s", pair->answer);
        snprintf(body, sizeof body, "{\"ticket\":\"%.32s\"}", ticket + 10);
        pair->step = 2;
        ask(pair, "release", body);
        return;
    }
    pair->step = 0;
    if (samples.count < SAMPLES_MAX)
        samples.ns[samples.count++] = bench_now_ns() - pair->due_ns;
}

/* What is due and finds nobody idle is made later, and its wait counts. Gives how many were begun. */
static int64_t run_pairs(struct pair *pairs, double rate, double seconds, int streams_fd)
{
    struct epoll_event events[64];
    char buf[65536];
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    int64_t begin_ns = bench_now_ns(), end_ns = begin_ns + (int64_t)(seconds * 1e9), made = 0;

    for (int i = 0; i < PAIRS_AT_ONCE; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &pairs[i]};
        pairs[i] = (struct pair){.fd = dial(), .lock = i};
        epoll_ctl(epoll_fd, EPOLL_CTL_ADD, pairs[i].fd, &event);
    }
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, streams_fd, &event);
    for (int64_t now_ns = begin_ns; now_ns < end_ns; now_ns = bench_now_ns()) {
        int64_t due = (int64_t)((double)(now_ns - begin_ns) * rate / 1e9);
        for (int i = 0; i < PAIRS_AT_ONCE && made < due; i++) {
            if (pairs[i].step != 0)
                continue;
            pairs[i].due_ns = begin_ns + (int64_t)((double)made++ * 1e9 / rate);
            pairs[i].step = 1;
            ask(&pairs[i], "acquire", "{\"lives\":\"lease\",\"ttl_ms\":60000}");
        }
        int count = epoll_wait(epoll_fd, events, 64, 1);
        for (int i = 0; i < count; i++) {
            if (events[i].data.ptr != NULL) {
                go_on(events[i].data.ptr);
                continue;
            }
            struct epoll_event told[64]; /* the streams are read, and not looked at */
            int many = epoll_wait(streams_fd, told, 64, 0);
            for (int k = 0; k < many; k++) {
                ssize_t got = read((int)(told[k].data.u64 >> 32), buf, sizeof buf);
                BENCH_MUST(got > 0, "a stream was cut");
            }
        }
    }
    for (int i = 0; i < PAIRS_AT_ONCE; i++)
        close(pairs[i].fd);
    return made;
}

static void print_pairs(double seconds, int64_t cpu_ns)
{
    BENCH_MUST(samples.count > 0, "no pair came to its end");
    qsort(samples.ns, samples.count, sizeof *samples.ns, bench_compare);
    bench_print("pairs a second", (double)samples.count / seconds, "1/s");
    bench_print("a pair, median", (double)samples.ns[samples.count / 2] / 1e6, "ms");
    bench_print("a pair, 99 of 100", (double)samples.ns[samples.count * 99 / 100] / 1e6, "ms");
    bench_print("processors for pairs", (double)cpu_ns / 1e9 / seconds, "cpu");
}

int main(int argc, char **argv)
{
    static struct pair pairs[PAIRS_AT_ONCE];
    char url[512], connections[16];
    int64_t kib, idle_kib, cpu_ns, before_ns;

    BENCH_MUST(argc == 6, "usage: bench_serve HOLDFAST-SERVE URL STREAMS RATE SECONDS");
    size_t streams = strtoul(argv[3], NULL, 10);
    double rate = strtod(argv[4], NULL), seconds = strtod(argv[5], NULL);
    struct rlimit limit = {streams + 512, streams + 512};
    BENCH_MUST(setrlimit(RLIMIT_NOFILE, &limit) == 0, "%zu descriptors are not to be had",
               streams + 512);
    signal(SIGPIPE, SIG_IGN);
    samples.ns = calloc(SAMPLES_MAX, sizeof *samples.ns);
    char *told = calloc(streams + 1, 1);
    BENCH_MUST(samples.ns != NULL && told != NULL, "out of memory");
    snprintf(url, sizeof url, "main=%s", argv[2]);
    snprintf(connections, sizeof connections, "%zu", streams + 128);
    start_server(argv[1], url, connections);

    read_usage(&idle_kib, &cpu_ns);
    int64_t begin_ns = bench_now_ns();
    int streams_fd = open_streams(streams, told);
    bench_print("streams opened in", (double)(bench_now_ns() - begin_ns) / 1e9, "s");
    read_usage(&kib, &before_ns);
    bench_print("memory before", (double)idle_kib / 1024, "MiB");
    bench_print("memory with the streams", (double)kib / 1024, "MiB");
    sleep(3);
    read_usage(&kib, &cpu_ns);
    bench_print("processors when nothing happens", (double)(cpu_ns - before_ns) / 3e9, "cpu");

    pairs[0] = (struct pair){.fd = dial(), .lock = 1000, .step = 1};
    begin_ns = bench_now_ns();
    ask(&pairs[0], "acquire", "{\"lives\":\"lease\",\"ttl_ms\":600000}");
    if (streams > 0) {
        await_event(streams_fd, told, streams);
        bench_print("all streams told of a change in", (double)(bench_now_ns() - begin_ns) / 1e6,
                    "ms");
    }
    close(pairs[0].fd);

    if (rate > 0) {
        read_usage(&kib, &before_ns);
        run_pairs(pairs, rate, seconds, streams_fd);
        read_usage(&kib, &cpu_ns);
        print_pairs(seconds, cpu_ns - before_ns);
        bench_print("memory after", (double)kib / 1024, "MiB");
    }
    kill(server.pid, SIGTERM);
    waitpid(server.pid, NULL, 0);
    return 0;
}
