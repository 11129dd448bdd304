/* See sql.h. */
#include "sql.h"

#include <pthread.h>

static hf_lock *take(hf_client *client, uint64_t owner)
{
    hf_options opt = HF_OPTIONS_INIT;
    hf_lock *lock;
    hf_error err;

    opt.owner = owner;
    BENCH_MUST(hf_acquire(client, "bench", HF_NTS, &opt, &lock, &err) == HF_OK, "%s", err.text);
    return lock;
}

static void release(hf_lock *lock)
{
    hf_error err;

    BENCH_MUST(hf_lock_release(lock, &err) == HF_OK, "%s", err.text);
}

hf_client *sql_open(const char *url)
{
    hf_client *client;
    hf_error err;

    BENCH_MUST(hf_open(url, NULL, &client, &err) == HF_OK, "%s", err.text);
    release(take(client, 1));
    return client;
}

static void print(const struct sql_bench *b, const char *figure, const char *whose, double us)
{
    char name[100];

    snprintf(name, sizeof name, "%s %s: %s, %s", b->store, b->label, figure, whose);
    bench_print(name, us, "us");
}

/* Ours and bare, each `count` times: whatever else the machine and its disk do meets both. */
struct turns {
    int64_t *ours, *bare;
    int count;
};

static struct turns turns_new(int count)
{
    struct turns t = {calloc((size_t)count, sizeof *t.ours), calloc((size_t)count, sizeof *t.bare),
                      count};

    BENCH_MUST(count > 0, "nothing to measure");
    BENCH_MUST(t.ours != NULL && t.bare != NULL, "no memory");
    return t;
}

static void turns_print(struct turns *t, const struct sql_bench *b, const char *figure)
{
    print(b, figure, "ours", bench_p50_us(t->ours, (size_t)t->count));
    print(b, figure, "bare", bench_p50_us(t->bare, (size_t)t->count));
    free(t->ours);
    free(t->bare);
}

void sql_pairs(const struct sql_bench *b, const struct sql_pair *pair, int count)
{
    struct turns t = turns_new(count);

    for (int i = 0; i < count; i++) {
        int64_t from = bench_now_ns();
        release(take(pair->client, 1));
        int64_t between = bench_now_ns();
        b->run(b->db, pair->take);
        b->run(b->db, pair->give);
        t.ours[i] = between - from;
        t.bare[i] = bench_now_ns() - between;
    }
    turns_print(&t, b, pair->figure);
}

/* Waiters that pass the lock on -------------------------------------------- */

struct waiter {
    pthread_t thread;
    hf_client *client;
    uint64_t owner;
    int64_t got_ns;
};

static void *wait_and_pass(void *arg)
{
    struct waiter *w = arg;
    hf_lock *lock = take(w->client, w->owner);

    w->got_ns = bench_now_ns();
    release(lock);
    return NULL;
}

/* From the first release to the last waiter's return. */
static int64_t chain(const struct sql_bench *b, int count)
{
    static struct waiter waiters[SQL_CROWD];
    hf_lock *lock = take(b->client, 1);
    int64_t last = 0;

    for (int i = 0; i < count; i++) {
        waiters[i].client = b->other;
        waiters[i].owner = (uint64_t)i + 2;
        pthread_create(&waiters[i].thread, NULL, wait_and_pass, &waiters[i]);
    }
    while (b->number(b->db, "SELECT count(*) FROM holdfast_waiter WHERE wake IS NOT NULL") != count)
        continue;
    int64_t from = bench_now_ns();
    release(lock);
    for (int i = 0; i < count; i++) {
        pthread_join(waiters[i].thread, NULL);
        last = waiters[i].got_ns > last ? waiters[i].got_ns : last;
    }
    return last - from;
}

void sql_handovers(const struct sql_bench *b, int count)
{
    struct turns t = turns_new(count);

    for (int i = 0; i < count; i++) {
        t.ours[i] = chain(b, 1);
        t.bare[i] = b->wake_once(b->db, b->ear);
    }
    turns_print(&t, b, "hand-over");
    print(b, "chain of 2", "each", (double)chain(b, 2) / 2 / 1e3);
    print(b, "chain of 200", "each", (double)chain(b, SQL_CROWD) / SQL_CROWD / 1e3);
}
