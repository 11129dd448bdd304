/* holdfast on zookeeper:, against the bare calls that the recipe needs, on the same server.
 *
 *     zookeeper URL ROUNDS PAIRS
 *
 * Pair: acquire and release, against create, children and delete. Hand-over: a queue of waiters
 * that each release at once; from the call of hf_lock_release() to the return of the next
 * hf_acquire(), against a bare deletion until its watch is delivered. With the fair lock for
 * several lengths of the queue, and with the simple one beside it. */
#define THREADED
#include <holdfast.h>
#include <pthread.h>
#include <string.h>
#include <zookeeper/zookeeper.h>

#include "bench.h"

#define HANDOVERS  100   /* of the floor, a round */
#define CLIENTS    4     /* among which the waiters are */
#define DEFAULT_MS 30000 /* the ttl of whoever names none: longer than a waiter's own lease */

static void say_nothing(const char *message)
{
    (void)message;
}

/* By the URL's user, with the same rights on the nodes as the store gives. */
static zhandle_t *connect_bare(const char *url)
{
    char user[100], hosts[500];
    const char *from = url + strlen("zookeeper://"), *at = strchr(from, '@');

    BENCH_MUST(at != NULL, "the URL has no user");
    snprintf(user, sizeof user, "%.*s", (int)(at - from), from);
    snprintf(hosts, sizeof hosts, "%.*s", (int)strcspn(at + 1, "/"), at + 1);
    zhandle_t *zh = zookeeper_init2(hosts, NULL, 30000, NULL, NULL, 0, say_nothing);
    BENCH_MUST(zh != NULL, "no handle");
    while (zoo_state(zh) != ZOO_CONNECTED_STATE)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    zoo_set_servers_resolution_delay(zh, -1); /* as the store does */
    BENCH_MUST(zoo_add_auth(zh, "digest", user, (int)strlen(user), NULL, NULL) == ZOK, "user");
    zoo_create(zh, "/bare", NULL, -1, &ZOO_CREATOR_ALL_ACL, 0, NULL, 0);
    return zh;
}

static void pair_ours(hf_client *client, int pairs)
{
    int64_t began = bench_now_ns();

    for (int i = 0; i < pairs; i++) {
        hf_lock *lock;
        hf_error err;
        BENCH_MUST(hf_acquire(client, "pair", HF_NTS, NULL, &lock, &err) == HF_OK, "%s", err.text);
        BENCH_MUST(hf_lock_release(lock, &err) == HF_OK, "%s", err.text);
    }
    bench_print("zookeeper pair: ours", (double)(bench_now_ns() - began) / pairs / 1e3, "us");
}

static void pair_floor(zhandle_t *zh, int pairs)
{
    static const char data[] = "the details of a holder, about as long as ours are: host and user "
                               "and program, its pid, a note, the ttl and the lock-delay, a ticket";
    int64_t began = bench_now_ns();

    for (int i = 0; i < pairs; i++) {
        char path[100];
        struct String_vector names;
        BENCH_MUST(zoo_create(zh, "/bare/_c_00112233-4455-6677-8899-aabbccddeeff-lock-", data,
                              (int)sizeof data, &ZOO_CREATOR_ALL_ACL, ZOO_EPHEMERAL_SEQUENTIAL,
                              path, sizeof path) == ZOK,
                   "create");
        BENCH_MUST(zoo_get_children(zh, "/bare", 0, &names) == ZOK, "children");
        deallocate_String_vector(&names);
        BENCH_MUST(zoo_delete(zh, path, -1) == ZOK, "delete");
    }
    bench_print("zookeeper pair: floor", (double)(bench_now_ns() - began) / pairs / 1e3, "us");
}

struct delivery {
    pthread_mutex_t mutex;
    pthread_cond_t came;
    int64_t at_ns;
};

static void on_event(zhandle_t *zh, int type, int state, const char *path, void *ctx)
{
    struct delivery *d = ctx;

    (void)zh, (void)state, (void)path;
    if (type == ZOO_SESSION_EVENT)
        return;
    pthread_mutex_lock(&d->mutex);
    d->at_ns = bench_now_ns();
    pthread_cond_signal(&d->came);
    pthread_mutex_unlock(&d->mutex);
}

static void print_median(const char *figure, int64_t *spans_ns, size_t count)
{
    bench_print(figure, bench_p50_us(spans_ns, count), "us");
}

static void handover_floor(zhandle_t *deletes, zhandle_t *watches)
{
    struct delivery d = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};
    int64_t spans[HANDOVERS];

    for (int i = 0; i < HANDOVERS; i++) {
        struct Stat stat;
        BENCH_MUST(zoo_create(deletes, "/bare/w", NULL, -1, &ZOO_CREATOR_ALL_ACL, ZOO_EPHEMERAL,
                              NULL, 0) == ZOK,
                   "create");
        d.at_ns = 0;
        BENCH_MUST(zoo_wexists(watches, "/bare/w", on_event, &d, &stat) == ZOK, "watch");
        int64_t began = bench_now_ns();
        BENCH_MUST(zoo_delete(deletes, "/bare/w", -1) == ZOK, "delete");
        pthread_mutex_lock(&d.mutex);
        while (d.at_ns == 0)
            pthread_cond_wait(&d.came, &d.mutex);
        pthread_mutex_unlock(&d.mutex);
        spans[i] = d.at_ns - began;
    }
    print_median("zookeeper hand-over: floor", spans, HANDOVERS);
}

struct waiter {
    hf_client *client;
    int64_t ttl_ms, got_ns, left_ns;
    pthread_t thread;
};

static void *pass_on(void *arg)
{
    struct waiter *w = arg;
    hf_options opt = HF_OPTIONS_INIT;
    hf_lock *lock;
    hf_error err;

    opt.ttl_ms = w->ttl_ms;
    opt.owner = (uint64_t)(uintptr_t)w;
    BENCH_MUST(hf_acquire(w->client, "queue", HF_NTS, &opt, &lock, &err) == HF_OK, "%s", err.text);
    w->got_ns = w->left_ns = bench_now_ns();
    BENCH_MUST(hf_lock_release(lock, &err) == HF_OK, "%s", err.text);
    return NULL;
}

/* Until all are there, and a few questions longer, in which the last ones set their watches: asking
 * keeps the processors awake, as the floor's loop does, where a pause would not. */
static void await_queue(hf_client *client, size_t count)
{
    hf_query query = {.size = sizeof query, .name = "queue", .name_len = HF_NTS};

    for (int more = 10; more > 0;) {
        hf_view *view;
        BENCH_MUST(hf_inspect(client, &query, &view, NULL) == HF_OK, "inspect");
        more -= hf_view_count(view) > count;
        hf_view_free(view);
    }
}

struct crowd {
    const char *lock; /* of the figure's name */
    hf_client *const *clients;
    size_t count;
    int64_t ttl_ms;
    int shown; /* its waiters can be seen in the store */
};

static int by_turn(const void *a, const void *b)
{
    return bench_compare(&((const struct waiter *)a)->got_ns, &((const struct waiter *)b)->got_ns);
}

/* All wait, then the lock goes from one to the next. Writes count spans. */
static void pass_through(const struct crowd *crowd, struct waiter *waiters, int64_t *spans_ns)
{
    hf_options opt = HF_OPTIONS_INIT;
    hf_lock *lock;

    opt.ttl_ms = crowd->ttl_ms;
    BENCH_MUST(hf_acquire(crowd->clients[0], "queue", HF_NTS, &opt, &lock, NULL) == HF_OK,
               "acquire");
    for (size_t i = 0; i < crowd->count; i++) {
        waiters[i] =
            (struct waiter){.client = crowd->clients[i % CLIENTS], .ttl_ms = crowd->ttl_ms};
        BENCH_MUST(pthread_create(&waiters[i].thread, NULL, pass_on, &waiters[i]) == 0, "thread");
    }
    if (crowd->shown)
        await_queue(crowd->clients[0], crowd->count);
    else /* the waiters of the simple lock have no node: they are given time */
        nanosleep(&(struct timespec){.tv_nsec = 400000000}, NULL);
    int64_t left_ns = bench_now_ns();
    BENCH_MUST(hf_lock_release(lock, NULL) == HF_OK, "release");
    for (size_t i = 0; i < crowd->count; i++)
        pthread_join(waiters[i].thread, NULL);
    qsort(waiters, crowd->count, sizeof *waiters, by_turn);
    for (size_t i = 0; i < crowd->count; i++) {
        spans_ns[i] = waiters[i].got_ns - left_ns;
        left_ns = waiters[i].left_ns;
    }
}

static void handover_ours(const struct crowd *crowd)
{
    size_t times = crowd->count < 20 && crowd->shown ? 20 / crowd->count : 1;
    struct waiter *waiters = calloc(crowd->count, sizeof *waiters);
    int64_t *spans_ns = calloc(times * crowd->count, sizeof *spans_ns);
    char figure[60];

    BENCH_MUST(waiters != NULL && spans_ns != NULL, "no memory");
    for (size_t i = 0; i < times; i++)
        pass_through(crowd, waiters, spans_ns + i * crowd->count);
    snprintf(figure, sizeof figure, "zookeeper hand-over: %s, %zu wait", crowd->lock, crowd->count);
    print_median(figure, spans_ns, times * crowd->count);
    free(spans_ns);
    free(waiters);
}

int main(int argc, char **argv)
{
    BENCH_MUST(argc == 4, "usage: zookeeper URL ROUNDS PAIRS");
    int rounds = (int)strtol(argv[2], NULL, 10), pairs = (int)strtol(argv[3], NULL, 10);
    zhandle_t *bare[2] = {connect_bare(argv[1]), connect_bare(argv[1])};
    hf_client *fair[CLIENTS], *simple[CLIENTS];
    const struct crowd crowds[] = {
        {"ours", fair, 2, DEFAULT_MS, 1},     {"ours", fair, 100, DEFAULT_MS, 1},
        {"ours", fair, 500, DEFAULT_MS, 1},   {"ttl of 10 s", fair, 2, 10000, 1},
        {"simple", simple, 2, DEFAULT_MS, 0}, {"simple", simple, 100, DEFAULT_MS, 0}};
    char url[600];
    hf_error err;

    snprintf(url, sizeof url, "%s?fair=no", argv[1]);
    for (int i = 0; i < CLIENTS; i++) {
        BENCH_MUST(hf_open(argv[1], NULL, &fair[i], &err) == HF_OK, "%s", err.text);
        BENCH_MUST(hf_open(url, NULL, &simple[i], &err) == HF_OK, "%s", err.text);
    }
    for (int i = 0; i < rounds; i++) {
        pair_ours(fair[0], pairs);
        pair_floor(bare[0], pairs);
        handover_floor(bare[0], bare[1]);
        for (size_t k = 0; k < sizeof crowds / sizeof crowds[0]; k++)
            handover_ours(&crowds[k]);
    }
    for (int i = 0; i < CLIENTS; i++) {
        hf_close(fair[i]);
        hf_close(simple[i]);
    }
    for (int i = 0; i < 2; i++)
        zookeeper_close(bare[i]);
    return 0;
}
