/* hold=session: what another connection is asked when one of ours shall end. */
#include <inttypes.h>
#include <stdio.h>

#include "stores/mysql/hold.h"

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
enum hf__held_gone hf__my_hold_kill(void *owner, const struct hf__held *base, void *other,
                                    int64_t deadline_ns)
{
    const struct hf__my_held *h = (const struct hf__my_held *)base;
    char sql[400];
    bool there, none;

    snprintf(sql, sizeof sql,
             "SELECT 1 FROM information_schema.processlist WHERE id = %" PRIu64
             " AND host = '%s' AND (host LIKE '%%:%%' OR info LIKE '/*holdfast %s%%')",
             h->id.number, h->id.host, h->ticket);
    if (!ask_elsewhere(owner, other, sql, deadline_ns, &there))
        return HF__HELD_NOT_SAID;
    if (!there)
        return HF__HELD_GONE;
    snprintf(sql, sizeof sql, "KILL CONNECTION %" PRIu64, h->id.number);
    ask_elsewhere(owner, other, sql, deadline_ns, &none);
    return HF__HELD_STILL_THERE;
}

/* A server that restarted, or took over from another, has given our number to somebody else. */
bool hf__my_hold_cancel(void *owner, struct hf__held *base, void *other, int64_t deadline_ns)
{
    struct hf__my_held *h = (struct hf__my_held *)base;
    char sql[200];
    bool there, none;

    h->ended = true;
    snprintf(sql, sizeof sql,
             "SELECT 1 FROM information_schema.processlist WHERE id = %" PRIu64
             " AND info LIKE '/*holdfast %s%%'",
             h->id.number, h->ticket);
    if (!ask_elsewhere(owner, other, sql, deadline_ns, &there) || !there)
        return false;
    snprintf(sql, sizeof sql, "KILL QUERY %" PRIu64, h->id.number);
    return ask_elsewhere(owner, other, sql, deadline_ns, &none);
}
