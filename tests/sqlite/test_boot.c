/* What survives a boot, a power cut and a restored copy. */
#include "sqlite/fixture.h"

/* As if the machine had been started anew: another boot wrote what is there, the clock begins
 * again. */
static void reboot(struct fixture *f)
{
    close_store(f);
    meddle(f, "UPDATE holdfast_meta SET boot = 'another boot'");
    f->now_ns = 5 * SECOND * HF__NS_PER_MS;
    f->wall_us += 3600 * UINT64_C(1000000);
    open_store(f);
}

struct seen {
    size_t count;
    struct hf__entry last;
};

static int note(void *ctx, const char *name, size_t name_len, const struct hf__entry *entry)
{
    struct seen *seen = ctx;

    (void)name, (void)name_len;
    seen->count++;
    seen->last = *entry;
    return 0;
}

static struct seen look_at(struct fixture *f, const char *name)
{
    struct seen seen = {0};
    struct hf__search search = {
        .name = name, .name_len = strlen(name), .found = note, .ctx = &seen};

    check_ok(f, "inspect", f->store->type->inspect(f->store, &search, soon(f), &f->err));
    return seen;
}

static void c3_leases_of_another_boot_are_void(void **state)
{
    struct fixture *f = *state;
    struct hf__bid holder = make_bid(f, "x"), waiter = make_bid(f, "x"), next = make_bid(f, "x");

    holder.ttl_ms = HF_TTL_MAX_MS;
    waiter.queue = true;
    uint64_t before = attempt(f, &holder).generation;
    assert_int_equal(attempt(f, &waiter).verdict, HF__VERDICT_QUEUED);
    reboot(f);
    check_number("nobody", (int64_t)look_at(f, "x").count, 0);
    struct hf__answer a = attempt(f, &next);
    assert_int_equal(a.verdict, HF__VERDICT_GRANTED);
    assert_true(a.generation > before);
    assert_int_equal(release(f, &holder).verdict, HF__VERDICT_STALE);
    assert_int_equal(renew(f, &waiter, 0).verdict, HF__VERDICT_GONE);
}

static void c8_a_claimed_lease_of_another_boot_begins_its_delay(void **state)
{
    struct fixture *f = *state;
    struct hf__bid holder = make_bid(f, "x"), next = make_bid(f, "x");

    holder.lock_delay_ms = 3 * SECOND;
    assert_true(attempt(f, &holder).claimed);
    reboot(f);
    assert_int_equal(attempt(f, &next).verdict, HF__VERDICT_BUSY);
    assert_int_equal(look_at(f, "x").last.place, HF__PLACE_LINGERING);
    pass_time(f, 3 * SECOND - 1);
    assert_int_equal(attempt(f, &next).verdict, HF__VERDICT_BUSY);
    pass_time(f, 1);
    assert_int_equal(attempt(f, &next).verdict, HF__VERDICT_GRANTED);
}

static void c3_a_grant_that_never_expires_outlives_the_boot(void **state)
{
    struct fixture *f = *state;
    struct hf__bid holder = make_bid(f, "x"), next = make_bid(f, "x");

    holder.ttl_ms = HF__NEVER;
    uint64_t generation = attempt(f, &holder).generation;
    assert_true(renew(f, &holder, generation).claimed);
    pass_time(f, 60 * SECOND);
    reboot(f);
    assert_int_equal(attempt(f, &next).verdict, HF__VERDICT_BUSY);
    struct seen seen = look_at(f, "x");
    check_number("holders", (int64_t)seen.count, 1);
    check_number("place", seen.last.place, HF__PLACE_INSIDE);
    check_number("age", seen.last.since_ms, 3660 * SECOND);
    assert_true(seen.last.until_ms == HF__NEVER);
    assert_int_equal(renew(f, &holder, generation).verdict, HF__VERDICT_GRANTED);
    assert_int_equal(release(f, &holder).verdict, HF__VERDICT_DONE);
}

static void c3_an_unclaimed_grant_does_not_outlive_the_boot(void **state)
{
    struct fixture *f = *state;
    struct hf__bid holder = make_bid(f, "x"), next = make_bid(f, "x");

    holder.ttl_ms = HF__NEVER;
    assert_false(attempt(f, &holder).claimed);
    reboot(f);
    assert_int_equal(attempt(f, &next).verdict, HF__VERDICT_GRANTED);
}

static void the_same_boot_voids_nothing(void **state)
{
    struct fixture *f = *state;
    struct hf__bid holder = make_bid(f, "x"), next = make_bid(f, "x");

    assert_int_equal(attempt(f, &holder).verdict, HF__VERDICT_GRANTED);
    close_store(f);
    open_store(f);
    assert_int_equal(attempt(f, &next).verdict, HF__VERDICT_BUSY);
}

static void an_unknown_boot_voids_nothing_but_cuts_to_the_lease(void **state)
{
    struct fixture *f = *state;
    struct hf__bid holder = make_bid(f, "x"), next = make_bid(f, "x");

    assert_int_equal(attempt(f, &holder).verdict, HF__VERDICT_GRANTED);
    close_store(f);
    meddle(f, "UPDATE holdfast_meta SET boot = ''");
    f->now_ns = 5 * SECOND * HF__NS_PER_MS;
    open_store(f);
    assert_int_equal(attempt(f, &next).verdict, HF__VERDICT_BUSY);
    pass_time(f, 10 * SECOND);
    assert_int_equal(attempt(f, &next).verdict, HF__VERDICT_GRANTED);
}

static void copy(const char *from, const char *to)
{
    char buf[65536];
    int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ssize_t n;

    assert_true(in >= 0 && out >= 0);
    while ((n = read(in, buf, sizeof buf)) > 0)
        assert_int_equal(write(out, buf, (size_t)n), n);
    close(in);
    close(out);
}

static void c4_generations_rise_after_the_last_commits_were_lost(void **state)
{
    struct fixture *f = *state;
    struct hf__bid first = make_bid(f, "x"), second = make_bid(f, "x");
    char old[200], wal[200];

    attempt(f, &first);
    release(f, &first);
    close_store(f);
    meddle(f, "PRAGMA wal_checkpoint(TRUNCATE)");
    snprintf(old, sizeof old, "%s/old.db", f->dir);
    copy(f->path, old);

    uint64_t highest = 0;
    open_store(f);
    for (int i = 0; i < 100; i++) {
        struct hf__bid bid = make_bid(f, "x");
        highest = attempt(f, &bid).generation;
        release(f, &bid);
    }
    close_store(f);
    snprintf(wal, sizeof wal, "%s-wal", f->path);
    unlink(wal);
    copy(old, f->path);

    pass_time(f, 1); /* no machine is up again in less */
    open_store(f);
    assert_true(attempt(f, &second).generation > highest);
}

int main(void)
{
#define OPEN(test) cmocka_unit_test_setup_teardown(test, setup_open, teardown)
    const struct CMUnitTest tests[] = {
        OPEN(c3_leases_of_another_boot_are_void),
        OPEN(c8_a_claimed_lease_of_another_boot_begins_its_delay),
        OPEN(c3_a_grant_that_never_expires_outlives_the_boot),
        OPEN(c3_an_unclaimed_grant_does_not_outlive_the_boot),
        OPEN(the_same_boot_voids_nothing),
        OPEN(an_unknown_boot_voids_nothing_but_cuts_to_the_lease),
        OPEN(c4_generations_rise_after_the_last_commits_were_lost),
    };

    return cmocka_run_group_tests_name("sqlite_boot", tests, NULL, NULL);
}
