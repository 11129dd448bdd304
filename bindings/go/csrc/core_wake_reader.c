/* See wake_reader.h. */
#include "core_wake_reader.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core_cache.h"

#include "base_banned.h"

#define RETRY_MS 1000 /* the process has no descriptor free */

/* Calls. --------------------------------------------------------------------------------------- */

/* Mutex held; gives what hf__wait_wake() needs. One that does not wait is told that its grant may be
 * over (its connection was lost, it was broken): the renewer asks. */
static struct hf__waiter *deliver(hf_lock *lock, uint64_t generation)
{
    if (lock->duty == HF__DUTY_KEEP) {
        if (generation == 0 && lock->bid.cached)
            hf__cache_called(lock);
        if (generation == 0 && !lock->is_idle)
            hf__renewer_push(lock);
        return NULL;
    }
    lock->called |= generation == 0 && lock->bid.tell;
    enum hf__advice advice =
        hf__bidder_woken(&lock->bidder, generation, hf__now_ns(lock->client->env));
    if (advice == HF__ADVICE_HOLD)
        return hf__wait_note(lock, HF__NEWS_GRANT);
    return advice == HF__ADVICE_ASK ? hf__wait_note(lock, HF__NEWS_ASK) : NULL;
}

static void wake_sink(void *ctx, const struct hf__ticket *ticket, uint64_t generation)
{
    hf_client *client = ctx;
    struct hf__waiter *noted = NULL;

    hf__lock_client(client);
    if (ticket == NULL) {
        for (hf_lock *lock = client->on_duty; lock != NULL; lock = lock->next)
            hf__wait_tell(lock, HF__NEWS_ASK);
    } else {
        uint64_t hash = hf__hash(client->seed, ticket->bits, sizeof ticket->bits);
        struct hf__link *link = hf__table_find(&client->by_ticket, hash);
        for (; link != NULL; link = hf__table_next(link)) {
            hf_lock *lock = (hf_lock *)((char *)link - offsetof(hf_lock, by_ticket));
            if (hf__ticket_equal(&lock->bid.ticket, ticket)) {
                noted = deliver(lock, generation);
                break;
            }
        }
    }
    hf__unlock_client(client);
    hf__wait_wake(client, noted);
}

/* Mutex held, released meanwhile. */
static void hear(hf_client *client)
{
    hf__unlock_client(client);
    client->store->type->wake(client->store, wake_sink, client);
    hf__lock_client(client);
    hf__after_call(client);
}

/* The keeper's. -------------------------------------------------------------------------------- */
void hf__wake_reader_init(struct hf__wake_reader *reader)
{
    reader->wake_fd = reader->nudge_fd = -1;
}

bool hf__wake_reader_listens(const hf_client *client)
{
    return client->wake_reader.listens;
}

void hf__wake_reader_open(hf_client *client)
{
    struct hf__wake_reader *reader = &client->wake_reader;

    if (reader->state == HF__WAKE_NOT_ASKED && hf__now_ns(client->env) >= reader->retry_ns) {
        reader->state = HF__WAKE_BEING_ASKED;
        hf__unlock_client(client);
        const struct hf__store_type *type = client->store->type;
        int fd = type->wake_fd != NULL ? type->wake_fd(client->store) : -1;
        int nudge_fd = fd >= 0 ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1;
        hf__lock_client(client);
        reader->wake_fd = fd;
        reader->nudge_fd = nudge_fd;
        reader->listens = fd >= 0 && hf__keeper_read_wakes(client) == 0;
        reader->state = fd == HF_SYSTEM ? HF__WAKE_NOT_ASKED : HF__WAKE_ASKED;
        reader->retry_ns = hf__now_ns(client->env) + RETRY_MS * HF__NS_PER_MS;
        pthread_cond_broadcast(&client->changed);
    }
    while (reader->state == HF__WAKE_BEING_ASKED)
        pthread_cond_wait(&client->changed, &client->mutex);
}

void hf__wake_reader_serve(hf_client *client)
{
    struct hf__wake_reader *reader = &client->wake_reader;

    hf__lock_client(client);
    if (reader->caller == NULL) { /* else somebody took it while we were on our way */
        reader->keeper_reads = true;
        hear(client);
        reader->keeper_reads = false;
    }
    hf__unlock_client(client);
}

void hf__wake_reader_close(hf_client *client)
{
    struct hf__wake_reader *reader = &client->wake_reader;

    if (reader->nudge_fd >= 0)
        close(reader->nudge_fd);
    reader->nudge_fd = -1;
}

/* A caller's. All with the mutex held. --------------------------------------------------------- */
void hf__wake_reader_nudge(hf_client *client)
{
    struct hf__wake_reader *reader = &client->wake_reader;

    reader->nudged = true;
    eventfd_write(reader->nudge_fd, 1);
}

/* Sleeps until there is something to read, or a nudge. False: that cannot be had, as in a process
 * that may have no more descriptors, and the keeper is to read. */
static bool listen_once(hf_client *client, const struct hf__waiter *waiter)
{
    struct hf__wake_reader *reader = &client->wake_reader;
    struct pollfd fds[] = {{.fd = reader->wake_fd, .events = POLLIN},
                           {.fd = reader->nudge_fd, .events = POLLIN}};
    int64_t until_ns = waiter->until_ns < waiter->ask_ns ? waiter->until_ns : waiter->ask_ns;
    int limit_ms = hf__keeper_limit_ms(client, until_ns);

    hf__unlock_client(client);
    int n = poll(fds, 2, limit_ms);
    bool works = n >= 0 ? !((fds[0].revents | fds[1].revents) & POLLNVAL)
                        : errno == EINTR; /* a signal is no news */
    hf__lock_client(client);
    if (works && n > 0 && fds[0].revents != 0)
        hear(client);
    if (reader->nudged) {
        eventfd_t count;
        eventfd_read(reader->nudge_fd, &count);
        reader->nudged = false;
    }
    return works;
}

void hf__wake_reader_borrow(hf_client *client, struct hf__waiter *waiter)
{
    struct hf__wake_reader *reader = &client->wake_reader;

    if (reader->caller != NULL || reader->keeper_reads || reader->nudge_fd < 0 ||
        hf__keeper_lend_wakes(client, true) < 0)
        return;
    reader->caller = waiter;
    while (waiter->news == 0 && listen_once(client, waiter))
        ;
    reader->caller = NULL;
    hf__keeper_lend_wakes(client, false);
}
