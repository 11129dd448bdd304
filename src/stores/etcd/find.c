/* Looking a ticket up, for those who did not bid with it themselves: whoever unlocks, renews,
 * adopts or breaks. The keys follow from the ticket, so one transaction reads them; only a
 * stranger, whose ticket is made up from its lease and its revision, is looked for among all below
 * the name. */
#include <stdlib.h>

#include "stores/etcd/etcd.h"

#include "util/banned.h"

#define STRANGER 0x57 /* no random ticket of ours: they are checked against the place's value */

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
    f->joined = (uint64_t)hf__etcd_int(kv, "create_revision");
}

static void take_ours(struct hf__etcd_found *f, const json_t *kv, hf_mode mode,
                      const struct hf__ticket *ticket)
{
    struct hf__etcd_details d;

    if (kv != NULL && hf__etcd_details_read(kv, &d) && hf__ticket_equal(&d.ticket, ticket)) {
        take(f, kv, mode);
        f->ours = true;
        f->ttl_ms = d.ttl_ms;
        f->delay_ms = d.delay_ms;
    }
    if (kv != NULL)
        hf__etcd_details_clear(&d);
}

/* The first of all below the name is inside. */
static void take_stranger(struct hf__etcd_found *f, const json_t *range,
                          const struct hf__ticket *ticket)
{
    const json_t *kv;
    size_t i;

    json_array_foreach(json_object_get(range, "kvs"), i, kv)
    {
        struct hf__ticket shown;
        hf__etcd_stranger(hf__etcd_int(kv, "lease"), (uint64_t)hf__etcd_int(kv, "create_revision"),
                          &shown);
        if (!hf__ticket_equal(&shown, ticket))
            continue;
        take(f, kv, HF_EXCLUSIVE);
        f->generation = i == 0 ? f->joined : 0;
    }
}

static json_t *request(const struct hf__etcd *e, struct hf__etcd_name name,
                       const struct hf__ticket *ticket)
{
    int64_t lease = hf__etcd_lease_of(ticket);
    struct hf__etcd_key *keys = calloc(4, sizeof *keys), *root = calloc(2, sizeof *root);
    json_t *list = json_array();

    if (keys != NULL && root != NULL) {
        hf__etcd_place_key(e, name, HF_EXCLUSIVE, lease, &keys[0]);
        hf__etcd_place_key(e, name, HF_SHARED, lease, &keys[1]);
        hf__etcd_mark_key(e, HF__ETCD_INSIDE, name, lease, &keys[2]);
        hf__etcd_mark_key(e, HF__ETCD_BROKEN, name, lease, &keys[3]);
        for (size_t i = 0; i < 4; i++)
            json_array_append_new(list, hf__etcd_range(&keys[i], NULL, 0));
    }
    if (root != NULL && ticket->bits[8] == STRANGER) {
        hf__etcd_root(e, HF__ETCD_PLACE, name, true, &root[0]);
        hf__etcd_end_of(&root[0], &root[1]);
        json_t *all = hf__etcd_range(&root[0], &root[1], 0);
        json_t *inner = json_object_get(all, "request_range");
        json_object_set_new(inner, "sort_target", json_string("CREATE"));
        json_object_set_new(inner, "sort_order", json_string("ASCEND"));
        json_array_append_new(list, all);
    }
    free(keys);
    free(root);
    return hf__etcd_txn(json_array(), list, json_array());
}

int hf__etcd_find(struct hf__etcd *e, struct hf__etcd_name name, const struct hf__ticket *ticket,
                  int64_t deadline_ns, struct hf__etcd_found *ret_found, hf_error *err)
{
    json_t *answer = NULL;
    struct hf__etcd_request q = {
        .path = "kv/txn", .body = request(e, name, ticket), .deadline_ns = deadline_ns};
    int r = hf__etcd_call(e, q, &answer, err);

    memset(ret_found, 0, sizeof *ret_found);
    if (r == 0) {
        const json_t *kvs[4];
        for (size_t i = 0; i < 4; i++)
            kvs[i] = hf__etcd_kv(hf__etcd_nth(answer, i, "response_range"), 0);
        take_ours(ret_found, kvs[0], HF_EXCLUSIVE, ticket);
        take_ours(ret_found, kvs[1], HF_SHARED, ticket);
        if (ret_found->there) {
            ret_found->generation = (uint64_t)hf__etcd_int(kvs[2], "create_revision");
            ret_found->broken = kvs[3] != NULL;
        } else {
            take_stranger(ret_found, hf__etcd_nth(answer, 4, "response_range"), ticket);
        }
        ret_found->revision = hf__etcd_revision(answer);
    }
    json_decref(answer);
    return r;
}
