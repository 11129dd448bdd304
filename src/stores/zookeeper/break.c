/* Breaking a lock.
 *
 * A waiter's node is deleted, and so is a holder's that never expires or is to go now. A leased
 * holder may be alive, so it is asked to leave by a request (break_requests.c): its client then counts its last
 * lease to the end, and its lock-delay, and deletes the node. If that client is dead, its session
 * ends the same way. Another client's holder knows no such requests: it goes now, or not at all. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stores/zookeeper/zk.h"

#include "base/banned.h"

struct breaking {
    struct hf__zk_session *s;
    char directory[HF__ZK_PATH_MAX], path[2 * HF__ZK_PATH_MAX];
    bool waits, break_requested, simple;
    bool cannot_be_asked; /* a stranger's, to be asked */
    struct hf__zk_details details;
    bool permanent;
    int64_t deadline_ns;
};

/* Finds the node, and whether somebody before it keeps it out. */
static int find(struct breaking *q, const struct hf__ticket *ticket)
{
    struct hf__zk_call *list = hf__zk_call_new();
    struct hf__zk_child mine = {0};

    if (list == NULL)
        return ZSYSTEMERROR;
    int rc = hf__zk_children(q->s, q->directory, true, q->deadline_ns, list);
    for (int i = 0; rc == ZOK && i < list->name_count; i++) {
        struct hf__ticket of;
        if (hf__zk_ticket_of(list->names[i], &of) && hf__ticket_equal(&of, ticket))
            mine = hf__zk_child(list->names[i]);
    }
    for (int i = 0; rc == ZOK && mine.name != NULL && i < list->name_count; i++) {
        struct hf__zk_child c = hf__zk_child(list->names[i]);
        q->waits |=
            c.name != mine.name && strcmp(c.name, mine.name) != 0 && hf__zk_blocks(&c, &mine);
    }
    if (rc == ZOK && mine.name != NULL)
        snprintf(q->path, sizeof q->path, "%s/%s", q->directory, mine.name);
    hf__zk_call_free(list);
    return rc == ZNONODE ? ZOK : rc;
}

/* The simple lock's node has no ticket in its name. */
static int find_simple(struct breaking *q, const struct hf__ticket *ticket)
{
    struct hf__zk_details d;
    struct hf__zk_call *node = hf__zk_call_new();

    if (node == NULL)
        return ZSYSTEMERROR;
    snprintf(q->path, sizeof q->path, "%s/%s", q->directory, HF__ZK_SIMPLE);
    int rc = hf__zk_get(q->s, q->path, q->deadline_ns, node);
    if (rc == ZOK)
        hf__zk_parse(node->text, node->text_len, &d);
    q->simple = rc == ZOK && d.has_ticket && hf__ticket_equal(&d.ticket, ticket);
    if (!q->simple)
        q->path[0] = '\0';
    hf__zk_call_free(node);
    return rc == ZNONODE ? ZOK : rc;
}

static int read_details(struct breaking *q, const struct hf__zk *zk,
                        const struct hf__ticket *ticket)
{
    char path[HF__ZK_PATH_MAX];
    struct hf__zk_call *node = hf__zk_call_new(), *request = hf__zk_call_new();
    int rc = node != NULL && request != NULL ? ZOK : ZSYSTEMERROR;

    if (rc == ZOK)
        rc = hf__zk_get(q->s, q->path, q->deadline_ns, node);
    if (rc == ZOK) {
        hf__zk_parse(node->text, node->text_len, &q->details);
        q->permanent = node->stat.ephemeralOwner == 0;
    }
    for (int now = 0; rc == ZOK && now < 2; now++) {
        hf__zk_break_request_path(zk, ticket, now, path, sizeof path);
        int got = hf__zk_get(q->s, path, q->deadline_ns, request);
        q->break_requested |= got == ZOK;
        if (got != ZOK && got != ZNONODE)
            rc = got;
        else
            hf__zk_call_again(request);
    }
    hf__zk_call_free(node);
    hf__zk_call_free(request);
    return rc;
}

/* With a request that comes and goes in the same step: whoever watches the requests hears of it. */
static int delete_aloud(struct breaking *q, struct hf__zk *zk, const struct hf__ticket *ticket)
{
    char request[HF__ZK_PATH_MAX], owner[HF__ZK_PATH_MAX];
    zoo_op_t ops[4];
    int rc = ZNONODE;
    bool directory_missing = true;

    hf__zk_break_request_path(zk, ticket, true, request, sizeof request);
    zoo_create_op_init(&ops[0], request, NULL, -1, zk->acl, ZOO_PERSISTENT, NULL, 0);
    zoo_delete_op_init(&ops[1], request, -1);
    zoo_delete_op_init(&ops[2], q->path, -1);
    hf__zk_owner_path(zk, ticket, owner, sizeof owner);
    zoo_delete_op_init(&ops[3], owner, -1);
    for (int i = 0; i < 2 && rc == ZNONODE && directory_missing; i++) {
        struct hf__zk_call *call = hf__zk_call_new();
        if (call == NULL)
            return ZSYSTEMERROR;
        rc = i == 0 ? ZOK : hf__zk_make_break_directory(zk, q->s, q->deadline_ns);
        if (rc == ZOK)
            rc = hf__zk_multi(q->s, ops, q->simple ? 4 : 3, q->deadline_ns, call);
        directory_missing = rc == ZNONODE && call->results[0].err == ZNONODE;
        hf__zk_call_free(call);
    }
    if (rc != ZNODEEXISTS)
        return rc;
    /* It was asked already: its client knows. */
    return q->simple ? hf__zk_simple_delete(q->s, ticket, q->path, q->deadline_ns)
                     : hf__zk_delete(q->s, q->path, q->deadline_ns);
}

static void tell_own(struct hf__zk *zk, const struct hf__ticket *ticket, bool deleted, bool now)
{
    pthread_mutex_lock(&zk->mutex);
    struct hf__zk_bidding *b = hf__zk_lookup(zk, ticket);
    if (b != NULL && deleted) {
        b->state = HF__ZK_STATE_LEAVING;
        hf__zk_set_timer(b, 0);
        hf__zk_call_ticket(zk, ticket, 0);
    } else if (b != NULL) {
        hf__zk_apply_break(b, now);
    }
    pthread_mutex_unlock(&zk->mutex);
}

/* A holder that is asked to leave keeps the lock closed until its lease ends; --now with a lock-delay
 * asks, too, because the delay is kept by its client. Only what neither waits nor delays is deleted. */
static int break_node(struct breaking *q, struct hf__zk *zk, const struct hf__ticket *ticket,
                      bool now)
{
    int rc = read_details(q, zk, ticket);

    if (rc != ZOK)
        return rc;
    bool foreign = q->details.ttl_ms < 0;
    bool delays = q->details.lock_delay_ms > 0 && !q->details.waits;
    bool gentle = !now && !foreign && !q->permanent && q->details.ttl_ms != HF__NEVER;
    q->cannot_be_asked = foreign && !now && !q->permanent && !q->waits;
    if (q->cannot_be_asked)
        return ZOK;
    if (!q->waits && (gentle || (now && delays && !q->break_requested))) {
        struct hf__zk_break_request request = {.now = now, .mode = ZOO_PERSISTENT, .why = "broken"};
        rc = hf__zk_put_break_request(q->s, ticket, &request, q->deadline_ns);
        if (rc == ZOK)
            tell_own(zk, ticket, false, now);
        return rc;
    }
    rc = q->waits || foreign ? hf__zk_delete(q->s, q->path, q->deadline_ns)
                             : delete_aloud(q, zk, ticket);
    if (rc != ZOK)
        return rc;
    tell_own(zk, ticket, true, now);
    char path[HF__ZK_PATH_MAX];
    for (int i = 0; q->break_requested && i < 2; i++) {
        hf__zk_break_request_path(zk, ticket, i, path, sizeof path);
        hf__zk_delete(q->s, path, q->deadline_ns);
    }
    return ZOK;
}

int hf__zk_break(struct hf__store *store, const struct hf__bid *bid, bool now, int64_t deadline_ns,
                 struct hf__answer *ret_answer, hf_error *err)
{
    struct hf__zk *zk = (struct hf__zk *)store;
    struct breaking q = {.deadline_ns = deadline_ns};

    if (!hf__zk_directory(zk, bid->name, bid->name_len, q.directory, sizeof q.directory))
        return hf__fail(err, HF_INVALID, "the name is too long for this prefix");
    int r = hf__zk_any_session(zk, deadline_ns, &q.s, err);
    if (r != 0)
        return r;
    int rc = find(&q, &bid->ticket);
    if (rc == ZOK && q.path[0] == '\0')
        rc = find_simple(&q, &bid->ticket);
    if (rc == ZOK)
        rc = q.path[0] != '\0' ? break_node(&q, zk, &bid->ticket, now) : ZNONODE;
    hf__zk_unuse(q.s);
    if (rc != ZOK && rc != ZNONODE)
        return hf__zk_fail(err, rc, "break");
    if (q.cannot_be_asked)
        return hf__fail(err, HF_UNSUPPORTED,
                        "another client holds it and cannot be asked to leave; break it now, or "
                        "wait until its session ends");
    *ret_answer = (struct hf__answer){.verdict = rc == ZOK ? HF__VERDICT_DONE : HF__VERDICT_STALE,
                                      .sent_ns = ret_answer->sent_ns};
    return 0;
}
