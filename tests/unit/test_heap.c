/* The heap of timers, against a plain search for the earliest. */
#include <stdlib.h>

#include "base/heap.h"
#include "lib/check.h"
#include "lib/random.h"

enum { TIMERS = 200 };

static int64_t earliest(const struct hf__timer *timers)
{
    int64_t first = INT64_MAX;

    for (size_t i = 0; i < TIMERS; i++) {
        if (timers[i].slot != 0 && timers[i].when_ns < first)
            first = timers[i].when_ns;
    }
    return first;
}

static void check_first(const struct hf__heap *heap, const struct hf__timer *timers)
{
    const struct hf__timer *first = hf__heap_first(heap);
    size_t set = 0;

    check_number("first", first != NULL ? first->when_ns : INT64_MAX, earliest(timers));
    for (size_t i = 0; i < TIMERS; i++)
        set += timers[i].slot != 0;
    check_number("count", (int64_t)heap->count, (int64_t)set);
}

static void the_earliest_is_always_first(void **state)
{
    static struct hf__timer timers[TIMERS];
    struct hf__heap heap = {0};
    struct random r = {13};

    (void)state;
    assert_true(hf__heap_reserve(&heap, TIMERS));
    for (int step = 0; step < 20000; step++) {
        struct hf__timer *timer = &timers[random_below(&r, TIMERS)];
        if (random_below(&r, 3) == 0)
            hf__heap_remove(&heap, timer);
        else
            hf__heap_set(&heap, timer, (int64_t)random_below(&r, 1000));
        check_first(&heap, timers);
    }

    int64_t last = -1;
    for (struct hf__timer *first; (first = hf__heap_first(&heap)) != NULL;) {
        assert_true(first->when_ns >= last);
        last = first->when_ns;
        hf__heap_remove(&heap, first);
    }
    hf__heap_clear(&heap);
}

static void reserving_keeps_what_is_there(void **state)
{
    struct hf__timer timers[40] = {{0}};
    struct hf__heap heap = {0};

    (void)state;
    for (size_t i = 0; i < COUNT(timers); i++) {
        assert_true(hf__heap_reserve(&heap, i + 1));
        hf__heap_set(&heap, &timers[i], 100 - (int64_t)i);
        assert_ptr_equal(hf__heap_first(&heap), &timers[i]);
    }
    hf__heap_clear(&heap);
    assert_null(hf__heap_first(&heap));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_earliest_is_always_first),
        cmocka_unit_test(reserving_keeps_what_is_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
