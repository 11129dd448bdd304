/* Looking into the database, odd names, and what the doctor says. */
#include "lib/operate.h"
#include "sqlite/fixture.h"

struct seen {
    size_t count;
    char names[8][HF_NAME_MAX];
    size_t lens[8];
    struct hf__entry entries[8];
    struct hf__who who;
};

static int note(void *ctx, const char *name, size_t name_len, const struct hf__entry *entry)
{
    struct seen *seen = ctx;
    const struct hf__who *who = entry->who;

    assert_true(seen->count < COUNT(seen->entries));
    check_text("host", who->host, "host");
    check_text("user", who->user, "user");
    check_text("program", who->program, "program");
    check_text("note", who->note, "note");
    check_number("pid", who->pid, 42);
    memcpy(seen->names[seen->count], name, name_len);
    seen->lens[seen->count] = name_len;
    seen->entries[seen->count++] = *entry;
    return 0;
}

static struct seen look(struct fixture *f, struct hf__search search)
{
    struct seen seen = {0};

    search.found = note;
    search.ctx = &seen;
    check_ok(f, "inspect", f->store->type->inspect(f->store, &search, soon(f), &f->err));
    return seen;
}

static struct hf__bid take(struct fixture *f, const char *name, bool queue)
{
    struct hf__bid bid = make_bid(f, name);

    bid.queue = queue;
    attempt(f, &bid);
    return bid;
}

static void finds_by_name_prefix_and_age(void **state)
{
    struct fixture *f = *state;

    take(f, "b/2", false);
    take(f, "b/1", false);
    take(f, "b/1", true);
    pass_time(f, 2 * SECOND);
    take(f, "a", false);
    take(f, "b0", false);
    take(f, "b\xff", false);

    struct seen seen = look(f, (struct hf__search){0});
    check_number("all", (int64_t)seen.count, 6);
    assert_memory_equal(seen.names[0], "a", 1);
    assert_memory_equal(seen.names[1], "b/1", 3);
    check_number("holder first", seen.entries[1].place, HF__PLACE_INSIDE);
    check_number("then waiter", seen.entries[2].place, HF__PLACE_WAITING);
    assert_memory_equal(seen.names[3], "b/2", 3);
    check_number("age", seen.entries[3].since_ms, 2 * SECOND);
    check_number("left", seen.entries[3].until_ms, 8 * SECOND);

    check_number("name", (int64_t)look(f, (struct hf__search){.name = "b/1", .name_len = 3}).count,
                 2);
    check_number("prefix",
                 (int64_t)look(f, (struct hf__search){.prefix = "b/", .prefix_len = 2}).count, 3);
    check_number(
        "ff", (int64_t)look(f, (struct hf__search){.prefix = "b\xff", .prefix_len = 2}).count, 1);
    check_number("all ff",
                 (int64_t)look(f, (struct hf__search){.prefix = "\xff", .prefix_len = 1}).count, 0);
    check_number("no prefix",
                 (int64_t)look(f, (struct hf__search){.prefix = "", .prefix_len = 0}).count, 6);
    check_number("old", (int64_t)look(f, (struct hf__search){.older_than_ms = 2 * SECOND}).count,
                 2);
    check_number("older",
                 (int64_t)look(f, (struct hf__search){.older_than_ms = 2 * SECOND + 1}).count, 0);
}

static void what_has_expired_is_not_shown_as_inside(void **state)
{
    struct fixture *f = *state;
    struct hf__bid delayed = make_bid(f, "delayed");

    take(f, "plain", false);
    take(f, "plain", true);
    delayed.lock_delay_ms = 5 * SECOND;
    attempt(f, &delayed);
    pass_time(f, 10 * SECOND);

    struct seen seen = look(f, (struct hf__search){0});
    check_number("shown", (int64_t)seen.count, 1);
    check_number("lingers", seen.entries[0].place, HF__PLACE_LINGERING);
    check_number("left", seen.entries[0].until_ms, 5 * SECOND);
    pass_time(f, 5 * SECOND);
    check_number("nobody", (int64_t)look(f, (struct hf__search){0}).count, 0);
    check_number("and nothing was changed", ask(f, "SELECT count(*) FROM holdfast_entry"), 3);
}

static int stop(void *ctx, const char *name, size_t name_len, const struct hf__entry *entry)
{
    (void)name, (void)name_len, (void)entry;
    ++*(int *)ctx;
    return HF_NO_MEMORY;
}

static void a_callback_can_stop_it(void **state)
{
    struct fixture *f = *state;
    int calls = 0;
    struct hf__search l = {.found = stop, .ctx = &calls};

    take(f, "a", false);
    take(f, "b", false);
    check_number("code", f->store->type->inspect(f->store, &l, soon(f), &f->err), HF_NO_MEMORY);
    check_number("calls", calls, 1);
}

static void any_bytes_are_a_name_and_no_two_collide(void **state)
{
    struct fixture *f = *state;
    static char longest[HF_NAME_MAX];
    const struct {
        const char *bytes;
        size_t len;
    } names[] = {
        {"x", 1},
        {"x\0", 2},
        {"x\0y", 3},
        {"X", 1},
        {"x ", 2},
        {"\xff\xfe", 2},
        {"'; DROP TABLE holdfast_lock; --", 31},
        {"../../etc/passwd", 16},
        {"%", 1},
        {"{}", 2},
        {"\0", 1},
        {longest, sizeof longest},
        {longest, sizeof longest - 1},
    };

    memset(longest, 'n', sizeof longest);
    for (size_t i = 0; i < COUNT(names); i++) {
        struct hf__bid bid = make_bid(f, "");
        bid.name = names[i].bytes;
        bid.name_len = names[i].len;
        check_number("granted", attempt(f, &bid).verdict, HF__VERDICT_GRANTED);
        struct seen seen =
            look(f, (struct hf__search){.name = names[i].bytes, .name_len = names[i].len});
        check_number("found", (int64_t)seen.count, 1);
        check_number("length", (int64_t)seen.lens[0], (int64_t)names[i].len);
        assert_memory_equal(seen.names[0], names[i].bytes, names[i].len);
    }
    check_number("locks", ask(f, "SELECT count(*) FROM holdfast_lock"), (int64_t)COUNT(names));
}

struct findings {
    int worst;
    size_t count;
    char text[4000];
};

static void find(int level, const char *clause, const char *text, void *arg)
{
    struct findings *findings = arg;
    size_t used = strlen(findings->text);

    (void)clause;
    findings->worst = level > findings->worst ? level : findings->worst;
    findings->count++;
    snprintf(findings->text + used, sizeof findings->text - used, "%s\n", text);
}

static void the_doctor_tells_what_it_sees(void **state)
{
    struct fixture *f = *state;
    struct findings findings = {0};

    take(f, "a", false);
    take(f, "a", true);
    check_ok(f, "diagnose", f->store->type->diagnose(f->store, find, &findings, soon(f), &f->err));
    check_number("healthy", findings.worst, 0);
    check_contains("doctor", findings.text, "journal mode: wal");
    check_contains("doctor", findings.text, "integrity: ok");
    check_contains("doctor", findings.text, "\nwaiting: 1");

    meddle(f, "UPDATE holdfast_lock SET waiting = 7");
    assert_int_equal(chmod(f->path, 0644), 0);
    findings = (struct findings){0};
    check_ok(f, "diagnose", f->store->type->diagnose(f->store, find, &findings, soon(f), &f->err));
    check_number("ill", findings.worst, 3);
    check_contains("doctor", findings.text, "miscounted");
    check_contains("doctor", findings.text, "chmod 600");
}

static void a_miscounted_queue_is_refused_not_guessed(void **state)
{
    struct fixture *f = *state;
    struct hf__bid bid = make_bid(f, "a");
    struct hf__answer a = {0};

    take(f, "a", false);
    take(f, "a", true);
    meddle(f, "UPDATE holdfast_lock SET waiting = 7");
    check_number("more", ask_store(f->store, op_attempt(&bid), soon(f), &a, &f->err), HF_CORRUPT);
    meddle(f, "UPDATE holdfast_lock SET waiting = 0");
    check_number("fewer", ask_store(f->store, op_attempt(&bid), soon(f), &a, &f->err), HF_CORRUPT);
    meddle(f, "UPDATE holdfast_lock SET waiting = 1");
    check_number("right", attempt(f, &bid).verdict, HF__VERDICT_BUSY);
}

int main(void)
{
#define OPEN(test) cmocka_unit_test_setup_teardown(test, setup_open, teardown)
    const struct CMUnitTest tests[] = {
        OPEN(finds_by_name_prefix_and_age),  OPEN(what_has_expired_is_not_shown_as_inside),
        OPEN(a_callback_can_stop_it),        OPEN(any_bytes_are_a_name_and_no_two_collide),
        OPEN(the_doctor_tells_what_it_sees), OPEN(a_miscounted_queue_is_refused_not_guessed),
    };

    return cmocka_run_group_tests_name("sqlite_inspect", tests, NULL, NULL);
}
