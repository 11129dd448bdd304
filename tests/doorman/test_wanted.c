/* Holders that want to know when somebody waits (C16). */
#include "lib/check.h"
#include "record.h"

static void c16_whoever_comes_calls_the_holder_once(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    uint64_t token = attempt(&p, telling(writer(1))).generation;
    is("nobody yet", renew(&p, 1, token).wanted, false);
    attempt(&p, writer(2));
    is("called", p.called, 1);
    attempt(&p, writer(2));
    is("by a question that was asked before", p.called, 0);
    attempt(&p, writer(3));
    is("by the next one", p.called, 0);
    is("the renewal says it", renew(&p, 1, token).wanted, true);
}

static void c16_it_is_called_again_when_nobody_waited_meanwhile(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    uint64_t token = attempt(&p, telling(writer(1))).generation;
    attempt(&p, writer(2));
    withdraw(&p, 2, 0);
    attempt(&p, writer(3));
    is("it has not heard", p.called, 0);
    withdraw(&p, 3, 0);
    is("it hears", renew(&p, 1, token).wanted, false);
    attempt(&p, writer(4));
    is("called again", p.called, 1);
}

static void c16_who_does_not_wait_calls_nobody(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    uint64_t token = attempt(&p, telling(writer(1))).generation;
    is("busy", attempt(&p, no_wait(writer(2))).verdict, HF__VERDICT_BUSY);
    is("called", p.called, 0);
    is("wanted", renew(&p, 1, token).wanted, false);
}

static void c16_who_did_not_ask_is_told_nothing(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    uint64_t token = attempt(&p, writer(1)).generation;
    attempt(&p, writer(2));
    is("called", p.called, 0);
    is("wanted", renew(&p, 1, token).wanted, false);
}

static void c16_all_readers_are_called(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    attempt(&p, telling(reader(1, 0)));
    attempt(&p, reader(2, 0));
    attempt(&p, telling(reader(3, 0)));
    attempt(&p, writer(4));
    is("called", p.called, 2);
}

static void c16_a_grant_says_who_stands_behind_it(void **state)
{
    struct place p;

    (void)state;
    begin(&p);
    attempt(&p, writer(1));
    attempt(&p, telling(writer(2)));
    attempt(&p, writer(3));
    release(&p, 1, 0);
    is("nobody is called for whoever stood there", p.called, 0);
    is("the answer says it", attempt(&p, telling(writer(2))).wanted, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c16_whoever_comes_calls_the_holder_once),
        cmocka_unit_test(c16_it_is_called_again_when_nobody_waited_meanwhile),
        cmocka_unit_test(c16_who_does_not_wait_calls_nobody),
        cmocka_unit_test(c16_who_did_not_ask_is_told_nothing),
        cmocka_unit_test(c16_all_readers_are_called),
        cmocka_unit_test(c16_a_grant_says_who_stands_behind_it),
    };

    return cmocka_run_group_tests_name("doorman_wanted", tests, NULL, NULL);
}
