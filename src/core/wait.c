/* How a caller sleeps until there is news.
 *
 * It sleeps on its own condition, without a time of its own: the keeper wakes it when the store
 * calls, when it is worth asking again, when its time is up or when it is cancelled. So there is
 * one clock to own in a test, and a suspended machine wakes everybody at the right moment. */
#include "core/client.h"
#include "util/banned.h"

int hf__wait_begin(hf_lock *lock, struct hf__waiter *waiter, hf_error *err)
{
    hf_client *client = lock->client;

    if (waiter->cancel != NULL && hf__keeper_watch(client, waiter->cancel) < 0)
        return hf__fail_errno(err, HF_SYSTEM, "the cancel object cannot be watched");
    lock->waiter = waiter;
    lock->duty = HF__HELP_WAITING;
    hf__table_add(&client->waiting, &lock->by_ticket,
                  hf__hash(client->seed, lock->bid.ticket.bits, sizeof lock->bid.ticket.bits));
    if (waiter->cancel != NULL && hf__cancel_fired(waiter->cancel))
        waiter->news |= HF__NEWS_CANCEL;
    if (client->closing)
        waiter->news |= HF__NEWS_CLOSED;
    return 0;
}

void hf__wait_end(hf_lock *lock)
{
    if (lock->waiter == NULL)
        return;
    hf__table_remove(&lock->client->waiting, &lock->by_ticket);
    hf__keeper_forget(lock);
    lock->waiter = NULL;
}

unsigned hf__wait_for_news(hf_lock *lock)
{
    struct hf__waiter *w = lock->waiter;

    hf__keeper_schedule(lock);
    while (w->news == 0)
        pthread_cond_wait(&w->woken, &lock->client->mutex);

    unsigned news = w->news;
    /* A request to ask is used up by asking, and a grant is in the bidder; the rest ends the wait.
     */
    w->news &= ~(unsigned)(HF__NEWS_ASK | HF__NEWS_GRANT);
    return news;
}

void hf__wait_tell(hf_lock *lock, enum hf__news news)
{
    if (lock->waiter == NULL)
        return;
    lock->waiter->news |= news;
    pthread_cond_signal(&lock->waiter->woken);
}
