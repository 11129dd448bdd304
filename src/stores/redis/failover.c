/* Hearing of a switch: a subscription at one of the sentinels.
 *
 *      SENTINEL get-master-addr-by-name <name>
 *      SUBSCRIBE +switch-master
 *      message +switch-master "<name> <old host> <old port> <new host> <new port>"
 *
 * The address is asked first, in the same breath, for what was switched while nobody listened. As
 * with calls (listen.c) wake() reads and never dials; whoever bids or renews dials again, on
 * its own time. One sentinel is enough: if it is gone the next one is asked, and a switch that none
 * has told is noticed as before, when the old master hangs up or refuses a write.
 *
 * `subscriber` is put in by a thread that dials, while it is NULL, and then belongs to wake(). */
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include "stores/redis/redis.h"

#include "base/banned.h"

#define SWITCH "+switch-master"

/* Bids and renewals, which do the dialling, must not be held up by sentinels that cannot be
 * reached. */
#define WITHIN_MS    500
#define RETRY_MIN_MS 1000
#define RETRY_MAX_MS 60000

/* At the sentinel that answered last, or else the next that can be reached. The address is asked first:
 * what was switched while nobody listened is in the answer, what is switched from now on in a message. */
static int subscribe(struct hf__redis *s, int64_t deadline_ns, struct hf__redis_conn **ret_conn,
                     struct hf__redis_address *ret_address)
{
    size_t count = s->set.servers.count, first = s->sentinels.last;

    for (size_t k = 0; k < count; k++) {
        struct hf__redis_conn *c = NULL;
        redisReply *reply = NULL;
        struct epoll_event event = {.events = EPOLLIN};
        int64_t now_ns = hf__now_ns(s->base.host->env);
        int64_t until_ns = now_ns + (deadline_ns - now_ns) / (int64_t)(count - k + 1);
        int r = hf__redis_dial_sentinel(s, (first + k) % count, until_ns, &c, NULL);
        if (r == 0) {
            hf__redis_ask_place(s, c);
            hf__redis_command(c, "SUBSCRIBE", SWITCH, (char *)NULL);
            r = hf__redis_send(c, until_ns, NULL);
        }
        if (r == 0)
            r = hf__redis_take_place(s, c, until_ns, ret_address, NULL);
        if (r == 0)
            r = hf__redis_receive(c, until_ns, &reply, NULL);
        if (r == 0)
            r = hf__redis_error(reply, NULL); /* it may be forbidden to this user */
        freeReplyObject(reply);
        if (r == 0 && epoll_ctl(s->listener.epoll_fd, EPOLL_CTL_ADD, c->stream.fd, &event) == 0) {
            *ret_conn = c;
            return 0;
        }
        hf__redis_hang_up(c);
    }
    return HF_UNAVAILABLE;
}

/* The connections to the old master are of no use, and all that is held is to be verified. That of
 * the listener is closed in wake(). */
static void follow(struct hf__redis *s, const struct hf__redis_address *address)
{
    struct hf__listener *l = &s->listener;

    if (!hf__redis_note_master(s, address))
        return;
    s->sentinels.switched = true;
    pthread_mutex_lock(&l->mutex);
    hf__listener_kick(l);
    pthread_mutex_unlock(&l->mutex);
}

void hf__redis_subscribe_failover(struct hf__redis *s, int64_t deadline_ns)
{
    struct hf__redis_sentinels *w = &s->sentinels;
    struct hf__listener *l = &s->listener;
    const struct hf_env *env = s->base.host->env;
    struct hf__redis_conn *c = NULL;
    struct hf__redis_address address;

    if (w->master_name == NULL)
        return;
    pthread_mutex_lock(&l->mutex);
    bool due = l->epoll_fd >= 0 && w->subscriber == NULL && !w->subscribing &&
               hf__now_ns(env) >= w->retry_ns;
    w->subscribing |= due;
    pthread_mutex_unlock(&l->mutex);
    if (!due)
        return;
    int64_t now_ns = hf__now_ns(env), half_ns = (deadline_ns - now_ns) / 2;
    int64_t within_ns = WITHIN_MS * HF__NS_PER_MS;
    int r = subscribe(s, now_ns + (half_ns < within_ns ? half_ns : within_ns), &c, &address);
    pthread_mutex_lock(&l->mutex);
    w->subscribing = false;
    w->subscriber = c;
    w->pause_ms = r == 0 || w->pause_ms == 0       ? RETRY_MIN_MS
                  : w->pause_ms * 2 > RETRY_MAX_MS ? RETRY_MAX_MS
                                                   : w->pause_ms * 2;
    w->retry_ns = hf__now_ns(env) + w->pause_ms * HF__NS_PER_MS;
    pthread_mutex_unlock(&l->mutex);
    if (r == 0)
        follow(s, &address);
}

/* "<name> <old host> <old port> <new host> <new port>", of whatever master it was. */
static void hear(void *ctx, const redisReply *reply)
{
    struct hf__redis *s = ctx;
    struct hf__redis_address address;
    char name[256];

    if (!hf__redis_fits(reply, "[sss]") ||
        sscanf(reply->element[2]->str, "%255s %*s %*s %255s %15s", name, address.host,
               address.port) != 3)
        return;
    if (strcmp(name, s->sentinels.master_name) == 0)
        follow(s, &address);
}

bool hf__redis_hear_failover(struct hf__redis *s)
{
    struct hf__redis_sentinels *w = &s->sentinels;
    struct hf__listener *l = &s->listener;

    if (w->master_name == NULL)
        return false;
    pthread_mutex_lock(&l->mutex);
    struct hf__redis_conn *c = w->subscriber;
    pthread_mutex_unlock(&l->mutex);
    if (c != NULL && !hf__redis_read_messages(s, c, hear, s)) {
        pthread_mutex_lock(&l->mutex);
        w->subscriber = NULL;
        pthread_mutex_unlock(&l->mutex);
        /* Closing does not take it out if a forked child has it too. */
        epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, c->stream.fd, NULL);
        hf__redis_hang_up(c);
    }
    return atomic_exchange(&w->switched, false);
}
