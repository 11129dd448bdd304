/* Many readers or one writer. A writer that waits stops the readers who come after it, so neither
 * side starves.
 *
 *     ./readers_writers [URL]
 *
 * Threads stand for programs here. They share one client, and each has its own lock handle. */
#include <holdfast.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

static hf_client *client;
static atomic_int reading, writing, broken;
static int page; /* guarded by the lock named "page" */

static void *use(void *arg)
{
    int is_writer = arg != NULL;
    hf_options opt = HF_OPTIONS_INIT;
    opt.mode = is_writer ? HF_EXCLUSIVE : HF_SHARED;

    for (int i = 0; i < 10; i++) {
        hf_lock *lock;
        hf_error err;
        if (hf_acquire(client, "page", HF_NTS, &opt, &lock, &err) != HF_OK) {
            fprintf(stderr, "%s\n", err.text);
            atomic_store(&broken, 1);
            return NULL;
        }
        atomic_fetch_add(is_writer ? &writing : &reading, 1);
        if (atomic_load(&writing) > (is_writer ? 1 : 0) || (is_writer && atomic_load(&reading)))
            atomic_store(&broken, 1);
        if (is_writer)
            page++;
        atomic_fetch_sub(is_writer ? &writing : &reading, 1);
        if (hf_lock_release(lock, &err) != HF_OK)
            fprintf(stderr, "%s\n", err.text);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[6];
    hf_error err;

    if (hf_open(argc > 1 ? argv[1] : NULL, NULL, &client, &err) != HF_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    for (int i = 0; i < 6; i++) /* two of them write */
        if (pthread_create(&threads[i], NULL, use, i % 3 == 0 ? &page : NULL) != 0)
            return 1;
    for (int i = 0; i < 6; i++)
        pthread_join(threads[i], NULL);
    hf_close(client);
    printf("page %d\n", page);
    return page == 20 && !broken ? 0 : 1;
}
