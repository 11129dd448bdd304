/* Showing who is there: one transaction reads the places and the marks of a name, or of all names
 * with a prefix; then the leases tell how long each has left, and whether a waiter is alive.
 *
 * etcd keeps no times: since when somebody waits or holds is what the clock of its machine said,
 * and is for people. How long it has left is the server's word, in whole seconds, rounded up. */
#include <stdlib.h>

#include "base/bytes.h"
#include "stores/etcd/etcd.h"
#include "stores/search.h"

#include "base/banned.h"

struct entry {
    struct hf__etcd_parts parts;
    struct hf__etcd_details details;
    bool ours, broken, handed;
    int64_t lease, named, since_ms;
    uint64_t joined, generation;
};

struct view {
    struct hf__etcd *e;
    const struct hf__search *search;
    int64_t deadline_ns, sent_ns;
    struct entry *entries;
    size_t count;
    hf_error *err;
};

/* A stranger's key counts if it is on a lease and named as the Go client does. */
static bool read_place(struct view *v, const struct hf__etcd_kv *kv, struct entry *e)
{
    struct hf__etcd_key *as_mutex = malloc(sizeof *as_mutex);
    bool is_one = false;

    memset(e, 0, sizeof *e);
    if (as_mutex != NULL && hf__etcd_parse_place(v->e, kv->key, &e->parts)) {
        e->lease = kv->lease;
        e->joined = kv->created;
        e->ours = hf__etcd_details_read(kv->value, &e->details);
        hf__etcd_mark_key(v->e, HF__ETCD_KEY_PLACE,
                          (struct hf__etcd_name){e->parts.name, e->parts.name_len}, e->lease,
                          as_mutex);
        e->named = hf__etcd_lease_in(kv->key);
        is_one = e->ours || v->search->name != NULL || hf__etcd_is_key(kv->key, as_mutex);
        if (!e->ours)
            hf__etcd_stranger(e->lease, e->joined, &e->details.ticket);
        e->since_ms = e->details.since_ms;
    }
    free(as_mutex);
    if (!is_one)
        hf__etcd_details_clear(&e->details);
    return is_one;
}

/* Of inside/ or broken/: "<root><name>/<lease>" once more, to find the place it belongs to. */
static void read_mark(struct view *v, const struct hf__etcd_kv *kv, enum hf__etcd_key_kind kind)
{
    struct hf__etcd_key *key = malloc(sizeof *key);
    int64_t lease = hf__etcd_lease_in(kv->key);
    struct entry *e = NULL;

    for (size_t i = 0; key != NULL && e == NULL && i < v->count; i++) {
        struct entry *at = &v->entries[i];
        if (!at->ours || at->named != lease)
            continue;
        hf__etcd_mark_key(v->e, kind, (struct hf__etcd_name){at->parts.name, at->parts.name_len},
                          lease, key);
        if (hf__etcd_is_key(kv->key, key))
            e = at;
    }
    free(key);
    if (e == NULL)
        return; /* of a place that somebody has deleted by hand */
    if (kind == HF__ETCD_KEY_BROKEN) {
        e->broken = true;
        return;
    }
    struct hf__etcd_record record = {0};
    e->generation = kv->created;
    e->handed = hf__etcd_is_handed(kv, e->joined);
    if (e->handed)
        e->since_ms = 0; /* just now: it is claimed soon */
    else if (kv->value.len > 0 && hf__etcd_record_read(kv->value, &record))
        e->since_ms = hf__etcd_record_since(&record);
    hf__etcd_record_clear(&record);
}

static int by_name(const struct entry *x, const struct entry *y)
{
    return hf__bytes_order(x->parts.name, x->parts.name_len, y->parts.name, y->parts.name_len);
}

static int by_name_and_place(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int order = by_name(x, y);
    bool x_waits = x->generation == 0, y_waits = y->generation == 0;
    if (order == 0 && x_waits != y_waits)
        order = x_waits ? 1 : -1;
    return order != 0 ? order : (x->joined > y->joined) - (x->joined < y->joined);
}

/* A stranger knows no marks: it is inside if it is the first of all. */
static void place_strangers(struct view *v)
{
    for (size_t i = 0; i < v->count; i++) {
        struct entry *e = &v->entries[i];
        bool first = !e->ours;
        for (size_t k = 0; first && k < v->count; k++)
            first = by_name(e, &v->entries[k]) != 0 || v->entries[k].joined >= e->joined;
        if (first)
            e->generation = e->joined;
    }
}

static int read_all(struct view *v)
{
    const struct hf__search *search = v->search;
    bool whole = search->name != NULL;
    struct hf__etcd_name name = {whole ? search->name : search->prefix,
                                 whole ? search->name_len : search->prefix_len};
    struct hf__etcd_key *from = calloc(2, sizeof *from), *to = from + 1;
    struct hf__etcd_txn t = {.incomplete = from == NULL};
    struct hf__etcd_answer answer;

    for (int kind = HF__ETCD_KEY_PLACE; from != NULL && kind <= HF__ETCD_KEY_BROKEN; kind++) {
        hf__etcd_root(v->e, (enum hf__etcd_key_kind)kind, name, whole, from);
        hf__etcd_end_of(from, to);
        if (from->len == 0) /* everything */
            *from = *to = (struct hf__etcd_key){.len = 1};
        hf__etcd_range(&t, &(struct hf__etcd_range){.from = from, .to = to});
    }
    free(from);
    int r = hf__etcd_commit(v->e, &t, v->deadline_ns, &answer, v->err);
    if (r < 0)
        return r;
    struct hf__etcd_result places = hf__etcd_nth(&answer, 0);
    v->entries = calloc(places.count + 1, sizeof *v->entries);
    if (v->entries == NULL)
        r = hf__fail(v->err, HF_NO_MEMORY, NULL);
    for (size_t i = 0; r == 0 && i < places.count; i++)
        v->count += read_place(v, &places.kvs[i], &v->entries[v->count]);
    for (int kind = HF__ETCD_KEY_INSIDE; kind <= HF__ETCD_KEY_BROKEN; kind++) {
        struct hf__etcd_result marks = hf__etcd_nth(&answer, (size_t)kind);
        for (size_t i = 0; i < marks.count; i++)
            read_mark(v, &marks.kvs[i], (enum hf__etcd_key_kind)kind);
    }
    hf__etcd_answer_clear(&answer);
    place_strangers(v);
    if (v->count > 1)
        qsort(v->entries, v->count, sizeof *v->entries, by_name_and_place);
    return r;
}

/* Whether the lease must be asked about. Whoever waits with a lease no longer than its own lease is
 * alive if it is there; and how long ago a waiter was renewed tells until when it cannot be dead. */
static bool wants_life(struct view *v, const struct entry *e)
{
    struct hf__etcd_alive *at = &v->e->alive[(uint64_t)e->lease % HF__ETCD_ALIVE];
    int64_t now_ns = hf__now_ns(v->e->base.host->env);
    int64_t own_ms = hf__own_lease_ms(e->details.ttl_ms);

    if (e->lease == 0)
        return false;
    if (!e->ours || e->generation != 0)
        return true;
    if (1000 * hf__etcd_lease_seconds(e->details.ttl_ms, e->details.delay_ms) <= own_ms + 1000)
        return false;
    pthread_mutex_lock(&v->e->mutex);
    bool alive = at->lease == e->lease && now_ns < at->until_ns;
    pthread_mutex_unlock(&v->e->mutex);
    return !alive;
}

static struct hf__entry describe(const struct view *v, const struct entry *e,
                                 const struct hf__etcd_life *life)
{
    const struct hf_env *env = v->e->base.host->env;
    const struct hf__etcd_details *d = &e->details;
    int64_t age_ms = (int64_t)(env->wall_us(env->ctx) / 1000) - e->since_ms;
    int64_t left_ms = (life->left_s + 1) * 1000, given_ms = life->given_s * 1000;
    bool inside = e->generation != 0;
    bool lingers = e->broken || hf__etcd_lingers(life, d->ttl_ms, d->delay_ms);
    struct hf__entry shown = {.ticket = d->ticket,
                              .place = !inside   ? HF__PLACE_WAITING
                                       : lingers ? HF__PLACE_LINGERING
                                                 : HF__PLACE_INSIDE,
                              .mode = e->parts.mode,
                              .generation = e->generation,
                              .ttl_ms = e->ours ? d->ttl_ms : given_ms,
                              .lock_delay_ms = d->delay_ms,
                              .since_ms = e->since_ms == 0 || age_ms < 0 ? 0 : age_ms,
                              .until_ms = left_ms,
                              .claimed = inside && !e->handed &&
                                         (d->ttl_ms != HF__NEVER || !e->ours || e->lease == 0)};

    if (e->lease == 0)
        shown.until_ms = HF__NEVER;
    else if (shown.place == HF__PLACE_INSIDE && e->ours && d->ttl_ms != HF__NEVER)
        shown.until_ms = left_ms - (given_ms - d->ttl_ms);
    else if (shown.place == HF__PLACE_LINGERING && left_ms > d->delay_ms && d->delay_ms > 0)
        shown.until_ms = life->left_s * 1000;
    if (shown.until_ms > shown.ttl_ms && shown.place == HF__PLACE_INSIDE)
        shown.until_ms = shown.ttl_ms;
    if (shown.until_ms < 1)
        shown.until_ms = 1;
    return shown;
}

/* `life` NULL: it was not asked for. */
static int show(struct view *v, const struct entry *e, const struct hf__etcd_life *life)
{
    int64_t own_ms = hf__own_lease_ms(e->details.ttl_ms);
    struct hf__etcd_life surely = {
        .left_s = own_ms / 1000 - 1,
        .given_s = hf__etcd_lease_seconds(e->details.ttl_ms, e->details.delay_ms)};
    bool unclaimed = e->generation == 0 || e->handed;

    if (life != NULL && e->ours && unclaimed && hf__etcd_is_dead(life, e->details.ttl_ms))
        return 0;
    if (life != NULL && e->generation == 0) { /* whoever looks again soon need not ask again */
        struct hf__etcd_alive *at = &v->e->alive[(uint64_t)e->lease % HF__ETCD_ALIVE];
        int64_t left_ms = own_ms - (life->given_s - life->left_s) * 1000;
        pthread_mutex_lock(&v->e->mutex);
        at->lease = e->lease;
        at->until_ns = v->sent_ns + left_ms * HF__NS_PER_MS;
        pthread_mutex_unlock(&v->e->mutex);
    }
    struct hf__entry shown = describe(v, e, life != NULL ? life : &surely);
    struct hf__who who = e->details.who;
    shown.who = &who;
    if (!hf__search_is_old_enough(v->search, &shown))
        return 0;
    return v->search->found(v->search->ctx, e->parts.name, e->parts.name_len, &shown);
}

static int show_all(struct view *v)
{
    int64_t *leases = calloc(v->count + 1, sizeof *leases);
    struct hf__etcd_life *lives = calloc(v->count + 1, sizeof *lives);
    int *codes = calloc(v->count + 1, sizeof *codes);
    size_t *at = calloc(v->count + 1, sizeof *at), count = 0;
    int r = 0;

    if (leases == NULL || lives == NULL || codes == NULL || at == NULL)
        r = hf__fail(v->err, HF_NO_MEMORY, NULL);
    for (size_t i = 0; r == 0 && i < v->count; i++) {
        at[i] = SIZE_MAX;
        if (!wants_life(v, &v->entries[i]))
            continue;
        at[i] = count;
        leases[count++] = v->entries[i].lease;
    }
    v->sent_ns = hf__now_ns(v->e->base.host->env);
    if (r == 0 && count > 0)
        r = hf__etcd_lease_lives(v->e, leases, count, v->deadline_ns, lives, codes, v->err);
    for (size_t i = 0; r == 0 && i < v->count; i++) {
        if (at[i] == SIZE_MAX)
            r = show(v, &v->entries[i], NULL);
        else if (codes[at[i]] == 0) /* else it ended meanwhile */
            r = show(v, &v->entries[i], &lives[at[i]]);
    }
    free(leases);
    free(lives);
    free(codes);
    free(at);
    return r;
}

int hf__etcd_inspect(struct hf__store *store, const struct hf__search *search, int64_t deadline_ns,
                     hf_error *err)
{
    struct view v = {
        .e = (struct hf__etcd *)store, .search = search, .deadline_ns = deadline_ns, .err = err};
    int r = read_all(&v);

    if (r == 0)
        r = show_all(&v);
    for (size_t i = 0; i < v.count; i++)
        hf__etcd_details_clear(&v.entries[i].details);
    free(v.entries);
    return r;
}
