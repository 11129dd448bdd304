/* Mending a store: breaking locks, setting up, purging, diagnosing. */
#include "core_client.h"

#include "base_banned.h"

static int break_ticket(hf_client *client, const struct hf__bid *bid, bool now, hf_error *err)
{
    struct hf__operation op = {.kind = HF__OPERATION_BREAK, .bid = bid, .now = now};
    struct hf__answer answer = {0};

    if (!(client->store->capabilities & HF_CAN_BREAK))
        return hf__fail(err, HF_UNSUPPORTED, "%s cannot break a lock", client->store->type->name);
    int r = client->store->type->operate(client->store, &op, hf__op_deadline(client), &answer, err);
    hf__after_call_unlocked(client);
    if (r == 0 && answer.verdict == HF__VERDICT_STALE)
        r = hf__fail(err, HF_NOT_FOUND, NULL);
    return r;
}

int hf_break(hf_client *client, const char *name, size_t name_len, const char *ticket, int now,
             hf_error *err)
{
    struct hf__bid bid = {.name = name};
    char shown[80];
    struct hf__visit visit;
    int r = hf__enter(client, &visit, err);

    if (r < 0)
        return r;
    r = hf__name_len(name, name_len, &bid.name_len, err);
    if (r == 0 && !hf__ticket_parse(ticket, &bid.ticket))
        r = hf__fail(err, HF_INVALID, "a ticket has 32 hex digits");
    if (r == 0)
        r = break_ticket(client, &bid, now != 0, err);
    if (r < 0 && bid.name_len > 0)
        hf__wrap(err, r, "break '%s'", hf__printable(name, bid.name_len, shown, sizeof shown));
    hf__leave(client, &visit);
    return r;
}

static int upkeep(hf_client *client, enum hf__upkeep what, int64_t retain_ms, uint64_t *ret_count,
                  hf_error *err)
{
    struct hf__visit visit;
    int r = hf__enter(client, &visit, err);

    if (r < 0)
        return r;
    *ret_count = 0;
    if (client->store->type->upkeep != NULL)
        r = client->store->type->upkeep(client->store, what, retain_ms, hf__op_deadline(client),
                                        ret_count, err);
    hf__leave(client, &visit);
    return r;
}

int hf_setup(hf_client *client, hf_error *err)
{
    uint64_t count;

    return upkeep(client, HF__UPKEEP_SETUP, 0, &count, err);
}

int hf_purge(hf_client *client, int64_t retain_ms, uint64_t *ret_count, hf_error *err)
{
    uint64_t count;

    if (retain_ms < 0)
        return hf__fail(err, HF_INVALID, "retain_ms is negative");
    if (retain_ms == 0 && client != NULL)
        retain_ms = client->retain_ms;
    return upkeep(client, HF__UPKEEP_PURGE, retain_ms, ret_count != NULL ? ret_count : &count, err);
}

int hf_diagnose(hf_client *client, hf_finding_callback *found, void *arg, hf_error *err)
{
    struct hf__visit visit;
    struct hf__calling calling;
    int r = hf__enter_locked(client, &visit, err);

    if (r < 0)
        return r;
    hf__calling_begin(client, &calling);
    hf__unlock_client(client);
    if (found == NULL)
        r = hf__fail(err, HF_INVALID, "there is nobody to tell");
    else if (client->store->type->diagnose != NULL)
        r = client->store->type->diagnose(client->store, found, arg, hf__op_deadline(client), err);
    if (r == HF_UNKNOWN) /* as for a look: there is no outcome */
        r = hf__wrap(err, HF_UNAVAILABLE, "diagnose");
    hf__lock_client(client);
    hf__calling_end(client, &calling);
    hf__leave_unlock(client, &visit);
    return r;
}
