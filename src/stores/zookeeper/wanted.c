/* Telling a holder that somebody waits for its lock (C16), if it has asked for that.
 *
 * With the grant and with each renewal the children of the lock are listed, and watched for the next
 * change. Whoever is kept out by the holder's own node waits for it. A change calls the holder's client,
 * which renews, and so looks again. If somebody waits the watch is not set once more: those who come
 * and go behind would cost a renewal each. The next look that finds nobody sets it again. */
#include "stores/zookeeper/zk.h"

#include "base/banned.h"

bool hf__zk_is_wanted(struct hf__zk_bidding *b, int64_t deadline_ns)
{
    struct hf__zk *zk = b->zk;
    struct hf__zk_call *list = hf__zk_call_new();
    bool wanted = false;
    int rc = list != NULL ? hf__zk_list_and_watch(b, deadline_ns, list) : ZSYSTEMERROR;

    pthread_mutex_lock(&zk->mutex);
    if (rc == ZOK && b->path != NULL) {
        struct hf__zk_child mine = hf__zk_child(b->path + strlen(b->directory) + 1);
        for (int i = 0; !wanted && i < list->name_count; i++) {
            struct hf__zk_child other = hf__zk_child(list->names[i]);
            wanted = strcmp(other.name, mine.name) != 0 && hf__zk_blocks(&mine, &other);
        }
        b->wanted = wanted;
        if (wanted)
            hf__zk_unsubscribe(&b->subscriptions[HF__ZK_WATCHED_ARRIVALS]);
    }
    wanted = b->wanted;
    pthread_mutex_unlock(&zk->mutex);
    hf__zk_call_free(list);
    return wanted;
}
