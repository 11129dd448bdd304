/* A database that the members of a group share: ?group=NAME. All of it needs root, to be others. */
#include <grp.h>
#include <poll.h>
#include <sys/wait.h>

#include "lib/operate.h"
#include "sqlite/fixture.h"
#include "stores/sqlite/sqlite.h"

#define GROUP    54321
#define MEMBER   12345
#define STRANGER 12346

static int setup_group(void **state)
{
    struct fixture *f = make_fixture();

    assert_int_equal(chmod(f->dir, 0755), 0);
    snprintf(f->path, sizeof f->path, "%.120s/shared/locks.db", f->dir);
    snprintf(f->url, sizeof f->url, "sqlite:%.150s?group=%d", f->path, GROUP);
    *state = f;
    return 0;
}

static void check_mode(const struct fixture *f, const char *suffix, mode_t mode)
{
    struct stat st;
    char path[300];

    snprintf(path, sizeof path, "%s%s", f->path, suffix);
    assert_int_equal(lstat(path, &st), 0);
    check_number(suffix, st.st_mode & 07777, mode);
    check_number(suffix, st.st_gid, GROUP);
}

/* Runs `body` in a process of this user, which is a member if so asked; its status. */
static int as_user(struct fixture *f, uid_t uid, bool member, int (*body)(struct fixture *f))
{
    gid_t groups[] = {GROUP};
    int status;

    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        umask(077);
        if (setgroups(member ? 1 : 0, groups) != 0 || setgid(uid) != 0 || setuid(uid) != 0)
            _exit(100);
        _exit(body(f));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 101;
}

#define NEEDS_ROOT()    \
    if (geteuid() != 0) \
    skip()

static int open_it(struct fixture *f)
{
    int code = try_open(f, f->url);

    return code == 0 ? 0 : 1;
}

static void its_files_are_the_groups(void **state)
{
    struct fixture *f = *state;
    char dir[200];
    struct stat st;

    NEEDS_ROOT();
    mode_t old = umask(077);
    open_store(f);
    assert_true(f->store->type->wake_fd(f->store) >= 0);
    umask(old);
    snprintf(dir, sizeof dir, "%.120s/shared", f->dir);
    assert_int_equal(stat(dir, &st), 0);
    check_number("directory", st.st_mode & 07777, 02770);
    check_number("its group", st.st_gid, GROUP);
    check_mode(f, "", 0660);
    check_mode(f, "-wal", 0660);
    check_mode(f, "-shm", 0660);
    check_mode(f, "-writers", 0660);
    check_mode(f, ".wake", 02770);
    assert_int_equal(as_user(f, MEMBER, true, open_it), 0);
}

static int fails_busy(struct fixture *f)
{
    struct hf__bid bid = make_bid(f, "x");

    if (try_open(f, f->url) != 0)
        return 1;
    return attempt(f, &bid).verdict == HF__VERDICT_BUSY ? 0 : 2;
}

static void c1_root_and_a_member_exclude_each_other(void **state)
{
    struct fixture *f = *state;
    struct hf__bid bid = make_bid(f, "x");

    NEEDS_ROOT();
    open_store(f);
    attempt(f, &bid);
    assert_int_equal(as_user(f, MEMBER, true, fails_busy), 0);
}

static int holds(struct fixture *f)
{
    struct hf__bid bid = make_bid(f, "x");

    if (try_open(f, f->url) != 0)
        return 1;
    return attempt(f, &bid).verdict == HF__VERDICT_GRANTED ? 0 : 2;
}

static void c1_a_member_and_root_exclude_each_other(void **state)
{
    struct fixture *f = *state;
    char dir[200];
    struct hf__bid bid = make_bid(f, "x");

    NEEDS_ROOT();
    snprintf(dir, sizeof dir, "%.120s/shared", f->dir);
    assert_int_equal(mkdir(dir, 0700), 0);
    assert_int_equal(chown(dir, 0, GROUP), 0);
    assert_int_equal(chmod(dir, 02770), 0);
    assert_int_equal(as_user(f, MEMBER, true, holds), 0); /* and makes the files */
    open_store(f);
    assert_int_equal(attempt(f, &bid).verdict, HF__VERDICT_BUSY);
    pass_time(f, 10 * SECOND);
    assert_int_equal(as_user(f, MEMBER + 5, true, holds), 0);
}

static int releases(struct fixture *f)
{
    struct hf__bid bid = {.name = "x", .name_len = 1, .ticket = {{42}}, .who = &f->who};
    struct hf__answer a = {0};

    if (try_open(f, f->url) != 0)
        return 1;
    return ask_store(f->store, op_release(&bid, 0), soon(f), &a, &f->err) == 0 ? 0 : 2;
}

static void note(void *ctx, const struct hf__ticket *ticket, uint64_t generation)
{
    (void)ticket, (void)generation;
    ++*(int *)ctx;
}

static void c12_a_member_wakes_root(void **state)
{
    struct fixture *f = *state;
    struct hf__bid holder = make_bid(f, "x"), waiter = make_bid(f, "x");
    int calls = 0;

    NEEDS_ROOT();
    open_store(f);
    int fd = f->store->type->wake_fd(f->store);
    holder.ticket = (struct hf__ticket){{42}};
    attempt(f, &holder);
    waiter.queue = true;
    assert_int_equal(attempt(f, &waiter).verdict, HF__VERDICT_QUEUED);
    assert_int_equal(as_user(f, MEMBER, true, releases), 0);
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&ready, 1, 10000), 1);
    f->store->type->wake(f->store, note, &calls);
    check_number("calls", calls, 1);
}

static int is_told_that_it_is_no_member(struct fixture *f)
{
    return try_open(f, f->url) == HF_DENIED &&
                   strstr(f->err.text, "you are not a member of the group '54321'") != NULL
               ? 0
               : 1;
}

static int is_told_that_it_is_shared(struct fixture *f)
{
    snprintf(f->url, sizeof f->url, "sqlite:%.150s", f->path);
    return try_open(f, f->url) == HF_DENIED ? 0 : 1;
}

static void who_is_no_member_is_refused(void **state)
{
    struct fixture *f = *state;

    NEEDS_ROOT();
    open_store(f);
    close_store(f);
    assert_int_equal(as_user(f, STRANGER, false, is_told_that_it_is_no_member), 0);
    assert_int_equal(as_user(f, STRANGER, false, is_told_that_it_is_shared), 0);
    assert_int_equal(as_user(f, MEMBER, true, is_told_that_it_is_shared), 0);
    snprintf(f->url, sizeof f->url, "sqlite:%.150s", f->path);
    check_refused(f, "root without the group", HF_DENIED, "add ?group=NAME");
}

static void rights_for_anybody_else_are_refused(void **state)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-writers"};
    struct fixture *f = *state;
    char path[200];

    NEEDS_ROOT();
    open_store(f);
    close_store(f);
    for (size_t i = 0; i < COUNT(suffixes); i++) {
        snprintf(path, sizeof path, "%s%s", f->path, suffixes[i]);
        assert_int_equal(chmod(path, 0664), 0);
        check_refused(f, suffixes[i], HF_DENIED, "chmod 660");
        assert_int_equal(chmod(path, 0660), 0);
        assert_int_equal(chown(path, (uid_t)-1, GROUP + 1), 0);
        check_refused(f, suffixes[i], HF_DENIED, "chgrp");
        assert_int_equal(chown(path, (uid_t)-1, GROUP), 0);
    }
    snprintf(path, sizeof path, "%.120s/shared", f->dir);
    assert_int_equal(chmod(path, 02775), 0);
    check_refused(f, "directory", HF_DENIED, "chmod 2770");
    assert_int_equal(chmod(path, 0770), 0);
    check_refused(f, "directory without setgid", HF_DENIED, "chmod 2770");
    assert_int_equal(chmod(path, 02770), 0);
    open_store(f);
}

static void a_group_that_is_not_there_is_refused(void **state)
{
    struct fixture *f = *state;

    snprintf(f->url, sizeof f->url, "sqlite:%.150s?group=no-such-group", f->path);
    check_refused(f, "group", HF_INVALID, "there is no group 'no-such-group'");
}

int main(void)
{
#define GROUPED(test) cmocka_unit_test_setup_teardown(test, setup_group, teardown)
    const struct CMUnitTest tests[] = {
        GROUPED(its_files_are_the_groups),
        GROUPED(c1_root_and_a_member_exclude_each_other),
        GROUPED(c1_a_member_and_root_exclude_each_other),
        GROUPED(c12_a_member_wakes_root),
        GROUPED(who_is_no_member_is_refused),
        GROUPED(rights_for_anybody_else_are_refused),
        GROUPED(a_group_that_is_not_there_is_refused),
    };

    return cmocka_run_group_tests_name("sqlite_group", tests, NULL, NULL);
}
