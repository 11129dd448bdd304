/* The doorman's record by plain statements, for an account that may not use the procedures. One
 * operation is
 *
 *      START TRANSACTION                                          -- READ COMMITTED, by the session
 *      INSERT INTO holdfast_lock ... ON DUPLICATE KEY UPDATE ...  -- our turn
 *      SELECT ... SYSDATE(6)                                      -- the lock's row and the clock
 *      SELECT ...                                                 -- the whole record
 *      <the doorman decides>
 *      INSERT/UPDATE/DELETE                                       -- save.c
 *      COMMIT
 *      KILL QUERY <listener>                                      -- of those let in who listen
 *
 * The rows and the rules are those of the procedures, so clients of both kinds may share a lock. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "stores/mysql/mysql.h"

#include "base/banned.h"

/* A statement with the name in the middle. */
static int ask_about(struct hf__my_record *r, const char *before, const char *after,
                     MYSQL_RES **ret_result)
{
    struct hf__my_text t = {0};

    hf__my_add(&t, "%s", before);
    hf__my_add_bytes(&t, r->op->bid->name, r->op->bid->name_len);
    hf__my_add(&t, "%s", after);
    int code = hf__my_ask(r->s, r->c, &t, false, r->deadline_ns, ret_result, r->err);
    hf__my_text_clear(&t);
    return code;
}

/* The clock went back: a tombstone that had ended stays ended. */
static int forget(struct hf__my_record *r, const char *before_that)
{
    char sql[120];

    snprintf(sql, sizeof sql,
             "DELETE FROM holdfast_retired WHERE until <= '%s' AND name = ", before_that);
    return ask_about(r, sql, "", NULL);
}

/* Whoever stands in the lock's row alone moves to where the record is read from; see rules.sql. */
static int move(struct hf__my_record *r)
{
    int code = ask_about(
        r,
        "INSERT INTO holdfast_holder SELECT name, inside, 0, 0, 0, NULL, token, ttl, 0, retire,"
        " since - INTERVAL MICROSECOND(since) MOD 1000 MICROSECOND,"
        " since + INTERVAL ttl * 1000 - MICROSECOND(since) MOD 1000 MICROSECOND,"
        " ttl, 1, wake, host, username, program, pid, note FROM holdfast_lock WHERE name = ",
        "", NULL);

    return code != 0
               ? code
               : ask_about(r, "UPDATE holdfast_lock SET inside = NULL WHERE name = ", "", NULL);
}

/* Whoever inserts the row may have waited as well, so the clock is read by the next statement. */
static int lock_row(struct hf__my_record *r)
{
    MYSQL_RES *result = NULL;
    int code = ask_about(
        r, "INSERT INTO holdfast_lock (name, generation, line, touched, `before`) VALUES (",
        ", 0, 1, '1970-01-01', '1970-01-01') ON DUPLICATE KEY UPDATE"
        " line = line + 1, inside = NULLIF(inside, " HF__MY_NOBODY ")",
        NULL);

    if (code == 0)
        code = ask_about(
            r,
            "SELECT generation, line, touched, TIMESTAMPDIFF(MICROSECOND, '1970-01-01',"
            " now), touched > now, inside IS NOT NULL FROM holdfast_lock, (SELECT " HF__MY_CLOCK
            " AS now) k WHERE name = ",
            "", &result);
    if (code != 0)
        return code;
    MYSQL_ROW row = result != NULL ? mysql_fetch_row(result) : NULL;
    if (row == NULL || row[3] == NULL) {
        code = hf__fail(r->err, HF_CORRUPT, "mysql: the lock's row is gone");
    } else {
        r->at_hand.record.generation = (uint64_t)hf__sql_integer(row[0], 0);
        r->line = hf__sql_integer(row[1], 0);
        r->at_hand.at.stamp_us = (uint64_t)hf__sql_integer(row[3], 0);
        r->at_hand.at.now_ms = (int64_t)(r->at_hand.at.stamp_us / 1000);
        if (hf__sql_integer(row[4], 0) != 0)
            code = forget(r, row[2]);
        if (code == 0 && hf__sql_integer(row[5], 0) != 0)
            code = move(r);
    }
    mysql_free_result(result);
    return code;
}

static int take_rows(struct hf__my_record *r, MYSQL_RES *result)
{
    size_t count = result != NULL ? (size_t)mysql_num_rows(result) : 0;
    int code = hf__sql_record_init(&r->at_hand, count, r->err);

    for (size_t i = 0; i < count && code == 0; i++) {
        if (!hf__sql_record_add(&r->at_hand, (const char *const *)mysql_fetch_row(result)))
            code = hf__fail(r->err, HF_CORRUPT, "mysql: a row of this lock makes no sense");
    }
    return code;
}

int hf__my_load(void *ctx)
{
    struct hf__my_record *r = ctx;
    const struct hf__bid *bid = r->op->bid;
    struct hf__my_text t = {0};
    MYSQL_RES *result = NULL;
    int code = hf__my_run(r->s, r->c, "START TRANSACTION", r->deadline_ns, r->err);

    if (code == 0)
        code = lock_row(r);
    if (code != 0)
        return code;
    hf__my_add(&t, "SELECT " HF__MY_HOLDER_COLUMNS " FROM holdfast_holder WHERE name = ");
    hf__my_add_bytes(&t, bid->name, bid->name_len);
    hf__my_add(&t,
               " UNION ALL SELECT " HF__MY_WAITER_COLUMNS " FROM holdfast_waiter WHERE name = ");
    hf__my_add_bytes(&t, bid->name, bid->name_len);
    hf__my_add(&t, " UNION ALL SELECT 0, HEX(ticket), 4, 0, NULL, 0, 0, 0, 0, 0, " HF__MY_MS(
                       "until") ", lease, 0, NULL FROM holdfast_retired WHERE name = ");
    hf__my_add_bytes(&t, bid->name, bid->name_len);
    hf__my_add(&t, " ORDER BY 1");
    code = hf__my_ask(r->s, r->c, &t, false, r->deadline_ns, &result, r->err);
    if (code == 0)
        code = take_rows(r, result);
    mysql_free_result(result);
    hf__my_text_clear(&t);
    return code;
}

/* After the commit, so what goes wrong here is no error; see holdfast_call() in rules.sql. */
static void call_listeners(struct hf__my_record *r)
{
    char *rest = NULL;

    for (char *one = r->calls.data != NULL ? strtok_r(r->calls.data, ",", &rest) : NULL;
         one != NULL && !r->c->broken; one = strtok_r(NULL, ",", &rest)) {
        char sql[300];
        uint64_t id = strtoull(one, NULL, 10);
        const char *word = strchr(one, ' ');
        struct hf__ticket bits; /* a listener's word is written like one; a row may hold anything */
        MYSQL_ROW row;
        if (word == NULL || !hf__ticket_parse(++word, &bits))
            continue;
        snprintf(sql, sizeof sql,
                 "SELECT 1 FROM information_schema.processlist WHERE id = %" PRIu64
                 " AND (info LIKE '%%%s%%' OR (info LIKE 'SELECT GET_LOCK(SUBSTRING_INDEX(a_wake%%'"
                 " AND IS_USED_LOCK('%s') IS NOT NULL))",
                 id, word, word);
        MYSQL_RES *result = hf__my_look(r->s, r->c, sql, r->deadline_ns, &row, NULL);
        if (result == NULL)
            continue;
        mysql_free_result(result);
        snprintf(sql, sizeof sql, "KILL QUERY %" PRIu64, id);
        hf__my_run(r->s, r->c, sql, r->deadline_ns, NULL);
    }
}

int hf__my_finish(void *ctx, int code)
{
    struct hf__my_record *r = ctx;

    if (code == 0)
        code = hf__my_run(r->s, r->c, "COMMIT AND NO CHAIN NO RELEASE", r->deadline_ns, r->err);
    else if (!r->c->broken)
        r->c->broken =
            hf__my_run(r->s, r->c, "ROLLBACK AND NO CHAIN NO RELEASE", r->deadline_ns, NULL) != 0;
    if (code == 0)
        call_listeners(r);
    hf__my_text_clear(&r->calls);
    return code;
}

int hf__my_apply(void *store, void *conn, const struct hf__sql_operation *op, int64_t deadline_ns,
                 struct hf__answer *ret_answer, hf_error *err)
{
    struct hf__my_record r = {
        .s = store, .c = conn, .op = op, .deadline_ns = deadline_ns, .err = err};
    bool done = false;
    int code = hf__my_quick(store, conn, op, deadline_ns, ret_answer, &done, err);

    if (code != 0 || done)
        return code;
    code = hf__sql_apply(&r.at_hand, op, &hf__my_writer, &r, ret_answer, err);
    if (code == 0)
        hf__my_quick_learn(store, op, ret_answer);
    return code;
}
