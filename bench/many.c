/* Very many held leases in one client: what each costs in memory, and whether one keeper keeps them
 * all alive.
 *
 *     many URL COUNT TTL_MS SECONDS [shared]    each of a lock of its own, or all of one that they share */
#include <holdfast.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bench.h"

static double allocated_bytes(void)
{
    struct mallinfo2 info = mallinfo2();
    return (double)info.uordblks + (double)info.hblkhd;
}

static double cpu_seconds(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6;
}

static void take_all(hf_client *client, hf_lock **locks, size_t count, hf_options opt)
{
    hf_error err;
    char name[32];

    for (size_t i = 0; i < count; i++) {
        snprintf(name, sizeof name, "lock/%zu", opt.mode == HF_SHARED ? 0 : i);
        opt.owner = i + 1;
        BENCH_MUST(hf_acquire(client, name, HF_NTS, &opt, &locks[i], &err) == HF_OK, "%s",
                   err.text);
    }
}

static size_t count_lost(hf_lock **locks, size_t count)
{
    size_t lost = 0;
    for (size_t i = 0; i < count; i++)
        lost += hf_lock_state(locks[i]) == HF_STATE_LOST;
    return lost;
}

int main(int argc, char **argv)
{
    BENCH_MUST(argc == 5 || argc == 6, "usage: many URL COUNT TTL_MS SECONDS [shared]");
    size_t count = strtoul(argv[2], NULL, 10);
    unsigned seconds = (unsigned)strtoul(argv[4], NULL, 10);
    hf_lock **locks = calloc(count, sizeof *locks);
    hf_options opt = HF_OPTIONS_INIT;
    hf_client *client;
    hf_lock *first;
    hf_error err;

    opt.ttl_ms = strtoll(argv[3], NULL, 10);
    opt.mode = argc == 6 ? HF_SHARED : HF_EXCLUSIVE;
    BENCH_MUST(locks != NULL, "out of memory");
    BENCH_MUST(hf_open(argv[1], NULL, &client, &err) == HF_OK, "%s", err.text);
    BENCH_MUST(hf_acquire(client, "first", HF_NTS, NULL, &first, &err) == HF_OK, "%s", err.text);

    double before = allocated_bytes();
    int64_t start = bench_now_ns();
    take_all(client, locks, count, opt);
    bench_print("many: acquire", (double)(bench_now_ns() - start) / (double)count / 1e3, "us");
    bench_print("many: memory per held lock", (allocated_bytes() - before) / (double)count,
                "bytes");

    double cpu = cpu_seconds();
    sleep(seconds);
    bench_print("many: keeper", (cpu_seconds() - cpu) / seconds * 100, "% of a core");
    bench_print("many: locks", (double)count, "");
    bench_print("many: lost", (double)count_lost(locks, count), "");

    start = bench_now_ns();
    for (size_t i = 0; i < count; i++)
        hf_lock_release(locks[i], NULL);
    bench_print("many: release", (double)(bench_now_ns() - start) / (double)count / 1e3, "us");
    hf_lock_release(first, NULL);
    hf_close(client);
    free(locks);
    return 0;
}
