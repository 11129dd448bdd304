/* The hash table, against a plain array, and its hash. */
#include <stdlib.h>

#include "base/table.h"
#include "lib/check.h"
#include "lib/random.h"

struct member {
    struct hf__link link;
    unsigned key;
    bool inside;
};

enum { MEMBERS = 300 };

/* Few different hashes, so that chains are long and members of one hash are told apart by key. */
static uint64_t weak_hash(unsigned key)
{
    return key % 17;
}

static struct member *find(const struct hf__table *table, unsigned key)
{
    struct hf__link *link = hf__table_find(table, weak_hash(key));

    for (; link != NULL; link = hf__table_next(link)) {
        assert_int_equal(link->hash, weak_hash(key));
        if (((struct member *)link)->key == key)
            return (struct member *)link;
    }
    return NULL;
}

static void count_one(struct hf__link *link, void *ctx)
{
    assert_true(((struct member *)link)->inside);
    ++*(size_t *)ctx;
}

static void check_all(const struct hf__table *table, struct member *members)
{
    size_t inside = 0, visited = 0;

    for (unsigned i = 0; i < MEMBERS; i++) {
        assert_ptr_equal(find(table, i), members[i].inside ? &members[i] : NULL);
        inside += members[i].inside;
    }
    hf__table_each(table, count_one, &visited);
    assert_int_equal(visited, inside);
    assert_int_equal(table->count, inside);
}

static void members_come_and_go_like_in_an_array(void **state)
{
    static struct member members[MEMBERS];
    struct hf__table table = {0};
    struct random r = {11};

    (void)state;
    for (unsigned i = 0; i < MEMBERS; i++)
        members[i].key = i;
    for (int step = 0; step < 3000; step++) {
        unsigned i = (unsigned)random_below(&r, MEMBERS);
        if (members[i].inside)
            hf__table_remove(&table, &members[i].link);
        else
            hf__table_add(&table, &members[i].link, weak_hash(i));
        members[i].inside = !members[i].inside;
        if (step % 50 == 0)
            check_all(&table, members);
    }
    check_all(&table, members);

    struct hf__link *any;
    while ((any = hf__table_any(&table)) != NULL) {
        assert_true(((struct member *)any)->inside);
        hf__table_remove(&table, any);
        ((struct member *)any)->inside = false;
    }
    check_all(&table, members);
    hf__table_clear(&table);
}

static void an_empty_table_has_nobody(void **state)
{
    struct hf__table table = {0};
    struct member stranger = {.key = 1};

    (void)state;
    assert_null(hf__table_find(&table, 1));
    assert_null(hf__table_any(&table));
    hf__table_remove(&table, &stranger.link);
    assert_int_equal(table.count, 0);
    hf__table_clear(&table);
}

static void the_hash_depends_on_every_byte_the_length_and_the_seed(void **state)
{
    struct random r = {12};
    unsigned char bytes[40];

    (void)state;
    for (int round = 0; round < 2000; round++) {
        size_t len = 1 + random_below(&r, sizeof bytes);
        uint64_t seed = random_next(&r);
        random_fill(&r, bytes, sizeof bytes);
        uint64_t hash = hf__hash(seed, bytes, len);
        assert_true(hash == hf__hash(seed, bytes, len));
        assert_true(hash != hf__hash(seed + 1, bytes, len));
        assert_true(hash != hf__hash(seed, bytes, len - 1));
        bytes[random_below(&r, len)] ^= (unsigned char)(1 << random_below(&r, 8));
        assert_true(hash != hf__hash(seed, bytes, len));
    }
    assert_true(hf__hash(1, "a\0", 2) != hf__hash(1, "a", 1));
}

/* Names that differ little spread over the buckets: no more than a few in the fullest of 4096. */
static void names_in_a_row_spread(void **state)
{
    static unsigned buckets[4096];
    unsigned fullest = 0;

    (void)state;
    for (unsigned i = 0; i < 4096; i++) {
        char name[24];
        int len = snprintf(name, sizeof name, "invoice/%u", i);
        unsigned *b = &buckets[hf__hash(7, name, (size_t)len) % 4096];
        fullest = ++*b > fullest ? *b : fullest;
    }
    assert_in_range(fullest, 2, 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_come_and_go_like_in_an_array),
        cmocka_unit_test(an_empty_table_has_nobody),
        cmocka_unit_test(the_hash_depends_on_every_byte_the_length_and_the_seed),
        cmocka_unit_test(names_in_a_row_spread),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
