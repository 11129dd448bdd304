/* What comes out of a store and cannot be reckoned with is refused (doorman/sound.h). */
#include "base/lease.h"
#include "doorman/sound.h"
#include "lib/check.h"

static const struct hf__entry good = {.place = HF__PLACE_INSIDE,
                                      .generation = 7,
                                      .ttl_ms = 30000,
                                      .lock_delay_ms = 1000,
                                      .retire_ms = 60000,
                                      .since_ms = INT64_C(1700000000000),
                                      .until_ms = INT64_C(1700000030000),
                                      .lease_ms = 30000,
                                      .claimed = true};

#define WITH(field, value)         \
    ({                             \
        struct hf__entry e = good; \
        e.field = (value);         \
        hf__entry_is_sound(&e);    \
    })

static void entries_of_ours_are_sound(void **state)
{
    (void)state;
    assert_true(hf__entry_is_sound(&good));
    assert_true(WITH(until_ms, HF__NEVER) && WITH(lease_ms, HF__NEVER) && WITH(ttl_ms, HF__NEVER));
    assert_true(WITH(ttl_ms, HF_TTL_MAX_MS) && WITH(lock_delay_ms, HF_DELAY_MAX_MS));
    assert_true(WITH(place, HF__PLACE_RETIRED) && WITH(since_ms, -5));
}

static void numbers_that_nobody_writes_are_not(void **state)
{
    (void)state;
    assert_false(WITH(place, HF__PLACE_GONE));
    assert_false(WITH(place, (enum hf__place)9));
    assert_false(WITH(generation, 0));
    assert_false(WITH(generation, UINT64_MAX));
    assert_false(WITH(ttl_ms, -1));
    assert_false(WITH(ttl_ms, INT64_MAX - 1));
    assert_false(WITH(lock_delay_ms, INT64_MAX));
    assert_false(WITH(retire_ms, INT64_MIN));
    assert_false(WITH(since_ms, INT64_MAX));
    assert_false(WITH(until_ms, INT64_MIN));
    assert_false(WITH(lease_ms, 0));
    assert_false(WITH(lease_ms, INT64_MAX - 1));
}

/* A lease that is believed has a deadline after the moment it was asked for. */
static void grants_without_token_or_lease_are_not(void **state)
{
    struct hf__answer a = {.verdict = HF__VERDICT_GRANTED, .generation = 1, .lease_ms = 1};

    (void)state;
    assert_true(hf__answer_is_sound(&a));
    a.lease_ms = HF__SPAN_MAX_MS;
    assert_true(hf__answer_is_sound(&a));
    assert_true(hf__lease_deadline_ns(INT64_C(1) << 60, a.lease_ms) > INT64_C(1) << 60);
    a.lease_ms++;
    assert_false(hf__answer_is_sound(&a));
    a.lease_ms = 0;
    assert_false(hf__answer_is_sound(&a));
    a = (struct hf__answer){.verdict = HF__VERDICT_GRANTED, .lease_ms = 1000};
    assert_false(hf__answer_is_sound(&a));
    a = (struct hf__answer){
        .verdict = HF__VERDICT_QUEUED, .lease_ms = 1000, .ask_again_ms = INT64_MIN};
    assert_false(hf__answer_is_sound(&a));
    a.ask_again_ms = HF__NEVER;
    assert_true(hf__answer_is_sound(&a));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_of_ours_are_sound),
        cmocka_unit_test(numbers_that_nobody_writes_are_not),
        cmocka_unit_test(grants_without_token_or_lease_are_not),
    };

    return cmocka_run_group_tests_name("doorman_sound", tests, NULL, NULL);
}
