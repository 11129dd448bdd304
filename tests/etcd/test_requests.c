/* Requests are written as text: it is what the server reads, and whole or not there. */
#include <stdlib.h>

#include "lib/check.h"
#include "stores/etcd/etcd.h"

static const struct hf__etcd_key a = {.len = 1, .bytes = "a"};  /* YQ== */
static const struct hf__etcd_key b = {.len = 2, .bytes = "bb"}; /* YmI= */

static void assert_written(struct hf__etcd_txn *t, const char *text)
{
    char *written = hf__etcd_written(t);

    assert_non_null(written);
    assert_string_equal(written, text);
    free(written);
}

static void c1_conditions_are_as_the_server_reads_them(void **state)
{
    struct hf__etcd_txn t = {0};
    (void)state;

    hf__etcd_compare(&t, &a, 0);
    hf__etcd_compare(&t, &a, 7);
    hf__etcd_compare_none(&t, &a, &b);
    hf__etcd_compare_above(&t, &a, NULL, 0);
    hf__etcd_compare_above(&t, &a, &b, 8);
    hf__etcd_compare_put(&t, &b, 9);
    assert_written(&t, "{\"compare\":["
                       "{\"target\":\"CREATE\",\"key\":\"YQ==\"},"
                       "{\"target\":\"CREATE\",\"key\":\"YQ==\",\"create_revision\":\"7\"},"
                       "{\"target\":\"CREATE\",\"key\":\"YQ==\",\"range_end\":\"YmI=\"},"
                       "{\"target\":\"CREATE\",\"result\":\"GREATER\",\"key\":\"YQ==\"},"
                       "{\"target\":\"CREATE\",\"result\":\"GREATER\",\"key\":\"YQ==\","
                       "\"range_end\":\"YmI=\",\"create_revision\":\"8\"},"
                       "{\"target\":\"MOD\",\"key\":\"YmI=\",\"mod_revision\":\"9\"}]}");
}

static void c1_steps_are_as_the_server_reads_them(void **state)
{
    struct hf__etcd_txn t = {0};
    (void)state;

    hf__etcd_compare(&t, &a, 0);
    hf__etcd_put(&t, &a, "", 5);
    hf__etcd_put(&t, &a, "{}", 0);
    hf__etcd_put_again(&t, &b, 5);
    hf__etcd_otherwise(&t);
    hf__etcd_delete(&t, &a);
    hf__etcd_get(&t, &b);
    hf__etcd_range(&t, &(struct hf__etcd_range){.from = &a, .to = &b});
    hf__etcd_range(&t, &(struct hf__etcd_range){.from = &a, .to = &b, .before = 4, .newest = 2});
    assert_written(&t,
                   "{\"compare\":[{\"target\":\"CREATE\",\"key\":\"YQ==\"}],\"success\":["
                   "{\"request_put\":{\"key\":\"YQ==\",\"lease\":\"5\"}},"
                   "{\"request_put\":{\"key\":\"YQ==\",\"value\":\"e30=\"}},"
                   "{\"request_put\":{\"key\":\"YmI=\",\"lease\":\"5\",\"ignore_value\":true}}],"
                   "\"failure\":[{\"request_delete_range\":{\"key\":\"YQ==\"}},"
                   "{\"request_range\":{\"key\":\"YmI=\"}},"
                   "{\"request_range\":{\"key\":\"YQ==\",\"range_end\":\"YmI=\","
                   "\"sort_target\":\"CREATE\",\"sort_order\":\"ASCEND\"}},"
                   "{\"request_range\":{\"key\":\"YQ==\",\"range_end\":\"YmI=\","
                   "\"sort_target\":\"CREATE\",\"sort_order\":\"DESCEND\",\"limit\":\"2\","
                   "\"max_create_revision\":\"3\"}}]}");
}

static void c1_nested_transaction_has_lists_of_its_own(void **state)
{
    struct hf__etcd_txn t = {0};
    (void)state;

    hf__etcd_nest(&t);
    hf__etcd_unnest(&t);
    hf__etcd_otherwise(&t);
    hf__etcd_nest(&t);
    hf__etcd_compare(&t, &a, 0);
    hf__etcd_delete(&t, &a);
    hf__etcd_unnest(&t);
    hf__etcd_get(&t, &a);
    assert_written(&t, "{\"success\":[{\"request_txn\":{}}],\"failure\":[{\"request_txn\":"
                       "{\"compare\":[{\"target\":\"CREATE\",\"key\":\"YQ==\"}],"
                       "\"success\":[{\"request_delete_range\":{\"key\":\"YQ==\"}}]}},"
                       "{\"request_range\":{\"key\":\"YQ==\"}}]}");
}

/* One that found no memory for a condition, or for a value, would do what it must not. */
static void c1_transaction_that_lacks_something_is_none(void **state)
{
    struct hf__etcd_txn lacks_value = {0}, lacks_key = {.spoilt = true};
    (void)state;

    hf__etcd_put(&lacks_value, &a, NULL, 1);
    hf__etcd_delete(&lacks_value, &a);
    assert_null(hf__etcd_written(&lacks_value));
    hf__etcd_delete(&lacks_key, &a);
    assert_null(hf__etcd_written(&lacks_key));
}

/* Every length, also beyond what is written in one piece. */
static void c1_bytes_come_back(void **state)
{
    static struct hf__etcd_key key, read;
    (void)state;

    for (size_t len = 0; len < sizeof key.bytes; len += len < 1200 ? 1 : 97) {
        struct hf__etcd_txn t = {0};
        for (size_t i = 0; i < len; i++)
            key.bytes[i] = (char)(i * 7 + len);
        key.len = len;
        hf__etcd_delete(&t, &key);
        char *written = hf__etcd_written(&t);
        json_t *json = json_loads(written, 0, NULL);
        const json_t *text = NULL;
        assert_int_equal(
            json_unpack(json, "{s:[{s:{s:o}}]}", "success", "request_delete_range", "key", &text),
            0);
        assert_true(hf__etcd_unb64(text, &read));
        assert_int_equal(read.len, len);
        assert_memory_equal(read.bytes, key.bytes, len);
        json_decref(json);
        free(written);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c1_conditions_are_as_the_server_reads_them),
        cmocka_unit_test(c1_steps_are_as_the_server_reads_them),
        cmocka_unit_test(c1_nested_transaction_has_lists_of_its_own),
        cmocka_unit_test(c1_transaction_that_lacks_something_is_none),
        cmocka_unit_test(c1_bytes_come_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
