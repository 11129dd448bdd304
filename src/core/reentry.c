/* Which owner has which name: for counting reentrant acquires, and for refusing a wait for oneself
 * (C11). The count lives in the lock, so it cannot outlive the lease. */
#include <stdatomic.h>
#include <string.h>

#include "core/client.h"

#include "base/banned.h"

/* Not pthread_self(): the next thread may be given that of one that has ended, and would enter what
 * that one took and somebody else still holds. */
static uint64_t number_of_this_thread(void)
{
    static _Atomic uint64_t last;
    static _Thread_local uint64_t mine;

    if (mine == 0)
        mine = atomic_fetch_add(&last, 1) + 1;
    return mine;
}

uint64_t hf__reentry_owner(uint64_t given)
{
    /* The high bit keeps it apart from keys the caller chose. */
    return given != 0 ? given : (UINT64_C(1) << 63 | number_of_this_thread());
}

static uint64_t hash(const hf_client *client, const char *name, size_t len, uint64_t owner)
{
    return hf__hash(client->seed ^ owner, name, len);
}

static hf_lock *lock_of(struct hf__link *link)
{
    return (hf_lock *)((char *)link - offsetof(hf_lock, by_owner));
}

hf_lock *hf__reentry_find(hf_client *client, const char *name, size_t name_len, uint64_t owner)
{
    struct hf__link *link = hf__table_find(&client->by_owner, hash(client, name, name_len, owner));
    hf_lock *lost = NULL;

    if (owner == HF__OWNER_NOBODY)
        return NULL;
    for (; link != NULL; link = hf__table_next(link)) {
        hf_lock *lock = lock_of(link);
        if (lock->owner != owner || lock->bid.name_len != name_len ||
            memcmp(lock->name, name, name_len) != 0)
            continue;
        if (lock->bidder.phase != HF__PHASE_LOST)
            return lock;
        lost = lock;
    }
    return lost;
}

void hf__reentry_add(hf_lock *lock)
{
    if (lock->owner == HF__OWNER_NOBODY)
        return;
    hf__table_add(&lock->client->by_owner, &lock->by_owner,
                  hash(lock->client, lock->name, lock->bid.name_len, lock->owner));
}

/* Fine if it was not added. */
void hf__reentry_remove(hf_lock *lock)
{
    hf__table_remove(&lock->client->by_owner, &lock->by_owner);
}
