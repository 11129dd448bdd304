/* rediss://: the chain and the name are verified unless the URL says otherwise. */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "redis/live.h"

static struct server server; /* its directory has the certificates */
static int tls_port;

static void run(const char *format, const char *dir)
{
    char command[1000];

    snprintf(command, sizeof command, "cd %s && { ", dir);
    snprintf(command + strlen(command), sizeof command - strlen(command), "%s; } >log.txt 2>&1",
             format);
    if (system(command) != 0)
        fail_msg("%s", command);
}

/* An authority, a server of the name "localhost" and the address 127.0.0.1, and a client. */
static void make_certificates(const char *dir)
{
    run("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2"
        " -subj /CN=holdfast-test-authority -keyout ca.key -out ca.crt",
        dir);
    run("for who in server client; do"
        " openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=$who"
        " -keyout $who.key -out $who.csr &&"
        " printf 'subjectAltName=DNS:localhost,IP:127.0.0.1\\n' >$who.ext &&"
        " openssl x509 -req -in $who.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2"
        " -extfile $who.ext -out $who.crt || exit 1; done",
        dir);
    run("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2"
        " -subj /CN=stranger -keyout other.key -out other.crt",
        dir);
}

static int start_tls(void **state)
{
    static char port[16], files[3][100];

    (void)state;
    tls_port = free_port();
    snprintf(server.dir, sizeof server.dir, "/tmp/holdfast-redis.XXXXXX");
    assert_non_null(mkdtemp(server.dir));
    make_certificates(server.dir);
    snprintf(port, sizeof port, "%d", tls_port);
    snprintf(files[0], sizeof files[0], "%s/ca.crt", server.dir);
    snprintf(files[1], sizeof files[1], "%s/server.crt", server.dir);
    snprintf(files[2], sizeof files[2], "%s/server.key", server.dir);
    const char *const options[] = {"--tls-port",
                                   port,
                                   "--tls-ca-cert-file",
                                   files[0],
                                   "--tls-cert-file",
                                   files[1],
                                   "--tls-key-file",
                                   files[2],
                                   "--tls-auth-clients",
                                   "optional",
                                   NULL};
    server_start(&server, options);
    return 0;
}

static int stop_tls(void **state)
{
    (void)state;
    server_clear(&server);
    return 0;
}

/* `start` and `options`, with the directory put in for each '@'. */
static const char *fill_in(const char *start, const char *options)
{
    static char url[1000];
    size_t len = (size_t)snprintf(url, sizeof url, "%s?op_timeout=2s&", start);

    for (; *options != '\0'; options++)
        len += (size_t)snprintf(url + len, sizeof url - len, *options == '@' ? "%s" : "%.1s",
                                *options == '@' ? server.dir : options);
    return url;
}

static const char *tls_url(const char *host, const char *options)
{
    char start[100];

    snprintf(start, sizeof start, "rediss://%s:%d/0", host, tls_port);
    return fill_in(start, options);
}

static int lock_once(const char *url, hf_error *err)
{
    hf_client *client = NULL;
    hf_options opt = HF_OPTIONS_INIT;
    hf_lock *lock = NULL;
    int r = hf_open(url, NULL, &client, err);

    opt.wait_ms = 0;
    if (r == HF_OK)
        r = hf_acquire(client, "a", HF_NTS, &opt, &lock, err);
    if (r == HF_OK)
        r = hf_lock_release(lock, err);
    hf_close(client);
    return r;
}

static void expect(const char *url, int code, const char *text)
{
    hf_error err = {0};

    check_number(url, lock_once(url, &err), code);
    if (text != NULL)
        check_contains(url, err.text, text);
}

static void trusted_server_is_used(void **state)
{
    (void)state;
    expect(tls_url("localhost", "tls_ca=@/ca.crt"), HF_OK, NULL);
    expect(tls_url("127.0.0.1", "tls_ca=@/ca.crt"), HF_OK, NULL);
    expect(tls_url("localhost", "tls_ca=@/ca.crt&tls_cert=@/client.crt&tls_key=@/client.key"),
           HF_OK, NULL);
}

static void unknown_authority_is_denied(void **state)
{
    (void)state;
    expect(tls_url("localhost", "tls=verify"), HF_DENIED, "tls_ca");
    expect(tls_url("localhost", "tls_ca=@/other.crt"), HF_DENIED, "not trusted");
}

static void wrong_name_is_denied(void **state)
{
    (void)state;
    /* Another name for loopback, which the certificate does not have. */
    expect(tls_url("127.0.0.2", "tls_ca=@/ca.crt"), HF_DENIED, "mismatch");
}

static void insecure_accepts_any(void **state)
{
    (void)state;
    expect(tls_url("localhost", "tls=insecure"), HF_OK, NULL);
}

static void count_warning(int level, const char *clause, const char *text, void *arg)
{
    (void)clause;
    *(int *)arg += level == 2 && strstr(text, "tls=insecure") != NULL;
}

static void doctor_warns_of_insecure(void **state)
{
    const char *options[] = {"tls=insecure", "tls_ca=@/ca.crt"};

    (void)state;
    for (int i = 0; i < 2; i++) {
        hf_client *client = open_url(tls_url("localhost", options[i]));
        int warned = 0;
        assert_int_equal(hf_diagnose(client, count_warning, &warned, NULL), HF_OK);
        check_number(options[i], warned, i == 0);
        hf_close(client);
    }
}

static void files_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    expect(tls_url("localhost", "tls_ca=@/server.key"), HF_INVALID, "tls_ca");
    expect(tls_url("localhost", "tls_cert=@/client.crt&tls_key=@/server.key"), HF_INVALID,
           "tls_key");
}

static void c12_waiters_are_called_over_tls(void **state)
{
    hf_client *holder = open_url(tls_url("localhost", "tls_ca=@/ca.crt&recheck=60s"));
    hf_client *client = open_url(tls_url("localhost", "tls_ca=@/ca.crt&recheck=60s"));
    struct waiter w = {0};
    hf_lock *lock = NULL;

    (void)state;
    assert_int_equal(try_lock(holder, "a", 60000, &lock), HF_OK);
    w.opt = (hf_options)HF_OPTIONS_INIT;
    w.opt.wait_ms = 30000; /* less than the recheck: it must be told */
    wait_in_thread(&w, client, "a");
    await_waiting(holder, "a", 1);
    hf_lock_release(lock, NULL);
    assert_int_equal(join_waiter(&w), HF_OK);
    hf_lock_release(w.lock, NULL);
    hf_close(client);
    hf_close(holder);
}

static void plain_port_is_not_mistaken(void **state)
{
    char url[100];
    hf_error err = {0};

    (void)state;
    snprintf(url, sizeof url, "rediss://localhost:%d/0?op_timeout=1s&tls=insecure", server.port);
    assert_int_equal(lock_once(url, &err), HF_UNAVAILABLE);
    check_contains("text", err.text, "does this port speak TLS?");
    snprintf(url, sizeof url, "redis://localhost:%d/0?op_timeout=1s", tls_port);
    assert_int_equal(lock_once(url, &err), HF_UNAVAILABLE);
    check_contains("text", err.text, "rediss://");
}

static void redlock_speaks_tls_and_verifies(void **state)
{
    char start[100];

    (void)state;
    snprintf(start, sizeof start, "redlock://localhost:%d", tls_port);
    expect(fill_in(start, "restart_guard=off&tls=verify&tls_ca=@/ca.crt"), HF_OK, NULL);
    expect(fill_in(start, "restart_guard=off&tls=insecure"), HF_OK, NULL);
    expect(fill_in(start, "tls=verify&tls_ca=@/other.crt"), HF_DENIED, "not trusted");
    snprintf(start, sizeof start, "redlock://127.0.0.2:%d", tls_port);
    expect(fill_in(start, "tls=verify&tls_ca=@/ca.crt"), HF_DENIED, "mismatch");
    expect(fill_in(start, "tls_ca=@/ca.crt"), HF_INVALID, "tls=verify");
}

static int set_clients(const char *wanted)
{
    redisContext *c = server_stranger(&server);

    freeReplyObject(ask(c, "CONFIG SET tls-auth-clients %s", wanted));
    redisFree(c);
    return 0;
}

static int want_certificates(void **state)
{
    (void)state;
    return set_clients("yes");
}

static int want_none(void **state)
{
    (void)state;
    return set_clients("optional");
}

/* Who accepts any server is not told that he does not trust it. */
static void certificate_that_the_server_misses_is_no_distrust(void **state)
{
    static const char *const options[] = {"restart_guard=off&tls=verify&tls_ca=@/ca.crt",
                                          "restart_guard=off&tls=insecure"};
    char start[100];

    (void)state;
    snprintf(start, sizeof start, "redlock://localhost:%d", tls_port);
    for (size_t i = 0; i < COUNT(options); i++)
        expect(fill_in(start, options[i]), HF_UNAVAILABLE, NULL);
    expect(tls_url("localhost", "tls=insecure"), HF_UNAVAILABLE, NULL);
}

/* Its own process, since it rewrites its file; it names the TLS port as the master's. */
static pid_t start_sentinel(int port)
{
    char path[100];

    snprintf(path, sizeof path, "%s/sentinel.conf", server.dir);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fprintf(file,
            "port 0\ntls-port %d\nbind 127.0.0.1\ndir %s\nlogfile sentinel.log\n"
            "tls-ca-cert-file ca.crt\ntls-cert-file server.crt\ntls-key-file server.key\n"
            "tls-auth-clients optional\ntls-replication yes\n"
            "sentinel monitor m 127.0.0.1 %d 1\n",
            port, server.dir, tls_port);
    fclose(file);
    pid_t pid = fork();
    if (pid == 0) {
        execlp("redis-server", "redis-server", path, "--sentinel", (char *)NULL);
        _exit(127);
    }
    return pid;
}

static int accepts(void *ctx)
{
    redisContext *c = redisConnect("127.0.0.1", *(int *)ctx);
    bool ok = c->err == 0;

    redisFree(c);
    return ok;
}

static void sentinel_and_master_speak_tls(void **state)
{
    int port = free_port();
    char start[100];
    pid_t pid = start_sentinel(port);

    (void)state;
    await("a sentinel to answer", accepts, &port);
    snprintf(start, sizeof start, "redis+sentinel://127.0.0.1:%d/m", port);
    expect(fill_in(start, "tls=verify&tls_ca=@/ca.crt"), HF_OK, NULL);
    expect(fill_in(start, "tls=verify&tls_ca=@/other.crt"), HF_DENIED, "not trusted");
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trusted_server_is_used),
        cmocka_unit_test(unknown_authority_is_denied),
        cmocka_unit_test(wrong_name_is_denied),
        cmocka_unit_test(insecure_accepts_any),
        cmocka_unit_test(doctor_warns_of_insecure),
        cmocka_unit_test(files_that_do_not_fit_are_refused),
        cmocka_unit_test(c12_waiters_are_called_over_tls),
        cmocka_unit_test(plain_port_is_not_mistaken),
        cmocka_unit_test(redlock_speaks_tls_and_verifies),
        cmocka_unit_test_setup_teardown(certificate_that_the_server_misses_is_no_distrust,
                                        want_certificates, want_none),
        cmocka_unit_test(sentinel_and_master_speak_tls),
    };

    if (system("command -v openssl >/dev/null") != 0) {
        fprintf(stderr, "SKIPPED: openssl is not installed\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, start_tls, stop_tls);
}
