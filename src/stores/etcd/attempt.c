/* Bidding: a lease, a place in the queue, and coming inside.
 *
 * The first attempt of a ticket is a lease (lease/grant with a number made from the ticket) and one
 * transaction:
 *
 *   if      there is no tombstone, no place of ours, and nobody who conflicts
 *   then    put place, put inside                                       GRANTED, or:
 *   else    if no tombstone and no place of ours: put place             (not for a no-wait bid)
 *           get place, inside, tombstone, those who conflict            QUEUED, BUSY
 *
 * Every later one, after a wake-up, or after a look that showed that we are the first:
 *
 *   if      our place is the one we made, nobody who conflicts was created before it, no mark yet
 *   then    put inside                                                  GRANTED
 *   else    get place, inside, the last one before us                   GRANTED before, QUEUED
 *
 * So the own place is looked at in the same step that grants, and the revision of that step, which
 * is the create revision of the mark, is the generation. To stand first is for good: places that
 * come later have higher revisions. A writer conflicts with every key below the name, a reader with
 * every one that is not below read/.
 *
 * Whoever waits keeps its lease alive every third of its own lease (1 to 10 s). The lease itself is
 * as long as the ttl and the lock-delay, since a key cannot change it without being put again; so
 * the next in line asks the lease of the one before him how long ago it was renewed, and removes a
 * place that was never let in and whose owner is silent for longer than its own lease. */
#include <stdlib.h>

#include "stores/etcd/etcd.h"

#include "util/banned.h"

#define ROUNDS     16 /* places of the dead that one attempt clears away */
#define RECHECK_MS 10000
#define MARGIN_MS  100

struct attempt {
    struct hf__etcd *e;
    const struct hf__bid *bid;
    struct hf__etcd_name name;
    struct hf__etcd_bid known;
    int64_t lease, deadline_ns;
    struct hf__etcd_key place, inside, broken, tombstone;
    struct hf__etcd_key from[2], to[2]; /* where those who conflict are */
    size_t ranges;
    int64_t ask_again_ms; /* when the one before us could be called dead; 0: not looked */
    hf_error *err;
};

/* What the store said. */
struct seen {
    bool granted, tombstone, broken;
    uint64_t joined, generation, revision;
    bool has_before;
    struct hf__etcd_key before; /* the last of those before us */
    uint64_t before_joined;
    int64_t before_lease, before_ttl_ms;
    bool before_ours;
};

static void prepare(struct attempt *a)
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

static json_t *mark_value(const struct attempt *a)
{
    const struct hf_env *env = a->e->base.host->env;
    json_t *d = json_pack("{s:I}", "since_ms", (json_int_t)(env->wall_us(env->ctx) / 1000));
    char *text = json_dumps(d, JSON_COMPACT);

    json_decref(d);
    json_t *value = text != NULL ? hf__etcd_b64(text, strlen(text)) : NULL;
    free(text);
    return value;
}

/* The newest of those who conflict and were created before `joined` (0: whenever). */
static void add_conflicts(const struct attempt *a, json_t *list, uint64_t joined)
{
    for (size_t i = 0; i < a->ranges; i++) {
        json_t *range = hf__etcd_range(&a->from[i], &a->to[i], 2);
        json_t *inner = json_object_get(range, "request_range");
        json_object_set_new(inner, "sort_target", json_string("CREATE"));
        json_object_set_new(inner, "sort_order", json_string("DESCEND"));
        if (joined > 0)
            json_object_set_new(inner, "max_create_revision",
                                hf__etcd_int_json((int64_t)joined - 1));
        json_array_append_new(list, range);
    }
}

/* place, inside, broken, tombstone, conflicts: `parse` reads them in this order. */
static json_t *look_at_all(const struct attempt *a, json_t *first, uint64_t joined)
{
    json_t *list = json_array();

    json_array_append_new(list, first);
    json_array_append_new(list, hf__etcd_range(&a->place, NULL, 0));
    json_array_append_new(list, hf__etcd_range(&a->inside, NULL, 0));
    json_array_append_new(list, hf__etcd_range(&a->broken, NULL, 0));
    json_array_append_new(list, hf__etcd_range(&a->tombstone, NULL, 0));
    add_conflicts(a, list, joined);
    return list;
}

static json_t *join_request(const struct attempt *a)
{
    json_t *compare = json_array(), *success = json_array(), *nested = json_array();

    json_array_append_new(compare, hf__etcd_compare(&a->tombstone, NULL, "EQUAL", 0));
    json_array_append_new(compare, hf__etcd_compare(&a->place, NULL, "EQUAL", 0));
    for (size_t i = 0; i < a->ranges; i++)
        json_array_append_new(compare, hf__etcd_compare(&a->from[i], &a->to[i], "EQUAL", 0));
    json_array_append_new(success,
                          hf__etcd_put(&a->place, hf__etcd_details_json(a->e, a->bid), a->lease));
    json_array_append_new(success, hf__etcd_put(&a->inside, mark_value(a), a->lease));

    json_t *if_new = json_array();
    json_array_append_new(if_new, hf__etcd_compare(&a->tombstone, NULL, "EQUAL", 0));
    json_array_append_new(if_new, hf__etcd_compare(&a->place, NULL, "EQUAL", 0));
    if (a->bid->queue)
        json_array_append_new(
            nested, hf__etcd_put(&a->place, hf__etcd_details_json(a->e, a->bid), a->lease));
    json_t *join = hf__etcd_nested(hf__etcd_txn(if_new, nested, json_array()));
    return hf__etcd_txn(compare, success, look_at_all(a, join, 0));
}

/* `first`: it is known that nobody stands before us, so there is nothing to compare. A range
 * without keys compares like a key that is not there: a reader may find its ranges empty. */
static json_t *enter_request(const struct attempt *a, uint64_t joined, bool first)
{
    json_t *compare = json_array(), *success = json_array();

    json_array_append_new(compare, hf__etcd_compare(&a->place, NULL, "EQUAL", joined));
    json_array_append_new(compare, hf__etcd_compare(&a->inside, NULL, "EQUAL", 0));
    json_array_append_new(compare, hf__etcd_compare(&a->broken, NULL, "EQUAL", 0));
    for (size_t i = 0; !first && i < a->ranges; i++) {
        bool shared = a->bid->mode == HF_SHARED;
        json_array_append_new(compare,
                              hf__etcd_compare(&a->from[i], &a->to[i], shared ? "EQUAL" : "GREATER",
                                               shared ? 0 : joined - 1));
    }
    json_array_append_new(success, hf__etcd_put(&a->inside, mark_value(a), a->lease));
    json_t *nothing = hf__etcd_nested(hf__etcd_txn(json_array(), json_array(), json_array()));
    return hf__etcd_txn(compare, success, look_at_all(a, nothing, joined));
}

/* Only looks. A transaction that could write costs the cluster as much as one that does: whoever
 * was not called asks like this first. */
static json_t *look_request(const struct attempt *a, uint64_t joined)
{
    json_t *unused = hf__etcd_range(&a->place, NULL, 0);

    return hf__etcd_txn(json_array(), look_at_all(a, unused, joined), json_array());
}

static uint64_t created(const json_t *kv)
{
    return (uint64_t)hf__etcd_int(kv, "create_revision");
}

static void note_before(struct seen *s, const json_t *kv)
{
    struct hf__etcd_details d;

    if (kv == NULL || created(kv) >= s->joined || created(kv) <= s->before_joined)
        return;
    s->has_before = hf__etcd_unb64(json_object_get(kv, "key"), &s->before);
    s->before_joined = created(kv);
    s->before_lease = hf__etcd_int(kv, "lease");
    s->before_ours = hf__etcd_details_read(kv, &d);
    s->before_ttl_ms = d.ttl_ms;
    hf__etcd_details_clear(&d);
}

static void parse(const struct attempt *a, const json_t *answer, bool looked, struct seen *s)
{
    *s = (struct seen){.revision = hf__etcd_revision(answer)};
    s->granted = !looked && json_is_true(json_object_get(answer, "succeeded"));
    if (s->granted) {
        s->generation = s->revision;
        return;
    }
    s->joined = created(hf__etcd_kv(hf__etcd_nth(answer, 1, "response_range"), 0));
    s->generation = created(hf__etcd_kv(hf__etcd_nth(answer, 2, "response_range"), 0));
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

static int ask(struct attempt *a, json_t *request, bool looks, struct seen *ret_seen)
{
    json_t *answer = NULL;
    struct hf__etcd_request q = {.path = "kv/txn", .body = request, .deadline_ns = a->deadline_ns};
    int r = hf__etcd_call(a->e, q, &answer, a->err);

    if (r == 0)
        parse(a, answer, looks, ret_seen);
    json_decref(answer);
    return r;
}

/* Clears the one before us away if it has died while it waited. 1: it was so; look again. */
static int clear_dead(struct attempt *a, const struct seen *s)
{
    struct hf__etcd_life life;
    json_t *answer = NULL;

    if (!s->has_before || !s->before_ours || s->before_lease == 0)
        return 0;
    int r = hf__etcd_lease_life(a->e, s->before_lease, a->deadline_ns, &life, a->err);
    if (r == HF_NOT_FOUND)
        return 0; /* it goes by itself */
    if (r == 0)
        a->ask_again_ms = hf__own_lease_ms(s->before_ttl_ms) -
                          (life.given_s - life.left_s - 1) * 1000 + MARGIN_MS;
    if (r < 0 || !hf__etcd_is_dead(&life, s->before_ttl_ms))
        return r;
    struct hf__etcd_key mark;
    hf__etcd_mark_key(a->e, HF__ETCD_INSIDE, a->name, s->before_lease, &mark);
    json_t *compare = json_array(), *success = json_array();
    json_array_append_new(compare, hf__etcd_compare(&s->before, NULL, "EQUAL", s->before_joined));
    json_array_append_new(compare, hf__etcd_compare(&mark, NULL, "EQUAL", 0));
    json_array_append_new(success, hf__etcd_delete(&s->before));
    struct hf__etcd_request q = {.path = "kv/txn",
                                 .body = hf__etcd_txn(compare, success, json_array()),
                                 .deadline_ns = a->deadline_ns};
    r = hf__etcd_call(a->e, q, &answer, a->err);
    if (r == 0)
        r = json_is_true(json_object_get(answer, "succeeded"));
    json_decref(answer);
    if (r == 1)
        hf__etcd_lease_revoke(a->e, s->before_lease, a->deadline_ns, NULL);
    return r;
}

/* A lease of our own, and alive for long enough to be worth something. 0, HF_NOT_FOUND: it is over,
 * or an error. */
static int see_to_lease(struct attempt *a, int64_t sent_ns)
{
    struct hf__etcd_bid *known = &a->known;
    int64_t third_ns = hf__provisional_lease_ms(known->ttl_ms) * HF__NS_PER_MS / 3;

    if (known->lease_given && sent_ns - known->proved_ns < third_ns)
        return 0;
    int64_t before_ns = hf__now_ns(a->e->base.host->env);
    int r = known->lease_given
                ? hf__etcd_lease_renew(a->e, a->lease, a->deadline_ns, a->err)
                : hf__etcd_lease_grant(a->e, a->lease,
                                       hf__etcd_lease_seconds(known->ttl_ms, known->delay_ms),
                                       a->deadline_ns, a->err);
    if (r < 0)
        return r;
    /* It may have been given to an earlier request, whose answer was lost. */
    known->proved_ns = known->lease_given ? before_ns : known->asked_ns;
    known->lease_given = true;
    hf__etcd_bid_learn(a->e, known);
    return 0;
}

/* It was let in, and its ttl has passed by our own clock, which is the earlier one: a ticket is let
 * in once. */
static bool is_over(const struct attempt *a)
{
    const struct hf__etcd_bid *k = &a->known;

    return k->generation != 0 && k->ttl_ms > 0 &&
           hf__now_ns(a->e->base.host->env) - k->proved_ns >= k->ttl_ms * HF__NS_PER_MS;
}

static int withdrawn(struct attempt *a, struct hf__answer *ret)
{
    bool lingers = a->known.generation != 0 && a->known.delay_ms > 0;

    hf__etcd_bid_retire(a->e, a->bid, a->bid->retire_ms);
    if (!lingers)
        hf__etcd_lease_revoke(a->e, a->lease, a->deadline_ns, NULL);
    ret->verdict = HF__WITHDRAWN;
    return 0;
}

static int granted(struct attempt *a, const struct seen *s, struct hf__answer *ret)
{
    if (s->joined != 0)
        a->known.joined = s->joined;
    if (a->known.joined == 0)
        a->known.joined = s->revision; /* place and mark were put together */
    a->known.generation = s->generation;
    hf__etcd_bid_learn(a->e, &a->known);
    hf__etcd_unwatch(a->e, &a->bid->ticket);
    ret->verdict = HF__GRANTED;
    ret->generation = s->generation;
    ret->claimed = a->bid->ttl_ms != 0;
    ret->lease_ms = ret->claimed ? a->bid->ttl_ms : hf__provisional_lease_ms(0);
    /* What keeps the place is the lease, and this is when it was last restarted. */
    if (a->known.proved_ns < ret->sent_ns)
        ret->sent_ns = a->known.proved_ns;
    return 0;
}

/* A client with an earlier attempt unanswered withdraws as well, and that is what is remembered. */
static int busy(struct attempt *a, struct hf__answer *ret)
{
    hf__etcd_bid_retire(a->e, a->bid, 0);
    int r = hf__etcd_lease_revoke(a->e, a->lease, a->deadline_ns, a->err);
    ret->verdict = HF__BUSY;
    return r;
}

static int queued(struct attempt *a, const struct seen *s, struct hf__answer *ret)
{
    a->known.joined = s->joined;
    hf__etcd_bid_learn(a->e, &a->known);
    if (s->has_before)
        hf__etcd_watch(a->e, &a->bid->ticket, &s->before, s->revision + 1);
    ret->verdict = HF__QUEUED;
    ret->generation = s->revision;
    ret->lease_ms = hf__provisional_lease_ms(a->bid->ttl_ms);
    int64_t own_ms = hf__own_lease_ms(s->before_ours ? s->before_ttl_ms : RECHECK_MS);
    ret->ask_again_ms = a->ask_again_ms > 0 ? a->ask_again_ms : own_ms + 1000 + MARGIN_MS;
    return 0;
}

static int run(struct attempt *a, struct hf__answer *ret)
{
    uint64_t joined = a->known.joined;
    bool again = joined != 0, first = false, told = hf__etcd_was_told(a->e, &a->bid->ticket);
    struct seen s;

    for (int round = 0; round < ROUNDS; round++) {
        bool looks = joined != 0 && !first && !told;
        json_t *request = joined == 0 ? join_request(a)
                          : looks     ? look_request(a, joined)
                                      : enter_request(a, joined, first);
        int r = ask(a, request, looks, &s);
        if (r < 0)
            return r;
        if (s.granted)
            return granted(a, &s, ret);
        if (s.tombstone || s.broken || (s.joined == 0 && a->bid->queue) ||
            (s.joined == 0 && joined != 0))
            return withdrawn(a, ret);
        if (s.generation != 0)
            return granted(a, &s, ret);
        /* The answer to a join shows the newest two: after a lost answer both may be behind us. */
        first = joined != 0 && !s.has_before;
        if (first && looks)
            hf__etcd_missed(a->e, &a->bid->ticket);
        joined = a->known.joined = s.joined;
        if (first || (joined != 0 && !s.has_before))
            continue;
        /* On joining, whoever is before us is most likely alive: look when it is time to ask again.
         */
        r = again || !a->bid->queue ? clear_dead(a, &s) : 0;
        if (r < 0)
            return r;
        if (r == 0)
            break;
    }
    return a->bid->queue ? queued(a, &s, ret) : busy(a, ret);
}

int hf__etcd_attempt(struct hf__store *store, const struct hf__bid *bid, int64_t deadline_ns,
                     struct hf__answer *ret_answer, hf_error *err)
{
    struct attempt *a = calloc(1, sizeof *a);
    int r;

    if (a == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    *a = (struct attempt){.e = (struct hf__etcd *)store,
                          .bid = bid,
                          .name = {bid->name, bid->name_len},
                          .lease = hf__etcd_lease_of(&bid->ticket),
                          .deadline_ns = deadline_ns,
                          .err = err};
    if (!hf__etcd_bid_get(a->e, &bid->ticket, bid, &a->known)) {
        r = hf__fail(err, HF_NO_MEMORY, NULL);
    } else if (a->known.retired) {
        ret_answer->verdict = HF__WITHDRAWN;
        r = 0;
    } else if (is_over(a)) {
        r = withdrawn(a, ret_answer);
    } else {
        prepare(a);
        r = see_to_lease(a, ret_answer->sent_ns);
        if (r == 0)
            r = run(a, ret_answer);
        if (r == HF_NOT_FOUND) /* the lease is over, and with it the ticket */
            r = withdrawn(a, ret_answer);
    }
    free(a);
    return r;
}
