/* Looking a ticket up, for those who did not bid with it themselves: whoever unlocks, renews,
 * adopts or breaks. Which lease it has is in the name of its place, and its ticket in the value: one
 * transaction reads all below the lock's name, with the marks. A stranger's ticket is made up from
 * its lease and its revision. */
#include <stdlib.h>

#include "stores/etcd/etcd.h"

#include "base/banned.h"

#define STRANGER 0x57

void hf__etcd_stranger(int64_t lease, uint64_t joined, struct hf__ticket *ret_ticket)
{
    for (size_t i = 0; i < 8; i++) {
        ret_ticket->bits[i] = (unsigned char)((uint64_t)lease >> (56 - 8 * i));
        ret_ticket->bits[8 + i] = (unsigned char)(joined >> (56 - 8 * i));
    }
    ret_ticket->bits[8] = STRANGER;
}

static bool take(struct hf__etcd_found *f, const struct hf__etcd_kv *kv, hf_mode mode)
{
    if (kv->key.len > sizeof f->place.bytes)
        return false;
    f->there = true;
    f->place.len = kv->key.len;
    memcpy(f->place.bytes, kv->key.data, kv->key.len);
    f->mode = mode;
    f->lease = kv->lease;
    f->named = hf__etcd_lease_in(kv->key);
    f->joined = kv->created;
    return true;
}

/* Whether it is the one, and made by holdfast. */
static bool take_ours(struct hf__etcd_found *f, const struct hf__etcd *e,
                      const struct hf__etcd_kv *kv, const struct hf__ticket *ticket)
{
    struct hf__etcd_parts *parts = malloc(sizeof *parts);
    struct hf__etcd_details d;
    bool ours = hf__etcd_details_read(kv->value, &d) && hf__ticket_equal(&d.ticket, ticket);

    if (ours && parts != NULL && take(f, kv, HF_EXCLUSIVE)) {
        if (hf__etcd_parse_place(e, kv->key, parts))
            f->mode = parts->mode;
        f->ours = true;
        f->ttl_ms = d.ttl_ms;
        f->delay_ms = d.delay_ms;
        f->tells = d.tells;
    }
    hf__etcd_details_clear(&d);
    free(parts);
    return ours;
}

static bool is_stranger(const struct hf__etcd_kv *kv, const struct hf__ticket *ticket)
{
    struct hf__ticket shown;

    hf__etcd_stranger(kv->lease, kv->created, &shown);
    return hf__ticket_equal(&shown, ticket);
}

/* The revision of the mark in this range that has the same lease in its name; 0: there is none. */
static uint64_t marked(struct hf__etcd_result range, int64_t named)
{
    for (size_t i = 0; i < range.count; i++) {
        if (hf__etcd_lease_in(range.kvs[i].key) == named)
            return range.kvs[i].created;
    }
    return 0;
}

/* The first of all below the name is inside, if it is a stranger. */
static void read_answer(struct hf__etcd_found *f, const struct hf__etcd *e,
                        const struct hf__etcd_answer *answer, const struct hf__ticket *ticket)
{
    struct hf__etcd_result places = hf__etcd_nth(answer, 0);

    for (size_t i = 0; i < places.count; i++) {
        const struct hf__etcd_kv *kv = &places.kvs[i];
        if (take_ours(f, e, kv, ticket)) {
            f->generation = marked(hf__etcd_nth(answer, 1), f->named);
            f->broken = marked(hf__etcd_nth(answer, 2), f->named) != 0;
        } else if (is_stranger(kv, ticket) && take(f, kv, HF_EXCLUSIVE)) {
            f->generation = i == 0 ? f->joined : 0;
        }
    }
}

/* All below the name, in order, and the marks. */
int hf__etcd_find(struct hf__etcd *e, struct hf__etcd_name name, const struct hf__ticket *ticket,
                  int64_t deadline_ns, struct hf__etcd_found *ret_found, hf_error *err)
{
    struct hf__etcd_key *from = calloc(2, sizeof *from), *to = from + 1;
    struct hf__etcd_txn t = {.incomplete = from == NULL};
    struct hf__etcd_answer answer;

    for (int kind = HF__ETCD_KEY_PLACE; from != NULL && kind <= HF__ETCD_KEY_BROKEN; kind++) {
        hf__etcd_root(e, (enum hf__etcd_key_kind)kind, name, true, from);
        hf__etcd_end_of(from, to);
        hf__etcd_range(&t, &(struct hf__etcd_range){.from = from, .to = to});
    }
    free(from);
    int r = hf__etcd_commit(e, &t, deadline_ns, &answer, err);
    memset(ret_found, 0, sizeof *ret_found);
    ret_found->ttl_ms = HF__NEVER; /* for all that is known */
    if (r == 0)
        read_answer(ret_found, e, &answer, ticket);
    hf__etcd_answer_clear(&answer);
    return r;
}
