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

static size_t count_calls(const char *what)
{
    char line[1000];
    size_t count = 0;

    for (size_t i = 0; i < CLIENTS; i++) {
        FILE *file = fopen(trace[i], "r");
        assert_non_null(file);
        while (fgets(line, sizeof line, file) != NULL)
            count += strstr(line, what) != NULL;
        fclose(file);
    }
    return count;
}

struct crowd {
    const char *options;
    int64_t ttl_ms;
    int least, most; /* watches: a session watches a node once, however many of its waiters do */
    size_t wakes;    /* how often somebody was woken */
    size_t asked;    /* how often somebody asked after that */
};

/* Everybody waits, then the lock goes from one to the next until all have had it. */
static void pass_through(struct crowd *crowd)
{
    hf_client *clients[CLIENTS];
    struct waiter visitors[CROWD];

    for (size_t i = 0; i < CLIENTS; i++)
        make_listen(clients[i] = open_traced(i, crowd->options));
    hf_lock *lock = take(clients[0], "a", 20000);
    for (size_t i = 0; i < CROWD; i++)
        send_visitor(&visitors[i], clients[i % CLIENTS], "a", crowd->ttl_ms);
    for (size_t i = 0; i < CROWD; i++)
        await_queued(&visitors[i]);
    assert_in_range(count_watches(), crowd->least, crowd->most);
    crowd->asked = count_calls(" attempt ");
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    for (size_t i = 0; i < CROWD; i++)
        assert_int_equal(join_waiter(&visitors[i]), HF_OK);
    crowd->asked = count_calls(" attempt ") - crowd->asked;
    for (size_t i = 0; i < CLIENTS; i++)
        hf_close(clients[i]);
    crowd->wakes = count_calls(" wake ");
    for (size_t i = 0; i < CLIENTS; i++)
        unlink(trace[i]);
}

/* Each waiter has three watches, and each client one for the requests to break. */
static void c12_release_wakes_one_waiter_of_200(int64_t ttl_ms)
{
    struct crowd crowd = {
        .options = "", .ttl_ms = ttl_ms, .least = CROWD, .most = 3 * CROWD + CLIENTS};

    pass_through(&crowd);
    print_message("fair: %d hand-overs, %zu wake-ups, %zu asked\n", CROWD, crowd.wakes,
                  crowd.asked);
    assert_in_range(crowd.wakes, CROWD, CROWD + CROWD / 10);
    assert_in_range(crowd.asked, 0, CROWD / 10); /* the event is the grant */
}

static void c12_release_lets_one_waiter_of_200_in(void **state)
{
    (void)state;
    c12_release_wakes_one_waiter_of_200(10000);
}

/* Their nodes would move to another session with the claim. */
static void c12_release_lets_one_waiter_in_with_a_long_lease(void **state)
{
    (void)state;
    c12_release_wakes_one_waiter_of_200(30000);
}

static void c12_simple_lock_wakes_the_herd(void **state)
{
    struct crowd crowd = {
        .options = "&fair=no", .ttl_ms = 10000, .least = CLIENTS, .most = CROWD + CLIENTS};

    (void)state;
    pass_through(&crowd);
    print_message("simple: %d hand-overs, %zu wake-ups, %zu asked\n", CROWD, crowd.wakes,
                  crowd.asked);
    assert_true(crowd.wakes > 2 * CROWD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c12_release_lets_one_waiter_of_200_in),
        cmocka_unit_test(c12_release_lets_one_waiter_in_with_a_long_lease),
        cmocka_unit_test(c12_simple_lock_wakes_the_herd),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
