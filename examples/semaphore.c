/* A counting semaphore: at most three at a time may use the licence server.
 *
 *     ./semaphore [URL]
 *
 * It is a shared lock with a limit. The smallest limit among those inside counts, so everybody
 * should ask with the same one. Grants with a limit have tokens, but no order that a gate could
 * use. */
#include <holdfast.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <threads.h>

enum { SEATS = 3, WORKERS = 8 };

static hf_client *client;
static atomic_int seated, most, failed;

static void *worker(void *arg)
{
    hf_options opt = HF_OPTIONS_INIT;
    hf_lock *seat;
    hf_error err;

    opt.mode = HF_SHARED;
    opt.limit = SEATS;
    if (hf_acquire(client, "licences/cad", HF_NTS, &opt, &seat, &err) != HF_OK) {
        fprintf(stderr, "%s\n", err.text);
        atomic_store(&failed, 1);
        return arg;
    }
    int now = atomic_fetch_add(&seated, 1) + 1, seen = atomic_load(&most);
    while (now > seen && !atomic_compare_exchange_weak(&most, &seen, now))
        ;
    thrd_sleep(&(struct timespec){.tv_nsec = 20000000}, NULL); /* the work */
    atomic_fetch_sub(&seated, 1);
    if (hf_lock_release(seat, &err) != HF_OK)
        fprintf(stderr, "%s\n", err.text);
    return arg;
}

int main(int argc, char **argv)
{
    pthread_t threads[WORKERS];
    hf_error err;

    if (hf_open(argc > 1 ? argv[1] : NULL, NULL, &client, &err) != HF_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    for (int i = 0; i < WORKERS; i++)
        if (pthread_create(&threads[i], NULL, worker, NULL) != 0)
            return 1;
    for (int i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    hf_close(client);
    printf("%d workers, at most %d of %d seats taken\n", WORKERS, most, SEATS);
    return most <= SEATS && !failed ? 0 : 1;
}
