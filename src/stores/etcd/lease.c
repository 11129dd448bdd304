/* Leases. A bid has one of its own, as long as its ttl and its lock-delay together, in whole
 * seconds, each rounded up: so a client ends its ttl by its own clock before the server does, and
 * the seconds that are left tell which of the two runs. */
#include "stores/etcd/etcd.h"

#include "util/banned.h"

static int64_t seconds_up(int64_t ms)
{
    return (ms + 999) / 1000;
}

/* One that never expires waits, and is let in, with a lease like everybody; see renew.c. */
int64_t hf__etcd_lease_seconds(int64_t ttl_ms, int64_t delay_ms)
{
    if (ttl_ms == 0)
        return seconds_up(hf__own_lease_ms(0));
    return seconds_up(ttl_ms) + seconds_up(delay_ms);
}

int hf__etcd_lease_grant(struct hf__etcd *e, int64_t lease, int64_t seconds, int64_t deadline_ns,
                         hf_error *err)
{
    json_t *answer = NULL;
    struct hf__etcd_request q = {.path = "lease/grant",
                                 .body = json_pack("{s:o, s:o}", "TTL", hf__etcd_int_json(seconds),
                                                   "ID", hf__etcd_int_json(lease)),
                                 .deadline_ns = deadline_ns};
    int r = hf__etcd_call(e, q, &answer, err);

    json_decref(answer);
    return r == HF_BUSY ? 0 : r; /* the answer to an earlier request was lost */
}

json_t *hf__etcd_lease_request(int64_t lease)
{
    return json_pack("{s:o}", "ID", hf__etcd_int_json(lease));
}

/* The endpoint is a stream: a request may carry many messages, and each is answered in turn. */
int hf__etcd_lease_renew_all(struct hf__etcd *e, const int64_t *leases, size_t count,
                             int64_t deadline_ns, bool *ret_alive, hf_error *err)
{
    json_t *answers = NULL, *messages = json_array();

    for (size_t i = 0; i < count; i++)
        json_array_append_new(messages, hf__etcd_lease_request(leases[i]));
    struct hf__etcd_request q = {
        .path = "lease/keepalive", .body = messages, .deadline_ns = deadline_ns, .stream = true};
    int r = hf__etcd_call(e, q, &answers, err);
    if (r == 0 && json_array_size(answers) != count)
        r = hf__fail(err, HF_UNKNOWN, "etcd: %zu of %zu leases were answered",
                     json_array_size(answers), count);
    for (size_t i = 0; r == 0 && i < count; i++) {
        const json_t *result = json_object_get(json_array_get(answers, i), "result");
        ret_alive[i] = hf__etcd_int(result, "TTL") > 0;
        if (hf__etcd_int(result, "ID") != leases[i])
            r = hf__fail(err, HF_CORRUPT, "etcd: another lease was answered than was asked");
    }
    json_decref(answers);
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
    json_t *answer = NULL;
    struct hf__etcd_request q = {
        .path = "lease/revoke", .body = hf__etcd_lease_request(lease), .deadline_ns = deadline_ns};
    int r = hf__etcd_call(e, q, &answer, err);

    json_decref(answer);
    return r == HF_NOT_FOUND ? 0 : r;
}

int hf__etcd_lease_life(struct hf__etcd *e, int64_t lease, int64_t deadline_ns,
                        struct hf__etcd_life *ret_life, hf_error *err)
{
    json_t *answer = NULL;
    struct hf__etcd_request q = {.path = "lease/timetolive",
                                 .body = hf__etcd_lease_request(lease),
                                 .deadline_ns = deadline_ns};
    int r = hf__etcd_call(e, q, &answer, err);

    if (r == 0 && hf__etcd_int(answer, "TTL") < 0)
        r = HF_NOT_FOUND;
    if (r == 0) {
        ret_life->left_s = hf__etcd_int(answer, "TTL");
        ret_life->given_s = hf__etcd_int(answer, "grantedTTL");
    }
    json_decref(answer);
    return r;
}

/* It was renewed more than given - left - 1 seconds ago. */
bool hf__etcd_is_dead(const struct hf__etcd_life *life, int64_t ttl_ms)
{
    return (life->given_s - life->left_s - 1) * 1000 >= hf__own_lease_ms(ttl_ms);
}

bool hf__etcd_lingers(const struct hf__etcd_life *life, int64_t ttl_ms, int64_t delay_ms)
{
    return delay_ms > 0 && ttl_ms > 0 && life->left_s < life->given_s - seconds_up(ttl_ms);
}
