/* Joining the queue: in which session, the node itself, and finding it again when the answer to its
 * creation was lost. It is then looked for by the ticket in its name after a sync, and counts only
 * if a session of this client owns it. */
#include <stdlib.h>
#include <string.h>

#include "stores/zookeeper/zk.h"

#include "base/banned.h"

#define TRIES 3

bool hf__zk_is_over(struct hf__zk_bidding *b)
{
    pthread_mutex_lock(&b->zk->mutex);
    bool over = b->state != HF__ZK_STATE_JOINING && b->state != HF__ZK_STATE_JOINED;
    over |= b->state == HF__ZK_STATE_JOINED && b->session == NULL;
    pthread_mutex_unlock(&b->zk->mutex);
    return over;
}

/* Makes the node, and in `ret_list` gives the children as they were then, if they came. */
static int make_node(struct hf__zk_bidding *b, int64_t deadline_ns, struct hf__zk_call **ret_list,
                     hf_error *err)
{
    struct hf__zk *zk = b->zk;
    struct hf__zk_call *made = hf__zk_call_new(), *list = hf__zk_call_new();
    char node[64], path[HF__ZK_PATH_MAX];
    int rc = ZBADARGUMENTS, listed = ZSYSTEMERROR;

    if (made == NULL || list == NULL) {
        hf__zk_call_free(made);
        hf__zk_call_free(list);
        return hf__fail(err, HF_NO_MEMORY, NULL);
    }
    hf__zk_node_name(zk->layout, &b->ticket, b->mode, node);
    if (hf__zk_child_path(b, node, path))
        rc = hf__zk_make_and_list(b, path, deadline_ns, made, list, &listed);
    /* A directory without children is removed by the servers, maybe between our two requests. */
    for (int i = 0; rc == ZNONODE && listed != ZOPERATIONTIMEOUT && i < TRIES; i++) {
        hf__zk_call_again(made);
        hf__zk_call_again(list); /* others may have made the directory meanwhile, and stand in it */
        rc = hf__zk_make_directory(b->session, b->directory, deadline_ns);
        if (rc == ZOK)
            rc = hf__zk_make_and_list(b, path, deadline_ns, made, list, &listed);
    }
    pthread_mutex_lock(&zk->mutex);
    if (rc == ZOK) {
        b->path = made->text;
        made->text = NULL;
        b->generation = (uint64_t)made->stat.czxid;
        /* A first grant is known with its answer. */
        b->claimed = b->ttl_ms != HF__NEVER &&
                     b->session->asked_ms == hf__zk_hold_ms(b->ttl_ms, b->lock_delay_ms);
        if (b->state == HF__ZK_STATE_JOINING)
            b->state = HF__ZK_STATE_JOINED;
    }
    b->unsure = hf__zk_may_be_applied(rc);
    pthread_mutex_unlock(&zk->mutex);
    hf__zk_call_free(made);
    if (rc == ZOK && listed == ZOK)
        *ret_list = list;
    else
        hf__zk_call_free(list);
    return rc == ZOK ? 0 : hf__zk_fail(err, rc, "create");
}

/* Where there are two lengths, a bid that will have to wait does not begin in the session of a
 * holder: if it died before it had moved, it would be missed late. Nor does it keep that session
 * meanwhile if it is not the next in line: connections are counted. How many are there before it is
 * what this server knows, and need not be exact: a wrong guess costs a move. */
static int choose_session(struct hf__zk_bidding *b, bool queue, int64_t deadline_ns,
                          struct hf__zk_session **ret_session, hf_error *err)
{
    int64_t wait_ms = hf__zk_wait_ms(b->ttl_ms, b->lock_delay_ms);
    int r = hf__zk_hold_session(b, deadline_ns, ret_session, err), others = 0;

    if (r != 0 || !queue || (*ret_session)->asked_ms == wait_ms)
        return r;
    struct hf__zk_call *seen = hf__zk_call_new();
    if (seen != NULL && hf__zk_exists(*ret_session, b->directory, deadline_ns, seen) == ZOK)
        others = seen->stat.numChildren;
    hf__zk_call_free(seen);
    if (others == 0)
        return 0;
    if (others > 1)
        hf__zk_unuse_new(*ret_session);
    else
        hf__zk_unuse(*ret_session);
    return hf__zk_session(b->zk, wait_ms, deadline_ns, ret_session, err);
}

/* The session in which it joins: from the first try on the same one. */
static int enter_session(struct hf__zk_bidding *b, bool queue, int64_t deadline_ns, hf_error *err)
{
    struct hf__zk_session *s;

    hf__zk_renew_session(b, deadline_ns);
    if (b->session != NULL)
        return hf__zk_await(b->session, deadline_ns)
                   ? 0
                   : hf__fail(err, HF_UNAVAILABLE, "no server of %s answers", b->zk->hosts);
    int r = choose_session(b, queue, deadline_ns, &s, err);
    if (r != 0)
        return r;
    bool waits = s->asked_ms != hf__zk_hold_ms(b->ttl_ms, b->lock_delay_ms);
    char *data = waits ? hf__zk_redescribe(b->data, 0, true) : NULL;
    pthread_mutex_lock(&b->zk->mutex);
    b->session = s; /* our use of it is the bidding's now */
    if (data != NULL) {
        free(b->data);
        b->data = data;
    }
    pthread_mutex_unlock(&b->zk->mutex);
    return 0;
}

int hf__zk_join(struct hf__zk_bidding *b, bool queue, int64_t deadline_ns,
                struct hf__zk_call **ret_list, hf_error *err)
{
    int r = enter_session(b, queue, deadline_ns, err);

    if (r != 0)
        return hf__zk_is_over(b) ? 1 : r;
    if (b->unsure) {
        int rc = hf__zk_find_node(b, deadline_ns);
        if (rc != ZOK && rc != ZNONODE)
            return hf__zk_fail(err, rc, "look for the own node");
        if (rc == ZNONODE && b->path != NULL)
            return 1;
        pthread_mutex_lock(&b->zk->mutex);
        if (rc == ZOK && b->state == HF__ZK_STATE_JOINING)
            b->state = HF__ZK_STATE_JOINED;
        pthread_mutex_unlock(&b->zk->mutex);
    }
    if (b->path == NULL)
        return make_node(b, deadline_ns, ret_list, err);
    return 0;
}
