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
 * What is usual is asked in few words, because the gateway takes as long to read a transaction as
 * the server to agree on it; whoever is refused asks once more, in full. */
#include <stdlib.h>

#include "stores/etcd/attempt.h"

#include "util/banned.h"

void hf__etcd_prepare_attempt(struct hf__etcd_attempt *a)
{
    struct hf__etcd_key root;

    hf__etcd_place_key(a->e, a->name, a->bid->mode, a->lease, &a->place);
    hf__etcd_mark_key(a->e, HF__ETCD_INSIDE, a->name, a->lease, &a->inside);
    hf__etcd_mark_key(a->e, HF__ETCD_BROKEN, a->name, a->lease, &a->broken);
    hf__etcd_tombstone_key(a->e, &a->bid->ticket, &a->tombstone);
    hf__etcd_root(a->e, HF__ETCD_PLACE, a->name, true, &root);
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
static char *enter_free_request(const struct hf__etcd_attempt *a)
{
    struct hf__etcd_txn t = {0};

    hf__etcd_compare(&t, &a->tombstone, 0);
    if (a->bid->mode == HF_SHARED)
        hf__etcd_compare(&t, &a->place, 0);
    for (size_t i = 0; i < a->ranges; i++)
        hf__etcd_compare_none(&t, &a->from[i], &a->to[i]);
    put_place(a, &t);
    hf__etcd_put(&t, &a->inside, "", a->lease);
    return hf__etcd_written(&t);
}

/* The nested transaction comes first: what is read after it is as it left it. */
static char *line_up_request(const struct hf__etcd_attempt *a)
{
    struct hf__etcd_txn t = {0};

    hf__etcd_nest(&t);
    if (a->bid->queue) {
        hf__etcd_compare(&t, &a->tombstone, 0);
        hf__etcd_compare(&t, &a->place, 0);
        put_place(a, &t);
    }
    hf__etcd_unnest(&t);
    look_at_all(a, &t, 0);
    return hf__etcd_written(&t);
}

/* `first`: it is known that nobody stands before us, so there is nothing to compare. A range
 * without keys compares like a key that is not there: a reader may find its ranges empty. Only what
 * is inside can be broken, so that mark need not be looked at. */
static char *enter_request(const struct hf__etcd_attempt *a, uint64_t joined, bool first)
{
    struct hf__etcd_txn t = {0};
    char value[HF__ETCD_MARK_VALUE];

    hf__etcd_compare(&t, &a->place, joined);
    hf__etcd_compare(&t, &a->inside, 0);
    for (size_t i = 0; !first && i < a->ranges; i++) {
        if (a->bid->mode == HF_SHARED)
            hf__etcd_compare_none(&t, &a->from[i], &a->to[i]);
        else
            hf__etcd_compare_above(&t, &a->from[i], &a->to[i], joined - 1);
    }
    hf__etcd_mark_value(a->e, value);
    hf__etcd_put(&t, &a->inside, value, a->lease);
    return hf__etcd_written(&t);
}

/* Only looks. A transaction that could write costs the cluster as much as one that does: whoever
 * was not called asks like this first. */
static char *look_request(const struct hf__etcd_attempt *a, uint64_t joined)
{
    struct hf__etcd_txn t = {0};

    hf__etcd_get(&t, &a->place); /* where others line up */
    look_at_all(a, &t, joined);
    return hf__etcd_written(&t);
}

static uint64_t created(const json_t *kv)
{
    return (uint64_t)hf__etcd_int(kv, "create_revision");
}

static void note_before(struct hf__etcd_seen *s, const json_t *kv)
{
    struct hf__etcd_details d;

    if (kv == NULL || created(kv) >= s->joined || created(kv) <= s->before_joined)
        return;
    s->has_before = hf__etcd_unb64(json_object_get(kv, "key"), &s->before);
    s->before_joined = created(kv);
    s->before_lease = hf__etcd_int(kv, "lease");
    s->before_ours = hf__etcd_details_read(kv, &d);
    s->before_ttl_ms = d.ttl_ms;
    s->before_ticket = d.ticket;
    memcpy(s->before_inbox, d.inbox, sizeof s->before_inbox);
    hf__etcd_details_clear(&d);
}

static void parse(const struct hf__etcd_attempt *a, const json_t *answer, struct hf__etcd_seen *s)
{
    s->joined = created(hf__etcd_kv(hf__etcd_nth(answer, 1, "response_range"), 0));
    const json_t *mark = hf__etcd_kv(hf__etcd_nth(answer, 2, "response_range"), 0);
    s->generation = created(mark);
    s->marked = (uint64_t)hf__etcd_int(mark, "mod_revision");
    s->handed = hf__etcd_is_handed(mark, s->joined);
    s->broken = hf__etcd_kv(hf__etcd_nth(answer, 3, "response_range"), 0) != NULL;
    s->tombstone = hf__etcd_kv(hf__etcd_nth(answer, 4, "response_range"), 0) != NULL;
    if (s->joined == 0)
        s->joined = UINT64_MAX; /* a no-wait bid: everybody is before us */
    for (size_t i = 0; i < a->ranges; i++) {
        const json_t *range = hf__etcd_nth(answer, 5 + i, "response_range");
        note_before(s, hf__etcd_kv(range, 0));
        note_before(s, hf__etcd_kv(range, 1));
    }
    if (s->joined == UINT64_MAX)
        s->joined = 0;
}

int hf__etcd_ask(struct hf__etcd_attempt *a, enum hf__etcd_question question, uint64_t joined,
                 struct hf__etcd_seen *ret_seen)
{
    bool looks = question == HF__ETCD_LOOK || question == HF__ETCD_LINE_UP;
    char *request = question == HF__ETCD_ENTER_FREE ? enter_free_request(a)
                    : question == HF__ETCD_LINE_UP  ? line_up_request(a)
                    : question == HF__ETCD_LOOK
                        ? look_request(a, joined)
                        : enter_request(a, joined, question == HF__ETCD_ENTER_FIRST);
    json_t *answer = NULL;
    struct hf__etcd_request q = {.path = "kv/txn",
                                 .body = request,
                                 .deadline_ns = a->deadline_ns,
                                 .doubted = &a->known.doubted};
    int r = hf__etcd_call(a->e, q, &answer, a->err);

    if (r < 0 || a->known.doubted)
        hf__etcd_bid_learn(a->e, &a->known);
    if (r == 0) {
        *ret_seen = (struct hf__etcd_seen){.revision = hf__etcd_revision(answer)};
        ret_seen->granted = !looks && json_is_true(json_object_get(answer, "succeeded"));
        if (ret_seen->granted)
            ret_seen->generation = ret_seen->marked = ret_seen->revision;
        if (looks)
            parse(a, answer, ret_seen);
    }
    json_decref(answer);
    return r;
}

/* Deletes the place before us, if it was never let in, or, with `handed`, if it was and nobody has
 * claimed that (that is, the mark has not changed). 1: it is done; 0 with the mark that is there. */
static int remove_dead(struct hf__etcd_attempt *a, const struct hf__etcd_seen *s,
                       const json_t *handed, json_t **ret_answer)
{
    struct hf__etcd_key *mark = calloc(2, sizeof *mark), *slot = mark + 1;
    struct hf__etcd_txn t = {.spoilt = mark == NULL};

    if (mark != NULL) {
        hf__etcd_mark_key(a->e, HF__ETCD_INSIDE, a->name, s->before_lease, mark);
        hf__etcd_slot_key(a->e, s->before_lease, slot);
        hf__etcd_compare(&t, &s->before, s->before_joined);
        if (handed == NULL)
            hf__etcd_compare(&t, mark, 0);
        else
            hf__etcd_compare_put(&t, mark, (uint64_t)hf__etcd_int(handed, "mod_revision"));
        hf__etcd_delete(&t, &s->before);
        hf__etcd_delete(&t, mark);
        hf__etcd_delete(&t, slot);
        hf__etcd_otherwise(&t);
        hf__etcd_get(&t, mark);
    }
    free(mark);
    struct hf__etcd_request q = {
        .path = "kv/txn", .body = hf__etcd_written(&t), .deadline_ns = a->deadline_ns};
    int r = hf__etcd_call(a->e, q, ret_answer, a->err);
    return r < 0 ? r : json_is_true(json_object_get(*ret_answer, "succeeded"));
}

int hf__etcd_clear_dead(struct hf__etcd_attempt *a, const struct hf__etcd_seen *s)
{
    struct hf__etcd_life life;
    json_t *answer = NULL, *second = NULL;

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
    r = remove_dead(a, s, NULL, &answer);
    const json_t *mark = hf__etcd_kv(hf__etcd_nth(answer, 0, "response_range"), 0);
    if (r == 0 && hf__etcd_is_handed(mark, s->before_joined))
        r = remove_dead(a, s, mark, &second);
    json_decref(answer);
    json_decref(second);
    if (r == 1)
        hf__etcd_lease_revoke(a->e, s->before_lease, a->deadline_ns, NULL);
    return r;
}
