/* The transactions of an attempt.
 *
 * The first of a ticket (its lease is there already):
 *
 *   if      there is no tombstone, no place of ours, and nobody who conflicts
 *   then    put place, put inside                                       GRANTED
 *
 * or, if that was not so:
 *
 *   if      no tombstone and no place of ours
 *   then    put place                                                   (not for a no-wait bid)
 *   and     get place, inside, broken, tombstone, those who conflict    QUEUED, BUSY
 *
 * Later ones, after a wake-up or after a look that showed that we are the first:
 *
 *   if      our place is the one we made, nobody who conflicts was created before it, no mark yet
 *   then    put inside                                                  GRANTED
 *
 * So the own place is looked at in the same step that grants, and the revision of that step, which
 * is the create revision of the mark, is the generation. To stand first is for good: places that
 * come later have higher revisions. A writer conflicts with every key below the name, a reader with
 * every one that is not below read/.
 *
 * What is usual is asked in few words; whoever is refused asks once more, in full. */
#include <stdlib.h>

#include "stores/etcd/attempt.h"

#include "base/banned.h"

void hf__etcd_prepare_attempt(struct hf__etcd_attempt *a)
{
    struct hf__etcd_key root;

    hf__etcd_place_key(a->e, a->name, a->bid->mode, a->lease, &a->place);
    hf__etcd_mark_key(a->e, HF__ETCD_KEY_INSIDE, a->name, a->lease, &a->inside);
    hf__etcd_mark_key(a->e, HF__ETCD_KEY_BROKEN, a->name, a->lease, &a->broken);
    hf__etcd_tombstone_key(a->e, &a->bid->ticket, &a->tombstone);
    hf__etcd_root(a->e, HF__ETCD_KEY_PLACE, a->name, true, &root);
    a->from[0] = root;
    hf__etcd_end_of(&root, &a->to[0]);
    a->ranges = 1;
    if (a->bid->mode == HF_SHARED) {
        struct hf__etcd_key readers = root;
        hf__etcd_append(&readers, "read/");
        a->to[1] = a->to[0];
        a->to[0] = readers;
        hf__etcd_end_of(&readers, &a->from[1]);
        a->ranges = 2;
    }
}

/* place, inside, broken, tombstone, and the newest of those who conflict and were created before
 * `joined` (0: whenever): `parse` reads them in this order. */
static void look_at_all(const struct hf__etcd_attempt *a, struct hf__etcd_txn *t, uint64_t joined)
{
    hf__etcd_get(t, &a->place);
    hf__etcd_get(t, &a->inside);
    hf__etcd_get(t, &a->broken);
    hf__etcd_get(t, &a->tombstone);
    for (size_t i = 0; i < a->ranges; i++)
        hf__etcd_range(t, &(struct hf__etcd_range){
                              .from = &a->from[i], .to = &a->to[i], .before = joined, .newest = 2});
}

static void put_place(const struct hf__etcd_attempt *a, struct hf__etcd_txn *t)
{
    char *details = hf__etcd_details_text(a->e, a->bid);

    hf__etcd_put(t, &a->place, details, a->lease);
    free(details);
}

/* Since when it is inside follows from its place, which is as old. A writer's own place is among
 * those who conflict. */
static void ask_to_enter_free(const struct hf__etcd_attempt *a, struct hf__etcd_txn *t)
{
    hf__etcd_compare(t, &a->tombstone, 0);
    if (a->bid->mode == HF_SHARED)
        hf__etcd_compare(t, &a->place, 0);
    for (size_t i = 0; i < a->ranges; i++)
        hf__etcd_compare_none(t, &a->from[i], &a->to[i]);
    put_place(a, t);
    hf__etcd_put(t, &a->inside, "", a->lease);
}

/* The nested transaction comes first: what is read after it is as it left it. */
static void ask_to_line_up(const struct hf__etcd_attempt *a, struct hf__etcd_txn *t)
{
    hf__etcd_nest(t);
    if (a->bid->queue) {
        hf__etcd_compare(t, &a->tombstone, 0);
        hf__etcd_compare(t, &a->place, 0);
        put_place(a, t);
    }
    hf__etcd_unnest(t);
    look_at_all(a, t, 0);
}

/* `first`: it is known that nobody stands before us, so there is nothing to compare. A range
 * without keys compares like a key that is not there: a reader may find its ranges empty. Only what
 * is inside can be broken, so that mark need not be looked at. */
static void ask_to_enter(const struct hf__etcd_attempt *a, uint64_t joined, bool first,
                         struct hf__etcd_txn *t)
{
    char value[HF__ETCD_MARK_VALUE];

    hf__etcd_compare(t, &a->place, joined);
    hf__etcd_compare(t, &a->inside, 0);
    for (size_t i = 0; !first && i < a->ranges; i++) {
        if (a->bid->mode == HF_SHARED)
            hf__etcd_compare_none(t, &a->from[i], &a->to[i]);
        else
            hf__etcd_compare_above(t, &a->from[i], &a->to[i], joined - 1);
    }
    hf__etcd_mark_value(a->e, value);
    hf__etcd_put(t, &a->inside, value, a->lease);
}

/* Only looks. A transaction that could write costs the cluster as much as one that does: whoever
 * was not called asks like this first. */
static void ask_to_look(const struct hf__etcd_attempt *a, uint64_t joined, struct hf__etcd_txn *t)
{
    hf__etcd_get(t, &a->place); /* where others line up */
    look_at_all(a, t, joined);
}

static uint64_t created(const struct hf__etcd_kv *kv)
{
    return kv != NULL ? kv->created : 0;
}

static void note_before(struct hf__etcd_seen *s, const struct hf__etcd_kv *kv)
{
    struct hf__etcd_details d;

    if (kv->created >= s->joined || kv->created <= s->before_joined ||
        kv->key.len > sizeof s->before.bytes)
        return;
    s->has_before = true;
    s->before.len = kv->key.len;
    memcpy(s->before.bytes, kv->key.data, kv->key.len);
    s->before_joined = kv->created;
    s->before_lease = kv->lease;
    s->before_ours = hf__etcd_details_read(kv->value, &d);
    s->before_ttl_ms = d.ttl_ms;
    s->before_ticket = d.ticket;
    memcpy(s->before_inbox, d.inbox, sizeof s->before_inbox);
    hf__etcd_details_clear(&d);
}

static void parse(const struct hf__etcd_attempt *a, const struct hf__etcd_answer *answer,
                  struct hf__etcd_seen *s)
{
    const struct hf__etcd_kv *mark = hf__etcd_first(answer, 2);

    s->joined = created(hf__etcd_first(answer, 1));
    s->generation = created(mark);
    s->marked = mark != NULL ? mark->put : 0;
    s->handed = hf__etcd_is_handed(mark, s->joined);
    s->broken = hf__etcd_first(answer, 3) != NULL;
    s->tombstone = hf__etcd_first(answer, 4) != NULL;
    if (s->joined == 0)
        s->joined = UINT64_MAX; /* a no-wait bid: everybody is before us */
    for (size_t i = 0; i < a->ranges; i++) {
        struct hf__etcd_result range = hf__etcd_nth(answer, 5 + i);
        for (size_t k = 0; k < range.count; k++)
            note_before(s, &range.kvs[k]);
    }
    if (s->joined == UINT64_MAX)
        s->joined = 0;
}

int hf__etcd_ask(struct hf__etcd_attempt *a, enum hf__etcd_question question, uint64_t joined,
                 struct hf__etcd_seen *ret_seen)
{
    bool looks = question == HF__ETCD_QUESTION_LOOK || question == HF__ETCD_QUESTION_LINE_UP;
    struct hf__etcd_txn t = {.doubted = &a->known.doubted};
    struct hf__etcd_answer answer;

    if (question == HF__ETCD_QUESTION_ENTER_FREE)
        ask_to_enter_free(a, &t);
    else if (question == HF__ETCD_QUESTION_LINE_UP)
        ask_to_line_up(a, &t);
    else if (question == HF__ETCD_QUESTION_LOOK)
        ask_to_look(a, joined, &t);
    else
        ask_to_enter(a, joined, question == HF__ETCD_QUESTION_ENTER_FIRST, &t);
    int r = hf__etcd_commit(a->e, &t, a->deadline_ns, &answer, a->err);
    if (r < 0 || a->known.doubted)
        hf__etcd_bid_learn(a->e, &a->known);
    if (r == 0) {
        *ret_seen = (struct hf__etcd_seen){.revision = answer.revision};
        ret_seen->granted = !looks && answer.succeeded;
        if (ret_seen->granted)
            ret_seen->generation = ret_seen->marked = ret_seen->revision;
        if (looks)
            parse(a, &answer, ret_seen);
    }
    hf__etcd_answer_clear(&answer);
    return r;
}

/* Deletes the place before us, if it was never let in, or, with `handed`, if it was and nobody has
 * claimed that: the mark was last put at this revision. 1: it is done; 0 with the revision of a mark
 * that was handed, if there is one. */
static int remove_dead(struct hf__etcd_attempt *a, const struct hf__etcd_seen *s, uint64_t handed,
                       uint64_t *ret_handed)
{
    struct hf__etcd_key *mark = calloc(2, sizeof *mark), *slot = mark + 1;
    struct hf__etcd_txn t = {.incomplete = mark == NULL};
    struct hf__etcd_answer answer;

    if (mark != NULL) {
        hf__etcd_mark_key(a->e, HF__ETCD_KEY_INSIDE, a->name, s->before_lease, mark);
        hf__etcd_slot_key(a->e, s->before_lease, slot);
        hf__etcd_compare(&t, &s->before, s->before_joined);
        if (handed == 0)
            hf__etcd_compare(&t, mark, 0);
        else
            hf__etcd_compare_put(&t, mark, handed);
        hf__etcd_delete(&t, &s->before);
        hf__etcd_delete(&t, mark);
        hf__etcd_delete(&t, slot);
        hf__etcd_otherwise(&t);
        hf__etcd_get(&t, mark);
    }
    free(mark);
    int r = hf__etcd_commit(a->e, &t, a->deadline_ns, &answer, a->err);
    const struct hf__etcd_kv *there = hf__etcd_first(&answer, 0);
    *ret_handed = hf__etcd_is_handed(there, s->before_joined) ? there->put : 0;
    if (r == 0)
        r = answer.succeeded;
    hf__etcd_answer_clear(&answer);
    return r;
}

int hf__etcd_clear_dead(struct hf__etcd_attempt *a, const struct hf__etcd_seen *s)
{
    struct hf__etcd_life life;
    uint64_t handed = 0;

    if (!s->has_before || !s->before_ours || s->before_lease == 0)
        return 0;
    int r = hf__etcd_lease_life(a->e, s->before_lease, a->deadline_ns, &life, a->err);
    if (r == HF_NOT_FOUND)
        return 0; /* it goes by itself */
    if (r == 0)
        a->ask_again_ms = hf__own_lease_ms(s->before_ttl_ms) -
                          (life.given_s - life.left_s - 1) * 1000 + HF__ETCD_MARGIN_MS;
    if (r < 0 || !hf__etcd_is_dead(&life, s->before_ttl_ms))
        return r;
    r = remove_dead(a, s, 0, &handed);
    if (r == 0 && handed != 0)
        r = remove_dead(a, s, handed, &handed);
    if (r == 1)
        hf__etcd_lease_revoke(a->e, s->before_lease, a->deadline_ns, NULL);
    return r;
}
