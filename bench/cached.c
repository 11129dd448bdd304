/* cached URL [ROUNDS]: what a cached lock costs beside one that is not (C20), both in turns in one run, as medians of the
 * rounds:
 *
 *   pair       acquire and release, and nobody else wants it
 *   hand-over  not cached: from the release until the next in the queue has it. Cached: from the call of whoever wants it
 *              until it has what another client keeps without using it
 *   ping-pong  an acquire and release of each of two clients that both want it all the time */
#include <holdfast.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define PAIRS        200 /* of a round; the first of them asks the store */
#define PING_PONG_US 300000.0
#define MOST         1000

static hf_client *clients[2];
static char names[MOST][24];

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

static hf_lock *take(int who, const char *name, int cached)
{
    hf_options opt = HF_OPTIONS_INIT;
    hf_lock *lock;
    hf_error err;

    opt.cached = cached;
    opt.owner = (uint64_t)who + 1;
    if (hf_acquire(clients[who], name, HF_NTS, &opt, &lock, &err) == HF_OK)
        return lock;
    fprintf(stderr, "%s\n", err.text);
    exit(1);
}

static void turn(int who, const char *name, int cached)
{
    hf_lock_release(take(who, name, cached), NULL);
}

/* Each takes a microsecond of the store's clock for its token: who has just come waits for that, so they
 * are let come after some have passed. */
static double pair(int cached, int round)
{
    turn(0, names[round], cached);
    pause_ms(1);
    double start = now_us();
    for (int i = 0; i < PAIRS; i++)
        turn(0, names[round], cached);
    return (now_us() - start) / PAIRS;
}

static double idle_hand_over(int round)
{
    turn(0, names[round], 1);
    double start = now_us();
    hf_lock *lock = take(1, names[round], 0);
    double got = now_us();
    hf_lock_release(lock, NULL);
    return got - start;
}

static double got_us;

static void *wait_for_it(void *name)
{
    hf_lock *lock = take(1, name, 0);
    got_us = now_us();
    hf_lock_release(lock, NULL);
    return NULL;
}

static double plain_hand_over(int round)
{
    hf_lock *lock = take(0, names[round], 0);
    pthread_t thread;

    pthread_create(&thread, NULL, wait_for_it, names[round]);
    pause_ms(20); /* it waits by then; if not, the figure is too small */
    double start = now_us();
    hf_lock_release(lock, NULL);
    pthread_join(thread, NULL);
    return got_us - start;
}

static double hand_over(int cached, int round)
{
    return cached ? idle_hand_over(round) : plain_hand_over(round);
}

struct player {
    int who, cached, turns;
    const char *name;
};

static void *play(void *arg)
{
    struct player *p = arg;

    for (double end = now_us() + PING_PONG_US; now_us() < end; p->turns++)
        turn(p->who, p->name, p->cached);
    return NULL;
}

static double ping_pong(int cached, int round)
{
    struct player players[2] = {{0, cached, 0, names[round]}, {1, cached, 0, names[round]}};
    pthread_t thread;
    double start = now_us();

    pthread_create(&thread, NULL, play, &players[0]);
    play(&players[1]);
    pthread_join(thread, NULL);
    return (now_us() - start) / (players[0].turns + players[1].turns);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(const char *what, double (*once)(int cached, int round), int rounds)
{
    static double found[2][MOST];
    static int number;

    for (int round = 0; round < rounds; round++) {
        for (int cached = 0; cached < 2;
             cached++) { /* a name of its own: what is called back is not cached */
            snprintf(names[round], sizeof names[round], "cached%d", ++number);
            found[cached][round] = once(cached, round);
        }
    }
    for (int cached = 0; cached < 2; cached++)
        qsort(found[cached], (size_t)rounds, sizeof(double), compare);
    double plain_us = found[0][rounds / 2], cached_us = found[1][rounds / 2];
    printf("%-10s %10.2f us %10.2f us cached  x %.3f\n", what, plain_us, cached_us,
           cached_us / plain_us);
}

int main(int argc, char **argv)
{
    int rounds = argc > 2 ? atoi(argv[2]) : 101;
    hf_error err;

    for (int i = 0; i < 2; i++) {
        if (argc < 2 || rounds < 1 || rounds > MOST ||
            hf_open(argv[1], NULL, &clients[i], &err) != HF_OK)
            return fprintf(stderr, "cached URL [ROUNDS]\n"), 64;
    }
    measure("pair", pair, rounds);
    measure("hand-over", hand_over, rounds);
    measure("ping-pong", ping_pong, rounds < 21 ? rounds : 21);
    hf_close(clients[0]);
    hf_close(clients[1]);
    return 0;
}
