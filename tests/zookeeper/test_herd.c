/* 200 waiters: each watches three nodes at most, and each release wakes one of them (C12); the
 * simple lock wakes them all, as its documentation says. Counted by the server, and by a trace of
 * the wake-ups. */
#include <stdlib.h>
#include <unistd.h>

#include "zookeeper/live.h"

#define CLIENTS 4
#define CROWD   200

static char trace[CLIENTS][40];

static hf_client *open_traced(size_t i, const char *options)
{
    char url[300];
    hf_client *client = NULL;

    snprintf(trace[i], sizeof trace[i], "/tmp/holdfast-herd-XXXXXX");
    close(mkstemp(trace[i]));
    snprintf(url, sizeof url, "trace+zookeeper://%s/herd?acl=world&trace=%s%s", servers(), trace[i],
             options);
    assert_int_equal(hf_open(url, NULL, &client, NULL), HF_OK);
    return client;
}

static size_t count_wakes(void)
{
    char line[1000];
    size_t count = 0;

    for (size_t i = 0; i < CLIENTS; i++) {
        FILE *file = fopen(trace[i], "r");
        assert_non_null(file);
        while (fgets(line, sizeof line, file) != NULL)
            count += strstr(line, " wake ") != NULL;
        fclose(file);
    }
    return count;
}

static int watches_on_servers(void)
{
    char text[1000], hosts[300], *save = NULL;
    int count = 0;

    snprintf(hosts, sizeof hosts, "%s", servers());
    for (char *host = strtok_r(hosts, ",", &save); host != NULL;
         host = strtok_r(NULL, ",", &save)) {
        ask_server_at(host, "wchs", text, sizeof text);
        const char *at = strstr(text, "Total watches:");
        assert_non_null(at);
        count += (int)strtol(at + 14, NULL, 10);
    }
    return count;
}

struct visitor {
    hf_client *client;
    const char *name;
    pthread_t thread;
};

static void *visit(void *arg)
{
    struct visitor *v = arg;
    hf_options opt = HF_OPTIONS_INIT;
    hf_lock *lock = NULL;

    opt.ttl_ms = 10000;
    opt.owner = (uint64_t)(uintptr_t)v;
    if (hf_acquire(v->client, v->name, HF_NTS, &opt, &lock, NULL) != HF_OK ||
        hf_lock_release(lock, NULL) != HF_OK)
        return v;
    return NULL;
}

struct watched {
    int least, seen;
};

/* A session that watches a node for two of its waiters watches it once, so how many there will be
 * depends on who stands beside whom: enough, and no more than at the last look. */
static int all_watch(void *arg)
{
    struct watched *w = arg;
    int before = w->seen;

    usleep(200000);
    w->seen = watches_on_servers();
    return w->seen >= w->least && w->seen == before;
}

/* Everybody waits, then the lock goes from one to the next until all have had it. `most` watches,
 * 0 for as many as they like. */
static size_t wakes_of_a_crowd(const char *options, int least, int most)
{
    struct watched watched = {.least = least};
    hf_client *clients[CLIENTS];
    struct visitor visitors[CROWD];

    for (size_t i = 0; i < CLIENTS; i++)
        clients[i] = open_traced(i, options);
    hf_lock *lock = take(clients[0], "a", 20000);
    for (size_t i = 0; i < CROWD; i++) {
        visitors[i] = (struct visitor){.client = clients[i % CLIENTS], .name = "a"};
        assert_int_equal(pthread_create(&visitors[i].thread, NULL, visit, &visitors[i]), 0);
    }
    if (most > 0)
        await_waiting(clients[0], "a", CROWD);
    await("all to watch", all_watch, &watched);
    if (most > 0)
        assert_in_range(watched.seen, least, most);
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    for (size_t i = 0; i < CROWD; i++) {
        void *failed = NULL;
        assert_int_equal(pthread_join(visitors[i].thread, &failed), 0);
        assert_null(failed);
    }
    for (size_t i = 0; i < CLIENTS; i++)
        hf_close(clients[i]);
    size_t wakes = count_wakes();
    for (size_t i = 0; i < CLIENTS; i++)
        unlink(trace[i]);
    return wakes;
}

static void c12_release_wakes_one_waiter_of_200(void **state)
{
    (void)state;
    size_t wakes =
        wakes_of_a_crowd("", CROWD, 3 * CROWD + CLIENTS); /* and one for the marks each */
    print_message("fair: %d hand-overs, %zu wake-ups\n", CROWD, wakes);
    assert_in_range(wakes, CROWD, CROWD + CROWD / 10);
}

static void c12_simple_lock_wakes_the_herd(void **state)
{
    (void)state;
    size_t wakes = wakes_of_a_crowd("&fair=no", CLIENTS, 0);
    print_message("simple: %d hand-overs, %zu wake-ups\n", CROWD, wakes);
    assert_true(wakes > 2 * CROWD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c12_release_wakes_one_waiter_of_200),
        cmocka_unit_test(c12_simple_lock_wakes_the_herd),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
