/* memory://name - locks between the threads of one process, and the reference for every other
 * store.
 *
 * A room per name, the doorman applied to the part of it that matters (window.h) under a mutex: that
 * is the atomic step. Wake-ups go straight into the box of the client that waits. Clients that open
 * the same name share the same locks; they end with the process. */
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "stores/builtin.h"
#include "stores/memory/memory.h"
#include "stores/memory/window.h"

#include "base/banned.h"

#define FIRST_WAITERS 4
#define PURGE_AT_ONCE 2

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
    m->retain_ms = hf__url_number(url, "retain");
    m->history = hf__url_number(url, "history");
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
    hf__space_leave(m->space);
    pthread_mutex_unlock(&m->space->mutex);
    free(m);
}

/* Reads or writes what the doorman has let it. */
static void pass_value(struct room *room, const struct hf__operation *op,
                       const struct hf__record *record)
{
    if (op->kind == HF__OPERATION_READ) {
        *op->value = room->value != NULL ? *room->value : (struct hf__value){0};
        return;
    }
    *room->value = *op->value;
    room->value->generation = record->value_generation;
    room->value->order = record->value_order;
    room->value->doubt = record->doubt;
}

/* A holder that opens the value may leave it in doubt: then there is a place for that. */
static bool make_value(struct room *room, const struct hf__operation *op)
{
    bool opens =
        (op->kind == HF__OPERATION_READ || op->kind == HF__OPERATION_WRITE) && op->generation != 0;

    if (opens && room->value == NULL)
        room->value = calloc(1, sizeof *room->value);
    return !opens || room->value != NULL;
}

/* Loads, decides and saves, with a larger window as long as the doorman wants one. Space locked.
 * HF_NO_MEMORY: nothing was changed. */
static int apply(struct memory *m, struct room *room, const struct hf__operation *op,
                 struct hf__answer *ret_answer)
{
    struct window w = {.space = m->space, .room = room, .waiters = FIRST_WAITERS};
    struct hf__moment at = moment(m);
    bool attempt = op->kind == HF__OPERATION_ATTEMPT, adds = attempt || op->retire_ms > 0;

    w.now_ms = at.now_ms;
    w.history = m->history;
    w.op = op;
    w.at = at;
    w.self = m->base.host->self;
    w.ticket = op->bid != NULL ? &op->bid->ticket : NULL;
    w.newcomer = adds ? hf__member_new(m->client, attempt ? op->bid->who->note : "") : NULL;
    if ((adds && w.newcomer == NULL) || !make_value(room, op))
        return HF_NO_MEMORY;
    do {
        if (!hf__window_load(&w)) {
            hf__member_free(w.newcomer);
            return HF_NO_MEMORY;
        }
        *ret_answer = hf__doorman_apply(&w.record, op, at);
        w.waiters *= 8;
    } while (ret_answer->verdict == HF__VERDICT_MORE);

    bool taken = hf__window_save(&w, attempt);
    if (op->value != NULL && ret_answer->verdict == HF__VERDICT_DONE)
        pass_value(room, op, &w.record);
    if (!taken)
        hf__member_free(w.newcomer);
    if (attempt && ret_answer->verdict == HF__VERDICT_QUEUED && !taken)
        ret_answer->position = hf__window_position(&w);
    hf__space_touch(m->space, room, at.now_ms);
    return 0;
}

/* Gives a room up that nobody is in any more, and that has no value. Whoever is left is swept first,
 * and a room that stays counts as touched. True: it is gone. */
static bool purge_room(struct memory *m, struct room *room)
{
    struct hf__answer answer;

    if (!hf__room_is_empty(room))
        apply(m, room, &(struct hf__operation){.kind = HF__OPERATION_SWEEP}, &answer);
    if (!hf__room_is_empty(room))
        return false;
    if (hf__room_has_value(room)) {
        hf__space_touch(m->space, room, moment(m).now_ms);
        return false;
    }
    hf__space_remove(m->space, room);
    return true;
}

/* What nobody has used for long goes by itself, a little with every new name. */
static void purge_some(struct memory *m)
{
    int64_t since_ms = moment(m).now_ms - m->retain_ms;
    struct room *room;

    for (int i = 0; i < PURGE_AT_ONCE; i++) {
        if ((room = hf__space_untouched(m->space, since_ms)) == NULL)
            return;
        purge_room(m, room);
    }
}

static int operate(struct hf__store *store, const struct hf__operation *op, int64_t deadline_ns,
                   struct hf__answer *ret_answer, hf_error *err)
{
    struct memory *m = memory_of(store);
    const struct hf__bid *bid = op->bid;
    struct hf__record nobody = {0};
    struct hf__answer answer;
    int r = 0;

    (void)deadline_ns;
    pthread_mutex_lock(&m->space->mutex);
    struct room *room = hf__space_find(m->space, bid->name, bid->name_len);
    if (room == NULL && (op->kind == HF__OPERATION_ATTEMPT || op->retire_ms > 0)) {
        purge_some(m);
        room = hf__space_get(m->space, bid->name, bid->name_len);
        r = room == NULL ? HF_NO_MEMORY : 0;
    }
    if (room != NULL)
        r = apply(m, room, op, &answer);
    else if (r == 0)
        answer = hf__doorman_apply(&nobody, op, moment(m));
    pthread_mutex_unlock(&m->space->mutex);
    if (room == NULL && op->kind == HF__OPERATION_READ)
        *op->value = (struct hf__value){0};
    if (r < 0)
        return hf__fail(err, r, NULL);
    answer.sent_ns = ret_answer->sent_ns;
    *ret_answer = answer;
    return 0;
}

static int renew(struct hf__store *store, struct hf__renewal *items, size_t count,
                 int64_t deadline_ns, hf_error *err)
{
    struct memory *m = memory_of(store);
    int r = 0;

    (void)deadline_ns;
    pthread_mutex_lock(&m->space->mutex);
    for (size_t i = 0; r == 0 && i < count; i++) {
        struct room *room = hf__space_find(m->space, items[i].name, items[i].name_len);
        struct hf__bid bid = {.ticket = items[i].ticket};
        struct hf__operation op = {
            .kind = HF__OPERATION_RENEW, .bid = &bid, .generation = items[i].generation};
        struct hf__answer answer = {.verdict = HF__VERDICT_GONE};
        if (room != NULL)
            r = apply(m, room, &op, &answer);
        answer.sent_ns = items[i].answer.sent_ns;
        items[i].answer = answer;
    }
    pthread_mutex_unlock(&m->space->mutex);
    return r < 0 ? hf__fail(err, r, NULL) : 0;
}

static int upkeep(struct hf__store *store, enum hf__upkeep what, int64_t retain_ms,
                  int64_t deadline_ns, uint64_t *ret_count, hf_error *err)
{
    struct memory *m = memory_of(store);
    struct room *newer;

    (void)deadline_ns, (void)err;
    if (what != HF__UPKEEP_PURGE)
        return 0;
    pthread_mutex_lock(&m->space->mutex);
    int64_t since_ms = moment(m).now_ms - retain_ms;
    for (struct room *room = m->space->oldest; room != NULL && room->touched_ms <= since_ms;
         room = newer) {
        newer = room->newer;
        *ret_count += purge_room(m, room);
    }
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
    return fd < 0 ? HF_SYSTEM : fd;
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
                    HF_CAN_DETACH | HF_CAN_AT_LEAST | HF_CAN_VALUE | HF_CAN_WANTED | HF_CAN_CACHE |
                    HF_CAN_HISTORY,
    .options = options,
    .open = open_memory,
    .close = close_memory,
    .operate = operate,
    .renew = renew,
    .inspect = hf__memory_inspect,
    .upkeep = upkeep,
    .diagnose = diagnose,
    .wake_fd = wake_fd,
    .wake = wake,
    .trail = hf__memory_trail,
};
