/* The gate (C10): who is let through to a resource, without the store. */
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/sequencer.h"
#include "lib/check.h"
#include "lib/random.h"

static int make_gate(void **state)
{
    hf_gate *gate;

    if (hf_gate_new(&gate) != 0)
        return -1;
    *state = gate;
    return 0;
}

static int free_gate(void **state)
{
    hf_gate_free(*state);
    return 0;
}

static int pass_mode(hf_gate *gate, char mode, uint64_t generation, const char *name)
{
    char text[HF_SEQUENCER_MAX];

    snprintf(text, sizeof text, "hf1:%c:%" PRIu64 "::%s", mode, generation, name);
    return hf_gate_pass(gate, text, NULL);
}

static void check_levels(hf_gate *gate, const char *name, uint64_t exclusive, uint64_t highest)
{
    uint64_t x = 0, h = 0;

    check_number(name, hf_gate_levels(gate, name, HF_NTS, &x, &h), 0);
    check_number("exclusive", (int64_t)x, (int64_t)exclusive);
    check_number("highest", (int64_t)h, (int64_t)highest);
}

static void c10_an_old_writer_is_refused_after_a_newer_one(void **state)
{
    assert_int_equal(pass_mode(*state, 'x', 10, "a"), HF_OK);
    assert_int_equal(pass_mode(*state, 'x', 10, "a"), HF_OK); /* its next request */
    assert_int_equal(pass_mode(*state, 'x', 11, "a"), HF_OK);
    assert_int_equal(pass_mode(*state, 'x', 10, "a"), HF_STALE);
    check_levels(*state, "a", 11, 11);
}

static void c10_a_writer_is_refused_after_a_newer_reader(void **state)
{
    assert_int_equal(pass_mode(*state, 'x', 10, "a"), HF_OK);
    assert_int_equal(pass_mode(*state, 's', 12, "a"), HF_OK);
    assert_int_equal(pass_mode(*state, 'x', 10, "a"), HF_STALE);
    assert_int_equal(pass_mode(*state, 'x', 11, "a"), HF_STALE);
    assert_int_equal(pass_mode(*state, 'x', 13, "a"), HF_OK);
    check_levels(*state, "a", 13, 13);
}

static void c10_readers_pass_in_any_order_until_a_newer_writer(void **state)
{
    assert_int_equal(pass_mode(*state, 's', 12, "a"), HF_OK);
    assert_int_equal(pass_mode(*state, 's', 11, "a"), HF_OK);
    check_levels(*state, "a", 0, 12);
    assert_int_equal(pass_mode(*state, 'x', 13, "a"), HF_OK);
    assert_int_equal(pass_mode(*state, 's', 12, "a"), HF_STALE);
    assert_int_equal(pass_mode(*state, 's', 13, "a"), HF_STALE);
    assert_int_equal(pass_mode(*state, 's', 14, "a"), HF_OK);
    check_levels(*state, "a", 13, 14);
}

static void c10_a_refusal_changes_nothing(void **state)
{
    assert_int_equal(pass_mode(*state, 'x', 20, "a"), HF_OK);
    assert_int_equal(pass_mode(*state, 's', 25, "a"), HF_OK);
    assert_int_equal(pass_mode(*state, 'x', 22, "a"), HF_STALE);
    assert_int_equal(pass_mode(*state, 's', 20, "a"), HF_STALE);
    assert_int_equal(pass_mode(*state, 'l', 30, "a"), HF_UNSUPPORTED);
    check_levels(*state, "a", 20, 25);
}

static void c10_limited_grants_have_no_order(void **state)
{
    uint64_t x, h;
    hf_error err;

    assert_int_equal(hf_gate_pass(*state, "hf1:l:7::a", &err), HF_UNSUPPORTED);
    check_contains("limited", err.text, "hf_check()");
    assert_int_equal(hf_gate_levels(*state, "a", 1, &x, &h), HF_NOT_FOUND);
}

static void names_are_bytes_and_apart(void **state)
{
    uint64_t x, h;

    assert_int_equal(pass_mode(*state, 'x', 20, "a"), HF_OK);
    assert_int_equal(pass_mode(*state, 'x', 10, "A"), HF_OK);
    assert_int_equal(pass_mode(*state, 'x', 5, "a%20"), HF_OK);
    assert_int_equal(pass_mode(*state, 'x', 4, "a%00"), HF_OK);
    assert_int_equal(pass_mode(*state, 'x', 3, "aa"), HF_OK);
    check_levels(*state, "a", 20, 20);
    check_levels(*state, "A", 10, 10);
    check_levels(*state, "a ", 5, 5);
    assert_int_equal(hf_gate_levels(*state, "a\0b", 2, &x, &h), 0);
    assert_int_equal(x, 4);
    assert_int_equal(hf_gate_levels(*state, "a\0b", 3, &x, &h), HF_NOT_FOUND);
}

static void what_is_no_sequencer_or_name_is_refused(void **state)
{
    char name[HF_NAME_MAX + 2];
    uint64_t x = 77, h = 78;
    hf_error err;

    memset(name, 'n', sizeof name);
    name[HF_NAME_MAX + 1] = '\0';
    assert_int_equal(hf_gate_pass(*state, "hf1:x:07::a", &err), HF_INVALID);
    assert_int_equal(err.code, HF_INVALID);
    assert_int_equal(hf_gate_pass(*state, NULL, NULL), HF_INVALID);
    assert_int_equal(hf_gate_levels(*state, NULL, 1, &x, &h), HF_INVALID);
    assert_int_equal(hf_gate_levels(*state, NULL, HF_NTS, &x, &h), HF_INVALID);
    assert_int_equal(hf_gate_levels(*state, "", HF_NTS, &x, &h), HF_INVALID);
    assert_int_equal(hf_gate_levels(*state, name, HF_NTS, &x, &h), HF_INVALID);
    assert_int_equal(hf_gate_levels(*state, name, HF_NAME_MAX, &x, &h), HF_NOT_FOUND);
    assert_int_equal(hf_gate_restore(*state, name, HF_NTS, 1, 1), HF_INVALID);
    assert_int_equal(hf_gate_restore(*state, "", 0, 1, 1), HF_INVALID);
    assert_int_equal(x, 77);
    assert_int_equal(h, 78);
}

static void restoring_raises_and_never_lowers(void **state)
{
    uint64_t x, h;

    assert_int_equal(hf_gate_restore(*state, "a", HF_NTS, 0, 0), 0);
    assert_int_equal(hf_gate_levels(*state, "a", HF_NTS, &x, &h), HF_NOT_FOUND);
    assert_int_equal(hf_gate_restore(*state, "a", HF_NTS, 10, 12), 0);
    check_levels(*state, "a", 10, 12);
    assert_int_equal(hf_gate_restore(*state, "a", HF_NTS, 9, 11), 0);
    check_levels(*state, "a", 10, 12);
    assert_int_equal(hf_gate_restore(*state, "a", HF_NTS, 11, 0), 0);
    check_levels(*state, "a", 11, 12);
    assert_int_equal(hf_gate_restore(*state, "a", HF_NTS, 15, 3), 0);
    check_levels(*state, "a", 15, 15);
    assert_int_equal(pass_mode(*state, 'x', 14, "a"), HF_STALE);
    assert_int_equal(pass_mode(*state, 's', 15, "a"), HF_STALE);
    assert_int_equal(pass_mode(*state, 'x', 15, "a"), HF_OK);
}

/* Against the rule as the contract writes it, over many names. */
static void c10_many_names_keep_their_own_levels(void **state)
{
    enum { NAMES = 500 };
    static uint64_t exclusive[NAMES], highest[NAMES];
    struct random r = {7};

    for (int i = 0; i < 50000; i++) {
        size_t n = random_below(&r, NAMES);
        uint64_t generation = 1 + random_below(&r, 50);
        bool writer = random_below(&r, 2);
        bool wanted = writer ? generation >= highest[n] : generation > exclusive[n];
        char name[16];
        snprintf(name, sizeof name, "n/%zu", n);
        check_number(name, pass_mode(*state, writer ? 'x' : 's', generation, name),
                     wanted ? HF_OK : HF_STALE);
        if (wanted && writer)
            exclusive[n] = generation;
        if (wanted && generation > highest[n])
            highest[n] = generation;
    }
    for (size_t n = 0; n < NAMES; n++) {
        char name[16];
        snprintf(name, sizeof name, "n/%zu", n);
        check_levels(*state, name, exclusive[n], highest[n]);
    }
}

struct visitor {
    pthread_t thread;
    hf_gate *gate;
    const char *fault;
};

/* Shows every generation once, and looks whether a level ever stays below it or goes back. */
static void *show_many(void *arg)
{
    struct visitor *v = arg;
    uint64_t x, h, seen = 0;

    for (uint64_t generation = 1; generation <= 3000; generation++) {
        char name[16];
        snprintf(name, sizeof name, "t/%u", (unsigned)(generation % 7));
        int code = pass_mode(v->gate, 'x', generation, name);
        if (code != HF_OK && code != HF_STALE)
            v->fault = "a wrong answer";
        if (hf_gate_levels(v->gate, name, HF_NTS, &x, &h) != 0 || h < generation)
            v->fault = "a level below what was shown";
        if (hf_gate_levels(v->gate, "t/1", HF_NTS, &x, &h) != 0 || h < seen)
            v->fault = "a level that went back";
        seen = h;
    }
    return NULL;
}

static void threads_may_share_a_gate(void **state)
{
    struct visitor visitors[4] = {{0}};

    for (size_t i = 0; i < COUNT(visitors); i++) {
        visitors[i].gate = *state;
        assert_int_equal(pthread_create(&visitors[i].thread, NULL, show_many, &visitors[i]), 0);
    }
    for (size_t i = 0; i < COUNT(visitors); i++) {
        assert_int_equal(pthread_join(visitors[i].thread, NULL), 0);
        check_text("visitor", visitors[i].fault, NULL);
    }
    check_levels(*state, "t/4", 3000, 3000);
}

static void freeing_null_is_fine(void **state)
{
    (void)state;
    hf_gate_free(NULL);
}

#define WITH_GATE(test) cmocka_unit_test_setup_teardown(test, make_gate, free_gate)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_GATE(c10_an_old_writer_is_refused_after_a_newer_one),
        WITH_GATE(c10_a_writer_is_refused_after_a_newer_reader),
        WITH_GATE(c10_readers_pass_in_any_order_until_a_newer_writer),
        WITH_GATE(c10_a_refusal_changes_nothing),
        WITH_GATE(c10_limited_grants_have_no_order),
        WITH_GATE(names_are_bytes_and_apart),
        WITH_GATE(what_is_no_sequencer_or_name_is_refused),
        WITH_GATE(restoring_raises_and_never_lowers),
        WITH_GATE(c10_many_names_keep_their_own_levels),
        WITH_GATE(threads_may_share_a_gate),
        cmocka_unit_test(freeing_null_is_fine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
