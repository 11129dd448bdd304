/* A server whose quota is used up. It refuses what puts, and may have applied it before it looked. */
#include <stdlib.h>

#include "etcd/line.h"

#define ROUNDS  6
#define BIDDERS 8

struct bidder {
    pthread_t thread;
    hf_client *client;
    int number;
    int result;
    char name[32]; /* of the last that it asked for */
};

/* Takes one lock after the other, and gives none back. Long notes fill the server up. */
static void *bid(void *arg)
{
    struct bidder *b = arg;
    hf_options opt = HF_OPTIONS_INIT;
    char note[HF_NOTE_MAX + 1];
    hf_lock *lock;

    memset(note, 'n', HF_NOTE_MAX);
    note[HF_NOTE_MAX] = '\0';
    opt.note = note;
    opt.ttl_ms = 600000;
    opt.wait_ms = 0;
    do {
        snprintf(b->name, sizeof b->name, "bidder %d, %d", b->number % BIDDERS, b->number);
        b->number += BIDDERS;
        b->result = hf_acquire(b->client, b->name, HF_NTS, &opt, &lock, NULL);
        if (b->result == HF_OK && b->number % (4 * BIDDERS) < BIDDERS)
            hf_lock_release(lock, NULL);
    } while (b->result == HF_OK);
    return NULL;
}

/* Whoever is told that the store is full holds nothing, and nothing of it stays. */
static void c6_what_is_refused_by_a_full_store_is_not_held(void **state)
{
    struct bidder bidders[BIDDERS] = {0};
    hf_client *looks = open_live("");
    (void)state;

    for (int i = 0; i < BIDDERS; i++) {
        bidders[i].number = i;
        bidders[i].client = open_live("");
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < BIDDERS; i++)
            assert_int_equal(pthread_create(&bidders[i].thread, NULL, bid, &bidders[i]), 0);
        fill_up();
        for (int i = 0; i < BIDDERS; i++) {
            pthread_join(bidders[i].thread, NULL);
            assert_int_equal(bidders[i].result, HF_FULL);
        }
        for (int i = 0; i < BIDDERS; i++) {
            if (count_entries(looks, bidders[i].name) != 0)
                fail_msg("round %d: '%s' was refused and is held", round, bidders[i].name);
        }
        make_room();
    }
    for (int i = 0; i < BIDDERS; i++)
        hf_close(bidders[i].client);
    hf_close(looks);
}

/* A hand-over puts a key, which is refused. To leave, and to tell the next one to ask, is not. */
static void c2_lock_that_others_wait_for_is_released_by_a_full_store(void **state)
{
    struct line line = {0};
    (void)state;

    line_up(&line, "full");
    fill_up();
    assert_int_equal(hf_lock_release(line.held, NULL), HF_OK);
    assert_int_equal(join_waiter(&line.first), HF_FULL); /* there is no room to let it in */
    assert_int_equal(join_waiter(&line.second), HF_FULL);
    make_room();
    assert_int_equal(count_entries(line.clients[0], "full"), 0);
    assert_int_equal(hf_lock_release(take_free(line.clients[0], "full", 20000), NULL), HF_OK);
    disperse(&line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c6_what_is_refused_by_a_full_store_is_not_held),
        cmocka_unit_test(c2_lock_that_others_wait_for_is_released_by_a_full_store),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
