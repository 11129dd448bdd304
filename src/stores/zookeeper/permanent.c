/* Locks that never expire. Their node is persistent from the claim on, so it needs no session: it
 * outlives the one in which it was made, and whoever knows the ticket can take it over.
 *
 * A claim whose answer was lost may have made it persistent, too. So as long as that is not known,
 * the end of the session proves nothing. */
#include <stdlib.h>
#include <string.h>

#include "doorman/doorman.h"
#include "stores/zookeeper/zk.h"

#include "base/banned.h"

bool hf__zk_may_be_permanent(const struct hf__zk_bidding *b)
{
    return b->permanent || (b->ttl_ms == HF__NEVER && b->unsure);
}

void hf__zk_renew_session(struct hf__zk_bidding *b, int64_t deadline_ns)
{
    struct hf__zk *zk = b->zk;
    struct hf__zk_session *s;

    pthread_mutex_lock(&zk->mutex);
    bool needed = hf__zk_may_be_permanent(b) && b->state != HF__ZK_STATE_RETIRED &&
                  b->session != NULL && b->session->state == HF__ZK_SESSION_DEAD;
    pthread_mutex_unlock(&zk->mutex);
    if (!needed || hf__zk_session(zk, hf__zk_hold_ms(HF__NEVER, 0), deadline_ns, &s, NULL) != 0)
        return;
    pthread_mutex_lock(&zk->mutex);
    if (b->session != NULL && b->session != s && b->session->state == HF__ZK_SESSION_DEAD) {
        for (int i = 0; i < HF__ZK_WATCHED_KINDS; i++)
            hf__zk_unsubscribe(&b->subscriptions[i]); /* they were of the old one */
        hf__zk_leave_session(b);
        hf__zk_use_locked(s);
        b->session = s;
    }
    pthread_mutex_unlock(&zk->mutex);
    hf__zk_unuse(s);
}

/* The node of this ticket, of whatever layout, if it is permanent; its path and what it says go into
 * the bidding. The simple lock's node has its ticket in the data only. */
static int find_node(struct hf__zk_bidding *b, int64_t deadline_ns)
{
    struct hf__zk_call *list = hf__zk_call_new(), *node = hf__zk_call_new();
    struct hf__zk_details d;
    char path[HF__ZK_PATH_MAX] = "";
    int rc = list != NULL && node != NULL
                 ? hf__zk_children(b->session, b->directory, true, deadline_ns, list)
                 : ZSYSTEMERROR;

    for (int i = 0; rc == ZOK && i < list->name_count; i++) {
        struct hf__ticket of;
        const char *name = list->names[i];
        if (strcmp(name, HF__ZK_SIMPLE) == 0 ||
            (hf__zk_ticket_of(name, &of) && hf__ticket_equal(&of, &b->ticket)))
            hf__zk_child_path(b, name, path);
    }
    if (rc == ZOK)
        rc = path[0] != '\0' ? hf__zk_get(b->session, path, deadline_ns, node) : ZNONODE;
    if (rc == ZOK) {
        hf__zk_parse(node->text, node->text_len, &d);
        if (node->stat.ephemeralOwner != 0 || d.ttl_ms != HF__NEVER || !d.has_ticket ||
            !hf__ticket_equal(&d.ticket, &b->ticket))
            rc = ZNONODE;
    }
    if (rc == ZOK && (b->path = strdup(path)) == NULL)
        rc = ZSYSTEMERROR;
    if (rc == ZOK) {
        b->tells = d.tells;
        b->value.asked = true; /* by whoever took it, perhaps */
        b->data = node->text;
        node->text = NULL;
        b->mode = hf__zk_child(path + strlen(b->directory) + 1).mode;
        b->generation = d.generation != 0 ? d.generation : (uint64_t)node->stat.czxid;
    }
    hf__zk_call_free(list);
    hf__zk_call_free(node);
    return rc;
}

int hf__zk_take_over(struct hf__zk *zk, const struct hf__renewal *renewal, int64_t deadline_ns,
                     struct hf__zk_bidding **ret_bidding)
{
    struct hf__bid bid = {.name = renewal->name,
                          .name_len = renewal->name_len,
                          .ticket = renewal->ticket,
                          .ttl_ms = HF__NEVER};
    struct hf__zk_session *s;

    if (hf__zk_start_timer_thread(zk, NULL) != 0)
        return ZSYSTEMERROR;
    if (hf__zk_session(zk, hf__zk_hold_ms(HF__NEVER, 0), deadline_ns, &s, NULL) != 0)
        return ZCONNECTIONLOSS;
    struct hf__zk_bidding *b = hf__zk_bidding_make(zk, &bid);
    if (b == NULL || !hf__zk_begin(b, deadline_ns)) {
        if (b != NULL)
            hf__zk_bidding_unref(b);
        hf__zk_unuse(s);
        return b == NULL ? ZSYSTEMERROR : ZOPERATIONTIMEOUT;
    }
    int rc = ZOK;
    if (b->path == NULL && b->state == HF__ZK_STATE_JOINING) { /* nobody else was faster */
        pthread_mutex_lock(&zk->mutex);
        hf__zk_use_locked(s);
        b->session = s;
        pthread_mutex_unlock(&zk->mutex);
        rc = find_node(b, deadline_ns);
        pthread_mutex_lock(&zk->mutex);
        if (rc == ZOK) {
            b->inside = b->claimed = b->permanent = true;
            b->state = HF__ZK_STATE_JOINED;
            b->until_ns = INT64_MAX;
        } else {
            hf__zk_retire(b, 0);
        }
        pthread_mutex_unlock(&zk->mutex);
    }
    hf__zk_end(b);
    hf__zk_unuse(s);
    if (rc == ZOK)
        *ret_bidding = b;
    else
        hf__zk_bidding_unref(b);
    return rc;
}
