/* Looking a ticket up, for those who did not bid with it themselves: whoever unlocks, renews,
 * adopts or breaks. Which lease it has is in the name of its place, and its ticket in the value: one
 * transaction reads all below the lock's name, with the marks. A stranger's ticket is made up from
 * its lease and its revision. */
#include <stdlib.h>

#include "stores/etcd/etcd.h"

#include "util/banned.h"

#define STRANGER 0x57

void hf__etcd_stranger(int64_t lease, uint64_t joined, struct hf__ticket *ret_ticket)
{
    for (size_t i = 0; i < 8; i++) {
        ret_ticket->bits[i] = (unsigned char)((uint64_t)lease >> (56 - 8 * i));
        ret_ticket->bits[8 + i] = (unsigned char)(joined >> (56 - 8 * i));
    }
    ret_ticket->bits[8] = STRANGER;
}

static void take(struct hf__etcd_found *f, const json_t *kv, hf_mode mode)
{
    f->there = hf__etcd_unb64(json_object_get(kv, "key"), &f->place);
    f->mode = mode;
    f->lease = hf__etcd_int(kv, "lease");
    f->named = hf__etcd_named(&f->place);
    f->joined = (uint64_t)hf__etcd_int(kv, "create_revision");
}

/* Whether it is the one, and made by holdfast. */
static bool take_ours(struct hf__etcd_found *f, const struct hf__etcd *e, const json_t *kv,
                      const struct hf__ticket *ticket)
{
    struct hf__etcd_parts *parts = malloc(sizeof *parts);
    struct hf__etcd_details d;
    bool ours = hf__etcd_details_read(kv, &d) && hf__ticket_equal(&d.ticket, ticket);

    if (ours && parts != NULL) {
        take(f, kv, HF_EXCLUSIVE);
        if (hf__etcd_parse_place(e, &f->place, parts))
            f->mode = parts->mode;
        f->ours = true;
        f->ttl_ms = d.ttl_ms;
        f->delay_ms = d.delay_ms;
    }
    hf__etcd_details_clear(&d);
    free(parts);
    return ours;
}

static bool is_stranger(const json_t *kv, const struct hf__ticket *ticket)
{
    struct hf__ticket shown;

    hf__etcd_stranger(hf__etcd_int(kv, "lease"), (uint64_t)hf__etcd_int(kv, "create_revision"),
                      &shown);
    return hf__ticket_equal(&shown, ticket);
}

/* The revision of the mark in this range that has the same lease in its name; 0: there is none. */
static uint64_t marked(const json_t *range, int64_t named)
{
    struct hf__etcd_key *key = malloc(sizeof *key);
    uint64_t revision = 0;
    const json_t *kv;
    size_t i;

    json_array_foreach(json_object_get(range, "kvs"), i, kv)
    {
        if (key != NULL && hf__etcd_unb64(json_object_get(kv, "key"), key) &&
            hf__etcd_named(key) == named)
            revision = (uint64_t)hf__etcd_int(kv, "create_revision");
    }
    free(key);
    return revision;
}

/* The first of all below the name is inside, if it is a stranger. */
static void read_answer(struct hf__etcd_found *f, const struct hf__etcd *e, const json_t *answer,
                        const struct hf__ticket *ticket)
{
    const json_t *kv;
    size_t i;

    json_array_foreach(json_object_get(hf__etcd_nth(answer, 0, "response_range"), "kvs"), i, kv)
    {
        if (take_ours(f, e, kv, ticket)) {
            f->generation = marked(hf__etcd_nth(answer, 1, "response_range"), f->named);
            f->broken = marked(hf__etcd_nth(answer, 2, "response_range"), f->named) != 0;
        } else if (is_stranger(kv, ticket)) {
            take(f, kv, HF_EXCLUSIVE);
            f->generation = i == 0 ? f->joined : 0;
        }
    }
}

/* All below the name, in order, and the marks. */
static char *request(const struct hf__etcd *e, struct hf__etcd_name name)
{
    struct hf__etcd_key *from = calloc(2, sizeof *from), *to = from + 1;
    struct hf__etcd_txn t = {.spoilt = from == NULL};

    for (int kind = HF__ETCD_PLACE; from != NULL && kind <= HF__ETCD_BROKEN; kind++) {
        hf__etcd_root(e, (enum hf__etcd_kind)kind, name, true, from);
        hf__etcd_end_of(from, to);
        hf__etcd_range(&t, &(struct hf__etcd_range){.from = from, .to = to});
    }
    free(from);
    return hf__etcd_written(&t);
}

int hf__etcd_find(struct hf__etcd *e, struct hf__etcd_name name, const struct hf__ticket *ticket,
                  int64_t deadline_ns, struct hf__etcd_found *ret_found, hf_error *err)
{
    json_t *answer = NULL;
    struct hf__etcd_request q = {
        .path = "kv/txn", .body = request(e, name), .deadline_ns = deadline_ns};
    int r = hf__etcd_call(e, q, &answer, err);

    memset(ret_found, 0, sizeof *ret_found);
    if (r == 0) {
        read_answer(ret_found, e, answer, ticket);
        ret_found->revision = hf__etcd_revision(answer);
    }
    json_decref(answer);
    return r;
}
