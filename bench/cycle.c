/* cycle URL COUNT: for each line on standard input, COUNT times acquire and release; prints the
 * microseconds of one. bench/bindings runs it beside the same programs in other languages. */
#include <holdfast.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

int main(int argc, char **argv)
{
    hf_client *client;
    hf_lock *lock;
    hf_error err;
    if (argc != 3 || hf_open(argv[1], NULL, &client, &err) != HF_OK)
        return 64;
    int count = atoi(argv[2]);
    while (getchar() == '\n') {
        double start = now_us();
        for (int i = 0; i < count; i++) {
            if (hf_acquire(client, "cycle", HF_NTS, NULL, &lock, &err) != HF_OK)
                return fprintf(stderr, "%s\n", err.text), 1;
            hf_lock_release(lock, NULL);
        }
        printf("%.3f\n", (now_us() - start) / count);
        fflush(stdout);
    }
    hf_close(client);
    return 0;
}
