/* Hand-overs that race with all else that can happen to those who take part: an announcement that
 * comes late, a lease that ends, a waiter that leaves, one that was taken for dead. Each many times, and
 * each with a witness of its own: at no moment do two believe that they hold the lock, and tokens rise
 * in the order in which they are held. */
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "etcd/live.h"
#include "lib/proxy.h"

#define RACERS     9
#define LINES      8 /* of three racers, side by side */
#define PATIENCE_S 60

/* Who believes that it is inside. */
struct witness {
    pthread_mutex_t mutex;
    hf_lock *inside[RACERS];
    uint64_t last;
    int overlaps, steps_back, turns;
};

static void witness_init(struct witness *w)
{
    *w = (struct witness){.mutex = PTHREAD_MUTEX_INITIALIZER};
}

/* Whoever is lost by its own clock does not count, nor does one that is when it gets it. */
static void witness_enter(struct witness *w, size_t who, hf_lock *lock)
{
    uint64_t generation = 0;

    pthread_mutex_lock(&w->mutex);
    hf_lock_generation(lock, &generation);
    for (size_t i = 0; i < RACERS; i++) {
        if (w->inside[i] != NULL && hf_lock_state(w->inside[i]) != HF_STATE_LOST)
            w->overlaps++;
    }
    if (hf_lock_state(lock) != HF_STATE_LOST) {
        w->steps_back += generation <= w->last;
        if (generation > w->last)
            w->last = generation;
    }
    w->inside[who] = lock;
    w->turns++;
    pthread_mutex_unlock(&w->mutex);
}

static void witness_leave(struct witness *w, size_t who)
{
    pthread_mutex_lock(&w->mutex);
    w->inside[who] = NULL;
    pthread_mutex_unlock(&w->mutex);
}

static int has_turned(void *arg)
{
    struct witness *w = arg;

    pthread_mutex_lock(&w->mutex);
    bool turned = w->turns > 20;
    pthread_mutex_unlock(&w->mutex);
    return turned;
}

static void witness_check(const struct witness *w)
{
    assert_int_equal(w->overlaps, 0);
    assert_int_equal(w->steps_back, 0);
}

/* An acquire on a thread of its own, before a witness. */
struct racer {
    struct witness *witness;
    size_t number;
    hf_client *client;
    const char *name;
    int64_t ttl_ms, wait_ms;
    hf_cancel *cancel;
    useconds_t holds_us; /* then releases */
    atomic_bool stays;   /* not before this ends */
    pthread_t thread;
    atomic_bool got;
    int code, end; /* of acquire and release */
    hf_error err;
};

static int hold(struct racer *r)
{
    hf_options opt = HF_OPTIONS_INIT;
    hf_lock *lock = NULL;

    opt.ttl_ms = r->ttl_ms;
    opt.wait_ms = r->wait_ms != 0 ? r->wait_ms : HF_FOREVER;
    opt.owner = r->number + 1;
    opt.cancel = r->cancel;
    r->code = hf_acquire(r->client, r->name, HF_NTS, &opt, &lock, &r->err);
    if (r->code != HF_OK)
        return r->code;
    witness_enter(r->witness, r->number, lock);
    atomic_store(&r->got, true);
    usleep(r->holds_us);
    while (atomic_load(&r->stays))
        usleep(500);
    witness_leave(r->witness, r->number);
    r->end = hf_lock_release(lock, NULL);
    return r->code;
}

static void *race(void *arg)
{
    hold(arg);
    return NULL;
}

static void start(struct racer *r)
{
    assert_int_equal(pthread_create(&r->thread, NULL, race, r), 0);
}

static void await_got(struct racer *r)
{
    int64_t until_ms = now_ms() + PATIENCE_S * 1000;

    while (!atomic_load(&r->got) && now_ms() < until_ms)
        usleep(1000);
    assert_true(atomic_load(&r->got));
}

/* Three in a line, each with a client of its own; the first holds. --------------------------------- */
struct race {
    struct witness witness;
    struct proxy *proxy; /* of one of them */
    char name[16];
    struct racer racers[3];
};

/* Those of `ttl_ms`; the one with the proxy is `apart`. */
static void race_open(struct race *line, const char *name, int64_t ttl_ms, size_t apart)
{
    witness_init(&line->witness);
    snprintf(line->name, sizeof line->name, "%s", name);
    line->proxy = proxy_start(server_address());
    assert_non_null(line->proxy);
    for (size_t i = 0; i < 3; i++)
        line->racers[i] = (struct racer){
            .witness = &line->witness,
            .number = i,
            .name = line->name,
            .ttl_ms = ttl_ms,
            .client = open_url(url_of(i == apart ? proxy_port(line->proxy) : 0, "op_timeout=20s"))};
}

static void race_line_up(struct race *line)
{
    start(&line->racers[0]);
    await_got(&line->racers[0]);
    for (size_t i = 1; i < 3; i++) {
        start(&line->racers[i]);
        await_waiting(line->racers[2].client, line->name, i);
    }
}

static void race_close(struct race *line)
{
    char root[64];

    for (size_t i = 0; i < 3; i++)
        hf_close(line->racers[i].client);
    proxy_stop(line->proxy);
    witness_check(&line->witness);
    snprintf(root, sizeof root, "test/%s/", line->name);
    assert_int_equal(count_keys(root), 0);
}

/* The first one passes again after so long, and each of the others so much later. */
static void pass_in_turn(struct race lines[LINES], int64_t first_ms, int64_t later_ms)
{
    int64_t began_ms = now_ms();

    for (size_t i = 0; i < LINES; i++) {
        int64_t left_ms = began_ms + first_ms + later_ms * (int64_t)i - now_ms();
        if (left_ms > 0)
            usleep((useconds_t)left_ms * 1000);
        proxy_set(lines[i].proxy, PROXY_PASS, 0);
    }
}

/* The two who waited have got it, whatever became of the first. */
static void line_end(struct race *line)
{
    for (size_t i = 0; i < 3; i++)
        pthread_join(line->racers[i].thread, NULL);
    assert_int_equal(line->racers[1].code, HF_OK);
    assert_int_equal(line->racers[2].code, HF_OK);
    race_close(line);
}

/* What the next one says is on its way while the holder leaves, and arrives when that one stands in
 * line again, on the same lease. */
static void c1_announcement_that_comes_late_lets_in_nobody(void **state)
{
    struct race line;
    (void)state;

    race_open(&line, "late", HF_TTL_DEFAULT_MS, 1);
    for (int round = 0; round < 12; round++) {
        struct racer *a = &line.racers[0], *b = &line.racers[1], *c = &line.racers[2];
        struct racer again = {0};
        for (size_t i = 0; i < 3; i++)
            atomic_store(&line.racers[i].got, false);
        a->holds_us = (useconds_t)(round % 4) * 40000 + 60000;
        b->holds_us = 150000;
        proxy_set(line.proxy, PROXY_DELAY, 15);
        atomic_store(&a->stays, true); /* if the next one takes longer than that to come */
        start(a);
        await_got(a);
        start(b);
        await_waiting(a->client, line.name, 1);
        if (round % 2)
            proxy_set(line.proxy, PROXY_C2S_HOLE, 0); /* held back; what is asked anew passes */
        atomic_store(&a->stays, false);
        pthread_join(a->thread, NULL);
        again = *a;
        atomic_store(&again.got, false);
        start(&again);
        usleep(20000);
        start(c);
        usleep((useconds_t)(round % 3) * 30000);
        proxy_set(line.proxy, PROXY_PASS, 0);
        pthread_join(b->thread, NULL);
        pthread_join(again.thread, NULL);
        pthread_join(c->thread, NULL);
        assert_int_equal(b->code, HF_OK);
        assert_int_equal(again.code, HF_OK);
        assert_int_equal(c->code, HF_OK);
        assert_int_equal(a->end, HF_OK);
        assert_int_equal(again.end, HF_OK);
        witness_check(&line.witness);
    }
    race_close(&line);
}

/* The holder gives the lock back in time, but that arrives when its lease ends: a moment before, at the
 * same time, or when the next one has entered by itself. */
static void c1_lease_that_ends_around_a_hand_over_lets_in_one(void **state)
{
    struct race lines[LINES];
    char name[16];
    (void)state;

    for (size_t i = 0; i < LINES; i++) {
        snprintf(name, sizeof name, "lease %zu", i);
        race_open(&lines[i], name, 1000, 0);
        lines[i].racers[0].holds_us = 400000;
        lines[i].racers[1].holds_us = lines[i].racers[2].holds_us = 600000;
    }
    for (size_t i = 0; i < LINES; i++)
        race_line_up(&lines[i]);
    for (size_t i = 0; i < LINES; i++)
        proxy_set(lines[i].proxy, PROXY_C2S_HOLE, 0);
    pass_in_turn(lines, 900, 250);
    for (size_t i = 0; i < LINES; i++)
        line_end(&lines[i]);
}

struct moment {
    pthread_barrier_t *barrier;
    hf_cancel *cancel;
    useconds_t skew_us;
};

static void *cancel_at(void *arg)
{
    struct moment *m = arg;

    pthread_barrier_wait(m->barrier);
    usleep(m->skew_us);
    hf_cancel_fire(m->cancel);
    return NULL;
}

/* Whoever it is that the lock is handed to, the one behind gets it when both are gone. */
static void c5_holder_and_next_that_leave_together_leave_nothing(void **state)
{
    struct race line;
    int got = 0;
    (void)state;

    race_open(&line, "together", HF_TTL_DEFAULT_MS, 1);
    for (int round = 0; round < 40; round++) {
        struct racer *b = &line.racers[1], *c = &line.racers[2];
        pthread_barrier_t barrier;
        hf_lock *held;
        hf_error err;
        struct moment moment = {.barrier = &barrier, .skew_us = (useconds_t)(round % 8) * 400};
        pthread_t thread;
        assert_int_equal(hf_cancel_new(&moment.cancel), 0);
        pthread_barrier_init(&barrier, NULL, 2);
        atomic_store(&c->got, false);
        b->cancel = moment.cancel;
        held = take_free(line.racers[0].client, line.name, HF_TTL_DEFAULT_MS);
        start(b);
        await_waiting(c->client, line.name, 1);
        start(c);
        await_waiting(c->client, line.name, 2);
        assert_int_equal(pthread_create(&thread, NULL, cancel_at, &moment), 0);
        pthread_barrier_wait(&barrier);
        assert_int_equal(hf_lock_release(held, &err), HF_OK);
        pthread_join(thread, NULL);
        pthread_join(b->thread, NULL);
        pthread_join(c->thread, NULL);
        assert_true(b->code == HF_OK || b->code == HF_CANCELLED);
        got += b->code == HF_OK;
        assert_int_equal(c->code, HF_OK);
        assert_int_equal(count_keys("test/together/"), 0);
        assert_int_equal(count_keys("test/.holdfast/inside/together/"), 0);
        pthread_barrier_destroy(&barrier);
        hf_cancel_free(moment.cancel);
    }
    print_message("it was handed the lock in %d of 40\n", got);
    race_close(&line);
}

/* The next one is cut off for longer than a waiter may be silent, and comes back: before the holder
 * leaves, at the same time, or when it was handed the lock and that was taken away from it. */
static void c1_next_that_was_taken_for_dead_does_not_hold(void **state)
{
    struct race lines[LINES];
    char name[16];
    (void)state;

    for (size_t i = 0; i < LINES; i++) {
        snprintf(name, sizeof name, "dead %zu", i);
        race_open(&lines[i], name, 1000, 1);
        lines[i].racers[0].holds_us = (useconds_t)(i + 1) * 700000;
        lines[i].racers[1].holds_us = lines[i].racers[2].holds_us = 900000;
    }
    for (size_t i = 0; i < LINES; i++) {
        race_line_up(&lines[i]);
        proxy_set(lines[i].proxy, PROXY_HOLE, 0);
    }
    pass_in_turn(lines, 3500, 200);
    for (size_t i = 0; i < LINES; i++)
        line_end(&lines[i]);
}

/* It hears that it was let in when that has been taken away from it again. */
static void c1_next_that_hears_of_its_turn_too_late_does_not_hold(void **state)
{
    struct race lines[LINES];
    char name[16];
    (void)state;

    for (size_t i = 0; i < LINES; i++) {
        snprintf(name, sizeof name, "hears %zu", i);
        race_open(&lines[i], name, 3000, 1);
        atomic_store(&lines[i].racers[0].stays, true);
        lines[i].racers[1].holds_us = lines[i].racers[2].holds_us = 2000000;
        race_line_up(&lines[i]);
    }
    await_watchers(2 * LINES);
    for (size_t i = 0; i < LINES; i++) {
        proxy_set(lines[i].proxy, PROXY_DELAY, 2700 + 200 * (int64_t)i);
        atomic_store(&lines[i].racers[0].stays, false);
    }
    pass_in_turn(lines, 8000, 0);
    for (size_t i = 0; i < LINES; i++)
        line_end(&lines[i]);
}

/* All at once, for a while. -------------------------------------------------------------------------- */
struct melee {
    struct witness witness;
    atomic_bool over;
    hf_client *clients[3];
    struct proxy *proxies[3];
};

struct fighter {
    struct melee *melee;
    struct racer racer;
    unsigned seed;
    pthread_t thread;
};

static void *fight(void *arg)
{
    struct fighter *f = arg;

    while (!atomic_load(&f->melee->over)) {
        f->racer.ttl_ms = 1000;
        f->racer.wait_ms = rand_r(&f->seed) % 2 ? 5000 : 100 + rand_r(&f->seed) % 1500;
        f->racer.holds_us = (useconds_t)(rand_r(&f->seed) % 30000);
        if (rand_r(&f->seed) % 16 == 0)
            f->racer.holds_us += 700000;
        hold(&f->racer);
    }
    return NULL;
}

static void c1_no_two_hold_however_bad_the_lines_are(void **state)
{
    static const enum proxy_mode modes[] = {
        PROXY_PASS, PROXY_DELAY, PROXY_PASS, PROXY_C2S_HOLE, PROXY_S2C_HOLE,
        PROXY_RST,  PROXY_PASS,  PROXY_HOLE, PROXY_DELAY,    PROXY_C2S_HOLE};
    struct melee melee = {0};
    struct fighter fighters[RACERS];
    unsigned seed = (unsigned)now_ms();
    (void)state;

    print_message("seed %u\n", seed);
    witness_init(&melee.witness);
    for (size_t i = 0; i < 3; i++) {
        melee.proxies[i] = proxy_start(server_address());
        assert_non_null(melee.proxies[i]);
        melee.clients[i] = open_url(url_of(proxy_port(melee.proxies[i]), "op_timeout=2s"));
    }
    for (size_t i = 0; i < RACERS; i++) {
        fighters[i] = (struct fighter){.melee = &melee, .seed = seed + (unsigned)i};
        fighters[i].racer = (struct racer){.witness = &melee.witness,
                                           .number = i,
                                           .name = "melee",
                                           .client = melee.clients[i % 3]};
        assert_int_equal(pthread_create(&fighters[i].thread, NULL, fight, &fighters[i]), 0);
    }
    for (int64_t until_ms = now_ms() + 20000; now_ms() < until_ms;) {
        struct proxy *proxy = melee.proxies[rand_r(&seed) % 3];
        enum proxy_mode mode = modes[(unsigned)rand_r(&seed) % COUNT(modes)];
        proxy_set(proxy, mode, mode == PROXY_DELAY ? rand_r(&seed) % 100 : 0);
        usleep((useconds_t)(rand_r(&seed) % 800) * 1000);
    }
    for (size_t i = 0; i < 3; i++)
        proxy_set(melee.proxies[i], PROXY_PASS, 0);
    await("turns in peace", has_turned, &melee.witness);
    atomic_store(&melee.over, true);
    for (size_t i = 0; i < RACERS; i++)
        pthread_join(fighters[i].thread, NULL);
    for (size_t i = 0; i < 3; i++) {
        hf_close(melee.clients[i]);
        proxy_stop(melee.proxies[i]);
    }
    print_message("%d turns\n", melee.witness.turns);
    witness_check(&melee.witness);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c1_announcement_that_comes_late_lets_in_nobody),
        cmocka_unit_test(c1_lease_that_ends_around_a_hand_over_lets_in_one),
        cmocka_unit_test(c5_holder_and_next_that_leave_together_leave_nothing),
        cmocka_unit_test(c1_next_that_was_taken_for_dead_does_not_hold),
        cmocka_unit_test(c1_next_that_hears_of_its_turn_too_late_does_not_hold),
        cmocka_unit_test(c1_no_two_hold_however_bad_the_lines_are),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
