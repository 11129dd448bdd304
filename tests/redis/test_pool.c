/* The connections of a client: how many, how long they are kept, and what happens when there is
 * none. */
#include <stdlib.h>
#include <unistd.h>

#include "lib/proxy.h"
#include "redis/live.h"

/* Those of which CLIENT LIST says this. */
static size_t count_connections(const char *what)
{
    char *list = ask_text(redis, "CLIENT LIST");
    size_t count = 0;

    for (const char *at = list; (at = strstr(at, what)) != NULL; at++)
        count++;
    free(list);
    return count;
}

static void few_connections_serve_many_threads(void **state)
{
    struct proxy *proxy = proxy_start(getenv("HOLDFAST_TEST_REDIS"));
    hf_client *client = open_url(url_of(proxy_port(proxy), "max_active=2&max_idle=1&mode=poll"));
    struct waiter w[30];
    char names[COUNT(w)][8];

    (void)state;
    memset(w, 0, sizeof w);
    for (size_t i = 0; i < COUNT(w); i++) {
        snprintf(names[i], sizeof names[i], "n%zu", i);
        wait_in_thread(&w[i], client, names[i]);
    }
    for (size_t i = 0; i < COUNT(w); i++) {
        assert_int_equal(join_waiter(&w[i]), HF_OK);
        hf_lock_release(w[i].lock, NULL);
    }
    assert_true(count_connections("name=holdfast ") <= 2);
    hf_close(client);
    proxy_stop(proxy);
}

struct flow {
    struct proxy *proxy;
    size_t before;
};

static int has_flowed(void *ctx)
{
    const struct flow *flow = ctx;

    return proxy_sent(flow->proxy) > flow->before;
}

static void pool_without_waiting_fails_at_once(void **state)
{
    struct flow flow = {.proxy = proxy_start(getenv("HOLDFAST_TEST_REDIS"))};
    hf_client *client = open_url(url_of(proxy_port(flow.proxy), "max_active=1&pool_wait=no"));
    struct waiter w = {0};
    hf_view *view = NULL;
    hf_error err;

    (void)state;
    proxy_set(flow.proxy, PROXY_DELAY, 500);
    flow.before = proxy_sent(flow.proxy);
    wait_in_thread(&w, client, "a");
    await("the request to be on its way", has_flowed, &flow);
    assert_int_equal(hf_inspect(client, NULL, &view, &err), HF_UNAVAILABLE);
    check_contains("text", err.text, "in use");
    assert_int_equal(join_waiter(&w), HF_OK);
    proxy_set(flow.proxy, PROXY_PASS, 0);
    assert_int_equal(hf_lock_release(w.lock, NULL), HF_OK);
    hf_close(client);
    proxy_stop(flow.proxy);
}

/* Several at once, which a slow network makes sure of. */
static void use_several_connections(struct proxy *proxy, hf_client *client)
{
    struct waiter w[4] = {0};
    char names[COUNT(w)][8];

    proxy_set(proxy, PROXY_DELAY, 50);
    for (size_t i = 0; i < COUNT(w); i++) {
        snprintf(names[i], sizeof names[i], "n%zu", i);
        wait_in_thread(&w[i], client, names[i]);
    }
    for (size_t i = 0; i < COUNT(w); i++)
        assert_int_equal(join_waiter(&w[i]), HF_OK);
    proxy_set(proxy, PROXY_PASS, 0);
    for (size_t i = 0; i < COUNT(w); i++)
        assert_int_equal(hf_lock_release(w[i].lock, NULL), HF_OK);
}

static void idle_connections_are_closed_in_time(void **state)
{
    struct proxy *proxy = proxy_start(getenv("HOLDFAST_TEST_REDIS"));
    hf_client *client =
        open_url(url_of(proxy_port(proxy), "client_name=idler&idle_timeout=2s&max_idle=3"));
    hf_lock *lock;

    (void)state;
    int64_t from_ms = now_ms(), until_ms = from_ms + 20000;
    use_several_connections(proxy, client);
    assert_in_range(count_connections("name=idler "), 2, 3); /* the fourth was one too many */
    while (count_connections("name=idler ") > 1 && now_ms() < until_ms) { /* one is in use */
        assert_int_equal(try_lock(client, "a", 30000, &lock), HF_OK);
        assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
        usleep(10000);
    }
    assert_int_equal(count_connections("name=idler "), 1);
    assert_true(now_ms() - from_ms >= 2000); /* not at once */
    hf_close(client);
    proxy_stop(proxy);
}

static void thousand_waiting_threads_need_few_connections(void **state)
{
    enum { THREADS = 1000 };
    hf_client *holder = open_live(""), *client = open_live("client_name=crowd&max_active=4");
    struct waiter *w = calloc(THREADS, sizeof *w);
    hf_lock *lock;

    (void)state;
    assert_non_null(w);
    assert_int_equal(try_lock(holder, "a", 60000, &lock), HF_OK);
    for (size_t i = 0; i < THREADS; i++) {
        w[i].opt = (hf_options)HF_OPTIONS_INIT;
        w[i].opt.owner = i + 1;
        wait_in_thread(&w[i], client, "a");
    }
    await_waiting(holder, "a", THREADS);
    assert_in_range(count_connections("name=crowd "), 2, 5); /* and one that listens */
    hf_close(client);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(join_waiter(&w[i]), HF_CLOSED);
    await_waiting(holder, "a", 0);
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    hf_close(holder);
    free(w);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(few_connections_serve_many_threads),
        TEST(pool_without_waiting_fails_at_once),
        TEST(idle_connections_are_closed_in_time),
        TEST(thousand_waiting_threads_need_few_connections),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
