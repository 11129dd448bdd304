/* See session.h: the list, and what becomes of a bid.
 *
 * The mutex guards the list and what is in it that nobody works on; nothing that may block is done
 * with it held. Whoever works on a bid makes it busy, and whoever else comes for the same ticket
 * waits: two attempts of one ticket must not become two connections that wait. */
#include "sql/session/list.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/thread.h"

#include "base/banned.h"

#define ASK_AGAIN_MS 1000 /* although wake() hears */
#define COURTESY_MS  200  /* so much later at most a loss is told, for the sake of others */
#define WAKE_BATCH   64

static struct hf__session_list *list_of(struct hf__store *store)
{
    return &((struct hf__session_store *)store)->list;
}

int hf__session_init(struct hf__session_store *s, const struct hf__session_type *type,
                     hf_error *err)
{
    struct hf__session_list *list = &s->list;
    *list = (struct hf__session_list){
        .type = type, .owner = s, .env = s->base.host->env, .max_held = s->sql.set.max_held};
    s->sql.pool.limits.max_active = list->max_held + 4; /* some are needed for looking */
    pthread_mutex_init(&list->mutex, NULL);
    hf__cond_init(&list->idle_one);
    list->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    return list->epoll_fd >= 0 ? 0 : hf__fail_errno(err, HF_SYSTEM, "no descriptor to be had");
}

void hf__session_clear(struct hf__session_list *list)
{
    if (list->type == NULL)
        return; /* never made */
    while (list->first != NULL) {
        struct hf__session_lock *next = list->first->next;
        list->type->drop(list->first);
        free(list->first);
        list->first = next;
    }
    if (list->epoll_fd >= 0)
        close(list->epoll_fd);
    free(list->retired);
    pthread_cond_destroy(&list->idle_one);
    pthread_mutex_destroy(&list->mutex);
}

/* Answers ------------------------------------------------------------------ */

static struct hf__answer granted(const struct hf__session_lock *lock)
{
    return (struct hf__answer){.verdict = HF__VERDICT_GRANTED,
                               .generation = lock->generation,
                               .lease_ms = HF__NEVER,
                               .claimed = true};
}

static struct hf__answer queued(const struct hf__session_lock *lock)
{
    return (struct hf__answer){.verdict = HF__VERDICT_QUEUED,
                               .lease_ms = hf__provisional_lease_ms(lock->ttl_ms),
                               .ask_again_ms = ASK_AGAIN_MS};
}

/* Ending ------------------------------------------------------------------- */

static int busy_for_too_long(const struct hf__session_list *list, hf_error *err)
{
    return hf__fail(err, HF_UNKNOWN, "%s: another request for this bid is not over",
                    list->type->store);
}

static int not_proved(const struct hf__session_list *list, hf_error *err)
{
    return hf__fail(err, HF_UNKNOWN,
                    "%s: the server did not say that it has ended what it did for this bid",
                    list->type->store);
}

static int end_bid(struct hf__session_list *list, const struct hf__bid *bid, int64_t retire_ms,
                   int64_t deadline_ns, enum hf__session_state *ret_was, hf_error *err)
{
    struct hf__session_lock *lock = NULL;
    int r = 0;

    *ret_was = HF__SESSION_STATE_DEAD;
    pthread_mutex_lock(&list->mutex);
    if (retire_ms > 0 && !hf__session_is_retired(list, &bid->ticket))
        r = hf__session_retire(list, &bid->ticket, retire_ms, err);
    if (!hf__session_claim(list, &bid->ticket, deadline_ns, &lock))
        r = busy_for_too_long(list, err);
    pthread_mutex_unlock(&list->mutex);
    if (lock == NULL)
        return r;
    list->type->look(lock);
    *ret_was = lock->leaving ? HF__SESSION_STATE_DEAD : lock->state;
    return hf__session_end(list, lock, deadline_ns) ? r : not_proved(list, err);
}

static int leave(struct hf__store *store, const struct hf__operation *op, int64_t deadline_ns,
                 struct hf__answer *ret_answer, hf_error *err)
{
    bool waiting_counts = op->kind == HF__OPERATION_WITHDRAW;
    enum hf__session_state was;
    int r = end_bid(list_of(store), op->bid, op->retire_ms, deadline_ns, &was, err);

    ret_answer->verdict =
        was == HF__SESSION_STATE_INSIDE || (waiting_counts && was == HF__SESSION_STATE_WAITING)
            ? HF__VERDICT_DONE
            : HF__VERDICT_STALE;
    return r;
}

/* Attempt ------------------------------------------------------------------ */

/* Refused, or its connection is lost: told, and over. */
static int fail(struct hf__session_list *list, struct hf__session_lock *lock, int64_t deadline_ns,
                struct hf__answer *ret_answer, hf_error *err)
{
    hf_error why = lock->refusal;

    if (lock->state != HF__SESSION_STATE_REFUSED)
        hf__fail(&why, HF_UNAVAILABLE, "%s: the server did not answer, or hung up",
                 list->type->store);
    if (!hf__session_end(list, lock, deadline_ns))
        return not_proved(list, err);
    if (why.code == 0)
        ret_answer->verdict = HF__VERDICT_BUSY;
    else if (err != NULL)
        *err = why;
    return why.code;
}

/* What became of one that the caller has claimed; afterwards it is not. */
static int settle(struct hf__session_list *list, struct hf__session_lock *lock,
                  const struct hf__bid *bid, int64_t deadline_ns, struct hf__answer *ret_answer,
                  hf_error *err)
{
    int64_t sent_ns = ret_answer->sent_ns;
    int r = 0;

    if (lock->state == HF__SESSION_STATE_INSIDE && lock->generation == 0)
        r = list->type->finish(list->owner, lock, bid, deadline_ns, err);
    if (lock->state != HF__SESSION_STATE_INSIDE &&
        !(lock->state == HF__SESSION_STATE_WAITING && bid->queue))
        return fail(list, lock, deadline_ns, ret_answer, err);
    if (r == 0)
        *ret_answer = lock->state == HF__SESSION_STATE_INSIDE ? granted(lock) : queued(lock);
    ret_answer->sent_ns = sent_ns;
    pthread_mutex_lock(&list->mutex);
    hf__session_unclaim(list, lock);
    pthread_mutex_unlock(&list->mutex);
    return r == 0 ? 0 : hf__wrap(err, HF_UNKNOWN, "it has the lock but not its generation");
}

static int too_many(const struct hf__session_list *list, hf_error *err)
{
    return hf__fail(err, HF_UNAVAILABLE,
                    "%s: %d locks are held or waited for, one connection each; raise max_held",
                    list->type->store, (int)list->max_held);
}

/* A new one, claimed. Mutex held. */
static int add(struct hf__session_list *list, const struct hf__bid *bid,
               struct hf__session_lock **ret_lock, hf_error *err)
{
    if (list->count >= list->max_held)
        return too_many(list, err);
    struct hf__session_lock *lock = calloc(1, list->type->lock_size);
    if (lock == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    lock->ticket = bid->ticket;
    lock->ttl_ms = bid->ttl_ms;
    lock->busy = true;
    list->count++;
    hf__session_add(list, lock);
    *ret_lock = lock;
    return 0;
}

/* Nothing was sent for it. */
static void remove_unsent(struct hf__session_list *list, struct hf__session_lock *lock)
{
    pthread_mutex_lock(&list->mutex);
    hf__session_remove(list, lock);
    list->count--;
    pthread_cond_broadcast(&list->idle_one);
    pthread_mutex_unlock(&list->mutex);
    free(lock);
}

static int begin(struct hf__session_list *list, struct hf__session_lock *lock,
                 const struct hf__bid *bid, int64_t deadline_ns, struct hf__answer *ret_answer,
                 hf_error *err)
{
    int r = list->type->send(list->owner, lock, bid, deadline_ns, err);

    if (r != 0) {
        remove_unsent(list, lock);
        return r;
    }
    int64_t soon_ns = hf__now_ns(list->env) + list->type->first_look_ms * HF__NS_PER_MS;
    hf__session_await(list, lock, bid->queue && soon_ns < deadline_ns ? soon_ns : deadline_ns);
    return settle(list, lock, bid, deadline_ns, ret_answer, err);
}

static int attempt(struct hf__store *store, const struct hf__bid *bid, int64_t deadline_ns,
                   struct hf__answer *ret_answer, hf_error *err)
{
    struct hf__session_list *list = list_of(store);
    struct hf__session_lock *lock = NULL;
    bool fresh = false, retired = false;
    int r = 0;

    pthread_mutex_lock(&list->mutex);
    if (!hf__session_claim(list, &bid->ticket, deadline_ns, &lock))
        r = busy_for_too_long(list, err);
    retired = hf__session_is_retired(list, &bid->ticket); /* perhaps meanwhile */
    if (r == 0 && lock == NULL && !retired) {
        fresh = true;
        r = add(list, bid, &lock, err);
    }
    pthread_mutex_unlock(&list->mutex);
    if (r != 0)
        return r;
    if (lock != NULL && (lock->leaving || retired)) {
        if (!hf__session_end(list, lock, deadline_ns))
            return not_proved(list, err);
        lock = NULL;
    }
    if (retired) {
        ret_answer->verdict = HF__VERDICT_WITHDRAWN;
        return 0;
    }
    if (lock == NULL)
        return hf__fail(err, HF_UNAVAILABLE, "%s: the connection was lost", list->type->store);
    if (fresh)
        return begin(list, lock, bid, deadline_ns, ret_answer, err);
    list->type->look(lock);
    return settle(list, lock, bid, deadline_ns, ret_answer, err);
}

int hf__session_operate(struct hf__store *store, const struct hf__operation *op,
                        int64_t deadline_ns, struct hf__answer *ret_answer, hf_error *err)
{
    switch (op->kind) {
    case HF__OPERATION_ATTEMPT:
        return attempt(store, op->bid, deadline_ns, ret_answer, err);
    case HF__OPERATION_RELEASE:
    case HF__OPERATION_WITHDRAW:
        return leave(store, op, deadline_ns, ret_answer, err);
    default:
        return hf__fail(err, HF_UNSUPPORTED, NULL);
    }
}

/* Signs of life, and wake-ups ---------------------------------------------- */

static struct hf__answer alive(const struct hf__session_lock *lock, uint64_t generation)
{
    if (lock->state == HF__SESSION_STATE_WAITING || lock->generation == 0)
        return queued(lock);
    if (generation != 0 && generation != lock->generation)
        return (struct hf__answer){.verdict = HF__VERDICT_GONE};
    return granted(lock);
}

/* Mutex held. */
static void look_and_touch(struct hf__session_list *list, struct hf__session_lock *lock)
{
    hf__session_stop_hearing(list, lock);
    list->type->look(lock);
    if (lock->state == HF__SESSION_STATE_INSIDE && lock->generation != 0 &&
        list->type->touch != NULL)
        list->type->touch(lock);
    hf__session_hear(list, lock);
}

/* Mutex held. A lost one is claimed, since nobody will release it, and given back. */
static struct hf__answer sign_of_life(struct hf__session_list *list, const struct hf__renewal *item,
                                      struct hf__session_lock **ret_lost)
{
    struct hf__session_lock *lock = hf__session_find(list, &item->ticket);
    struct hf__answer lost = {.verdict = HF__VERDICT_GONE};

    if (lock == NULL || lock->leaving)
        return lost;
    if (!lock->busy)
        look_and_touch(list, lock);
    if (lock->busy || lock->state == HF__SESSION_STATE_WAITING ||
        lock->state == HF__SESSION_STATE_INSIDE)
        return alive(lock, item->generation);
    if (item->generation == 0)
        return lost; /* the waiter asks, and is told why */
    hf__session_stop_hearing(list, lock);
    lock->busy = true;
    *ret_lost = lock;
    return lost;
}

int hf__session_renew(struct hf__store *store, struct hf__renewal *items, size_t count,
                      int64_t deadline_ns, hf_error *err)
{
    struct hf__session_list *list = list_of(store);
    int64_t soon_ns = hf__now_ns(list->env) + COURTESY_MS * HF__NS_PER_MS;

    (void)err;
    for (size_t i = 0; i < count; i++) {
        struct hf__session_lock *lost = NULL;
        pthread_mutex_lock(&list->mutex);
        struct hf__answer a = sign_of_life(list, &items[i], &lost);
        pthread_mutex_unlock(&list->mutex);
        a.sent_ns = items[i].answer.sent_ns;
        items[i].answer = a;
        if (lost != NULL)
            hf__session_abandon(list, lost, soon_ns < deadline_ns ? soon_ns : deadline_ns);
    }
    return 0;
}

/* Whoever is no longer what it was is told to ask. The sink takes the client's mutex, and whoever
 * has that never waits for ours. */
void hf__session_wake(struct hf__store *store, hf__wake_sink *sink, void *ctx)
{
    struct hf__session_list *list = list_of(store);
    struct epoll_event events[WAKE_BATCH];

    pthread_mutex_lock(&list->mutex);
    int count = epoll_wait(list->epoll_fd, events, WAKE_BATCH, 0);
    for (int i = 0; i < count; i++) {
        struct hf__session_lock *lock =
            events[i].data.ptr; /* in the list and idle, or it is not polled */
        enum hf__session_state was = lock->state;
        list->type->look(lock);
        hf__session_hear(list, lock);
        if (lock->state != was)
            sink(ctx, &lock->ticket, 0);
    }
    pthread_mutex_unlock(&list->mutex);
}

int hf__session_wake_fd(struct hf__store *store)
{
    return list_of(store)->epoll_fd;
}
