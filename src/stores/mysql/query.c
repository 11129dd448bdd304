/* A statement and its answer.
 *
 * libmariadb is used without blocking: each step says what it waits for, and is left as it is when
 * the deadline comes. A connection left so is of no more use. */
#include "stores/mysql/mysql.h"

#include "base/banned.h"

struct exchange {
    struct hf__my *s;
    struct hf__my_conn *c;
    int64_t deadline_ns;
    bool reads;
};

static int late(const struct exchange *a, hf_error *err)
{
    a->c->broken = a->c->lost = true;
    return hf__fail(err, a->reads ? HF_UNAVAILABLE : HF_UNKNOWN,
                    "mysql: the server did not answer in time");
}

/* A transaction may be open: only a conflict is known to have been rolled back as a whole. */
static int failed(const struct exchange *a, hf_error *err)
{
    unsigned number = mysql_errno(a->c->my);

    a->c->broken = !hf__my_is_conflict((long)number);
    a->c->lost = hf__my_is_loss(number);
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

static int send_it(const struct exchange *a, const struct hf__my_text *t, hf_error *err)
{
    MYSQL *my = a->c->my;
    int bad = 0;

    if (!DRIVE(a, mysql_real_query_start(&bad, my, t->data, t->len),
               mysql_real_query_cont(&bad, my, came_)))
        return late(a, err);
    return bad != 0 ? failed(a, err) : 0;
}

static int store(const struct exchange *a, MYSQL_RES **ret_result, hf_error *err)
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

/* The answer came before the COMMIT (operations.sql), and then something failed: only a conflict is known to have been
 * rolled back. */
static int failed_late(const struct exchange *a, hf_error *err)
{
    int r = failed(a, err);

    if (a->reads || hf__my_is_conflict((long)mysql_errno(a->c->my)))
        return r;
    return hf__wrap(err, HF_UNKNOWN, "it may have been committed");
}

/* A CALL answers with its tables and, at last, with how it went. */
static int collect(const struct exchange *a, MYSQL_RES **ret_result, hf_error *err)
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
    if (more <= 0)
        return 0;
    return *ret_result != NULL ? failed_late(a, err) : failed(a, err);
}

int hf__my_ask(struct hf__my *s, struct hf__my_conn *c, const struct hf__my_text *t, bool reads,
               int64_t deadline_ns, MYSQL_RES **ret_result, hf_error *err)
{
    struct exchange a = {.s = s, .c = c, .deadline_ns = deadline_ns, .reads = reads};
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

/* What the library says of a statement that failed. */
static int stmt_failed(const struct exchange *a, MYSQL_STMT *stmt, hf_error *err)
{
    unsigned number = mysql_stmt_errno(stmt);

    a->c->broken = !hf__my_is_conflict((long)number);
    a->c->lost = hf__my_is_loss(number);
    return hf__my_fail(number, mysql_stmt_error(stmt), a->reads, err);
}

int hf__my_prepare(struct hf__my *s, struct hf__my_conn *c, const char *sql, int64_t deadline_ns,
                   MYSQL_STMT **ret_stmt, hf_error *err)
{
    struct exchange a = {.s = s, .c = c, .deadline_ns = deadline_ns, .reads = true};
    MYSQL_STMT *stmt = mysql_stmt_init(c->my);
    int bad = 0;

    if (stmt == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    *ret_stmt = stmt; /* freed with the connection, which is of no more use if this fails */
    if (!DRIVE(&a, mysql_stmt_prepare_start(&bad, stmt, sql, strlen(sql)),
               mysql_stmt_prepare_cont(&bad, stmt, came_)))
        return late(&a, err);
    if (bad == 0)
        return 0;
    int r = stmt_failed(&a, stmt, err);
    c->broken = true;
    return r;
}

int hf__my_execute(struct hf__my *s, struct hf__my_conn *c, MYSQL_STMT *stmt, MYSQL_BIND *params,
                   int64_t deadline_ns, hf_error *err)
{
    struct exchange a = {.s = s, .c = c, .deadline_ns = deadline_ns};
    int bad = 0;

    if (mysql_stmt_bind_param(stmt, params) != 0)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    if (!DRIVE(&a, mysql_stmt_execute_start(&bad, stmt),
               mysql_stmt_execute_cont(&bad, stmt, came_)))
        return late(&a, err);
    return bad != 0 ? stmt_failed(&a, stmt, err) : 0;
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
