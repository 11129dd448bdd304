/* Creating the tables and procedures, and removing what has been idle for long.
 *
 * A lock's row is kept for its generation. Without it the next one is taken from the wall clock
 * alone, which is above it as long as the clock was not put back by more than `retain`. */
#include <inttypes.h>
#include <stdio.h>

#include "stores/mysql/mysql.h"

#include "base/banned.h"

/* SQL files ---------------------------------------------------------------- */

/* The next statement of a text for the mysql command: it ends with the delimiter that was set last
 * by a DELIMITER line. False: there is none. */
static bool next_statement(const char **at, char delimiter[4], const char **ret_from,
                           size_t *ret_len)
{
    for (;;) {
        *at += strspn(*at, " \n");
        if (strncmp(*at, "DELIMITER ", 10) == 0) {
            size_t len = strcspn(*at + 10, "\n");
            memcpy(delimiter, *at + 10, len < 3 ? len : 3);
            delimiter[len < 3 ? len : 3] = '\0';
            *at += 10 + len;
            continue;
        }
        if (strncmp(*at, "--", 2) == 0) { /* a comment before a statement */
            *at += strcspn(*at, "\n");
            continue;
        }
        if (**at == '\0')
            return false;
        *ret_from = *at;
        const char *end = *at;
        while ((end = strstr(end, delimiter)) != NULL && end[strlen(delimiter)] != '\n' &&
               end[strlen(delimiter)] != '\0')
            end++;
        *ret_len = end != NULL ? (size_t)(end - *at) : strlen(*at);
        *at += *ret_len + (end != NULL ? strlen(delimiter) : 0);
        return true;
    }
}

static int run_file(struct hf__my *s, struct hf__my_conn *c, const char *sql, int64_t deadline_ns,
                    hf_error *err)
{
    char delimiter[4] = ";";
    const char *from;
    size_t len;
    int r = 0;

    while (r == 0 && next_statement(&sql, delimiter, &from, &len)) {
        struct hf__my_text t = {0};
        hf__my_add(&t, "%.*s", (int)len, from);
        r = hf__my_ask(s, c, &t, false, deadline_ns, NULL, err);
        hf__my_text_clear(&t);
    }
    return r;
}

/* The rows of hold=session had numbers of a counter once, for which MariaDB 11 does not wait. The change
 * waits until nobody holds such a lock, and keeps out whoever comes meanwhile: so not for long. */
static int remove_counter(struct hf__my *s, struct hf__my_conn *c, int64_t deadline_ns,
                          hf_error *err)
{
    MYSQL_ROW row;
    MYSQL_RES *result = hf__my_look(s, c, hf__my_counter_sql, deadline_ns, &row, NULL);
    bool counted = result != NULL && hf__sql_integer(row[0], 0) > 0;

    mysql_free_result(result);
    if (!counted)
        return 0;
    int r = hf__my_run(s, c, "SET lock_wait_timeout = 1", deadline_ns, err);
    if (r != 0)
        return r;
    r = hf__my_run(s, c, "ALTER TABLE holdfast_session_holder MODIFY id BIGINT NOT NULL",
                   deadline_ns, err);
    hf__my_run(s, c, "SET lock_wait_timeout = DEFAULT", deadline_ns, NULL);
    if (r == HF_UNAVAILABLE && err != NULL && err->store_code == 1205)
        return hf__fail(err, HF_BUSY,
                        "mysql: somebody holds a lock by hold=session, whose table has to change: "
                        "run 'holdfast setup' again when nobody does");
    return r;
}

/* Whether all that the text creates is there, and of our version. Then nothing is created anew: MySQL
 * cannot replace a procedure, and whoever locks meanwhile would miss it. */
static bool is_complete(struct hf__my *s, struct hf__my_conn *c, int64_t deadline_ns)
{
    MYSQL_ROW row;
    int64_t wanted = 0, there = 0;

    if (hf__my_learn(s, c, deadline_ns, NULL) != 0)
        return false;
    for (const char *at = hf__my_ddl; (at = strstr(at, "\nCREATE ")) != NULL; at++)
        wanted++;
    MYSQL_RES *result = hf__my_look(s, c, hf__my_created_sql, deadline_ns, &row, NULL);
    if (result != NULL)
        there = hf__sql_integer(row[0], 0);
    mysql_free_result(result);
    return there >= wanted;
}

/* Where all is there already the right to create it is not needed, nor to see all of it. */
int hf__my_setup(void *store, void *conn, int64_t deadline_ns, hf_error *err)
{
    struct hf__my *s = store;
    MYSQL_ROW row;
    int r = 0;

    if (!is_complete(s, conn, deadline_ns)) {
        /* Where there are no tables, or the version is none that was ever there, nothing is brought up to date. */
        MYSQL_RES *result = hf__my_look(s, conn, "SELECT MAX(version) FROM holdfast_schema",
                                        deadline_ns, &row, NULL);
        if (result != NULL && hf__sql_integer(row[0], 0) == 1)
            r = run_file(s, conn, hf__my_upgrade_sql, deadline_ns, err);
        mysql_free_result(result);
        if (r == 0)
            r = run_file(s, conn, hf__my_ddl, deadline_ns, err);
        hf__sql_learn_again(&s->sql);
    }
    if (r == 0)
        r = remove_counter(s, conn, deadline_ns, err);
    return r == HF_DENIED && hf__my_learn(s, conn, deadline_ns, NULL) == 0 ? 0 : r;
}

/* Purging ------------------------------------------------------------------ */

/* Asks which locks are idle, of those for which `that` is true. */
static int ask_idle(struct hf__my *s, struct hf__my_conn *c, int64_t retain_ms, const char *that,
                    const char *how, int64_t deadline_ns, MYSQL_RES **ret_result, hf_error *err)
{
    char retain[24];
    const char *const values[] = {retain, that, how};
    struct hf__my_text t = {0};

    snprintf(retain, sizeof retain, "%" PRId64, retain_ms);
    hf__my_add_statement(&t, hf__my_idle_sql, values);
    int r = hf__my_ask(s, c, &t, true, deadline_ns, ret_result, err);
    hf__my_text_clear(&t);
    return r;
}

/* Once its row is locked nobody works on it: what was seen before must still be so. A row that
 * somebody works on is passed over: it is not idle. */
static int purge_one(struct hf__my *s, struct hf__my_conn *c, const char *name, int64_t retain_ms,
                     int64_t deadline_ns, uint64_t *count, hf_error *err)
{
    static const char *const tables[] = {"holder", "waiter", "retired", "lock"};
    MYSQL_RES *result = NULL;
    char sql[2 * HF_NAME_MAX + 80];
    int r = hf__my_run(s, c, "START TRANSACTION", deadline_ns, err);

    snprintf(sql, sizeof sql, "name = x'%s'", name);
    if (r == 0)
        r = ask_idle(s, c, retain_ms, sql, "FOR UPDATE SKIP LOCKED", deadline_ns, &result, err);
    bool idle = r == 0 && mysql_num_rows(result) == 1;
    mysql_free_result(result);
    snprintf(sql, sizeof sql, "DELETE FROM holdfast_value WHERE name = x'%s' AND bytes = ''", name);
    if (idle && r == 0)
        r = hf__my_run(s, c, sql, deadline_ns, err);
    for (size_t i = 0; idle && r == 0 && i < sizeof tables / sizeof tables[0]; i++) {
        snprintf(sql, sizeof sql, "DELETE FROM holdfast_%s WHERE name = x'%s'", tables[i], name);
        r = hf__my_run(s, c, sql, deadline_ns, err);
    }
    if (r == 0)
        r = hf__my_run(s, c, "COMMIT AND NO CHAIN NO RELEASE", deadline_ns, err);
    if (r == 0)
        *count += idle;
    else
        c->broken = true;
    return r;
}

int hf__my_purge(void *store, void *conn, int64_t retain_ms, int64_t deadline_ns, uint64_t *count,
                 hf_error *err)
{
    struct hf__my *s = store;
    MYSQL_RES *result = NULL;
    MYSQL_ROW row;
    int r = ask_idle(s, conn, retain_ms, "TRUE", "LIMIT 200", deadline_ns, &result, err);
    int64_t enough_ns = hf__sql_soon(&s->base, deadline_ns); /* the next purge does the rest */

    _Static_assert(HF__SQL_PURGE_BATCH == 200, "see LIMIT");
    while (r == 0 && (row = mysql_fetch_row(result)) != NULL &&
           hf__now_ns(s->base.host->env) < enough_ns)
        r = purge_one(s, conn, row[0], retain_ms, deadline_ns, count, err);
    mysql_free_result(result);
    return r;
}
