/* See meter.h. The words of a hf_metrics are read one by one: each is right, and they may be of
 * moments that lie some counts apart. */
#include "core_meter.h"

#include <string.h>

#include "core_client.h"

#include "base_banned.h"

#define WORD      sizeof(uint64_t)
#define US_PER_MS 1000
#define NS_PER_US 1000

_Static_assert(sizeof(hf_metrics) % WORD == 0, "words, as read_words() takes them");

int64_t hf_bucket_us(size_t bucket)
{
    static const int64_t bounds[HF_BUCKETS] = {
        100,       300,       1000,       3000,       10000,       30000,
        100000,    300000,    1000000,    3000000,    10000000,    30000000,
        100000000, 300000000, 1000000000, 3000000000, 10000000000, INT64_MAX};

    return bucket < HF_BUCKETS ? bounds[bucket] : INT64_MAX;
}

const char *hf_call_name(hf_call call)
{
    static const char *const names[] = {
#define X(id, name, text) name,
        HF_CALLS(X)
#undef X
    };

    return (size_t)call < sizeof names / sizeof names[0] ? names[call] : NULL;
}

static void raise_by(uint64_t *counter, uint64_t by)
{
    __atomic_fetch_add(counter, by, __ATOMIC_RELAXED);
}

void hf__raise_code(uint64_t counters[HF_METRICS_CODES], int code)
{
    if (code < 0 && code > -HF_METRICS_CODES)
        hf__raise(&counters[-code]);
}

void hf__raise_duration(hf_histogram *durations, int64_t ns)
{
    int64_t us = ns > 0 ? ns / NS_PER_US : 0;
    size_t bucket = 0;

    while (us > hf_bucket_us(bucket))
        bucket++;
    hf__raise(&durations->buckets[bucket]);
    raise_by(&durations->sum_us, (uint64_t)us);
    hf__raise(&durations->count);
}

/* What happens to locks. ----------------------------------------------------------------------- */
void hf__meter_granted(hf_lock *lock, int64_t began_ns)
{
    hf_metrics *seen = &lock->client->meter->seen;
    int64_t now_ns = hf__now_ns(lock->client->env);

    hf__raise_duration(&seen->wait, now_ns - began_ns);
    if (lock->bidder.queued_sent_ns != 0)
        hf__raise_duration(&seen->hand_over, now_ns - lock->bidder.known_ns);
}

/* Only ever changed with the mutex held. */
static void set_word(void *word, int64_t value)
{
    __atomic_store_n((int64_t *)word, value, __ATOMIC_RELAXED);
}

void hf__meter_queued(struct hf__meter *meter, size_t position)
{
    hf_metrics *seen = &meter->seen;

    if (position == 0) /* the store did not count */
        return;
    hf__raise(&seen->queued);
    raise_by(&seen->queued_places, position);
    if (position > seen->longest_queue)
        set_word(&seen->longest_queue, (int64_t)position);
}

void hf__meter_renewed(struct hf__meter *meter, int64_t left_ns)
{
    hf_metrics *seen = &meter->seen;
    int64_t left_ms = left_ns / HF__NS_PER_MS;

    hf__raise(&seen->renewals);
    if (left_ns == INT64_MAX)
        return;
    hf__raise_duration(&seen->renewal_left, left_ns);
    if (seen->closest_call_ms < 0 || left_ms < seen->closest_call_ms)
        set_word(&seen->closest_call_ms, left_ms);
}

static void hold_ends(hf_lock *lock)
{
    hf__raise_duration(&lock->client->meter->seen.hold,
                       hf__now_ns(lock->client->env) - lock->bidder.known_ns);
}

void hf__meter_lost(hf_lock *lock)
{
    struct hf__meter *meter = lock->client->meter;

    hold_ends(lock);
    meter->lost_kept++;
    if (lock->bidder.cause < HF_METRICS_CAUSES)
        hf__raise(&meter->seen.lost[lock->bidder.cause]);
}

void hf__meter_keep_ends(hf_lock *lock)
{
    if (lock->lost_told)
        lock->client->meter->lost_kept--;
    else
        hold_ends(lock);
}

/* Reading. ------------------------------------------------------------------------------------- */
static void read_words(const struct hf__meter *meter, hf_metrics *ret)
{
    const uint64_t *from = (const uint64_t *)&meter->seen;
    uint64_t *to = (uint64_t *)ret;

    for (size_t i = 0; i < sizeof *ret / WORD; i++)
        to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
}

/* Mutex held. */
static void read_moment(hf_client *client, hf_metrics *ret)
{
    int64_t away_since_ns = client->away_since_ns;

    ret->held = client->in_duty[HF__DUTY_KEEP] - client->meter->lost_kept;
    ret->waiting = client->in_duty[HF__DUTY_WAIT];
    ret->undoing = client->in_duty[HF__DUTY_UNDO];
    if (away_since_ns != 0)
        ret->store_away_ms = 1 + (hf__now_ns(client->env) - away_since_ns) / HF__NS_PER_MS;
}

int hf_metrics_read(hf_client *client, hf_metrics *ret_metrics, hf_error *err)
{
    struct hf__visit visit;
    hf_metrics now;

    if (ret_metrics == NULL)
        return hf__fail(err, HF_INVALID, "there is no place for the counters");
    size_t size = ret_metrics->size;
    if (size < sizeof now || size > 8 * sizeof now)
        return hf__fail(err, HF_INVALID, "set size to sizeof(hf_metrics)");
    int r = hf__enter_locked(client, &visit, err);
    if (r < 0)
        return r;
    if (client->meter == NULL) {
        r = hf__fail(err, HF_INVALID, "nothing is counted: open the client with metrics = 1");
    } else {
        read_words(client->meter, &now);
        read_moment(client, &now);
        now.size = size;
        memset(ret_metrics, 0, size);
        memcpy(ret_metrics, &now, sizeof now);
    }
    hf__leave_unlock(client, &visit);
    return r;
}
