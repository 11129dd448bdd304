/* What a store must do: one table of eleven functions.
 *
 * A store keeps one doorman record per name and applies the doorman's operations to it, each in one
 * atomic step and, if it can, one round trip. The core does everything else: deadlines, waiting,
 * renewing, reentrancy, unknown outcomes. src/stores/memory/ is the reference to copy; docs and
 * tests to add with a store are listed in CONTRIBUTING.md.
 *
 * Threads: every function but close may run on several threads at once, but for `wake`, which runs
 * on one at a time (core/wake_reader.h) and must not block. No function may block past its deadline.
 *
 * Deadlines are moments of the host's clock (hf__now_ns). Results are 0, or an error code with a
 * text:
 *   HF_UNAVAILABLE  surely not applied (could not connect, could not send)
 *   HF_UNKNOWN      may have been applied; the core will ask again by ticket
 *   HF_DENIED, HF_FULL, HF_CORRUPT, HF_UNSUPPORTED, HF_INVALID, HF_NO_MEMORY, HF_SYSTEM
 *                   not applied
 * Whether a bid was let in is not an error: it is the verdict of the answer.
 *
 * A store never retries silently what may have been applied, except where the operation is answered
 * by ticket (all of them are idempotent) and the retry ends before the deadline. */
#ifndef HF_STORES_STORE_H
#define HF_STORES_STORE_H

#include <stdatomic.h>

#include "base/env.h"
#include "base/error.h"
#include "base/url.h"
#include "base/who.h"
#include "doorman/doorman.h"

#define HF__STORE_ABI 5

struct hf__store;

/* What the core lends to a store for its lifetime. */
struct hf__host {
    const struct hf_env *env;
    const struct hf__who *self; /* this process, without a note */
    int64_t op_timeout_ms;
    /* Opens the store of another URL, for wrappers. */
    int (*open_inner)(const struct hf__host *host, const char *url, struct hf__store **ret_store,
                      hf_error *err);
    const char *modules; /* for open_inner: hf_client_options.modules */
};

/* A store's own structure begins with this. */
struct hf__store {
    const struct hf__store_type *type;
    const struct hf__host *host;
    uint32_t capabilities; /* of this instance: the type's, or fewer */
    bool calls_holders;    /* set at opening: wake-ups also tell of locks that are held (broken,
                       deleted), so it is asked for its wake_fd with the first of them */
    atomic_bool data_lost; /* set by the store, never cleared: its data was replaced or deleted
                       under us, nothing that was held is held (the core asks after each call) */
    atomic_bool moved; /* set by the store, cleared by the core after each call and each wake: it
                   speaks to another server than before, which may not know all that was held. The
                   core renews it all at once */
    atomic_uint turns; /* of a store whose operations wait in line for each other: raised by it when
                   somebody, here or elsewhere, has had a turn. A bid that got none meanwhile
                   (HF_UNAVAILABLE) has met a crowd, not a store that is away: the core bears that for
                   as long as the caller waits for others */
};

/* One lock of a batch renewal: in, and its answer. */
struct hf__renewal {
    const char *name;
    size_t name_len;
    struct hf__ticket ticket;
    uint64_t generation;      /* 0: a waiter's sign of life, or the grant is not known */
    struct hf__answer answer; /* sent_ns is preset as for operate */
};

/* What `inspect` looks for, and whom it tells. Times are relative to the store's present. */
struct hf__search {
    const char *name; /* exactly this; NULL: any */
    size_t name_len;
    const char *prefix; /* NULL: any */
    size_t prefix_len;
    int64_t older_than_ms; /* > 0: only those INSIDE for at least so long */
    /* Called for INSIDE, LINGERING and WAITING entries, by name, in their order; entries of one
     * name come together. since_ms and until_ms are spans: for so long, for so long to come
     * (HF__NEVER); `who` is a const struct hf__who *, and the name, borrowed during the call.
     * Non-zero stops and is returned by inspect. What has expired but was not swept is not shown as
     * inside. */
    int (*found)(void *ctx, const char *name, size_t name_len, const struct hf__entry *entry);
    void *ctx;
};

/* One entry of a trail, see hf_trail_entry. */
struct hf__trail_entry {
    const char *name;
    size_t name_len;
    hf_trail_kind kind;
    int64_t at_ms; /* since 1970 */
    hf_mode mode;
    struct hf__ticket ticket;
    uint64_t generation;
    int64_t span_ms; /* it had held, or, GRANTED and without a generation, waited */
    const struct hf__who *who;
    const char *cause;
};

/* What `trail` looks for, and whom it tells. */
struct hf__trail_search {
    const char *name; /* exactly this; NULL: any */
    size_t name_len;
    const char *prefix; /* NULL: any */
    size_t prefix_len;
    int64_t since_ms; /* since 1970; what lies before may be told all the same */
    size_t limit;     /* the newest so many, more may be told; 0: all */
    /* Called name by name, for those of one name in the order in which they were written. All is borrowed
     * during the call. Non-zero stops and is returned by trail. */
    int (*found)(void *ctx, const struct hf__trail_entry *entry);
    void *ctx;
};

enum hf__upkeep {
    HF__UPKEEP_SETUP, /* create what is missing; idempotent */
    HF__UPKEEP_PURGE, /* remove records that nobody has touched for retain_ms and that are empty */
};

/* A wake-up: `generation` is that of the grant, or 0 for "ask again". `ticket` NULL: everybody ask.
 */
typedef void hf__wake_sink(void *ctx, const struct hf__ticket *ticket, uint64_t generation);

struct hf__store_type {
    unsigned abi;                     /* HF__STORE_ABI */
    const char *name;                 /* "sqlite" */
    const char *const *schemes;       /* NULL-terminated: {"sqlite", NULL} */
    const char *summary;              /* one line for `holdfast stores` */
    uint32_t capabilities;            /* enum hf_capability */
    const struct hf__option *options; /* its own, besides the common ones; ends with a NULL name */
    const char *ddl;                  /* what SETUP creates, as text for a DBA; NULL: nothing */

    /* The ddl as SETUP would run it for this URL, to be freed; nothing is opened. NULL: it is the
     * same for all. Errors: HF_INVALID, HF_NO_MEMORY. */
    int (*ddl_of)(const struct hf__url *url, char **ret_text, hf_error *err);

    /* Makes a store from a URL whose options were checked. May connect or not; files and rights
     * that are wrong for good are refused here. */
    int (*open)(const struct hf__url *url, const struct hf__host *host,
                struct hf__store **ret_store, hf_error *err);

    /* Frees it. No other function is running or will be called; no wake-up follows. What waits or
     * holds in the store stays there. */
    void (*close)(struct hf__store *store);

    /* hf__doorman_apply() on the record of op->bid->name: ATTEMPT, RELEASE, WITHDRAW, BREAK if it is
     * one with HF_CAN_BREAK, READ and WRITE with HF_CAN_VALUE. Tells those it let in, in the same step,
     * and the client of one that was broken, if it can. With HF_CAN_WANTED it calls those marked so,
     * with generation 0, if it can; it is asked for its wake_fd before the first bid with `tell`. With
     * HF_CAN_CACHE it keeps the mark `cached` of an entry, and shows it.
     * `op->who` is NULL here; bid->who says who asks. A WRITE that was answered DONE outlives what a
     * grant that never expires outlives.
     *
     * `ret_answer->sent_ns` is preset to the moment before the call; a store that read its clock in
     * a later request of its own may move it to before that one. QUEUED answers name a position if
     * that is cheap; a store without HF_CAN_QUEUE gives them too, to say when to ask again. One
     * without HF_CAN_TOKEN still numbers its grants, above 0, because renewals name them; the core
     * keeps that number to itself. A network store resets the connection on which an attempt of this
     * ticket is unanswered before it sends a WITHDRAW. */
    int (*operate)(struct hf__store *store, const struct hf__operation *op, int64_t deadline_ns,
                   struct hf__answer *ret_answer, hf_error *err);

    /* RENEW for each item, all in one round trip; not atomic as a whole. An error is
     * one for all of them. */
    int (*renew)(struct hf__store *store, struct hf__renewal *items, size_t count,
                 int64_t deadline_ns, hf_error *err);

    /* Reads; changes nothing. One round trip for one name. */
    int (*inspect)(struct hf__store *store, const struct hf__search *search, int64_t deadline_ns,
                   hf_error *err);

    /* See enum hf__upkeep. `ret_count`: records purged. NULL: nothing to keep up. */
    int (*upkeep)(struct hf__store *store, enum hf__upkeep what, int64_t retain_ms,
                  int64_t deadline_ns, uint64_t *ret_count, hf_error *err);

    /* Looks at the live store for `doctor`, as hf_diagnose() says. NULL: nothing to say. */
    int (*diagnose)(struct hf__store *store, hf_finding_callback *found, void *arg,
                    int64_t deadline_ns, hf_error *err);

    /* A descriptor that is readable when wake-ups have come. Asked once, after the first answer
     * QUEUED (see also calls_holders), so that a client that never waits needs no listener; the core
     * then attempts again with the same ticket, and the store notes where that waiter can be called.
     * Negative: there is no push, waiters poll. HF_SYSTEM: no descriptor could be had, and it is asked
     * again later. NULL unless HF_CAN_PUSH. */
    int (*wake_fd)(struct hf__store *store);

    /* Takes what has come, without blocking, and passes it on. NULL unless HF_CAN_PUSH. */
    void (*wake)(struct hf__store *store, hf__wake_sink *sink, void *ctx);

    /* Reads the trail; changes nothing. NULL unless HF_CAN_HISTORY. A store with it keeps one if the URL's
     * option `history` is not 0: in the step that changes the record, if it can, it writes the end of each bid,
     * and its grant if it had waited (hf__trail_change(); core/trail.c tells the other grants). The last
     * so many bids of each name stay; one that had waited may count twice. Without the option nothing is written,
     * sent or asked for it. */
    int (*trail)(struct hf__store *store, const struct hf__trail_search *search,
                 int64_t deadline_ns, hf_error *err);
};

/* A module (holdfast-<name>.so) exports this one symbol. */
#define HF__STORE_SYMBOL "hf_store_type_v1"

#endif
