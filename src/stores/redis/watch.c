/* Strangers who hold a lock tell nobody when they let go. The server can: CLIENT TRACKING sends a
 * message to our subscriber when a key that we have read changes. It is asked only by the first who
 * waits, and only while a stranger holds, or while the key is left to them (yield), so that one
 * release causes one message:
 *
 *      CLIENT TRACKING ON REDIRECT <subscriber> OPTIN      once a connection
 *      CLIENT CACHING YES
 *      PTTL <key>                                          the read that counts; -2: it is free
 *
 * It is a separate read because a script would register the book as well, which others change. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stores/redis/redis.h"

#include "base/banned.h"

/* Mutex held. */
static void remove_watch(struct hf__redis *s, const struct hf__ticket *ticket)
{
    struct hf__redis_watch **at = &s->watches;

    while (*at != NULL && !hf__ticket_equal(&(*at)->ticket, ticket))
        at = &(*at)->next;
    if (*at != NULL) {
        struct hf__redis_watch *watch = *at;
        *at = watch->next;
        s->watch_count--;
        free(watch);
    }
}

void hf__redis_unwatch(struct hf__redis *s, const struct hf__ticket *ticket)
{
    if (s->watch_count == 0)
        return;
    pthread_mutex_lock(&s->listener.mutex);
    remove_watch(s, ticket);
    pthread_mutex_unlock(&s->listener.mutex);
}

void hf__redis_unwatch_all(struct hf__redis *s)
{
    while (s->watches != NULL)
        remove_watch(s, &s->watches->ticket);
}

struct hf__redis_watch *hf__redis_take_watch(struct hf__redis *s, const redisReply *key)
{
    pthread_mutex_lock(&s->listener.mutex);
    struct hf__redis_watch **at = &s->watches, *found;
    while (*at != NULL && ((*at)->key_len != (size_t)key->len ||
                           memcmp((*at)->key, key->str, (*at)->key_len) != 0))
        at = &(*at)->next;
    found = *at;
    if (found != NULL) {
        *at = found->next;
        s->watch_count--;
    }
    pthread_mutex_unlock(&s->listener.mutex);
    return found;
}

/* Our subscriber's id, 0 if there is none; notes the watch first, so that no message is too early.
 */
static int64_t add_watch(struct hf__redis *s, const struct hf__redis_names *names,
                         const struct hf__ticket *ticket)
{
    struct hf__redis_watch *watch = malloc(sizeof *watch + names->key_len);

    if (watch == NULL)
        return 0;
    watch->ticket = *ticket;
    watch->key_len = names->key_len;
    memcpy(watch->key, names->key, names->key_len);

    pthread_mutex_lock(&s->listener.mutex);
    const struct hf__redis_conn *listener = s->listener.conn;
    int64_t id = listener != NULL ? listener->id : 0;
    if (id != 0) {
        remove_watch(s, ticket);
        watch->next = s->watches;
        s->watches = watch;
        s->watch_count++;
        watch = NULL;
    }
    pthread_mutex_unlock(&s->listener.mutex);
    free(watch);
    return id;
}

bool hf__redis_watch_key(struct hf__redis *s, struct hf__redis_conn *c,
                         const struct hf__redis_operation *op, enum hf__redis_strangers strangers,
                         int64_t deadline_ns)
{
    int64_t id = add_watch(s, &op->names, &op->bid->ticket);
    redisReply *reply = NULL;
    bool told = true, there = strangers == HF__REDIS_STRANGERS_ONE_HOLDS;

    if (id == 0)
        return false;
    int left = 2;
    if (c->redirect !=
        id) { /* our subscriber is another one than when this connection asked last */
        char number[24];
        snprintf(number, sizeof number, "%" PRId64, id);
        hf__redis_command(c, "CLIENT", "TRACKING", "ON", "REDIRECT", number, "OPTIN", (char *)NULL);
        left++;
    }
    hf__redis_command(c, "CLIENT", "CACHING", "YES", (char *)NULL);
    hf__redis_begin(c, 2);
    hf__redis_add(c, "PTTL", 4);
    hf__redis_add(c, op->names.key, op->names.key_len);
    int r = hf__redis_send(c, deadline_ns, NULL);
    for (; r == 0 && left > 0; left--) {
        r = hf__redis_receive(c, deadline_ns, &reply, NULL);
        if (r != 0)
            return false;
        told &= reply->type != REDIS_REPLY_ERROR;
        if (left == 1 && hf__redis_fits(reply, "i"))
            there = reply->integer != -2;
        freeReplyObject(reply);
    }
    c->redirect = told ? id : 0;
    /* A stranger's key that is gone, or one that is there where it was left to them. */
    return there != (strangers == HF__REDIS_STRANGERS_ONE_HOLDS);
}
