/* One of three servers is cut off from the others, with a holder on its side (C1, C7): that side
 * refuses, its holder is lost before the other side lets anybody in, and after the cable is back
 * nothing is inherited. Beside tests/fleet/with-zookeeper-apart. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "zookeeper/live.h"

#define TTL_MS 2000

/* A process on the side of server `number`, which holds a lock there. */
struct islander {
    int number;
    pid_t pid;
    int to, from;
};

static void send_word(int fd, int64_t word)
{
    if (write(fd, &word, sizeof word) != sizeof word)
        _exit(1);
}

static int64_t read_word(int fd)
{
    int64_t word = -1;
    ssize_t n = read(fd, &word, sizeof word);

    return n == sizeof word ? word : -1;
}

static void enter_net(int number)
{
    const char *pids = getenv("HOLDFAST_TEST_ZOOKEEPER_NETS");
    char path[60];
    int pid = 0;

    for (int i = 0; pids != NULL && i < number; i++) {
        char *end;
        pid = (int)strtol(pids, &end, 10);
        pids = end;
    }
    snprintf(path, sizeof path, "/proc/%d/ns/net", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || setns(fd, CLONE_NEWNET) != 0)
        _exit(2);
    close(fd);
}

static const char *address_of(int number)
{
    static char text[40];

    snprintf(text, sizeof text, "10.77.0.%d:2181", number);
    return text;
}

/* Tells that it holds, then when it lost it, then whether it was refused, then that it is back. */
static void live_apart(int number, int in, int out)
{
    hf_lock *none = NULL;

    enter_net(number);
    hf_client *client = open_at(address_of(number), "op_timeout=1s");
    hf_lock *lock = take(client, "apart", TTL_MS);
    send_word(out, 1);
    await_lost(lock);
    send_word(out, now_ms());
    int r = try_lock(client, "apart", TTL_MS, &none), other = try_lock(client, "b", TTL_MS, &none);
    send_word(out, (r == HF_UNAVAILABLE || r == HF_UNKNOWN) &&
                       (other == HF_UNAVAILABLE || other == HF_UNKNOWN));
    read_word(in); /* the cable is back */
    bool stays_lost = hf_lock_state(lock) == HF_STATE_LOST;
    hf_lock *again = NULL;
    for (int64_t until_ms = now_ms() + 2 * AWAIT_MS; again == NULL && now_ms() < until_ms;)
        try_lock(client, "again", TTL_MS, &again);
    send_word(out, stays_lost && again != NULL && hf_lock_release(lock, NULL) == HF_STALE &&
                       hf_lock_release(again, NULL) == HF_OK);
    hf_close(client);
    _exit(0);
}

static struct islander send_out(int number)
{
    struct islander who = {.number = number};
    int down[2], up[2];

    assert_int_equal(pipe(down), 0);
    assert_int_equal(pipe(up), 0);
    who.pid = fork();
    assert_true(who.pid >= 0);
    if (who.pid == 0) {
        close(down[1]);
        close(up[0]);
        live_apart(number, down[0], up[1]);
    }
    close(down[0]);
    close(up[1]);
    who.to = down[1];
    who.from = up[0];
    return who;
}

static void bring_home(struct islander *who)
{
    int status = -1;

    close(who->to);
    close(who->from);
    assert_int_equal(waitpid(who->pid, &status, 0), who->pid);
    assert_int_equal(status, 0);
}

static void set_cable(int number, const char *state)
{
    char command[60];

    snprintf(command, sizeof command, "ip link set server%d %s", number, state);
    assert_int_equal(system(command), 0);
}

static int find_mode(const char *mode)
{
    char text[4000];

    for (int i = 1; i <= 3; i++) {
        ask_server_at(address_of(i), "srvr", text, sizeof text);
        if (strstr(text, mode) != NULL)
            return i;
    }
    return 0;
}

static int is_led(void *ctx)
{
    (void)ctx;
    return find_mode("Mode: leader") > 0 && find_mode("Mode: follower") > 0;
}

static const char *all_but(int number)
{
    static char hosts[100];

    snprintf(hosts, sizeof hosts, "10.77.0.%d:2181,10.77.0.%d:2181", number % 3 + 1,
             (number + 1) % 3 + 1);
    return hosts;
}

static void cut_off(const char *mode)
{
    await("a leader", is_led, NULL);
    struct islander holder = send_out(find_mode(mode));

    assert_int_equal(read_word(holder.from), 1);
    hf_client *other = open_at(all_but(holder.number), "");
    struct waiter w;
    send_waiter(&w, other, "apart", TTL_MS, NULL);
    await_waiting(other, "apart", 1);
    set_cable(holder.number, "down");
    int64_t cut_ms = now_ms();
    assert_int_equal(join_waiter(&w), HF_OK);
    int64_t got_ms = now_ms(), lost_ms = read_word(holder.from);
    print_message("%s cut off: lost after %lld ms, the next has it after %lld ms\n", mode + 6,
                  (long long)(lost_ms - cut_ms), (long long)(got_ms - cut_ms));
    assert_in_range(lost_ms, cut_ms, got_ms);
    assert_in_range(lost_ms - cut_ms, 0, TTL_MS);
    assert_int_equal(read_word(holder.from), 1); /* its side refuses */
    assert_int_equal(hf_lock_release(w.lock, NULL), HF_OK);
    set_cable(holder.number, "up");
    send_word(holder.to, 1);
    assert_int_equal(read_word(holder.from), 1); /* nothing is inherited, and it may bid again */
    bring_home(&holder);
    hf_close(other);
}

static void c7_holder_beside_a_follower_that_is_cut_off_is_lost_in_time(void **state)
{
    (void)state;
    cut_off("Mode: follower");
}

static void c7_holder_beside_a_leader_that_is_cut_off_is_lost_in_time(void **state)
{
    (void)state;
    cut_off("Mode: leader");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c7_holder_beside_a_follower_that_is_cut_off_is_lost_in_time),
        cmocka_unit_test(c7_holder_beside_a_leader_that_is_cut_off_is_lost_in_time),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
