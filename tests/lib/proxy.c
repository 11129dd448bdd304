/* See proxy.h. One thread, one poll() over all connections; a pipe tells it that the mode has
 * changed. */
#include "lib/proxy.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define LINKS_MAX 256
#define HELD_MAX  (1 << 18)

/* One direction of a connection: what was read and not yet written. */
struct way {
    char held[HELD_MAX];
    size_t len;
    int64_t due_ms; /* when it may be written */
};

struct link {
    int client, server;
    bool deaf;    /* what the server sends is lost */
    bool mute;    /* what the client sends is held back */
    bool gone;    /* the client has ended; what it sent may still be delivered */
    int64_t left; /* PROXY_CUT: bytes of the server until the end */
    struct way up, down;
};

struct proxy {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t taken;
    int listener, kick[2];
    struct sockaddr_in target;
    enum proxy_mode mode;
    int64_t number;
    unsigned wanted, in_force; /* counts of proxy_set */
    bool stop;
    size_t sent, answered, connections;
    struct link *links[LINKS_MAX];
};

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void set_up(int fd)
{
    int on = 1;

    fcntl(fd, F_SETFL, O_NONBLOCK);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static void drop(struct proxy *p, size_t i, bool reset)
{
    struct link *link = p->links[i];
    struct linger hard = {.l_onoff = 1};

    if (reset) {
        setsockopt(link->client, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
        setsockopt(link->server, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    }
    close(link->client);
    close(link->server);
    free(link);
    p->links[i] = NULL;
}

static void welcome(struct proxy *p)
{
    int client = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC);
    size_t i = 0;

    if (client < 0)
        return;
    while (i < LINKS_MAX && p->links[i] != NULL)
        i++;
    int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (p->mode == PROXY_REFUSE || p->mode == PROXY_RST || i == LINKS_MAX ||
        connect(server, (struct sockaddr *)&p->target, sizeof p->target) < 0) {
        close(client);
        close(server);
        return;
    }
    p->links[i] = calloc(1, sizeof(struct link));
    set_up(client);
    set_up(server);
    p->connections++;
    p->links[i]->client = client;
    p->links[i]->server = server;
    p->links[i]->left = p->number;
}

/* False: that side has ended. */
static bool fill(struct proxy *p, int from, struct way *way, bool up)
{
    ssize_t n = recv(from, way->held + way->len, sizeof way->held - way->len, 0);

    if (n <= 0)
        return n < 0 && errno == EAGAIN;
    *(up ? &p->sent : &p->answered) += (size_t)n;
    if (way->len == 0)
        way->due_ms = now_ms() + (p->mode == PROXY_DELAY ? p->number : 0);
    way->len += (size_t)n;
    return true;
}

static bool pour(struct proxy *p, int to, struct way *way, size_t most)
{
    while (way->len > 0 && most > 0 && now_ms() >= way->due_ms) {
        size_t size = p->mode == PROXY_SPLIT ? 1 : way->len;
        ssize_t n = send(to, way->held, size < most ? size : most, MSG_NOSIGNAL);
        if (n < 0)
            return errno == EAGAIN;
        memmove(way->held, way->held + n, way->len - (size_t)n);
        way->len -= (size_t)n;
        most -= (size_t)n;
    }
    return true;
}

/* False: the connection is over. */
static bool serve(struct proxy *p, struct link *link, short up_events, short down_events)
{
    bool lost_up = p->mode == PROXY_HOLE, lost_down = link->deaf || lost_up;
    size_t most = p->mode == PROXY_CUT ? (size_t)link->left : HELD_MAX;

    if (up_events != 0 && !fill(p, link->client, &link->up, true)) {
        link->gone = true;
        if (!link->mute)
            return false;
    }
    if (down_events != 0 && !fill(p, link->server, &link->down, false))
        return false;
    if (lost_up)
        link->up.len = 0;
    if (lost_down)
        link->down.len = 0;
    if (!link->mute && !pour(p, link->server, &link->up, HELD_MAX))
        return false;
    if (link->gone)
        return link->mute || link->up.len > 0;
    size_t before = link->down.len;
    if (!pour(p, link->client, &link->down, most))
        return false;
    link->left -= (int64_t)(before - link->down.len);
    return p->mode != PROXY_CUT || link->left > 0;
}

/* Mutex held. */
static void obey(struct proxy *p)
{
    if (p->in_force == p->wanted)
        return;
    for (size_t i = 0; i < LINKS_MAX; i++) {
        if (p->links[i] == NULL)
            continue;
        p->links[i]->deaf |= p->mode == PROXY_S2C_HOLE;
        p->links[i]->mute = p->mode == PROXY_C2S_HOLE;
        p->links[i]->left = p->number;
        if (p->mode == PROXY_RST || p->mode == PROXY_END)
            drop(p, i, p->mode == PROXY_RST);
    }
    p->in_force = p->wanted;
    pthread_cond_broadcast(&p->taken);
}

static size_t prepare(struct proxy *p, struct pollfd *fds)
{
    size_t count = 0;

    fds[count++] = (struct pollfd){.fd = p->kick[0], .events = POLLIN};
    fds[count++] = (struct pollfd){.fd = p->listener, .events = POLLIN};
    for (size_t i = 0; i < LINKS_MAX; i++) {
        const struct link *link = p->links[i];
        int client = link != NULL && !link->gone ? link->client : -1;
        fds[count++] = (struct pollfd){.fd = client, .events = POLLIN};
        fds[count++] = (struct pollfd){.fd = link != NULL ? link->server : -1, .events = POLLIN};
    }
    return count;
}

static void *run(void *arg)
{
    struct proxy *p = arg;
    struct pollfd fds[2 * LINKS_MAX + 2];
    char byte;

    for (;;) {
        pthread_mutex_lock(&p->mutex);
        size_t count = prepare(p, fds);
        bool slow = p->mode == PROXY_DELAY;
        pthread_mutex_unlock(&p->mutex);
        poll(fds, count, slow ? 1 : 100);
        pthread_mutex_lock(&p->mutex);
        if (fds[0].revents != 0 && read(p->kick[0], &byte, 1) < 0)
            abort();
        obey(p);
        for (size_t i = 0; i < LINKS_MAX; i++) {
            if (p->links[i] != NULL &&
                !serve(p, p->links[i], fds[2 * i + 2].revents, fds[2 * i + 3].revents))
                drop(p, i, p->mode == PROXY_RST);
        }
        if (fds[1].revents != 0)
            welcome(p);
        bool stop = p->stop;
        pthread_mutex_unlock(&p->mutex);
        if (stop)
            return NULL;
    }
}

struct proxy *proxy_start(const char *target)
{
    struct proxy *p = calloc(1, sizeof *p);
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const char *colon = strchr(target, ':');
    char host[INET_ADDRSTRLEN] = "";

    memcpy(host, target, (size_t)(colon - target) < sizeof host ? (size_t)(colon - target) : 0);
    p->target = (struct sockaddr_in){.sin_family = AF_INET,
                                     .sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10))};
    pthread_mutex_init(&p->mutex, NULL);
    pthread_cond_init(&p->taken, NULL);
    p->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int failed = (inet_pton(AF_INET, host, &p->target.sin_addr) != 1) |
                 bind(p->listener, (struct sockaddr *)&here, sizeof here) |
                 listen(p->listener, 64) | pipe2(p->kick, O_CLOEXEC) |
                 pthread_create(&p->thread, NULL, run, p);
    assert(failed == 0);
    (void)failed;
    return p;
}

int proxy_port(const struct proxy *p)
{
    struct sockaddr_in here;
    socklen_t size = sizeof here;

    getsockname(p->listener, (struct sockaddr *)&here, &size);
    return ntohs(here.sin_port);
}

static void kick(struct proxy *p)
{
    if (write(p->kick[1], "x", 1) < 0)
        abort();
}

void proxy_set(struct proxy *p, enum proxy_mode mode, int64_t number)
{
    pthread_mutex_lock(&p->mutex);
    p->mode = mode;
    p->number = number;
    unsigned mine = ++p->wanted;
    kick(p);
    while ((int)(p->in_force - mine) < 0)
        pthread_cond_wait(&p->taken, &p->mutex);
    pthread_mutex_unlock(&p->mutex);
}

static size_t read_count(struct proxy *p, const size_t *count)
{
    pthread_mutex_lock(&p->mutex);
    size_t value = *count;
    pthread_mutex_unlock(&p->mutex);
    return value;
}

size_t proxy_sent(struct proxy *p)
{
    return read_count(p, &p->sent);
}

size_t proxy_answered(struct proxy *p)
{
    return read_count(p, &p->answered);
}

size_t proxy_connections(struct proxy *p)
{
    return read_count(p, &p->connections);
}

void proxy_stop(struct proxy *p)
{
    pthread_mutex_lock(&p->mutex);
    p->stop = true;
    kick(p);
    pthread_mutex_unlock(&p->mutex);
    pthread_join(p->thread, NULL);
    for (size_t i = 0; i < LINKS_MAX; i++) {
        if (p->links[i] != NULL)
            drop(p, i, false);
    }
    close(p->listener);
    close(p->kick[0]);
    close(p->kick[1]);
    free(p);
}
