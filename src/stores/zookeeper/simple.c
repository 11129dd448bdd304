/* The lock that is not fair (fair=no), as the textbook has it: one ephemeral node that everybody
 * tries to create and everybody else watches. With each release the server tells all who wait, and
 * all try: the herd. It gives way to the queue of the fair lock, if that is used for the same name.
 *
 * All holders have the same path, and a deletion can name no more than a version, which is 0 for
 * every new node. So each has a deed beside the locks, <prefix>/%simple/<uuid of the ticket>, which
 * comes, moves and goes with the node in one multi: without its deed nobody deletes anything. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doorman/doorman.h"
#include "stores/zookeeper/zk.h"

#include "base/banned.h"

#define DEEDS "%simple" /* no escaped name looks like this */

void hf__zk_deed_path(const struct zk *zk, const struct hf__ticket *ticket, char *buf, size_t size)
{
    char uuid[37];

    hf__zk_uuid(ticket, uuid);
    snprintf(buf, size, "%s/%s/%s", zk->prefix, DEEDS, uuid);
}

static int make_directories(struct bidding *b, int64_t deadline_ns)
{
    char deeds[HF__ZK_PATH_MAX];
    int rc = hf__zk_make_directory(b->session, b->directory, deadline_ns);

    snprintf(deeds, sizeof deeds, "%s/%s", b->zk->prefix, DEEDS);
    return rc == ZOK ? hf__zk_make_directory(b->session, deeds, deadline_ns) : rc;
}

static int make_node(struct bidding *b, const char *path, int64_t deadline_ns)
{
    char deed[HF__ZK_PATH_MAX];
    zoo_op_t ops[2];
    struct call *call = hf__zk_call_new();

    if (call == NULL)
        return ZSYSTEMERROR;
    hf__zk_deed_path(b->zk, &b->ticket, deed, sizeof deed);
    zoo_create_op_init(&ops[0], path, b->data, (int)strlen(b->data), b->zk->acl, ZOO_EPHEMERAL,
                       NULL, 0);
    zoo_create_op_init(&ops[1], deed, NULL, -1, b->zk->acl, ZOO_EPHEMERAL, NULL, 0);
    int rc = hf__zk_multi(b->session, ops, 2, deadline_ns, call);
    hf__zk_call_free(call);
    return rc;
}

static int create(struct bidding *b, const char *path, int64_t deadline_ns)
{
    int rc = make_node(b, path, deadline_ns);

    for (int i = 0; rc == ZNONODE && i < 3; i++) {
        rc = make_directories(b, deadline_ns);
        if (rc == ZOK)
            rc = make_node(b, path, deadline_ns);
    }
    return rc;
}

int hf__zk_simple_delete(struct session *s, const struct hf__ticket *ticket, const char *path,
                         int64_t deadline_ns)
{
    char deed[HF__ZK_PATH_MAX];
    zoo_op_t ops[2];
    struct call *call = hf__zk_call_new();

    if (call == NULL)
        return ZSYSTEMERROR;
    hf__zk_deed_path(s->zk, ticket, deed, sizeof deed);
    zoo_delete_op_init(&ops[0], deed, -1);
    zoo_delete_op_init(&ops[1], path, -1);
    int rc = hf__zk_multi(s, ops, 2, deadline_ns, call);
    bool deed_alone = rc == ZNONODE && call->results[0].err != ZNONODE;
    hf__zk_call_free(call);
    if (deed_alone) /* a stranger has deleted the node */
        hf__zk_delete(s, deed, deadline_ns);
    return rc;
}

int hf__zk_simple_remove(struct bidding *b, int64_t deadline_ns)
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

/* ZNODEEXISTS: somebody else has it. */
static int take(struct bidding *b, const char *path, int64_t deadline_ns)
{
    int rc = b->unsure ? hf__zk_find_node(b, deadline_ns) : ZNONODE;

    if (rc == ZNONODE) {
        rc = create(b, path, deadline_ns);
        pthread_mutex_lock(&b->zk->mutex);
        b->unsure = rc == ZOK || hf__zk_may_be_applied(rc);
        pthread_mutex_unlock(&b->zk->mutex);
        if (rc == ZOK)
            rc = hf__zk_adopt(b, path, deadline_ns);
    }
    pthread_mutex_lock(&b->zk->mutex);
    if (rc == ZOK && b->state == HF__ZK_JOINING)
        b->state = HF__ZK_JOINED;
    pthread_mutex_unlock(&b->zk->mutex);
    return rc;
}

static void wait_for(struct bidding *b, const struct hf__bid *bid, struct hf__answer *ret)
{
    struct zk *zk = b->zk;

    pthread_mutex_lock(&zk->mutex);
    *ret = (struct hf__answer){.verdict = bid->queue ? HF__VERDICT_QUEUED : HF__VERDICT_BUSY,
                               .lease_ms = hf__provisional_lease_ms(b->ttl_ms),
                               .ask_again_ms = 5000,
                               .sent_ns = ret->sent_ns};
    b->until_ns = hf__now_ns(zk->base.host->env) + hf__own_lease_ms(b->ttl_ms) * HF__NS_PER_MS;
    hf__zk_set_timer(b, b->until_ns);
    if (!bid->queue)
        hf__zk_spend(b, 0);
    pthread_mutex_unlock(&zk->mutex);
}

/* Somebody of the fair lock is there: our node goes again. ZOK: it was deleted. */
static int give_way(struct bidding *b, int64_t deadline_ns)
{
    int rc = hf__zk_simple_remove(b, deadline_ns);

    if (rc != ZOK && rc != ZNONODE)
        return rc;
    pthread_mutex_lock(&b->zk->mutex);
    free(b->path);
    b->path = NULL;
    b->state = b->state == HF__ZK_JOINED ? HF__ZK_JOINING : b->state;
    pthread_mutex_unlock(&b->zk->mutex);
    return ZOK;
}

/* The last one of the fair lock, or "". */
static int find_blocker(struct bidding *b, int64_t deadline_ns, bool *ret_present,
                        char path[HF__ZK_PATH_MAX])
{
    struct call *list = hf__zk_call_new();

    if (list == NULL)
        return ZSYSTEMERROR;
    int rc = hf__zk_children(b->session, b->directory, false, deadline_ns, list);
    path[0] = '\0';
    *ret_present = false;
    if (rc == ZOK) {
        struct standing at = hf__zk_judge(b, list->names, list->name_count);
        *ret_present = at.present;
        if (at.near != NULL && !hf__zk_child_path(b, at.near, path))
            rc = ZBADARGUMENTS;
    }
    hf__zk_call_free(list);
    return rc == ZNONODE ? ZOK : rc; /* no directory: it is not present */
}

/* 1: try again. */
static int once(struct bidding *b, const struct hf__bid *bid, int64_t deadline_ns,
                struct hf__answer *ret_answer, hf_error *err)
{
    char path[HF__ZK_PATH_MAX];
    const char *const paths[HF__ZK_SIGHTS] = {[HF__ZK_NEAR] = path};
    bool present = true;
    int rc = ZOK;

    if (!hf__zk_child_path(b, HF__ZK_SIMPLE, path))
        return hf__fail(err, HF_INVALID, "the name is too long for this prefix");
    if (b->path == NULL)
        rc = take(b, path, deadline_ns);
    if (rc == ZOK) {
        rc = find_blocker(b, deadline_ns, &present, path);
        if (rc == ZOK && !present)
            return hf__zk_spent(b, ret_answer);
        if (rc == ZOK && path[0] == '\0') {
            hf__zk_granted(b, ret_answer);
            return 0;
        }
        if (rc == ZOK)
            rc = give_way(b, deadline_ns);
    } else if (rc == ZNODEEXISTS) {
        rc = ZOK;
    }
    if (rc == ZOK && bid->queue)
        rc = hf__zk_watch(b, paths, deadline_ns);
    if (rc == ZNONODE)
        return 1;
    if (rc != ZOK)
        return hf__zk_fail(err, rc, "create");
    wait_for(b, bid, ret_answer);
    return 0;
}

int hf__zk_simple_ask(struct bidding *b, const struct hf__bid *bid, int64_t deadline_ns,
                      struct hf__answer *ret_answer, hf_error *err)
{
    int r = 1;

    if (b->state != HF__ZK_JOINING && b->state != HF__ZK_JOINED)
        return hf__zk_spent(b, ret_answer);
    if (b->session == NULL) {
        struct session *s;
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
        r = once(b, bid, deadline_ns, ret_answer, err);
    return r == 1 ? hf__fail(err, HF_UNKNOWN, "it changes hands too fast") : r;
}
