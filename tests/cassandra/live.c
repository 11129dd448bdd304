/* See live.h. */
#include "cassandra/live.h"

#include <stdlib.h>

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

/* Nodes -------------------------------------------------------------------- */

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

/* Locks -------------------------------------------------------------------- */

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
