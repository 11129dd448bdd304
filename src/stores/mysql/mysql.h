/* The inside of the store of MariaDB and MySQL.
 *
 *   mysql.c     the table of functions, what is there, which refusals are worth another try
 *   settings.c  what the URL says
 *   conn.c      one connection
 *   text.c      a statement as it is put together
 *   query.c     a statement and its answer, without blocking
 *   errors.c    what the server's errors mean
 *   quick.c     taking and releasing a lock without a queue
 *   call.c      operations through the procedures of rules.sql and operations.sql
 *   listen.c    how wake-ups come
 *   session/    hold=session
 *   inspect.c, upkeep.c, diagnose.c
 *
 * Mutexes: the pool's and the listener's; none is kept during a system call
 * that may block, and never two. */
#ifndef HF_STORES_MYSQL_MYSQL_H
#define HF_STORES_MYSQL_MYSQL_H

#include <mysql.h>

#include "sql/session/session.h"
#include "sql/store.h"
#include "sql/url.h"

#define HF__MY_SCHEMA 2 /* the versions this code speaks: of the tables, */
#define HF__MY_RULES  4 /* and of the procedures (holdfast_routines) */
#define HF__MY_HINTS  1024

#define HF__MY_TOO_LATE 1644 /* the error of holdfast_check_time: of every SIGNAL */

extern const char hf__my_ddl[]; /* schema.sql, rules.sql, operations.sql */
extern const char hf__my_upgrade_sql[];
extern const char hf__my_take_sql[], hf__my_free_sql[], hf__my_inspect_sql[], hf__my_idle_sql[],
    hf__my_created_sql[], hf__my_counter_sql[], hf__my_server_sql[], hf__my_clock_sql[],
    hf__my_rows_sql[]; /* statements.sql */
extern const struct hf__option hf__my_options[];
extern const struct hf__store_type hf_store_type_v1;

/* Beside those that all SQL stores have. */
struct hf__my_settings {
    char *option_file, *program;
    bool session; /* hold=session */
};

/* What the server calls a connection in its process list. */
struct hf__my_process {
    uint64_t number;
    char host[80];
};

struct hf__my_conn {
    struct hf__pooled pooled;
    MYSQL *my;
    uint64_t id;                   /* as the server itself calls this connection */
    struct hf__my_process process; /* number 0: it was not set up for session/ */
    MYSQL_STMT *take, *free;       /* quick.c: prepared when they are first needed */
    bool unprepared;               /* the server has no room for them */
    bool proxied;                  /* somebody in between calls it otherwise */
    bool broken; /* of no more use: a reply is missing, or a transaction may be open */
    bool lost;   /* that is because the server is away, or takes no writes any more */
};

struct hf__my {
    struct hf__store base;
    struct hf__sql sql;
    struct hf__session_list list; /* hold=session: session/ */
    struct hf__my_settings set;
    atomic_bool crowded[HF__MY_HINTS]; /* quick.c: by the hash of the name */
};

/* mysql.c, open.c ---------------------------------------------------------- */
int hf__my_open(const struct hf__url *url, const struct hf__host *host,
                struct hf__store **ret_store, hf_error *err);
void hf__my_close(struct hf__store *store);

extern const struct hf__sql_type hf__my_sql_type;
int hf__my_learn(void *store, void *conn, int64_t deadline_ns, hf_error *err);

/* settings.c --------------------------------------------------------------- */
int hf__my_read_url(struct hf__my *s, const struct hf__url *url, hf_error *err);

/* conn.c ------------------------------------------------------------------- */

extern const struct hf__pool_type hf__my_pool_type;

/* Connects to the first server that takes writes; not one of the pool's. HF_UNAVAILABLE,
 * HF_DENIED, HF_NO_MEMORY. */
int hf__my_dial(struct hf__my *s, int64_t deadline_ns, struct hf__my_conn **ret_conn,
                hf_error *err);
void hf__my_hang_up(struct hf__my_conn *c); /* NULL is fine */

/* Whether the server has neither hung up nor said anything. */
bool hf__my_is_quiet(const struct hf__my_conn *c);

/* One of the pool's; a broken one is not lent again. */
int hf__my_borrow(struct hf__my *s, int64_t deadline_ns, struct hf__my_conn **ret_conn,
                  hf_error *err);
void hf__my_give_back(void *store, void *conn);

/* Waits for what libmariadb asks for; gives back what has come, 0: the deadline. */
int hf__my_wait(struct hf__my *s, MYSQL *my, int wanted, int64_t deadline_ns);

/* text.c ------------------------------------------------------------------- */

/* A statement as it is put together. Bytes go in as hex literals, so nothing has to be quoted. */
struct hf__my_text {
    char *data;
    size_t len, capacity;
    bool failed; /* no memory */
};

void hf__my_add(struct hf__my_text *t, const char *format, ...) HF__PRINTF(2, 3);
void hf__my_add_hex(struct hf__my_text *t, const void *bytes, size_t len);   /* 6162 */
void hf__my_add_bytes(struct hf__my_text *t, const void *bytes, size_t len); /* x'6162' */
void hf__my_add_text(struct hf__my_text *t, const char *text);               /* NULL: NULL */
void hf__my_add_short(struct hf__my_text *t, const char *text); /* cut to 255 characters */
void hf__my_add_or_null(struct hf__my_text *t, int64_t number, int64_t null);
/* One of statements.sql: values[0] takes the place of ?1, and so on. They are SQL already. */
void hf__my_add_statement(struct hf__my_text *t, const char *sql, const char *const *values);
void hf__my_text_clear(struct hf__my_text *t);

/* x'6162', of a name or one byte more; gives back the buffer. */
#define HF__MY_LITERAL (2 * (HF_NAME_MAX + 1) + 4)
const char *hf__my_literal(const void *bytes, size_t len, char buf[HF__MY_LITERAL]);

/* query.c ------------------------------------------------------------------ */

/* Sends the statement and reads everything that comes. `*ret_result` is the first table of the
 * answer, NULL if there is none (and may be NULL). If the reply is lost, or the server may have
 * left a transaction open, the connection is marked as broken.
 * HF_UNKNOWN: it may have been applied; every other code: it was not. `reads`: it changes nothing,
 * so there is nothing to be unknown. */
int hf__my_ask(struct hf__my *s, struct hf__my_conn *c, const struct hf__my_text *t, bool reads,
               int64_t deadline_ns, MYSQL_RES **ret_result, hf_error *err);

/* A statement with parameters: prepares it, for as long as the connection lasts, and executes
 * it. */
int hf__my_prepare(struct hf__my *s, struct hf__my_conn *c, const char *sql, int64_t deadline_ns,
                   MYSQL_STMT **ret_stmt, hf_error *err);
int hf__my_execute(struct hf__my *s, struct hf__my_conn *c, MYSQL_STMT *stmt, MYSQL_BIND *params,
                   int64_t deadline_ns, hf_error *err);

/* The same for fixed text whose answer does not matter. */
int hf__my_run(struct hf__my *s, struct hf__my_conn *c, const char *sql, int64_t deadline_ns,
               hf_error *err);

/* The first row of what a fixed text asks for; NULL, with an error, if there is none. */
MYSQL_RES *hf__my_look(struct hf__my *s, struct hf__my_conn *c, const char *sql,
                       int64_t deadline_ns, MYSQL_ROW *ret_row, hf_error *err);

/* errors.c ----------------------------------------------------------------- */

/* "mysql: <what the server or the library said>; <what to do>". */
int hf__my_fail(unsigned number, const char *text, bool reads, hf_error *err);

/* Whether it means that the server is away, or takes no writes any more. */
bool hf__my_is_loss(unsigned number);

/* Whether the error that this code stands for ends if the same is done again. */
bool hf__my_is_conflict(long store_code);

/* quick.c ------------------------------------------------------------------ */

/* Does the operation by one statement if the lock is free, or held by this ticket alone, and the
 * bid is a simple one. `*ret_done` false, with 0: nothing was changed. */
int hf__my_quick(struct hf__my *s, struct hf__my_conn *c, const struct hf__sql_operation *op,
                 int64_t deadline_ns, struct hf__answer *ret_answer, bool *ret_done, hf_error *err);

/* What the rules answered: whether the next one should try the quick way. */
void hf__my_quick_learn(struct hf__my *s, const struct hf__sql_operation *op,
                        const struct hf__answer *got);

/* call.c ------------------------------------------------------------------- */

int hf__my_call(void *store, void *conn, const struct hf__sql_operation *op, int64_t deadline_ns,
                struct hf__answer *ret_answer, hf_error *err);

/* listen.c ----------------------------------------------------------------- */
extern const struct hf__listener_type hf__my_listener_type;
void hf__my_wake(struct hf__store *store, hf__wake_sink *sink, void *ctx);

/* Listens as a waiter would, and calls itself by `c`: how long that took. HF_UNSUPPORTED: it cannot listen here;
 * HF_UNAVAILABLE: no call came. */
int hf__my_call_self(struct hf__my *s, struct hf__my_conn *c, int64_t deadline_ns, int64_t *ret_us,
                     hf_error *err);

/* inspect.c, upkeep.c, diagnose.c ------------------------------------------ */
int hf__my_inspect(struct hf__store *store, const struct hf__search *search, int64_t deadline_ns,
                   hf_error *err);
int hf__my_setup(void *store, void *conn, int64_t deadline_ns, hf_error *err);
int hf__my_purge(void *store, void *conn, int64_t retain_ms, int64_t deadline_ns, uint64_t *count,
                 hf_error *err);
int hf__my_diagnose(struct hf__store *store, hf_finding_callback *found, void *arg,
                    int64_t deadline_ns, hf_error *err);

#endif
