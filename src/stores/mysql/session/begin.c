/* hold=session: how a bid begins, up to the statements that are not answered at once. See
 * session.c. */
#include <inttypes.h>
#include <stdio.h>

#include "stores/mysql/session/session.h"

#include "base/banned.h"

/* Once per connection. Galera's row locks are known to one node only. */
static int make_ready(struct hf__my *s, struct hf__my_conn *c, int64_t deadline_ns, hf_error *err)
{
    MYSQL_ROW row;

    if (c->process.number != 0)
        return 0;
    if (c->proxied)
        return hf__fail(err, HF_DENIED,
                        "mysql: something stands between, and hold=session needs a connection of "
                        "its own; name the server itself, or use hold=lease");
    int r = hf__my_run(s, c, hf__my_session_settings_sql, deadline_ns, err);
    if (r != 0)
        return r;
    MYSQL_RES *result =
        hf__my_look(s, c, "SHOW GLOBAL STATUS LIKE 'wsrep_cluster_size'", deadline_ns, &row, NULL);
    bool cluster = result != NULL && hf__sql_integer(row[1], 0) > 0;
    mysql_free_result(result);
    result = hf__my_look(
        s, c, "SELECT id, host FROM information_schema.processlist WHERE id = CONNECTION_ID()",
        deadline_ns, &row, err);
    if (result == NULL)
        return HF_UNAVAILABLE;
    if (cluster)
        r = hf__fail(err, HF_DENIED,
                     "mysql: hold=session does not work on a Galera cluster, whose nodes do not "
                     "know each other's row locks; use hold=lease");
    c->process.number = r == 0 ? (uint64_t)hf__sql_integer(row[0], 0) : 0;
    snprintf(c->process.host, sizeof c->process.host, "%s", row[1]);
    mysql_free_result(result);
    return r;
}

/* MySQL has no NOWAIT after LOCK IN SHARE MODE, MariaDB no FOR SHARE. The door: user-level locks are
 * the server's, not the database's. */
static void write_texts(struct hf__my *s, const struct hf__my_conn *c, const struct hf__bid *bid,
                        const char *name, struct hf__my_lock_texts *t)
{
    const struct hf_env *env = s->base.host->env;
    char comment[HF__SESSION_COMMENT_MAX], door[HF__MY_LITERAL + 100],
        try_door[HF__MY_LITERAL + 130];
    const char *shared = mariadb_connection(c->my) ? "LOCK IN SHARE MODE" : "FOR SHARE";
    char number[24], how[40];

    hf__session_comment_format(bid, bid->who != NULL ? bid->who : s->base.host->self, comment);
    snprintf(door, sizeof door,
             "CONCAT('holdfast ', LEFT(SHA2(CONCAT(DATABASE(), '/', LOWER(HEX(%s))), 256), 40))",
             name);
    hf__my_add(&t->to_door, "%s DO GET_LOCK(%s, 100000000) -- at %" PRIu64 " name = %s", comment,
               door, env->wall_us(env->ctx), name);
    hf__my_add(&t->from_door, "DO RELEASE_LOCK(%s)", door);
    snprintf(number, sizeof number, "%" PRIu64, c->process.number);
    snprintf(try_door, sizeof try_door, "GET_LOCK(%s, 0) = 1 AND", door);
    snprintf(how, sizeof how, "%s%s", bid->mode == HF_SHARED ? shared : "FOR UPDATE",
             bid->queue ? "" : " NOWAIT");
    hf__my_add_statement(
        &t->to_row, hf__my_row_sql,
        (const char *const[]){comment, number, bid->queue ? "" : try_door, name, how});
}

int hf__my_session_begin(struct hf__my *s, struct hf__my_conn *c, const struct hf__bid *bid,
                         int64_t deadline_ns, struct hf__my_lock_texts *ret_texts, hf_error *err)
{
    char literal[HF__MY_LITERAL];
    const char *name = hf__my_literal(bid->name, bid->name_len, literal);
    struct hf__my_text t = {0};
    int r = make_ready(s, c, deadline_ns, err);

    hf__my_add_statement(&t, hf__my_register_sql, &name);
    if (r == 0)
        r = hf__my_ask(s, c, &t, false, deadline_ns, NULL, err);
    hf__my_text_clear(&t);
    if (r == 0)
        r = hf__my_run(s, c, "START TRANSACTION", deadline_ns, err);
    if (r == 0)
        write_texts(s, c, bid, name, ret_texts);
    return r;
}

void hf__my_lock_texts_clear(struct hf__my_lock_texts *t)
{
    hf__my_text_clear(&t->to_door);
    hf__my_text_clear(&t->to_row);
    hf__my_text_clear(&t->from_door);
}
