/* The driver: statements and their rows. See odbc.h.
 *
 * Statements are prepared once per connection, with parameters: Oracle would parse every new text
 * anew. All parameters go as text, bytes as hex digits and numbers as decimals, and all answers
 * come as text: it is what all drivers agree on. */
#include <stdlib.h>
#include <string.h>

#include "stores/oracle/odbc.h"

#include "base/banned.h"

#define CELL_MAX 2100 /* bytes: no cell of ours is longer */

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

void hf__odbc_forget_all(struct hf__ora_link *link)
{
    for (size_t i = 0; i < link->prepared_count; i++)
        SQLFreeHandle(SQL_HANDLE_STMT, link->prepared[i].handle);
    link->prepared_count = 0;
}

/* A new handle with the statement in it. NULL: the job says why. */
static SQLHSTMT prepare(struct hf__ora_conn *c, const char *sql)
{
    struct hf__ora_job *job = &c->job;
    SQLHSTMT handle = NULL;

    if (!hf__odbc_went_well(job, SQLAllocHandle(SQL_HANDLE_STMT, c->link.dbc, &handle),
                            SQL_HANDLE_DBC, c->link.dbc))
        return NULL;
    if (hf__odbc_went_well(job, SQLPrepare(handle, (SQLCHAR *)sql, SQL_NTS), SQL_HANDLE_STMT,
                           handle))
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
        if (!hf__odbc_went_well(job,
                                SQLBindParameter(handle, (SQLUSMALLINT)(i + 1), SQL_PARAM_INPUT,
                                                 SQL_C_CHAR, p->number ? SQL_DECIMAL : SQL_VARCHAR,
                                                 size, 0, job->text + p->at, 0, &p->length),
                                SQL_HANDLE_STMT, handle))
            return false;
    }
    *answer_len = 0;
    job->answer[0] = '\0';
    return !job->answers ||
           hf__odbc_went_well(job,
                              SQLBindParameter(handle, (SQLUSMALLINT)(job->param_count + 1),
                                               SQL_PARAM_OUTPUT, SQL_C_CHAR, SQL_VARCHAR,
                                               HF__ORA_ANSWER, 0, job->answer, sizeof job->answer,
                                               answer_len),
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
        if (!hf__odbc_went_well(
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

    if (!hf__odbc_went_well(job, SQLNumResultCols(handle, &columns), SQL_HANDLE_STMT, handle) ||
        columns <= 0 || job->answers)
        return;
    job->rows.columns = (size_t)columns;
    while (hf__odbc_went_well(job, SQLFetch(handle), SQL_HANDLE_STMT, handle) &&
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
    if (hf__odbc_went_well(job, SQLExecute(handle), SQL_HANDLE_STMT, handle))
        fetch(job, handle);
    set_running(c, NULL);
    SQLFreeStmt(handle, SQL_CLOSE);
    SQLFreeStmt(handle, SQL_RESET_PARAMS);
}

static void set_timeout(struct hf__ora_conn *c, struct hf__ora_prepared *p)
{
    if (p->timeout_s == c->job.timeout_s)
        return;
    SQLSetStmtAttr(p->handle, SQL_ATTR_QUERY_TIMEOUT, hf__odbc_pointer(c->job.timeout_s),
                   SQL_IS_UINTEGER);
    p->timeout_s = c->job.timeout_s;
}

void hf__odbc_run_prepared(struct hf__ora_conn *c)
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
void hf__odbc_run_once(struct hf__ora_conn *c)
{
    struct hf__ora_job *job = &c->job;
    SQLHSTMT handle = NULL;

    if (!hf__odbc_went_well(job, SQLAllocHandle(SQL_HANDLE_STMT, c->link.dbc, &handle),
                            SQL_HANDLE_DBC, c->link.dbc))
        return;
    SQLSetStmtAttr(handle, SQL_ATTR_NOSCAN, hf__odbc_pointer(SQL_NOSCAN_ON), SQL_IS_UINTEGER);
    set_running(c, handle);
    if (hf__odbc_went_well(job, SQLExecDirect(handle, (SQLCHAR *)job->once, SQL_NTS),
                           SQL_HANDLE_STMT, handle))
        fetch(job, handle);
    set_running(c, NULL);
    SQLFreeHandle(SQL_HANDLE_STMT, handle);
}

void hf__ora_rows_clear(struct hf__ora_rows *rows)
{
    for (size_t i = 0; i < rows->capacity; i++)
        free(rows->cells[i]);
    free(rows->cells);
    *rows = (struct hf__ora_rows){0};
}
