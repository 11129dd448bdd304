/* What is sent is what the server reads, byte by byte, and whole or not there. The bytes were written
 * down from etcd's rpc.proto and gRPC's framing. */
#include <stdlib.h>

#include "grpc/session.h"
#include "lib/check.h"
#include "stores/etcd/message.h"

static const struct hf__etcd_key a = {.len = 1, .bytes = "a"};
static const struct hf__etcd_key b = {.len = 2, .bytes = "bb"};

/* A message of this content, in its frame. */
static void assert_framed(const struct hf__buffer *is, const char *content, size_t len)
{
    assert_false(is->failed);
    assert_int_equal(is->len, len + 5);
    assert_int_equal((unsigned char)is->data[4], len);
    assert_memory_equal(is->data, "\0\0\0\0", 4);
    assert_memory_equal(is->data + 5, content, len);
}

#define BYTES(text) text, sizeof text - 1

static void assert_written(struct hf__etcd_txn *t, const char *content, size_t len)
{
    struct hf__buffer written = hf__etcd_written(t);

    assert_framed(&written, content, len);
    hf__buffer_clear(&written);
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
    hf__etcd_compare_put(&t, &b, 300);
    assert_written(&t, BYTES("\x0a\x05\x10\x01\x1a\x01"
                             "a"
                             "\x0a\x07\x10\x01\x1a\x01"
                             "a\x28\x07"
                             "\x0a\x0a\x10\x01\x1a\x01"
                             "a\x82\x04\x02"
                             "bb"
                             "\x0a\x07\x08\x01\x10\x01\x1a\x01"
                             "a"
                             "\x0a\x0e\x08\x01\x10\x01\x1a\x01"
                             "a\x28\x08\x82\x04\x02"
                             "bb"
                             "\x0a\x09\x10\x02\x1a\x02"
                             "bb\x30\xac\x02"));
}

static void c1_steps_are_as_the_server_reads_them(void **state)
{
    struct hf__etcd_txn t = {0};
    (void)state;

    hf__etcd_put(&t, &a, "", 5);
    hf__etcd_put(&t, &a, "{}", 0);
    hf__etcd_put_again(&t, &b, 5);
    hf__etcd_otherwise(&t);
    hf__etcd_delete(&t, &a);
    hf__etcd_get(&t, &b);
    hf__etcd_range(&t, &(struct hf__etcd_range){.from = &a, .to = &b});
    hf__etcd_range(&t, &(struct hf__etcd_range){.from = &a, .to = &b, .before = 4, .newest = 2});
    assert_written(&t, BYTES("\x12\x07\x12\x05\x0a\x01"
                             "a\x18\x05"
                             "\x12\x09\x12\x07\x0a\x01"
                             "a\x12\x02{}"
                             "\x12\x0a\x12\x08\x0a\x02"
                             "bb\x18\x05\x28\x01"
                             "\x1a\x05\x1a\x03\x0a\x01"
                             "a"
                             "\x1a\x06\x0a\x04\x0a\x02"
                             "bb"
                             "\x1a\x0d\x0a\x0b\x0a\x01"
                             "a\x12\x02"
                             "bb\x28\x01\x30\x02"
                             "\x1a\x11\x0a\x0f\x0a\x01"
                             "a\x12\x02"
                             "bb\x18\x02\x28\x02\x30\x02\x68\x03"));
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
    assert_written(&t, BYTES("\x12\x02\x22\x00"
                             "\x1a\x10\x22\x0e"
                             "\x0a\x05\x10\x01\x1a\x01"
                             "a"
                             "\x12\x05\x1a\x03\x0a\x01"
                             "a"
                             "\x1a\x05\x0a\x03\x0a\x01"
                             "a"));
}

static void c3_leases_and_watches_are_as_the_server_reads_them(void **state)
{
    struct hf__buffer grant = hf__etcd_grant_request(0x1234, 10), words = {0};
    (void)state;

    assert_framed(&grant, BYTES("\x08\x0a\x10\xb4\x24"));
    hf__buffer_clear(&grant);
    hf__etcd_lease_request(&words, 5);
    assert_framed(&words, BYTES("\x08\x05"));
    words.len = 0;
    hf__etcd_write_watch(&words,
                         &(struct hf__etcd_watch_request){.key = {"a", 1},
                                                          .end = {"b", 1},
                                                          .from = 9,
                                                          .id = 4,
                                                          .unwanted = HF__ETCD_UNWANTED_DELETES});
    assert_framed(&words, BYTES("\x0a\x0d\x0a\x01"
                                "a\x12\x01"
                                "b\x18\x09\x2a\x01\x01\x38\x04"));
    words.len = 0;
    hf__etcd_write_cancel(&words, 4);
    assert_framed(&words, BYTES("\x12\x02\x08\x04"));
    hf__buffer_clear(&words);
}

/* One that found no memory for a condition, or for a value, would do what it must not. */
static void c1_transaction_that_lacks_something_is_none(void **state)
{
    struct hf__etcd_txn lacks_value = {0}, lacks_key = {.incomplete = true};
    (void)state;

    hf__etcd_put(&lacks_value, &a, NULL, 1);
    hf__etcd_delete(&lacks_value, &a);
    struct hf__buffer written = hf__etcd_written(&lacks_value);
    assert_true(written.failed);
    hf__buffer_clear(&written);
    hf__etcd_delete(&lacks_key, &a);
    written = hf__etcd_written(&lacks_key);
    assert_true(written.failed);
    hf__buffer_clear(&written);
}

/* Keys and values of every length: lengths take one byte, two, or three. */
static void c1_bytes_come_back(void **state)
{
    static struct hf__etcd_key key;
    (void)state;

    for (size_t len = 0; len < sizeof key.bytes; len += len < 400 ? 1 : 97) {
        struct hf__buffer message = {0};
        struct hf__etcd_answer answer;
        for (size_t i = 0; i < len; i++)
            key.bytes[i] = (char)(i * 7 + len);
        size_t op = hf__proto_begin(&message, 3), range = hf__proto_begin(&message, 1);
        size_t kv = hf__proto_begin(&message, 2);
        hf__proto_bytes(&message, 1, key.bytes, len);
        hf__proto_number(&message, 2, len + 1);
        hf__proto_bytes(&message, 5, key.bytes, len);
        hf__proto_end(&message, kv);
        hf__proto_end(&message, range);
        hf__proto_end(&message, op);
        hf__proto_number(&message, 2, 1);
        assert_int_equal(
            hf__etcd_answer_read((struct hf__slice){message.data, message.len}, &answer), 0);
        const struct hf__etcd_kv *read = hf__etcd_first(&answer, 0);
        assert_non_null(read);
        assert_true(answer.succeeded && read->created == len + 1 && read->put == 0);
        assert_int_equal(read->key.len, len);
        assert_memory_equal(read->key.data, key.bytes, len);
        assert_memory_equal(read->value.data, key.bytes, len);
        assert_null(hf__etcd_first(&answer, 1));
        /* Cut anywhere it is either none, or one with less in it. */
        for (size_t cut = 0; cut < message.len && len < 40; cut++) {
            struct hf__etcd_answer less;
            if (hf__etcd_answer_read((struct hf__slice){message.data, cut}, &less) == 0)
                hf__etcd_answer_clear(&less);
        }
        hf__etcd_answer_clear(&answer);
        hf__buffer_clear(&message);
    }
}

static void c1_messages_are_taken_one_by_one(void **state)
{
    char bytes[] = "\0\0\0\0\2ab\0\0\0\0\0\0\0\0\0\3cde";
    struct hf__slice message;
    (void)state;

    for (size_t len = 0; len < sizeof bytes - 1; len++) {
        struct hf__slice rest = {bytes, len};
        int taken = 0;
        while (hf__grpc_take(&rest, &message) == 1)
            taken++;
        assert_int_equal(taken, len < 7 ? 0 : len < 12 ? 1 : 2);
    }
    struct hf__slice rest = {bytes, sizeof bytes - 1};
    assert_int_equal(hf__grpc_take(&rest, &message), 1);
    assert_int_equal(message.len, 2);
    assert_memory_equal(message.data, "ab", 2);
    bytes[7] = 1; /* compressed, which we did not ask for */
    assert_int_equal(hf__grpc_take(&rest, &message), -1);
    bytes[7] = 0;
    bytes[8] = 0x7f; /* two gigabytes */
    assert_int_equal(hf__grpc_take(&rest, &message), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c1_conditions_are_as_the_server_reads_them),
        cmocka_unit_test(c1_steps_are_as_the_server_reads_them),
        cmocka_unit_test(c1_nested_transaction_has_lists_of_its_own),
        cmocka_unit_test(c3_leases_and_watches_are_as_the_server_reads_them),
        cmocka_unit_test(c1_transaction_that_lacks_something_is_none),
        cmocka_unit_test(c1_bytes_come_back),
        cmocka_unit_test(c1_messages_are_taken_one_by_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
