/* The table of store.h over the simulated network. hf__store_open() is wrapped: in this program
 * every URL opens this store. */
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/registry.h"
#include "ledger.h"
#include "server.h"
#include "stores/search.h"

#define CALLED_MAX 256

static struct sim_store *store_of(struct hf__store *store)
{
    return (struct sim_store *)store;
}

int __wrap_hf__store_open(const struct hf__host *host, const char *url,
                          struct hf__store **ret_store, hf_error *err);
int __wrap_hf__store_open(const struct hf__host *host, const char *url,
                          struct hf__store **ret_store, hf_error *err)
{
    struct sim_store *s = malloc(sizeof *s);

    (void)url, (void)err;
    *s = (struct sim_store){.base = {.type = &sim_store_type,
                                     .host = host,
                                     .capabilities = sim_store_type.capabilities,
                                     .calls_holders = network.tells_holders},
                            .process = sim.self->process,
                            .wake_fd = -1};
    s->called = malloc(CALLED_MAX * sizeof *s->called);
    if (!network.pushes)
        s->base.capabilities &= ~(uint32_t)HF_CAN_PUSH;
    network_join(s);
    *ret_store = &s->base;
    return 0;
}

static void close_store(struct hf__store *store)
{
    struct sim_store *s = store_of(store);

    if (s->running > 0)
        sim_fail("the store is closed while %d calls run", s->running);
    network_part(s);
    if (s->wake_fd >= 0)
        close(s->wake_fd);
    free(s->called);
    free(s);
}

static struct request *new_request(struct sim_store *s, enum op op, size_t count)
{
    struct request *q = sim_alloc(sizeof *q);

    *q = (struct request){.op = op, .store = s, .from = s->process, .count = count};
    q->items = sim_alloc((count + 1) * sizeof *q->items);
    return q;
}

static int ask(struct request *q, int64_t deadline_ns, hf_error *err)
{
    q->store->running++;
    int r = network_ask(q, deadline_ns, err);
    q->store->running--;
    return r;
}

/* Who bids with this ticket, and whether it can be called. */
static void note_attempt(struct sim_store *s, const struct hf__bid *bid)
{
    struct bid *known = ledger_bid(&bid->ticket, true);

    if (known->call == NULL) {
        known->call = ledger_call(bid->who->note);
        known->next = known->call->bids;
        known->call->bids = known;
    }
    known->store = s;
    known->listens |= s->wake_fd >= 0;
}

static int operate(struct hf__store *store, const struct hf__operation *op, int64_t deadline_ns,
                   struct hf__answer *ret_answer, hf_error *err)
{
    static const enum op kinds[] = {
        [HF__OPERATION_ATTEMPT] = OP_ATTEMPT,   [HF__OPERATION_RELEASE] = OP_RELEASE,
        [HF__OPERATION_WITHDRAW] = OP_WITHDRAW, [HF__OPERATION_BREAK] = OP_BREAK,
        [HF__OPERATION_READ] = OP_READ,         [HF__OPERATION_WRITE] = OP_WRITE};
    const struct hf__bid *bid = op->bid;

    if (op->kind == HF__OPERATION_ATTEMPT)
        note_attempt(store_of(store), bid);
    struct request *q = new_request(store_of(store), op->now ? OP_BREAK_NOW : kinds[op->kind], 1);
    q->retire_ms = op->retire_ms;
    q->at_least_ms = op->at_least_ms;
    if (op->kind == HF__OPERATION_WRITE)
        q->value = *op->value;
    q->items[0].generation = op->generation;
    q->terms = *bid;
    q->items[0].room = server_room(bid->name, bid->name_len);
    q->items[0].bid = ledger_bid(&bid->ticket, true);
    q->items[0].bid->room = q->items[0].room;
    int r = ask(q, deadline_ns, err);
    if (r == 0) {
        int64_t sent_ns = ret_answer->sent_ns;
        *ret_answer = q->items[0].answer;
        ret_answer->sent_ns = sent_ns;
        if (op->kind == HF__OPERATION_READ)
            *op->value = q->value;
    }
    return r;
}

static int renew(struct hf__store *store, struct hf__renewal *items, size_t count,
                 int64_t deadline_ns, hf_error *err)
{
    struct request *q = new_request(store_of(store), OP_RENEW, count);

    for (size_t i = 0; i < count; i++) {
        q->items[i].room = server_room(items[i].name, items[i].name_len);
        q->items[i].bid = ledger_bid(&items[i].ticket, true);
        q->items[i].bid->room = q->items[i].room;
        q->items[i].bid->store = q->store; /* also one that was adopted */
        q->items[i].bid->listens |= q->store->wake_fd >= 0;
        q->items[i].generation = items[i].generation;
    }
    int r = ask(q, deadline_ns, err);
    for (size_t i = 0; r == 0 && i < count; i++) {
        int64_t sent_ns = items[i].answer.sent_ns;
        items[i].answer = q->items[i].answer;
        items[i].answer.sent_ns = sent_ns;
    }
    return r;
}

static int inspect(struct hf__store *store, const struct hf__search *search, int64_t deadline_ns,
                   hf_error *err)
{
    struct request *q = new_request(store_of(store), OP_INSPECT, 0);
    static const struct hf__who nobody = {"host", "user", "program", "", 1};
    int r = ask(q, deadline_ns, err);

    for (size_t i = 0; r == 0 && i < q->found_count; i++) {
        struct hf__entry entry = q->found[i];
        const struct room *room = entry.who;
        entry.who = (void *)&nobody;
        if (hf__search_wants(search, room->name, room->name_len) &&
            hf__search_is_old_enough(search, &entry))
            r = search->found(search->ctx, room->name, room->name_len, &entry);
    }
    return r;
}

static int wake_fd(struct hf__store *store)
{
    struct sim_store *s = store_of(store);

    if (!network.pushes)
        return -1;
    if (s->wake_fd >= 0)
        sim_fail("the store is asked for its wake_fd twice");
    s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return s->wake_fd;
}

static void wake(struct hf__store *store, hf__wake_sink *sink, void *ctx)
{
    struct sim_store *s = store_of(store);
    struct call_out called[CALLED_MAX];
    eventfd_t n;

    if (s->reading)
        sim_fail("two threads read wake-ups at once");
    s->reading = true;
    s->running++;
    size_t count = s->called_count;
    memcpy(called, s->called, count * sizeof *called);
    s->called_count = 0;
    eventfd_read(s->wake_fd, &n);
    for (size_t i = 0; i < count; i++) {
        sim_pause();
        sink(ctx, called[i].bid != NULL ? &called[i].bid->ticket : NULL, called[i].generation);
    }
    s->reading = false;
    s->running--;
}

static const char *const schemes[] = {"sim", NULL};
static const struct hf__option options[] = {{0}};

const struct hf__store_type sim_store_type = {
    .abi = HF__STORE_ABI,
    .name = "sim",
    .schemes = schemes,
    .summary = "a simulated server",
    .capabilities = HF_CAN_SHARE | HF_CAN_LIMIT | HF_CAN_LEASE | HF_CAN_NEVER | HF_CAN_DELAY |
                    HF_CAN_QUEUE | HF_CAN_PUSH | HF_CAN_TOKEN | HF_CAN_CHECK | HF_CAN_BREAK |
                    HF_CAN_DETACH | HF_CAN_PROCESS | HF_CAN_PERSIST | HF_CAN_AT_LEAST |
                    HF_CAN_VALUE | HF_CAN_WANTED | HF_CAN_CACHE,
    .options = options,
    .open = NULL, /* see __wrap_hf__store_open() */
    .close = close_store,
    .operate = operate,
    .renew = renew,
    .inspect = inspect,
    .wake_fd = wake_fd,
    .wake = wake,
};
