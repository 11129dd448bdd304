/* hold=session: how a bid begins, up to the statements that are not answered at once. See
 * hold.c. */
#include <inttypes.h>
#include <stdio.h>

#include "stores/mysql/hold.h"

#include "base/banned.h"

#define WAIT_TIMEOUT_S 30 /* signs of life keep the session */

/* Once per connection. Galera's row locks are known to one node only. */
static int make_ready(struct hf__my *s, struct hf__my_conn *c, int64_t deadline_ns, hf_error *err)
{
    MYSQL_ROW row;
    char set[300];

    if (c->session.number != 0)
        return 0;
    if (c->proxied)
        return hf__fail(err, HF_DENIED,
                        "mysql: something stands between, and hold=session needs a connection of "
                        "its own; name the server itself, or use hold=lease");
    /* MariaDB alone can also end idle transactions and long statements; these keep a lock. */
    snprintf(set, sizeof set,
             "SET innodb_lock_wait_timeout = 1, wait_timeout = %d /*M! , max_statement_time = 0,"
             " idle_transaction_timeout = 0, idle_write_transaction_timeout = 0,"
             " idle_readonly_transaction_timeout = 0 */",
             WAIT_TIMEOUT_S);
    int r = hf__my_run(s, c, set, deadline_ns, err);
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
    c->session.number = r == 0 ? (uint64_t)hf__sql_integer(row[0], 0) : 0;
    snprintf(c->session.host, sizeof c->session.host, "%s", row[1]);
    mysql_free_result(result);
    return r;
}

static int register_name(struct hf__my *s, struct hf__my_conn *c, const struct hf__bid *bid,
                         int64_t deadline_ns, hf_error *err)
{
    struct hf__my_text t = {0};

    hf__my_add(&t, "INSERT IGNORE INTO holdfast_session (name) SELECT x FROM (SELECT ");
    hf__my_add_bytes(&t, bid->name, bid->name_len);
    hf__my_add(&t, " AS x) n WHERE NOT EXISTS (SELECT 1 FROM holdfast_session WHERE name = ");
    hf__my_add_bytes(&t, bid->name, bid->name_len);
    hf__my_add(&t, ")");
    int r = hf__my_ask(s, c, &t, false, deadline_ns, NULL, err);
    hf__my_text_clear(&t);
    return r;
}

/* MySQL has no NOWAIT after LOCK IN SHARE MODE, MariaDB no FOR SHARE. */
static const char *lock_clause(const struct hf__my_conn *c, const struct hf__bid *bid)
{
    const char *shared = mariadb_connection(c->my) ? " LOCK IN SHARE MODE" : " FOR SHARE";

    return bid->mode == HF_SHARED ? shared : " FOR UPDATE";
}

/* The door's name: user-level locks are the server's, not the database's. */
static void add_door(struct hf__my_text *t, const struct hf__bid *bid)
{
    hf__my_add(t, "CONCAT('holdfast ', LEFT(SHA2(CONCAT(DATABASE(), '/");
    hf__my_add_hex(t, bid->name, bid->name_len);
    hf__my_add(t, "'), 256), 40))");
}

static void write_texts(struct hf__my *s, const struct hf__my_conn *c, const struct hf__bid *bid,
                        struct hf__my_hold_texts *t)
{
    const struct hf__who *who = bid->who != NULL ? bid->who : s->base.host->self;
    char about[HF__ABOUT_MAX];

    hf__about_format(bid, who, about);
    hf__my_add(&t->to_door, "%s DO GET_LOCK(", about);
    add_door(&t->to_door, bid);
    hf__my_add(&t->to_door, ", 100000000) -- at %" PRIu64 " name = ",
               s->base.host->env->wall_us(s->base.host->env->ctx));
    hf__my_add_bytes(&t->to_door, bid->name, bid->name_len);
    hf__my_add(&t->from_door, "DO RELEASE_LOCK(");
    add_door(&t->from_door, bid);
    hf__my_add(&t->from_door, ")");
    hf__my_add(&t->to_row,
               "%s INSERT INTO holdfast_session_holder (id, name, about, connection, since) SELECT"
               " %" PRIu64 ", name, '%s', %" PRIu64 ", SYSDATE(6) FROM holdfast_session WHERE ",
               about, c->session.number, about, c->session.number);
    if (!bid->queue) {
        hf__my_add(&t->to_row, "GET_LOCK(");
        add_door(&t->to_row, bid);
        hf__my_add(&t->to_row, ", 0) = 1 AND ");
    }
    hf__my_add(&t->to_row, "name = ");
    hf__my_add_bytes(&t->to_row, bid->name, bid->name_len);
    hf__my_add(&t->to_row, "%s%s", lock_clause(c, bid), bid->queue ? "" : " NOWAIT");
}

int hf__my_hold_begin(struct hf__my *s, struct hf__my_conn *c, const struct hf__bid *bid,
                      int64_t deadline_ns, struct hf__my_hold_texts *ret_texts, hf_error *err)
{
    int r = make_ready(s, c, deadline_ns, err);

    if (r == 0)
        r = register_name(s, c, bid, deadline_ns, err);
    if (r == 0)
        r = hf__my_run(s, c, "START TRANSACTION", deadline_ns, err);
    if (r == 0)
        write_texts(s, c, bid, ret_texts);
    return r;
}

void hf__my_hold_texts_clear(struct hf__my_hold_texts *t)
{
    hf__my_text_clear(&t->to_door);
    hf__my_text_clear(&t->to_row);
    hf__my_text_clear(&t->from_door);
}
