/* Leases. A bid has one of its own, as long as its ttl and its lock-delay together, in whole
 * seconds, each rounded up: so a client ends its ttl by its own clock before the server does, and
 * the seconds that are left tell which of the two runs. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

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
    struct hf__etcd_request q = {
        .path = "lease/grant",
        .body = hf__etcd_format("{\"TTL\":\"%" PRId64 "\",\"ID\":\"%" PRId64 "\"}", seconds, lease),
        .deadline_ns = deadline_ns};
    int r = hf__etcd_call(e, q, &answer, err);

    json_decref(answer);
    return r == HF_BUSY ? 0 : r; /* the answer to an earlier request was lost */
}

char *hf__etcd_lease_request(int64_t lease)
{
    return hf__etcd_format("{\"ID\":\"%" PRId64 "\"}", lease);
}

/* One message a line. */
static char *renew_request(const int64_t *leases, size_t count)
{
    struct hf__etcd_bytes text = {0};
    bool fits = true;

    for (size_t i = 0; i < count; i++) {
        char line[40];
        int len = snprintf(line, sizeof line, "{\"ID\":\"%" PRId64 "\"}\n", leases[i]);
        fits &= hf__etcd_bytes_add(&text, line, (size_t)len);
    }
    if (fits && hf__etcd_bytes_add(&text, "", 1))
        return text.at;
    free(text.at);
    return NULL;
}

/* The endpoint is a stream: a request may carry many messages, and each is answered in turn. */
int hf__etcd_lease_renew_all(struct hf__etcd *e, const int64_t *leases, size_t count,
                             int64_t deadline_ns, bool *ret_alive, hf_error *err)
{
    json_t *answers = NULL;
    struct hf__etcd_request q = {.path = "lease/keepalive",
                                 .body = renew_request(leases, count),
                                 .deadline_ns = deadline_ns,
                                 .stream = true};
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
