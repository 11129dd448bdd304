/* A store of lease rows: what becomes of an operation, whichever server it is for.
 *
 * An operation borrows a connection, learns from the first answer whether the server's routines can
 * be used or the doorman has to decide here, and is done the one way or the other. What the server
 * refuses because somebody else was there is tried again, as long as there is time: all operations
 * are idempotent by ticket. A store says how its server is asked, and what its refusals mean. */
#ifndef HF_SQL_STORE_H
#define HF_SQL_STORE_H

#include <stdatomic.h>

#include "base/report.h"
#include "net/listener.h"
#include "net/pool.h"
#include "sql/record.h"
#include "sql/url.h"

#define HF__SQL_ALWAYS      UINT32_MAX /* see `tries` */
#define HF__SQL_PURGE_BATCH 200

/* How operations are done. */
enum hf__sql_way { HF__SQL_NOT_KNOWN, HF__SQL_ROUTINES, HF__SQL_PLAIN };

/* What a store does. `store` is the whole store, `conn` a connection of its pool. */
struct hf__sql_type {
    const char *name; /* for messages */
    const struct hf__pool_type *pool;
    const struct hf__listener_type *listener; /* NULL: nobody is called */
    int schema;                               /* the version of the tables that this code speaks */
    int64_t retry_ms; /* the pause after a conflict, and its growth: up to 32 times as long */
    int64_t least_ms; /* less time is too little for another try; 0: any will do */

    /* Looks at the tables and the routines: hf__sql_check_version, hf__sql_learnt. HF_DENIED: the
     * tables are missing or of another version. */
    int (*learn)(void *store, void *conn, int64_t deadline_ns, hf_error *err);

    /* One operation through the routines, in one round trip. */
    int (*call)(void *store, void *conn, const struct hf__sql_operation *op, int64_t deadline_ns,
                struct hf__answer *ret_answer, hf_error *err);

    /* The same by plain statements, in one transaction; see hf__sql_apply. RENEW has one item. */
    int (*apply)(void *store, void *conn, const struct hf__sql_operation *op, int64_t deadline_ns,
                 struct hf__answer *ret_answer, hf_error *err);

    void (*give_back)(void *store, void *conn);

    /* How many times what was refused so may be tried again. It may mark the connection (NULL: none
     * was to be had), and forget what was learnt (hf__sql_forget_way). */
    unsigned (*tries)(void *store, void *conn, const hf_error *why);

    /* Whether this was refused because the server could not call those who were let in. Then it is done once more, by
     * plain statements and silently: nobody waits for a lock to run out that could have been released. NULL: calls
     * are no part of an operation. */
    bool (*could_not_call)(const hf_error *why);

    /* Whether somebody else was in the way of the last statement, so that a renewal by plain
     * statements is tried again although some were renewed. NULL: it is not. */
    bool (*met_another)(const void *conn);

    /* Creates what is missing, and learns; the tables are needed, the routines are not. */
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
    _Atomic(enum hf__sql_way) way;
    atomic_bool lost; /* a connection was, and none has been dialled since */
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

/* What was found out; both for `learn`. HF_DENIED: another version. */
int hf__sql_check_version(const struct hf__sql *sql, int64_t version, hf_error *err);
void hf__sql_learnt(struct hf__sql *sql, bool routines);
void hf__sql_forget_way(struct hf__sql *sql); /* somebody has changed something: look again */

/* A connection was lost, or its server takes no writes any more; and another was dialled. It may be another server, or the
 * same without its last commits: then the core verifies what is held. */
void hf__sql_note_loss(struct hf__sql *sql);
void hf__sql_note_dial(struct hf__store *store);

/* For `diagnose`: learns the way and says which it is. `routines`: what they are called here;
 * `without`: why they are not used, and what that costs. False: there are no tables to look into. */
bool hf__sql_say_way(const struct hf__report *to, struct hf__store *store, void *conn,
                     const char *routines, const char *without, int64_t deadline_ns);

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

#endif
