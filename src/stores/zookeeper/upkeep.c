/* Setting up and purging. Directories of locks are containers, which the server removes by itself
 * some time after the last child; where it does not, a purge does. Requests to break whose bid is gone are
 * removed too. Nothing is lost with a directory: generations are transaction ids of the whole
 * ensemble. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stores/zookeeper/zk.h"

#include "base/banned.h"

struct purge {
    struct hf__zk *zk;
    struct hf__zk_session *s;
    int64_t deadline_ns, older_than_ms; /* by the wall clock */
    uint64_t count;
};

/* Removes what is empty and was made long ago. A directory that is in use again by now is not empty,
 * so the servers refuse to delete it. */
static int purge_children(struct purge *q, bool requests)
{
    char path[HF__ZK_PATH_MAX], child[HF__ZK_PATH_MAX + 256], name[HF_NAME_MAX];
    struct hf__zk_call *list = hf__zk_call_new();
    size_t len;

    if (list == NULL)
        return ZSYSTEMERROR;
    snprintf(path, sizeof path, "%s%s%s", q->zk->prefix, requests ? "/" : "",
             requests ? HF__ZK_BREAK_DIRECTORY : "");
    int rc = hf__zk_children(q->s, path, true, q->deadline_ns, list);
    for (int i = 0; rc == ZOK && i < list->name_count; i++) {
        if (!requests && !hf__zk_unescape(list->names[i], name, &len))
            continue; /* not ours */
        struct hf__zk_call *node = hf__zk_call_new();
        if (node == NULL) {
            rc = ZSYSTEMERROR;
            break;
        }
        snprintf(child, sizeof child, "%s/%s", path, list->names[i]);
        rc = hf__zk_get(q->s, child, q->deadline_ns, node);
        if (rc == ZOK && node->stat.numChildren == 0 && node->stat.ctime <= q->older_than_ms) {
            rc = hf__zk_delete(q->s, child, q->deadline_ns);
            q->count += rc == ZOK && !requests;
        }
        hf__zk_call_free(node);
        if (rc == ZNONODE || rc == ZNOTEMPTY)
            rc = ZOK;
    }
    hf__zk_call_free(list);
    return rc == ZNONODE ? ZOK : rc;
}

int hf__zk_upkeep(struct hf__store *store, enum hf__upkeep what, int64_t retain_ms,
                  int64_t deadline_ns, uint64_t *ret_count, hf_error *err)
{
    struct hf__zk *zk = (struct hf__zk *)store;
    const struct hf_env *env = store->host->env;
    struct purge q = {.zk = zk, .deadline_ns = deadline_ns};
    int r = hf__zk_any_session(zk, deadline_ns, &q.s, err), rc;

    if (r != 0)
        return r;
    q.older_than_ms = (int64_t)(env->wall_us(env->ctx) / 1000) - retain_ms;
    if (what == HF__UPKEEP_SETUP) {
        rc = hf__zk_make_break_directory(zk, q.s, deadline_ns);
    } else {
        /* A request to break is of use for as long as a session of its holder may last: a day at least. */
        int64_t requests_ms = retain_ms > 86400000 ? retain_ms : 86400000;
        struct purge requests = q;
        requests.older_than_ms += retain_ms - requests_ms;
        rc = purge_children(&q, false);
        if (rc == ZOK)
            rc = purge_children(&requests, true);
        if (rc == ZOK)
            *ret_count = q.count;
    }
    hf__zk_unuse(q.s);
    return rc == ZOK ? 0 : hf__zk_fail(err, rc, what == HF__UPKEEP_SETUP ? "set up" : "purge");
}
