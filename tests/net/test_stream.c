/* Streams: everything ends by its deadline, and an error says whether anything was sent. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/check.h"
#include "net/resolve.h"
#include "net/stream.h"

static int64_t in_ms(int64_t ms)
{
    return hf__now_ns(&hf__system_env) + ms * HF__NS_PER_MS;
}

static void make_pair(struct hf__stream *s, int *ret_other)
{
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    hf__stream_init(s, fds[0], &hf__system_env);
    *ret_other = fds[1];
}

static void read_gives_what_there_is(void **state)
{
    struct hf__stream s;
    char buf[16];
    size_t count = 0;
    int other;

    (void)state;
    make_pair(&s, &other);
    assert_int_equal(write(other, "abc", 3), 3);
    assert_int_equal(hf__stream_read(&s, buf, sizeof buf, in_ms(5000), &count, NULL), 0);
    assert_int_equal(count, 3);
    assert_memory_equal(buf, "abc", 3);
    assert_int_equal(hf__stream_poll(&s, buf, sizeof buf, &count, NULL), 0);
    assert_int_equal(count, 0);
    hf__stream_close(&s);
    close(other);
}

static void read_ends_by_its_deadline(void **state)
{
    static const int64_t spans_ms[] = {-5, 0, 1, 15, 60};
    struct hf__stream s;
    char buf[16];
    size_t count;
    hf_error err;
    int other;

    (void)state;
    make_pair(&s, &other);
    for (size_t i = 0; i < COUNT(spans_ms); i++) {
        int64_t deadline_ns = in_ms(spans_ms[i]);
        assert_int_equal(hf__stream_read(&s, buf, sizeof buf, deadline_ns, &count, &err),
                         HF_UNAVAILABLE);
        assert_int_equal(err.store_code, ETIMEDOUT);
        assert_true(hf__now_ns(&hf__system_env) >= deadline_ns);
    }
    hf__stream_close(&s);
    close(other);
}

static void end_of_the_other_side_is_an_error(void **state)
{
    struct hf__stream s;
    char buf[16];
    size_t count;
    hf_error err;
    int other;

    (void)state;
    make_pair(&s, &other);
    assert_true(hf__stream_is_quiet(&s));
    close(other);
    assert_false(hf__stream_is_quiet(&s));
    assert_int_equal(hf__stream_read(&s, buf, sizeof buf, in_ms(5000), &count, &err),
                     HF_UNAVAILABLE);
    check_contains("text", err.text, "closed");
    size_t sent = 1;
    assert_int_equal(hf__stream_write(&s, "x", 1, in_ms(5000), &sent, &err), HF_UNAVAILABLE);
    assert_int_equal(sent, 0); /* and no SIGPIPE */
    hf__stream_close(&s);
}

static void write_that_is_not_read_ends_and_tells_how_much(void **state)
{
    enum { SIZE = 8 << 20 };
    struct hf__stream s;
    char *data = calloc(1, SIZE);
    size_t sent = 0;
    hf_error err;
    int other;

    (void)state;
    make_pair(&s, &other);
    assert_int_equal(hf__stream_write(&s, data, SIZE, in_ms(40), &sent, &err), HF_UNAVAILABLE);
    assert_int_equal(err.store_code, ETIMEDOUT);
    assert_true(sent > 0 && sent < SIZE);
    hf__stream_close(&s);
    close(other);
    free(data);
}

static int listen_on(struct sockaddr *address, socklen_t size)
{
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(fd, address, size), 0);
    assert_int_equal(listen(fd, 4), 0);
    return fd;
}

static int listen_tcp(char port[16])
{
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof here;
    int fd = listen_on((struct sockaddr *)&here, size);

    getsockname(fd, (struct sockaddr *)&here, &size);
    snprintf(port, 16, "%d", ntohs(here.sin_port));
    return fd;
}

static void connects_to_addresses_and_names(void **state)
{
    static const char *const hosts[] = {"127.0.0.1",
                                        "localhost"}; /* the second may try ::1 first */
    struct hf__stream s;
    char port[16];
    int listener = listen_tcp(port);

    (void)state;
    for (size_t i = 0; i < COUNT(hosts); i++) {
        struct hf__address to = {.host = hosts[i], .port = port};
        assert_int_equal(hf__stream_connect(&s, &to, &hf__system_env, in_ms(5000), NULL), 0);
        assert_int_equal(fcntl(s.fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
        hf__stream_close(&s);
    }
    close(listener);
    struct hf__address gone = {.host = "127.0.0.1", .port = port};
    hf_error err;
    assert_int_equal(hf__stream_connect(&s, &gone, &hf__system_env, in_ms(5000), &err),
                     HF_UNAVAILABLE);
    assert_int_equal(err.store_code, ECONNREFUSED);
}

static void connects_to_unix_sockets(void **state)
{
    char dir[] = "/tmp/holdfast-net.XXXXXX", path[64], longest[200];
    struct sockaddr_un here = {.sun_family = AF_UNIX};
    struct hf__stream s;
    hf_error err;

    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/s", dir);
    memcpy(here.sun_path, path, strlen(path));
    int listener = listen_on((struct sockaddr *)&here, sizeof here);
    struct hf__address to = {.path = path};
    assert_int_equal(hf__stream_connect(&s, &to, &hf__system_env, in_ms(5000), NULL), 0);
    hf__stream_close(&s);
    close(listener);
    assert_int_equal(hf__stream_connect(&s, &to, &hf__system_env, in_ms(5000), &err),
                     HF_UNAVAILABLE);
    check_contains("text", err.text, path);
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    to.path = longest;
    assert_int_equal(hf__stream_connect(&s, &to, &hf__system_env, in_ms(5000), &err), HF_INVALID);
    unlink(path);
    rmdir(dir);
}

static void lookup_ends_by_its_deadline(void **state)
{
    struct addrinfo *list = NULL;
    hf_error err;

    (void)state;
    assert_int_equal(hf__resolve("127.0.0.1", "1", &hf__system_env, in_ms(-1), &list, &err), 0);
    freeaddrinfo(list); /* figures need no lookup, hence no time */
    assert_int_equal(hf__resolve("localhost", "1", &hf__system_env, in_ms(-1), &list, &err),
                     HF_UNAVAILABLE);
    /* A label longer than a name server would ever be asked for. */
    assert_int_equal(
        hf__resolve("a-label-of-more-than-63-bytes-cannot-be-part-of-the-name-of-any-host", "1",
                    &hf__system_env, in_ms(5000), &list, &err),
        HF_UNAVAILABLE);
    check_contains("text", err.text, "look up 'a-label");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(read_gives_what_there_is),
        cmocka_unit_test(read_ends_by_its_deadline),
        cmocka_unit_test(end_of_the_other_side_is_an_error),
        cmocka_unit_test(write_that_is_not_read_ends_and_tells_how_much),
        cmocka_unit_test(connects_to_addresses_and_names),
        cmocka_unit_test(connects_to_unix_sockets),
        cmocka_unit_test(lookup_ends_by_its_deadline),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
