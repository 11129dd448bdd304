/* What is asked of the driver. Everything here runs on the connection's own thread, and may block
 * for as long as the driver likes: see conn.c.
 *
 * Statements are prepared once per connection, with parameters: Oracle would parse every new text
 * anew. All parameters go as text, bytes as hex digits and numbers as decimals, and all answers
 * come as text: it is what all drivers agree on. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stores/oracle/oracle.h"

#include "util/banned.h"

#define CELL_MAX 2100 /* bytes: no cell of ours is longer */

static SQLPOINTER as_pointer(uintptr_t number)
{
    return (SQLPOINTER)number; /* ODBC passes numbers as pointers */
}

/* The driver's words on one line, without what would upset a terminal, and without its names. */
static void tidy(const char *from, char *to, size_t size)
{
    size_t len = 0;

    while (*from == '[' && strchr(from, ']') != NULL)
        from = strchr(from, ']') + 1;
    for (; *from != '\0' && len + 1 < size; from++)
        to[len++] = *from >= ' ' && *from <= '~' ? *from : ' ';
    while (len > 0 && to[len - 1] == ' ')
        len--;
    to[len] = '\0';
}

static void note_trouble(struct hf__ora_job *job, SQLSMALLINT type, SQLHANDLE handle)
{
    SQLCHAR state[6] = "", text[600] = "";
    SQLINTEGER native = 0;
    SQLSMALLINT len;

    if (!SQL_SUCCEEDED(SQLGetDiagRec(type, handle, 1, state, &native, text, sizeof text, &len)))
        snprintf((char *)text, sizeof text, "the driver does not say why");
    memcpy(job->trouble.state, state, sizeof state);
    job->trouble.native = native;
    tidy((const char *)text, job->trouble.text, sizeof job->trouble.text);
}

/* True: it went well, or there was nothing to do. */
static bool went_well(struct hf__ora_job *job, SQLRETURN result, SQLSMALLINT type, SQLHANDLE handle)
{
    job->result = result;
    if (SQL_SUCCEEDED(result) || result == SQL_NO_DATA)
        return true;
    note_trouble(job, type, handle);
    return false;
}

/* Sessions ----------------------------------------------------------------- */

static void read_info(struct hf__ora_link *link, SQLUSMALLINT what, char *to, size_t size)
{
    SQLSMALLINT len;

    to[0] = '\0';
    SQLGetInfo(link->dbc, what, to, (SQLSMALLINT)size, &len);
}

static SQLRETURN log_in(struct hf__ora_conn *c)
{
    SQLHDBC dbc = c->link.dbc;

    if (c->connect != NULL)
        return SQLDriverConnect(dbc, NULL, (SQLCHAR *)c->connect, SQL_NTS, NULL, 0, NULL,
                                SQL_DRIVER_NOPROMPT);
    return SQLConnect(dbc, (SQLCHAR *)c->dsn, SQL_NTS, (SQLCHAR *)c->user,
                      c->user != NULL ? SQL_NTS : 0, (SQLCHAR *)c->password,
                      c->password != NULL ? SQL_NTS : 0);
}

/* Some drivers forget what was prepared when a transaction ends. */
static bool forgets(struct hf__ora_link *link)
{
    SQLUSMALLINT commit = SQL_CB_DELETE, rollback = SQL_CB_DELETE;

    SQLGetInfo(link->dbc, SQL_CURSOR_COMMIT_BEHAVIOR, &commit, sizeof commit, NULL);
    SQLGetInfo(link->dbc, SQL_CURSOR_ROLLBACK_BEHAVIOR, &rollback, sizeof rollback, NULL);
    return commit == SQL_CB_DELETE || rollback == SQL_CB_DELETE;
}

/* An environment for each connection: whatever a driver manager guards by it stays apart. */
static void open_session(struct hf__ora_conn *c)
{
    struct hf__ora_link *link = &c->link;
    struct hf__ora_job *job = &c->job;

    job->result = SQLAllocHandle(SQL_HANDLE_ENV, SQL_NULL_HANDLE, &link->env);
    if (!SQL_SUCCEEDED(job->result))
        return;
    SQLSetEnvAttr(link->env, SQL_ATTR_ODBC_VERSION, as_pointer(SQL_OV_ODBC3), 0);
    job->result = SQLAllocHandle(SQL_HANDLE_DBC, link->env, &link->dbc);
    if (!SQL_SUCCEEDED(job->result))
        return;
    SQLSetConnectAttr(link->dbc, SQL_ATTR_LOGIN_TIMEOUT, as_pointer(job->timeout_s),
                      SQL_IS_UINTEGER);
    if (!went_well(job, log_in(c), SQL_HANDLE_DBC, link->dbc))
        return;
    link->connected = true;
    read_info(link, SQL_DBMS_NAME, link->dbms, sizeof link->dbms);
    read_info(link, SQL_DBMS_VER, link->version, sizeof link->version);
    read_info(link, SQL_DRIVER_NAME, link->driver, sizeof link->driver);
    link->forgets = forgets(link);
    went_well(job,
              SQLSetConnectAttr(link->dbc, SQL_ATTR_AUTOCOMMIT, as_pointer(SQL_AUTOCOMMIT_OFF),
                                SQL_IS_UINTEGER),
              SQL_HANDLE_DBC, link->dbc);
}

static void forget_all(struct hf__ora_link *link)
{
    for (size_t i = 0; i < link->prepared_count; i++)
        SQLFreeHandle(SQL_HANDLE_STMT, link->prepared[i].handle);
    link->prepared_count = 0;
}

/* Rolled back first: Oracle commits what is open when a session logs off. */
static void close_session(struct hf__ora_link *link)
{
    forget_all(link);
    if (link->connected) {
        SQLEndTran(SQL_HANDLE_DBC, link->dbc, SQL_ROLLBACK);
        SQLDisconnect(link->dbc);
    }
    if (link->dbc != NULL)
        SQLFreeHandle(SQL_HANDLE_DBC, link->dbc);
    if (link->env != NULL)
        SQLFreeHandle(SQL_HANDLE_ENV, link->env);
    *link = (struct hf__ora_link){0};
}

/* Statements --------------------------------------------------------------- */

static struct hf__ora_prepared *find_prepared(struct hf__ora_link *link, const char *sql)
{
    for (size_t i = 0; i < link->prepared_count; i++) {
        if (link->prepared[i].sql == sql)
            return &link->prepared[i];
    }
    return NULL;
}

static void forget_prepared(struct hf__ora_link *link, struct hf__ora_prepared *p)
{
    SQLFreeHandle(SQL_HANDLE_STMT, p->handle);
    *p = link->prepared[--link->prepared_count];
}

/* A new handle with the statement in it. NULL: the job says why. */
static SQLHSTMT prepare(struct hf__ora_conn *c, const char *sql)
{
    struct hf__ora_job *job = &c->job;
    SQLHSTMT handle = NULL;

    if (!went_well(job, SQLAllocHandle(SQL_HANDLE_STMT, c->link.dbc, &handle), SQL_HANDLE_DBC,
                   c->link.dbc))
        return NULL;
    if (went_well(job, SQLPrepare(handle, (SQLCHAR *)sql, SQL_NTS), SQL_HANDLE_STMT, handle))
        return handle;
    SQLFreeHandle(SQL_HANDLE_STMT, handle);
    return NULL;
}

static struct hf__ora_prepared *get_prepared(struct hf__ora_conn *c)
{
    struct hf__ora_link *link = &c->link;
    struct hf__ora_prepared *p = find_prepared(link, c->job.sql);

    if (p != NULL)
        return p;
    if (link->prepared_count == HF__ORA_STATEMENTS)
        forget_prepared(link, &link->prepared[0]);
    char *sql = hf__ora_translate(c->dialect, c->job.sql);
    SQLHSTMT handle = sql != NULL ? prepare(c, sql) : NULL;
    free(sql);
    if (handle == NULL)
        return NULL;
    p = &link->prepared[link->prepared_count++];
    *p = (struct hf__ora_prepared){.sql = c->job.sql, .handle = handle};
    return p;
}

static bool bind(struct hf__ora_job *job, SQLHSTMT handle, SQLLEN *answer_len)
{
    for (size_t i = 0; i < job->param_count; i++) {
        struct hf__ora_param *p = &job->params[i];
        SQLULEN size = p->number ? 19 : p->length > 0 ? (SQLULEN)p->length : 1;
        if (!went_well(job,
                       SQLBindParameter(handle, (SQLUSMALLINT)(i + 1), SQL_PARAM_INPUT, SQL_C_CHAR,
                                        p->number ? SQL_DECIMAL : SQL_VARCHAR, size, 0,
                                        job->text + p->at, 0, &p->length),
                       SQL_HANDLE_STMT, handle))
            return false;
    }
    *answer_len = 0;
    job->answer[0] = '\0';
    return !job->answers ||
           went_well(job,
                     SQLBindParameter(handle, (SQLUSMALLINT)(job->param_count + 1),
                                      SQL_PARAM_OUTPUT, SQL_C_CHAR, SQL_VARCHAR, HF__ORA_ANSWER, 0,
                                      job->answer, sizeof job->answer, answer_len),
                     SQL_HANDLE_STMT, handle);
}

static bool make_room(struct hf__ora_rows *rows)
{
    size_t used = rows->count * rows->columns;

    if (used >= rows->capacity) {
        size_t capacity = 2 * used + rows->columns;
        char **grown = realloc(rows->cells, capacity * sizeof(char *));
        if (grown == NULL)
            return false;
        memset(grown + rows->capacity, 0, (capacity - rows->capacity) * sizeof(char *));
        rows->cells = grown;
        rows->capacity = capacity;
    }
    return true;
}

static bool fetch_row(struct hf__ora_job *job, SQLHSTMT handle)
{
    struct hf__ora_rows *rows = &job->rows;
    char text[CELL_MAX];

    if (!make_room(rows))
        return false;
    for (size_t i = 0; i < rows->columns; i++) {
        SQLLEN len = 0;
        if (!went_well(
                job, SQLGetData(handle, (SQLUSMALLINT)(i + 1), SQL_C_CHAR, text, sizeof text, &len),
                SQL_HANDLE_STMT, handle))
            return false;
        char **cell = &rows->cells[rows->count * rows->columns + i];
        *cell = len == SQL_NULL_DATA || text[0] == '\0' ? NULL : strdup(text);
    }
    rows->count++;
    return true;
}

static void fetch(struct hf__ora_job *job, SQLHSTMT handle)
{
    SQLSMALLINT columns = 0;

    if (!went_well(job, SQLNumResultCols(handle, &columns), SQL_HANDLE_STMT, handle) ||
        columns <= 0 || job->answers)
        return;
    job->rows.columns = (size_t)columns;
    while (went_well(job, SQLFetch(handle), SQL_HANDLE_STMT, handle) &&
           job->result != SQL_NO_DATA) {
        if (!fetch_row(job, handle)) {
            job->result = SQL_ERROR;
            return;
        }
    }
}

static void set_running(struct hf__ora_conn *c, SQLHSTMT handle)
{
    pthread_mutex_lock(&c->mutex);
    while (c->cancelling)
        pthread_cond_wait(&c->changed, &c->mutex);
    c->running = handle;
    pthread_mutex_unlock(&c->mutex);
}

static void execute(struct hf__ora_conn *c, SQLHSTMT handle)
{
    struct hf__ora_job *job = &c->job;
    SQLLEN answer_len;

    if (!bind(job, handle, &answer_len))
        return;
    set_running(c, handle);
    if (went_well(job, SQLExecute(handle), SQL_HANDLE_STMT, handle))
        fetch(job, handle);
    set_running(c, NULL);
    SQLFreeStmt(handle, SQL_CLOSE);
    SQLFreeStmt(handle, SQL_RESET_PARAMS);
}

static void set_timeout(struct hf__ora_conn *c, struct hf__ora_prepared *p)
{
    if (p->timeout_s == c->job.timeout_s || c->dialect->no_timeout)
        return;
    SQLSetStmtAttr(p->handle, SQL_ATTR_QUERY_TIMEOUT, as_pointer(c->job.timeout_s),
                   SQL_IS_UINTEGER);
    p->timeout_s = c->job.timeout_s;
}

static void run_prepared(struct hf__ora_conn *c)
{
    struct hf__ora_prepared *p = get_prepared(c);

    if (p == NULL)
        return;
    set_timeout(c, p);
    execute(c, p->handle);
    if (!SQL_SUCCEEDED(c->job.result) && c->job.result != SQL_NO_DATA)
        forget_prepared(&c->link, p); /* what it was prepared for may have changed */
}

/* The text of a package is full of what looks like parameters and escapes of ODBC. */
static void run_once(struct hf__ora_conn *c)
{
    struct hf__ora_job *job = &c->job;
    SQLHSTMT handle = NULL;

    if (!went_well(job, SQLAllocHandle(SQL_HANDLE_STMT, c->link.dbc, &handle), SQL_HANDLE_DBC,
                   c->link.dbc))
        return;
    SQLSetStmtAttr(handle, SQL_ATTR_NOSCAN, as_pointer(SQL_NOSCAN_ON), SQL_IS_UINTEGER);
    set_running(c, handle);
    if (went_well(job, SQLExecDirect(handle, (SQLCHAR *)job->once, SQL_NTS), SQL_HANDLE_STMT,
                  handle))
        fetch(job, handle);
    set_running(c, NULL);
    SQLFreeHandle(SQL_HANDLE_STMT, handle);
}

static void end_transaction(struct hf__ora_conn *c, SQLSMALLINT how)
{
    went_well(&c->job, SQLEndTran(SQL_HANDLE_DBC, c->link.dbc, how), SQL_HANDLE_DBC, c->link.dbc);
    if (c->link.forgets)
        forget_all(&c->link);
}

void hf__ora_work(struct hf__ora_conn *c)
{
    struct hf__ora_job *job = &c->job;

    job->trouble = (struct hf__ora_trouble){.text = "the driver manager has no memory"};
    job->result = SQL_ERROR;
    if (job->task == HF__ORA_OPEN)
        open_session(c);
    else if (job->task == HF__ORA_RUN && job->sql != NULL)
        run_prepared(c);
    else if (job->task == HF__ORA_RUN)
        run_once(c);
    else if (job->task == HF__ORA_COMMIT)
        end_transaction(c, SQL_COMMIT);
    else if (job->task == HF__ORA_ROLLBACK)
        end_transaction(c, SQL_ROLLBACK);
    else
        close_session(&c->link);
}

void hf__ora_rows_clear(struct hf__ora_rows *rows)
{
    for (size_t i = 0; i < rows->capacity; i++)
        free(rows->cells[i]);
    free(rows->cells);
    *rows = (struct hf__ora_rows){0};
}
