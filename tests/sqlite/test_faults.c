/* What the disk and other users of the database can do to an operation, and when it is synced. */
#include "lib/operate.h"
#include "sqlite/disk.h"
#include "sqlite/fixture.h"

static int attempt_code(struct fixture *f, const struct hf__bid *bid)
{
    struct hf__answer a = {0};

    return ask_store(f->store, op_attempt(bid), soon(f), &a, &f->err);
}

/* The first write to a WAL syncs its header; what is counted comes after it. */
static void begin_wal(struct fixture *f)
{
    struct hf__bid bid = make_bid(f, "first");

    attempt(f, &bid);
    disk.syncs = 0;
}

static void leases_are_not_synced(void **state)
{
    struct fixture *f = *state;
    struct hf__bid bid = make_bid(f, "x");

    begin_wal(f);
    renew(f, &bid, attempt(f, &bid).generation);
    release(f, &bid);
    check_number("syncs", disk.syncs, 0);
}

static void a_grant_that_never_expires_is_synced_when_claimed_and_released(void **state)
{
    struct fixture *f = *state;
    struct hf__bid bid = make_bid(f, "x");
    struct hf__answer a = {0};

    bid.ttl_ms = HF__NEVER;
    begin_wal(f);
    uint64_t generation = attempt(f, &bid).generation;
    check_number("provisional: it would end by itself", disk.syncs, 0);
    renew(f, &bid, generation);
    check_number("claimed", disk.syncs, 1);
    renew(f, &bid, generation);
    check_number("renewed: nothing to write", disk.syncs, 1);
    release(f, &bid);
    check_number("released", disk.syncs, 2);

    bid = make_bid(f, "y");
    bid.ttl_ms = HF__NEVER;
    renew(f, &bid, attempt(f, &bid).generation);
    check_number("claimed again", disk.syncs, 3);
    check_ok(f, "break", ask_store(f->store, op_break(&bid, true), soon(f), &a, &f->err));
    check_number("broken", disk.syncs, 4);
}

static void c6_a_failed_sync_leaves_the_outcome_unknown(void **state)
{
    struct fixture *f = *state;
    struct hf__bid bid = make_bid(f, "x");
    struct hf__answer a = {0};

    bid.ttl_ms = HF__NEVER;
    renew(f, &bid, attempt(f, &bid).generation);
    disk.fail_syncs = 1;
    int code = ask_store(f->store, op_release(&bid, 0), soon(f), &a, &f->err);
    disk.fail_syncs = 0;
    check_number("release", code, HF_UNKNOWN);
    check_number("asked again", release(f, &bid).verdict, HF__VERDICT_STALE);
}

static void c6_an_io_error_at_commit_is_unknown(void **state)
{
    struct fixture *f = *state;
    struct hf__bid bid = make_bid(f, "x");

    disk.fail_writes = SQLITE_IOERR_WRITE;
    int code = attempt_code(f, &bid);
    disk.fail_writes = 0;
    check_number("attempt", code, HF_UNKNOWN);
    check_number("store code", f->err.store_code, SQLITE_IOERR_WRITE);
    check_number("asked again", attempt(f, &bid).verdict, HF__VERDICT_GRANTED);
}

static void a_full_disk_is_told_and_nothing_was_applied(void **state)
{
    struct fixture *f = *state;
    struct hf__bid bid = make_bid(f, "x"), other = make_bid(f, "x");

    disk.fail_writes = SQLITE_FULL;
    int code = attempt_code(f, &bid);
    disk.fail_writes = 0;
    check_number("attempt", code, HF_FULL);
    check_contains("attempt", f->err.text, "sqlite: ");
    check_contains("attempt", f->err.text, "disk is full");
    check_number("store code", f->err.store_code, SQLITE_FULL);
    check_number("free", attempt(f, &other).verdict, HF__VERDICT_GRANTED);
}

static void a_wal_that_cannot_grow_is_written_again(void **state)
{
    struct fixture *f = *state;

    disk.wal_room = 40 * 1024;
    for (int i = 0; i < 100; i++) {
        struct hf__bid bid = make_bid(f, "x");
        attempt(f, &bid);
        assert_int_equal(release(f, &bid).verdict, HF__VERDICT_DONE);
    }
    disk.wal_room = 0;
}

static void c3_on_a_full_disk_a_lease_is_renewed(void **state)
{
    struct fixture *f = *state;
    struct hf__bid holder = make_bid(f, "x");

    struct hf__answer granted = attempt(f, &holder);
    disk.wal_room = 40 * 1024;
    for (int i = 0; i < 100; i++) {
        pass_time(f, 1 * SECOND);
        assert_int_equal(renew(f, &holder, granted.generation).verdict, HF__VERDICT_GRANTED);
    }
    disk.wal_room = 0;
}

static void a_database_kept_busy_is_unavailable_at_the_deadline(void **state)
{
    struct fixture *f = *state;
    struct hf__bid bid = make_bid(f, "x");
    struct hf__answer a = {0};
    sqlite3 *db;

    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    int64_t deadline = f->now_ns + 30 * HF__NS_PER_MS;
    check_number("attempt", ask_store(f->store, op_attempt(&bid), deadline, &a, &f->err),
                 HF_UNAVAILABLE);
    check_contains("attempt", f->err.text, "busy");
    check_number("store code", f->err.store_code & 0xff, SQLITE_BUSY);
    sqlite3_close(db);
    check_number("afterwards", attempt(f, &bid).verdict, HF__VERDICT_GRANTED);
}

static void a_deadline_that_has_passed_asks_nobody(void **state)
{
    struct fixture *f = *state;
    struct hf__bid bid = make_bid(f, "x");
    struct hf__answer a = {0};

    check_number("attempt", ask_store(f->store, op_attempt(&bid), f->now_ns, &a, &f->err),
                 HF_UNAVAILABLE);
}

static void many_renewals_are_answered_each(void **state)
{
    struct fixture *f = *state;
    enum { MANY = 600 };
    struct hf__renewal *items = calloc(MANY, sizeof *items);
    static char names[MANY][16];

    assert_non_null(items);
    for (int i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof names[i], "lock %d", i);
        struct hf__bid bid = make_bid(f, names[i]);
        items[i] = (struct hf__renewal){
            .name = names[i], .name_len = strlen(names[i]), .ticket = bid.ticket};
        items[i].generation = attempt(f, &bid).generation;
        if (i % 3 == 0)
            release(f, &bid);
    }
    pass_time(f, 9 * SECOND);
    check_ok(f, "renew", f->store->type->renew(f->store, items, MANY, soon(f), &f->err));
    for (int i = 0; i < MANY; i++) {
        check_number("verdict", items[i].answer.verdict,
                     i % 3 == 0 ? HF__VERDICT_GONE : HF__VERDICT_GRANTED);
        check_number("sent", items[i].answer.sent_ns, f->now_ns);
    }
    free(items);
}

static void a_damaged_page_is_corrupt(void **state)
{
    struct fixture *f = *state;
    struct hf__bid bid = make_bid(f, "x");
    char garbage[1024];

    attempt(f, &bid);
    close_store(f);
    meddle(f, "PRAGMA wal_checkpoint(TRUNCATE)");
    memset(garbage, 0xa5, sizeof garbage);
    int fd = open(f->path, O_WRONLY);
    for (off_t at = 1024; at < 12 * 1024; at += 1024)
        assert_int_equal(pwrite(fd, garbage, sizeof garbage, at), sizeof garbage);
    close(fd);
    int code = try_open(f, f->url);
    if (code == 0)
        code = attempt_code(f, &bid);
    check_number("code", code, HF_CORRUPT);
    check_contains("text", f->err.text, "damaged");
}

int main(void)
{
#define OPEN(test) cmocka_unit_test_setup_teardown(test, setup_open, teardown)
    const struct CMUnitTest tests[] = {
        OPEN(leases_are_not_synced),
        OPEN(a_grant_that_never_expires_is_synced_when_claimed_and_released),
        OPEN(c6_a_failed_sync_leaves_the_outcome_unknown),
        OPEN(c6_an_io_error_at_commit_is_unknown),
        OPEN(a_full_disk_is_told_and_nothing_was_applied),
        OPEN(a_wal_that_cannot_grow_is_written_again),
        OPEN(c3_on_a_full_disk_a_lease_is_renewed),
        OPEN(a_database_kept_busy_is_unavailable_at_the_deadline),
        OPEN(a_deadline_that_has_passed_asks_nobody),
        OPEN(many_renewals_are_answered_each),
        OPEN(a_damaged_page_is_corrupt),
    };

    disk_install();
    return cmocka_run_group_tests_name("sqlite_faults", tests, NULL, NULL);
}
