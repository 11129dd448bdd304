/* Many threads on one connection: everybody gets the answer to what was asked, in whatever order
 * answers come, also when the one who reads for all leaves in the middle of a frame. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "client.h"
#include "server.h"

enum { THREADS = 8, ROUNDS = 300, FLUSH = -1 };

static const struct hf__cql_statement echo = {HF__CQL_KIND_READ, "SELECT ? FROM k.t"};

static struct hf__cql *client_of(struct server *s, const char *options)
{
    struct hf__cql *cql = NULL;
    char url[100];

    snprintf(url, sizeof url, "cassandra://127.0.0.1:%d/?%s", server_port(s), options);
    assert_int_equal(client_open(url, &cql, NULL), 0);
    return cql;
}

/* Asks for a number and wants it back. */
static int ask(struct hf__cql *cql, int32_t number, int64_t ms)
{
    const struct hf__cql_value value = hf__cql_integer(number);
    struct hf__cql_request request = client_request(&echo, &value, 1, ms);
    struct hf__cql_result result;
    int32_t got = 0;
    int code = hf__cql_execute(cql, &request, &result, NULL);

    if (code != 0)
        return code;
    if (!hf__cql_next_row(&result) || !hf__cql_get_integer(hf__cql_column(&result, 0), &got))
        code = HF_CORRUPT;
    hf__cql_result_clear(&result);
    return code == 0 && got != number ? HF_STALE : code;
}

/* The number is the last value of the request. */
static int32_t number_of(const struct question *q)
{
    struct hf__cql_reader r = {.at = q->body + q->len - 4, .left = 4};

    return hf__cql_take_int(&r);
}

/* A row of one column, with the number. */
static void give(const struct question *q, int16_t stream, int32_t number)
{
    struct hf__cql_writer w;

    hf__cql_writer_init(&w, 100);
    hf__cql_put(&w, "\0\0\0\2\0\0\0\4\0\0\0\1\0\0\0\1\0\0\0\4", 20);
    hf__cql_put_int(&w, number);
    server_reply_to(q, stream, HF__CQL_OP_RESULT, w.data, w.len);
    hf__cql_writer_clear(&w);
}

/* Out of order ------------------------------------------------------------- */
struct held {
    int16_t stream[THREADS + 1];
    int32_t number[THREADS + 1];
    size_t count;
};

/* Holds questions back until there are three of them, or somebody flushes: then the last first. */
static void answer_backwards(const struct question *q, void *arg)
{
    struct held *held = arg;

    if (q->opcode != HF__CQL_OP_EXECUTE) {
        server_answer(q);
        return;
    }
    held->stream[held->count] = q->stream;
    held->number[held->count++] = number_of(q);
    if (held->count < 3 && number_of(q) != FLUSH)
        return;
    while (held->count > 0) {
        held->count--;
        give(q, held->stream[held->count], held->number[held->count]);
    }
}

struct asker {
    struct hf__cql *cql;
    struct server *server;
    int32_t first;
    int failed; /* the first code that was not 0 */
    atomic_int *done;
};

static void *ask_many(void *arg)
{
    struct asker *a = arg;

    for (int32_t i = 0; i < ROUNDS && a->failed == 0; i++)
        a->failed = ask(a->cql, a->first + i, 20000);
    atomic_fetch_add(a->done, 1);
    return NULL;
}

static void answers_out_of_order_find_who_asked(void **state)
{
    struct held held = {.count = 0};
    struct server *s = server_start(answer_backwards, &held);
    struct hf__cql *cql = client_of(s, *state);
    struct asker askers[THREADS];
    pthread_t threads[THREADS];
    atomic_int done = 0;

    for (int i = 0; i < THREADS; i++) {
        askers[i] = (struct asker){.cql = cql, .first = i * ROUNDS, .done = &done};
        assert_int_equal(pthread_create(&threads[i], NULL, ask_many, &askers[i]), 0);
    }
    while (atomic_load(&done) < THREADS) {
        assert_int_equal(ask(cql, FLUSH, 20000), 0);
        usleep(200);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        check_number("an asker", askers[i].failed, 0);
    }
    assert_int_equal(server_connections(s), 1);
    hf__cql_close(cql);
    server_stop(s);
}

/* A reader that leaves ----------------------------------------------------- */
enum { SHORT = 1, CUT = 2, REST = 3 };

/* SHORT is never answered; of the answer to CUT half is sent; REST brings the other half. */
static void answer_in_halves(const struct question *q, void *arg)
{
    static const char frame[] = "\204\0\0\0\10\0\0\0\30"
                                "\0\0\0\2\0\0\0\4\0\0\0\1\0\0\0\1\0\0\0\4\0\0\0\2";
    int16_t *stream = arg;
    char copy[sizeof frame];

    memcpy(copy, frame, sizeof frame);
    if (q->opcode != HF__CQL_OP_EXECUTE) {
        server_answer(q);
    } else if (number_of(q) == CUT) {
        *stream = q->stream;
        copy[3] = (char)q->stream;
        server_send(q, copy, 11);
    } else if (number_of(q) == REST) {
        server_send(q, copy + 11, sizeof frame - 1 - 11);
        give(q, q->stream, REST);
    }
}

static void *ask_cut(void *arg)
{
    struct asker *a = arg;

    a->failed = ask(a->cql, CUT, 20000);
    return NULL;
}

static void await_questions(struct server *s, unsigned count)
{
    for (int i = 0; i < AMPLE_MS && server_count(s, HF__CQL_OP_EXECUTE) < count; i++)
        usleep(1000);
}

static void *ask_short_then_rest(void *arg)
{
    struct asker *a = arg;

    a->failed = ask(a->cql, SHORT, 300) == HF_UNAVAILABLE ? 0 : HF_STALE;
    await_questions(a->server, 2); /* CUT is before REST, however slow the machine */
    if (a->failed == 0)
        a->failed = ask(a->cql, REST, 20000);
    return NULL;
}

static void a_reader_that_leaves_loses_nothing_of_the_others(void **state)
{
    int16_t stream = -1;
    struct server *s = server_start(answer_in_halves, &stream);
    struct hf__cql *cql = client_of(s, "");
    struct asker first = {.cql = cql, .server = s}, second = {.cql = cql};
    pthread_t threads[2];

    (void)state;
    pthread_create(&threads[0], NULL, ask_short_then_rest, &first);
    await_questions(s, 1);
    pthread_create(&threads[1], NULL, ask_cut, &second);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    check_number("who left", first.failed, 0);
    check_number("who stayed", second.failed, 0);
    assert_int_equal(server_connections(s), 1);
    hf__cql_close(cql);
    server_stop(s);
}

/* Abandoned streams -------------------------------------------------------- */
struct memory {
    atomic_int stream; /* of the question that is not answered; -1: it was */
    atomic_int reused;
};

static void remember_stream(const struct question *q, void *arg)
{
    struct memory *m = arg;

    if (q->opcode != HF__CQL_OP_EXECUTE) {
        server_answer(q);
        return;
    }
    if (q->stream == atomic_load(&m->stream))
        atomic_store(&m->reused, 1);
    if (number_of(q) == SHORT) {
        atomic_store(&m->stream, q->stream);
        return;
    }
    if (number_of(q) == REST) { /* the late answer, before its own */
        give(q, (int16_t)atomic_load(&m->stream), SHORT);
        atomic_store(&m->stream, -1);
    }
    give(q, q->stream, number_of(q));
}

static void a_stream_is_not_used_again_before_its_answer_came(void **state)
{
    struct memory m = {.stream = -1};
    struct server *s = server_start(remember_stream, &m);
    struct hf__cql *cql = client_of(s, "");

    (void)state;
    /* Until it was sent: a slow machine may not come to that in so short a time. */
    for (int tries = 0; tries < AMPLE_MS / 50 && atomic_load(&m.stream) == -1; tries++) {
        assert_int_equal(ask(cql, 100, 20000), 0);
        assert_int_equal(ask(cql, SHORT, 50), HF_UNAVAILABLE);
    }
    assert_int_not_equal(atomic_load(&m.stream), -1);
    for (int i = 0; i < 1100; i++) /* more than there are streams */
        assert_int_equal(ask(cql, 100 + i, 20000), 0);
    assert_int_equal(atomic_load(&m.reused), 0);
    assert_int_equal(ask(cql, REST, 20000), 0);
    for (int i = 0; i < 1100; i++)
        assert_int_equal(ask(cql, 100 + i, 20000), 0);
    assert_int_equal(server_connections(s), 1);
    hf__cql_close(cql);
    server_stop(s);
}

/* The end for all ---------------------------------------------------------- */
static void hang_up_on_all(const struct question *q, void *arg)
{
    unsigned *count = arg;

    if (q->opcode != HF__CQL_OP_EXECUTE)
        server_answer(q);
    else if (number_of(q) == FLUSH)
        give(q, q->stream, FLUSH);
    else if (++*count == THREADS)
        server_hang_up(q);
}

/* Its time is longer than a test may take: who is not told fails it. */
static void *ask_once(void *arg)
{
    struct asker *a = arg;

    a->failed = ask(a->cql, a->first, 600000);
    return NULL;
}

static void all_who_wait_are_told_when_the_connection_breaks(void **state)
{
    unsigned count = 0;
    struct server *s = server_start(hang_up_on_all, &count);
    struct hf__cql *cql = client_of(s, "");
    struct asker askers[THREADS];
    pthread_t threads[THREADS];

    (void)state;
    assert_int_equal(ask(cql, FLUSH, 20000), 0); /* connected and prepared */
    for (int i = 0; i < THREADS; i++) {
        askers[i] = (struct asker){.cql = cql, .first = i};
        assert_int_equal(pthread_create(&threads[i], NULL, ask_once, &askers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        check_number("an asker", askers[i].failed, HF_UNAVAILABLE);
    }
    assert_int_equal(ask(cql, FLUSH, 20000), 0);
    assert_int_equal(server_connections(s), 2);
    hf__cql_close(cql);
    server_stop(s);
}

#define WITH(f, options)                                                              \
    {                                                                                 \
        .name = #f " (" options ")", .test_func = f, .initial_state = (void *)options \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(answers_out_of_order_find_who_asked, "protocol=4"),
        WITH(answers_out_of_order_find_who_asked, "protocol=5"),
        cmocka_unit_test(a_reader_that_leaves_loses_nothing_of_the_others),
        cmocka_unit_test(a_stream_is_not_used_again_before_its_answer_came),
        cmocka_unit_test(all_who_wait_are_told_when_the_connection_breaks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
