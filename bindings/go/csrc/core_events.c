/* See events.h.
 *
 * The queue is a list through what was started, so that an event needs no memory when it comes: one that
 * cannot be told for want of memory would be a loss that nobody hears of. Several things to tell about
 * one lock stand there once, and are taken in the order of what matters: how the bid ended, that it is at
 * risk, that somebody waits, that it is lost. */
#include "core_events.h"

#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core_started.h"

#include "base_banned.h"

static void show_events(hf_client *client, bool any)
{
    eventfd_t count;

    if (client->event_fd < 0)
        return;
    if (any)
        eventfd_write(client->event_fd, 1);
    else if (!client->closing) /* or whoever sleeps there would not hear of that */
        eventfd_read(client->event_fd, &count);
}

void hf__event_push(struct hf__started *s, enum hf__tell what)
{
    hf_client *client = s->client;

    if (s->tells == 0) {
        s->next = NULL;
        s->prev = client->last_event;
        if (s->prev != NULL)
            s->prev->next = s;
        else
            client->first_event = s;
        client->last_event = s;
        if (s->prev == NULL)
            show_events(client, true);
        if (s->lock != NULL)
            hf__lock_ref(s->lock);
    }
    s->tells |= (unsigned char)what;
}

/* Out of the queue. What stood there may be freed. */
static void unlink_event(struct hf__started *s)
{
    hf_client *client = s->client;

    s->tells = 0;
    if (s->prev != NULL)
        s->prev->next = s->next;
    else
        client->first_event = s->next;
    if (s->next != NULL)
        s->next->prev = s->prev;
    else
        client->last_event = s->prev;
    if (client->first_event == NULL)
        show_events(client, false);
    if (s->lock != NULL)
        hf__lock_unref(s->lock);
    else
        hf__started_free(s);
}

void hf__tell_event(hf_lock *lock, enum hf__tell what)
{
    if (lock->started != NULL && !lock->started->silent)
        hf__event_push(lock->started, what);
}

void hf__forget_events(hf_lock *lock)
{
    if (lock->started != NULL && lock->started->tells != 0)
        unlink_event(lock->started);
}

void hf__drop_events(hf_client *client)
{
    struct hf__started *s;

    while ((s = client->first_event) != NULL) {
        bool nobodys = s->lock != NULL && (s->tells & HF__TELL_OUTCOME) && s->code == 0;
        hf_lock *lock = s->lock;

        if (nobodys)
            hf__reentry_remove(lock);
        unlink_event(s);
        if (nobodys)
            hf__lock_unref(lock);
    }
    if (client->event_fd >= 0)
        close(client->event_fd);
    client->event_fd = -1;
}

/* Mutex held. */
static int open_event_fd(hf_client *client)
{
    if (client->event_fd < 0)
        client->event_fd = eventfd(client->first_event != NULL, EFD_CLOEXEC | EFD_NONBLOCK);
    return client->event_fd < 0 ? HF_SYSTEM : client->event_fd;
}

int hf_event_fd(hf_client *client)
{
    struct hf__visit visit;
    int r = hf__enter_locked(client, &visit, NULL);

    if (r < 0)
        return r;
    r = open_event_fd(client);
    hf__leave_unlock(client, &visit);
    return r;
}

/* Mutex held: the first of the queue. */
static hf_event take_event(hf_client *client)
{
    struct hf__started *s = client->first_event;
    hf_event event = {.tag = s->tag, .lock = s->lock};

    if (s->tells & HF__TELL_OUTCOME) {
        s->tells &= (unsigned char)~HF__TELL_OUTCOME;
        event.kind = s->is_release      ? HF_EVENT_RELEASED
                     : s->code == HF_OK ? HF_EVENT_ACQUIRED
                                        : HF_EVENT_FAILED;
        if (s->code < 0)
            event.lock = NULL;
        if (s->code < 0 && s->err != NULL)
            event.err = *s->err;
        event.err.code = s->code;
    } else if (s->tells & HF__TELL_AT_RISK) {
        s->tells &= (unsigned char)~HF__TELL_AT_RISK;
        event.kind = HF_EVENT_AT_RISK;
    } else if (s->tells & HF__TELL_WANTED) {
        s->tells &= (unsigned char)~HF__TELL_WANTED;
        event.kind = HF_EVENT_WANTED;
    } else {
        s->tells = 0;
        event.kind = HF_EVENT_LOST;
        event.cause = s->lock->bidder.cause;
    }
    if (s->tells == 0)
        unlink_event(s);
    return event;
}

/* Sleeps until there is an event, or it is closed. Mutex held, released meanwhile. */
static int await_event(hf_client *client, int64_t wait_ms)
{
    int64_t until_ns =
        wait_ms == HF_FOREVER ? INT64_MAX : hf__moment_after(hf__now_ns(client->env), wait_ms);
    struct pollfd fd = {.events = POLLIN};

    while (client->first_event == NULL) {
        if (client->closing)
            return HF_CLOSED;
        if (hf__now_ns(client->env) >= until_ns)
            return HF_TIMEOUT;
        fd.fd = open_event_fd(client);
        if (fd.fd < 0)
            return HF_SYSTEM;
        int limit_ms = hf__keeper_limit_ms(client, until_ns);
        hf__unlock_client(client);
        poll(&fd, 1, limit_ms);
        hf__lock_client(client);
    }
    return 0;
}

int hf_event_next(hf_client *client, int64_t wait_ms, hf_event *ret_event)
{
    struct hf__visit visit;

    if (ret_event == NULL || ret_event->size < sizeof(hf_event) || wait_ms < HF_FOREVER)
        return HF_INVALID;
    int r = hf__enter_locked(client, &visit, NULL);
    if (r < 0)
        return r;
    r = await_event(client, wait_ms);
    if (r == 0) {
        hf_event event = take_event(client);
        event.size = ret_event->size;
        memcpy(ret_event, &event, sizeof event);
    }
    hf__leave_unlock(client, &visit);
    return r;
}
