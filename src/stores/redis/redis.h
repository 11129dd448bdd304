/* The Redis store's inside.
 *
 *   redis.c     the table of functions: each operation is one script call
 *   open.c      from the URL to a store
 *   names.c     the keys of a name
 *   request.c   what an operation says to its script
 *   script.c    EVALSHA
 *   answer.c    what a script may answer
 *   clock.c     what time it is at the server
 *   pool.c      connections that are lent to one operation at a time
 *   conn.c      one connection: dial and log in
 *   wire.c, login.c, settings.c    what all stores on Redis share (link.h)
 *   listen.c    the one connection on which wake-ups come
 *   watch.c     being told when a stranger lets go
 *   sentinel.c, failover.c, replicas.c    a master that may change, and its replicas
 *   value.c, inspect.c, room.c, upkeep.c, diagnose.c, trial.c
 *
 * Mutexes: pool->mutex and listener->mutex; neither is held during a system call that may block,
 * and never both. */
#ifndef HF_STORES_REDIS_REDIS_H
#define HF_STORES_REDIS_REDIS_H

#include <pthread.h>

#include "base/report.h"
#include "net/listener.h"
#include "net/pool.h"
#include "stores/redis/link.h"

#define HF__REDIS_WHO_MAX       1024
#define HF__REDIS_OWN_WORD      "holdfast."
#define HF__REDIS_SENTINELS_MAX 16

/* The scripts, as files beside this one. */
#define HF__REDIS_SCRIPTS(X)        \
    X(ATTEMPT, attempt)             \
    X(RELEASE, release)             \
    X(RELEASE_AFTER, release_after) \
    X(VALUE, value)                 \
    X(WITHDRAW, withdraw)           \
    X(RENEW, renew)                 \
    X(BREAK, break)                 \
    X(INSPECT, inspect)             \
    X(PURGE, purge)

enum hf__redis_script {
#define X(id, name) HF__REDIS_SCRIPT_##id,
    HF__REDIS_SCRIPTS(X)
#undef X
};

/* A lock held by a stranger, whose end we asked the server to tell. */
struct hf__redis_watch {
    struct hf__redis_watch *next;
    struct hf__ticket ticket;
    size_t key_len;
    char key[];
};

struct hf__redis_address {
    char host[256], port[16];
};

/* For redis+sentinel. What is above `demoted` is set at opening, then only read. */
struct hf__redis_sentinels {
    char *master_name;               /* NULL: there are none, the URL names the server itself */
    struct hf__account account;      /* the sentinels' own */
    _Atomic bool demoted;            /* an operation has met a master that is none any more */
    _Atomic size_t last;             /* the one that answered last */
    struct hf__redis_address master; /* the server last used; pool.mutex */

    /* failover.c; listener->mutex */
    struct hf__redis_conn *subscriber; /* subscribed at a sentinel; NULL: not connected */
    bool subscribing;                  /* somebody dials */
    int64_t retry_ns, pause_ms;        /* not before; how long that was */
    _Atomic bool switched;             /* heard, and not yet told */
};

struct hf__redis {
    struct hf__store base;
    struct hf__redis_settings set;
    struct hf__redis_sentinels sentinels;
    struct hf__pool pool;
    struct hf__listener listener;    /* its word is our channel */
    struct hf__redis_watch *watches; /* listener.mutex */
    _Atomic size_t watch_count;
    struct hf__redis_barred *barred;  /* likewise */
    char self[HF__REDIS_WHO_MAX / 2]; /* "pid\0host\0user\0program\0" */
    size_t self_len;
};

extern const struct hf__option hf__redis_options[];
__attribute__((visibility("default"))) extern const struct hf__store_type hf_store_type_v1;

/* names.c ------------------------------------------------------------------- */

/* The keys of one lock. The key is part of the book's name, so one buffer holds both. */
struct hf__redis_names {
    char book[HF__REDIS_KEY_MAX + 24];
    size_t book_len;
    const char *key;
    size_t key_len;
};

/* Errors: HF_INVALID (the key would be one of the store's own). */
int hf__redis_name(const struct hf__redis *s, const char *name, size_t len,
                   struct hf__redis_names *ret_names, hf_error *err);

/* The name of the lock with this book, or another key of ours; false if it was made with another key_format. */
bool hf__redis_unname(const struct hf__redis *s, const char *book, size_t book_len,
                      struct hf__redis_names *ret_names, const char **ret_name, size_t *ret_len);

/* request.c ----------------------------------------------------------------- */

struct hf__redis_operation {
    enum hf__redis_script script;
    const struct hf__bid *bid;
    int64_t number;      /* what follows the ticket: retire_ms, or whether to break now */
    int64_t at_least_ms; /* of RELEASE_AFTER, behind it */
    uint64_t
        generation; /* of an attempt: for the quick way; of RELEASE_AFTER: the last one used. 0: none */
    struct hf__redis_names names;
};

/* The last word of a request that changes something: how long notes are kept, and whom to tell that
 * the key is free (read_settings in notes.lua). */
void hf__redis_add_settings(const struct hf__redis *s, struct hf__redis_conn *c,
                            const struct hf__redis_names *names);

/* `channel` NULL: nobody listens. */
void hf__redis_add_bid(struct hf__redis *s, struct hf__redis_conn *c,
                       const struct hf__redis_operation *op, const char *channel);
void hf__redis_add_change(struct hf__redis *s, struct hf__redis_conn *c,
                          const struct hf__redis_operation *op);

/* conn.c -------------------------------------------------------------------- */

/* A connection that is logged in, to a server that may be used. HF_UNAVAILABLE, HF_DENIED,
 * HF_UNSUPPORTED (a cluster), HF_NO_MEMORY, HF_SYSTEM. */
int hf__redis_dial(struct hf__redis *s, int64_t deadline_ns, struct hf__redis_conn **ret_conn,
                   hf_error *err);

/* clock.c ------------------------------------------------------------------- */

/* True: ask the time again, in the same write as the next request, and hear it behind its reply. */
bool hf__redis_clock_is_due(const struct hf__redis_conn *c);
void hf__redis_clock_ask(struct hf__redis_conn *c);
void hf__redis_clock_hear(struct hf__redis_conn *c, int64_t deadline_ns);

/* The server's time as far as is known, in 16 digits. 0: not known. */
uint64_t hf__redis_clock_us(const struct hf__redis_conn *c, int64_t now_ns);

/* sentinel.c ---------------------------------------------------------------- */

/* Where the master is, by the first sentinel that knows. HF_UNAVAILABLE, HF_DENIED. */
int hf__redis_find_master(struct hf__redis *s, int64_t deadline_ns,
                          struct hf__redis_address *ret_address, hf_error *err);

/* HF_UNAVAILABLE: this server is not a master. */
int hf__redis_check_role(struct hf__redis_conn *c, int64_t deadline_ns, hf_error *err);

/* This is the master now. True: it is another one than before, and everything held is to be
 * verified. */
bool hf__redis_note_master(struct hf__redis *s, const struct hf__redis_address *address);

/* A connection to the i-th sentinel, logged in. */
int hf__redis_dial_sentinel(struct hf__redis *s, size_t i, int64_t deadline_ns,
                            struct hf__redis_conn **ret_conn, hf_error *err);

/* Asks a sentinel where the master is, and takes its answer. */
void hf__redis_ask_place(struct hf__redis *s, struct hf__redis_conn *c);
int hf__redis_take_place(const struct hf__redis *s, struct hf__redis_conn *c, int64_t deadline_ns,
                         struct hf__redis_address *ret_address, hf_error *err);

/* failover.c ------------------------------------------------------------------- */

/* Subscribes at a sentinel again, if it is due and somebody can listen. Failing costs time only. */
void hf__redis_subscribe_failover(struct hf__redis *s, int64_t deadline_ns);

/* In wake(), without blocking. True: the master was switched. */
bool hf__redis_hear_failover(struct hf__redis *s);

/* replicas.c ---------------------------------------------------------------- */

/* After a grant on this connection. `*ret_enough` false: take it back; `err` says why.
 * HF_UNKNOWN: no answer, the grant stands. */
int hf__redis_wait_replicas(struct hf__redis *s, struct hf__redis_conn *c, int64_t deadline_ns,
                            bool *ret_enough, hf_error *err);

/* Something about a grant of this ticket was not answered: it is not bid with again, until it is
 * withdrawn. */
void hf__redis_bar(struct hf__redis *s, const struct hf__ticket *ticket);
bool hf__redis_is_barred(struct hf__redis *s, const struct hf__ticket *ticket);
void hf__redis_unbar(struct hf__redis *s, const struct hf__ticket *ticket);
void hf__redis_unbar_all(struct hf__redis *s);

/* pool.c -------------------------------------------------------------------- */
extern const struct hf__pool_type hf__redis_pool_type;

/* Lends a connection; give it back, broken or not. HF_UNAVAILABLE also if all are lent and none
 * comes back in time. */
int hf__redis_take(struct hf__redis *s, int64_t deadline_ns, struct hf__redis_conn **ret_conn,
                   hf_error *err);
void hf__redis_give(struct hf__redis *s, struct hf__redis_conn *c);

/* script.c ------------------------------------------------------------------ */

/* Begins a call; then add the keys and the arguments, so many of each. */
void hf__redis_script(struct hf__redis_conn *c, enum hf__redis_script script, size_t keys,
                      size_t args);
void hf__redis_add_names(struct hf__redis_conn *c, const struct hf__redis_names *names);
void hf__redis_add_ticket(struct hf__redis_conn *c, const struct hf__ticket *ticket);

/* Calls it; teaches the server the script if it does not know it. Errors as hf__redis_ask(). */
int hf__redis_run(struct hf__redis_conn *c, enum hf__redis_script script, int64_t deadline_ns,
                  redisReply **ret_reply, hf_error *err);

/* answer.c ------------------------------------------------------------------ */

/* What strangers have to do with a wait. */
enum hf__redis_strangers {
    HF__REDIS_STRANGERS_NONE,
    HF__REDIS_STRANGERS_ONE_HOLDS,
    HF__REDIS_STRANGERS_LEFT_TO_THEM
};

/* One answer to that script, such as "granted <generation> <lease> <claimed>". `bid` is that of an
 * attempt, else NULL; `ret_strangers` may be NULL. HF_CORRUPT: it is none, or none to this question. */
int hf__redis_answer(enum hf__redis_script script, const struct hf__bid *bid,
                     const redisReply *reply, struct hf__answer *ret_answer,
                     enum hf__redis_strangers *ret_strangers, hf_error *err);

/* What a read of the value gave, behind such an answer: [answer, generation, order, doubt, bytes]. False:
 * it makes no sense. */
bool hf__redis_read_value(const redisReply *reply, struct hf__value *ret_value);

/* value.c ------------------------------------------------------------------- */

/* READ and WRITE, see enum hf__operation's. */
int hf__redis_value(struct hf__redis *s, const struct hf__operation *op, int64_t deadline_ns,
                    struct hf__answer *ret_answer, hf_error *err);

/* listen.c ------------------------------------------------------------------ */
#define HF__REDIS_WAKE_WORD  "holdfast.wake:" /* before a client's word: its channel */
#define HF__REDIS_INVALIDATE "__redis__:invalidate"

/* Subscribes to the channel of that word, and to changes of keys if that is allowed (then c->id is
 * set); afterwards only messages come. */
int hf__redis_subscribe(struct hf__redis_conn *c, const char *word, int64_t deadline_ns);
extern const struct hf__listener_type hf__redis_listener_type;
int hf__redis_wake_fd(struct hf__store *store);
void hf__redis_wake(struct hf__store *store, hf__wake_sink *sink, void *ctx);

/* Connects again if calls were wanted and the connection was lost. The channel, or NULL: nobody
 * listens. */
const char *hf__redis_listen_again(struct hf__redis *s, int64_t deadline_ns);

/* Reads what has come, without blocking. False: the connection is lost. */
typedef void hf__redis_hear(void *ctx, const redisReply *reply);
bool hf__redis_read_messages(struct hf__redis *s, struct hf__redis_conn *c, hf__redis_hear *hear,
                             void *ctx);

/* watch.c ------------------------------------------------------------------- */

/* A stranger holds this lock, or it is left to them, and `ticket` is the first to wait for it: have
 * the server tell us when the key changes. True: it has changed already. Failing costs time only. */
bool hf__redis_watch_key(struct hf__redis *s, struct hf__redis_conn *c,
                         const struct hf__redis_operation *op, enum hf__redis_strangers strangers,
                         int64_t deadline_ns);
void hf__redis_unwatch(struct hf__redis *s, const struct hf__ticket *ticket);
void hf__redis_unwatch_all(struct hf__redis *s);

/* The key has changed: takes out one who watches it, for the caller to free; NULL: there is
 * none. */
struct hf__redis_watch *hf__redis_take_watch(struct hf__redis *s, const redisReply *key);

/* open.c, inspect.c, upkeep.c, diagnose.c ----------------------------------- */
int hf__redis_open(const struct hf__url *url, const struct hf__host *host,
                   struct hf__store **ret_store, hf_error *err);
void hf__redis_close(struct hf__store *store);
int hf__redis_inspect(struct hf__store *store, const struct hf__search *search, int64_t deadline_ns,
                      hf_error *err);
int hf__redis_upkeep(struct hf__store *store, enum hf__upkeep what, int64_t retain_ms,
                     int64_t deadline_ns, uint64_t *ret_count, hf_error *err);
/* trail.c */
int hf__redis_trail(struct hf__store *store, const struct hf__trail_search *search,
                    int64_t deadline_ns, hf_error *err);

/* For the doctor: tries a lock, and being called and told, and reports that. */
void hf__redis_try(struct hf__redis *s, struct hf__redis_conn *c, const struct hf__report *to,
                   int64_t deadline_ns);
int hf__redis_diagnose(struct hf__store *store, hf_finding_callback *found, void *arg,
                       int64_t deadline_ns, hf_error *err);

/* Calls `page` with the keys of these kinds ("b": the books) of all locks, some at a time; they are
 * texts. Each page has an op_timeout for itself. */
typedef int hf__redis_page(void *ctx, struct hf__redis_conn *c, redisReply **books, size_t count,
                           int64_t deadline_ns, hf_error *err);
int hf__redis_scan(struct hf__redis *s, const char *kinds, hf__redis_page *page, void *ctx,
                   hf_error *err);

#endif
