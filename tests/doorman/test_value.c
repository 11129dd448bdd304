/* The value beside a lock: who writes it, in which order, and when it is in doubt (C15). */
#include "lib/check.h"
#include "record.h"

static void c15_only_the_holder_writes_by_its_token(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    uint64_t token = attempt(&p, writer(1)).generation;
    attempt(&p, writer(2));
    is("the holder", writes(&p, 1, token, 1).verdict, HF__VERDICT_DONE);
    is("kept", p.record.value_generation, token);
    is("a waiter", writes(&p, 2, token, 2).verdict, HF__VERDICT_GONE);
    is("another token", writes(&p, 1, token + 1, 2).verdict, HF__VERDICT_GONE);
    is("a stranger", writes(&p, 9, token, 2).verdict, HF__VERDICT_GONE);
    release(&p, 1, 0);
    is("too late", writes(&p, 1, token, 2).verdict, HF__VERDICT_GONE);
    is("as it was", p.record.value_order, 1);
}

static void c15_a_reader_does_not_write(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    uint64_t token = attempt(&p, reader(1, 0)).generation;
    is("reads", reads(&p, 1, token).verdict, HF__VERDICT_DONE);
    is("writes", writes(&p, 1, token, 1).verdict, HF__VERDICT_GONE);
    pass(&p, 3000);
    sweep(&p);
    is("vanished without a doubt", p.record.doubt, false);
}

static void c15_a_write_that_was_overtaken_is_dropped(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    uint64_t token = attempt(&p, writer(1)).generation;
    is("second", writes(&p, 1, token, 2).verdict, HF__VERDICT_DONE);
    is("first", writes(&p, 1, token, 1).verdict, HF__VERDICT_STALE);
    is("second again", writes(&p, 1, token, 2).verdict, HF__VERDICT_DONE);
    is("the order", p.record.value_order, 2);
    release(&p, 1, 0);
    token = attempt(&p, writer(2)).generation;
    is("the next holder's first", writes(&p, 2, token, 1).verdict, HF__VERDICT_DONE);
}

static void c15_anybody_may_look(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    is("nobody holds", reads(&p, 9, 0).verdict, HF__VERDICT_DONE);
    uint64_t token = attempt(&p, writer(1)).generation;
    is("somebody else", reads(&p, 9, 0).verdict, HF__VERDICT_DONE);
    is("the holder, as anybody", reads(&p, 1, 0).verdict, HF__VERDICT_DONE);
    is("with a token that is not its own", reads(&p, 9, token).verdict, HF__VERDICT_GONE);
    pass(&p, 3000);
    sweep(&p);
    is("looking opens nothing", p.record.doubt, false);
}

static void c15_whoever_vanishes_leaves_a_doubt(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    uint64_t token = attempt(&p, writer(1)).generation;
    reads(&p, 1, token);
    pass(&p, 3000);
    token = attempt(&p, writer(2)).generation;
    is("expired", p.record.doubt, true);
    is("reading does not end it", reads(&p, 2, token).verdict, HF__VERDICT_DONE);
    is("still", p.record.doubt, true);
    writes(&p, 2, token, 1);
    is("written", p.record.doubt, false);
    breaks(&p, 2, false);
    is("broken", p.record.doubt, true);
}

static void c15_a_release_leaves_none(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    uint64_t token = attempt(&p, writer(1)).generation;
    writes(&p, 1, token, 1);
    release_after(&p, 1, 5000);
    pass(&p, 5000);
    sweep(&p);
    is("released", p.record.doubt, false);
    attempt(&p, writer(2));
    pass(&p, 3000);
    sweep(&p);
    is("never opened", p.record.doubt, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c15_only_the_holder_writes_by_its_token),
        cmocka_unit_test(c15_a_reader_does_not_write),
        cmocka_unit_test(c15_a_write_that_was_overtaken_is_dropped),
        cmocka_unit_test(c15_anybody_may_look),
        cmocka_unit_test(c15_whoever_vanishes_leaves_a_doubt),
        cmocka_unit_test(c15_a_release_leaves_none),
    };

    return cmocka_run_group_tests_name("doorman_value", tests, NULL, NULL);
}
