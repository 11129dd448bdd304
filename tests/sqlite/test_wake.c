/* Push over unix datagram sockets. */
#include <dirent.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "lib/operate.h"
#include "sqlite/fixture.h"

struct calls {
    size_t count;
    bool everybody; /* is to ask */
    struct hf__ticket ticket;
    uint64_t generation;
};

static void note(void *ctx, const struct hf__ticket *ticket, uint64_t generation)
{
    struct calls *calls = ctx;

    if (ticket == NULL) {
        calls->everybody = true;
        return;
    }
    calls->count++;
    if (generation < calls->generation)
        return; /* a grant tells more than "ask" */
    calls->ticket = *ticket;
    calls->generation = generation;
}

/* The sender has sent before it returned, so nothing has to be waited for. */
static struct calls take_calls(struct hf__store *store, int fd)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    struct calls calls = {0};

    if (poll(&poll_fd, 1, 0) == 1)
        store->type->wake(store, note, &calls);
    return calls;
}

static size_t count_sockets(const struct fixture *f)
{
    char path[300];
    size_t count = 0;
    struct dirent *entry;

    snprintf(path, sizeof path, "%s.wake", f->path);
    DIR *dir = opendir(path);
    if (dir == NULL)
        return 0;
    while ((entry = readdir(dir)) != NULL)
        count += entry->d_name[0] != '.';
    closedir(dir);
    return count;
}

static void check_hand_over(struct fixture *f)
{
    struct hf__bid holder = make_bid(f, "x"), waiter = make_bid(f, "x");
    int fd = f->store->type->wake_fd(f->store);

    waiter.queue = true;
    assert_true(fd >= 0);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
    attempt(f, &holder);
    struct hf__answer queued = attempt(f, &waiter);
    assert_int_equal(queued.verdict, HF__VERDICT_QUEUED);
    assert_int_equal(take_calls(f->store, fd).count, 0);
    release(f, &holder);
    struct calls calls = take_calls(f->store, fd);
    check_number("calls", (int64_t)calls.count, 1);
    assert_true(hf__ticket_equal(&calls.ticket, &waiter.ticket));
    assert_true(calls.generation > queued.generation);
    assert_int_equal(renew(f, &waiter, calls.generation).verdict, HF__VERDICT_GRANTED);
}

static void c12_a_hand_over_is_pushed_with_its_generation(void **state)
{
    struct fixture *f = *state;
    struct stat st;
    char path[300];

    check_hand_over(f);
    snprintf(path, sizeof path, "%s.wake", f->path);
    assert_int_equal(stat(path, &st), 0);
    check_number("mode", st.st_mode & 07777, 0700);
    check_number("sockets", (int64_t)count_sockets(f), 1);
    close_store(f);
    check_number("sockets after close", (int64_t)count_sockets(f), 0);
}

/* The core asks for the descriptor after the first answer "queued", then attempts again. */
static void c12_a_waiter_that_asks_again_is_called_where_it_listens_now(void **state)
{
    struct fixture *f = *state;
    struct hf__bid holder = make_bid(f, "x"), waiter = make_bid(f, "x");

    waiter.queue = true;
    attempt(f, &holder);
    attempt(f, &waiter);
    int fd = f->store->type->wake_fd(f->store);
    attempt(f, &waiter);
    release(f, &holder);
    check_number("calls", (int64_t)take_calls(f->store, fd).count, 1);
}

static void c12_a_long_path_is_pushed_too(void **state)
{
    struct fixture *f = *state;
    char deep[1024], *end = deep;

    end += snprintf(deep, sizeof deep, "sqlite:%s", f->dir);
    for (int i = 0; i < 8; i++) {
        end += snprintf(end, (size_t)(deep + sizeof deep - end), "/a-directory-with-a-long-name");
        assert_int_equal(mkdir(deep + strlen("sqlite:"), 0700), 0);
    }
    snprintf(end, (size_t)(deep + sizeof deep - end), "/locks.db");
    check_ok(f, "open", try_open(f, deep));
    check_hand_over(f);
}

static void c12_a_waiter_of_another_client_is_told_and_nobody_else(void **state)
{
    struct fixture *f = *state;
    struct hf__store *mine = f->store, *other;
    struct hf__bid holder = make_bid(f, "x"), first = make_bid(f, "x"), second = make_bid(f, "x");
    int my_fd = mine->type->wake_fd(mine);

    open_store(f);
    other = f->store;
    int other_fd = other->type->wake_fd(other);
    attempt(f, &holder);
    first.queue = second.queue = true;
    f->store = mine;
    assert_int_equal(attempt(f, &first).verdict, HF__VERDICT_QUEUED);
    f->store = other;
    assert_int_equal(attempt(f, &second).verdict, HF__VERDICT_QUEUED);
    release(f, &holder);
    check_number("first", (int64_t)take_calls(mine, my_fd).count, 1);
    check_number("second", (int64_t)take_calls(other, other_fd).count, 0);
    other->type->close(other);
    f->store = mine;
}

/* Its sign of life finds that the holder has vanished; the answer to it cannot say "granted". */
static void c12_a_waiter_let_in_by_its_own_sign_of_life_is_called(void **state)
{
    struct fixture *f = *state;
    struct hf__bid holder = make_bid(f, "x"), waiter = make_bid(f, "x");
    int fd = f->store->type->wake_fd(f->store);

    holder.ttl_ms = 1 * SECOND;
    waiter.queue = true;
    attempt(f, &holder);
    attempt(f, &waiter);
    pass_time(f, 1 * SECOND);
    renew(f, &waiter, 0);
    struct calls calls = take_calls(f->store, fd);
    check_number("calls", (int64_t)calls.count, 2); /* who held it is told to ask */
    assert_true(hf__ticket_equal(&calls.ticket, &waiter.ticket));
    assert_int_equal(renew(f, &waiter, calls.generation).verdict, HF__VERDICT_GRANTED);
}

static void c12_a_broken_holder_is_told_to_ask(void **state)
{
    struct fixture *f = *state;
    int fd = f->store->type->wake_fd(f->store);
    struct hf__bid holder = make_bid(f, "x");
    struct hf__answer a = {0};

    attempt(f, &holder);
    check_ok(f, "break", ask_store(f->store, op_break(&holder, true), soon(f), &a, &f->err));
    struct calls calls = take_calls(f->store, fd);
    check_number("calls", (int64_t)calls.count, 1);
    assert_true(hf__ticket_equal(&calls.ticket, &holder.ticket));
    check_number("generation", (int64_t)calls.generation, 0);
}

/* All of one client's come with one datagram: a socket has room for about ten. */
static void c12_a_hundred_readers_of_one_client_are_called_at_once(void **state)
{
    struct fixture *f = *state;
    struct hf__store *mine = f->store;
    struct hf__bid writer = make_bid(f, "x");
    int fd = mine->type->wake_fd(mine);

    attempt(f, &writer);
    for (int i = 0; i < 100; i++) {
        struct hf__bid reader = make_bid(f, "x");
        reader.mode = HF_SHARED;
        reader.queue = true;
        assert_int_equal(attempt(f, &reader).verdict, HF__VERDICT_QUEUED);
    }
    open_store(f); /* another client releases */
    release(f, &writer);
    close_store(f);
    f->store = mine;
    struct calls calls = take_calls(mine, fd);
    check_number("calls", (int64_t)calls.count, 100);
    assert_false(calls.everybody);
}

static int bind_socket(const struct fixture *f, const unsigned char name[16])
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct hf__ticket bits;
    char hex[HF_TICKET_SIZE];
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    memcpy(bits.bits, name, sizeof bits.bits);
    hf__ticket_format(&bits, hex);
    snprintf(address.sun_path, sizeof address.sun_path, "%.60s.wake/%s", f->path, hex);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

/* What was sent and not yet read counts against the sender's socket, too. */
static void c12_readers_of_many_clients_are_all_called(void **state)
{
    enum { CLIENTS = 400 };
    struct fixture *f = *state;
    struct hf__bid writer = make_bid(f, "x");
    int sockets[CLIENTS], called = 0;
    char sql[200], buf[100];

    assert_true(f->store->type->wake_fd(f->store) >= 0);
    attempt(f, &writer);
    for (int i = 0; i < CLIENTS; i++) {
        unsigned char name[16] = {(unsigned char)(i >> 8), (unsigned char)i};
        struct hf__bid reader = make_bid(f, "x");
        reader.mode = HF_SHARED;
        reader.queue = true;
        attempt(f, &reader);
        sockets[i] = bind_socket(f, name);
        snprintf(sql, sizeof sql,
                 "UPDATE holdfast_entry SET wake = CAST(x'%02x%02x' || zeroblob(14) AS BLOB)"
                 " WHERE seq ="
                 " (SELECT max(seq) FROM holdfast_entry)",
                 name[0], name[1]);
        meddle(f, sql);
    }
    release(f, &writer);
    for (int i = 0; i < CLIENTS; i++) {
        called += recv(sockets[i], buf, sizeof buf, MSG_DONTWAIT) > 0;
        close(sockets[i]);
    }
    check_number("called", called, CLIENTS);
}

/* A client that was killed leaves its socket behind. */
static void leave_socket(const struct fixture *f, const unsigned char name[16])
{
    close(bind_socket(f, name));
}

static void a_dead_clients_socket_is_removed_by_who_calls_it(void **state)
{
    struct fixture *f = *state;
    static const unsigned char name[16] = {0};
    struct hf__bid holder = make_bid(f, "x"), waiter = make_bid(f, "x");

    assert_true(f->store->type->wake_fd(f->store) >= 0);
    attempt(f, &holder);
    waiter.queue = true;
    attempt(f, &waiter);
    leave_socket(f, name);
    meddle(f, "UPDATE holdfast_entry SET wake = zeroblob(16) WHERE place = 1");
    check_number("sockets", (int64_t)count_sockets(f), 2);
    assert_int_equal(release(f, &holder).verdict, HF__VERDICT_DONE);
    check_number("sockets after the call", (int64_t)count_sockets(f), 1);
}

static void a_dead_waiters_socket_goes_with_its_place(void **state)
{
    struct fixture *f = *state;
    static const unsigned char name[16] = {0};
    struct hf__bid holder = make_bid(f, "x"), waiter = make_bid(f, "x");

    assert_true(f->store->type->wake_fd(f->store) >= 0);
    holder.ttl_ms = 1000 * SECOND;
    attempt(f, &holder);
    waiter.queue = true;
    attempt(f, &waiter);
    leave_socket(f, name);
    meddle(f, "UPDATE holdfast_entry SET wake = zeroblob(16) WHERE place = 1");
    check_number("sockets", (int64_t)count_sockets(f), 2);
    pass_time(f, 20 * SECOND);
    waiter = make_bid(f, "x");
    attempt(f, &waiter); /* sweeps */
    check_number("sockets afterwards", (int64_t)count_sockets(f), 1);
}

static void gc_removes_dead_sockets_and_no_others(void **state)
{
    struct fixture *f = *state;
    static const unsigned char name[16] = {1};
    uint64_t removed;

    assert_true(f->store->type->wake_fd(f->store) >= 0);
    leave_socket(f, name);
    check_ok(f, "purge",
             f->store->type->upkeep(f->store, HF__UPKEEP_PURGE, 0, soon(f), &removed, &f->err));
    check_number("sockets", (int64_t)count_sockets(f), 1);
    check_hand_over(f);
}

/* Calls are lost only when so many are unread that the reader can see it: then all of it ask. */
static void c12_when_calls_were_lost_everybody_asks(void **state)
{
    struct fixture *f = *state;
    int fd = f->store->type->wake_fd(f->store);
    size_t total = 0;
    bool everybody = false;

    for (int i = 0; i < 1500; i++) { /* more than any socket takes */
        struct hf__bid holder = make_bid(f, "x"), waiter = make_bid(f, "x");
        waiter.queue = true;
        attempt(f, &holder);
        attempt(f, &waiter);
        assert_int_equal(release(f, &holder).verdict, HF__VERDICT_DONE);
        release(f, &waiter);
    }
    for (struct calls c = {.count = 1}; c.count > 0;) {
        c = take_calls(f->store, fd);
        total += c.count;
        everybody |= c.everybody;
    }
    assert_true(total > 0 && total < 1500);
    assert_true(everybody);
    check_hand_over(f);
}

static void strangers_messages_are_ignored(void **state)
{
    struct fixture *f = *state;
    struct sockaddr_un address;
    socklen_t len = sizeof address;
    int fd = f->store->type->wake_fd(f->store), out = socket(AF_UNIX, SOCK_DGRAM, 0);

    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    assert_int_equal(sendto(out, "short", 5, 0, (struct sockaddr *)&address, len), 5);
    assert_int_equal(sendto(out, address.sun_path, 100, 0, (struct sockaddr *)&address, len), 100);
    close(out);
    check_number("calls", (int64_t)take_calls(f->store, fd).count, 0);
    check_hand_over(f);
}

static void without_a_socket_waiters_ask_often(void **state)
{
    struct fixture *f = *state;
    struct hf__bid holder = make_bid(f, "x"), waiter = make_bid(f, "x");

    holder.ttl_ms = HF__NEVER;
    renew(f, &holder, attempt(f, &holder).generation);
    waiter.queue = true;
    for (int i = 0; i < 50; i++) {
        struct hf__answer a = attempt(f, &waiter);
        assert_int_equal(a.verdict, HF__VERDICT_QUEUED);
        assert_in_range(a.ask_again_ms, 1, 250);
        pass_time(f, a.ask_again_ms);
    }
}

static void with_a_socket_the_next_one_still_asks_each_second(void **state)
{
    struct fixture *f = *state;
    struct hf__bid holder = make_bid(f, "x"), waiter = make_bid(f, "x");

    assert_true(f->store->type->wake_fd(f->store) >= 0);
    holder.ttl_ms = HF__NEVER;
    renew(f, &holder, attempt(f, &holder).generation);
    waiter.queue = true;
    assert_in_range(attempt(f, &waiter).ask_again_ms, 500, 1000);
}

static void a_wake_directory_open_to_others_is_not_used(void **state)
{
    struct fixture *f = *state;
    char path[300];

    snprintf(path, sizeof path, "%s.wake", f->path);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(chmod(path, 0755), 0);
    assert_true(f->store->type->wake_fd(f->store) < 0);
}

int main(void)
{
#define OPEN(test) cmocka_unit_test_setup_teardown(test, setup_open, teardown)
    const struct CMUnitTest tests[] = {
        OPEN(c12_a_hand_over_is_pushed_with_its_generation),
        OPEN(c12_a_waiter_that_asks_again_is_called_where_it_listens_now),
        cmocka_unit_test_setup_teardown(c12_a_long_path_is_pushed_too, setup_fixture, teardown),
        OPEN(c12_a_waiter_of_another_client_is_told_and_nobody_else),
        OPEN(c12_a_waiter_let_in_by_its_own_sign_of_life_is_called),
        OPEN(c12_a_broken_holder_is_told_to_ask),
        OPEN(c12_a_hundred_readers_of_one_client_are_called_at_once),
        OPEN(c12_readers_of_many_clients_are_all_called),
        OPEN(a_dead_clients_socket_is_removed_by_who_calls_it),
        OPEN(a_dead_waiters_socket_goes_with_its_place),
        OPEN(gc_removes_dead_sockets_and_no_others),
        OPEN(c12_when_calls_were_lost_everybody_asks),
        OPEN(strangers_messages_are_ignored),
        OPEN(without_a_socket_waiters_ask_often),
        OPEN(with_a_socket_the_next_one_still_asks_each_second),
        OPEN(a_wake_directory_open_to_others_is_not_used),
    };

    return cmocka_run_group_tests_name("sqlite_wake", tests, NULL, NULL);
}
