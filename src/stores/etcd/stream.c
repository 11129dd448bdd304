/* Wake-ups: one request to /v3/watch per client, however many of its bids wait.
 *
 * The request and its answer both go on for as long as anybody waits: what is to be watched is
 * written into the running request, and what happens is read from the answer. On HTTP/1.1 the
 * servers (Go's net/http) read no more of a request once they have begun to answer it, and drop
 * what they have not read by then, unless the client has said that it will close the connection
 * afterwards. Hence "Connection: close", without which watches are lost in silence. Should anything
 * on the way still lose one, it is not confirmed, and the request is made anew.
 *
 *      nothing --a new watch--> under way --more watches--> under way
 *                   ^               | ended, not confirmed in time, doubted
 *                   `--- a pause <--'
 *
 * There is no thread: the descriptor is an epoll set of curl's sockets, a bell for new watches and
 * timers, and everything happens in wake(). A request that ended is made again, to the next server,
 * from the same revisions. */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "stores/etcd/etcd.h"
#include "util/patience.h"

#include "util/banned.h"

#define MESSAGE_MAX  (1 << 20)
#define LAZY         4096 /* bytes of messages that need not be sent soon */
#define CONFIRM_MS   2000
#define PAUSE_MAX_MS 2000
#define NS_PER_S     (1000 * HF__NS_PER_MS)

static void take_away(struct hf__etcd_bytes *b, size_t len)
{
    memmove(b->at, b->at + len, b->len - len);
    b->len -= len;
}

/* What curl wants. ----------------------------------------------------------------------------- */
static int on_socket(CURL *curl, curl_socket_t fd, int what, void *ctx, void *known)
{
    struct hf__etcd_stream *s = ctx;
    struct epoll_event event = {.data.fd = fd};

    (void)curl, (void)known;
    if (what == CURL_POLL_REMOVE) {
        epoll_ctl(s->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
        return 0;
    }
    event.events = (what & CURL_POLL_IN ? EPOLLIN : 0u) | (what & CURL_POLL_OUT ? EPOLLOUT : 0u);
    if (epoll_ctl(s->epoll_fd, EPOLL_CTL_MOD, fd, &event) < 0 && errno == ENOENT)
        epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &event);
    return 0;
}

/* Negative: never. */
static void set_timer(int fd, int64_t ns)
{
    struct itimerspec when = {0};

    if (ns >= 0)
        when.it_value = (struct timespec){ns / NS_PER_S, ns % NS_PER_S + (ns == 0)};
    timerfd_settime(fd, 0, &when, NULL);
}

static int on_timer(CURLM *multi, long ms, void *ctx)
{
    (void)multi;
    set_timer(((struct hf__etcd_stream *)ctx)->timer_fd, ms * HF__NS_PER_MS);
    return 0;
}

static size_t on_room(char *into, size_t size, size_t count, void *ctx)
{
    struct hf__etcd *e = ctx;
    struct hf__etcd_stream *s = &e->stream;

    pthread_mutex_lock(&e->mutex);
    size_t len = s->out.len < size * count ? s->out.len : size * count;
    if (len > 0) {
        memcpy(into, s->out.at, len);
        take_away(&s->out, len);
    }
    s->urgent &= s->out.len > 0;
    pthread_mutex_unlock(&e->mutex);
    s->rests = len == 0;
    return s->rests ? CURL_READFUNC_PAUSE : len;
}

static size_t on_bytes(char *from, size_t size, size_t count, void *ctx)
{
    struct hf__etcd *e = ctx;
    struct hf__etcd_stream *s = &e->stream;
    size_t len = size * count, done = 0;
    char *end;

    if (s->in.len + len > MESSAGE_MAX || !hf__etcd_bytes_add(&s->in, from, len))
        return 0;
    while ((end = memchr(s->in.at + done, '\n', s->in.len - done)) != NULL) { /* a message a line */
        size_t line = (size_t)(end - s->in.at) + 1 - done;
        if (hf__etcd_watches_hear(e, s->in.at + done, line))
            s->failures = 0;
        done += line;
    }
    take_away(&s->in, done);
    return len;
}

/* The request. --------------------------------------------------------------------------------- */
static void hang_up(struct hf__etcd_stream *s)
{
    if (s->curl != NULL) {
        curl_multi_remove_handle(s->multi, s->curl);
        curl_easy_cleanup(s->curl);
    }
    curl_slist_free_all(s->headers);
    s->curl = NULL;
    s->headers = NULL;
    s->in.len = 0;
    s->rests = false;
    s->confirm_ns = INT64_MAX;
}

static struct curl_slist *headers(struct hf__etcd *e)
{
    static const char *const more[] = {"Connection: close", "Transfer-Encoding: chunked"};
    struct curl_slist *list = hf__etcd_headers(e);

    for (size_t i = 0; list != NULL && i < 2; i++) {
        struct curl_slist *longer = curl_slist_append(list, more[i]);
        if (longer == NULL)
            curl_slist_free_all(list);
        list = longer;
    }
    return list;
}

static void dial(struct hf__etcd *e)
{
    struct hf__etcd_stream *s = &e->stream;

    hang_up(s);
    s->retry_ns = INT64_MAX;
    hf__etcd_watches_renew(e);
    s->curl = hf__etcd_new_curl(e);
    s->headers = headers(e);
    if (s->curl == NULL || s->headers == NULL ||
        hf__etcd_aim(e, s->curl, s->endpoint, "watch") < 0) {
        hang_up(s);
        return; /* the next watch tries again, and who waits asks by itself */
    }
    curl_easy_setopt(s->curl, CURLOPT_HTTPHEADER, s->headers);
    curl_easy_setopt(s->curl, CURLOPT_POST, 1L);
    curl_easy_setopt(s->curl, CURLOPT_READFUNCTION, on_room);
    curl_easy_setopt(s->curl, CURLOPT_READDATA, e);
    curl_easy_setopt(s->curl, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_easy_setopt(s->curl, CURLOPT_WRITEDATA, e);
    curl_easy_setopt(s->curl, CURLOPT_CONNECTTIMEOUT_MS, (long)e->base.host->op_timeout_ms);
    curl_multi_add_handle(s->multi, s->curl);
}

/* It ended, which it never does by itself: another server, after a pause that grows. */
static void note_end(struct hf__etcd *e, int64_t now_ns)
{
    struct hf__etcd_stream *s = &e->stream;

    hang_up(s);
    s->endpoint = (s->endpoint + 1) % e->set.endpoint_count;
    s->retry_ns = now_ns + hf__backoff_ns(e->base.host->env, s->failures++, PAUSE_MAX_MS);
}

/* Waking. -------------------------------------------------------------------------------------- */

/* Takes what has come. True: the request is over. */
static bool take_events(struct hf__etcd_stream *s)
{
    struct epoll_event events[8];
    int running = 0, left, n = epoll_wait(s->epoll_fd, events, 8, 0);
    CURLMsg *message;
    bool ended = false;

    for (int i = 0; i < n; i++) {
        uint64_t count;
        int fd = events[i].data.fd;
        if (fd == s->bell_fd || fd == s->timer_fd || fd == s->pause_fd) {
            ssize_t got = read(fd, &count, sizeof count);
            (void)got;
            if (fd == s->timer_fd)
                curl_multi_socket_action(s->multi, CURL_SOCKET_TIMEOUT, 0, &running);
            continue;
        }
        int what = (events[i].events & (EPOLLIN | EPOLLHUP) ? CURL_CSELECT_IN : 0) |
                   (events[i].events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
                   (events[i].events & EPOLLERR ? CURL_CSELECT_ERR : 0);
        curl_multi_socket_action(s->multi, fd, what, &running);
    }
    while ((message = curl_multi_info_read(s->multi, &left)) != NULL)
        ended |= message->msg == CURLMSG_DONE && message->easy_handle == s->curl;
    return ended;
}

/* What the bids want of the request. */
struct wish {
    bool anew, send;
    size_t open; /* watches that are not confirmed */
};

static struct wish read_wish(struct hf__etcd *e)
{
    struct hf__etcd_stream *s = &e->stream;

    pthread_mutex_lock(&e->mutex);
    struct wish wish = {.anew = s->doubted,
                        .send = s->urgent || s->out.len >= LAZY,
                        .open = s->asked - s->confirmed};
    s->doubted = false;
    pthread_mutex_unlock(&e->mutex);
    return wish;
}

/* True: the server has been silent for too long. Each confirmation starts the time anew. */
static bool is_overdue(struct hf__etcd_stream *s, size_t open, int64_t now_ns)
{
    if (s->curl == NULL || open == 0)
        s->confirm_ns = INT64_MAX;
    else if (s->confirm_ns == INT64_MAX || open < s->open)
        s->confirm_ns = now_ns + CONFIRM_MS * HF__NS_PER_MS;
    s->open = open;
    return now_ns >= s->confirm_ns;
}

static void send_more(struct hf__etcd_stream *s)
{
    int running;

    curl_easy_pause(s->curl, CURLPAUSE_CONT);
    curl_multi_socket_action(s->multi, CURL_SOCKET_TIMEOUT, 0, &running);
}

void hf__etcd_wake(struct hf__store *store, hf__wake_sink *sink, void *ctx)
{
    struct hf__etcd *e = (struct hf__etcd *)store;
    struct hf__etcd_stream *s = &e->stream;

    s->sink = sink;
    s->sink_ctx = ctx;
    bool ended = take_events(s);
    struct wish wish = read_wish(e);
    int64_t now_ns = hf__now_ns(e->base.host->env);
    if (is_overdue(s, wish.open, now_ns) || ended || (wish.anew && s->curl != NULL))
        note_end(e, now_ns);
    if (s->retry_ns <= now_ns || (s->retry_ns == INT64_MAX && s->curl == NULL && wish.send))
        dial(e);
    else if (wish.send && s->rests)
        send_more(s);
    int64_t next_ns = s->retry_ns < s->confirm_ns ? s->retry_ns : s->confirm_ns;
    set_timer(s->pause_fd, next_ns == INT64_MAX ? -1 : next_ns > now_ns ? next_ns - now_ns : 0);
}

int hf__etcd_wake_fd(struct hf__store *store)
{
    struct hf__etcd *e = (struct hf__etcd *)store;
    struct hf__etcd_stream *s = &e->stream;
    int bell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    s->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    s->pause_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    s->multi = curl_multi_init();
    if (bell_fd < 0 || s->epoll_fd < 0 || s->timer_fd < 0 || s->pause_fd < 0 || s->multi == NULL) {
        if (bell_fd >= 0)
            close(bell_fd);
        return -1;
    }
    int fds[] = {bell_fd, s->timer_fd, s->pause_fd};
    for (size_t i = 0; i < 3; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.fd = fds[i]};
        epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fds[i], &event);
    }
    curl_multi_setopt(s->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(s->multi, CURLMOPT_SOCKETDATA, s);
    curl_multi_setopt(s->multi, CURLMOPT_TIMERFUNCTION, on_timer);
    curl_multi_setopt(s->multi, CURLMOPT_TIMERDATA, s);
    pthread_mutex_lock(&e->mutex);
    s->endpoint = e->endpoint;
    s->bell_fd = bell_fd;
    s->urgent = true; /* to watch for broken locks */
    pthread_mutex_unlock(&e->mutex);
    eventfd_write(bell_fd, 1);
    return s->epoll_fd;
}

void hf__etcd_stream_clear(struct hf__etcd *e)
{
    struct hf__etcd_stream *s = &e->stream;
    int *fds[] = {&s->bell_fd, &s->timer_fd, &s->pause_fd, &s->epoll_fd};

    hang_up(s);
    if (s->multi != NULL)
        curl_multi_cleanup(s->multi);
    for (size_t i = 0; i < 4; i++) {
        if (*fds[i] >= 0)
            close(*fds[i]);
        *fds[i] = -1;
    }
    hf__etcd_watches_clear(e);
    free(s->in.at);
    free(s->out.at);
    s->in = s->out = (struct hf__etcd_bytes){0};
}
