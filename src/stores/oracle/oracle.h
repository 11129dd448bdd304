/* The inside of the store of Oracle databases, over ODBC.
 *
 *   oracle.c    the table of functions, what is there, which refusals are worth another try
 *   settings.c  what the URL says
 *   dialect.c   where Oracle and MariaDB's ORACLE mode differ: one table
 *   errors.c    what the servers' errors mean: one table per dialect
 *   odbc.c, odbc_run.c   what is asked of the driver; runs on the connection's thread
 *   conn.c      one connection and its thread; deadlines
 *   session.c   how a connection is made and ended; the pool
 *   statement.c a statement and what goes into it
 *   call.c      operations through the package of rules.sql
 *   open.c, inspect.c, upkeep.c, diagnose.c
 *
 * ODBC blocks, and what its timeouts are worth depends on the driver. So every connection has a
 * thread of its own, which alone talks to the driver; whoever asks waits for it until the deadline
 * and leaves it behind then, with its connection.
 *
 * Mutexes: the pool's, and one of each connection; none is kept during a call of the driver, and
 * never two. */
#ifndef HF_STORES_ORACLE_ORACLE_H
#define HF_STORES_ORACLE_ORACLE_H

#include <pthread.h>
#include <sql.h>
#include <sqlext.h>

#include "sql/store.h"

#define HF__ORA_SCHEMA     1    /* the versions this code speaks: of the tables, */
#define HF__ORA_RULES      2    /* and of the package (holdfast_rules.version) */
#define HF__ORA_ANSWER     4000 /* bytes in the answer of a routine, and in the list for renew */
#define HF__ORA_PARAMS     20   /* of one statement */
#define HF__ORA_TEXT       6000 /* bytes in all of them */
#define HF__ORA_STATEMENTS 16   /* kept prepared on each connection */

extern const char hf__ora_ddl[]; /* schema.sql, rules.sql, view.sql */
extern const char hf__ora_schema_sql[], hf__ora_rules_sql[], hf__ora_view_sql[];
extern const char hf__ora_inspect_sql[], hf__ora_clock_sql[], hf__ora_idle_sql[],
    hf__ora_rows_sql[]; /* statements.sql */
extern const struct hf__option hf__ora_options[];

/* dialect.c ---------------------------------------------------------------- */

/* What follows from an error, besides its code. */
enum hf__ora_kind {
    HF__ORA_KIND_OTHER,
    HF__ORA_KIND_AGAIN,     /* somebody else was there: not applied, and worth trying again */
    HF__ORA_KIND_DUPLICATE, /* a key is there already */
    HF__ORA_KIND_EXISTS,    /* a table is there already */
    HF__ORA_KIND_LOST,      /* the session is over */
    HF__ORA_KIND_CHANGED, /* the routines are not there, or no longer what they were: look again */
};

struct hf__ora_meaning {
    long native; /* the server's own number */
    int code;    /* HF_UNKNOWN: it may have been applied, unless it was inside a transaction */
    enum hf__ora_kind kind;
    const char *advice;
};

struct hf__ora_dialect {
    const char *name;           /* as in the option `dialect` */
    const char *dbms;           /* how SQL_DBMS_NAME begins */
    bool translate;             /* by the table of words: see dialect.c */
    const char *const *session; /* how a session begins; ends with NULL */
    const char *use_schema;     /* the same for the schema of the URL, which follows */
    const char *introduce[2];   /* around a name that a DBA may look for; NULL: no such thing */
    const char *self;           /* asks for one row: user, schema, PRIMARY or something else */
    const char *others;         /* asks for another schema with holdfast's tables, or NULL */
    const struct hf__ora_meaning *meanings; /* ends with native 0 */
};

/* NULL: there is none. `dbms` is what the driver says. */
const struct hf__ora_dialect *hf__ora_dialect_named(const char *name);
const struct hf__ora_dialect *hf__ora_dialect_of(const char *dbms);

/* A statement, written for Oracle, in another dialect; for the caller to free. NULL: no memory. */
char *hf__ora_translate(const struct hf__ora_dialect *dialect, const char *sql);

/* errors.c ----------------------------------------------------------------- */

struct hf__ora_trouble {
    char state[6]; /* SQLSTATE */
    long native;
    char text[240];
};

/* "oracle: <what>; <what to do>". `reads`: it changes nothing, so there is nothing to be unknown.
 * `dialect` NULL: not known yet. */
int hf__ora_fail(const struct hf__ora_dialect *dialect, const struct hf__ora_trouble *t, bool reads,
                 enum hf__ora_kind *ret_kind, hf_error *err);

/* odbc.c ------------------------------------------------------------------- */

/* An answer: rows of cells as text; NULL is null, or an empty text, which is the same on Oracle. */
struct hf__ora_rows {
    char **cells;
    size_t columns, count, capacity; /* capacity: of cells */
};

enum hf__ora_task {
    HF__ORA_TASK_OPEN,
    HF__ORA_TASK_RUN,
    HF__ORA_TASK_COMMIT,
    HF__ORA_TASK_ROLLBACK,
    HF__ORA_TASK_QUIT
};

/* What a thread is asked to do, and what came of it. */
struct hf__ora_job {
    enum hf__ora_task task;
    const char *sql; /* RUN: Oracle's; kept prepared, so it must be a constant. NULL: `once` */
    char *once;      /* RUN: of one use, as it is */
    bool answers;    /* the last parameter is the routine's answer */
    unsigned timeout_s;
    struct hf__ora_param {
        size_t at; /* in text */
        SQLLEN length;
        bool number;
    } params[HF__ORA_PARAMS];
    size_t param_count, used;
    char text[HF__ORA_TEXT];
    bool too_much; /* for the arrays above */

    SQLRETURN result;
    struct hf__ora_trouble trouble;
    struct hf__ora_rows rows;
    char answer[HF__ORA_ANSWER + 1];
};

struct hf__ora_link {
    SQLHENV env;
    SQLHDBC dbc;
    bool connected;
    char dbms[64], version[64], driver[128];
    bool forgets; /* what is prepared ends with the transaction */
    struct hf__ora_prepared {
        const char *sql;
        SQLHSTMT handle;
        unsigned timeout_s;
    } prepared[HF__ORA_STATEMENTS];
    size_t prepared_count;
};

struct hf__ora;
struct hf__ora_conn;

/* Does the job; may block. */
void hf__ora_work(struct hf__ora_conn *c);
void hf__ora_rows_clear(struct hf__ora_rows *rows);

/* conn.c ------------------------------------------------------------------- */

struct hf__ora_conn {
    struct hf__pooled pooled;
    struct hf__ora *s; /* the borrower's only: a thread may outlive the store */
    const struct hf_env *env;

    pthread_mutex_t mutex; /* guards these */
    pthread_cond_t changed;
    bool asked, done; /* the job */
    bool left;        /* whoever asked has gone: the thread cleans up */
    bool rests;       /* the thread is to end, and the connection stays */
    int owners;       /* the borrower and the threads; the last one frees it */
    SQLHSTMT running; /* may be cancelled, */
    bool cancelling;  /* and is, right now: it must not be freed */

    pthread_t thread; /* the borrower's: of whom it asks */
    bool has_thread;

    /* The thread's until it is done, otherwise the borrower's. */
    char *connect, *dsn, *user, *password; /* for OPEN; wiped after it */
    const struct hf__ora_dialect *dialect;
    struct hf__ora_link link;
    struct hf__ora_job job;
    bool broken;            /* of no more use: a reply is missing, or a transaction may be open */
    bool dirty;             /* something was asked since the last COMMIT or ROLLBACK */
    enum hf__ora_kind kind; /* of the last error */
};

#define HF__ORA_GOODBYE_MS 500 /* how long a polite end may take; then it goes on without us */

/* One that is not connected yet; connected; and ended, whatever became of it. */
int hf__ora_conn_new(struct hf__ora *s, struct hf__ora_conn **ret_conn, hf_error *err);
int hf__ora_begin(struct hf__ora_conn *c, int64_t deadline_ns, hf_error *err);
void hf__ora_end(struct hf__ora_conn *c);

/* Ends its thread; the next job starts another. */
void hf__ora_rest(struct hf__ora_conn *c);

/* session.c, statement.c --------------------------------------------------- */

extern const struct hf__pool_type hf__ora_pool_type;

int hf__ora_borrow(struct hf__ora *s, int64_t deadline_ns, struct hf__ora_conn **ret_conn,
                   hf_error *err);
void hf__ora_give_back(void *store, void *conn);

/* A statement and what goes into it, one parameter after the other. */
void hf__ora_start(struct hf__ora_conn *c, const char *sql);
void hf__ora_start_once(struct hf__ora_conn *c, char *sql);                    /* takes it */
void hf__ora_add_bytes(struct hf__ora_conn *c, const void *bytes, size_t len); /* as hex digits */
void hf__ora_add_text(struct hf__ora_conn *c, const char *text); /* what is not ASCII as '?' */
void hf__ora_add_list(struct hf__ora_conn *c, const char *list, size_t len); /* ASCII as it is */
void hf__ora_add_number(struct hf__ora_conn *c, int64_t number);
void hf__ora_add_or_null(struct hf__ora_conn *c, int64_t number, int64_t null);

/* Runs it; the answer is in c->job until the next start. If the reply is lost the connection is
 * marked as broken. HF_UNKNOWN: it may have been applied; every other code: it was not. */
int hf__ora_run(struct hf__ora *s, struct hf__ora_conn *c, bool reads, int64_t deadline_ns,
                hf_error *err);

/* HF_UNKNOWN: perhaps. */
int hf__ora_commit(struct hf__ora *s, struct hf__ora_conn *c, int64_t deadline_ns, hf_error *err);

/* Ends what is open; the connection is broken if that fails. */
void hf__ora_rollback(struct hf__ora *s, struct hf__ora_conn *c, int64_t deadline_ns);

/* The cell of the first row; NULL also if there is no row. */
const char *hf__ora_cell(const struct hf__ora_conn *c, size_t column);

/* The store ---------------------------------------------------------------- */

/* Beside those that all SQL stores have. */
struct hf__ora_settings {
    char *connect; /* a driver string, or NULL: */
    char *dsn;
    char *schema;
    const struct hf__ora_dialect *dialect; /* NULL: as the driver says */
};

struct hf__ora {
    struct hf__store base;
    struct hf__sql sql;
    struct hf__ora_settings set;
    atomic_bool locks;        /* somebody has asked for a lock: threads may stay */
    _Atomic(int64_t) lost_ns; /* when a session was lost: older ones may be as well */
};

int hf__ora_open(const struct hf__url *url, const struct hf__host *host,
                 struct hf__store **ret_store, hf_error *err);
void hf__ora_close(struct hf__store *store);
int hf__ora_read_url(struct hf__ora *s, const struct hf__url *url, hf_error *err);

extern const struct hf__sql_type hf__ora_sql_type;
int hf__ora_learn(void *store, void *conn, int64_t deadline_ns, hf_error *err);
int hf__ora_call(void *store, void *conn, const struct hf__sql_operation *op, int64_t deadline_ns,
                 struct hf__answer *ret_answer, hf_error *err);

/* How many of the items one call of renew takes. */
size_t hf__ora_renewals(struct hf__renewal *const *items, size_t count);

/* The parameters host, username, program, pid, note, as both tables have them. */
void hf__ora_add_who(struct hf__ora_conn *c, const struct hf__who *who);

/* Words of a text, which is cut up: "-1" is NULL. False: there are fewer than `count`. */
bool hf__ora_split(char *text, const char **cells, size_t count);

/* inspect.c, upkeep.c, diagnose.c ------------------------------------------ */
int hf__ora_inspect(struct hf__store *store, const struct hf__search *search, int64_t deadline_ns,
                    hf_error *err);
int hf__ora_setup(void *store, void *conn, int64_t deadline_ns, hf_error *err);
int hf__ora_purge(void *store, void *conn, int64_t retain_ms, int64_t deadline_ns, uint64_t *count,
                  hf_error *err);
int hf__ora_diagnose(struct hf__store *store, hf_finding_callback *found, void *arg,
                     int64_t deadline_ns, hf_error *err);

#endif
