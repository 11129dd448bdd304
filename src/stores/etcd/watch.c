/* Wake-ups: one streaming request to /v3/watch per client, however many of its bids wait.
 *
 * Each bid watches one key, the last place before its own, for its deletion. The gateway speaks
 * HTTP/1.1, where a server that has begun to answer takes no more of the request: so a new watch
 * means a new request that carries them all, each from the revision it was asked for, and nothing
 * is missed in between. Watches that are over stay in the running request until then. Several that
 * come at once share one new request.
 *
 * There is no thread: the descriptor is an epoll set of curl's sockets, a bell for new watches and
 * a timer, and everything happens in wake(), on the keeper's thread. A deletion is a hint: the bid
 * asks, and the transaction that asks is the one that grants. A stream that ends is opened again,
 * on the next server, from the same revisions; if these were compacted meanwhile, the bid is told
 * to ask. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "stores/etcd/etcd.h"

#include "util/banned.h"

#define MESSAGE_MAX (1 << 20)

/* Between two requests, for each watch of the first: many that come one by one share a few. */
#define PAUSE_NS (HF__NS_PER_MS / 5)

static struct hf__etcd_watch **find(struct hf__etcd *e, const struct hf__ticket *ticket)
{
    struct hf__etcd_watch **at = &e->stream.first;

    while (*at != NULL && !hf__ticket_equal(&(*at)->ticket, ticket))
        at = &(*at)->next;
    return at;
}

void hf__etcd_watch(struct hf__etcd *e, const struct hf__ticket *ticket,
                    const struct hf__etcd_key *key, uint64_t from)
{
    struct hf__etcd_stream *s = &e->stream;
    bool is_new = false;

    pthread_mutex_lock(&e->mutex);
    if (s->bell_fd >= 0) {
        struct hf__etcd_watch **at = find(e, ticket);
        bool same = *at != NULL && !(*at)->told && (*at)->key.len == key->len &&
                    memcmp((*at)->key.bytes, key->bytes, key->len) == 0;
        if (*at == NULL)
            *at = calloc(1, sizeof **at);
        if (*at != NULL && !same) {
            (*at)->ticket = *ticket;
            (*at)->key = *key;
            (*at)->from = from;
            (*at)->told = false;
            s->changed = is_new = true;
        }
    }
    pthread_mutex_unlock(&e->mutex);
    if (is_new)
        eventfd_write(s->bell_fd, 1);
}

bool hf__etcd_was_told(struct hf__etcd *e, const struct hf__ticket *ticket)
{
    pthread_mutex_lock(&e->mutex);
    const struct hf__etcd_watch *w = *find(e, ticket);
    bool told = w != NULL && w->told;
    pthread_mutex_unlock(&e->mutex);
    return told;
}

void hf__etcd_unwatch(struct hf__etcd *e, const struct hf__ticket *ticket)
{
    pthread_mutex_lock(&e->mutex);
    struct hf__etcd_watch **at = find(e, ticket), *gone = *at;
    if (gone != NULL)
        *at = gone->next;
    pthread_mutex_unlock(&e->mutex);
    free(gone);
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

static void set_timer(int fd, long ms)
{
    struct itimerspec when = {0};

    if (ms == 0)
        when.it_value.tv_nsec = 1;
    if (ms > 0)
        when.it_value = (struct timespec){ms / 1000, ms % 1000 * 1000000};
    timerfd_settime(fd, 0, &when, NULL);
}

static int on_timer(CURLM *multi, long ms, void *ctx)
{
    (void)multi;
    set_timer(((struct hf__etcd_stream *)ctx)->timer_fd, ms);
    return 0;
}

/* What the server says. ------------------------------------------------------------------------ */
static void tell_key(struct hf__etcd *e, const struct hf__etcd_key *key, uint64_t revision)
{
    for (;;) {
        struct hf__ticket ticket;
        pthread_mutex_lock(&e->mutex);
        struct hf__etcd_watch *w = e->stream.first;
        while (w != NULL && (w->told || w->from > revision || w->key.len != key->len ||
                             memcmp(w->key.bytes, key->bytes, key->len) != 0))
            w = w->next;
        if (w != NULL) {
            w->told = true;
            ticket = w->ticket;
        }
        pthread_mutex_unlock(&e->mutex);
        if (w == NULL)
            return;
        e->stream.sink(e->stream.sink_ctx, &ticket, 0);
    }
}

/* A watch that the server ended: everybody asks, which is rare and always right. */
static void tell_all(struct hf__etcd *e)
{
    pthread_mutex_lock(&e->mutex);
    for (struct hf__etcd_watch *w = e->stream.first; w != NULL; w = w->next)
        w->told = true;
    pthread_mutex_unlock(&e->mutex);
    e->stream.sink(e->stream.sink_ctx, NULL, 0);
}

static void read_message(struct hf__etcd *e, const json_t *message)
{
    const json_t *result = json_object_get(message, "result"), *event;
    struct hf__etcd_key *key = malloc(sizeof *key);
    size_t i;

    if (json_is_true(json_object_get(result, "canceled")))
        tell_all(e);
    else if (result != NULL)
        e->stream.failures = 0;
    json_array_foreach(json_object_get(result, "events"), i, event)
    {
        const json_t *kv = json_object_get(event, "kv");
        const char *type = json_string_value(json_object_get(event, "type"));
        if (key != NULL && type != NULL && strcmp(type, "DELETE") == 0 &&
            hf__etcd_unb64(json_object_get(kv, "key"), key))
            tell_key(e, key, (uint64_t)hf__etcd_int(kv, "mod_revision"));
    }
    free(key);
}

static size_t on_bytes(char *from, size_t size, size_t count, void *ctx)
{
    struct hf__etcd *e = ctx;
    struct hf__etcd_stream *s = &e->stream;
    size_t len = size * count;

    if (s->text_len + len > MESSAGE_MAX)
        return 0;
    if (s->text_len + len + 1 > s->text_size) {
        char *text = realloc(s->text, s->text_len + len + 1);
        if (text == NULL)
            return 0;
        s->text = text;
        s->text_size = s->text_len + len + 1;
    }
    memcpy(s->text + s->text_len, from, len);
    s->text_len += len;
    for (;;) { /* a message a line */
        char *end = memchr(s->text, '\n', s->text_len);
        if (end == NULL)
            break;
        size_t line = (size_t)(end - s->text) + 1;
        json_t *message = json_loadb(s->text, line, 0, NULL);
        if (message != NULL)
            read_message(e, message);
        json_decref(message);
        memmove(s->text, s->text + line, s->text_len - line);
        s->text_len -= line;
    }
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
    free(s->body);
    s->curl = NULL;
    s->headers = NULL;
    s->body = NULL;
    s->text_len = 0;
}

static char *write_body(struct hf__etcd *e)
{
    char *body = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&body, &len);

    if (out == NULL)
        return NULL;
    pthread_mutex_lock(&e->mutex);
    e->stream.changed = false;
    e->stream.carried = 0;
    for (const struct hf__etcd_watch *w = e->stream.first; w != NULL; w = w->next) {
        if (w->told)
            continue;
        e->stream.carried++;
        json_t *create =
            json_pack("{s:{s:o, s:o, s:[s]}}", "create_request", "key", hf__etcd_key_json(&w->key),
                      "start_revision", hf__etcd_int_json((int64_t)w->from), "filters", "NOPUT");
        if (create != NULL)
            json_dumpf(create, out, JSON_COMPACT);
        json_decref(create);
        fputc('\n', out);
    }
    pthread_mutex_unlock(&e->mutex);
    if (fclose(out) != 0 || len == 0) {
        free(body);
        return NULL;
    }
    return body;
}

static void dial(struct hf__etcd *e)
{
    struct hf__etcd_stream *s = &e->stream;

    hang_up(s);
    s->retry_ns = INT64_MAX;
    s->dialed_ns = hf__now_ns(e->base.host->env);
    s->body = write_body(e);
    if (s->body == NULL)
        return; /* nobody waits */
    s->curl = curl_easy_init();
    s->headers = hf__etcd_headers(e);
    if (s->curl == NULL || s->headers == NULL ||
        hf__etcd_prepare(e, s->curl, s->endpoint, "watch") < 0) {
        hang_up(s);
        return; /* they ask again by themselves */
    }
    curl_easy_setopt(s->curl, CURLOPT_HTTPHEADER, s->headers);
    curl_easy_setopt(s->curl, CURLOPT_POSTFIELDS, s->body);
    curl_easy_setopt(s->curl, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_easy_setopt(s->curl, CURLOPT_WRITEDATA, e);
    curl_easy_setopt(s->curl, CURLOPT_CONNECTTIMEOUT_MS, (long)e->base.host->op_timeout_ms);
    curl_multi_add_handle(s->multi, s->curl);
}

/* It ended, which it never does by itself: another server, after a pause that grows. */
static void note_end(struct hf__etcd *e)
{
    struct hf__etcd_stream *s = &e->stream;
    long pause_ms = s->failures >= 6 ? 2000 : 25L << s->failures;

    hang_up(s);
    s->failures++;
    s->endpoint = (s->endpoint + 1) % e->set.endpoint_count;
    s->retry_ns = hf__now_ns(e->base.host->env) + pause_ms * HF__NS_PER_MS;
    set_timer(s->pause_fd, pause_ms);
}

void hf__etcd_wake(struct hf__store *store, hf__wake_sink *sink, void *ctx)
{
    struct hf__etcd *e = (struct hf__etcd *)store;
    struct hf__etcd_stream *s = &e->stream;
    struct epoll_event events[8];
    int running = 0, left;
    CURLMsg *message;
    bool ended = false, redial = false;

    s->sink = sink;
    s->sink_ctx = ctx;
    int n = epoll_wait(s->epoll_fd, events, 8, 0);
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
    if (ended)
        note_end(e);
    pthread_mutex_lock(&e->mutex);
    redial = s->changed;
    pthread_mutex_unlock(&e->mutex);
    if (redial && s->retry_ns == INT64_MAX)
        s->retry_ns = s->dialed_ns + (int64_t)s->carried * PAUSE_NS;
    int64_t left_ns = s->retry_ns == INT64_MAX ? -1 : s->retry_ns - hf__now_ns(e->base.host->env);
    if (s->retry_ns != INT64_MAX && left_ns <= 0)
        dial(e);
    else if (redial)
        set_timer(s->pause_fd, (long)(left_ns / HF__NS_PER_MS) + 1);
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
    struct epoll_event bell = {.events = EPOLLIN, .data.fd = bell_fd};
    struct epoll_event timer = {.events = EPOLLIN, .data.fd = s->timer_fd};
    epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, bell_fd, &bell);
    struct epoll_event pause = {.events = EPOLLIN, .data.fd = s->pause_fd};
    epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, s->timer_fd, &timer);
    epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, s->pause_fd, &pause);
    curl_multi_setopt(s->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(s->multi, CURLMOPT_SOCKETDATA, s);
    curl_multi_setopt(s->multi, CURLMOPT_TIMERFUNCTION, on_timer);
    curl_multi_setopt(s->multi, CURLMOPT_TIMERDATA, s);
    pthread_mutex_lock(&e->mutex);
    s->endpoint = e->endpoint;
    s->bell_fd = bell_fd;
    pthread_mutex_unlock(&e->mutex);
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
    while (s->first != NULL) {
        struct hf__etcd_watch *next = s->first->next;
        free(s->first);
        s->first = next;
    }
    free(s->text);
    s->text = NULL;
}
