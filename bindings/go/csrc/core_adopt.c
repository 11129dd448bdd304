/* Taking over a lock by its ticket: look at the grant, renew it, keep it. */
#include "core_acquire.h"

#include "base_banned.h"

/* Where leases end with their client, a lock that never expires may still stay. */
bool hf__can_pass_on(const hf_client *client, bool never_expires)
{
    uint32_t can = client->capabilities;

    return (can & HF_CAN_DETACH) ||
           (never_expires && (can & HF_CAN_NEVER) && (can & HF_CAN_PERSIST));
}

struct adoption {
    hf_lock *lock;
    bool found;
};

/* What was bid is the store's to say, not the adopter's. */
static int take_terms(void *ctx, const char *name, size_t name_len, const struct hf__entry *entry)
{
    struct adoption *adoption = ctx;
    struct hf__bid *bid = &adoption->lock->bid;

    (void)name, (void)name_len;
    if (entry->place != HF__PLACE_INSIDE || !hf__ticket_equal(&entry->ticket, &bid->ticket))
        return 0;
    adoption->found = true;
    bid->mode = entry->mode;
    bid->limit = entry->limit;
    bid->ttl_ms = entry->ttl_ms;
    bid->lock_delay_ms = entry->lock_delay_ms;
    return 0;
}

static int find_terms(hf_lock *lock, hf_error *err)
{
    hf_client *client = lock->client;
    struct adoption adoption = {.lock = lock};
    struct hf__search search = {
        .name = lock->name, .name_len = lock->bid.name_len, .found = take_terms, .ctx = &adoption};

    hf__unlock_client(client);
    int r = client->store->type->inspect(client->store, &search, hf__op_deadline(client), err);
    hf__lock_client(client);
    if (r == 0 && !adoption.found)
        r = hf__fail(err, HF_STALE, NULL);
    return r;
}

/* The first renewal does not know the generation: it learns it, and restarts the lease in force. */
static int learn_grant(hf_lock *lock, hf_error *err)
{
    hf_client *client = lock->client;
    struct hf__renewal item = {.name = lock->name,
                               .name_len = lock->bid.name_len,
                               .ticket = lock->bid.ticket,
                               .answer.sent_ns = hf__now_ns(client->env)};

    hf__unlock_client(client);
    int r = client->store->type->renew(client->store, &item, 1, hf__op_deadline(client), err);
    hf__lock_client(client);
    if (r < 0)
        return r;
    enum hf__advice advice =
        hf__bidder_answered(&lock->bidder, &item.answer, hf__now_ns(client->env));
    return advice == HF__ADVICE_HOLD ? 0 : hf__fail(err, HF_STALE, NULL);
}

int hf__adopt(hf_lock *lock, const char *ticket, const hf_options *opt, hf_error *err)
{
    hf_client *client = lock->client;

    if (!hf__can_pass_on(client, true))
        return hf__fail(err, HF_UNSUPPORTED, "this store's locks end with their client");
    if (!hf__ticket_parse(ticket, &lock->bid.ticket))
        return hf__fail(err, HF_INVALID, "a ticket has 32 hex digits");
    hf__ticket_format(&lock->bid.ticket, lock->ticket);
    /* An attempt of whoever took it may still be on its way: the release must retire the ticket. */
    hf__bidder_unanswered(&lock->bidder);
    lock->order_is_unknown = true;

    int r = find_terms(lock, err);
    if (r == 0 && !hf__can_pass_on(client, lock->bid.ttl_ms == HF__NEVER))
        r = hf__fail(err, HF_UNSUPPORTED, "this store's leases end with their client");
    if (r == 0 && opt->max_hold_ms > 0 && lock->bid.ttl_ms == HF__NEVER)
        r = hf__fail(err, HF_INVALID, "max-hold needs a lease; this lock never expires");
    if (r == 0)
        r = learn_grant(lock, err);
    if (r == 0)
        r = hf__lock_renew_once(lock, err);
    if (r == HF_LOST)
        return hf__fail(err, HF_STALE, NULL);
    if (r < 0)
        return r;
    hf__lock_keep(lock, opt->max_hold_ms);
    return 0;
}
