/* A lock handle: its making and end, and giving it back. */
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/client.h"
#include "util/banned.h"

int hf__name_len(const char *name, size_t given, size_t *ret_len, hf_error *err)
{
    if (name == NULL)
        return hf__fail(err, HF_INVALID, "a lock needs a name");
    size_t len = given == HF_NTS ? strnlen(name, HF_NAME_MAX + 1) : given;
    if (len == 0)
        return hf__fail(err, HF_INVALID, "the name is empty; give it 1 to %d bytes", HF_NAME_MAX);
    if (len > HF_NAME_MAX)
        return hf__fail(err, HF_INVALID, "the name is too long; at most %d bytes", HF_NAME_MAX);
    *ret_len = len;
    return 0;
}

int hf__lock_new_ticket(hf_lock *lock, hf_error *err)
{
    if (hf__draw_ticket(lock->client, &lock->bid.ticket) < 0)
        return hf__fail(err, HF_SYSTEM, "there is no randomness to be had");
    hf__ticket_format(&lock->bid.ticket, lock->ticket);
    hf__bidder_init(&lock->bidder);
    lock->claim_unanswered = false;
    return 0;
}

static int join_client(hf_client *client, hf_lock *lock)
{
    hf__lock_client(client);
    bool room = hf__heap_reserve(&client->timers, client->lock_count + 1);
    if (room) {
        lock->next = client->locks;
        if (lock->next != NULL)
            lock->next->prev = lock;
        client->locks = lock;
        client->lock_count++;
        client->refs++;
    }
    hf__unlock_client(client);
    return room ? 0 : HF_NO_MEMORY;
}

int hf__lock_new(hf_client *client, const struct hf__name *name, const hf_options *opt,
                 hf_lock **ret_lock, hf_error *err)
{
    size_t note_len = opt->note != NULL ? strlen(opt->note) : 0;
    size_t size = sizeof(hf_lock) + name->len + 1 + note_len + 1;
    hf_lock *lock = malloc(size); /* glibc's calloc() goes past the thread's cache */

    if (lock == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    memset(lock, 0, size);
    memcpy(lock->name, name->bytes, name->len);
    if (note_len > 0)
        memcpy(lock->name + name->len + 1, opt->note, note_len);
    lock->client = client;
    lock->refs = 1;
    lock->count = 1;
    lock->lost_fd = -1;
    lock->owner = hf__reentry_owner(opt->owner);
    lock->reentrant = opt->reentrant != 0;
    lock->by_hand = opt->by_hand != 0;
    lock->on_at_risk = opt->on_at_risk;
    lock->on_lost = opt->on_lost;
    lock->arg = opt->arg;
    lock->max_hold_ns = INT64_MAX;
    lock->who = client->self;
    lock->who.note = lock->name + name->len + 1;
    lock->bid = (struct hf__bid){.name = lock->name,
                                 .name_len = name->len,
                                 .mode = opt->mode,
                                 .limit = opt->mode == HF_SHARED ? opt->limit : 0,
                                 .ttl_ms = opt->ttl_ms == HF_NEVER ? 0 : opt->ttl_ms,
                                 .lock_delay_ms = opt->lock_delay_ms,
                                 .retire_ms = client->retire_ms,
                                 .queue = opt->wait_ms != 0,
                                 .who = &lock->who};

    int r = hf__lock_new_ticket(lock, err);
    if (r == 0 && (r = join_client(client, lock)) < 0)
        hf__fail(err, r, NULL);
    if (r < 0) {
        free(lock);
        return r;
    }
    *ret_lock = lock;
    return 0;
}

void hf__lock_ref(hf_lock *lock)
{
    lock->refs++;
}

void hf__lock_unref(hf_lock *lock)
{
    hf_client *client = lock->client;

    if (--lock->refs > 0)
        return;
    if (lock->prev != NULL)
        lock->prev->next = lock->next;
    else
        client->locks = lock->next;
    if (lock->next != NULL)
        lock->next->prev = lock->prev;
    client->lock_count--;
    client->refs--; /* never the last: whoever calls this has one of its own */
    if (lock->lost_fd >= 0)
        close(lock->lost_fd);
    free(lock->trouble);
    free(lock);
}

bool hf__lock_holds(hf_lock *lock, int64_t now_ns)
{
    if (now_ns >= lock->max_hold_ns)
        hf__bidder_lose(&lock->bidder, HF_CAUSE_MAX_HOLD);
    return hf__bidder_holds(&lock->bidder, now_ns);
}

void hf__lock_show_lost(hf_lock *lock)
{
    int before;

    if (lock->lost_fd < 0)
        return;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE,
                           &before); /* the mutex is held, and this writes */
    eventfd_write(lock->lost_fd, 1);
    pthread_setcancelstate(before, NULL);
}

/* The error has its place only once there is one: a lock is made and freed with every acquire. */
void hf__lock_note_renewal(hf_lock *lock, const hf_error *err)
{
    if (err == NULL) {
        free(lock->trouble);
        lock->trouble = NULL;
        return;
    }
    if (lock->trouble == NULL)
        lock->trouble = malloc(sizeof *lock->trouble);
    if (lock->trouble != NULL)
        *lock->trouble = *err;
}

void hf__lock_tell_lost(hf_lock *lock)
{
    if (lock->lost_told || lock->bidder.phase != HF__LOST_IT)
        return;
    lock->lost_told = true;
    hf__lock_show_lost(lock);
    if (lock->on_lost != NULL && lock->duty == HF__KEEP) {
        lock->call_lost = true;
        hf__herald_push(lock);
    }
    hf__keeper_schedule(lock);
}

/* Takes a handle that its user gives back out of everybody's care. True: it was still held. */
static bool take_back(hf_lock *lock)
{
    hf_client *client = lock->client;
    bool held = hf__lock_holds(lock, hf__now_ns(client->env));

    hf__reentry_remove(lock);
    hf__keeper_forget(lock);
    hf__herald_forget(lock);
    return held;
}

/* The client is closed or closing: it has given everything back, or is about to. */
static int free_after_close(hf_lock *lock, hf_error *err)
{
    hf_client *client = lock->client;

    hf__lock_client(client);
    while (!client->closed)
        pthread_cond_wait(&client->changed, &client->mutex);
    if (--lock->count == 0) {
        client->refs++;
        hf__lock_unref(lock);
        hf__unref_client(client);
    } else {
        hf__unlock_client(client);
    }
    return hf__fail(err, HF_CLOSED, NULL);
}

/* A callback of this very lock runs on this thread, and would be waited for. Mutex held. */
static bool in_own_callback(const hf_lock *lock)
{
    return lock->in_call && hf__herald_is_me(lock->client);
}

static int release(hf_lock *lock, hf_error *err)
{
    hf_client *client = lock->client;

    hf__lock_client(client);
    if (in_own_callback(lock)) {
        hf__unlock_client(client);
        return hf__fail(err, HF_DEADLOCK, "a callback must not release the lock it is about");
    }
    if (lock->count > 1) {
        lock->count--;
        bool held = hf__lock_holds(lock, hf__now_ns(client->env));
        hf__unlock_client(client);
        return held ? 0 : hf__fail(err, HF_STALE, NULL);
    }
    bool held = take_back(lock);
    hf_cause cause = lock->bidder.cause;
    hf__unlock_client(client);

    /* A holder that outstayed max_hold and now says so itself need not keep others waiting. */
    int r = held || cause == HF_CAUSE_MAX_HOLD ? hf__undo(lock, true, err) : 0;
    if (!held)
        r = hf__fail(err, HF_STALE, "it was lost: %s", hf_cause_text(cause));
    char shown[80];
    if (r < 0)
        hf__wrap(err, r, "release '%s'",
                 hf__printable(lock->name, lock->bid.name_len, shown, sizeof shown));
    hf__lock_client(client);
    hf__lock_unref(lock);
    hf__unlock_client(client);
    return r;
}

int hf_lock_release(hf_lock *lock, hf_error *err)
{
    if (lock == NULL)
        return 0;
    hf_client *client = lock->client;
    struct hf__visit visit;
    int r = hf__enter(client, &visit, err);
    if (r == HF_CLOSED)
        return free_after_close(lock, err);
    if (r < 0)
        return r;
    r = release(lock, err);
    hf__leave(client, &visit);
    return r;
}

/* One renewal by the caller, which also claims. */
int hf__lock_renew_once(hf_lock *lock, hf_error *err)
{
    hf_client *client = lock->client;
    struct hf__renewal item = {.name = lock->name,
                               .name_len = lock->bid.name_len,
                               .ticket = lock->bid.ticket,
                               .answer.sent_ns = hf__now_ns(client->env)};
    hf_error why = {0};

    hf__lock_client(client);
    item.generation = lock->bidder.generation;
    hf__unlock_client(client);
    int r = client->store->type->renew(client->store, &item, 1, hf__op_deadline(client), &why);
    hf__lock_client(client);
    hf__after_call(client);
    int64_t now_ns = hf__now_ns(client->env);
    hf__lock_note_renewal(lock, r == 0 ? NULL : &why);
    lock->claim_unanswered |= r == HF_UNKNOWN;
    if (r == 0)
        hf__bidder_renewed(&lock->bidder, item.generation, &item.answer, now_ns);
    else if (err != NULL)
        *err = why;
    if (!hf__lock_holds(lock, now_ns)) {
        hf__lock_tell_lost(lock);
        r = hf__fail(err, HF_LOST, "it was lost: %s", hf_cause_text(lock->bidder.cause));
    }
    if (lock->duty == HF__KEEP)
        hf__keeper_schedule(lock);
    hf__unlock_client(client);
    return r;
}

int hf_lock_renew(hf_lock *lock, hf_error *err)
{
    if (lock == NULL)
        return hf__fail(err, HF_INVALID, "there is no lock");
    struct hf__visit visit;
    int r = hf__enter(lock->client, &visit, err);
    if (r < 0)
        return r;

    hf__lock_client(lock->client);
    bool held = hf__lock_holds(lock, hf__now_ns(lock->client->env));
    hf_cause cause = lock->bidder.cause;
    hf__unlock_client(lock->client);
    r = held ? hf__lock_renew_once(lock, err)
             : hf__fail(err, HF_LOST, "it was lost: %s", hf_cause_text(cause));
    hf__leave(lock->client, &visit);
    return r;
}

int hf_lock_detach(hf_lock *lock, hf_error *err)
{
    if (lock == NULL)
        return hf__fail(err, HF_INVALID, "there is no lock");
    hf_client *client = lock->client;
    struct hf__visit visit;
    int r = hf__enter(client, &visit, err);
    if (r < 0)
        return r;
    hf__lock_client(client);
    unsigned count = lock->count;
    bool claimed = lock->bidder.claimed, in_callback = in_own_callback(lock);
    hf__unlock_client(client);
    if (in_callback)
        r = hf__fail(err, HF_DEADLOCK, "a callback must not detach the lock it is about");
    else if (!(client->store->capabilities & HF_CAN_DETACH))
        r = hf__fail(err, HF_UNSUPPORTED, "this store's locks end with their client");
    else if (count > 1)
        r = hf__fail(err, HF_INVALID, "it is held %u times; release it to once", count);
    else if (!claimed)
        r = hf__lock_renew_once(lock, err); /* somebody else will go on: the store must know */
    if (r == 0) {
        hf__lock_client(client);
        if (hf__lock_holds(lock, hf__now_ns(client->env))) {
            take_back(lock);
            hf__lock_unref(lock);
        } else {
            r = hf__fail(err, HF_LOST, "it was lost: %s", hf_cause_text(lock->bidder.cause));
        }
        hf__unlock_client(client);
    }
    hf__leave(client, &visit);
    return r;
}
