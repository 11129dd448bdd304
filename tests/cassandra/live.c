/* See live.h. */
#include "cassandra/live.h"

#include <poll.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static __thread hf_error last;

hf_client *open_at(const char *hosts, const char *options)
{
    char url[600];
    hf_client *client = NULL;

    if (hosts == NULL)
        hosts = getenv("HOLDFAST_TEST_CASSANDRA");
    assert_non_null(hosts);
    snprintf(url, sizeof url, "cassandra://%s/holdfast?%s", hosts, options);
    if (options[0] == '\0')
        url[strlen(url) - 1] = '\0';
    check_code(hf_open(url, NULL, &client, &last), HF_OK);
    return client;
}

/* nodes -------------------------------------------------------------------------------------------
 */

const char *node_address(int node)
{
    static char addresses[4][40];
    const char *all = getenv("HOLDFAST_TEST_CASSANDRA");

    assert_true(node >= 1 && node <= 3 && all != NULL);
    for (int i = 1; i < node; i++) {
        all = strchr(all, ',');
        assert_non_null(all);
        all++;
    }
    snprintf(addresses[node], sizeof addresses[node], "%.*s", (int)strcspn(all, ","), all);
    return addresses[node];
}

static FILE *node_file(int node, const char *name, const char *mode)
{
    char path[300];

    snprintf(path, sizeof path, "%s/%d/%s", getenv("HOLDFAST_TEST_CASSANDRA_DIR"), node, name);
    FILE *file = fopen(path, mode);
    assert_non_null(file);
    return file;
}

void node_signal(int node, int signal)
{
    FILE *file = node_file(node, "pid", "r");
    int pid = 0;

    assert_int_equal(fscanf(file, "%d", &pid), 1);
    fclose(file);
    assert_true(pid > 1);
    assert_int_equal(kill(pid, signal), 0);
}

void node_kill(int node)
{
    node_signal(node, SIGKILL);
}

void node_set_clock(int node, int64_t ms)
{
    FILE *file = node_file(node, "clock", "r+");

    assert_int_equal(fwrite(&ms, sizeof ms, 1, file), 1);
    fclose(file);
}

/* locks -------------------------------------------------------------------------------------------
 */

hf_options options(int64_t ttl_ms, int64_t wait_ms)
{
    static uint64_t owner = 1000;
    hf_options opt = HF_OPTIONS_INIT;

    opt.ttl_ms = ttl_ms;
    opt.wait_ms = wait_ms;
    opt.owner = __atomic_add_fetch(&owner, 1, __ATOMIC_RELAXED);
    return opt;
}

int take(hf_client *client, const char *name, hf_options opt, hf_lock **ret_lock)
{
    return hf_acquire(client, name, HF_NTS, &opt, ret_lock, &last);
}

int release(hf_lock *lock)
{
    return hf_lock_release(lock, &last);
}

void check_code(int got, int wanted)
{
    if (got != wanted)
        fail_msg("got %d, wanted %d: %s", got, wanted, last.text);
}

const char *last_error(void)
{
    return last.text;
}

static void *acquire(void *arg)
{
    struct waiter *w = arg;

    w->code =
        take(w->client, w->name, options(w->ttl_ms > 0 ? w->ttl_ms : 20000, AWAIT_MS), &w->lock);
    if (w->code != HF_OK)
        return NULL;
    w->code = hf_lock_generation(w->lock, &w->generation);
    if (w->hold_ms > 0) {
        sleep_ms(w->hold_ms);
        w->code = release(w->lock);
    }
    return NULL;
}

void wait_in_thread(struct waiter *w)
{
    assert_int_equal(pthread_create(&w->thread, NULL, acquire, w), 0);
}

void join_waiter(struct waiter *w)
{
    pthread_join(w->thread, NULL);
    check_number("waiter", w->code, HF_OK);
}

int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_BOOTTIME, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void sleep_ms(int64_t ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static long count(hf_client *client, const char *name, bool waiting_only)
{
    hf_query query = {.size = sizeof query, .name = name, .name_len = HF_NTS};
    hf_view *view = NULL;
    long found = 0;

    if (hf_inspect(client, &query, &view, NULL) != HF_OK)
        return -1;
    for (size_t i = 0; i < hf_view_count(view); i++)
        found += !waiting_only || hf_view_entry(view, i)->place == HF_PLACE_WAITING;
    hf_view_free(view);
    return found;
}

long count_entries(hf_client *client, const char *name)
{
    return count(client, name, false);
}

long count_waiting(hf_client *client, const char *name)
{
    return count(client, name, true);
}

static void await(hf_client *client, const char *name, bool waiting_only, long wanted)
{
    long found = -1;

    for (int64_t until = now_ms() + AWAIT_MS; now_ms() < until; sleep_ms(20)) {
        found = count(client, name, waiting_only);
        if (found == wanted)
            return;
    }
    fail_msg("%s: %ld entries instead of %ld", name, found, wanted);
}

void await_waiting(hf_client *client, const char *name, long wanted)
{
    await(client, name, true, wanted);
}

void await_free(hf_client *client, const char *name)
{
    await(client, name, false, 0);
}

void await_lost(hf_lock *lock)
{
    struct pollfd told = {.fd = hf_lock_fd(lock), .events = POLLIN};

    check_number("told", poll(&told, 1, AWAIT_MS), 1);
    check_number("state", hf_lock_state(lock), HF_STATE_LOST);
}
