/* The ear: whoever reads what the store calls out.
 *
 * A store calls many waiters on one descriptor. The keeper reads it when nobody else does. But a
 * caller that has nothing to do but wait reads it itself, and so a call that is for it costs no
 * second thread; calls for others it passes on, as the keeper would. One at a time has the ear: the
 * first that goes to sleep while the keeper has it. When it is through the keeper has it again,
 * which takes no waking up. */
#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/client.h"
#include "util/banned.h"

/* Calls. --------------------------------------------------------------------------------------- */

/* Mutex held; gives what hf__wait_wake() needs. */
static struct hf__waiter *deliver(hf_lock *lock, uint64_t generation)
{
    enum hf__advice advice =
        hf__bidder_woken(&lock->bidder, generation, hf__now_ns(lock->client->env));

    if (advice == HF__HOLD)
        return hf__wait_note(lock, HF__NEWS_GRANT);
    return advice == HF__ASK ? hf__wait_note(lock, HF__NEWS_ASK) : NULL;
}

static void ask_all(struct hf__link *link, void *ctx)
{
    (void)ctx;
    hf__wait_tell((hf_lock *)((char *)link - offsetof(hf_lock, by_ticket)), HF__NEWS_ASK);
}

/* A call for somebody who does not wait: the grant it holds may be over (its connection was lost,
 * it was broken). The hand asks. */
static void doubt(hf_client *client, const struct hf__ticket *ticket)
{
    for (hf_lock *lock = client->locks; lock != NULL; lock = lock->next) {
        if (lock->duty == HF__KEEP && hf__ticket_equal(&lock->bid.ticket, ticket))
            hf__hand_push(lock);
    }
}

static void wake_sink(void *ctx, const struct hf__ticket *ticket, uint64_t generation)
{
    hf_client *client = ctx;
    struct hf__waiter *noted = NULL;

    hf__lock_client(client);
    if (ticket == NULL) {
        hf__table_each(&client->waiting, ask_all, NULL);
    } else {
        uint64_t hash = hf__hash(client->seed, ticket->bits, sizeof ticket->bits);
        struct hf__link *link = hf__table_find(&client->waiting, hash);
        if (link == NULL && generation == 0)
            doubt(client, ticket);
        for (; link != NULL; link = hf__table_next(link)) {
            hf_lock *lock = (hf_lock *)((char *)link - offsetof(hf_lock, by_ticket));
            if (noted == NULL && hf__ticket_equal(&lock->bid.ticket, ticket))
                noted = deliver(lock, generation);
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
bool hf__ear_open(hf_client *client, int64_t sent_ns)
{
    if (client->listening == HF__NOT_ASKED) {
        client->listening = HF__BEING_ASKED;
        hf__unlock_client(client);
        const struct hf__store_type *type = client->store->type;
        int fd = type->wake_fd != NULL ? type->wake_fd(client->store) : -1;
        int nudge_fd = fd >= 0 ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1;
        hf__lock_client(client);
        client->wake_fd = fd;
        client->nudge_fd = nudge_fd;
        bool pushes = fd >= 0 && hf__keeper_hear(client) == 0;
        client->listening_since_ns = pushes ? hf__now_ns(client->env) : INT64_MIN;
        client->listening = HF__ASKED;
        pthread_cond_broadcast(&client->changed);
    }
    while (client->listening == HF__BEING_ASKED)
        pthread_cond_wait(&client->changed, &client->mutex);
    return sent_ns < client->listening_since_ns;
}

void hf__ear_serve(hf_client *client)
{
    hf__lock_client(client);
    if (client->ear == NULL) { /* else somebody took it while we were on our way */
        client->keeper_hears = true;
        hear(client);
        client->keeper_hears = false;
    }
    hf__unlock_client(client);
}

void hf__ear_close(hf_client *client)
{
    if (client->nudge_fd >= 0)
        close(client->nudge_fd);
    client->nudge_fd = -1;
}

/* A caller's. All with the mutex held. --------------------------------------------------------- */
void hf__ear_nudge(hf_client *client)
{
    client->nudged = true;
    eventfd_write(client->nudge_fd, 1);
}

/* Sleeps until there is something to read, or a nudge. False: that cannot be had, as in a process
 * that may have no more descriptors, and the keeper is to read. */
static bool listen_once(hf_client *client)
{
    struct pollfd fds[] = {{.fd = client->wake_fd, .events = POLLIN},
                           {.fd = client->nudge_fd, .events = POLLIN}};

    hf__unlock_client(client);
    int n = poll(fds, 2, -1);
    bool works = n > 0 || errno == EINTR; /* a signal is no news */
    hf__lock_client(client);
    if (n > 0 && fds[0].revents != 0)
        hear(client);
    if (client->nudged) {
        eventfd_t count;
        eventfd_read(client->nudge_fd, &count);
        client->nudged = false;
    }
    return works;
}

void hf__ear_borrow(hf_client *client, struct hf__waiter *waiter)
{
    if (client->ear != NULL || client->keeper_hears || client->nudge_fd < 0 ||
        hf__keeper_lend(client, true) < 0)
        return;
    client->ear = waiter;
    while (waiter->news == 0 && listen_once(client))
        ;
    client->ear = NULL;
    hf__keeper_lend(client, false);
}
