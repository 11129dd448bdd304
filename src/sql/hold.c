/* See hold.h: the list, and what becomes of a bid.
 *
 * The mutex guards the list and what is in it that nobody works on; nothing that may block is done
 * with it held. Whoever works on a bid makes it busy, and whoever else comes for the same ticket
 * waits: two attempts of one ticket must not become two connections that wait. */
#include "sql/held.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/thread.h"

#include "base/banned.h"

#define ASK_AGAIN_MS 1000 /* although wake() hears */
#define COURTESY_MS  200  /* so much later at most a loss is told, for the sake of others */
#define WAKE_BATCH   64

static struct hf__hold *hold_of(struct hf__store *store)
{
    return &((struct hf__holding *)store)->hold;
}

int hf__hold_init(struct hf__holding *s, const struct hf__hold_type *type, hf_error *err)
{
    struct hf__hold *hold = &s->hold;
    *hold = (struct hf__hold){
        .type = type, .owner = s, .env = s->base.host->env, .max_held = s->sql.set.max_held};
    s->sql.pool.limits.max_active = hold->max_held + 4; /* some are needed for looking */
    pthread_mutex_init(&hold->mutex, NULL);
    hf__cond_init(&hold->idle_one);
    hold->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    return hold->epoll_fd >= 0 ? 0 : hf__fail_errno(err, HF_SYSTEM, "no descriptor to be had");
}

void hf__hold_clear(struct hf__hold *hold)
{
    if (hold->type == NULL)
        return; /* never made */
    while (hold->first != NULL) {
        struct hf__held *next = hold->first->next;
        hold->type->drop(hold->first);
        free(hold->first);
        hold->first = next;
    }
    if (hold->epoll_fd >= 0)
        close(hold->epoll_fd);
    free(hold->retired);
    pthread_cond_destroy(&hold->idle_one);
    pthread_mutex_destroy(&hold->mutex);
}

/* Answers ------------------------------------------------------------------ */

static struct hf__answer granted(const struct hf__held *h)
{
    return (struct hf__answer){.verdict = HF__VERDICT_GRANTED,
                               .generation = h->generation,
                               .lease_ms = HF__NEVER,
                               .claimed = true};
}

static struct hf__answer queued(const struct hf__held *h)
{
    return (struct hf__answer){.verdict = HF__VERDICT_QUEUED,
                               .lease_ms = hf__provisional_lease_ms(h->ttl_ms),
                               .ask_again_ms = ASK_AGAIN_MS};
}

/* Ending ------------------------------------------------------------------- */

static int busy_for_too_long(const struct hf__hold *hold, hf_error *err)
{
    return hf__fail(err, HF_UNKNOWN, "%s: another request for this bid is not over",
                    hold->type->store);
}

static int not_proved(const struct hf__hold *hold, hf_error *err)
{
    return hf__fail(err, HF_UNKNOWN,
                    "%s: the server did not say that it has ended what it did for this bid",
                    hold->type->store);
}

static int end_bid(struct hf__hold *hold, const struct hf__bid *bid, int64_t retire_ms,
                   int64_t deadline_ns, enum hf__held_state *ret_was, hf_error *err)
{
    struct hf__held *h = NULL;
    int r = 0;

    *ret_was = HF__HELD_DEAD;
    pthread_mutex_lock(&hold->mutex);
    if (retire_ms > 0 && !hf__held_is_retired(hold, &bid->ticket))
        r = hf__held_retire(hold, &bid->ticket, retire_ms, err);
    if (!hf__held_claim(hold, &bid->ticket, deadline_ns, &h))
        r = busy_for_too_long(hold, err);
    pthread_mutex_unlock(&hold->mutex);
    if (h == NULL)
        return r;
    hold->type->look(h);
    *ret_was = h->leaving ? HF__HELD_DEAD : h->state;
    return hf__held_end(hold, h, deadline_ns) ? r : not_proved(hold, err);
}

static int leave(struct hf__store *store, const struct hf__operation *op, int64_t deadline_ns,
                 struct hf__answer *ret_answer, hf_error *err)
{
    bool waiting_counts = op->kind == HF__OPERATION_WITHDRAW;
    enum hf__held_state was;
    int r = end_bid(hold_of(store), op->bid, op->retire_ms, deadline_ns, &was, err);

    ret_answer->verdict = was == HF__HELD_INSIDE || (waiting_counts && was == HF__HELD_WAITING)
                              ? HF__VERDICT_DONE
                              : HF__VERDICT_STALE;
    return r;
}

/* Attempt ------------------------------------------------------------------ */

/* Refused, or its connection is lost: told, and over. */
static int fail(struct hf__hold *hold, struct hf__held *h, int64_t deadline_ns,
                struct hf__answer *ret_answer, hf_error *err)
{
    hf_error why = h->refusal;

    if (h->state != HF__HELD_REFUSED)
        hf__fail(&why, HF_UNAVAILABLE, "%s: the server did not answer, or hung up",
                 hold->type->store);
    if (!hf__held_end(hold, h, deadline_ns))
        return not_proved(hold, err);
    if (why.code == 0)
        ret_answer->verdict = HF__VERDICT_BUSY;
    else if (err != NULL)
        *err = why;
    return why.code;
}

/* What became of one that the caller has claimed; afterwards it is not. */
static int settle(struct hf__hold *hold, struct hf__held *h, const struct hf__bid *bid,
                  int64_t deadline_ns, struct hf__answer *ret_answer, hf_error *err)
{
    int64_t sent_ns = ret_answer->sent_ns;
    int r = 0;

    if (h->state == HF__HELD_INSIDE && h->generation == 0)
        r = hold->type->finish(hold->owner, h, bid, deadline_ns, err);
    if (h->state != HF__HELD_INSIDE && !(h->state == HF__HELD_WAITING && bid->queue))
        return fail(hold, h, deadline_ns, ret_answer, err);
    if (r == 0)
        *ret_answer = h->state == HF__HELD_INSIDE ? granted(h) : queued(h);
    ret_answer->sent_ns = sent_ns;
    pthread_mutex_lock(&hold->mutex);
    hf__held_unclaim(hold, h);
    pthread_mutex_unlock(&hold->mutex);
    return r == 0 ? 0 : hf__wrap(err, HF_UNKNOWN, "it has the lock but not its generation");
}

static int too_many(const struct hf__hold *hold, hf_error *err)
{
    return hf__fail(err, HF_UNAVAILABLE,
                    "%s: %d locks are held or waited for, one connection each; raise max_held",
                    hold->type->store, (int)hold->max_held);
}

/* A new one, claimed. Mutex held. */
static int add(struct hf__hold *hold, const struct hf__bid *bid, struct hf__held **ret_held,
               hf_error *err)
{
    if (hold->count >= hold->max_held)
        return too_many(hold, err);
    struct hf__held *h = calloc(1, hold->type->held_size);
    if (h == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    h->ticket = bid->ticket;
    h->ttl_ms = bid->ttl_ms;
    h->busy = true;
    hold->count++;
    hf__held_put_in(hold, h);
    *ret_held = h;
    return 0;
}

/* Nothing was sent for it. */
static void remove_unsent(struct hf__hold *hold, struct hf__held *h)
{
    pthread_mutex_lock(&hold->mutex);
    hf__held_take_out(hold, h);
    hold->count--;
    pthread_cond_broadcast(&hold->idle_one);
    pthread_mutex_unlock(&hold->mutex);
    free(h);
}

static int begin(struct hf__hold *hold, struct hf__held *h, const struct hf__bid *bid,
                 int64_t deadline_ns, struct hf__answer *ret_answer, hf_error *err)
{
    int r = hold->type->send(hold->owner, h, bid, deadline_ns, err);

    if (r != 0) {
        remove_unsent(hold, h);
        return r;
    }
    int64_t soon_ns = hf__now_ns(hold->env) + hold->type->first_look_ms * HF__NS_PER_MS;
    hf__held_await(hold, h, bid->queue && soon_ns < deadline_ns ? soon_ns : deadline_ns);
    return settle(hold, h, bid, deadline_ns, ret_answer, err);
}

static int attempt(struct hf__store *store, const struct hf__bid *bid, int64_t deadline_ns,
                   struct hf__answer *ret_answer, hf_error *err)
{
    struct hf__hold *hold = hold_of(store);
    struct hf__held *h = NULL;
    bool fresh = false, retired = false;
    int r = 0;

    pthread_mutex_lock(&hold->mutex);
    if (!hf__held_claim(hold, &bid->ticket, deadline_ns, &h))
        r = busy_for_too_long(hold, err);
    retired = hf__held_is_retired(hold, &bid->ticket); /* perhaps meanwhile */
    if (r == 0 && h == NULL && !retired) {
        fresh = true;
        r = add(hold, bid, &h, err);
    }
    pthread_mutex_unlock(&hold->mutex);
    if (r != 0)
        return r;
    if (h != NULL && (h->leaving || retired)) {
        if (!hf__held_end(hold, h, deadline_ns))
            return not_proved(hold, err);
        h = NULL;
    }
    if (retired) {
        ret_answer->verdict = HF__VERDICT_WITHDRAWN;
        return 0;
    }
    if (h == NULL)
        return hf__fail(err, HF_UNAVAILABLE, "%s: the connection was lost", hold->type->store);
    if (fresh)
        return begin(hold, h, bid, deadline_ns, ret_answer, err);
    hold->type->look(h);
    return settle(hold, h, bid, deadline_ns, ret_answer, err);
}

int hf__hold_operate(struct hf__store *store, const struct hf__operation *op, int64_t deadline_ns,
                     struct hf__answer *ret_answer, hf_error *err)
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

static struct hf__answer alive(const struct hf__held *h, uint64_t generation)
{
    if (h->state == HF__HELD_WAITING || h->generation == 0)
        return queued(h);
    if (generation != 0 && generation != h->generation)
        return (struct hf__answer){.verdict = HF__VERDICT_GONE};
    return granted(h);
}

/* Mutex held. */
static void look_and_touch(struct hf__hold *hold, struct hf__held *h)
{
    hf__held_stop_hearing(hold, h);
    hold->type->look(h);
    if (h->state == HF__HELD_INSIDE && h->generation != 0 && hold->type->touch != NULL)
        hold->type->touch(h);
    hf__held_hear(hold, h);
}

/* Mutex held. A lost one is claimed, since nobody will release it, and given back. */
static struct hf__answer sign_of_life(struct hf__hold *hold, const struct hf__renewal *item,
                                      struct hf__held **ret_lost)
{
    struct hf__held *h = hf__held_find(hold, &item->ticket);
    struct hf__answer lost = {.verdict = HF__VERDICT_GONE};

    if (h == NULL || h->leaving)
        return lost;
    if (!h->busy)
        look_and_touch(hold, h);
    if (h->busy || h->state == HF__HELD_WAITING || h->state == HF__HELD_INSIDE)
        return alive(h, item->generation);
    if (item->generation == 0)
        return lost; /* the waiter asks, and is told why */
    hf__held_stop_hearing(hold, h);
    h->busy = true;
    *ret_lost = h;
    return lost;
}

int hf__hold_renew(struct hf__store *store, struct hf__renewal *items, size_t count,
                   int64_t deadline_ns, hf_error *err)
{
    struct hf__hold *hold = hold_of(store);
    int64_t soon_ns = hf__now_ns(hold->env) + COURTESY_MS * HF__NS_PER_MS;

    (void)err;
    for (size_t i = 0; i < count; i++) {
        struct hf__held *lost = NULL;
        pthread_mutex_lock(&hold->mutex);
        struct hf__answer a = sign_of_life(hold, &items[i], &lost);
        pthread_mutex_unlock(&hold->mutex);
        a.sent_ns = items[i].answer.sent_ns;
        items[i].answer = a;
        if (lost != NULL)
            hf__held_abandon(hold, lost, soon_ns < deadline_ns ? soon_ns : deadline_ns);
    }
    return 0;
}

/* Whoever is no longer what it was is told to ask. The sink takes the client's mutex, and whoever
 * has that never waits for ours. */
void hf__hold_wake(struct hf__store *store, hf__wake_sink *sink, void *ctx)
{
    struct hf__hold *hold = hold_of(store);
    struct epoll_event events[WAKE_BATCH];

    pthread_mutex_lock(&hold->mutex);
    int count = epoll_wait(hold->epoll_fd, events, WAKE_BATCH, 0);
    for (int i = 0; i < count; i++) {
        struct hf__held *h = events[i].data.ptr; /* in the list and idle, or it is not polled */
        enum hf__held_state was = h->state;
        hold->type->look(h);
        hf__held_hear(hold, h);
        if (h->state != was)
            sink(ctx, &h->ticket, 0);
    }
    pthread_mutex_unlock(&hold->mutex);
}

int hf__hold_wake_fd(struct hf__store *store)
{
    return hold_of(store)->epoll_fd;
}
