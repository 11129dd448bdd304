/* Where a bid stands among the children of its lock, and moving its node between sessions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doorman/doorman.h"
#include "stores/zookeeper/zk.h"

#include "base/banned.h"

/* A lock that never expires is only provisional while it lives in a session. */
int64_t hf__zk_hold_ms(int64_t ttl_ms, int64_t lock_delay_ms)
{
    return ttl_ms == HF__NEVER ? hf__own_lease_ms(HF__NEVER) : ttl_ms + lock_delay_ms;
}

int64_t hf__zk_wait_ms(int64_t ttl_ms, int64_t lock_delay_ms)
{
    int64_t hold_ms = hf__zk_hold_ms(ttl_ms, lock_delay_ms), own_ms = hf__own_lease_ms(ttl_ms);

    return own_ms < hold_ms ? own_ms : hold_ms;
}

/* The simple lock's node has no place of its own: it counts as the first. */
static bool is_later(const struct hf__zk_child *c, const struct hf__zk_child *than)
{
    if (than->name == NULL || c->simple || than->simple)
        return than->name == NULL || !c->simple;
    return hf__zk_before(than->sequence, c->sequence);
}

struct hf__zk_standing hf__zk_find_standing(const struct hf__zk_bidding *b, char *const *names,
                                            int count)
{
    const char *mine_name = b->path + strlen(b->directory) + 1;
    struct hf__zk_child mine = hf__zk_child(mine_name), near = {0}, far = {0};
    struct hf__zk_standing at = {.crowd = (size_t)count};

    for (int i = 0; i < count; i++) {
        struct hf__zk_child c = hf__zk_child(names[i]);
        if (strcmp(c.name, mine_name) == 0) {
            at.present = true;
            continue;
        }
        at.position += c.simple || (c.sequential && hf__zk_before(c.sequence, mine.sequence));
        if (!hf__zk_blocks(&c, &mine))
            continue;
        at.blockers++;
        if (is_later(&c, &near)) {
            far = near;
            near = c;
        } else if (is_later(&c, &far)) {
            far = c;
        }
    }
    at.near = near.name;
    at.far = far.name;
    return at;
}

bool hf__zk_child_path(const struct hf__zk_bidding *b, const char *name, char buf[HF__ZK_PATH_MAX])
{
    return snprintf(buf, HF__ZK_PATH_MAX, "%s/%s", b->directory, name) < HF__ZK_PATH_MAX;
}

/* Under the mutex. */
static void settle(struct hf__zk_bidding *b, struct hf__zk_session *in, bool permanent, char *data)
{
    if (in != b->session) {
        hf__zk_leave_session(b);
        hf__zk_use_locked(in);
        b->session = in;
    }
    b->permanent = permanent;
    b->unsure = false;
    free(b->data);
    b->data = data;
}

/* One multi: written to, deleted, made again at the same path. Whoever watches the node is told of
 * the first change only: that it was written to, not that it was deleted. So a node that is told as
 * deleted has not moved: it is gone for good. */
int hf__zk_move(struct hf__zk_bidding *b, struct hf__zk_session *to, int64_t deadline_ns)
{
    bool permanent = to == NULL;
    struct hf__zk_session *by = permanent ? b->session : to;
    bool waits = !permanent && to->asked_ms < hf__zk_hold_ms(b->ttl_ms, b->lock_delay_ms);
    int rc = ZSYSTEMERROR, mode = permanent ? ZOO_PERSISTENT : ZOO_EPHEMERAL;
    char *data =
        hf__zk_redescribe(b->data, b->generation, waits || (!permanent && b->ttl_ms == HF__NEVER));
    char owner[HF__ZK_PATH_MAX];
    zoo_op_t ops[5];
    struct hf__zk_call *call = hf__zk_call_new();

    pthread_mutex_lock(&b->zk->mutex);
    for (int i = 0; i < HF__ZK_WATCHED_KINDS; i++)
        hf__zk_unsubscribe(
            &b->subscriptions[i]); /* they were of the old session, and of the old node */
    pthread_mutex_unlock(&b->zk->mutex);
    if (data != NULL && call != NULL) {
        int len = (int)strlen(data);
        zoo_set_op_init(&ops[0], b->path, data, len, -1, NULL);
        zoo_delete_op_init(&ops[1], b->path, -1);
        zoo_create_op_init(&ops[2], b->path, data, len, b->zk->acl, mode, NULL, 0);
        hf__zk_owner_path(b->zk, &b->ticket, owner, sizeof owner);
        zoo_delete_op_init(&ops[3], owner, -1);
        zoo_create_op_init(&ops[4], owner, NULL, -1, b->zk->acl, mode, NULL, 0);
        rc = hf__zk_multi(by, ops, b->zk->fair ? 3 : 5, deadline_ns, call);
    }
    hf__zk_call_free(call);

    pthread_mutex_lock(&b->zk->mutex);
    if (rc == ZOK && b->session != NULL && by->state != HF__ZK_SESSION_DEAD) {
        settle(b, by, permanent, data);
        b->claimed = !waits;
    } else {
        if (rc == ZOK)
            rc = ZSESSIONEXPIRED;
        b->unsure |= hf__zk_may_be_applied(rc);
        free(data);
    }
    pthread_mutex_unlock(&b->zk->mutex);
    return rc;
}

/* Whose node it is: one of a session of ours that lives, or nobody's for a permanent one. */
static int adopt(struct hf__zk_bidding *b, const char *path, const struct hf__zk_call *node)
{
    struct hf__zk_details d;
    int rc = ZNONODE;

    hf__zk_parse(node->text, node->text_len, &d);
    if (!b->zk->fair && !(d.has_ticket && hf__ticket_equal(&d.ticket, &b->ticket)))
        return ZNONODE; /* all holders have that path */
    pthread_mutex_lock(&b->zk->mutex);
    for (struct hf__zk_session *s = b->zk->sessions; s != NULL && rc != ZOK; s = s->next) {
        bool permanent = node->stat.ephemeralOwner == 0;
        bool owner = s->id == node->stat.ephemeralOwner && s->id != 0;
        if (s->state == HF__ZK_SESSION_DEAD || !(owner || (permanent && s == b->session)))
            continue;
        char *copy = strdup(path), *data = strdup(b->data);
        if (copy == NULL || data == NULL) {
            free(copy);
            free(data);
            rc = ZSYSTEMERROR;
            break;
        }
        free(b->path);
        b->path = copy;
        b->generation = d.generation != 0 ? d.generation : (uint64_t)node->stat.czxid;
        b->claimed = permanent || (b->ttl_ms != HF__NEVER && !d.waits);
        settle(b, s, permanent, data);
        rc = ZOK;
    }
    pthread_mutex_unlock(&b->zk->mutex);
    return rc;
}

int hf__zk_adopt(struct hf__zk_bidding *b, const char *path, int64_t deadline_ns)
{
    struct hf__zk_call *node = hf__zk_call_new();

    if (node == NULL)
        return ZSYSTEMERROR;
    int rc = hf__zk_get(b->session, path, deadline_ns, node);
    if (rc == ZOK)
        rc = adopt(b, path, node);
    hf__zk_call_free(node);
    return rc;
}

int hf__zk_find_node(struct hf__zk_bidding *b, int64_t deadline_ns)
{
    char path[HF__ZK_PATH_MAX] = "", prefix[64] = HF__ZK_SIMPLE;
    struct hf__zk_call *list = hf__zk_call_new();

    if (list == NULL)
        return ZSYSTEMERROR;
    if (b->zk->fair)
        hf__zk_node_name(b->zk->layout, &b->ticket, b->mode, prefix);
    int rc = hf__zk_children(b->session, b->directory, true, deadline_ns, list);
    for (int i = 0; rc == ZOK && i < list->name_count; i++) {
        const char *name = list->names[i];
        bool mine =
            b->zk->fair ? strncmp(name, prefix, strlen(prefix)) == 0 : strcmp(name, prefix) == 0;
        if (mine)
            snprintf(path, sizeof path, "%s/%s", b->directory, name);
    }
    if (rc == ZOK)
        rc = path[0] != '\0' ? hf__zk_adopt(b, path, deadline_ns) : ZNONODE;
    pthread_mutex_lock(&b->zk->mutex);
    b->unsure &= rc != ZNONODE; /* it was not applied, or is gone again */
    pthread_mutex_unlock(&b->zk->mutex);
    hf__zk_call_free(list);
    return rc;
}

/* An answer from a read alone counts from the last write of the session. */
void hf__zk_granted(struct hf__zk_bidding *b, struct hf__answer *ret)
{
    struct hf__zk *zk = b->zk;
    int64_t now = hf__now_ns(zk->base.host->env);

    pthread_mutex_lock(&zk->mutex);
    if (b->state != HF__ZK_STATE_JOINED || b->session == NULL) {
        *ret = (struct hf__answer){.verdict = HF__VERDICT_WITHDRAWN, .sent_ns = ret->sent_ns};
        pthread_mutex_unlock(&zk->mutex);
        return;
    }
    int64_t wanted_ms = b->claimed ? b->ttl_ms : hf__provisional_lease_ms(b->ttl_ms);
    int64_t lease_ms = b->permanent ? HF__NEVER : hf__zk_lease_ms(b->session, wanted_ms);
    if (!b->permanent && b->session->proved_ns < ret->sent_ns)
        ret->sent_ns = b->session->proved_ns;
    *ret = (struct hf__answer){.verdict = HF__VERDICT_GRANTED,
                               .generation = b->generation,
                               .lease_ms = lease_ms,
                               .claimed = b->claimed,
                               .sent_ns = ret->sent_ns};
    b->inside = true;
    b->until_ns = b->permanent ? INT64_MAX : now + lease_ms * HF__NS_PER_MS;
    hf__zk_set_timer(b, b->until_ns);
    pthread_mutex_unlock(&zk->mutex);
}
