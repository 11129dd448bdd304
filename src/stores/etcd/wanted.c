/* Telling a holder that somebody waits for its lock (C16), if it has asked for that.
 *
 * Whoever waits has a place that was made after the holder's. So the holder's client looks, with the
 * grant and with each renewal, whether there is one, and if there is none it watches the places below
 * the name from that very revision on: who lines up later is told by the watch, and nobody falls
 * between the two. After it was told it watches no longer, until a look finds nobody: a crowd that
 * comes and goes would otherwise cost an event for each.
 *
 * A reader does not wait for readers, only for a writer that has come before it; and that one is
 * told of. So beside a reader only places that are not readers' count.
 *
 * A waiter that has died keeps its place until its lease ends or the next one takes it away. So long it
 * counts. */
#include <stdlib.h>

#include "stores/etcd/etcd.h"

#include "base/banned.h"

static void watch_from(struct hf__etcd *e, const struct hf__etcd_bid *b,
                       struct hf__etcd_key *from_to, uint64_t revision)
{
    hf__etcd_watch(e, &b->ticket,
                   &(struct hf__etcd_to_watch){.before = &from_to[0],
                                               .mark = &from_to[1],
                                               .arrivals = true,
                                               .readers_enter = b->mode == HF_SHARED,
                                               .from = revision + 1});
}

static struct hf__etcd_key *places_of(const struct hf__etcd *e, struct hf__etcd_name name)
{
    struct hf__etcd_key *from_to = calloc(4, sizeof *from_to);

    if (from_to == NULL)
        return NULL;
    hf__etcd_root(e, HF__ETCD_KEY_PLACE, name, true, &from_to[0]);
    hf__etcd_end_of(&from_to[0], &from_to[1]);
    from_to[2] = from_to[0];
    hf__etcd_append(&from_to[2], "read/");
    hf__etcd_end_of(&from_to[2], &from_to[3]);
    return from_to;
}

bool hf__etcd_is_wanted(struct hf__etcd *e, struct hf__etcd_name name, const struct hf__etcd_bid *b,
                        int64_t deadline_ns)
{
    bool wanted = b->wanted;
    struct hf__etcd_key *from_to = places_of(e, name);
    struct hf__etcd_txn t = {.incomplete = from_to == NULL};
    struct hf__etcd_answer answer;

    if (from_to != NULL && b->mode == HF_SHARED) {
        hf__etcd_range(
            &t, &(struct hf__etcd_range){
                    .from = &from_to[0], .to = &from_to[2], .after = b->joined, .newest = 1});
        hf__etcd_range(
            &t, &(struct hf__etcd_range){
                    .from = &from_to[3], .to = &from_to[1], .after = b->joined, .newest = 1});
    } else if (from_to != NULL) {
        hf__etcd_range(
            &t, &(struct hf__etcd_range){
                    .from = &from_to[0], .to = &from_to[1], .after = b->joined, .newest = 1});
    }
    if (hf__etcd_commit(e, &t, deadline_ns, &answer, NULL) == 0) {
        wanted = hf__etcd_first(&answer, 0) != NULL || hf__etcd_first(&answer, 1) != NULL;
        hf__etcd_bid_set_wanted(e, &b->ticket, wanted);
        if (!wanted)
            watch_from(e, b, from_to, answer.revision);
    }
    hf__etcd_answer_clear(&answer);
    free(from_to);
    return wanted;
}

void hf__etcd_watch_behind(struct hf__etcd *e, struct hf__etcd_name name,
                           const struct hf__etcd_bid *b, uint64_t revision)
{
    struct hf__etcd_key *from_to = places_of(e, name);

    if (from_to != NULL) /* else the next renewal looks */
        watch_from(e, b, from_to, revision);
    free(from_to);
}
