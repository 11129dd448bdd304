/* Wake-ups: one connection per client, subscribed to a channel whose name nobody can guess.
 *
 *      message <our channel> "<ticket> <generation>"       a script let this ticket in; 0: ask
 *      message __redis__:invalidate [key]                  a key that a stranger held has changed
 *
 * Since the channel's name stays the same, what is noted on the server stays right. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stores/redis/redis.h"

#include "base/banned.h"

int hf__redis_subscribe(struct hf__redis_conn *c, const char *word, int64_t deadline_ns)
{
    char channel[sizeof HF__REDIS_WAKE_WORD + HF_TICKET_SIZE];
    redisReply *reply = NULL;

    snprintf(channel, sizeof channel, HF__REDIS_WAKE_WORD "%s", word);
    hf__redis_command(c, "CLIENT", "ID", (char *)NULL); /* whoever has subscribed may not ask it */
    hf__redis_command(c, "SUBSCRIBE", channel, (char *)NULL);
    hf__redis_command(c, "SUBSCRIBE", HF__REDIS_INVALIDATE, (char *)NULL);
    int r = hf__redis_send(c, deadline_ns, NULL);
    for (int i = 0; r == 0 && i < 3; i++) {
        r = hf__redis_receive(c, deadline_ns, &reply, NULL);
        if (r == 0 && i == 0)
            c->id = hf__redis_fits(reply, "i") ? reply->integer : 0;
        if (r == 0 && i == 1)
            r = hf__redis_error(reply, NULL); /* the others may be forbidden */
        if (r == 0 && i == 2 && reply->type == REDIS_REPLY_ERROR)
            c->id = 0;
        freeReplyObject(reply);
        reply = NULL;
    }
    return r;
}

static int dial(void *owner, int64_t deadline_ns, struct hf__line *ret_line)
{
    struct hf__redis_conn *c = NULL;

    if (hf__redis_dial(owner, deadline_ns, &c, NULL) != 0)
        return HF_UNAVAILABLE;
    const struct hf__redis *s = owner;
    int r = hf__redis_subscribe(c, s->listener.word, deadline_ns);
    if (r != 0) {
        hf__redis_hang_up(c);
        /* It is refused to this user, or not known: that will not change soon. */
        return r == HF_DENIED || r == HF_UNSUPPORTED ? HF_UNSUPPORTED : HF_UNAVAILABLE;
    }
    ret_line->conn = c;
    ret_line->fd = c->stream.fd;
    return 0;
}

static void hang_up(void *conn, bool lost)
{
    (void)lost;
    hf__redis_hang_up(conn);
}

const struct hf__listener_type hf__redis_listener_type = {.dial = dial, .hang_up = hang_up};

/* Sentinels tell of another master by the same descriptor, also to those who poll. */
int hf__redis_wake_fd(struct hf__store *store)
{
    struct hf__redis *s = (struct hf__redis *)store;
    const struct hf__host *host = s->base.host;
    int64_t deadline_ns = hf__now_ns(host->env) + host->op_timeout_ms * HF__NS_PER_MS;

    if (s->set.poll && s->sentinels.master_name == NULL)
        return -1; /* there is nothing to be told */
    int fd = hf__listener_open(&s->listener);
    if (fd >= 0 && !s->set.poll)
        hf__listener_start(&s->listener, deadline_ns);
    hf__redis_subscribe_failover(s, deadline_ns);
    return fd;
}

const char *hf__redis_listen_again(struct hf__redis *s, int64_t deadline_ns)
{
    hf__redis_subscribe_failover(s, deadline_ns);
    hf__listener_again(&s->listener, deadline_ns, NULL);
    return s->listener.wanted ? s->listener.word : NULL;
}

/* Reading, in wake(). -------------------------------------------------------- */

struct hearing {
    struct hf__redis *s;
    hf__wake_sink *sink;
    void *ctx;
};

/* Anybody may publish here, so a message is believed only as far as the bidder's rules go: a grant that
 * is not ours, or an old one, changes nothing there. */
static void hear(void *ctx, const redisReply *reply)
{
    const struct hearing *h = ctx;
    struct hf__ticket ticket;
    uint64_t generation;

    if (!hf__redis_fits(reply, "[ssa]") || strcmp(reply->element[0]->str, "message") != 0)
        return;
    const redisReply *what = reply->element[2];
    if (strcmp(reply->element[1]->str, HF__REDIS_INVALIDATE) != 0) {
        if (hf__redis_fits(what, "s") && hf__call_parse(what->str, &ticket, &generation))
            h->sink(h->ctx, &ticket, generation);
        return;
    }
    if (what->type != REDIS_REPLY_ARRAY) {
        h->sink(h->ctx, NULL, 0); /* everything was flushed */
        return;
    }
    for (size_t i = 0; i < what->elements; i++) {
        struct hf__redis_watch *watch;
        while (hf__redis_fits(what->element[i], "s") &&
               (watch = hf__redis_take_watch(h->s, what->element[i])) != NULL) {
            h->sink(h->ctx, &watch->ticket, 0);
            free(watch);
        }
    }
}

bool hf__redis_read_messages(struct hf__redis *s, struct hf__redis_conn *c, hf__redis_hear *heard,
                             void *ctx)
{
    char buf[4096];
    size_t count = sizeof buf;
    redisReply *reply = NULL;

    /* Less than it could be was all there is; but not of TLS, which gives one record at a time. */
    while (count == sizeof buf || (count > 0 && s->set.tls != NULL)) {
        if (hf__stream_poll(&c->stream, buf, sizeof buf, &count, NULL) != 0 ||
            hf__redis_feed(c, buf, count, NULL) != 0)
            return false;
        do {
            if (hf__redis_next(c, &reply, NULL) != 0)
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
    struct hf__redis *s = (struct hf__redis *)store;
    struct hearing h = {.s = s, .sink = sink, .ctx = ctx};
    bool missed;
    struct hf__redis_conn *c = hf__listener_wake(&s->listener, &missed);
    bool switched = hf__redis_hear_failover(s);

    if (c != NULL && (switched || !hf__redis_read_messages(s, c, hear, &h))) {
        hf__listener_lost(&s->listener);
        missed = true;
    }
    if (missed || switched)
        sink(ctx, NULL, 0);
}
