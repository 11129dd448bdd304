/* Wake-ups: one connection per client, subscribed to a channel whose name nobody can guess.
 *
 *      message <our channel> "<ticket> <generation>"       a script let this ticket in; 0: ask
 *      message __redis__:invalidate [key]                  a key that a stranger held has changed
 *
 * The keeper reads from it without blocking. It never dials: if the connection is lost everybody is
 * told to ask, and whoever asks dials again, on its own time. Since the channel's name stays the
 * same, what is noted on the server stays right. What the keeper polls is an epoll descriptor,
 * which stays while the connection in it changes.
 *
 * Who owns what: `conn` is put in by a thread that dials, while it is NULL, and from then on
 * belongs to the keeper, which alone takes it out. The mutex is for the fields, not for reading. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "stores/redis/redis.h"

#include "util/banned.h"

#define WAKE_WORD  "holdfast.wake:"
#define INVALIDATE "__redis__:invalidate"

int hf__redis_listener_init(struct hf__redis *s, hf_error *err)
{
    struct hf__redis_listener *l = &s->listener;
    const struct hf_env *env = s->base.host->env;
    struct hf__ticket bits;

    pthread_mutex_init(&l->mutex, NULL);
    l->epoll_fd = l->kick_fd = -1;
    if (env->random(env->ctx, &bits, sizeof bits) != 0)
        return hf__fail(err, HF_SYSTEM, "there is no randomness to be had");
    hf__ticket_format(&bits, l->channel);
    return 0;
}

void hf__redis_listener_clear(struct hf__redis *s)
{
    struct hf__redis_listener *l = &s->listener;

    hf__redis_hang_up(l->conn);
    hf__redis_hang_up(s->sentinels.scout);
    if (l->epoll_fd >= 0)
        close(l->epoll_fd);
    if (l->kick_fd >= 0)
        close(l->kick_fd);
    while (l->watches != NULL) {
        struct hf__redis_watch *next = l->watches->next;
        free(l->watches);
        l->watches = next;
    }
    pthread_mutex_destroy(&l->mutex);
}

/* Subscribes; afterwards only messages come. */
static int subscribe(struct hf__redis *s, struct hf__redis_conn *c, int64_t deadline_ns,
                     int64_t *ret_id)
{
    char channel[sizeof WAKE_WORD + HF__REDIS_CHANNEL];
    redisReply *reply = NULL;

    snprintf(channel, sizeof channel, WAKE_WORD "%s", s->listener.channel);
    hf__redis_command(c, "CLIENT", "ID", (char *)NULL);
    hf__redis_command(c, "SUBSCRIBE", channel, (char *)NULL);
    hf__redis_command(c, "SUBSCRIBE", INVALIDATE, (char *)NULL);
    int r = hf__redis_send(c, deadline_ns, NULL);
    for (int i = 0; r == 0 && i < 3; i++) {
        r = hf__redis_receive(c, deadline_ns, &reply, NULL);
        if (r == 0 && i == 0)
            *ret_id = reply->type == REDIS_REPLY_INTEGER ? reply->integer : 0;
        if (r == 0 && i == 1)
            r = hf__redis_error(reply, NULL); /* the others may be forbidden */
        if (r == 0 && i == 2 && reply->type == REDIS_REPLY_ERROR)
            *ret_id = 0;
        freeReplyObject(reply);
        reply = NULL;
    }
    return r;
}

static int dial(struct hf__redis *s, int64_t deadline_ns, struct hf__redis_conn **ret_conn,
                int64_t *ret_id)
{
    struct hf__redis_conn *c = NULL;
    struct epoll_event event = {.events = EPOLLIN};
    int r = hf__redis_dial(s, deadline_ns, &c, NULL);

    if (r == 0)
        r = subscribe(s, c, deadline_ns, ret_id);
    if (r == 0 && epoll_ctl(s->listener.epoll_fd, EPOLL_CTL_ADD, c->stream.fd, &event) < 0)
        r = HF_SYSTEM;
    if (r != 0) {
        hf__redis_hang_up(c);
        return r;
    }
    *ret_conn = c;
    return 0;
}

/* Mutex held, released meanwhile. */
static void connect_again(struct hf__redis *s, int64_t deadline_ns)
{
    struct hf__redis_listener *l = &s->listener;
    const struct hf_env *env = s->base.host->env;
    struct hf__redis_conn *c = NULL;
    int64_t id = 0;

    l->dialling = true;
    pthread_mutex_unlock(&l->mutex);
    int r = dial(s, deadline_ns, &c, &id);
    pthread_mutex_lock(&l->mutex);
    l->dialling = false;
    if (r != 0) {
        l->retry_ns = hf__now_ns(env) + hf__redis_backoff_ns(env, l->failures++);
        return;
    }
    l->failures = 0;
    l->conn = c;
    l->id = id;
    l->missed = true; /* what was published meanwhile */
    l->kicked = true;
    eventfd_write(l->kick_fd, 1);
}

int hf__redis_wake_fd(struct hf__store *store)
{
    struct hf__redis *s = (struct hf__redis *)store;
    struct hf__redis_listener *l = &s->listener;
    const struct hf_env *env = s->base.host->env;
    struct epoll_event event = {.events = EPOLLIN};

    int64_t deadline_ns = hf__now_ns(env) + s->base.host->op_timeout_ms * HF__NS_PER_MS;
    bool works = false;

    if (s->set.poll && s->sentinels.count == 0)
        return -1;
    pthread_mutex_lock(&l->mutex);
    l->kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    works = l->kick_fd >= 0 && l->epoll_fd >= 0 &&
            epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, l->kick_fd, &event) == 0;
    if (works && !s->set.poll) {
        connect_again(s, deadline_ns);
        l->missed = false; /* nobody could have been called before */
        l->wanted = true;
    }
    pthread_mutex_unlock(&l->mutex);
    hf__redis_scout(s, deadline_ns);
    return works ? l->epoll_fd : -1;
}

const char *hf__redis_listen_again(struct hf__redis *s, int64_t deadline_ns)
{
    struct hf__redis_listener *l = &s->listener;
    int64_t now_ns = hf__now_ns(s->base.host->env);

    hf__redis_scout(s, deadline_ns);
    if (!l->wanted)
        return NULL;
    pthread_mutex_lock(&l->mutex);
    if (l->conn == NULL && !l->dialling && now_ns >= l->retry_ns)
        connect_again(s, now_ns + (deadline_ns - now_ns) / 2);
    pthread_mutex_unlock(&l->mutex);
    return l->channel;
}

bool hf__redis_listens(struct hf__redis *s)
{
    struct hf__redis_listener *l = &s->listener;

    if (!l->wanted)
        return false;
    pthread_mutex_lock(&l->mutex);
    bool listens = l->conn != NULL;
    pthread_mutex_unlock(&l->mutex);
    return listens;
}

/* Reading, on the keeper's thread. ------------------------------------------------------------- */

struct ear {
    struct hf__redis *s;
    hf__wake_sink *sink;
    void *ctx;
};

static void hear_call(const struct ear *ear, const redisReply *text)
{
    struct hf__ticket ticket;
    char hex[HF_TICKET_SIZE];
    char *end;

    if (text->type != REDIS_REPLY_STRING || text->len < HF_TICKET_SIZE + 1)
        return;
    memcpy(hex, text->str, HF_TICKET_SIZE - 1);
    hex[HF_TICKET_SIZE - 1] = '\0';
    uint64_t generation = strtoumax(text->str + HF_TICKET_SIZE - 1, &end, 10);
    if (hf__ticket_parse(hex, &ticket) && *end == '\0')
        ear->sink(ear->ctx, &ticket, generation);
}

/* Takes out a watch of this key; the caller frees it. */
static struct hf__redis_watch *take_watch(struct hf__redis_listener *l, const redisReply *key)
{
    pthread_mutex_lock(&l->mutex);
    struct hf__redis_watch **at = &l->watches, *found;
    while (*at != NULL &&
           ((*at)->key_len != key->len || memcmp((*at)->key, key->str, key->len) != 0))
        at = &(*at)->next;
    found = *at;
    if (found != NULL) {
        *at = found->next;
        l->watch_count--;
    }
    pthread_mutex_unlock(&l->mutex);
    return found;
}

static void hear_change(const struct ear *ear, const redisReply *keys)
{
    if (keys->type != REDIS_REPLY_ARRAY) {
        ear->sink(ear->ctx, NULL, 0); /* everything was flushed */
        return;
    }
    for (size_t i = 0; i < keys->elements; i++) {
        struct hf__redis_watch *watch;
        while (keys->element[i]->type == REDIS_REPLY_STRING &&
               (watch = take_watch(&ear->s->listener, keys->element[i])) != NULL) {
            ear->sink(ear->ctx, &watch->ticket, 0);
            free(watch);
        }
    }
}

static void hear(void *ctx, const redisReply *reply)
{
    const struct ear *ear = ctx;

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 3 ||
        reply->element[1]->type != REDIS_REPLY_STRING || reply->element[0]->str == NULL ||
        strcmp(reply->element[0]->str, "message") != 0)
        return;
    if (strcmp(reply->element[1]->str, INVALIDATE) == 0)
        hear_change(ear, reply->element[2]);
    else
        hear_call(ear, reply->element[2]);
}

bool hf__redis_read_messages(struct hf__redis *s, struct hf__redis_conn *c, hf__redis_hear *heard,
                             void *ctx)
{
    char buf[4096];
    size_t count = sizeof buf;
    void *reply = NULL;

    /* Less than it could be was all there is; but not of TLS, which gives one record at a time. */
    while (count == sizeof buf || (count > 0 && s->set.tls != NULL)) {
        if (hf__stream_poll(&c->stream, buf, sizeof buf, &count, NULL) != 0 ||
            redisReaderFeed(c->reader, buf, count) != REDIS_OK)
            return false;
        do {
            if (redisReaderGetReply(c->reader, &reply) != REDIS_OK)
                return false;
            if (reply != NULL)
                heard(ctx, reply);
            freeReplyObject(reply);
        } while (reply != NULL);
    }
    return true;
}

void hf__redis_wake(struct hf__store *store, hf__wake_sink *sink, void *ctx)
{
    struct ear ear = {.s = (struct hf__redis *)store, .sink = sink, .ctx = ctx};
    struct hf__redis_listener *l = &ear.s->listener;
    eventfd_t kicks;

    pthread_mutex_lock(&l->mutex);
    if (l->kicked)
        eventfd_read(l->kick_fd, &kicks);
    struct hf__redis_conn *c = l->conn;
    bool missed = l->missed;
    l->missed = l->kicked = false;
    pthread_mutex_unlock(&l->mutex);

    bool switched = hf__redis_hear_switch(ear.s);
    if (c != NULL && (switched || !hf__redis_read_messages(ear.s, c, hear, &ear))) {
        pthread_mutex_lock(&l->mutex);
        l->conn = NULL;
        l->id = 0;
        pthread_mutex_unlock(&l->mutex);
        hf__redis_hang_up(c);
        missed = true;
    }
    if (missed || switched)
        sink(ctx, NULL, 0);
}
