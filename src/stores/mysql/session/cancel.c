/* hold=session: what another connection is asked when one of ours shall end. */
#include <inttypes.h>
#include <stdio.h>

#include "stores/mysql/session/session.h"

#include "base/banned.h"

/* False: not answered. `*ret_there`: it had a row to show. */
static bool ask_elsewhere(struct hf__my *s, struct hf__my_conn *c, const char *sql,
                          int64_t deadline_ns, bool *ret_there)
{
    struct hf__my_text t = {0};
    MYSQL_RES *result = NULL;

    hf__my_add(&t, "%s", sql);
    int r = hf__my_ask(s, c, &t, true, deadline_ns, &result, NULL);
    *ret_there = result != NULL && mysql_num_rows(result) > 0;
    mysql_free_result(result);
    hf__my_text_clear(&t);
    return r == 0;
}

/* The host names the port of our end, or it is a socket of this machine, whose sessions are ours
 * only while they show our ticket. */
enum hf__session_gone hf__my_session_kill(void *owner, const struct hf__session_lock *base,
                                          void *other, int64_t deadline_ns)
{
    const struct hf__my_session_lock *lock = (const struct hf__my_session_lock *)base;
    char sql[400];
    bool there, none;

    snprintf(sql, sizeof sql,
             "SELECT 1 FROM information_schema.processlist WHERE id = %" PRIu64
             " AND host = '%s' AND (host LIKE '%%:%%' OR info LIKE '/*holdfast %s%%')",
             lock->id.number, lock->id.host, lock->ticket);
    if (!ask_elsewhere(owner, other, sql, deadline_ns, &there))
        return HF__SESSION_GONE_NOT_SAID;
    if (!there)
        return HF__SESSION_GONE_YES;
    snprintf(sql, sizeof sql, "KILL CONNECTION %" PRIu64, lock->id.number);
    ask_elsewhere(owner, other, sql, deadline_ns, &none);
    return HF__SESSION_GONE_NOT;
}

/* A server that restarted, or took over from another, has given our number to somebody else. */
bool hf__my_session_cancel(void *owner, struct hf__session_lock *base, void *other,
                           int64_t deadline_ns)
{
    struct hf__my_session_lock *lock = (struct hf__my_session_lock *)base;
    char sql[200];
    bool there, none;

    lock->ended = true;
    snprintf(sql, sizeof sql,
             "SELECT 1 FROM information_schema.processlist WHERE id = %" PRIu64
             " AND info LIKE '/*holdfast %s%%'",
             lock->id.number, lock->ticket);
    if (!ask_elsewhere(owner, other, sql, deadline_ns, &there) || !there)
        return false;
    snprintf(sql, sizeof sql, "KILL QUERY %" PRIu64, lock->id.number);
    return ask_elsewhere(owner, other, sql, deadline_ns, &none);
}
