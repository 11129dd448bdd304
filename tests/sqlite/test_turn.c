/* The turn of threads within a client: in order of arrival, and what keeps a grant first. */
#include <pthread.h>
#include <stdatomic.h>

#include "sqlite/fixture.h"
#include "stores/sqlite/sqlite.h"

#define PATIENCE (30 * SECOND * HF__NS_PER_MS)

struct thread {
    struct hf__sqlite *s;
    enum hf__sqlite_rank rank;
    int number;
    atomic_int *count, *order;
};

static int64_t in_time(void)
{
    return hf__now_ns(&hf__system_env) + PATIENCE;
}

static struct hf__sqlite *open_on_real_clock(struct fixture *f)
{
    f->env = hf__system_env;
    open_store(f);
    return (struct hf__sqlite *)f->store;
}

static void *take_turn(void *arg)
{
    struct thread *t = arg;

    if (hf__sqlite_enter(t->s, t->rank, in_time(), NULL) != 0)
        return NULL;
    atomic_store(&t->order[atomic_fetch_add(t->count, 1)], t->number);
    hf__sqlite_leave(t->s);
    return NULL;
}

/* Started, and in line behind those before it. */
static pthread_t start(struct thread *t)
{
    struct hf__sqlite *s = t->s;
    pthread_t id;
    bool waits = false;

    pthread_mutex_lock(&s->turn.mutex);
    void *last = s->turn.last[t->rank];
    pthread_mutex_unlock(&s->turn.mutex);
    assert_int_equal(pthread_create(&id, NULL, take_turn, t), 0);
    for (int64_t until_ns = in_time(); !waits; usleep(200)) {
        pthread_mutex_lock(&s->turn.mutex);
        waits = s->turn.last[t->rank] != last;
        pthread_mutex_unlock(&s->turn.mutex);
        assert_true(hf__now_ns(&hf__system_env) < until_ns);
    }
    return id;
}

static void threads_have_their_turns_in_order(void **state)
{
    static const int wanted[] = {4, 5, 0, 1, 2, 3};
    struct hf__sqlite *s = open_on_real_clock(*state);
    struct thread threads[COUNT(wanted)];
    pthread_t ids[COUNT(wanted)];
    atomic_int count = 0, order[COUNT(wanted)];

    assert_int_equal(hf__sqlite_enter(s, HF__SQLITE_RANK_ASKS, in_time(), NULL), 0);
    for (int i = 0; i < (int)COUNT(wanted); i++) {
        threads[i] = (struct thread){.s = s,
                                     .rank = i < 4 ? HF__SQLITE_RANK_ASKS : HF__SQLITE_RANK_KEEPS,
                                     .number = i,
                                     .count = &count,
                                     .order = order};
        ids[i] = start(&threads[i]);
    }
    hf__sqlite_leave(s);
    for (size_t i = 0; i < COUNT(wanted); i++)
        pthread_join(ids[i], NULL);
    check_number("turns", atomic_load(&count), COUNT(wanted));
    for (size_t i = 0; i < COUNT(wanted); i++)
        check_number("place", atomic_load(&order[i]), wanted[i]);
}

static void a_thread_whose_time_is_over_leaves_the_line(void **state)
{
    struct fixture *f = *state;
    struct hf__sqlite *s = open_on_real_clock(f);

    assert_int_equal(hf__sqlite_enter(s, HF__SQLITE_RANK_ASKS, in_time(), NULL), 0);
    int64_t soon_ns = hf__now_ns(&hf__system_env) + 20 * HF__NS_PER_MS;
    check_number("second", hf__sqlite_enter(s, HF__SQLITE_RANK_ASKS, soon_ns, &f->err),
                 HF_UNAVAILABLE);
    check_contains("text", f->err.text, "other threads kept the database busy");
    assert_null(s->turn.next[HF__SQLITE_RANK_ASKS]);
    hf__sqlite_leave(s);
    assert_int_equal(hf__sqlite_enter(s, HF__SQLITE_RANK_ASKS, in_time(), NULL), 0);
    hf__sqlite_leave(s);
}

int main(void)
{
#define FRESH(test) cmocka_unit_test_setup_teardown(test, setup_fixture, teardown)
    const struct CMUnitTest tests[] = {
        FRESH(threads_have_their_turns_in_order),
        FRESH(a_thread_whose_time_is_over_leaves_the_line),
    };

    return cmocka_run_group_tests_name("sqlite_turn", tests, NULL, NULL);
}
