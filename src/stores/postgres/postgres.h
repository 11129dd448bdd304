/* The PostgreSQL store's inside: connections that are lent to one operation at a time, and questions
 * with parameters. The rules are the functions of rules.sql and operations.sql; all other texts are
 * in statements.sql. */
#ifndef HF_STORES_POSTGRES_POSTGRES_H
#define HF_STORES_POSTGRES_POSTGRES_H

#include <libpq-fe.h>

#include "doorman/trail.h"
#include "sql/session/session.h"
#include "sql/store.h"
#include "sql/url.h"

#define HF__PG_SCHEMA     1  /* the versions this code speaks: of the tables, */
#define HF__PG_RULES      4  /* and of the functions (holdfast_routines) */
#define HF__PG_TRAILS     5  /* from this version on they write a trail */
#define HF__PG_VALUES     17 /* parameters of a question */
#define HF__PG_REGISTERED 64
#define HF__PG_TOO_LATE   "HF002" /* the error of public.holdfast_enter */

extern const char hf__pg_ddl[]; /* schema.sql, rules.sql, operations.sql */
extern const char hf__pg_trail_sql[], hf__pg_purge_trail_sql[];
extern const char hf__pg_learn_sql[], hf__pg_location_sql[], hf__pg_inspect_sql[],
    hf__pg_purge_sql[], hf__pg_server_sql[], hf__pg_rights_sql[], hf__pg_rows_sql[],
    hf__pg_sizes_sql[];
extern const struct hf__option hf__pg_options[];
extern const struct hf__store_type hf_store_type_v1;

enum hf__pg_hold { HF__PG_HOLD_LEASE, HF__PG_HOLD_SESSION, HF__PG_HOLD_ADVISORY };

/* Beside those that all SQL stores have. */
struct hf__pg_settings {
    char *passfile, *application;
    char *schema; /* NULL: public, without having been named */
    enum hf__pg_hold hold;
};

/* What the server calls a connection. Numbers come again, but in sessions that began later. */
struct hf__pg_backend {
    int64_t pid;
    int64_t seen_us; /* by the server's clock, when it had this number */
};

struct hf__pg_conn {
    struct hf__pooled pooled;
    PGconn *pg;
    struct hf__pg_backend backend; /* pid 0: it was not set up for session/ */
    bool replica;                  /* it became one: the next connection finds the primary */
};

struct hf__pg {
    struct hf__store base;
    struct hf__sql sql;
    struct hf__session_list list; /* hold=session, hold=advisory: session/ */
    struct hf__pg_settings set;
    atomic_bool begin_first;                        /* the server's default is not READ COMMITTED */
    _Atomic uint64_t registered[HF__PG_REGISTERED]; /* session/: hashes of names */
    _Atomic int64_t registered_ns;                  /* since then */
};

/* open.c ------------------------------------------------------------------- */
int hf__pg_open(const struct hf__url *url, const struct hf__host *host,
                struct hf__store **ret_store, hf_error *err);
void hf__pg_close(struct hf__store *store);
int hf__pg_read_url(struct hf__pg *s, const struct hf__url *url, hf_error *err);

/* conn.c: one connection --------------------------------------------------- */

extern const struct hf__pool_type hf__pg_pool_type;

/* Connects to the first server that takes writes; not one of the pool's. HF_UNAVAILABLE,
 * HF_DENIED, HF_NO_MEMORY. */
int hf__pg_dial(struct hf__pg *s, int64_t deadline_ns, struct hf__pg_conn **ret_conn,
                hf_error *err);
void hf__pg_hang_up(struct hf__pg_conn *c); /* NULL is fine */

/* One of the pool's. What was left in the middle of something is not lent again. */
int hf__pg_borrow(struct hf__pg *s, int64_t deadline_ns, struct hf__pg_conn **ret_conn,
                  hf_error *err);
void hf__pg_give_back(void *store, void *conn);
void hf__pg_hang_up_borrowed(struct hf__pg *s, struct hf__pg_conn *c); /* not to be lent again */

/* Waits for the socket: 1 it is ready, 0 the deadline has come. */
int hf__pg_wait(struct hf__pg *s, PGconn *pg, short events, int64_t deadline_ns);

/* query.c: a question and its answer --------------------------------------- */

struct hf__pg_query {
    const char *sql;
    int count;
    Oid types[HF__PG_VALUES];
    const char *values[HF__PG_VALUES];
    int lengths[HF__PG_VALUES], formats[HF__PG_VALUES];
    char numbers[HF__PG_VALUES][24];
    bool reads; /* changes nothing: a lost reply is HF_UNAVAILABLE, not HF_UNKNOWN */
    bool bare;  /* nothing in it is looked for by a search_path, or the session has ours */
};

/* For the transaction: whatever schemas a role looks into first, it finds the system's functions, operators and
 * types. */
#define HF__PG_SAFE_PATH "SELECT pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true)"

/* The values are borrowed until the question is asked. */
void hf__pg_bytes(struct hf__pg_query *q, const void *bytes, size_t len);
void hf__pg_text(struct hf__pg_query *q, const char *text); /* NULL: null */
void hf__pg_number(struct hf__pg_query *q, int64_t number);
void hf__pg_number_or_null(struct hf__pg_query *q, int64_t number, int64_t null);
void hf__pg_flag(struct hf__pg_query *q, bool flag);
void hf__pg_array(struct hf__pg_query *q, Oid type, const char *literal);

/* Writes the bytes in hex, without a NUL; gives back what follows. */
char *hf__pg_put_hex(char *at, const void *bytes, size_t len);

/* Asks, and reads everything up to "ready": only then the server has committed. If the reply is
 * lost the connection is broken (PQstatus): hang it up before anything else. HF_UNKNOWN: it may
 * have been applied; every other code: it was not. Tables and functions are named
 * public.holdfast_...: schema.c. Outside of a transaction HF__PG_SAFE_PATH goes before it, in the
 * same round trip and transaction, unless it is bare. */
int hf__pg_ask(struct hf__pg *s, struct hf__pg_conn *c, const struct hf__pg_query *q,
               int64_t deadline_ns, PGresult **ret_result, hf_error *err);

/* The same for several statements without parameters, or one whose answer does not matter; bare. */
int hf__pg_run(struct hf__pg *s, struct hf__pg_conn *c, const char *sql, int64_t deadline_ns,
               hf_error *err);

/* What an error of the server means; the text is "postgres: <what>; <what to do>". */
int hf__pg_fail(const PGresult *result, hf_error *err);
int hf__pg_fail_connect(PGconn *pg, hf_error *err);
bool hf__pg_state_is(const PGresult *result, const char *state);

/* Cells of an answer. `hf__pg_cell_bytes` reads hex; -1: it is none, or longer than that. */
int hf__pg_cell_bytes(const PGresult *result, int row, int column, char *buf, size_t size);
int64_t hf__pg_cell(const PGresult *result, int row, int column, int64_t null);
bool hf__pg_cell_flag(const PGresult *result, int row, int column);

/* schema.c: which schema has the tables ------------------------------------ */

/* Whether it may be named; NULL is fine. HF_INVALID. */
int hf__pg_check_schema(const char *schema, hf_error *err);
const char *hf__pg_schema(const struct hf__pg *s);

/* The text with this schema in the place of `public`, for the caller to free; NULL: no memory. */
char *hf__pg_in_schema(const char *schema, const char *sql);
int hf__pg_ddl_of(const struct hf__url *url, char **ret_text, hf_error *err);

struct hf__pg_location {
    bool is_there, has_tables; /* the schema; the tables in it */
    bool may_create, may_make; /* tables in it; a schema in the database */
    bool all_may_create;       /* everybody may create something in it */
    char others[160];          /* schemas that have such tables as well, or "" */
    char other[64];            /* one of them */
    char role[64], database[64];
};
int hf__pg_look_around(struct hf__pg *s, struct hf__pg_conn *c, int64_t deadline_ns,
                       struct hf__pg_location *ret_location, hf_error *err);

/* HF_DENIED: there are no tables, and what to do. */
int hf__pg_fail_missing(struct hf__pg *s, struct hf__pg_conn *c, int64_t deadline_ns,
                        hf_error *err);

/* Makes the schema if it is missing. HF_DENIED: it may not be used, and what to do; or the tables
 * are in another schema and the URL names none. */
int hf__pg_make_room(struct hf__pg *s, struct hf__pg_conn *c, int64_t deadline_ns, hf_error *err);

/* call.c: operations ------------------------------------------------------- */

int hf__pg_call(void *store, void *conn, const struct hf__sql_operation *op, int64_t deadline_ns,
                struct hf__answer *ret_answer, hf_error *err);

/* listen.c ----------------------------------------------------------------- */
extern const struct hf__listener_type hf__pg_listener_type;
void hf__pg_wake(struct hf__store *store, hf__wake_sink *sink, void *ctx);

/* Listens as a waiter would, and calls itself by `c`: how long that took. HF_UNAVAILABLE: no call came. */
int hf__pg_call_self(struct hf__pg *s, struct hf__pg_conn *c, int64_t deadline_ns, int64_t *ret_us,
                     hf_error *err);

/* Whether something that is not the server answers on this connection. */
int hf__pg_find_pooler(struct hf__pg *s, struct hf__pg_conn *c, int64_t deadline_ns,
                       bool *ret_pooled, hf_error *err);

/* postgres.c --------------------------------------------------------------- */

extern const struct hf__sql_type hf__pg_sql_type;
int hf__pg_learn(void *store, void *conn, int64_t deadline_ns, hf_error *err);

/* inspect.c, upkeep.c, diagnose.c ------------------------------------------ */
/* trail.c. For the statements of call.c: the name ($1), but that it is evaluated only after the function
 * has been told of the trail, by the parameter of that number (hf__pg_tell). */
#define HF__PG_NAME_AND_TRAIL(n) \
    "CASE WHEN pg_catalog.set_config('holdfast.history', $" n ", true) IS NOT NULL THEN $1 END"

/* Adds that parameter, if this client writes a trail. */
struct hf__pg_tells {
    char text[HF__TRAIL_CAUSE_MAX + 24];
};
void hf__pg_tell(const struct hf__pg *s, struct hf__pg_query *q, struct hf__pg_tells *tells);
int hf__pg_trail(struct hf__store *store, const struct hf__trail_search *search,
                 int64_t deadline_ns, hf_error *err);

int hf__pg_inspect(struct hf__store *store, const struct hf__search *search, int64_t deadline_ns,
                   hf_error *err);
int hf__pg_setup(void *store, void *conn, int64_t deadline_ns, hf_error *err);
int hf__pg_purge(void *store, void *conn, int64_t retain_ms, int64_t deadline_ns, uint64_t *count,
                 hf_error *err);
int hf__pg_diagnose(struct hf__store *store, hf_finding_callback *found, void *arg,
                    int64_t deadline_ns, hf_error *err);

#endif
