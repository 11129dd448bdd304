/* Very many bids of one process that wait and have no thread each: what one costs in memory, and how many threads
 * there are in all. Then all are withdrawn.
 *
 *     bids URL COUNT LOCKS    COUNT bids for LOCKS locks, which another client holds */
#include <holdfast.h>
#include <malloc.h>
#include <string.h>

#include "bench.h"

#define PATIENCE_NS (INT64_C(1800) * 1000000000)

static double allocated_bytes(void)
{
    struct mallinfo2 info = mallinfo2();
    return (double)info.uordblks + (double)info.hblkhd;
}

static hf_client *open_client(const char *url)
{
    hf_client *client;
    hf_error err;

    BENCH_MUST(hf_open(url, NULL, &client, &err) == HF_OK, "%s", err.text);
    return client;
}

static const char *name_of(size_t i, char name[32])
{
    snprintf(name, 32, "bids/%zu", i);
    return name;
}

static int threads(void)
{
    char line[128];
    int found = 0;
    FILE *file = fopen("/proc/self/status", "re");

    BENCH_MUST(file != NULL, "there is no /proc/self/status");
    while (fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "Threads:", 8) == 0)
            found = (int)strtol(line + 8, NULL, 10);
    fclose(file);
    return found;
}

static void start_all(hf_client *client, size_t count, size_t locks)
{
    hf_options opt = HF_OPTIONS_INIT;
    hf_error err;
    char name[32];

    for (size_t i = 0; i < count; i++)
        BENCH_MUST(hf_acquire_start(client, name_of(i % locks, name), HF_NTS, &opt, i + 1, &err) ==
                       HF_OK,
                   "%s", err.text);
}

/* Until the store knows them all: the one who holds, and the others. */
static void await_queue(hf_client *client, size_t count, size_t locks)
{
    int64_t end = bench_now_ns() + PATIENCE_NS;
    hf_query query = {.size = sizeof query, .name_len = HF_NTS};
    hf_error err;
    hf_view *view;
    char name[32];

    for (size_t i = 0; i < locks; i++) {
        size_t expected = 1 + count / locks + (i < count % locks), there;
        query.name = name_of(i, name);
        do {
            BENCH_MUST(hf_inspect(client, &query, &view, &err) == HF_OK, "%s", err.text);
            there = hf_view_count(view);
            hf_view_free(view);
            BENCH_MUST(bench_now_ns() < end, "%s: %zu of %zu came", name, there, expected);
            if (there < expected) /* to look all the time would keep the store from them */
                nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
        } while (there < expected);
    }
}

static void withdraw_all(hf_client *client, size_t count)
{
    hf_event event = {.size = sizeof event};

    for (size_t i = 0; i < count; i++)
        hf_acquire_stop(client, i + 1);
    for (size_t i = 0; i < count; i++) {
        int r = hf_event_next(client, PATIENCE_NS / 1000000, &event);
        BENCH_MUST(r == HF_OK && event.err.code == HF_CANCELLED, "%s",
                   r == HF_OK ? event.err.text : hf_code_text(r));
    }
}

int main(int argc, char **argv)
{
    BENCH_MUST(argc == 4, "usage: bids URL COUNT LOCKS");
    size_t count = strtoul(argv[2], NULL, 10), locks = strtoul(argv[3], NULL, 10);
    hf_client *holder = open_client(argv[1]), *bidder = open_client(argv[1]);
    hf_lock *held;
    hf_error err;
    char name[32];

    for (size_t i = 0; i < locks; i++)
        BENCH_MUST(hf_acquire(holder, name_of(i, name), HF_NTS, NULL, &held, &err) == HF_OK, "%s",
                   err.text);
    start_all(bidder, 1, 1); /* what a first bid brings about is none's own */
    await_queue(holder, 1, 1);
    withdraw_all(bidder, 1);

    double before = allocated_bytes();
    int64_t start = bench_now_ns();
    start_all(bidder, count, locks);
    await_queue(holder, count, locks);
    bench_print("bids: until all wait, each",
                (double)(bench_now_ns() - start) / (double)count / 1e3, "us");
    bench_print("bids: memory of one", (allocated_bytes() - before) / (double)count, "bytes");
    bench_print("bids: threads", threads(), "");
    start = bench_now_ns();
    withdraw_all(bidder, count);
    bench_print("bids: until all are withdrawn, each",
                (double)(bench_now_ns() - start) / (double)count / 1e3, "us");
    hf_close(bidder);
    hf_close(holder);
    return 0;
}
