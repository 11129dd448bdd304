/* Out of memory: every allocation of a client fails in turn, alone and with all that follow. It
 * says so, or that the outcome of its write is not known, and leaves nothing behind. The server is
 * another process, which has all the memory it wants. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client.h"
#include "lib/torture.h"
#include "server.h"

static const struct hf__cql_statement look = {HF__CQL_KIND_READ, "SELECT a FROM k.t"};
static const struct hf__cql_statement swap = {HF__CQL_KIND_SWAP, "UPDATE k.t SET a = ? IF a = ?"};
static const char rows[] = "00000002 00000004 00000001 00000002 00000001 61 ffffffff";

static void answer_rows(const struct question *q, void *arg)
{
    (void)arg;
    if (q->opcode == HF__CQL_OP_EXECUTE)
        server_reply(q, HF__CQL_OP_RESULT, rows);
    else
        server_answer(q);
}

static pid_t start_server(int *ret_port)
{
    int fds[2];

    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct server *s = server_start(answer_rows, NULL);
        int port = server_port(s);
        if (write(fds[1], &port, sizeof port) != sizeof port)
            _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(fds[0], ret_port, sizeof *ret_port), sizeof *ret_port);
    close(fds[0]);
    close(fds[1]);
    return pid;
}

static int ask(struct hf__cql *cql, const struct hf__cql_statement *statement)
{
    static char large[5000]; /* more than the first room of a writer */
    const struct hf__cql_value values[] = {hf__cql_blob(large, sizeof large), hf__cql_integer(1)};
    struct hf__cql_request request =
        client_request(statement, values, statement == &swap ? 2 : 0, 20000);
    struct hf__cql_result result;
    int code = hf__cql_execute(cql, &request, &result, NULL);

    if (code != 0)
        return code;
    if (result.row_count != 2 || !hf__cql_next_row(&result))
        code = HF_CORRUPT;
    hf__cql_result_clear(&result);
    return code;
}

static int talk(void *arg)
{
    struct hf__cql *cql = NULL;
    int code = client_open(arg, &cql, NULL);

    if (code == 0)
        code = ask(cql, &look);
    if (code == 0)
        code = ask(cql, &swap);
    hf__cql_close(cql);
    return code;
}

static void a_client_out_of_memory_says_so_and_leaves_nothing(void **state)
{
    static const char *const versions[] = {"4", "5"};
    char url[100];
    int port;
    pid_t pid = start_server(&port);

    (void)state;
    for (size_t i = 0; i < COUNT(versions); i++) {
        snprintf(url, sizeof url, "cassandra://u:p@127.0.0.1:%d,127.0.0.1:%d/?protocol=%s", port,
                 port, versions[i]);
        torture_run(talk, url, 1);
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_client_out_of_memory_says_so_and_leaves_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
