/* Watching: a look at the store in every interval, by whoever asks, told only if it is another one than the last.
 *
 *      due --look--> another than before: given
 *       ^    |-----> the same --.
 *       |    `-----> no answer: an error, and the next look is given whatever it is
 *       `---- interval ---------'
 *
 * There is no thread and no request behind it but those of hf_watch_next(). The timer is a descriptor,
 * so that a program can poll it beside others and hf_close() can end a sleep. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "core/client.h"
#include "core/view.h"
#include "core/watch.h"

#include "base/banned.h"

struct hf_watch {
    hf_client *client;
    hf_watch *prev, *next; /* in client->watches */
    hf_query query;        /* its texts are behind this structure */
    int64_t interval_ms;
    int timer_fd;
    int64_t due_ns; /* when to look again */
    hf_view *last;  /* what was given; NULL: nothing yet, or an error since */
    char texts[];
};

static void set_timer(const hf_watch *watch, int64_t at_ns)
{
    struct itimerspec spec = {.it_value = {at_ns / 1000000000, at_ns % 1000000000}};

    timerfd_settime(watch->timer_fd, TFD_TIMER_ABSTIME, &spec, NULL);
}

/* Mutex held. */
static void add_watch(hf_client *client, hf_watch *watch)
{
    client->refs++;
    watch->next = client->watches;
    if (watch->next != NULL)
        watch->next->prev = watch;
    client->watches = watch;
    set_timer(watch, 1); /* in the past: the first look is due */
}

int hf_watch_new(hf_client *client, const hf_query *query, int64_t interval_ms,
                 hf_watch **ret_watch, hf_error *err)
{
    hf_query known;
    struct hf__visit visit;
    int r = ret_watch == NULL ? hf__fail(err, HF_INVALID, "there is no place for the watch")
                              : hf__copy_query(query, &known, err);

    if (r == 0 && interval_ms < 0)
        r = hf__fail(err, HF_INVALID, "interval_ms is negative");
    if (r < 0)
        return r;
    hf_watch *watch = calloc(1, sizeof *watch + known.name_len + known.prefix_len);
    if (watch == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    watch->client = client;
    watch->query = known;
    watch->interval_ms = interval_ms > 0 ? interval_ms : HF_WATCH_DEFAULT_MS;
    if (known.name != NULL)
        watch->query.name = memcpy(watch->texts, known.name, known.name_len);
    if (known.prefix != NULL)
        watch->query.prefix = memcpy(watch->texts + known.name_len, known.prefix, known.prefix_len);
    watch->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    r = watch->timer_fd < 0 ? hf__fail(err, HF_SYSTEM, "no descriptor is to be had")
                            : hf__enter_locked(client, &visit, err);
    if (r == 0) {
        add_watch(client, watch);
        hf__leave_unlock(client, &visit);
        *ret_watch = watch;
        return 0;
    }
    if (watch->timer_fd >= 0)
        close(watch->timer_fd);
    free(watch);
    return r;
}

/* One look, which makes the next one due an interval after it began. Mutex held, released meanwhile. 0:
 * it is given; HF_TIMEOUT: it is the same as before. */
static int look(hf_watch *watch, hf_view **ret_view, hf_error *err)
{
    hf_client *client = watch->client;
    hf_view *view;

    watch->due_ns = hf__moment_after(hf__now_ns(client->env), watch->interval_ms);
    set_timer(watch, watch->due_ns); /* before the look: whoever waits beside it is to sleep */
    hf__unlock_client(client);
    int r = hf__view_make(client, &watch->query, &view, err);
    hf__lock_client(client);

    hf_view *before = watch->last;
    if (r == 0 && before != NULL && hf__views_are_alike(before, view)) {
        hf_view_free(view);
        return HF_TIMEOUT;
    }
    hf_view_free(before);
    watch->last = r == 0 ? hf__view_ref(view) : NULL;
    if (r == 0)
        *ret_view = view;
    return r;
}

/* Mutex held, released meanwhile. */
static int await_view(hf_watch *watch, int64_t wait_ms, hf_view **ret_view, hf_error *err)
{
    hf_client *client = watch->client;
    struct pollfd timer = {.fd = watch->timer_fd, .events = POLLIN};
    int64_t until_ns =
        wait_ms == HF_FOREVER ? INT64_MAX : hf__moment_after(hf__now_ns(client->env), wait_ms);

    for (;;) {
        int64_t now_ns = hf__now_ns(client->env);
        if (client->closing)
            return hf__fail(err, HF_CLOSED, NULL);
        if (now_ns >= watch->due_ns) {
            int r = look(watch, ret_view, err);
            if (r != HF_TIMEOUT)
                return r;
        } else if (now_ns >= until_ns) {
            return hf__fail(err, HF_TIMEOUT, "nothing has changed");
        } else {
            int64_t next_ns = watch->due_ns < until_ns ? watch->due_ns : until_ns;
            int limit_ms = hf__keeper_limit_ms(client, next_ns);
            hf__unlock_client(client);
            poll(&timer, 1, limit_ms);
            hf__lock_client(client);
        }
    }
}

int hf_watch_next(hf_watch *watch, int64_t wait_ms, hf_view **ret_view, hf_error *err)
{
    struct hf__visit visit;

    if (watch == NULL || ret_view == NULL || wait_ms < HF_FOREVER)
        return hf__fail(err, HF_INVALID,
                        "there is no watch, no place for the view, or wait_ms is "
                        "below HF_FOREVER");
    int r = hf__enter_locked(watch->client, &visit, err);
    if (r < 0)
        return r;
    r = await_view(watch, wait_ms, ret_view, err);
    hf__leave_unlock(watch->client, &visit);
    return r;
}

int hf_watch_fd(hf_watch *watch)
{
    if (watch == NULL)
        return HF_INVALID;
    return hf__is_forked(watch->client) ? HF_FORKED : watch->timer_fd;
}

void hf_watch_free(hf_watch *watch)
{
    if (watch == NULL || hf__is_forked(watch->client))
        return;
    hf_client *client = watch->client;
    int cancel_state = hf__forbid_cancel();

    hf__lock_client(client);
    if (watch->prev != NULL)
        watch->prev->next = watch->next;
    else
        client->watches = watch->next;
    if (watch->next != NULL)
        watch->next->prev = watch->prev;
    hf__unref_client(client);
    close(watch->timer_fd);
    hf_view_free(watch->last);
    free(watch);
    hf__allow_cancel(cancel_state);
}

void hf__watches_close(hf_client *client)
{
    for (hf_watch *watch = client->watches; watch != NULL; watch = watch->next)
        set_timer(watch, 1);
}
