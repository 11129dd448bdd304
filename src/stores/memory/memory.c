/* memory://name - locks between the threads of one process, and the reference for every other
 * store.
 *
 * A record per name, the doorman applied to it under a mutex: that is the atomic step. Wake-ups go
 * straight into the box of the client that waits. Clients that open the same name share the same
 * locks; they end with the process. */
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "stores/builtin.h"
#include "stores/memory/memory.h"
#include "util/banned.h"

static struct memory *memory_of(struct hf__store *store)
{
    return (struct memory *)store;
}

static struct hf__moment moment(const struct memory *m)
{
    const struct hf_env *env = m->base.host->env;

    return (struct hf__moment){hf__now_ns(env) / HF__NS_PER_MS, env->wall_us(env->ctx)};
}

static int no_memory(hf_error *err)
{
    return hf__fail(err, HF_NO_MEMORY, NULL);
}

static int open_memory(const struct hf__url *url, const struct hf__host *host,
                       struct hf__store **ret_store, hf_error *err)
{
    struct memory *m = calloc(1, sizeof *m);
    const char *name = url->host[0] != '\0' ? url->host : url->path;

    if (m == NULL)
        return no_memory(err);
    m->client = hf__client_new(host->self);
    m->space = m->client != NULL ? hf__space_join(name, host->env) : NULL;
    if (m->space == NULL) {
        free(m->client);
        free(m);
        return no_memory(err);
    }
    m->base = (struct hf__store){.type = &hf__memory_store_type,
                                 .host = host,
                                 .capabilities = hf__memory_store_type.capabilities};
    *ret_store = &m->base;
    return 0;
}

static void close_memory(struct hf__store *store)
{
    struct memory *m = memory_of(store);
    struct client *client = m->client;

    pthread_mutex_lock(&m->space->mutex);
    if (client->fd >= 0)
        close(client->fd);
    client->fd = -1; /* its locks may stay; nobody listens for them */
    while (client->first != NULL) {
        struct wake *wake = client->first;
        client->first = wake->next;
        free(wake);
    }
    client->last = &client->first;
    hf__client_unref(client);
    pthread_mutex_unlock(&m->space->mutex);
    free(m);
}

/* True if the doorman took `caller` into the record, be it only to let it go again. */
static bool is_kept(const struct hf__record *record, const struct caller *caller)
{
    for (size_t i = record->count; i > 0; i--) {
        if (record->entries[i - 1].who == caller)
            return true;
    }
    return false;
}

static int attempt(struct hf__store *store, const struct hf__bid *bid, int64_t deadline_ns,
                   struct hf__answer *ret_answer, hf_error *err)
{
    struct memory *m = memory_of(store);
    int64_t sent_ns = ret_answer->sent_ns;

    (void)deadline_ns;
    pthread_mutex_lock(&m->space->mutex);
    struct room *room = hf__space_get(m->space, bid->name, bid->name_len);
    struct caller *caller = hf__caller_new(m->client, bid->who->note);
    if (room == NULL || caller == NULL || !hf__room_reserve(room)) {
        hf__caller_free(caller);
        pthread_mutex_unlock(&m->space->mutex);
        return no_memory(err);
    }
    struct hf__moment at = moment(m);
    *ret_answer = hf__doorman_attempt(&room->record, bid, caller, at);
    ret_answer->sent_ns = sent_ns;
    room->touched_ms = at.now_ms;
    if (!is_kept(&room->record, caller))
        hf__caller_free(caller);
    hf__room_settle(room, &bid->ticket);
    pthread_mutex_unlock(&m->space->mutex);
    return 0;
}

enum operation { RELEASE, WITHDRAW, BREAK, BREAK_NOW };

static struct hf__answer apply(struct hf__record *record, const struct hf__ticket *ticket,
                               enum operation operation, int64_t retire_ms, struct hf__moment at)
{
    if (operation == RELEASE)
        return hf__doorman_release(record, ticket, retire_ms, at);
    if (operation == WITHDRAW)
        return hf__doorman_withdraw(record, ticket, retire_ms, at);
    return hf__doorman_break(record, ticket, operation == BREAK_NOW, at);
}

static int change(struct hf__store *store, const struct hf__bid *bid, enum operation operation,
                  int64_t retire_ms, struct hf__answer *ret_answer, hf_error *err)
{
    struct memory *m = memory_of(store);
    int64_t sent_ns = ret_answer->sent_ns;
    int r = 0;

    pthread_mutex_lock(&m->space->mutex);
    struct room *room = retire_ms > 0 ? hf__space_get(m->space, bid->name, bid->name_len)
                                      : hf__space_find(m->space, bid->name, bid->name_len);
    if (room == NULL && retire_ms == 0) {
        *ret_answer = (struct hf__answer){.verdict = HF__STALE};
    } else if (room == NULL || !hf__room_reserve(room)) {
        r = no_memory(err);
    } else {
        struct hf__moment at = moment(m);
        *ret_answer = apply(&room->record, &bid->ticket, operation, retire_ms, at);
        room->touched_ms = at.now_ms;
        hf__room_settle(room, NULL);
    }
    ret_answer->sent_ns = sent_ns;
    pthread_mutex_unlock(&m->space->mutex);
    return r;
}

static int release(struct hf__store *store, const struct hf__bid *bid, int64_t retire_ms,
                   int64_t deadline_ns, struct hf__answer *ret_answer, hf_error *err)
{
    (void)deadline_ns;
    return change(store, bid, RELEASE, retire_ms, ret_answer, err);
}

static int withdraw(struct hf__store *store, const struct hf__bid *bid, int64_t retire_ms,
                    int64_t deadline_ns, struct hf__answer *ret_answer, hf_error *err)
{
    (void)deadline_ns;
    return change(store, bid, WITHDRAW, retire_ms, ret_answer, err);
}

static int break_ticket(struct hf__store *store, const struct hf__bid *bid, bool now,
                        int64_t deadline_ns, struct hf__answer *ret_answer, hf_error *err)
{
    (void)deadline_ns;
    return change(store, bid, now ? BREAK_NOW : BREAK, 0, ret_answer, err);
}

static int renew(struct hf__store *store, struct hf__renewal *items, size_t count,
                 int64_t deadline_ns, hf_error *err)
{
    struct memory *m = memory_of(store);

    (void)deadline_ns, (void)err;
    pthread_mutex_lock(&m->space->mutex);
    for (size_t i = 0; i < count; i++) {
        struct room *room = hf__space_find(m->space, items[i].name, items[i].name_len);
        struct hf__answer answer = {.verdict = HF__GONE_LOST};
        if (room != NULL) {
            struct hf__moment at = moment(m);
            answer = hf__doorman_renew(&room->record, &items[i].ticket, items[i].generation, at);
            room->touched_ms = at.now_ms;
            hf__room_settle(room, NULL);
        }
        answer.sent_ns = items[i].answer.sent_ns;
        items[i].answer = answer;
    }
    pthread_mutex_unlock(&m->space->mutex);
    return 0;
}

static int upkeep(struct hf__store *store, enum hf__upkeep what, int64_t retain_ms,
                  int64_t deadline_ns, uint64_t *ret_count, hf_error *err)
{
    struct memory *m = memory_of(store);

    (void)deadline_ns, (void)err;
    if (what != HF__PURGE)
        return 0;
    pthread_mutex_lock(&m->space->mutex);
    struct hf__moment at = moment(m);
    *ret_count = hf__space_purge(m->space, at.now_ms - retain_ms, at);
    pthread_mutex_unlock(&m->space->mutex);
    return 0;
}

static int diagnose(struct hf__store *store, hf_finding_callback *found, void *arg,
                    int64_t deadline_ns, hf_error *err)
{
    (void)store, (void)deadline_ns, (void)err;
    found(0, "C1", "all clauses hold between the threads of this process", arg);
    found(1, NULL, "the locks end with the process; no other process sees them", arg);
    return 0;
}

static int wake_fd(struct hf__store *store)
{
    struct memory *m = memory_of(store);
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    pthread_mutex_lock(&m->space->mutex);
    m->client->fd = fd;
    pthread_mutex_unlock(&m->space->mutex);
    return fd;
}

static void wake(struct hf__store *store, hf__wake_sink *sink, void *ctx)
{
    struct memory *m = memory_of(store);
    eventfd_t count;

    pthread_mutex_lock(&m->space->mutex);
    struct wake *first = m->client->first;
    m->client->first = NULL;
    m->client->last = &m->client->first;
    eventfd_read(m->client->fd, &count);
    pthread_mutex_unlock(&m->space->mutex);

    while (first != NULL) {
        struct wake *next = first->next;
        sink(ctx, &first->ticket, first->generation);
        free(first);
        first = next;
    }
}

static const char *const schemes[] = {"memory", NULL};
static const struct hf__option options[] = {{0}};

const struct hf__store_type hf__memory_store_type = {
    .abi = HF__STORE_ABI,
    .name = "memory",
    .schemes = schemes,
    .summary = "between the threads of one process",
    .capabilities = HF_CAN_SHARE | HF_CAN_LIMIT | HF_CAN_LEASE | HF_CAN_NEVER | HF_CAN_DELAY |
                    HF_CAN_QUEUE | HF_CAN_PUSH | HF_CAN_TOKEN | HF_CAN_CHECK | HF_CAN_BREAK |
                    HF_CAN_DETACH,
    .options = options,
    .open = open_memory,
    .close = close_memory,
    .attempt = attempt,
    .withdraw = withdraw,
    .release = release,
    .renew = renew,
    .inspect = hf__memory_inspect,
    .break_ticket = break_ticket,
    .upkeep = upkeep,
    .diagnose = diagnose,
    .wake_fd = wake_fd,
    .wake = wake,
};
