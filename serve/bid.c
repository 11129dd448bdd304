/* See bid.h. */
#include "bid.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cli/entry.h"
#include "fields.h"
#include "grant.h"
#include "routes.h"
#include "server.h"

#include "base/banned.h"

#define EVENTS_AT_ONCE 256
#define PRESET_TTL_MS  HF_TTL_DEFAULT_MS

enum lives { LIVES_LEASE, LIVES_CONNECTION };

enum tell {
    TELL_QUEUED = 1,
    TELL_ACQUIRED = 2,
    TELL_AT_RISK = 4,
    TELL_WANTED = 8,
    TELL_LOST = 16,
    TELL_FAILED = 32,
};

struct bid {
    struct stream stream; /* LIVES_CONNECTION, once it is queued or granted */
    struct bid *prev, *next;
    struct store *store;
    struct request *request; /* NULL: its client has gone */
    struct job first;        /* the first attempt */
    enum bid_state { BID_STARTING, BID_WAITING, BID_HELD, BID_ENDING } state;
    int lives; /* enum lives */
    bool is_stream;
    hf_event
        early; /* what ended it before the first attempt was posted back; kind 0: nothing did */
    unsigned tells;
    struct source hangup; /* while the request is suspended */
    bool gone;
    hf_options options;
    char *note;
    hf_lock *lock;
    int code;
    hf_error err;
    hf_cause cause;
};

static uint64_t tag_of(const struct bid *bid)
{
    return (uintptr_t)bid;
}

static struct bid *bid_new(struct request *request)
{
    struct bid *bid = calloc(1, sizeof *bid);

    if (bid == NULL)
        return NULL;
    bid->store = request->store;
    bid->request = request;
    bid->next = bid->store->bids;
    if (bid->next != NULL)
        bid->next->prev = bid;
    bid->store->bids = bid;
    request->server->counters.bids++;
    return bid;
}

static void bid_free(struct bid *bid)
{
    if (bid->prev != NULL)
        bid->prev->next = bid->next;
    else
        bid->store->bids = bid->next;
    if (bid->next != NULL)
        bid->next->prev = bid->prev;
    bid->store->server->counters.bids--;
    free(bid->note);
    free(bid);
}

/* Gives it back, if there is anything; frees the bid, now or with the event of the release. */
static void let_go(struct bid *bid)
{
    bid->state = BID_ENDING;
    if (bid->lock != NULL && hf_release_start(bid->lock, tag_of(bid), NULL) == HF_OK)
        return;
    if (bid->lock != NULL) /* no memory or thread for that: here and now, then */
        hf_lock_release(bid->lock, NULL);
    bid_free(bid);
}

/* The stream of a lock that lives on its connection ------------------------- */

static void tell_loss(struct bid *bid, struct event *event)
{
    cli_json_text(&event->json, "cause", cli_cause_word(bid->cause));
    cli_json_text(&event->json, "text", hf_cause_text(bid->cause));
}

/* The events in the order in which they can come; the newest state is what counts. */
static struct text *next(struct stream *stream)
{
    static const char *const names[] = {"queued", "acquired", "at_risk",
                                        "wanted", "lost",     "failed"};
    struct bid *bid = (struct bid *)stream;
    struct event event;
    int i = __builtin_ffs((int)bid->tells) - 1;

    if (i < 0 || !event_begin(&event, names[i], NULL))
        return NULL;
    bid->tells &= ~(1U << i);
    if (1U << i == TELL_LOST)
        tell_loss(bid, &event);
    else if (1U << i == TELL_FAILED)
        reply_json_error(&event.json, "error", &bid->err);
    else if (1U << i != TELL_QUEUED)
        grant_json(&event.json, bid->lock, bid->options.ttl_ms);
    return event_end(&event);
}

/* Nobody is there any more to be told anything. */
static void abandon(struct bid *bid)
{
    bid->request = NULL;
    bid->is_stream = false;
    if (bid->state == BID_WAITING)
        hf_acquire_stop(bid->store->client, tag_of(bid));
    else if (bid->state == BID_HELD)
        let_go(bid);
    else if (bid->state == BID_ENDING) /* nothing was obtained */
        bid_free(bid);
}

/* The client has gone, or has been told the end. */
static void over(struct stream *stream)
{
    abandon((struct bid *)stream);
}

static void tell(struct bid *bid, unsigned what)
{
    static const struct stream_type type = {.next = next, .over = over};
    struct request *request = bid->request;

    bid->tells |= what;
    if (bid->is_stream) {
        stream_wake(&bid->stream);
        return;
    }
    loop_remove(&request->server->loop, &bid->hangup);
    bid->is_stream = stream_start(&bid->stream, &type, request);
    bid->stream.gone = bid->gone;
    request_resume(request);
    if (!bid->is_stream)
        abandon(bid);
}

/* A lease that is told by one reply ------------------------------------------ */

/* Only what the client was told can it renew: otherwise it would stay until its end. */
static void lease_is_sent(struct request *request, bool sent)
{
    struct bid *bid = request->owner;

    bid->request = NULL;
    if (sent && hf_lock_detach(bid->lock, NULL) == HF_OK)
        bid_free(bid);
    else
        let_go(bid);
}

/* From here on a client that closes has read its answer, for all we know. */
static void give_lease(struct bid *bid)
{
    struct request *request = bid->request;

    loop_remove(&request->server->loop, &bid->hangup);
    if (bid->gone) {
        reply_refuse(&request->reply, 503, HF_CANCELLED, hf_code_text(HF_CANCELLED));
        bid->request = NULL;
        let_go(bid);
    } else {
        grant_reply(&request->reply, bid->lock, bid->options.ttl_ms);
        request->owner = bid;
        request->over = lease_is_sent;
    }
    request_resume(request);
}

/* What becomes of a bid ------------------------------------------------------ */

static void granted(struct bid *bid, hf_lock *lock)
{
    bid->lock = lock;
    bid->state = BID_HELD;
    if (bid->request == NULL)
        let_go(bid);
    else if (bid->lives == LIVES_LEASE)
        give_lease(bid);
    else
        tell(bid, TELL_ACQUIRED);
}

static void failed(struct bid *bid, const hf_error *err)
{
    bid->err = *err;
    if (bid->request == NULL) {
        bid_free(bid);
    } else if (bid->is_stream) {
        bid->state = BID_ENDING;
        bid->tells |= TELL_FAILED;
        stream_end(&bid->stream);
    } else {
        loop_remove(&bid->request->server->loop, &bid->hangup);
        reply_error(&bid->request->reply, err);
        request_resume(bid->request);
        bid_free(bid);
    }
}

static void queued(struct bid *bid)
{
    bid->state = BID_WAITING;
    if (bid->gone || bid->store->server->ending)
        hf_acquire_stop(bid->store->client, tag_of(bid));
    else if (bid->lives == LIVES_CONNECTION)
        tell(bid, TELL_QUEUED);
}

static void try_first(struct job *job)
{
    struct bid *bid = (struct bid *)((char *)job - offsetof(struct bid, first));
    const struct bytes *name = &bid->request->name;

    bid->code = hf_acquire_or_start(bid->store->client, name->at, name->len, &bid->options,
                                    tag_of(bid), &bid->lock, &bid->err);
}

static void first_is_tried(struct posted *posted)
{
    struct bid *bid = (struct bid *)((char *)posted - offsetof(struct bid, first.posted));

    if (bid->code != HF_OK)
        failed(bid, &bid->err);
    else if (bid->early.kind == HF_EVENT_FAILED)
        failed(bid, &bid->early.err);
    else if (bid->early.kind == HF_EVENT_ACQUIRED)
        granted(bid, bid->early.lock);
    else if (bid->lock != NULL)
        granted(bid, bid->lock);
    else
        queued(bid);
}

static void has_lost(struct bid *bid, hf_cause cause)
{
    bid->cause = cause;
    if (!bid->is_stream)
        return;
    tell(bid, TELL_LOST);
    stream_end(&bid->stream);
}

static void take_event(struct bid *bid, const hf_event *event)
{
    switch (event->kind) {
    case HF_EVENT_ACQUIRED:
    case HF_EVENT_FAILED:
        if (bid->state == BID_STARTING) { /* the worker has not come back yet */
            bid->early = *event;
        } else if (event->kind == HF_EVENT_ACQUIRED) {
            granted(bid, event->lock);
        } else {
            failed(bid, &event->err);
        }
        break;
    case HF_EVENT_RELEASED:
        bid_free(bid);
        break;
    case HF_EVENT_LOST:
        has_lost(bid, event->cause);
        break;
    default:
        if (bid->is_stream)
            tell(bid, event->kind == HF_EVENT_AT_RISK ? TELL_AT_RISK : TELL_WANTED);
        break;
    }
}

void bids_take_events(struct store *store)
{
    hf_event event = {.size = sizeof event};

    for (int i = 0; i < EVENTS_AT_ONCE && hf_event_next(store->client, 0, &event) == HF_OK; i++)
        take_event((struct bid *)(uintptr_t)event.tag, &event);
}

void bids_stop(struct store *store)
{
    for (struct bid *bid = store->bids; bid != NULL; bid = bid->next) {
        if (bid->state == BID_WAITING)
            hf_acquire_stop(store->client, tag_of(bid));
    }
}

void bids_free(struct store *store)
{
    while (store->bids != NULL)
        bid_free(store->bids);
}

/* POST .../acquire ----------------------------------------------------------- */

static void on_hangup(struct source *source, uint32_t events)
{
    struct bid *bid = (struct bid *)((char *)source - offsetof(struct bid, hangup));

    (void)events;
    loop_remove(&bid->request->server->loop, source);
    bid->gone = true;
    if (bid->state == BID_WAITING)
        hf_acquire_stop(bid->store->client, tag_of(bid));
}

static int read_options(struct request *request, struct bid *bid, hf_error *err)
{
    int64_t limit = 0, ttl_ms = PRESET_TTL_MS, wait_ms = 0, lock_delay_ms = 0, max_hold_ms = 0;
    int mode = HF_EXCLUSIVE;
    const struct field fields[] = {
        {"mode", FIELD_CHOICE, &mode, 0, 0, "exclusive|shared", false},
        {"limit", FIELD_NUMBER, &limit, 1, UINT32_MAX, NULL, false},
        {"ttl_ms", FIELD_SPAN, &ttl_ms, HF_TTL_MIN_MS, HF_TTL_MAX_MS, NULL, false},
        {"wait_ms", FIELD_SPAN, &wait_ms, 0, HF_AT_LEAST_MAX_MS, NULL, false},
        {"lock_delay_ms", FIELD_NUMBER, &lock_delay_ms, 0, HF_DELAY_MAX_MS, NULL, false},
        {"max_hold_ms", FIELD_NUMBER, &max_hold_ms, 0, HF_AT_LEAST_MAX_MS, NULL, false},
        {"note", FIELD_TEXT, &bid->note, 0, 0, NULL, false},
        {"lives", FIELD_CHOICE, &bid->lives, 0, 0, "lease|connection", true},
        {0},
    };
    int code = fields_read(request->body, request->body_len, fields, err);

    if (code != HF_OK)
        return code;
    bool lease = bid->lives == LIVES_LEASE;
    if (!lease && ttl_ms == HF_NEVER)
        return hf__fail(err, HF_INVALID, "what lives as long as its connection needs a lease");
    if (lease && max_hold_ms > 0)
        return hf__fail(err, HF_INVALID, "max_hold_ms is for what lives as long as its connection");
    bid->options = (hf_options){.size = sizeof bid->options,
                                .mode = limit > 0 ? HF_SHARED : (hf_mode)mode,
                                .limit = (uint32_t)limit,
                                .ttl_ms = ttl_ms,
                                .wait_ms = wait_ms,
                                .lock_delay_ms = lock_delay_ms,
                                .max_hold_ms = max_hold_ms,
                                .note = bid->note,
                                .by_hand = lease,
                                .confirmed = lease};
    bid->options.wanted = !lease && (hf_capabilities(bid->store->client) & HF_CAN_WANTED) != 0;
    return HF_OK;
}

/* A lease is left in the store when it is told; what cannot be left there cannot be had. */
static int check_store(const struct bid *bid, hf_error *err)
{
    uint32_t can = hf_capabilities(bid->store->client);

    if (bid->lives == LIVES_CONNECTION || (can & HF_CAN_DETACH) != 0 ||
        (bid->options.ttl_ms == HF_NEVER && (can & HF_CAN_PERSIST) != 0))
        return HF_OK;
    return hf__fail(err, HF_UNSUPPORTED,
                    "this store's leases end with the server; ask for one that lives as long as "
                    "its connection");
}

void bid_start(struct request *request)
{
    struct bid *bid = bid_new(request);
    hf_error err = {.code = HF_NO_MEMORY};

    if (bid == NULL || read_options(request, bid, &err) != HF_OK ||
        check_store(bid, &err) != HF_OK) {
        reply_error(&request->reply, &err);
        if (bid != NULL)
            bid_free(bid);
        return;
    }
    bid->first = (struct job){.work = try_first, .posted.run = first_is_tried};
    bid->hangup.ready = on_hangup;
    request_suspend(request);
    hangup_watch(request, &bid->hangup);
    if (workers_give(&bid->store->workers, &bid->first))
        return;
    bid->code = hf__fail(&bid->err, HF_FULL, "too many requests wait for this store");
    loop_post(&request->server->loop, &bid->first.posted);
}
