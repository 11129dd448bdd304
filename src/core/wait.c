/* How a caller sleeps until there is news.
 *
 * One of them reads what the store calls (wake_reader.h), the others sleep on a condition of their
 * own; none has a time of its own. The keeper wakes it when it is worth asking again, when its time
 * is up or when it is cancelled; whoever reads, when the store calls. So there is one clock to own
 * in a test, and a suspended machine wakes everybody at the right moment. A bid that was started has
 * no caller: news make it ready for a runner (started.h). */
#include <stdlib.h>

#include "core/started.h"

#include "base/banned.h"

void hf__waiter_unref(struct hf__waiter *waiter)
{
    if (--waiter->refs > 0)
        return;
    if (waiter->has_caller)
        pthread_cond_destroy(&waiter->woken);
    free(waiter);
}

int hf__wait_begin(hf_lock *lock, int64_t until_ns, hf_cancel *cancel, hf_error *err)
{
    hf_client *client = lock->client;

    if (lock->duty == HF__DUTY_WAIT)
        return 0;
    if (cancel != NULL && hf__keeper_watch(client, cancel) < 0)
        return hf__fail_errno(err, HF_SYSTEM, "the cancel object cannot be watched");
    bool has_caller = lock->started == NULL;
    struct hf__waiter *waiter =
        malloc(has_caller ? sizeof *waiter : offsetof(struct hf__waiter, woken));
    if (waiter == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    waiter->refs = 1;
    waiter->news = 0;
    waiter->until_ns = until_ns;
    waiter->ask_ns = waiter->sign_ns = INT64_MAX;
    waiter->cancel = cancel;
    waiter->has_caller = has_caller;
    if (has_caller)
        pthread_cond_init(&waiter->woken, NULL);
    lock->waiter = waiter;
    hf__duty_begin(lock, HF__DUTY_WAIT);
    if (cancel != NULL && hf__cancel_fired(cancel))
        waiter->news |= HF__NEWS_CANCEL;
    if (client->closing)
        waiter->news |= HF__NEWS_CLOSED;
    return 0;
}

void hf__wait_for_news(hf_lock *lock)
{
    struct hf__waiter *w = lock->waiter;

    if (w->news == 0)
        hf__wake_reader_borrow(lock->client, w);
    while (w->news == 0)
        pthread_cond_wait(&w->woken, &lock->client->mutex);
}

unsigned hf__wait_take_news(hf_lock *lock)
{
    unsigned news = lock->waiter->news;

    /* A request to ask is used up by asking, and a grant is in the bidder; the rest ends the
     * wait. */
    lock->waiter->news &= ~(unsigned)(HF__NEWS_ASK | HF__NEWS_GRANT);
    return news;
}

struct hf__waiter *hf__wait_note(hf_lock *lock, enum hf__news news)
{
    if (lock->waiter == NULL)
        return NULL;
    lock->waiter->news |= news;
    if (lock->started != NULL) {
        hf__started_ready(lock->started);
        return NULL;
    }
    lock->waiter->refs++;
    return lock->waiter;
}

void hf__wait_wake(hf_client *client, struct hf__waiter *noted)
{
    if (noted == NULL)
        return;
    pthread_cond_signal(&noted->woken);
    hf__lock_client(client);
    hf__waiter_unref(noted);
    hf__unlock_client(client);
}

void hf__wait_tell(hf_lock *lock, enum hf__news news)
{
    hf_client *client = lock->client;

    if (lock->waiter == NULL)
        return;
    lock->waiter->news |= news;
    if (lock->started != NULL)
        hf__started_ready(lock->started);
    else if (client->wake_reader.caller == lock->waiter)
        hf__wake_reader_nudge(client);
    else
        pthread_cond_signal(&lock->waiter->woken);
}
