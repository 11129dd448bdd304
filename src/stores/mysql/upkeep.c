/* Creating the tables and procedures, and removing what has been idle for long.
 *
 * A lock's row is kept for its generation. Without it the next one is taken from the wall clock
 * alone, which is above it as long as the clock was not put back by more than `retain`. */
#include <inttypes.h>
#include <stdlib.h>

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

static bool may_not_create(struct hf__my *s, struct hf__my_conn *c, int64_t deadline_ns)
{
    hf_error err = {0};

    hf__my_run(s, c, "CREATE TABLE IF NOT EXISTS holdfast_schema (one_row INT)", deadline_ns, &err);
    return err.code == HF_DENIED;
}

/* Brings tables of an older version to this one; where there are none, or the version is none that
 * was ever there, nothing is done. */
static int upgrade(struct hf__my *s, struct hf__my_conn *c, int64_t deadline_ns, hf_error *err)
{
    MYSQL_ROW row;
    MYSQL_RES *result =
        hf__my_look(s, c, "SELECT MAX(version) FROM holdfast_schema", deadline_ns, &row, NULL);
    bool older = result != NULL && hf__sql_integer(row[0], 0) == 1;

    mysql_free_result(result);
    return older ? run_file(s, c, hf__my_upgrade_sql, deadline_ns, err) : 0;
}

/* The rows of hold=session had numbers of a counter once, for which MariaDB 11 does not wait. The change
 * waits until nobody holds such a lock, and keeps out whoever comes meanwhile: so not for long. */
static int remove_counter(struct hf__my *s, struct hf__my_conn *c, int64_t deadline_ns,
                          hf_error *err)
{
    MYSQL_ROW row;
    MYSQL_RES *result = hf__my_look(
        s, c,
        "SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = DATABASE() AND"
        " table_name = 'holdfast_session_holder' AND extra LIKE '%auto_increment%'",
        deadline_ns, &row, NULL);
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

/* The tables are needed; the procedures only make it faster. Where all is there already the right
 * to create it is not needed. */
int hf__my_setup(void *store, void *conn, int64_t deadline_ns, hf_error *err)
{
    struct hf__my *s = store;
    hf_error why = {0};

    if (hf__my_learn(s, conn, deadline_ns, NULL) == 0 && may_not_create(s, conn, deadline_ns))
        return 0;
    int r = upgrade(s, conn, deadline_ns, err);
    if (r == 0)
        r = run_file(s, conn, hf__my_schema_sql, deadline_ns, err);
    if (r == 0)
        r = remove_counter(s, conn, deadline_ns, err);
    if (r != 0)
        return r;
    r = run_file(s, conn, hf__my_routines_sql, deadline_ns, &why);
    hf__sql_forget_way(&s->sql);
    if (r != 0 && r != HF_DENIED && err != NULL)
        *err = why;
    return r == HF_DENIED ? 0 : r; /* `holdfast doctor` says that they are missing */
}

/* Purging ------------------------------------------------------------------ */

/* What has run out but was never swept must not keep an idle lock alive. */
#define IDLE                                                                                      \
    "touched <= " HF__MY_CLOCK " - INTERVAL %" PRId64 "000 MICROSECOND"                           \
    " AND (inside IS NULL OR inside = " HF__MY_NOBODY                                             \
    " OR since + INTERVAL (ttl + retire) * 1000 MICROSECOND <= " HF__MY_CLOCK ")"                 \
    " AND NOT EXISTS (SELECT 1 FROM holdfast_holder h WHERE h.name = l.name AND (h.lease IS NULL" \
    " OR h.until + INTERVAL (h.delay + h.retire) * 1000 MICROSECOND > " HF__MY_CLOCK "))"         \
    " AND NOT EXISTS (SELECT 1 FROM holdfast_waiter w WHERE w.name = l.name AND w.until "         \
    "> " HF__MY_CLOCK                                                                             \
    ") AND NOT EXISTS (SELECT 1 FROM holdfast_retired r WHERE r.name = l.name AND "               \
    "r.until > " HF__MY_CLOCK ")"

static int drop_rows(struct hf__my *s, struct hf__my_conn *c, const char *name, int64_t deadline_ns,
                     hf_error *err)
{
    static const char *const tables[] = {"holder", "waiter", "retired", "lock"};
    int r = 0;

    for (size_t i = 0; i < 4 && r == 0; i++) {
        struct hf__my_text t = {0};
        hf__my_add(&t, "DELETE FROM holdfast_%s WHERE name = x'%s'", tables[i], name);
        r = hf__my_ask(s, c, &t, false, deadline_ns, NULL, err);
        hf__my_text_clear(&t);
    }
    return r;
}

/* Once its row is locked nobody works on it: what was seen before must still be so. A row that
 * somebody works on is passed over: it is not idle. */
static int purge_one(struct hf__my *s, struct hf__my_conn *c, const char *name, int64_t retain_ms,
                     int64_t deadline_ns, uint64_t *count, hf_error *err)
{
    struct hf__my_text t = {0};
    MYSQL_RES *result = NULL;
    int r = hf__my_run(s, c, "START TRANSACTION", deadline_ns, err);

    hf__my_add(
        &t, "SELECT 1 FROM holdfast_lock l WHERE name = x'%s' AND " IDLE " FOR UPDATE SKIP LOCKED",
        name, retain_ms);
    if (r == 0)
        r = hf__my_ask(s, c, &t, false, deadline_ns, &result, err);
    bool idle = r == 0 && result != NULL && mysql_num_rows(result) == 1;
    mysql_free_result(result);
    hf__my_text_clear(&t);
    if (idle)
        r = drop_rows(s, c, name, deadline_ns, err);
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
    struct hf__my_text t = {0};
    MYSQL_RES *result = NULL;
    MYSQL_ROW row;

    hf__my_add(&t, "SELECT HEX(name) FROM holdfast_lock l WHERE " IDLE " LIMIT %d", retain_ms,
               HF__SQL_PURGE_BATCH);
    int r = hf__my_ask(s, conn, &t, true, deadline_ns, &result, err);
    int64_t now_ns = hf__now_ns(s->base.host->env);
    int64_t enough_ns = now_ns + (deadline_ns - now_ns) / 2; /* the next purge does the rest */
    while (r == 0 && (row = mysql_fetch_row(result)) != NULL &&
           hf__now_ns(s->base.host->env) < enough_ns)
        r = purge_one(s, conn, row[0], retain_ms, deadline_ns, count, err);
    mysql_free_result(result);
    hf__my_text_clear(&t);
    return r;
}
