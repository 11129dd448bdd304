/* The lock that is not fair (fair=no), as the textbook has it: one ephemeral node that everybody
 * tries to create and everybody else watches. With each release the server tells all who wait, and
 * all try: the herd. It gives way to the queue of the fair lock, if that is used for the same name.
 *
 * All holders have the same path, and a deletion can name no more than a version, which is 0 for
 * every new node. So each has a node of its own beside the locks, <prefix>/%simple/<uuid of the ticket>, which
 * comes, moves and goes with the node in one multi: whoever has none deletes nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doorman/doorman.h"
#include "stores/zookeeper/zk.h"

#include "base/banned.h"

#define OWNERS "%simple" /* no escaped name looks like this */
#define TRIES  3         /* to make a directory that the servers remove while it is empty */

void hf__zk_owner_path(const struct hf__zk *zk, const struct hf__ticket *ticket, char *buf,
                       size_t size)
{
    char uuid[37];

    hf__zk_uuid(ticket, uuid);
    snprintf(buf, size, "%s/%s/%s", zk->prefix, OWNERS, uuid);
}

/* Both nodes in one step. The directories are made only when they turn out to be missing, for they
 * are there as a rule. */
static int make_node(struct hf__zk_bidding *b, const char *path, int64_t deadline_ns)
{
    char owner[HF__ZK_PATH_MAX], owners[HF__ZK_PATH_MAX];
    zoo_op_t ops[2];
    int rc = ZNONODE;

    snprintf(owners, sizeof owners, "%s/%s", b->zk->prefix, OWNERS);
    hf__zk_owner_path(b->zk, &b->ticket, owner, sizeof owner);
    zoo_create_op_init(&ops[0], path, b->data, (int)strlen(b->data), b->zk->acl, ZOO_EPHEMERAL,
                       NULL, 0);
    zoo_create_op_init(&ops[1], owner, NULL, -1, b->zk->acl, ZOO_EPHEMERAL, NULL, 0);
    for (int i = 0; rc == ZNONODE && i <= TRIES; i++) {
        struct hf__zk_call *call = hf__zk_call_new();
        if (call == NULL)
            return ZSYSTEMERROR;
        rc = i == 0 ? ZOK : hf__zk_make_directory(b->session, b->directory, deadline_ns);
        if (rc == ZOK && i > 0)
            rc = hf__zk_make_directory(b->session, owners, deadline_ns);
        if (rc == ZOK)
            rc = hf__zk_multi(b->session, ops, 2, deadline_ns, call);
        hf__zk_call_free(call);
    }
    return rc;
}

int hf__zk_simple_delete(struct hf__zk_session *s, const struct hf__ticket *ticket,
                         const char *path, int64_t deadline_ns)
{
    char owner[HF__ZK_PATH_MAX];
    zoo_op_t ops[2];
    struct hf__zk_call *call = hf__zk_call_new();

    if (call == NULL)
        return ZSYSTEMERROR;
    hf__zk_owner_path(s->zk, ticket, owner, sizeof owner);
    zoo_delete_op_init(&ops[0], owner, -1);
    zoo_delete_op_init(&ops[1], path, -1);
    int rc = hf__zk_multi(s, ops, 2, deadline_ns, call);
    bool owner_alone = rc == ZNONODE && call->results[0].err != ZNONODE;
    hf__zk_call_free(call);
    if (owner_alone) /* a stranger has deleted the node */
        hf__zk_delete(s, owner, deadline_ns);
    return rc;
}

int hf__zk_simple_remove(struct hf__zk_bidding *b, int64_t deadline_ns)
{
    char path[HF__ZK_PATH_MAX];

    if (b->path == NULL && !b->unsure)
        return ZNONODE;
    if (!hf__zk_child_path(b, HF__ZK_SIMPLE, path))
        return ZBADARGUMENTS;
    int rc = hf__zk_simple_delete(b->session, &b->ticket, path, deadline_ns);
    pthread_mutex_lock(&b->zk->mutex);
    b->unsure &= rc != ZOK && rc != ZNONODE;
    pthread_mutex_unlock(&b->zk->mutex);
    return rc;
}

/* Makes the node, unless an earlier try of this ticket did. ZNODEEXISTS: somebody else has the lock. */
static int take(struct hf__zk_bidding *b, const char *path, int64_t deadline_ns)
{
    int rc = b->path != NULL ? ZOK : b->unsure ? hf__zk_find_node(b, deadline_ns) : ZNONODE;

    if (rc == ZNONODE) {
        rc = make_node(b, path, deadline_ns);
        pthread_mutex_lock(&b->zk->mutex);
        b->unsure = rc == ZOK || hf__zk_may_be_applied(rc);
        pthread_mutex_unlock(&b->zk->mutex);
        if (rc == ZOK)
            rc = hf__zk_adopt(b, path, deadline_ns);
    }
    pthread_mutex_lock(&b->zk->mutex);
    if (rc == ZOK && b->state == HF__ZK_STATE_JOINING)
        b->state = HF__ZK_STATE_JOINED;
    pthread_mutex_unlock(&b->zk->mutex);
    return rc;
}

/* Our node is there, but somebody stands in the queue of the fair lock, who may not have seen it: it
 * goes again, and that one is waited for. ZOK: `path` is the last of them, or "". */
static int give_way_to_queue(struct hf__zk_bidding *b, int64_t deadline_ns, bool *ret_present,
                             char path[HF__ZK_PATH_MAX])
{
    struct hf__zk_call *list = hf__zk_call_new();
    struct hf__zk_standing at = {0};
    int rc = list != NULL ? hf__zk_children(b->session, b->directory, false, deadline_ns, list)
                          : ZSYSTEMERROR;

    path[0] = '\0';
    if (rc == ZOK) {
        at = hf__zk_find_standing(b, list->names, list->name_count);
        if (at.near != NULL && !hf__zk_child_path(b, at.near, path))
            rc = ZBADARGUMENTS;
    }
    *ret_present = at.present; /* without a directory it is not */
    hf__zk_call_free(list);
    if (rc == ZOK && at.present && path[0] != '\0') {
        rc = hf__zk_simple_remove(b, deadline_ns);
        if (rc != ZOK && rc != ZNONODE)
            return rc;
        pthread_mutex_lock(&b->zk->mutex);
        free(b->path);
        b->path = NULL;
        b->state = b->state == HF__ZK_STATE_JOINED ? HF__ZK_STATE_JOINING : b->state;
        pthread_mutex_unlock(&b->zk->mutex);
    }
    return rc == ZNONODE ? ZOK : rc;
}

/* 1: somebody has let go of it meanwhile; try again. */
static int try_once(struct hf__zk_bidding *b, const struct hf__bid *bid, int64_t deadline_ns,
                    struct hf__answer *ret_answer, hf_error *err)
{
    struct hf__zk *zk = b->zk;
    char path[HF__ZK_PATH_MAX];
    const char *const paths[HF__ZK_WATCHED_KINDS] = {[HF__ZK_WATCHED_NEAR] = path};
    bool present = true;

    if (!hf__zk_child_path(b, HF__ZK_SIMPLE, path))
        return hf__fail(err, HF_INVALID, "the name is too long for this prefix");
    int rc = take(b, path, deadline_ns);
    if (rc == ZOK) {
        rc = give_way_to_queue(b, deadline_ns, &present, path);
        if (rc == ZOK && !present)
            return hf__zk_answer_withdrawn(b, ret_answer);
        if (rc == ZOK && path[0] == '\0') {
            hf__zk_granted(b, ret_answer);
            return 0;
        }
    } else if (rc == ZNODEEXISTS) {
        rc = ZOK;
    }
    if (rc == ZOK && bid->queue)
        rc = hf__zk_watch(b, paths, deadline_ns);
    if (rc == ZNONODE)
        return 1;
    if (rc != ZOK)
        return hf__zk_fail(err, rc, "create");
    pthread_mutex_lock(&zk->mutex);
    *ret_answer = (struct hf__answer){.verdict = bid->queue ? HF__VERDICT_QUEUED : HF__VERDICT_BUSY,
                                      .lease_ms = hf__provisional_lease_ms(b->ttl_ms),
                                      .ask_again_ms = 5000,
                                      .sent_ns = ret_answer->sent_ns};
    b->until_ns = hf__now_ns(zk->base.host->env) + hf__own_lease_ms(b->ttl_ms) * HF__NS_PER_MS;
    hf__zk_set_timer(b, b->until_ns);
    if (!bid->queue)
        hf__zk_retire(b, 0);
    pthread_mutex_unlock(&zk->mutex);
    return 0;
}

int hf__zk_simple_ask(struct hf__zk_bidding *b, const struct hf__bid *bid, int64_t deadline_ns,
                      struct hf__answer *ret_answer, hf_error *err)
{
    int r = 1;

    if (b->state != HF__ZK_STATE_JOINING && b->state != HF__ZK_STATE_JOINED)
        return hf__zk_answer_withdrawn(b, ret_answer);
    if (b->session == NULL) {
        struct hf__zk_session *s;
        int code = hf__zk_hold_session(b, deadline_ns, &s, err);
        if (code != 0)
            return code;
        pthread_mutex_lock(&b->zk->mutex);
        b->session = s;
        pthread_mutex_unlock(&b->zk->mutex);
    } else if (!hf__zk_await(b->session, deadline_ns)) {
        return hf__fail(err, HF_UNAVAILABLE, "no server of %s answers", b->zk->hosts);
    }
    while (r == 1 && hf__now_ns(b->zk->base.host->env) < deadline_ns)
        r = try_once(b, bid, deadline_ns, ret_answer, err);
    return r == 1 ? hf__fail(err, HF_UNKNOWN, "it changes hands too fast") : r;
}
