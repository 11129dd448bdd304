/* Leases. A bid has one of its own, as long as its ttl and its lock-delay together, in whole
 * seconds, each rounded up: so a client ends its ttl by its own clock before the server does, and
 * the seconds that are left tell which of the two runs. */
#include <stdlib.h>

#include "stores/etcd/etcd.h"

#include "base/banned.h"

#define TIME_TO_LIVE "/etcdserverpb.Lease/LeaseTimeToLive"

static int64_t seconds_up(int64_t ms)
{
    return (ms + 999) / 1000;
}

/* One that never expires waits, and is let in, with a lease like everybody; see renew.c. */
int64_t hf__etcd_lease_seconds(int64_t ttl_ms, int64_t delay_ms)
{
    if (ttl_ms == HF__NEVER)
        return seconds_up(hf__own_lease_ms(HF__NEVER));
    return seconds_up(ttl_ms) + seconds_up(delay_ms);
}

/* One call about one lease. */
static int ask(struct hf__etcd *e, const char *path, struct hf__buffer body, int64_t deadline_ns,
               struct hf__etcd_lease *ret_lease, hf_error *err)
{
    struct hf__etcd_request q = {.path = path, .body = body, .deadline_ns = deadline_ns};
    struct hf__buffer answer = {0};
    struct hf__slice message;
    int r = hf__etcd_call(e, q, &answer, err);

    if (r == 0)
        r = hf__etcd_message(&answer, &message, err);
    if (r == 0 && !hf__etcd_lease_read(message, ret_lease))
        r = hf__fail(err, HF_CORRUPT, "etcd: an answer that is not about a lease");
    hf__buffer_clear(&answer);
    return r;
}

static struct hf__buffer about(int64_t lease)
{
    struct hf__buffer body = {0};

    hf__etcd_lease_request(&body, lease);
    return body;
}

int hf__etcd_lease_grant(struct hf__etcd *e, int64_t lease, int64_t seconds, int64_t deadline_ns,
                         hf_error *err)
{
    struct hf__etcd_lease given;
    int r = ask(e, "/etcdserverpb.Lease/LeaseGrant", hf__etcd_grant_request(lease, seconds),
                deadline_ns, &given, err);

    return r == HF_BUSY ? 0 : r; /* the answer to an earlier request was lost */
}

int hf__etcd_lease_new(struct hf__etcd *e, int64_t seconds, int64_t deadline_ns, int64_t *ret_lease,
                       int64_t *ret_seconds, hf_error *err)
{
    struct hf__etcd_lease given;
    int r = ask(e, "/etcdserverpb.Lease/LeaseGrant", hf__etcd_grant_request(0, seconds),
                deadline_ns, &given, err);

    if (r == 0) {
        *ret_lease = given.id;
        *ret_seconds = given.ttl_s;
    }
    return r;
}

/* The call is a stream: it carries many messages, and each is answered in turn. */
int hf__etcd_lease_renew_all(struct hf__etcd *e, const int64_t *leases, size_t count,
                             int64_t deadline_ns, bool *ret_alive, hf_error *err)
{
    struct hf__etcd_request q = {.path = "/etcdserverpb.Lease/LeaseKeepAlive",
                                 .deadline_ns = deadline_ns};
    struct hf__buffer answer = {0};
    struct hf__etcd_lease lease;
    struct hf__slice message;

    for (size_t i = 0; i < count; i++)
        hf__etcd_lease_request(&q.body, leases[i]);
    int r = hf__etcd_call(e, q, &answer, err);
    struct hf__slice rest = {answer.data, answer.len};
    for (size_t i = 0; r == 0 && i < count; i++) {
        if (hf__grpc_take(&rest, &message) != 1)
            r = hf__fail(err, HF_UNKNOWN, "etcd: %zu of %zu leases were answered", i, count);
        else if (!hf__etcd_lease_read(message, &lease) || lease.id != leases[i])
            r = hf__fail(err, HF_CORRUPT, "etcd: another lease was answered than was asked");
        else
            ret_alive[i] = lease.ttl_s > 0;
    }
    hf__buffer_clear(&answer);
    return r;
}

int hf__etcd_lease_renew(struct hf__etcd *e, int64_t lease, int64_t deadline_ns, hf_error *err)
{
    bool alive = false;
    int r = hf__etcd_lease_renew_all(e, &lease, 1, deadline_ns, &alive, err);

    return r == 0 && !alive ? HF_NOT_FOUND : r;
}

int hf__etcd_lease_revoke(struct hf__etcd *e, int64_t lease, int64_t deadline_ns, hf_error *err)
{
    struct hf__etcd_lease none;
    int r = ask(e, "/etcdserverpb.Lease/LeaseRevoke", about(lease), deadline_ns, &none, err);

    return r == HF_NOT_FOUND ? 0 : r;
}

/* The server gives -1 for one that is not there. */
static int read_life(const struct hf__etcd_lease *lease, struct hf__etcd_life *ret_life)
{
    *ret_life = (struct hf__etcd_life){.left_s = lease->ttl_s, .given_s = lease->granted_s};
    return lease->ttl_s < 0 ? HF_NOT_FOUND : 0;
}

int hf__etcd_lease_life(struct hf__etcd *e, int64_t lease, int64_t deadline_ns,
                        struct hf__etcd_life *ret_life, hf_error *err)
{
    struct hf__etcd_lease found;
    int r = ask(e, TIME_TO_LIVE, about(lease), deadline_ns, &found, err);

    return r == 0 ? read_life(&found, ret_life) : r;
}

int hf__etcd_lease_lives(struct hf__etcd *e, const int64_t *leases, size_t count,
                         int64_t deadline_ns, struct hf__etcd_life *ret_lives, int *ret_codes,
                         hf_error *err)
{
    struct hf__etcd_many *all = calloc(count + 1, sizeof *all);
    struct hf__etcd_lease lease;
    struct hf__slice message;

    if (all == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    for (size_t i = 0; i < count; i++)
        all[i].request = (struct hf__etcd_request){
            .path = TIME_TO_LIVE, .body = about(leases[i]), .deadline_ns = deadline_ns};
    hf__etcd_call_many(e, all, count, err);
    int r = 0;
    for (size_t i = 0; i < count; i++) {
        ret_codes[i] =
            all[i].code != 0 ? all[i].code : hf__etcd_message(&all[i].answer, &message, err);
        if (ret_codes[i] == 0)
            ret_codes[i] = hf__etcd_lease_read(message, &lease) ? read_life(&lease, &ret_lives[i])
                                                                : HF_CORRUPT;
        if (ret_codes[i] < 0 && ret_codes[i] != HF_NOT_FOUND)
            r = ret_codes[i];
        hf__buffer_clear(&all[i].answer);
    }
    free(all);
    return r;
}

/* It was renewed more than given - left - 1 seconds ago. */
bool hf__etcd_is_dead(const struct hf__etcd_life *life, int64_t ttl_ms)
{
    return (life->given_s - life->left_s - 1) * 1000 >= hf__own_lease_ms(ttl_ms);
}

bool hf__etcd_lingers(const struct hf__etcd_life *life, int64_t ttl_ms, int64_t delay_ms)
{
    return delay_ms > 0 && ttl_ms != HF__NEVER && life->left_s < life->given_s - seconds_up(ttl_ms);
}
