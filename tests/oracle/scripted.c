/* An ODBC driver without a server: it says what a script tells it to. unixODBC loads it by
 * DRIVER=<this file>;SCRIPT=<file>;LOG=<file>.
 *
 * Left alone it plays a database in which every lock is free. A line of the script is a fault:
 *
 *      TIMES CALL MATCH SQLSTATE NATIVE TEXT...      the call fails so often (0: always)
 *      TIMES slow MATCH 00000 MS                     it takes so long, or until it is cancelled
 *
 * CALL is connect, execute or commit; MATCH is a part of the statement's text without blanks, or
 * "*". Every call is a line of the log: what was called, and the statement. The script is read when
 * a connection is made; how often a line has failed is counted for the process. */
#include <pthread.h>
#include <sql.h>
#include <sqlext.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXPORT     __attribute__((visibility("default")))
#define FAULTS_MAX 16
#define PARAMS_MAX 24

struct fault {
    int times, used;
    char call[16], match[80], state[6], text[256];
    int native;
};

struct handle {
    SQLSMALLINT type;
    char state[6], text[256];
    int native;
    /* A statement. */
    char sql[4096];
    char *params[PARAMS_MAX];
    const char *row;
    bool fetched;
    atomic_bool cancelled;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct fault faults[FAULTS_MAX];
static size_t fault_count;
static char script_read[256], log_path[256];

static void note(const char *format, ...)
{
    va_list args;
    FILE *file = fopen(log_path, "ae");

    if (file == NULL)
        return;
    va_start(args, format);
    vfprintf(file, format, args);
    va_end(args);
    fputc('\n', file);
    fclose(file);
}

static void read_script(const char *path)
{
    char line[512];
    FILE *file = strcmp(path, script_read) == 0 ? NULL : fopen(path, "re");

    if (file == NULL)
        return;
    snprintf(script_read, sizeof script_read, "%s", path);
    fault_count = 0;
    while (fault_count < FAULTS_MAX && fgets(line, sizeof line, file) != NULL) {
        struct fault *f = &faults[fault_count];
        *f = (struct fault){0};
        if (sscanf(line, "%d %15s %79s %5s %d %255[^\n]", &f->times, f->call, f->match, f->state,
                   &f->native, f->text) >= 5)
            fault_count++;
    }
    fclose(file);
}

/* The fault for this call, NULL if it goes well. */
static struct fault *find_fault(const char *call, const char *sql)
{
    struct fault *found = NULL;

    pthread_mutex_lock(&mutex);
    for (size_t i = 0; i < fault_count && found == NULL; i++) {
        struct fault *f = &faults[i];
        if (strcmp(f->call, call) == 0 && (f->times == 0 || f->used < f->times) &&
            (strcmp(f->match, "*") == 0 || strstr(sql, f->match) != NULL)) {
            f->used++;
            found = f;
        }
    }
    pthread_mutex_unlock(&mutex);
    return found;
}

static SQLRETURN fail(struct handle *h, const struct fault *f)
{
    memcpy(h->state, f->state, sizeof h->state);
    memcpy(h->text, f->text, sizeof h->text);
    h->native = f->native;
    return SQL_ERROR;
}

/* Handles and sessions ----------------------------------------------------- */

EXPORT SQLRETURN SQLAllocHandle(SQLSMALLINT type, SQLHANDLE parent, SQLHANDLE *ret)
{
    struct handle *h = calloc(1, sizeof *h);

    (void)parent;
    if (h == NULL)
        return SQL_ERROR;
    h->type = type;
    *ret = h;
    return SQL_SUCCESS;
}

EXPORT SQLRETURN SQLFreeHandle(SQLSMALLINT type, SQLHANDLE handle)
{
    (void)type;
    free(handle);
    return SQL_SUCCESS;
}

EXPORT SQLRETURN SQLSetEnvAttr(SQLHENV env, SQLINTEGER attribute, SQLPOINTER value, SQLINTEGER len)
{
    (void)env, (void)attribute, (void)value, (void)len;
    return SQL_SUCCESS;
}

EXPORT SQLRETURN SQLSetConnectAttr(SQLHDBC dbc, SQLINTEGER attribute, SQLPOINTER value,
                                   SQLINTEGER len)
{
    (void)dbc, (void)len;
    if (attribute == SQL_ATTR_AUTOCOMMIT)
        note("autocommit %s", (SQLULEN)value == SQL_AUTOCOMMIT_OFF ? "off" : "on");
    return SQL_SUCCESS;
}

EXPORT SQLRETURN SQLSetStmtAttr(SQLHSTMT stmt, SQLINTEGER attribute, SQLPOINTER value,
                                SQLINTEGER len)
{
    (void)stmt, (void)len;
    if (attribute == SQL_ATTR_QUERY_TIMEOUT)
        note("timeout %lu", (unsigned long)(SQLULEN)value);
    return SQL_SUCCESS;
}

static void read_key(const char *from, const char *key, char *to, size_t size)
{
    const char *at = strstr(from, key);

    if (at == NULL)
        return;
    at += strlen(key);
    snprintf(to, size, "%.*s", (int)strcspn(at, ";"), at);
}

EXPORT SQLRETURN SQLDriverConnect(SQLHDBC dbc, SQLHWND window, SQLCHAR *in, SQLSMALLINT in_len,
                                  SQLCHAR *out, SQLSMALLINT out_size, SQLSMALLINT *out_len,
                                  SQLUSMALLINT how)
{
    char path[256] = "";

    (void)window, (void)in_len, (void)out, (void)out_size, (void)out_len, (void)how;
    pthread_mutex_lock(&mutex);
    read_key((const char *)in, "LOG=", log_path, sizeof log_path);
    read_key((const char *)in, "SCRIPT=", path, sizeof path);
    read_script(path);
    pthread_mutex_unlock(&mutex);
    note("connect");
    const struct fault *f = find_fault("connect", (const char *)in);
    return f != NULL ? fail(dbc, f) : SQL_SUCCESS;
}

EXPORT SQLRETURN SQLDisconnect(SQLHDBC dbc)
{
    (void)dbc;
    note("disconnect");
    return SQL_SUCCESS;
}

EXPORT SQLRETURN SQLGetInfo(SQLHDBC dbc, SQLUSMALLINT what, SQLPOINTER to, SQLSMALLINT size,
                            SQLSMALLINT *len)
{
    const char *text = what == SQL_DBMS_NAME     ? "Oracle"
                       : what == SQL_DBMS_VER    ? "19.00.0000"
                       : what == SQL_DRIVER_NAME ? "scripted.so"
                                                 : NULL;

    (void)dbc;
    if (text == NULL) {
        memset(to, 0, sizeof(SQLUSMALLINT));
        return SQL_SUCCESS;
    }
    if (to != NULL)
        snprintf(to, (size_t)size, "%s", text);
    if (len != NULL)
        *len = (SQLSMALLINT)strlen(text);
    return SQL_SUCCESS;
}

EXPORT SQLRETURN SQLGetDiagRec(SQLSMALLINT type, SQLHANDLE handle, SQLSMALLINT number,
                               SQLCHAR *state, SQLINTEGER *native, SQLCHAR *text, SQLSMALLINT size,
                               SQLSMALLINT *len)
{
    struct handle *h = handle;

    (void)type;
    if (number != 1)
        return SQL_NO_DATA;
    memcpy(state, h->state, 6);
    *native = h->native;
    snprintf((char *)text, (size_t)size, "[Oracle][ODBC][Ora]%s", h->text);
    *len = (SQLSMALLINT)strlen((const char *)text);
    return SQL_SUCCESS;
}

/* unixODBC believes in errors only if both are there. */
EXPORT SQLRETURN SQLGetDiagField(SQLSMALLINT type, SQLHANDLE handle, SQLSMALLINT number,
                                 SQLSMALLINT field, SQLPOINTER to, SQLSMALLINT size,
                                 SQLSMALLINT *len)
{
    (void)type, (void)handle, (void)number, (void)field, (void)to, (void)size, (void)len;
    return SQL_ERROR;
}

EXPORT SQLRETURN SQLEndTran(SQLSMALLINT type, SQLHANDLE handle, SQLSMALLINT how)
{
    const char *call = how == SQL_COMMIT ? "commit" : "rollback";

    (void)type;
    note("%s", call);
    const struct fault *f = find_fault(call, "");
    return f != NULL ? fail(handle, f) : SQL_SUCCESS;
}

/* Statements --------------------------------------------------------------- */

/* Calls inside this file go to static functions: the name of an entry point is unixODBC's. */
static void prepare(struct handle *h, const SQLCHAR *sql)
{
    snprintf(h->sql, sizeof h->sql, "%s", (const char *)sql);
}

EXPORT SQLRETURN SQLPrepare(SQLHSTMT stmt, SQLCHAR *sql, SQLINTEGER len)
{
    (void)len;
    prepare(stmt, sql);
    return SQL_SUCCESS;
}

EXPORT SQLRETURN SQLBindParameter(SQLHSTMT stmt, SQLUSMALLINT number, SQLSMALLINT direction,
                                  SQLSMALLINT c_type, SQLSMALLINT type, SQLULEN column,
                                  SQLSMALLINT digits, SQLPOINTER value, SQLLEN size, SQLLEN *len)
{
    struct handle *h = stmt;

    (void)direction, (void)c_type, (void)type, (void)column, (void)digits, (void)size, (void)len;
    if (number <= PARAMS_MAX)
        h->params[number - 1] = value;
    return SQL_SUCCESS;
}

/* What a database in which every lock is free would say. */
static const struct reply {
    const char *match, *row; /* NULL: no rows */
    int answer;              /* the parameter that the answer goes to; 0: a table */
} replies[] = {
    {"MAX(version)", "1", 0},
    {"holdfast_rules.version", "2", 1},
    {"holdfast_rules.attempt", "granted 1700000000000000 30000 1 -1 0;", 14},
    {"holdfast_rules.finish", "done -1 -1 0 -1 0;", 5},
    {"holdfast_rules.renew", "granted 1700000000000000 30000 1 -1 0;", 2},
    {"holdfast_rules.take_away", "stale -1 -1 0 -1 0;", 4},
};

static void reply(struct handle *h)
{
    h->row = NULL;
    h->fetched = false;
    for (size_t i = 0; i < sizeof replies / sizeof replies[0]; i++) {
        const struct reply *r = &replies[i];
        if (strstr(h->sql, r->match) == NULL)
            continue;
        if (r->answer > 0 && h->params[r->answer - 1] != NULL)
            snprintf(h->params[r->answer - 1], 200, "%s", r->row);
        else
            h->row = r->row;
        return;
    }
}

static void take_time(struct handle *h, int ms)
{
    const struct timespec tick = {.tv_nsec = 5000000};

    for (; ms > 0 && !atomic_load(&h->cancelled); ms -= 5)
        nanosleep(&tick, NULL);
}

static SQLRETURN execute(struct handle *h)
{
    note("execute %s", h->sql);
    const struct fault *f = find_fault("slow", h->sql);
    if (f != NULL)
        take_time(h, f->native);
    f = find_fault("execute", h->sql);
    if (f != NULL)
        return fail(h, f);
    reply(h);
    return SQL_SUCCESS;
}

EXPORT SQLRETURN SQLExecute(SQLHSTMT stmt)
{
    return execute(stmt);
}

EXPORT SQLRETURN SQLExecDirect(SQLHSTMT stmt, SQLCHAR *sql, SQLINTEGER len)
{
    (void)len;
    prepare(stmt, sql);
    return execute(stmt);
}

EXPORT SQLRETURN SQLCancel(SQLHSTMT stmt)
{
    struct handle *h = stmt;

    note("cancel");
    atomic_store(&h->cancelled, true);
    return SQL_SUCCESS;
}

EXPORT SQLRETURN SQLNumResultCols(SQLHSTMT stmt, SQLSMALLINT *ret)
{
    struct handle *h = stmt;

    *ret = h->row != NULL || strncmp(h->sql, "SELECT", 6) == 0;
    return SQL_SUCCESS;
}

EXPORT SQLRETURN SQLFetch(SQLHSTMT stmt)
{
    struct handle *h = stmt;
    bool more = h->row != NULL && !h->fetched;

    h->fetched = true;
    return more ? SQL_SUCCESS : SQL_NO_DATA;
}

EXPORT SQLRETURN SQLGetData(SQLHSTMT stmt, SQLUSMALLINT column, SQLSMALLINT type, SQLPOINTER to,
                            SQLLEN size, SQLLEN *len)
{
    struct handle *h = stmt;

    (void)column, (void)type;
    snprintf(to, (size_t)size, "%s", h->row);
    *len = (SQLLEN)strlen(h->row);
    return SQL_SUCCESS;
}

EXPORT SQLRETURN SQLFreeStmt(SQLHSTMT stmt, SQLUSMALLINT what)
{
    struct handle *h = stmt;

    if (what == SQL_RESET_PARAMS)
        memset(h->params, 0, sizeof h->params);
    return SQL_SUCCESS;
}
