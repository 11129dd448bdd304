/* holdfast: distributed locks (mutex, read-write lock, semaphore) for programs on one machine or
 * many, kept in a store that you already run. This is the only public header.
 * SPDX-License-Identifier: MIT
 *
 * Before you rely on it
 * ---------------------
 *  - A lease makes overlap unlikely; the fencing token makes it harmless. A program that was frozen
 *    for longer than its lease wakes up believing that it still holds the lock. Where overlap would
 *    corrupt data, pass hf_lock_generation() or hf_lock_sequencer() to the resource and let the
 *    resource refuse old ones (hf_gate, hf_check).
 *  - "Held" is true at the moment of the answer, not on the next line. Call hf_lock_remaining_ms()
 *    before a step that you cannot undo, or poll hf_lock_fd() beside your own work.
 *  - The locks are advisory. Anyone who can write to the store can forge them.
 *  - Not every store keeps every clause of the contract. hf_capabilities() tells you which. A call
 *    that needs something the store lacks returns HF_UNSUPPORTED; nothing is faked. What each store
 *    promises is in docs/GUARANTEES.md.
 *  - A program that ends without hf_close() leaves its locks in the store: until their leases end,
 *    and those that never expire until somebody breaks them. The library does nothing at exit by
 *    itself; call hf_close() before the program ends, also on the way out after a signal.
 *  - Do not use a handle in a forked child. There, every call that would touch the store or free
 *    something returns HF_FORKED and does nothing, a lock reports LOST, and a cancel does not fire.
 *    The child may open its own client. (fork() waits for SQLite operations in progress.)
 *  - The library starts threads, but none before the first acquire, or the first entry of a log.
 *    It installs no signal handler (the client library behind mysql:// ignores SIGPIPE unless the
 *    program handles it). It prints nothing. Its only global state is the loaded modules, the
 *    memory:// stores, a list of open SQLite databases and a number for each thread.
 *
 * Conventions
 * -----------
 *  - Functions that can fail return 0 (HF_OK) or a negative HF_ code. Out-parameters named ret_ are
 *    written on success only. `err` may be NULL; otherwise it is filled in on failure.
 *  - A structure that begins with its size may come from an older or a newer header than the
 *    library's. Fields of a newer one that the library does not know must be 0, or the call returns
 *    HF_UNSUPPORTED.
 *  - Inputs are copied. Strings returned as `const char *` are borrowed; the comment says until
 *    when.
 *  - A name is 1 to 512 bytes of any value, compared as bytes. Pass HF_NTS as its length if it ends
 *    in NUL. Durations are in milliseconds.
 *  - You may call every function from any thread, also on the same handle, unless its comment says
 *    otherwise. But do not use a handle while, or after, another thread frees it. No call is a
 *    cancellation point of pthread_cancel().
 *  - A callback must return: it must not throw an exception, call longjmp() or end its thread.
 *    Otherwise the bid of the call below it stays in the store, and hf_close() waits for ever. */
#ifndef HOLDFAST_H
#define HOLDFAST_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

#define HF_VERSION "0.2.0" /* of this header; the library's own: hf_version() */

#define HF_NAME_MAX         512                    /* bytes in a name */
#define HF_NOTE_MAX         256                    /* bytes in a note */
#define HF_VALUE_MAX        1024                   /* bytes in a value */
#define HF_TICKET_SIZE      33                     /* 32 hex digits and a NUL */
#define HF_SEQUENCER_MAX    2048                   /* bytes in a sequencer, NUL included */
#define HF_NTS              ((size_t)-1)           /* "the name ends in NUL" */
#define HF_FOREVER          (-1)                   /* wait_ms: no limit */
#define HF_NEVER            (-1)                   /* ttl_ms: does not expire */
#define HF_TTL_MIN_MS       100                    /* shortest lease */
#define HF_TTL_MAX_MS       (7LL * 24 * 3600000)   /* longest lease: a week */
#define HF_DELAY_MAX_MS     (3600000LL)            /* longest lock-delay: an hour */
#define HF_AT_LEAST_MAX_MS  (366LL * 24 * 3600000) /* longest that a release keeps it closed */
#define HF_TOGETHER_MAX     64                     /* locks of one hf_acquire_all() */
#define HF_TTL_DEFAULT_MS   30000
#define HF_TTL_CACHED_MS    10000 /* of a cached lock */
#define HF_WATCH_DEFAULT_MS 1000  /* a watch looks this often */
#define HF_TRAIL_DEFAULT    1000  /* the newest so many entries of a trail */
#define HF_TRAIL_MAX        100000

typedef struct hf_client hf_client; /* a connection to one store, with its keeper thread */
typedef struct hf_lock hf_lock;     /* a lock that was obtained */
typedef struct hf_cancel hf_cancel; /* a way to end another thread's wait */
typedef struct hf_gate hf_gate;     /* kept with a resource: the newest tokens it has seen */
typedef struct hf_view hf_view;     /* what hf_inspect() found */
typedef struct hf_watch hf_watch;   /* looks again and again, and tells what is new */
typedef struct hf_trail hf_trail;   /* what hf_history() found */

/* Errors: code, value, exit status of the command, text -------------------- */
#define HF_ERRORS(X)                                                                      \
    X(HF_BUSY, -1, 1, "somebody else holds it")                                           \
    X(HF_TIMEOUT, -2, 1, "not obtained in time; nothing is left in the store")            \
    X(HF_CANCELLED, -3, 1, "the wait was cancelled; nothing is left in the store")        \
    X(HF_STALE, -4, 1, "not, or no longer, held by this ticket")                          \
    X(HF_NOT_FOUND, -5, 1, "there is no such lock or ticket")                             \
    X(HF_LOST, -6, 80, "the lock was lost")                                               \
    X(HF_UNKNOWN, -7, 75, "the store did not answer; the outcome is not known")           \
    X(HF_UNAVAILABLE, -8, 69, "the store cannot be reached")                              \
    X(HF_DENIED, -9, 69, "the store may not be used like this")                           \
    X(HF_FULL, -10, 69, "the store, or the lock's queue, is full")                        \
    X(HF_CORRUPT, -11, 69, "the store holds something that holdfast does not understand") \
    X(HF_NO_STORE, -12, 69, "there is no store for this URL")                             \
    X(HF_UNSUPPORTED, -13, 64, "this store cannot do that")                               \
    X(HF_INVALID, -14, 64, "an argument is not valid")                                    \
    X(HF_DEADLOCK, -15, 64, "the caller already holds it and would wait for itself")      \
    X(HF_FORKED, -16, 64, "this handle belongs to the parent process")                    \
    X(HF_CLOSED, -17, 1, "the client was closed during the call")                         \
    X(HF_NO_MEMORY, -18, 71, "out of memory")                                             \
    X(HF_SYSTEM, -19, 71, "a system call failed")

enum hf_code {
    HF_OK = 0,
#define HF__X(code, value, status, text) code = value,
    HF_ERRORS(HF__X)
#undef HF__X
};

/* Its size never changes, because arrays and other structures contain it. A later version may give
 * a part of `reserved` a name: that part is then 0 if the library in use is older. */
typedef struct hf_error {
    int code;            /* the value that was returned; nothing is written on success */
    int retriable;       /* the same call may succeed later */
    long store_code;     /* the store's own number (SQLite result code, errno, ...), 0 if none */
    int64_t may_hold_ms; /* HF_UNKNOWN: the store may hold it for us this long; -1: for ever */
    char text[376];      /* one line, outermost first: "acquire 'x': sqlite: disk is full" */
    int64_t reserved[3]; /* 0 */
} hf_error;

const char *hf_version(void);       /* of the library in use: "0.2.0"; static */
const char *hf_code_name(int code); /* "HF_BUSY"; never NULL; static */
const char *hf_code_text(int code); /* its text in the list above; never NULL; static */
int hf_code_exit_status(int code);  /* the command's exit status for it; 70 for an unknown code */

/* Why a lock was lost ------------------------------------------------------- */
#define HF_CAUSES(X)                                                                          \
    X(HF_CAUSE_NONE, "not lost")                                                              \
    X(HF_CAUSE_EXPIRED, "the lease could not be renewed in time")                             \
    X(HF_CAUSE_GONE, "the store no longer knows this grant: it was broken, taken or deleted," \
                     " or the connection that held it is gone")                               \
    X(HF_CAUSE_MAX_HOLD, "max_hold was reached")                                              \
    X(HF_CAUSE_STORE_LOST, "the store's data was replaced or deleted")                        \
    X(HF_CAUSE_FORKED, "this is a forked child")                                              \
    X(HF_CAUSE_CLOSED, "the client was closed")

typedef enum hf_cause {
#define HF__X(id, text) id,
    HF_CAUSES(HF__X)
#undef HF__X
} hf_cause;
const char *hf_cause_text(hf_cause cause);

/* Clients ------------------------------------------------------------------ */

/* What a program would like to find in its log. The levels are those of hf_diagnose(): 1 note, 2
 * warning, 3 problem. */
#define HF_LOG_KINDS(X)                                                                       \
    X(HF_LOG_AT_RISK, 2, "at-risk", "a renewal of the lock is overdue")                       \
    X(HF_LOG_SAFE, 1, "safe", "the lock that was at risk is renewed")                         \
    X(HF_LOG_LOST, 3, "lost", "the lock is lost; with the cause")                             \
    X(HF_LOG_UNKNOWN, 2, "unknown",                                                           \
      "the end of a bid or a release was not answered; the "                                  \
      "client goes on")                                                                       \
    X(HF_LOG_SETTLED, 1, "settled", "it was answered after all, or nothing can be left")      \
    X(HF_LOG_STORE_AWAY, 2, "store-away", "the store does not answer")                        \
    X(HF_LOG_STORE_BACK, 1, "store-back", "the store answers again")                          \
    X(HF_LOG_STORE_MOVED, 1, "store-moved", "the store speaks to another server than before") \
    X(HF_LOG_DROPPED, 2, "dropped", "entries came faster than they were taken")

typedef enum hf_log_kind {
#define HF__X(id, level, name, text) id,
    HF_LOG_KINDS(HF__X)
#undef HF__X
} hf_log_kind;

/* Only the library makes these; later versions append fields. All lives as long as the call. */
typedef struct hf_log_entry {
    hf_log_kind kind;
    int level;
    hf_cause cause;   /* LOST */
    int code;         /* why, an HF_ code; HF_OK if there is nothing to say */
    const char *name; /* of the lock, also ends in NUL; NULL: it is about the store */
    size_t name_len;
    const char *text; /* all of it in one line of printable text, without a secret */
} hf_log_entry;

/* Called on the thread of the other callbacks (hf_lock_callback), in the order in which things came up.
 * It may call everything but hf_close(), which does nothing here. Entries that it is too slow for are
 * dropped, beyond a thousand, and counted by one of kind DROPPED. */
typedef void hf_log_callback(const hf_log_entry *entry, void *arg);

typedef struct hf_client_options {
    size_t size;         /* sizeof(hf_client_options) */
    const char *program; /* shown by `holdfast show`; NULL: the name of this program */
    const char *modules; /* directories of store modules (holdfast-<store>.so), separated by ':', to
                            look into before the installed one; NULL: none. The environment variable
                            HOLDFAST_MODULES, such a list too, replaces them all. A module that this
                            process has loaded already stays the one that is used */
    int64_t metrics;     /* 1: count, for hf_metrics_read() */
    hf_log_callback
        *on_log;   /* what happens to locks and store in the background; NULL: nobody asks */
    void *log_arg; /* passed to it */
} hf_client_options;

/* Opens the store that `url` names: memory://name, sqlite:/path/locks.db, ... (holdfast(7) lists
 * them with their options). If `url` is NULL, it takes the URL from the environment variable
 * HOLDFAST_URL (a set-user-id program ignores that), or else the default store:
 * /var/lib/holdfast/locks.db for root, holdfast/locks.db in the user's state directory for
 * everybody else. You can open a network store before it can be reached. `opt` may be NULL.
 * Errors: HF_INVALID (the URL or an option in it), HF_NO_STORE (no such scheme, module missing),
 * HF_DENIED (rights, unsafe files), HF_UNAVAILABLE, HF_CORRUPT, HF_FULL, HF_NO_MEMORY,
 * HF_SYSTEM. */
int hf_open(const char *url, const hf_client_options *opt, hf_client **ret_client, hf_error *err);

/* Releases every lock that is still held, wakes all waiting calls (they return HF_CLOSED), joins
 * the threads and frees the client. Afterwards no thread of the library and no callback runs. The
 * client's lock handles then serve only for hf_lock_release(), which just frees them, and for the
 * questions about a lock, which answer LOST. NULL is fine. Called in a callback of this client,
 * including on_wait and that of hf_diagnose(), it does nothing. It needs one round trip for each
 * held lock, up to eight at a time; if one gets no answer, it does not try the others. */
void hf_close(hf_client *client);

/* What the store can do, one bit for each capability. */
#define HF_CAPABILITIES(X)                                                                    \
    X(HF_CAN_SHARE, 0, "shared", "readers and writers (C9)")                                  \
    X(HF_CAN_LIMIT, 1, "limit", "shared locks with a limit (C1)")                             \
    X(HF_CAN_LEASE, 2, "lease", "leases that outlive a dead connection (C3)")                 \
    X(HF_CAN_NEVER, 3, "never", "locks that never expire (C3)")                               \
    X(HF_CAN_DELAY, 4, "delay", "lock-delay (C8)")                                            \
    X(HF_CAN_QUEUE, 5, "queue", "first come, first served (C5)")                              \
    X(HF_CAN_PUSH, 6, "push", "waiters are woken by the store (C12)")                         \
    X(HF_CAN_TOKEN, 7, "token", "fencing tokens that only rise (C4)")                         \
    X(HF_CAN_CHECK, 8, "check", "sequencers can be checked (C10)")                            \
    X(HF_CAN_BREAK, 9, "break", "locks can be broken by ticket (C3)")                         \
    X(HF_CAN_DETACH, 10, "detach", "a lock can be passed on by its ticket")                   \
    X(HF_CAN_PROCESS, 11, "process", "shared by several processes")                           \
    X(HF_CAN_PERSIST, 12, "persist", "never-expiring locks survive a restart of the store")   \
    X(HF_CAN_AT_LEAST, 13, "at-least", "a release can keep the lock closed for a time (C14)") \
    X(HF_CAN_VALUE, 14, "value", "a value that only the holder writes (C15)")                 \
    X(HF_CAN_WANTED, 15, "wanted", "a holder is told that somebody waits (C16)")              \
    X(HF_CAN_HISTORY, 16, "history", "a trail of who held it, in the store")                  \
    X(HF_CAN_CACHE, 17, "cache", "a released lock can stay with its client (C20)")
/* A store with "never" and "persist" can pass on locks that never expire, even without "detach". */

enum hf_capability {
#define HF__X(id, bit, name, text) id = 1 << bit,
    HF_CAPABILITIES(HF__X)
#undef HF__X
};
uint32_t hf_capabilities(const hf_client *client);

/* Acquiring ---------------------------------------------------------------- */
typedef enum hf_mode { HF_EXCLUSIVE = 0, HF_SHARED = 1 } hf_mode;

/* Called on a thread that the library keeps for callbacks, one call at a time for each client. A
 * slow callback delays other callbacks, but never a renewal. It may ask about the lock. It may not
 * release or detach it: that returns HF_DEADLOCK and leaves the handle as it is. `lock` is valid
 * during the call, because hf_lock_release() waits for the callback to end. */
typedef void hf_lock_callback(hf_lock *lock, hf_cause cause, void *arg);

/* Called on the waiting thread each time the store answers "queued". `position` counts from 1. It
 * may call hf_inspect() to find out who holds the lock. */
typedef void hf_wait_callback(size_t position, void *arg);

/* Set `size` and the fields you need; 0 and NULL mean what each comment says. Or start from
 * HF_OPTIONS_INIT: exclusive, a lease of 30 s renewed in the background, wait without a limit. */
typedef struct hf_options {
    size_t size;           /* sizeof(hf_options) */
    hf_mode mode;          /* HF_EXCLUSIVE or HF_SHARED */
    uint32_t limit;        /* HF_SHARED: at most this many holders; 0: no limit */
    int64_t ttl_ms;        /* the lease; 0: HF_TTL_DEFAULT_MS, or with `cached` HF_TTL_CACHED_MS;
                              HF_NEVER: until released or broken */
    int64_t wait_ms;       /* 0: do not wait for others; HF_FOREVER; on CLOCK_BOOTTIME. A request
                              in progress at the end may take one more op_timeout, and withdrawing
                              the bid another one */
    int64_t lock_delay_ms; /* the lock stays closed this long if we vanish without releasing it */
    int64_t max_hold_ms;   /* renewals stop after this time and the lock is LOST; 0: no maximum;
                              needs a lease */
    int reentrant;         /* the same owner may acquire again, on the terms of the first time, and
                              must release as often. A shared lock inside a shared one needs this
                              too: a writer that queues in between waits for the first, and without
                              it the second would wait for the writer */
    uint64_t owner;    /* names "the same owner": 1 to 2^63 - 1, the rest is the library's. 0: the
                              calling thread, or with hf_acquire_start() nobody but this acquire. A
                              thread that runs several tasks gives each of them a number: as one
                              owner, the second that wants a lock is told HF_DEADLOCK and does not
                              wait */
    int by_hand;       /* no background renewal: you call hf_lock_renew() */
    int confirmed;     /* return only after the store has recorded that we know of the grant:
                              for a command that detaches, or if max_hold must be exact */
    const char *note;  /* shown to people who look at the lock; at most HF_NOTE_MAX bytes */
    hf_cancel *cancel; /* ends the wait when fired; if it has fired already, nothing is sent */
    hf_lock_callback *on_at_risk; /* a renewal is overdue; the lock is still ours */
    hf_lock_callback *on_lost;    /* the lock is lost; at most once */
    hf_wait_callback *on_wait;    /* still waiting */
    void *arg;                    /* passed to the callbacks */
    int64_t patience_ms; /* how long to keep trying while the store does not answer, within wait_ms.
                            HF_FOREVER: no limit. 0: for wait_ms; for one op_timeout if that is
                            longer or wait_ms is HF_FOREVER; with wait_ms 0 a store that cannot be
                            reached is asked once more, and no longer */
    hf_lock_callback *on_wanted; /* somebody has come to wait for the lock, or is found to wait */
    int64_t wanted;              /* 1: tell that, by hf_lock_wanted() or HF_EVENT_WANTED; on_wanted
                                    asks for it too */
    int64_t cached; /* 1: the lock may stay with this client when it is released. The next
                       hf_acquire() of it here, on the same terms, is then local and takes less than
                       a microsecond; it has a higher token. It goes back when somebody else wants it
                       and it is not in use, and when it was not used for a third of its lease. A
                       client that dies costs its lease, in use or not. For hf_acquire() only;
                       exclusive, with a lease. Ignored where no call from the store can be heard */
} hf_options;

#if defined(__cplusplus) && __cplusplus >= 201103L
#define HF__NULL nullptr
#else
#define HF__NULL 0
#endif
#define HF_OPTIONS_INIT                                                                       \
    {                                                                                         \
        sizeof(hf_options), HF_EXCLUSIVE, 0, HF_TTL_DEFAULT_MS, HF_FOREVER, 0, 0, 0, 0, 0, 0, \
            HF__NULL, HF__NULL, HF__NULL, HF__NULL, HF__NULL, HF__NULL, 0, HF__NULL, 0, 0     \
    }

/* Takes the lock, waiting for at most opt->wait_ms. `opt` NULL means HF_OPTIONS_INIT. A reentrant
 * acquire of a lock that this owner holds returns the same handle again and counts it.
 * Errors: HF_BUSY (wait_ms is 0, and somebody holds it or waits for it), HF_TIMEOUT, HF_CANCELLED,
 * HF_CLOSED, HF_DEADLOCK (this owner holds it already, or asks for a stronger mode), HF_LOST
 * (re-entering a lock that was lost), HF_UNSUPPORTED, HF_INVALID, HF_FULL (also if 10,000 are
 * waiting already), HF_UNAVAILABLE (certainly not obtained), HF_UNKNOWN (see err->may_hold_ms; the
 * client keeps withdrawing the bid in the background), HF_DENIED, HF_CORRUPT, HF_FORKED,
 * HF_NO_MEMORY, HF_SYSTEM. */
int hf_acquire(hf_client *client, const char *name, size_t name_len, const hf_options *opt,
               hf_lock **ret_lock, hf_error *err);

/* Releases the lock and frees the handle, whatever it returns, except HF_DEADLOCK and HF_FORKED. A
 * reentrant lock only counts down until the last release. NULL is fine and returns HF_OK.
 * Errors: HF_STALE (it was no longer ours: lost, broken or expired. Nothing has changed, except
 * that a lock lost only by max_hold opens now, not at the end of its lease), HF_DEADLOCK (see
 * hf_lock_callback; the handle is not freed), HF_UNKNOWN (the client keeps trying in the background
 * until the store answers. If you close the client first, the lock ends with its lease, and one
 * that never expires stays), HF_FORKED, HF_CLOSED (the client is closed: the handle is freed and
 * nothing else), HF_UNAVAILABLE, HF_DENIED, HF_CORRUPT. */
int hf_lock_release(hf_lock *lock, hf_error *err);

/* As hf_lock_release(), but the lock opens no earlier than at_least_ms after it was taken, by the
 * store's clock; the call does not wait for that. Nobody but hf_break() with `now` opens it before.
 * What a reentrant lock asks for at several releases counts at the last; the longest does.
 * Errors: those of hf_lock_release(); HF_UNKNOWN also if it was answered only when the time was over, and
 * may have come too late to keep the lock closed. With these the lock and the handle stay as they
 * are: HF_INVALID (negative, or more than HF_AT_LEAST_MAX_MS), HF_UNSUPPORTED. */
int hf_lock_release_after(hf_lock *lock, int64_t at_least_ms, hf_error *err);

/* Renews the lease now; the next background renewal counts from here. You need it only with
 * opt->by_hand.
 * Errors: HF_LOST, HF_UNKNOWN and HF_UNAVAILABLE (still ours for hf_lock_remaining_ms()),
 * HF_FORKED, HF_CLOSED. */
int hf_lock_renew(hf_lock *lock, hf_error *err);

/* Frees the handle but leaves the lock in the store. There it lasts until its lease ends, or until
 * somebody adopts it by its ticket: copy hf_lock_ticket() first.
 * Errors: HF_UNSUPPORTED, HF_LOST, HF_INVALID (held more than once), HF_DEADLOCK (in its callback),
 * HF_FORKED, HF_CLOSED. After an error the handle is as before. */
int hf_lock_detach(hf_lock *lock, hf_error *err);

/* Takes over a lock by its ticket, after hf_lock_detach() or from another process, and restarts its
 * lease. Of `opt` it uses only by_hand, max_hold_ms, reentrant, owner and the callbacks; the rest
 * stays as it was. The token stays the same too, so nothing can tell the old holder from the new
 * one: adopt a lock only if its holder has detached it or is dead.
 * Errors: HF_STALE (this ticket holds nothing),
 * HF_UNSUPPORTED, HF_DEADLOCK, and those of hf_acquire(). */
int hf_adopt(hf_client *client, const char *name, size_t name_len, const char *ticket,
             const hf_options *opt, hf_lock **ret_lock, hf_error *err);

/* Several at once ---------------------------------------------------------- */

/* Takes all of these locks or none, in the byte order of their names whatever the order given here: so
 * two sets cannot wait for each other. opt->wait_ms is the limit for all of them together; each bid may take
 * what hf_acquire() says beyond it. `lens` may be NULL: all names end in NUL. ret_locks[i] is the lock of
 * names[i]; each has its own token, lease and loss, and can be released by itself.
 * Errors: those of hf_acquire(), after which nothing is held; HF_INVALID (a name twice, none, or more than
 * HF_TOGETHER_MAX); HF_LOST (one was lost while the others were waited for); HF_UNKNOWN (what was
 * got may not have been released). */
int hf_acquire_all(hf_client *client, const char *const *names, const size_t *lens, size_t count,
                   const hf_options *opt, hf_lock **ret_locks, hf_error *err);

/* Releases them, the last in the order of the names first, and sorts the array. Tries all; the error is the
 * first one of hf_lock_release(). */
int hf_release_all(hf_lock **locks, size_t count, hf_error *err);

/* The value ---------------------------------------------------------------- */

/* A lock keeps a value of up to HF_VALUE_MAX bytes, in the store, from one holder to the next. Only
 * a live exclusive grant replaces it: the store checks the token in the same step, and drops a write
 * that was overtaken. So unlike any other resource it is always fenced.
 *
 * Reads it. *ret_doubt (may be NULL) is 1 if a holder that had read or written it vanished, and nobody
 * has written it since: what it stands for may be half done. A value that nobody has written is empty.
 * Errors: HF_LOST, HF_INVALID (`size` is too small; HF_VALUE_MAX never is), HF_UNSUPPORTED,
 * HF_UNAVAILABLE, HF_FORKED, HF_CLOSED, HF_DENIED, HF_CORRUPT. */
int hf_lock_value(hf_lock *lock, void *buf, size_t size, size_t *ret_len, int *ret_doubt,
                  hf_error *err);

/* Replaces it. HF_OK: it is written, and survives what a lock that never expires survives. A purge
 * keeps it, unless it is empty.
 * Errors: HF_LOST (not written), HF_INVALID (too long, or the lock is shared), HF_UNSUPPORTED,
 * HF_UNKNOWN (perhaps written; write it again), HF_UNAVAILABLE, HF_FULL, HF_FORKED, HF_CLOSED,
 * HF_DENIED, HF_CORRUPT. */
int hf_lock_set_value(hf_lock *lock, const void *value, size_t len, hf_error *err);

/* Without a thread that waits ---------------------------------------------- */
typedef enum hf_event_kind {
    HF_EVENT_ACQUIRED = 1, /* `lock` is yours, to be given back */
    HF_EVENT_FAILED = 2,   /* `err` says why, as hf_acquire() would */
    HF_EVENT_RELEASED = 3, /* `err.code` is what hf_lock_release() would return */
    HF_EVENT_AT_RISK = 4,  /* as on_at_risk, of a lock that was started */
    HF_EVENT_LOST = 5,     /* as on_lost, likewise; with the cause */
    HF_EVENT_WANTED = 6,   /* as on_wanted, likewise; if opt->wanted asks for it */
} hf_event_kind;

typedef struct hf_event {
    size_t size; /* sizeof(hf_event), set by you */
    hf_event_kind kind;
    hf_cause cause; /* LOST */
    uint64_t tag;   /* as given at the start; AT_RISK, WANTED and LOST: at that of the acquire */
    hf_lock *lock;  /* ACQUIRED, AT_RISK, WANTED, LOST */
    hf_error err;   /* FAILED, RELEASED; code HF_OK otherwise */
} hf_event;

/* Begins what hf_acquire() does, and returns at once. It ends with one event of this tag, ACQUIRED or
 * FAILED; after ACQUIRED the same tag tells of AT_RISK, WANTED and LOST, until the lock is given back. A few
 * threads of the library do the work, whatever number waits. on_wait is not called; opt->cancel must
 * live until the event, but hf_acquire_stop() costs less. What is wrong with the arguments is
 * returned, and no event follows: HF_INVALID (also: this owner holds it and may enter it again by
 * hf_acquire()), HF_UNSUPPORTED, HF_DEADLOCK, HF_LOST, HF_CLOSED, HF_FORKED, HF_NO_MEMORY,
 * HF_SYSTEM. */
int hf_acquire_start(hf_client *client, const char *name, size_t name_len, const hf_options *opt,
                     uint64_t tag, hf_error *err);

/* The same, but makes the first attempt on the calling thread, which costs what hf_acquire() costs if the
 * lock is free. *ret_lock is the lock, and no event told that it was acquired; or NULL: it waits, and
 * goes on as if it had been started. AT_RISK and LOST are told by the tag in both cases. It returns
 * whatever ended the attempt: an error of hf_acquire(), or of hf_acquire_start(). A reentrant
 * acquire gives the same handle again, as hf_acquire() does; its tag is that of the first time. */
int hf_acquire_or_start(hf_client *client, const char *name, size_t name_len, const hf_options *opt,
                        uint64_t tag, hf_lock **ret_lock, hf_error *err);

/* Ends the bids of this tag early. Each still has its event: FAILED with HF_CANCELLED when nothing is
 * left of it in the store, or another one if it was over before. HF_NOT_FOUND: none is under way. */
int hf_acquire_stop(hf_client *client, uint64_t tag);

/* Begins what hf_lock_release() does, and returns at once; the handle, however it was acquired, is no
 * longer yours, and nothing more is told of it but RELEASED, with this tag. It may be called in a
 * callback of that lock, too, and by a finalizer. HF_NO_MEMORY, HF_SYSTEM, HF_FORKED, HF_INVALID: it
 * is as before. HF_CLOSED: it was freed only. */
int hf_release_start(hf_lock *lock, uint64_t tag, hf_error *err);

/* A descriptor that is readable while there are events, for poll() and the like: do not read or close
 * it; valid until hf_close(). HF_SYSTEM, HF_CLOSED, HF_FORKED as negative values. */
int hf_event_fd(hf_client *client);

/* The next event, in the order in which they came up; waits for one for wait_ms, 0 or HF_FOREVER.
 * Any thread may call it; each event is given once. hf_close() ends what was started, and drops events
 * that nobody took: locks among them are released. HF_TIMEOUT: there is none. HF_CLOSED, HF_FORKED,
 * HF_INVALID, HF_SYSTEM. */
int hf_event_next(hf_client *client, int64_t wait_ms, hf_event *ret_event);

/* Ends waits, from another thread or a signal handler. One object can serve many waits. Once fired,
 * it stays fired. Free it when no acquire uses it any more. */
int hf_cancel_new(hf_cancel **ret_cancel); /* HF_NO_MEMORY, HF_SYSTEM */
void hf_cancel_fire(hf_cancel *cancel);    /* async-signal-safe */
void hf_cancel_free(hf_cancel *cancel);    /* NULL is fine */

/* Asking a lock. None of these touches the network ------------------------- */
typedef enum hf_state {
    HF_STATE_HELD = 0,    /* ours, for at least hf_lock_remaining_ms() */
    HF_STATE_AT_RISK = 1, /* still ours, but a renewal is overdue */
    HF_STATE_LOST = 2,    /* no longer ours; never turns back */
} hf_state;

hf_state hf_lock_state(const hf_lock *lock);
hf_cause hf_lock_cause(const hf_lock *lock); /* why it was lost; HF_CAUSE_NONE if it was not */

/* Why the last renewal failed: the reason behind AT_RISK and HF_CAUSE_EXPIRED. Returns and fills in
 * what the renewal itself would have. HF_OK: it did not fail, or it is still in progress. */
int hf_lock_error(const hf_lock *lock, hf_error *err);

/* Whether somebody waits for the lock, as the store last said: with the grant, with each renewal, and at
 * once where it can call (HF_CAN_PUSH). 0 without opt->wanted or opt->cached, and when it is lost. */
int hf_lock_wanted(const hf_lock *lock);

/* How long the lock stays ours without another renewal, by the local clock, with a safety margin. 0
 * when it is lost; INT64_MAX when it never expires. */
int64_t hf_lock_remaining_ms(const hf_lock *lock);

/* A file descriptor that becomes readable when the lock is lost, and stays readable. Use it with
 * poll() only: do not read or close it. It is valid until the release. Errors, as negative values:
 * HF_NO_MEMORY, HF_SYSTEM, HF_FORKED. */
int hf_lock_fd(hf_lock *lock);

/* The fencing token: larger than that of every earlier grant of this name. HF_UNSUPPORTED if the
 * store cannot make one. */
int hf_lock_generation(const hf_lock *lock, uint64_t *ret_generation);

/* The sequencer: a proof to show to a resource, in printable ASCII without blanks. It does not
 * contain the ticket. HF_UNSUPPORTED if there is no token. */
int hf_lock_sequencer(const hf_lock *lock, char *buf, size_t size);

const char *hf_lock_ticket(const hf_lock *lock);                /* borrowed until the release */
const char *hf_lock_name(const hf_lock *lock, size_t *ret_len); /* likewise; also ends in NUL */

/* At the resource ---------------------------------------------------------- */

/* Asks the store whether the grant behind this sequencer is live now.
 * HF_OK: it is. HF_STALE: it is not. Errors: HF_INVALID, HF_UNSUPPORTED, HF_UNAVAILABLE, ... */
int hf_check(hf_client *client, const char *sequencer, hf_error *err);

/* A check that does not ask the store. A gate lets an exclusive sequencer pass if it has seen no
 * newer one, and a shared sequencer if it has seen no newer exclusive one. Save its levels with the
 * resource's data (hf_gate_levels) and restore them before the first request (hf_gate_restore), or
 * a restart forgets them. hf_gate_pass returns HF_OK, HF_STALE, HF_INVALID, HF_UNSUPPORTED (grants
 * with a limit have no order: use hf_check) or HF_NO_MEMORY. */
int hf_gate_new(hf_gate **ret_gate);
int hf_gate_pass(hf_gate *gate, const char *sequencer, hf_error *err);
int hf_gate_levels(hf_gate *gate, const char *name, size_t name_len, uint64_t *ret_exclusive,
                   uint64_t *ret_highest); /* HF_NOT_FOUND: none has passed yet */
int hf_gate_restore(hf_gate *gate, const char *name, size_t name_len, uint64_t exclusive,
                    uint64_t highest); /* raises, never lowers */
void hf_gate_free(hf_gate *gate);

/* Counters ------------------------------------------------------------------ */
#define HF_BUCKETS        18 /* of a histogram */
#define HF_METRICS_CODES  32 /* room for every HF_ code */
#define HF_METRICS_CAUSES 16 /* and for every hf_cause */
#define HF_METRICS_CALLS  16 /* and for every hf_call */

/* How long things took. buckets[i] counts those of up to hf_bucket_us(i) that fit into none before it;
 * the last one takes the rest. Its size never changes. */
typedef struct hf_histogram {
    uint64_t count, sum_us;
    uint64_t buckets[HF_BUCKETS];
} hf_histogram;

/* The bounds: 100 us, 300 us, 1 ms, 3 ms, ... 10,000 s; INT64_MAX of the last bucket, and beyond. */
int64_t hf_bucket_us(size_t bucket);

/* What a store is asked for. */
#define HF_CALLS(X)                                                                 \
    X(HF_CALL_ATTEMPT, "attempt", "a bid, or the same bid again")                   \
    X(HF_CALL_RELEASE, "release", "a lock is given back")                           \
    X(HF_CALL_WITHDRAW, "withdraw", "a bid is given up")                            \
    X(HF_CALL_RENEW, "renew", "some locks or places in a queue are kept, together") \
    X(HF_CALL_BREAK, "break", "a lock is taken away from its holder")               \
    X(HF_CALL_VALUE, "value", "a value is read or written")                         \
    X(HF_CALL_INSPECT, "inspect", "a look at who holds and who waits")              \
    X(HF_CALL_UPKEEP, "upkeep", "setup and purge")                                  \
    X(HF_CALL_DIAGNOSE, "diagnose", "doctor's questions")

typedef enum hf_call {
#define HF__X(id, name, text) id,
    HF_CALLS(HF__X)
#undef HF__X
} hf_call;
const char *hf_call_name(hf_call call); /* "attempt"; NULL past the last; static */

/* What this client has seen. `failed` and `call_errors` are by code: failed[-HF_TIMEOUT]. */
typedef struct hf_metrics {
    size_t size; /* sizeof(hf_metrics), set by you */

    /* At this moment */
    uint64_t held;         /* locks */
    uint64_t waiting;      /* bids that wait, for others or for the store */
    uint64_t undoing;      /* bids and releases whose end the store has not answered yet */
    int64_t store_away_ms; /* how long the store has not answered; 0: it does, or was not asked */

    /* Since it was opened. Acquires that were refused for their arguments, and those of a lock that was
     * entered again, are not counted */
    uint64_t grants; /* by the store, and adopted; not those that the cache gave */
    uint64_t failed[HF_METRICS_CODES]; /* acquires that ended without one */
    hf_histogram wait;                 /* of acquires that ended with one: how long they took */
    hf_histogram hand_over;            /* those of them that were queued: from the moment the client
                                          heard of the grant until the caller had the lock */
    uint64_t queued;                   /* answers that told a bid its place in the queue */
    uint64_t queued_places;            /* the sum of these places, counted from 1 */
    uint64_t longest_queue;            /* the last place of them */
    hf_histogram hold;                 /* from the grant to the release, the detach or the loss */

    uint64_t renewals, renewals_failed; /* of locks; a renewal that is tried again counts again */
    hf_histogram renewal_left;          /* what was left of the lease when it was renewed */
    int64_t closest_call_ms;            /* the least of that; -1: nothing was renewed yet */
    uint64_t at_risk;                   /* times that a renewal was overdue */
    uint64_t lost[HF_METRICS_CAUSES];   /* by hf_cause */
    uint64_t unknown;                   /* bids and releases that ended with HF_UNKNOWN */

    uint64_t
        calls[HF_METRICS_CALLS]; /* of the store, by hf_call: one round trip each, with most stores
                                         and most of the time */
    uint64_t call_errors[HF_METRICS_CODES];
    hf_histogram call_time;
    uint64_t wakes;       /* calls by the store */
    uint64_t log_dropped; /* entries that on_log was too slow for */
} hf_metrics;

/* The counters of a client that was opened with hf_client_options.metrics. What is newer than this
 * library is 0. Errors: HF_INVALID (no place, or nothing is counted), HF_CLOSED, HF_FORKED. */
int hf_metrics_read(hf_client *client, hf_metrics *ret_metrics, hf_error *err);

/* Inspecting and repairing a store ------------------------------------------ */
typedef enum hf_place {
    HF_PLACE_INSIDE = 0,    /* holds the lock */
    HF_PLACE_LINGERING = 1, /* vanished or broken; its lock-delay keeps the lock closed */
    HF_PLACE_WAITING = 2,   /* in the queue */
} hf_place;

/* One holder or waiter. Only the library makes these; later versions append fields. The strings
 * live as long as the view. */
typedef struct hf_entry {
    const char *name; /* also ends in NUL */
    size_t name_len;
    hf_place place;
    size_t position; /* in the queue, from 1; 0 for holders */
    hf_mode mode;
    uint32_t limit;
    char ticket[HF_TICKET_SIZE];
    uint64_t generation; /* 0 while waiting */
    int64_t ttl_ms;      /* HF_NEVER: until released or broken */
    int64_t lock_delay_ms;
    int64_t age_ms;       /* how long it has held or waited */
    int64_t remaining_ms; /* of the lease or lock-delay, or until a waiter must report again;
                             HF_NEVER: no lease (the lock then ends with a connection if ttl_ms
                             is not HF_NEVER) */
    int claimed;          /* the holder knows that it holds */
    const char *host, *user, *program, *note;
    int64_t pid;
    int cached; /* its client may not be using it */
} hf_entry;

typedef struct hf_query {
    size_t size;      /* sizeof(hf_query) */
    const char *name; /* exactly this lock; NULL: any */
    size_t name_len;
    const char *prefix; /* names that begin like this; NULL: any */
    size_t prefix_len;
    int64_t older_than_ms; /* only holders of at least this age; 0: all, and waiters */
    int64_t value;         /* 1: the lock's value too, for hf_view_value(); needs `name` */
} hf_query;

/* Finds holders and waiters. They are sorted by name, holders before waiters, waiters in the order
 * of the queue. `query` may be NULL. Free locks do not appear. Errors: HF_INVALID, HF_UNAVAILABLE,
 * HF_DENIED, HF_CORRUPT, HF_NO_MEMORY, HF_FORKED, HF_UNSUPPORTED (a value). */
int hf_inspect(hf_client *client, const hf_query *query, hf_view **ret_view, hf_error *err);
size_t hf_view_count(const hf_view *view);
const hf_entry *hf_view_entry(const hf_view *view, size_t i); /* NULL past the end */
void hf_view_free(hf_view *view);

/* The value of the lock, as it was when the view was made; a view is the one of hf_inspect() with a
 * query that asked for it. The bytes, borrowed until the view is freed; *ret_generation (may be NULL) is
 * the token of the grant that wrote it, 0 if nobody has, and *ret_doubt (may be NULL) as of
 * hf_lock_value(). An address in it is that of the present holder only if the holder's entry has this
 * generation. HF_NOT_FOUND: it was not asked for. */
int hf_view_value(const hf_view *view, const void **ret_value, size_t *ret_len,
                  uint64_t *ret_generation, int *ret_doubt);

/* Watches what `query` names (NULL: everything): looks at the store once in every interval_ms (0:
 * HF_WATCH_DEFAULT_MS), in the thread that calls hf_watch_next(), and only there. Errors:
 * HF_INVALID, HF_UNSUPPORTED, HF_NO_MEMORY, HF_SYSTEM, HF_CLOSED, HF_FORKED. */
int hf_watch_new(hf_client *client, const hf_query *query, int64_t interval_ms,
                 hf_watch **ret_watch, hf_error *err);

/* Waits up to wait_ms (or HF_FOREVER) for a view with other holders, waiters or order than the last one;
 * the first is given at once. States in between may be skipped, but the last one is given within an
 * interval. "Nobody" is a state: an empty view. Errors: HF_TIMEOUT (all is as it was), and those of
 * hf_inspect(), when a look failed: never an old view. After an error the next view is given
 * whatever it shows, an interval later. hf_close() ends a wait with HF_CLOSED. */
int hf_watch_next(hf_watch *watch, int64_t wait_ms, hf_view **ret_view, hf_error *err);

/* A descriptor that is readable when a look is due: call hf_watch_next() with wait_ms 0 then. For
 * poll() and the like: do not read or close it. HF_INVALID or HF_FORKED as negative values. */
int hf_watch_fd(hf_watch *watch);
void hf_watch_free(hf_watch *watch); /* NULL is fine; also after hf_close() */

/* The trail ---------------------------------------------------------------- */

/* A client whose URL says history=N writes down what becomes of grants and bids, in the store, which keeps
 * the last N bids of each lock (one that had to wait may count twice). It is for people and proves
 * nothing: clocks are not exact, and what clients without that option do is not written down (C21). */
#define HF_TRAIL_KINDS(X)                                                                       \
    X(HF_TRAIL_GRANTED, 1, "granted", "the bid was let in; its client may not know yet")        \
    X(HF_TRAIL_RELEASED, 2, "released", "the holder let go")                                    \
    X(HF_TRAIL_LOST, 3, "lost", "the lease ran out; noticed by whoever came next")              \
    X(HF_TRAIL_BROKEN, 4, "broken", "somebody took the grant away, or the place in the queue")  \
    X(HF_TRAIL_WITHDRAWN, 5, "withdrawn", "the bidder gave up: it timed out, or was cancelled") \
    X(HF_TRAIL_VANISHED, 6, "vanished", "who waited gave no sign of life any more")

typedef enum hf_trail_kind {
#define HF__X(id, value, name, text) id = value,
    HF_TRAIL_KINDS(HF__X)
#undef HF__X
} hf_trail_kind;
const char *hf_trail_kind_name(hf_trail_kind kind); /* "granted"; "" if unknown; static */

/* Only the library makes these; later versions append fields. The strings live as long as the
 * trail. */
typedef struct hf_trail_entry {
    const char *name; /* also ends in NUL */
    size_t name_len;
    hf_trail_kind kind;
    int64_t at_ms; /* since 1970, by the clock of the store, or of who wrote it down */
    hf_mode mode;
    char ticket[HF_TICKET_SIZE];              /* of the bid: the same from its grant to its end */
    uint64_t generation;                      /* 0: it was not let in */
    int64_t held_ms;                          /* for how long, of the end of a grant; 0 otherwise */
    int64_t waited_ms;                        /* before it was let in or gave up; 0 otherwise */
    const char *host, *user, *program, *note; /* of the bid */
    int64_t pid;
    const char *cause; /* LOST: "expired"; "unclaimed" if its client never knew of the grant;
                          "reboot". BROKEN: who did it. "" otherwise */
} hf_trail_entry;

typedef struct hf_history_query {
    size_t size;      /* sizeof(hf_history_query) */
    const char *name; /* of this lock; NULL: any */
    size_t name_len;
    const char *prefix; /* names that begin like this; NULL: any */
    size_t prefix_len;
    int64_t since_ms; /* from this moment on; 0: no limit. Milliseconds since 1970 */
    int64_t until_ms; /* before this moment; 0: no limit */
    int64_t at_ms;    /* not 0: the grants of those who held at this moment, as far as is known. Not
                         together with the two above */
    int64_t limit;    /* the newest so many; 0: HF_TRAIL_DEFAULT; at most HF_TRAIL_MAX */
} hf_history_query;

/* Reads the trail, in the order of time. The URL of who reads it need not say history=N. `query` may
 * be NULL. Errors: HF_INVALID, HF_UNSUPPORTED, HF_UNAVAILABLE, HF_DENIED, HF_CORRUPT, HF_NO_MEMORY,
 * HF_FORKED, HF_CLOSED. */
int hf_history(hf_client *client, const hf_history_query *query, hf_trail **ret_trail,
               hf_error *err);
size_t hf_trail_count(const hf_trail *trail);
const hf_trail_entry *hf_trail_entry_at(const hf_trail *trail, size_t i); /* NULL past the end */
void hf_trail_free(hf_trail *trail);

/* Takes the lock away from a ticket. If the holder has a lease, the lock stays closed until the
 * lease ends, because the holder may be alive; it learns in time that the lock is LOST. `now` skips
 * that wait. Then follows the lock-delay, if the grant was claimed. A waiter loses its place; if
 * its client is alive, it joins the queue again at the end. Errors:
 * HF_NOT_FOUND, HF_UNSUPPORTED, HF_INVALID, and the store's. */
int hf_break(hf_client *client, const char *name, size_t name_len, const char *ticket, int now,
             hf_error *err);

/* Creates what the store needs (tables, directories) and leaves alone what exists. */
int hf_setup(hf_client *client, hf_error *err);

/* Removes the records of free locks that nobody has touched for retain_ms; 0 means the store's own
 * retain option. Tokens of those names keep rising, by the store's clock (C4). A call ends after
 * one op_timeout, so very many records need several calls: none is left when *ret_count is 0. */
int hf_purge(hf_client *client, int64_t retain_ms, uint64_t *ret_count, hf_error *err);

/* Examines a live store, with one call of `found` for each finding. `clause` is "C3" or NULL;
 * `level` is 0 fine, 1 note, 2 warning, 3 problem. */
typedef void hf_finding_callback(int level, const char *clause, const char *text, void *arg);
int hf_diagnose(hf_client *client, hf_finding_callback *found, void *arg, hf_error *err);

/* Lists the stores that this installation knows. `missing` is NULL if the store can be used;
 * otherwise it says why not. */
typedef struct hf_store_info {
    const char *name;
    const char *schemes; /* "sqlite:" */
    const char *summary;
    uint32_t capabilities;
    const char *options; /* its URL options, one per line: "name=DEFAULT  what it does" */
    const char *ddl;     /* what hf_setup() would create, as text; NULL if nothing */
    const char *missing;
} hf_store_info;
typedef void hf_store_callback(const hf_store_info *info, void *arg);
int hf_stores(hf_store_callback *found, void *arg);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif
#endif
