/* Names of locks and nodes: nothing meets that differs, and the order survives the counter's
 * wrap. */
#include "lib/check.h"
#include "stores/zookeeper/zk.h"

static struct hf__zk store = {.prefix = (char[]){"/locks"}};

static void c1_names_are_escaped_and_come_back(void **state)
{
    char path[HF__ZK_PATH_MAX], back[HF_NAME_MAX];
    size_t len;

    (void)state;
    for (int a = 0; a < 256; a++) {
        for (int b = 0; b < 256; b += 5) {
            char name[2] = {(char)a, (char)b};
            assert_true(hf__zk_directory(&store, name, 2, path, sizeof path));
            assert_null(strchr(path + 7, '/'));
            assert_true(path[7] != '.');
            assert_true(hf__zk_unescape(path + 7, back, &len));
            assert_int_equal(len, 2);
            assert_memory_equal(back, name, 2);
        }
    }
}

static void c1_foreign_directories_are_not_taken_for_locks(void **state)
{
    static const char *const foreign[] = {"%break", "%", "%4", "%61", "a%zz",
                                          "%c3",    ".", "..", "a b", ""};
    char back[HF_NAME_MAX];
    size_t len;

    (void)state;
    for (size_t i = 0; i < COUNT(foreign); i++)
        assert_false(hf__zk_unescape(foreign[i], back, &len));
}

static void c5_sequence_is_read_in_every_dialect(void **state)
{
    static const struct {
        const char *name;
        int32_t sequence;
        hf_mode mode;
    } cases[] = {
        {"_c_00112233-4455-6677-8899-aabbccddeeff-lock-0000000007", 7, HF_EXCLUSIVE},
        {"_c_00112233-4455-6677-8899-aabbccddeeff-read-lock-0000000008", 8, HF_SHARED},
        {"_c_00112233-4455-6677-8899-aabbccddeeff-lock--000000001", -1, HF_EXCLUSIVE},
        {"_c_00112233-4455-6677-8899-aabbccddeeff-lock--2147483648", INT32_MIN, HF_EXCLUSIVE},
        {"_c_00112233-4455-6677-8899-aabbccddeeff-lock-2147483647", INT32_MAX, HF_EXCLUSIVE},
        {"00112233445566778899aabbccddeeff__lock__0000000003", 3, HF_EXCLUSIVE},
        {"00112233445566778899aabbccddeeff__rlock__-1000000000", -1000000000, HF_SHARED},
        {"_c_00112233-4455-6677-8899-aabbccddeeff-__READ__0000000004", 4, HF_SHARED},
        {"_c_00112233-4455-6677-8899-aabbccddeeff-__WRIT__0000000005", 5, HF_EXCLUSIVE},
        {"x-72057594037927937-0000000006", 6, HF_EXCLUSIVE},
        {"x-72057594037927937--000000006", -6, HF_EXCLUSIVE},
        {"x-72057594037927937--1000000006", -1000000006, HF_EXCLUSIVE},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hf__zk_child c = hf__zk_child(cases[i].name);
        check_number(cases[i].name, c.sequential, true);
        check_number(cases[i].name, c.sequence, cases[i].sequence);
        check_number(cases[i].name, c.mode, cases[i].mode);
    }
    assert_false(hf__zk_child("config").sequential);
    assert_true(hf__zk_child("simple").simple);
}

/* A node of each layout is what it was written as, and says whose ticket it is. */
static void c1_nodes_of_every_layout_are_read_back(void **state)
{
    static const struct {
        const char *layout, *writer, *reader;
    } cases[] = {
        {"curator", "_c_00112233-4455-6677-8899-aabbccddeeff-lock-",
         "_c_00112233-4455-6677-8899-aabbccddeeff-read-lock-"},
        {"curator-rw", "_c_00112233-4455-6677-8899-aabbccddeeff-__WRIT__",
         "_c_00112233-4455-6677-8899-aabbccddeeff-__READ__"},
        {"kazoo", "00112233445566778899aabbccddeeff__lock__",
         "00112233445566778899aabbccddeeff_r__lock__"},
    };
    struct hf__ticket ticket, of;
    enum hf__zk_layout layout;
    char node[64], name[80];

    (void)state;
    assert_true(hf__ticket_parse("00112233445566778899aabbccddeeff", &ticket));
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_true(hf__zk_layout(cases[i].layout, &layout));
        for (int mode = HF_EXCLUSIVE; mode <= HF_SHARED; mode++) {
            hf__zk_node_name(layout, &ticket, (hf_mode)mode, node);
            assert_string_equal(node, mode == HF_SHARED ? cases[i].reader : cases[i].writer);
            snprintf(name, sizeof name, "%s0000000009", node);
            struct hf__zk_child c = hf__zk_child(name);
            assert_true(c.sequential && c.sequence == 9 && c.mode == (hf_mode)mode);
            assert_true(hf__zk_ticket_of(name, &of) && hf__ticket_equal(&of, &ticket));
            assert_null(hf__zk_blind(layout, name));
        }
    }
    assert_false(hf__zk_layout("zookeeper", &layout));
}

/* Each kind of client sees its own kind only. */
static void c1_clients_that_do_not_see_ours_are_named(void **state)
{
    static const char *const names[] = {
        [HF__ZK_LAYOUT_CURATOR] = "_c_00112233-4455-6677-8899-aabbccddeeff-lock-0000000001",
        [HF__ZK_LAYOUT_CURATOR_RW] = "_c_00112233-4455-6677-8899-aabbccddeeff-__READ__0000000001",
        [HF__ZK_LAYOUT_KAZOO] = "00112233445566778899aabbccddeeff__rlock__0000000001"};

    (void)state;
    for (size_t ours = 0; ours < COUNT(names); ours++) {
        for (size_t theirs = 0; theirs < COUNT(names); theirs++)
            assert_int_equal(hf__zk_blind((enum hf__zk_layout)ours, names[theirs]) == NULL,
                             ours == theirs);
        assert_non_null(hf__zk_blind((enum hf__zk_layout)ours, "lock-0000000001"));
    }
    assert_null(hf__zk_blind(HF__ZK_LAYOUT_CURATOR, "x-72057594037927937-0000000006"));
}

static void c5_order_survives_the_wrap_of_the_counter(void **state)
{
    (void)state;
    assert_true(hf__zk_before(1, 2));
    assert_false(hf__zk_before(2, 1));
    assert_false(hf__zk_before(2, 2));
    assert_true(hf__zk_before(INT32_MAX, INT32_MIN));
    assert_true(hf__zk_before(INT32_MAX - 5, INT32_MIN + 5));
    assert_true(hf__zk_before(-1, 0));
    assert_false(hf__zk_before(INT32_MIN, INT32_MAX));
    /* Half way around: one of the two is first, or they would keep each other out for ever. */
    assert_true(hf__zk_before(INT32_MIN, 0));
    assert_false(hf__zk_before(0, INT32_MIN));
}

static void c9_readers_are_kept_out_by_earlier_writers_only(void **state)
{
    struct hf__zk_child reader = hf__zk_child("_c_x-read-lock-0000000005");
    struct hf__zk_child early_writer = hf__zk_child("_c_x-lock-0000000004");
    struct hf__zk_child late_writer = hf__zk_child("_c_x-lock-0000000006");
    struct hf__zk_child early_reader = hf__zk_child("_c_x-read-lock-0000000003");
    struct hf__zk_child stranger = hf__zk_child("whatever-0000000001");

    (void)state;
    assert_true(hf__zk_blocks(&early_writer, &reader));
    assert_true(hf__zk_blocks(&stranger, &reader));
    assert_false(hf__zk_blocks(&late_writer, &reader));
    assert_false(hf__zk_blocks(&early_reader, &reader));
    assert_true(hf__zk_blocks(&early_reader, &late_writer));
}

static void c2_ticket_is_in_the_name_and_in_the_data(void **state)
{
    struct hf__who who = {.host = "h h", .user = "u=", .program = "p%", .note = "n\n", .pid = 7};
    struct hf__bid bid = {.ttl_ms = 5, .lock_delay_ms = 6, .who = &who};
    struct hf__zk_details d;
    char node[64];

    (void)state;
    for (size_t i = 0; i < sizeof bid.ticket.bits; i++)
        bid.ticket.bits[i] = (unsigned char)(17 * i);
    hf__zk_node_name(HF__ZK_LAYOUT_CURATOR, &bid.ticket, HF_SHARED, node);
    assert_string_equal(node, "_c_00112233-4455-6677-8899-aabbccddeeff-read-lock-");
    struct hf__ticket of;
    assert_true(hf__zk_ticket_of(node, &of) && hf__ticket_equal(&of, &bid.ticket));

    char *first = hf__zk_describe(&bid, &who), *moved = hf__zk_redescribe(first, 99, true);
    hf__zk_parse(moved, (int)strlen(moved), &d);
    assert_int_equal(d.ttl_ms, 5);
    assert_int_equal(d.lock_delay_ms, 6);
    assert_int_equal(d.generation, 99);
    assert_true(d.waits && d.has_ticket && hf__ticket_equal(&d.ticket, &bid.ticket));
    assert_string_equal(d.host, "h h");
    assert_string_equal(d.user, "u=");
    assert_string_equal(d.program, "p%");
    assert_string_equal(d.note, "n\n");
    free(first);
    free(moved);
}

static void c10_data_of_strangers_is_not_believed(void **state)
{
    struct hf__zk_details d;

    (void)state;
    hf__zk_parse("10.0.0.1", 8, &d);
    assert_int_equal(d.ttl_ms, -1);
    hf__zk_parse(NULL, -1, &d);
    assert_int_equal(d.ttl_ms, -1);
    hf__zk_parse("holdfast1 ttl= =x gen=zzz waits", 31, &d);
    assert_int_equal(d.generation, 0);
}

static void c5_number_that_left_is_read_as_it_was_written(void **state)
{
    static const int32_t numbers[] = {0, 7, INT32_MAX, INT32_MIN, -1};
    static const char *const others[] = {"",
                                         "10.0.0.1",
                                         "holdfast1 left=",
                                         "holdfast1 left=7x",
                                         "holdfast1 left=2147483648",
                                         "holdfast2 left=7"};
    char text[HF__ZK_LEFT_MAX];
    int32_t number;

    (void)state;
    for (size_t i = 0; i < COUNT(numbers); i++) {
        hf__zk_format_left(numbers[i], text);
        assert_true(hf__zk_parse_left(text, (int)strlen(text), &number));
        assert_int_equal(number, numbers[i]);
    }
    for (size_t i = 0; i < COUNT(others); i++)
        check_number(others[i], hf__zk_parse_left(others[i], (int)strlen(others[i]), &number), 0);
    assert_false(hf__zk_parse_left(NULL, -1, &number));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c1_names_are_escaped_and_come_back),
        cmocka_unit_test(c1_foreign_directories_are_not_taken_for_locks),
        cmocka_unit_test(c5_sequence_is_read_in_every_dialect),
        cmocka_unit_test(c1_nodes_of_every_layout_are_read_back),
        cmocka_unit_test(c1_clients_that_do_not_see_ours_are_named),
        cmocka_unit_test(c5_order_survives_the_wrap_of_the_counter),
        cmocka_unit_test(c9_readers_are_kept_out_by_earlier_writers_only),
        cmocka_unit_test(c2_ticket_is_in_the_name_and_in_the_data),
        cmocka_unit_test(c10_data_of_strangers_is_not_believed),
        cmocka_unit_test(c5_number_that_left_is_read_as_it_was_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
