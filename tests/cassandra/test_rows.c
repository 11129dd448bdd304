/* What is written into rows comes back, and what nobody wrote is refused; without a server. */
#include <stdlib.h>

#include "lib/check.h"
#include "stores/cassandra/simple.h"

#define ALL \
    (HF__CS_IN(HF__PLACE_INSIDE) | HF__CS_IN(HF__PLACE_LINGERING) | HF__CS_IN(HF__PLACE_WAITING))

static struct hf__cql_bytes bytes_of(const char *text)
{
    return (struct hf__cql_bytes){(const unsigned char *)text, strlen(text)};
}

/* One of each kind, every field different. */
static struct hf__cs_extra extras[4];
static const struct hf__entry written[] = {
    {.ticket = {{1}},
     .place = HF__PLACE_INSIDE,
     .mode = HF_SHARED,
     .limit = UINT32_MAX,
     .generation = INT64_MAX - 1,
     .ttl_ms = 30100,
     .lock_delay_ms = 7,
     .retire_ms = 60100,
     .since_ms = 1700000000123,
     .until_ms = 1700000030223,
     .lease_ms = 30100,
     .claimed = true,
     .who = &extras[0]},
    {.ticket = {{2}},
     .place = HF__PLACE_LINGERING,
     .ttl_ms = HF__NEVER,
     .until_ms = 5,
     .lease_ms = 6,
     .who = &extras[1]},
    {.ticket = {{3}},
     .place = HF__PLACE_WAITING,
     .ttl_ms = HF__NEVER,
     .until_ms = HF__NEVER,
     .lease_ms = HF__NEVER,
     .who = &extras[2]},
    {.ticket = {{4}}, .place = HF__PLACE_RETIRED, .until_ms = 8, .lease_ms = 9, .who = &extras[3]},
};

static void pack(struct hf__cql_writer *list, unsigned places)
{
    struct hf__entry entries[COUNT(written)];
    struct hf__cs_row row = {.record = {.entries = entries, .count = COUNT(written)}};

    memcpy(entries, written, sizeof written);
    for (size_t i = 0; i < COUNT(extras); i++)
        extras[i] = (struct hf__cs_extra){.host = bytes_of("h\303\266st"),
                                          .user = bytes_of(""),
                                          .program = bytes_of("program"),
                                          .note = bytes_of("two\nlines"),
                                          .pid = 4711,
                                          .skew_ms = 100};
    hf__cql_writer_init(list, 10000);
    hf__cs_pack(list, &row, places);
    assert_false(list->failed);
}

static void check_same(const struct hf__entry *got, const struct hf__entry *wanted)
{
    assert_true(hf__ticket_equal(&got->ticket, &wanted->ticket));
    check_number("place", got->place, wanted->place);
    check_number("mode", got->mode, wanted->mode);
    check_number("limit", got->limit, wanted->limit);
    check_number("generation", (int64_t)got->generation, (int64_t)wanted->generation);
    check_number("ttl", got->ttl_ms, wanted->ttl_ms);
    check_number("delay", got->lock_delay_ms, wanted->lock_delay_ms);
    check_number("retire", got->retire_ms, wanted->retire_ms);
    check_number("since", got->since_ms, wanted->since_ms);
    check_number("until", got->until_ms, wanted->until_ms);
    check_number("lease", got->lease_ms, wanted->lease_ms);
    check_number("claimed", got->claimed, wanted->claimed);
}

static void entries_come_back(void **state)
{
    struct hf__cql_writer entries, retired;
    struct hf__cs_row row = {0};

    (void)state;
    pack(&entries, ALL);
    pack(&retired, HF__CS_IN(HF__PLACE_RETIRED));
    struct hf__cs_packed packed = {.holders = {entries.data, entries.len},
                                   .retired = {retired.data, retired.len}};
    check_number("code", hf__cs_row_take(&row, &packed, NULL), 0);
    check_number("count", (int64_t)row.count, COUNT(written));
    for (size_t i = 0; i < COUNT(written); i++)
        check_same(&row.was[i], &written[i]);
    const struct hf__cs_extra *x = row.was[0].who;
    check_number("pid", x->pid, 4711);
    check_number("skew", x->skew_ms, 100);
    assert_memory_equal(x->note.data, "two\nlines", 9);
    check_number("no user", (int64_t)x->user.len, 0);
    hf__cs_row_clear(&row);
    hf__cql_writer_clear(&entries);
    hf__cql_writer_clear(&retired);
}

static void list_that_ends_early_is_refused(void **state)
{
    struct hf__cql_writer entries;

    (void)state;
    pack(&entries, ALL);
    for (size_t len = 0; len < entries.len; len++) {
        unsigned char *exact =
            malloc(len + 1); /* so that a sanitizer sees what is read behind it */
        struct hf__cs_packed packed = {.holders = {exact, len}};
        struct hf__cs_row row = {0};
        memcpy(exact, entries.data, len);
        int code = hf__cs_row_take(&row, &packed, NULL);
        if (code != HF_CORRUPT && row.count == 3)
            fail_msg("%zu of %zu bytes gave all of it", len, entries.len);
        hf__cs_row_clear(&row);
        free(exact);
    }
    hf__cql_writer_clear(&entries);
}

static void what_nobody_wrote_is_refused(void **state)
{
    static const char *const wrong[] = {"sleeping", ""};
    struct hf__cs_row row = {0};

    (void)state;
    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct hf__cql_writer w;
        struct hf__cql_value ticket = hf__cql_text("00000000000000000000000000000000"),
                             place = hf__cql_text(wrong[i]);
        hf__cql_writer_init(&w, 1000);
        hf__cql_put_int(&w, 1);
        size_t at = hf__cql_begin_bytes(&w);
        hf__cql_put_value(&w, &ticket);
        hf__cql_put_value(&w, &place);
        hf__cql_end_bytes(&w, at);
        struct hf__cs_packed packed = {.waiters = {w.data, w.len}};
        check_number(wrong[i], hf__cs_row_take(&row, &packed, NULL), HF_CORRUPT);
        hf__cs_row_clear(&row);
        hf__cql_writer_clear(&w);
    }
}

static void simple_names_come_back_and_never_meet(void **state)
{
    static const char *const names[] = {"a", "a b", "\00161", "\001", "\377", "\303\266", "\303"};
    char texts[COUNT(names)][HF__CS_NAME_TEXT], name[HF_NAME_MAX];

    (void)state;
    for (size_t i = 0; i < COUNT(names); i++) {
        size_t len;
        hf__cs_name_text(names[i], strlen(names[i]), texts[i]);
        assert_true(hf__cs_name_bytes(bytes_of(texts[i]), name, &len));
        check_number(names[i], (int64_t)len, (int64_t)strlen(names[i]));
        assert_memory_equal(name, names[i], len);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(texts[i], texts[j]);
    }
}

static void simple_values_come_back(void **state)
{
    const struct hf__who who = {
        .host = "my host", .user = "", .program = "a\tb", .note = " x ", .pid = 3};
    const struct hf__bid bid = {.ttl_ms = 1500, .who = &who};
    char text[HF__CS_VALUE_TEXT];

    (void)state;
    hf__cs_write_value(text, sizeof text, &bid, 99);
    struct hf__cs_value v = hf__cs_read_value(bytes_of(text));
    check_number("ttl", v.ttl_ms, 1500);
    check_number("since", v.since_ms, 99);
    check_number("pid", v.pid, 3);
    check_text("host", v.who.host, "my_host");
    check_text("program", v.who.program, "a_b");
    check_text("note", v.who.note, " x ");
    v = hf__cs_read_value(bytes_of("somebody else's"));
    check_number("ttl", v.ttl_ms, -1);
    check_text("note", v.who.note, "somebody else's");
}

/* The lease that is told is shorter than the one in the row by the skew; what is left of it counts. */
static void c5_grant_of_which_little_is_left_begins_anew(void **state)
{
    struct hf__cs_extra extra = {.skew_ms = 1000};
    struct hf__entry inside = {.ticket = {{1}},
                               .place = HF__PLACE_INSIDE,
                               .ttl_ms = 3000,
                               .lease_ms = 3000,
                               .who = &extra};
    const struct hf__bid bid = {.ticket = {{1}}, .ttl_ms = 3000};
    const struct hf__operation op = {.kind = HF__OPERATION_ATTEMPT, .bid = &bid};

    (void)state;
    for (int64_t left_ms = 1; left_ms <= 3000; left_ms++) {
        struct hf__entry is = inside, was = inside;
        was.until_ms = 5000 + left_ms;
        is.until_ms = 8000;
        struct hf__cs_case c = {.op = &op,
                                .row = {.was = &was, .count = 1},
                                .now_ms = 5000,
                                .answer = {.verdict = HF__VERDICT_GRANTED, .lease_ms = 3000}};
        c.row.record.entries = &is;
        c.row.record.count = 1;
        hf__cs_finish(&c);
        if (c.answer.lease_ms < 1000)
            fail_msg("of %d ms that are left %d are told", (int)left_ms, (int)c.answer.lease_ms);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_come_back),
        cmocka_unit_test(list_that_ends_early_is_refused),
        cmocka_unit_test(what_nobody_wrote_is_refused),
        cmocka_unit_test(simple_names_come_back_and_never_meet),
        cmocka_unit_test(simple_values_come_back),
        cmocka_unit_test(c5_grant_of_which_little_is_left_begins_anew),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
