/* A store of lease rows: what becomes of an operation, whichever server it is for.
 *
 * The doorman's rules are routines in the server, which `holdfast setup` or a DBA has put there, so
 * that an operation is one round trip and one transaction. It borrows a connection, looks once
 * whether tables and routines are there and of our version, and calls a routine. What the server
 * refuses because somebody else was there is tried again, as long as there is time: all operations
 * are idempotent by ticket. A store says how its server is asked, and what its refusals mean. */
#ifndef HF_SQL_STORE_H
#define HF_SQL_STORE_H

#include <stdatomic.h>

#include "base/report.h"
#include "net/listener.h"
#include "net/pool.h"
#include "sql/rows.h"
#include "sql/url.h"

#define HF__SQL_ALWAYS      UINT32_MAX /* see `tries` */
#define HF__SQL_PURGE_BATCH 200

/* A routine that is missing may be there again in a moment: not every server can replace one while
 * others use it, so `holdfast setup` leaves a gap. For half a second or so. */
#define HF__SQL_MISSING_TRIES 8

struct hf__sql_operation {
    enum hf__operation_kind kind;
    const struct hf__bid *bid;  /* RENEW: NULL */
    int64_t retire_ms;          /* WITHDRAW, RELEASE */
    int64_t at_least_ms;        /* RELEASE */
    bool now;                   /* BREAK */
    uint64_t generation;        /* READ, WRITE; RELEASE of a cached grant */
    struct hf__value *value;    /* READ, WRITE */
    struct hf__renewal **items; /* RENEW: in the order of their names */
    size_t count;
    const char *wake; /* ATTEMPT: where its client can be called; NULL: nowhere */
};

/* What a store does. `store` is the whole store, `conn` a connection of its pool. */
struct hf__sql_type {
    const char *name;     /* for messages */
    const char *routines; /* what they are called here: "functions" */
    const struct hf__pool_type *pool;
    const struct hf__listener_type *listener; /* NULL: nobody is called */
    int schema, rules; /* the versions of the tables and of the routines that this code speaks */
    int64_t retry_ms;  /* the pause after a conflict, and its growth: up to 32 times as long */
    int64_t least_ms;  /* less time is too little for another try; 0: any will do */

    /* Looks at the tables and the routines, and checks their versions. HF_DENIED: they are missing,
     * of another version, or may not be used. */
    int (*learn)(void *store, void *conn, int64_t deadline_ns, hf_error *err);

    /* One operation, in one round trip. */
    int (*call)(void *store, void *conn, const struct hf__sql_operation *op, int64_t deadline_ns,
                struct hf__answer *ret_answer, hf_error *err);

    void (*give_back)(void *store, void *conn);

    /* How many times what was refused so may be tried again. It may mark the connection (NULL: none
     * was to be had), and forget what was learnt (hf__sql_learn_again). */
    unsigned (*tries)(void *store, void *conn, const hf_error *why);

    /* Creates what is missing, or replaces what is older. */
    int (*setup)(void *store, void *conn, int64_t deadline_ns, hf_error *err);

    /* Removes locks that nobody has used for so long, HF__SQL_PURGE_BATCH at most: others come
     * while we go. Adds to the count. */
    int (*purge)(void *store, void *conn, int64_t retain_ms, int64_t deadline_ns, uint64_t *count,
                 hf_error *err);

    /* How many of these renewals one operation takes, then others get their turn. NULL: all. */
    size_t (*batch)(struct hf__renewal *const *items, size_t count);
};

struct hf__sql {
    const struct hf__sql_type *type;
    struct hf__sql_settings set;
    struct hf__pool pool;
    struct hf__listener listener;
    atomic_bool learnt; /* tables and routines are ours */
    _Atomic int64_t learnt_ns;
    _Atomic int64_t ahead_us; /* of our clock, the server's; at least so much */
    atomic_bool lost;         /* a connection was, and none has been dialled since */
};

/* A store begins with these two, so that the functions below can be its own. */
struct hf__sql_store {
    struct hf__store base;
    struct hf__sql sql;
};
#define HF__IS_SQL(type) \
    _Static_assert(offsetof(type, sql) == offsetof(struct hf__sql_store, sql), "begins otherwise")

/* Makes it ready, once its host, its type and its settings are known. `code`: what reading them
 * came to, and then the result; otherwise HF_SYSTEM: there is no randomness to be had. It can be
 * cleared even then. */
int hf__sql_init(struct hf__store *store, const struct hf__sql_type *type, int code, hf_error *err);
void hf__sql_clear(struct hf__sql *sql);

/* For `learn`. HF_DENIED: another version of the tables, or an older one of the routines: newer ones
 * keep what older clients call. */
int hf__sql_check_tables(const struct hf__sql *sql, int64_t version, hf_error *err);
int hf__sql_check_routines(const struct hf__sql *sql, int64_t version, hf_error *err);

/* For `learn`: what the server's clock said while it was asked, in microseconds since 1970. */
void hf__sql_note_clock(struct hf__sql *sql, int64_t server_us);

/* Our deadline by the server's clock, or a little before: what is sent with every request that lets
 * somebody in or keeps somebody in. Whoever has given up at the deadline says what the store can
 * still hold, and must be right, however late the server gets to read the request. */
int64_t hf__sql_latest_us(const struct hf__sql *sql, int64_t deadline_ns);

/* The flags of a bid's entry, as the rules know them. */
int hf__sql_flags(const struct hf__bid *bid);

/* A release with more than a ticket and its time. */
bool hf__sql_is_long_release(const struct hf__sql_operation *op);

/* HF_DENIED: there are no routines, or none that say their version. */
int hf__sql_fail_routines(const struct hf__sql *sql, hf_error *err);

/* Somebody has changed something: learn again. */
void hf__sql_learn_again(struct hf__sql *sql);

/* A connection was lost, or its server takes no writes any more; and another was dialled. It may be another server, or the
 * same without its last commits: then the core verifies what is held. */
void hf__sql_note_loss(struct hf__sql *sql);
void hf__sql_note_dial(struct hf__store *store);

/* For `diagnose`: learns, and says what came of it. False: there is nothing to look into. */
bool hf__sql_say_learnt(const struct hf__report *to, struct hf__store *store, void *conn,
                        int64_t deadline_ns);

/* The middle of the time that is left: so long may one question of `diagnose` take, that others may be asked. */
int64_t hf__sql_soon(const struct hf__store *store, int64_t deadline_ns);

/* The functions of a store; see store.h. */
int hf__sql_operate(struct hf__store *store, const struct hf__operation *op, int64_t deadline_ns,
                    struct hf__answer *ret_answer, hf_error *err);
int hf__sql_renew(struct hf__store *store, struct hf__renewal *items, size_t count,
                  int64_t deadline_ns, hf_error *err);
int hf__sql_upkeep(struct hf__store *store, enum hf__upkeep what, int64_t retain_ms,
                   int64_t deadline_ns, uint64_t *ret_count, hf_error *err);
int hf__sql_wake_fd(struct hf__store *store);

#define HF__SQL_CAPABILITIES                                                                   \
    (HF_CAN_SHARE | HF_CAN_LIMIT | HF_CAN_LEASE | HF_CAN_NEVER | HF_CAN_DELAY | HF_CAN_QUEUE | \
     HF_CAN_TOKEN | HF_CAN_CHECK | HF_CAN_BREAK | HF_CAN_DETACH | HF_CAN_PROCESS | HF_CAN_PERSIST)
#define HF__SQL_BEYOND (HF_CAN_AT_LEAST | HF_CAN_VALUE | HF_CAN_WANTED | HF_CAN_CACHE)

#endif
