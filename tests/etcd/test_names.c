/* From names to keys and back: no two names meet, and none lies below another (C1). */
#include <stdlib.h>

#include "lib/check.h"
#include "stores/etcd/etcd.h"

static struct hf__etcd store = {.set = {.prefix = (char *)(uintptr_t) "p/"}};

static struct hf__etcd_name name_of(const char *bytes, size_t len)
{
    return (struct hf__etcd_name){bytes, len};
}

static void c1_key_gives_its_name_back(void **state)
{
    static const char *const names[] = {"a",    "a/b",       "%2F",    ".holdfast/inside",
                                        "..",   "a/write/1", "/",      "%",
                                        "\xff", "read",      "write/", "a b\n"};
    struct hf__etcd_key key;
    struct hf__etcd_parts parts;
    (void)state;

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        for (int mode = HF_EXCLUSIVE; mode <= HF_SHARED; mode++) {
            size_t len = strlen(names[i]);
            hf__etcd_place_key(&store, name_of(names[i], len), (hf_mode)mode, 0x1234, &key);
            assert_true(hf__etcd_parse_place(&store, hf__etcd_slice(&key), &parts));
            assert_int_equal(parts.name_len, len);
            assert_memory_equal(parts.name, names[i], len);
            assert_int_equal(parts.mode, mode);
            assert_true(parts.ours);
        }
    }
}

static void c1_every_byte_and_the_longest_name_fit(void **state)
{
    char longest[HF_NAME_MAX];
    struct hf__etcd_key key;
    struct hf__etcd_parts parts;
    (void)state;

    for (int byte = 0; byte < 256; byte++) {
        memset(longest, byte, sizeof longest);
        hf__etcd_place_key(&store, name_of(longest, sizeof longest), HF_EXCLUSIVE, INT64_MAX, &key);
        assert_true(hf__etcd_parse_place(&store, hf__etcd_slice(&key), &parts));
        assert_int_equal(parts.name_len, sizeof longest);
        assert_memory_equal(parts.name, longest, sizeof longest);
    }
}

static bool is_below(const struct hf__etcd_key *key, const struct hf__etcd_key *root)
{
    return key->len >= root->len && memcmp(key->bytes, root->bytes, root->len) == 0;
}

static void c1_no_name_lies_below_another(void **state)
{
    static const char *const names[] = {"a",  "a/b",       "a/write", "a/read/1",
                                        "ab", ".holdfast", "a%2Fb"};
    struct hf__etcd_key root, key;
    (void)state;

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        hf__etcd_root(&store, HF__ETCD_KEY_PLACE, name_of(names[i], strlen(names[i])), true, &root);
        for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
            struct hf__etcd_name other = name_of(names[k], strlen(names[k]));
            hf__etcd_place_key(&store, other, HF_EXCLUSIVE, 7, &key);
            assert_int_equal(is_below(&key, &root), i == k);
            hf__etcd_mark_key(&store, HF__ETCD_KEY_INSIDE, other, 7, &key);
            assert_false(is_below(&key, &root));
        }
    }
}

static void c1_end_of_a_range_is_the_next_key(void **state)
{
    struct hf__etcd_key key = {.len = 2, .bytes = "a/"}, end;
    (void)state;

    hf__etcd_end_of(&key, &end);
    assert_int_equal(end.len, 2);
    assert_memory_equal(end.bytes, "a0", 2);
    key = (struct hf__etcd_key){.len = 3, .bytes = "a\xff\xff"};
    hf__etcd_end_of(&key, &end);
    assert_int_equal(end.len, 1);
    assert_memory_equal(end.bytes, "b", 1);
    key = (struct hf__etcd_key){.len = 1, .bytes = "\xff"};
    hf__etcd_end_of(&key, &end);
    assert_int_equal(end.len, 0);
}

static void c1_what_is_no_place_is_not_taken_for_one(void **state)
{
    static const char *const keys[] = {"p/",
                                       "p",
                                       "q/a/write/1",
                                       "p/a",
                                       "p/.holdfast/inside/a/1",
                                       "p/a/b/c/write/1",
                                       "p/%zz/write/1",
                                       "p/%2/write/1"};
    struct hf__etcd_parts parts;
    struct hf__etcd_key key;
    (void)state;

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        key.len = strlen(keys[i]);
        memcpy(key.bytes, keys[i], key.len);
        assert_false(hf__etcd_parse_place(&store, hf__etcd_slice(&key), &parts));
    }
}

static void c2_lease_follows_from_the_ticket(void **state)
{
    struct hf__ticket zero = {{0}}, full;
    (void)state;

    memset(&full, 0xff, sizeof full);
    assert_int_equal(hf__etcd_lease_of(&zero), 1);
    assert_true(hf__etcd_lease_of(&full) == INT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c1_key_gives_its_name_back),
        cmocka_unit_test(c1_every_byte_and_the_longest_name_fit),
        cmocka_unit_test(c1_no_name_lies_below_another),
        cmocka_unit_test(c1_end_of_a_range_is_the_next_key),
        cmocka_unit_test(c1_what_is_no_place_is_not_taken_for_one),
        cmocka_unit_test(c2_lease_follows_from_the_ticket),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
