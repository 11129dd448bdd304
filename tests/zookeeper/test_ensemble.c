/* Three servers: one of them, most of them or all of them go, while locks are held (C1, C4, C7). */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/proxy.h"
#include "zookeeper/live.h"

struct server {
    int pid, port;
    char dir[200];
};
static struct server all[3];

static int find_servers(void **state)
{
    const char *hosts = servers(), *pids = getenv("HOLDFAST_TEST_ZOOKEEPER_PIDS");
    const char *dir = getenv("HOLDFAST_TEST_ZOOKEEPER_DIR");

    (void)state;
    for (int i = 0; i < 3; i++) {
        char *end;
        hosts = strchr(hosts, ':') + 1;
        all[i].port = (int)strtol(hosts, &end, 10);
        hosts = end;
        all[i].pid = (int)strtol(pids, &end, 10);
        pids = end;
        snprintf(all[i].dir, sizeof all[i].dir, "%s/%d", dir, i + 1);
    }
    return 0;
}

static bool has_mode(const struct server *s, const char *mode)
{
    char text[4000];

    ask_server(s->port, "srvr", text, sizeof text);
    return strstr(text, mode) != NULL;
}

static struct server *leader(void)
{
    for (int i = 0; i < 3; i++) {
        if (has_mode(&all[i], "Mode: leader"))
            return &all[i];
    }
    fail_msg("there is no leader");
    return NULL;
}

static int is_whole(void *ctx)
{
    int count = 0;

    (void)ctx;
    for (int i = 0; i < 3; i++)
        count += has_mode(&all[i], "Mode: ");
    return count == 3;
}

/* As tests/fleet does; the fleet's own processes are stopped by it, these by the test. */
static void start(struct server *s)
{
    char config[220], log[220];

    snprintf(config, sizeof config, "%s/zoo.cfg", s->dir);
    snprintf(log, sizeof log, "%s/log", s->dir);
    s->pid = fork();
    assert_true(s->pid >= 0);
    if (s->pid == 0) {
        if (freopen("/dev/null", "r", stdin) == NULL || freopen(log, "a", stdout) == NULL ||
            dup2(STDOUT_FILENO, STDERR_FILENO) < 0)
            _exit(1);
        execlp("java", "java", "-Xms32m", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
               "-Dzookeeper.admin.enableServer=false", "-Dzookeeper.jmx.log4j.disable=true",
               "-Dzookeeper.forceSync=no", "-Djava.net.preferIPv4Stack=true", "-cp",
               "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar",
               "org.apache.zookeeper.server.quorum.QuorumPeerMain", config, (char *)NULL);
        _exit(1);
    }
}

static bool restarted;

static int stop_servers(void **state)
{
    (void)state;
    for (int i = 0; restarted && i < 3; i++)
        kill(all[i].pid, SIGKILL);
    return 0;
}

/* Servers that say they are there may still be busy with each other. */
static hf_lock *take_patiently(hf_client *client, const char *name, int64_t ttl_ms)
{
    int64_t until_ms = now_ms() + 2 * AWAIT_MS;
    hf_lock *lock = NULL;

    while (try_lock(client, name, ttl_ms, &lock) != HF_OK)
        assert_true(now_ms() < until_ms);
    return lock;
}

static void c7_lock_outlives_the_leader(void **state)
{
    hf_client *client = open_at(servers(), ""), *other = open_at(servers(), "");
    hf_lock *lock = take_patiently(client, "leader", 8000), *none = NULL;
    uint64_t before = 0, after = 0;
    struct waiter w;

    (void)state;
    assert_int_equal(hf_lock_generation(lock, &before), HF_OK);
    send_waiter(&w, other, "leader", 8000, NULL);
    await_waiting(other, "leader", 1);
    struct server *killed = leader();
    kill(killed->pid, SIGKILL);
    int r = HF_UNKNOWN;
    for (int64_t until_ms = now_ms() + 5000; r != HF_OK && now_ms() < until_ms;)
        r = hf_lock_renew(lock, NULL);
    assert_int_equal(r, HF_OK);
    assert_int_equal(hf_lock_state(lock), HF_STATE_HELD);
    assert_int_not_equal(try_lock(other, "leader", 8000, &none), HF_OK);
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    assert_int_equal(join_waiter(&w), HF_OK);
    assert_int_equal(hf_lock_generation(w.lock, &after), HF_OK);
    assert_true(after > before);
    assert_int_equal(hf_lock_release(w.lock, NULL), HF_OK);
    start(killed);
    restarted = true;
    await("the ensemble to be whole", is_whole, NULL);
    hf_close(client);
    hf_close(other);
}

/* The client knows one server only, and that one does not get through to it any more. */
static void c7_holder_behind_a_partition_is_lost_in_time(void **state)
{
    char target[40], behind[40];

    (void)state;
    snprintf(target, sizeof target, "127.0.0.1:%d", all[0].port);
    struct proxy *proxy = proxy_start(target);
    snprintf(behind, sizeof behind, "127.0.0.1:%d", proxy_port(proxy));
    hf_client *client = open_at(behind, ""), *other = open_at(servers(), "");
    hf_lock *lock = take(client, "partition", 1500);
    struct waiter w;

    send_waiter(&w, other, "partition", 1500, NULL);
    await_waiting(other, "partition", 1);
    proxy_set(proxy, PROXY_HOLE, 0);
    assert_int_equal(join_waiter(&w), HF_OK);
    assert_int_equal(hf_lock_state(lock), HF_STATE_LOST);
    assert_int_equal(hf_lock_release(w.lock, NULL), HF_OK);
    proxy_set(proxy, PROXY_RST, 0);
    hf_lock_release(lock, NULL);
    hf_close(client);
    hf_close(other);
    proxy_stop(proxy);
}

/* Two of three stand still: the third has no quorum. */
static void c1_minority_refuses_and_its_holders_are_lost(void **state)
{
    char hosts[40];
    hf_lock *none = NULL;

    (void)state;
    snprintf(hosts, sizeof hosts, "127.0.0.1:%d", all[1].port);
    hf_client *client = open_at(hosts, "op_timeout=1s");
    hf_lock *lock = take(client, "minority", 2000);
    kill(all[0].pid, SIGSTOP);
    kill(all[2].pid, SIGSTOP);
    await_lost(lock);
    assert_int_equal(hf_lock_cause(lock), HF_CAUSE_EXPIRED);
    int r = try_lock(client, "other", 2000, &none);
    assert_true(r == HF_UNAVAILABLE || r == HF_UNKNOWN);
    kill(all[0].pid, SIGCONT);
    kill(all[2].pid, SIGCONT);
    hf_lock_release(lock, NULL);
    await("the ensemble to be whole", is_whole, NULL);
    hf_lock *again = take_patiently(client, "minority", 2000);
    assert_int_equal(hf_lock_release(again, NULL), HF_OK);
    hf_close(client);
}

static void c4_restart_of_all_servers_keeps_locks_and_tokens(void **state)
{
    hf_client *client = open_at(servers(), "op_timeout=10s");
    hf_lock *held = take_patiently(client, "held", HF_NEVER);
    hf_lock *lock = take_patiently(client, "leased", 20000);
    uint64_t before = 0, after = 0;

    (void)state;
    assert_int_equal(hf_lock_generation(lock, &before), HF_OK);
    for (int i = 0; i < 3; i++)
        kill(all[i].pid, SIGKILL);
    for (int i = 0; i < 3; i++)
        start(&all[i]);
    restarted = true;
    await("the ensemble to be whole", is_whole, NULL);
    int r = HF_UNKNOWN;
    for (int64_t until_ms = now_ms() + 8000; r != HF_OK && now_ms() < until_ms;)
        r = hf_lock_renew(held, NULL);
    assert_int_equal(r, HF_OK);
    r = HF_UNKNOWN;
    for (int64_t until_ms = now_ms() + 8000; r != HF_OK && now_ms() < until_ms;)
        r = hf_lock_renew(lock, NULL);
    assert_int_equal(r, HF_OK);
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    lock = take_patiently(client, "leased", 20000);
    assert_int_equal(hf_lock_generation(lock, &after), HF_OK);
    assert_true(after > before);
    assert_int_equal(hf_lock_release(lock, NULL), HF_OK);
    assert_int_equal(hf_lock_release(held, NULL), HF_OK);
    hf_close(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c7_holder_behind_a_partition_is_lost_in_time),
        cmocka_unit_test(c1_minority_refuses_and_its_holders_are_lost),
        cmocka_unit_test(c7_lock_outlives_the_leader),
        cmocka_unit_test(c4_restart_of_all_servers_keeps_locks_and_tokens),
    };

    return cmocka_run_group_tests(tests, find_servers, stop_servers);
}
