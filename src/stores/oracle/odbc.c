/* The driver: sessions, transactions, and what it says when it fails. See odbc.h. */
#include <stdio.h>
#include <string.h>

#include "stores/oracle/odbc.h"

#include "base/banned.h"

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

bool hf__odbc_went_well(struct hf__ora_job *job, SQLRETURN result, SQLSMALLINT type,
                        SQLHANDLE handle)
{
    job->result = result;
    if (SQL_SUCCEEDED(result) || result == SQL_NO_DATA)
        return true;
    note_trouble(job, type, handle);
    return false;
}

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
    SQLSetEnvAttr(link->env, SQL_ATTR_ODBC_VERSION, hf__odbc_pointer(SQL_OV_ODBC3), 0);
    job->result = SQLAllocHandle(SQL_HANDLE_DBC, link->env, &link->dbc);
    if (!SQL_SUCCEEDED(job->result))
        return;
    SQLSetConnectAttr(link->dbc, SQL_ATTR_LOGIN_TIMEOUT, hf__odbc_pointer(job->timeout_s),
                      SQL_IS_UINTEGER);
    if (!hf__odbc_went_well(job, log_in(c), SQL_HANDLE_DBC, link->dbc))
        return;
    link->connected = true;
    read_info(link, SQL_DBMS_NAME, link->dbms, sizeof link->dbms);
    read_info(link, SQL_DBMS_VER, link->version, sizeof link->version);
    read_info(link, SQL_DRIVER_NAME, link->driver, sizeof link->driver);
    link->forgets = forgets(link);
    hf__odbc_went_well(job,
                       SQLSetConnectAttr(link->dbc, SQL_ATTR_AUTOCOMMIT,
                                         hf__odbc_pointer(SQL_AUTOCOMMIT_OFF), SQL_IS_UINTEGER),
                       SQL_HANDLE_DBC, link->dbc);
}

/* Rolled back first: Oracle commits what is open when a session logs off. */
static void close_session(struct hf__ora_link *link)
{
    hf__odbc_forget_all(link);
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

static void end_transaction(struct hf__ora_conn *c, SQLSMALLINT how)
{
    hf__odbc_went_well(&c->job, SQLEndTran(SQL_HANDLE_DBC, c->link.dbc, how), SQL_HANDLE_DBC,
                       c->link.dbc);
    if (c->link.forgets)
        hf__odbc_forget_all(&c->link);
}

void hf__ora_work(struct hf__ora_conn *c)
{
    struct hf__ora_job *job = &c->job;

    job->trouble = (struct hf__ora_trouble){.text = "the driver manager has no memory"};
    job->result = SQL_ERROR;
    if (job->task == HF__ORA_TASK_OPEN)
        open_session(c);
    else if (job->task == HF__ORA_TASK_RUN && job->sql != NULL)
        hf__odbc_run_prepared(c);
    else if (job->task == HF__ORA_TASK_RUN)
        hf__odbc_run_once(c);
    else if (job->task == HF__ORA_TASK_COMMIT)
        end_transaction(c, SQL_COMMIT);
    else if (job->task == HF__ORA_TASK_ROLLBACK)
        end_transaction(c, SQL_ROLLBACK);
    else
        close_session(&c->link);
}
