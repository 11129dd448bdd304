/* A statement and its answer, and what the server's errors mean.
 *
 * libmariadb is used without blocking: each step says what it waits for, and is left as it is when
 * the deadline comes. A connection left so is of no more use. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "stores/mysql/mysql.h"
#include "util/utf8.h"

#include "util/banned.h"

/* Text --------------------------------------------------------------------- */

static bool make_room(struct hf__my_text *t, size_t more)
{
    if (t->failed)
        return false;
    if (t->len + more < t->capacity)
        return true;
    size_t capacity = 2 * (t->len + more) + 1000;
    char *grown = realloc(t->data, capacity);
    if (grown == NULL) {
        t->failed = true;
        return false;
    }
    t->data = grown;
    t->capacity = capacity;
    return true;
}

static void add_plain(struct hf__my_text *t, const char *text)
{
    size_t len = strlen(text);

    if (!make_room(t, len + 1))
        return;
    memcpy(t->data + t->len, text, len + 1);
    t->len += len;
}

void hf__my_add(struct hf__my_text *t, const char *format, ...)
{
    va_list args, again;

    if (strchr(format, '%') == NULL) { /* most of a statement is */
        add_plain(t, format);
        return;
    }
    va_start(args, format);
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, format, args);
    if (len >= 0 && make_room(t, (size_t)len + 1)) {
        vsnprintf(t->data + t->len, (size_t)len + 1, format, again);
        t->len += (size_t)len;
    }
    va_end(again);
    va_end(args);
}

void hf__my_add_hex(struct hf__my_text *t, const void *bytes, size_t len)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *from = bytes;

    if (!make_room(t, 2 * len + 1))
        return;
    for (size_t i = 0; i < len; i++) {
        t->data[t->len++] = digits[from[i] >> 4];
        t->data[t->len++] = digits[from[i] & 15];
    }
    t->data[t->len] = '\0';
}

void hf__my_add_bytes(struct hf__my_text *t, const void *bytes, size_t len)
{
    hf__my_add(t, "x'");
    hf__my_add_hex(t, bytes, len);
    hf__my_add(t, "'");
}

/* The server refuses a statement for one byte that is not text, and a lock must not fail because of
 * a program's odd name. */
void hf__my_add_text(struct hf__my_text *t, const char *text)
{
    uint32_t c;

    if (text == NULL) {
        hf__my_add(t, "NULL");
        return;
    }
    hf__my_add(t, "_utf8mb4 x'");
    while (*text != '\0') {
        size_t len = hf__utf8_decode(text, strnlen(text, 4), &c);
        hf__my_add_hex(t, len > 0 ? text : "?", len > 0 ? len : 1);
        text += len > 0 ? len : 1;
    }
    hf__my_add(t, "'");
}

void hf__my_add_short(struct hf__my_text *t, const char *text)
{
    bool fits = strlen(text) <= 255;

    hf__my_add(t, fits ? "" : "LEFT(");
    hf__my_add_text(t, text);
    hf__my_add(t, fits ? "" : ", 255)");
}

void hf__my_add_or_null(struct hf__my_text *t, int64_t number, int64_t null)
{
    if (number == null)
        hf__my_add(t, "NULL");
    else
        hf__my_add(t, "%" PRId64, number);
}

void hf__my_add_instant(struct hf__my_text *t, int64_t ms)
{
    if (ms == HF__NEVER)
        hf__my_add(t, HF__MY_FOREVER);
    else
        hf__my_add(t, "'1970-01-01' + INTERVAL %" PRId64 "000 MICROSECOND", ms);
}

void hf__my_text_clear(struct hf__my_text *t)
{
    free(t->data);
    *t = (struct hf__my_text){0};
}

/* Errors ------------------------------------------------------------------- */

/* HF_UNKNOWN: the server ended the statement from outside, perhaps after its COMMIT. */
static const struct meaning {
    unsigned number;
    int code;
    const char *advice;
} meanings[] = {
    {1213, HF_UNAVAILABLE, "try again"},
    {1205, HF_UNAVAILABLE, "somebody keeps the lock's row locked; see SHOW ENGINE INNODB STATUS"},
    {1020, HF_UNAVAILABLE, "try again"},
    {1317, HF_UNKNOWN, "somebody ended the statement (KILL QUERY)"},
    {1969, HF_UNKNOWN, "the server's max_statement_time ended it"},
    {3024, HF_UNKNOWN, "the server's max_execution_time ended it"},
    {1053, HF_UNKNOWN, "the server is shutting down"},
    {1927, HF_UNKNOWN, "somebody ended the connection (KILL)"},
    {1180, HF_UNKNOWN, "the server could not commit"},
    {1030, HF_UNKNOWN, "the storage engine failed; see the server's log"},
    {2013, HF_UNKNOWN, "the connection was lost"},
    {2027, HF_UNKNOWN, "the server's reply makes no sense"},
    {2006, HF_UNAVAILABLE, "the server has closed the connection"},
    {2002, HF_UNAVAILABLE, "is the server running there?"},
    {2003, HF_UNAVAILABLE, "is the server running there?"},
    {2005, HF_UNAVAILABLE, "there is no such host"},
    {1040, HF_UNAVAILABLE, "the server has no connection left; lower max_active"},
    {1203, HF_UNAVAILABLE, "the account has no connection left; lower max_active"},
    {1226, HF_UNAVAILABLE, "the account's limit; lower max_active"},
    {1047, HF_UNAVAILABLE, "this node of the cluster is not ready (Galera)"},
    {1290, HF_UNAVAILABLE, "this server is read-only; name the primary as well"},
    {1792, HF_UNAVAILABLE, "this server is read-only; name the primary as well"},
    {1836, HF_UNAVAILABLE, "this server is read-only; name the primary as well"},
    {1021, HF_FULL, "the server's disk is full"},
    {1026, HF_FULL, "the server cannot write; is its disk full?"},
    {1114, HF_FULL, "the server has no room left; is its disk full?"},
    {1037, HF_FULL, "the server is out of memory"},
    {1041, HF_FULL, "the server is out of memory"},
    {1044, HF_DENIED, "see the rights in `holdfast setup --print`"},
    {1142, HF_DENIED, "see the rights in `holdfast setup --print`"},
    {1143, HF_DENIED, "see the rights in `holdfast setup --print`"},
    {1227, HF_DENIED, "see the rights in `holdfast setup --print`"},
    {1370, HF_DENIED, "see the rights in `holdfast setup --print`"},
    {1045, HF_DENIED, "check user and password (password_file, option_file)"},
    {1698, HF_DENIED, "check user and password (password_file, option_file)"},
    {1130, HF_DENIED, "the server does not admit this machine"},
    {2026, HF_DENIED, "TLS: name the authority with tls_ca, or choose tls=insecure or tls=off"},
    {2059, HF_DENIED, "the library lacks this way to log in"},
    {1049, HF_DENIED, "name an existing database in the URL"},
    {1046, HF_DENIED, "name a database in the URL"},
    {1146, HF_DENIED, "create the tables with `holdfast setup`"},
    {1305, HF_DENIED, "create the procedures with `holdfast setup`"},
    {1318, HF_DENIED, "the procedures are of another version; run `holdfast setup`"},
    {1054, HF_DENIED, "the tables are of another version; run `holdfast setup`"},
    {1136, HF_DENIED, "the tables are of another version; run `holdfast setup`"},
    {1062, HF_CORRUPT, "a row contradicts another: rows were changed by hand"},
    {1406, HF_INVALID, "too long for the tables"},
};

int hf__my_fail(unsigned number, const char *text, bool reads, hf_error *err)
{
    const struct meaning *m = NULL;
    char shown[200];

    for (size_t i = 0; m == NULL && i < sizeof meanings / sizeof meanings[0]; i++) {
        if (meanings[i].number == number)
            m = &meanings[i];
    }
    int code = m != NULL ? m->code : HF_UNAVAILABLE;
    if (code == HF_UNKNOWN && reads)
        code = HF_UNAVAILABLE;
    hf__sentence(text, strlen(text), shown, sizeof shown);
    hf__fail(err, code, "mysql: %s%s%s", shown, m != NULL ? "; " : "", m != NULL ? m->advice : "");
    hf__set_store_code(err, (long)number);
    return code;
}

/* Asking ------------------------------------------------------------------- */

struct asking {
    struct hf__my *s;
    struct hf__my_conn *c;
    int64_t deadline_ns;
    bool reads;
};

static int late(const struct asking *a, hf_error *err)
{
    a->c->broken = true;
    return hf__fail(err, a->reads ? HF_UNAVAILABLE : HF_UNKNOWN,
                    "mysql: the server did not answer in time");
}

/* A transaction may be open: only a conflict is known to have been rolled back as a whole. */
static int failed(const struct asking *a, hf_error *err)
{
    unsigned number = mysql_errno(a->c->my);

    a->c->broken = !hf__my_is_conflict((long)number);
    return hf__my_fail(number, mysql_error(a->c->my), a->reads, err);
}

/* Drives one step of the library to its end; false: the deadline has come. */
#define DRIVE(a, start, cont)                                                            \
    ({                                                                                   \
        int wants_ = start, came_ = 1;                                                   \
        while (wants_ != 0 &&                                                            \
               (came_ = hf__my_wait((a)->s, (a)->c->my, wants_, (a)->deadline_ns)) != 0) \
            wants_ = cont;                                                               \
        came_ != 0;                                                                      \
    })

static int send_it(const struct asking *a, const struct hf__my_text *t, hf_error *err)
{
    MYSQL *my = a->c->my;
    int bad = 0;

    if (!DRIVE(a, mysql_real_query_start(&bad, my, t->data, t->len),
               mysql_real_query_cont(&bad, my, came_)))
        return late(a, err);
    return bad != 0 ? failed(a, err) : 0;
}

static int store(const struct asking *a, MYSQL_RES **ret_result, hf_error *err)
{
    MYSQL *my = a->c->my;
    MYSQL_RES *result = NULL;

    if (!DRIVE(a, mysql_store_result_start(&result, my),
               mysql_store_result_cont(&result, my, came_)))
        return late(a, err);
    if (result == NULL && mysql_errno(my) != 0)
        return failed(a, err);
    if (*ret_result == NULL)
        *ret_result = result;
    else
        mysql_free_result(result);
    return 0;
}

/* A CALL answers with its tables and, at last, with how it went. */
static int collect(const struct asking *a, MYSQL_RES **ret_result, hf_error *err)
{
    MYSQL *my = a->c->my;
    int more = 0;

    do {
        int r = store(a, ret_result, err);
        if (r != 0)
            return r;
        if (!mysql_more_results(my))
            return 0;
        if (!DRIVE(a, mysql_next_result_start(&more, my), mysql_next_result_cont(&more, my, came_)))
            return late(a, err);
    } while (more == 0);
    return more > 0 ? failed(a, err) : 0;
}

int hf__my_ask(struct hf__my *s, struct hf__my_conn *c, const struct hf__my_text *t, bool reads,
               int64_t deadline_ns, MYSQL_RES **ret_result, hf_error *err)
{
    struct asking a = {.s = s, .c = c, .deadline_ns = deadline_ns, .reads = reads};
    MYSQL_RES *result = NULL;

    if (t->failed)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    int r = send_it(&a, t, err);
    if (r == 0)
        r = collect(&a, &result, err);
    if (r == 0 && ret_result != NULL) {
        *ret_result = result;
        return 0;
    }
    mysql_free_result(result);
    return r;
}

int hf__my_run(struct hf__my *s, struct hf__my_conn *c, const char *sql, int64_t deadline_ns,
               hf_error *err)
{
    struct hf__my_text t = {0};

    hf__my_add(&t, "%s", sql);
    int r = hf__my_ask(s, c, &t, false, deadline_ns, NULL, err);
    hf__my_text_clear(&t);
    return r;
}

MYSQL_RES *hf__my_look(struct hf__my *s, struct hf__my_conn *c, const char *sql,
                       int64_t deadline_ns, MYSQL_ROW *ret_row, hf_error *err)
{
    struct hf__my_text t = {0};
    MYSQL_RES *result = NULL;

    hf__my_add(&t, "%s", sql);
    int r = hf__my_ask(s, c, &t, true, deadline_ns, &result, err);
    hf__my_text_clear(&t);
    *ret_row = result != NULL ? mysql_fetch_row(result) : NULL;
    if (*ret_row != NULL)
        return result;
    mysql_free_result(result);
    if (r == 0)
        hf__fail(err, HF_CORRUPT, "mysql: the server has no answer");
    return NULL;
}
