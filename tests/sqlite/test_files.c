/* Which files the SQLite store makes, which it takes, and which it refuses and how. */
#include <limits.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "sqlite/fixture.h"
#include "stores/sqlite/sqlite.h"

static int mode_of(const char *path)
{
    struct stat st;

    assert_int_equal(lstat(path, &st), 0);
    return (int)(st.st_mode & 07777);
}

static void makes_a_0700_directory_and_a_0600_file(void **state)
{
    struct fixture *f = *state;
    char dir[200];

    snprintf(f->path, sizeof f->path, "%.120s/a/locks.db", f->dir);
    snprintf(f->url, sizeof f->url, "sqlite:%s", f->path);
    mode_t old = umask(0);
    open_store(f);
    umask(old);
    check_number("file", mode_of(f->path), 0600);
    snprintf(dir, sizeof dir, "%s-wal", f->path);
    check_number("wal", mode_of(dir), 0600);
    snprintf(dir, sizeof dir, "%s/a", f->dir);
    check_number("directory", mode_of(dir), 0700);
}

static void makes_a_0600_file_whatever_the_umask_takes(void **state)
{
    struct fixture *f = *state;
    mode_t old = umask(0777);

    open_store(f);
    umask(old);
    check_number("file", mode_of(f->path), 0600);
}

static void a_mistyped_path_does_not_grow_a_tree(void **state)
{
    struct fixture *f = *state;
    char url[200];
    struct stat st;

    snprintf(url, sizeof url, "sqlite:%.120s/a/b/locks.db", f->dir);
    check_number("code", try_open(f, url), HF_UNAVAILABLE);
    check_contains("text", f->err.text, "create the directory");
    snprintf(url, sizeof url, "%.120s/a", f->dir);
    assert_int_equal(stat(url, &st), -1);
}

static void every_form_of_url_names_the_same_file(void **state)
{
    struct fixture *f = *state;
    char cwd[PATH_MAX];
    struct hf__bid bid = make_bid(f, "x");

    open_store(f);
    assert_int_equal(attempt(f, &bid).verdict, HF__VERDICT_GRANTED);
    close_store(f);
    snprintf(f->url, sizeof f->url, "sqlite://%.150s", f->path);
    open_store(f);
    assert_int_equal(attempt(f, &bid).verdict, HF__VERDICT_GRANTED);
    close_store(f);
    assert_non_null(getcwd(cwd, sizeof cwd));
    assert_int_equal(chdir(f->dir), 0);
    snprintf(f->url, sizeof f->url, "sqlite:locks.db");
    open_store(f);
    assert_int_equal(chdir(cwd), 0); /* the path was made absolute */
    assert_int_equal(attempt(f, &bid).verdict, HF__VERDICT_GRANTED);
    assert_int_equal(release(f, &bid).verdict, HF__VERDICT_DONE);
}

static void urls_without_a_file_are_refused(void **state)
{
    struct fixture *f = *state;

    check_number("host", try_open(f, "sqlite://host/path.db"), HF_INVALID);
    check_number("directory", try_open(f, "sqlite:/tmp/"), HF_INVALID);
    snprintf(f->url, sizeof f->url, "sqlite:%s?force=yes", f->path);
    check_refused(f, "force", HF_INVALID, "force=network");
}

static void a_symbolic_link_is_refused(void **state)
{
    struct fixture *f = *state;
    char real[200], link[200];

    snprintf(real, sizeof real, "%s/real.db", f->dir);
    assert_int_equal(symlink(real, f->path), 0);
    check_refused(f, "file", HF_DENIED, "symbolic link");
    assert_int_equal(access(real, F_OK), -1);

    snprintf(link, sizeof link, "%s/link", f->dir);
    assert_int_equal(symlink(f->dir, link), 0);
    snprintf(f->url, sizeof f->url, "sqlite:%.150s/other.db", link);
    check_refused(f, "directory", HF_DENIED, "symbolic link");

    unlink(f->path);
    snprintf(link, sizeof link, "%s-wal", f->path);
    assert_int_equal(symlink(real, link), 0);
    snprintf(f->url, sizeof f->url, "sqlite:%s", f->path);
    check_refused(f, "wal", HF_DENIED, "symbolic link");
}

static void a_hard_link_is_refused(void **state)
{
    struct fixture *f = *state;
    char other[200];

    open_store(f);
    close_store(f);
    snprintf(other, sizeof other, "%s/other.db", f->dir);
    assert_int_equal(link(f->path, other), 0);
    check_refused(f, "hard link", HF_DENIED, "hard links");
}

static void what_is_not_a_regular_file_is_refused(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(mkdir(f->path, 0700), 0);
    check_refused(f, "directory", HF_DENIED, "not a regular file");
    assert_int_equal(rmdir(f->path), 0);
    assert_int_equal(mkfifo(f->path, 0600), 0);
    check_refused(f, "fifo", HF_DENIED, "not a regular file");
    unlink(f->path);
    snprintf(f->url, sizeof f->url, "sqlite:/dev/null/locks.db");
    assert_int_not_equal(try_open(f, f->url), 0);
}

static void modes_that_let_others_in_are_refused(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(chmod(f->dir, 0770), 0);
    check_refused(f, "group", HF_DENIED, "chmod 700");
    assert_int_equal(chmod(f->dir, 0707), 0);
    check_refused(f, "others", HF_DENIED, "chmod 700");
    assert_int_equal(chmod(f->dir, 0755), 0);
    open_store(f);
    close_store(f);
    assert_int_equal(chmod(f->path, 0644), 0);
    check_refused(f, "file", HF_DENIED, "chmod 600");
}

/* Sticky or not: a hot journal put beside the database between our look and SQLite's would be played
 * back into it. */
static void a_directory_where_others_can_create_files_is_refused(void **state)
{
    struct fixture *f = *state;
    struct stat st;

    assert_int_equal(chmod(f->dir, 01777), 0);
    check_refused(f, "all", HF_DENIED, "a directory of your own");
    assert_int_equal(chmod(f->dir, 01770), 0);
    check_refused(f, "group", HF_DENIED, "a directory of your own");
    assert_int_equal(lstat(f->path, &st), -1);
    snprintf(f->url, sizeof f->url, "sqlite:%.120s/own/locks.db", f->dir);
    open_store(f);
}

static void what_lies_beside_it_is_looked_at(void **state)
{
    static const char *const suffixes[] = {"-wal", "-shm", "-journal", "-writers"};
    struct fixture *f = *state;
    char path[200];

    for (size_t i = 0; i < COUNT(suffixes); i++) {
        snprintf(path, sizeof path, "%s%s", f->path, suffixes[i]);
        assert_int_equal(mkdir(path, 0700), 0);
        check_refused(f, suffixes[i], HF_DENIED, "is not a regular file");
        assert_int_equal(rmdir(path), 0);
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        assert_int_equal(fchmod(fd, 0606), 0);
        close(fd);
        check_refused(f, suffixes[i], HF_DENIED, "chmod 600");
        unlink(path);
    }
}

/* Planted before the store is made: nothing is followed, opened or written through it. */
static void what_is_planted_beside_it_is_refused(void **state)
{
    static const char *const suffixes[] = {"-wal", "-shm", "-journal", "-writers"};
    struct fixture *f = *state;
    char path[200], victim[200];
    struct stat st;

    snprintf(victim, sizeof victim, "%.120s/victim", f->dir);
    for (size_t i = 0; i < COUNT(suffixes); i++) {
        snprintf(path, sizeof path, "%s%s", f->path, suffixes[i]);
        assert_int_equal(symlink(victim, path), 0);
        check_refused(f, "symbolic link", HF_DENIED, suffixes[i]);
        assert_int_equal(lstat(victim, &st), -1); /* not made through the link */
        unlink(path);
        assert_int_equal(mknod(victim, S_IFREG | 0600, 0), 0);
        assert_int_equal(link(victim, path), 0);
        check_refused(f, "hard link", HF_DENIED, suffixes[i]);
        unlink(path);
        unlink(victim);
        assert_int_equal(mkfifo(path, 0600), 0);
        check_refused(f, "fifo", HF_DENIED, suffixes[i]);
        unlink(path);
        if (geteuid() != 0)
            continue; /* only root can give a file away */
        assert_int_equal(mknod(path, S_IFREG | 0600, 0), 0);
        assert_int_equal(chown(path, 12345, (gid_t)-1), 0);
        check_refused(f, "owner", HF_DENIED, suffixes[i]);
        unlink(path);
    }
}

static void what_is_above_it_must_not_be_exchanged(void **state)
{
    struct fixture *f = *state;
    char above[200], own[220], link[200];

    snprintf(above, sizeof above, "%.120s/above", f->dir);
    snprintf(own, sizeof own, "%s/own", above);
    assert_int_equal(mkdir(above, 0755), 0);
    assert_int_equal(mkdir(own, 0700), 0);
    snprintf(f->url, sizeof f->url, "sqlite:%.170s/locks.db", own);
    assert_int_equal(chmod(above, 0777), 0);
    check_refused(f, "writable", HF_DENIED, "can be written by others");
    assert_int_equal(chmod(above, 01777), 0); /* ours cannot be renamed there */
    open_store(f);
    close_store(f);
    assert_int_equal(chmod(above, 0755), 0);
    if (geteuid() != 0)
        return; /* only root can give a file away */
    assert_int_equal(chown(above, 12345, (gid_t)-1), 0);
    check_refused(f, "owner", HF_DENIED, "belongs to another user");
    assert_int_equal(chown(above, 0, 12345), 0);
    assert_int_equal(chmod(above, 0775), 0);
    check_refused(f, "group", HF_DENIED, "can be written by others");
    assert_int_equal(chmod(above, 0755), 0);
    snprintf(link, sizeof link, "%.120s/link", f->dir);
    assert_int_equal(symlink(above, link), 0);
    snprintf(f->url, sizeof f->url, "sqlite:%.160s/own/locks.db", link);
    open_store(f);
    close_store(f);
    assert_int_equal(lchown(link, 12345, (gid_t)-1), 0);
    check_refused(f, "link", HF_DENIED, "belongs to another user");
}

static void a_foreign_owner_is_refused(void **state)
{
    struct fixture *f = *state;

    if (geteuid() != 0)
        skip(); /* only root can give a file away */
    open_store(f);
    close_store(f);
    assert_int_equal(chown(f->path, 12345, (gid_t)-1), 0);
    check_refused(f, "file", HF_DENIED, "another user");
    assert_int_equal(chown(f->path, 0, (gid_t)-1), 0);
    assert_int_equal(chown(f->dir, 12345, (gid_t)-1), 0);
    check_refused(f, "directory", HF_DENIED, "another user");
}

static void rights_that_are_missing_are_told(void **state)
{
    struct fixture *f = *state;
    int status;

    if (geteuid() != 0)
        skip(); /* needs a second user */
    assert_int_equal(chmod(f->dir, 0755), 0);
    pid_t child = fork();
    if (child == 0) {
        bool ok = setuid(12345) == 0 && try_open(f, f->url) == HF_DENIED &&
                  strstr(f->err.text, "cannot create") != NULL;
        _exit(ok ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void descriptors_that_are_missing_are_told(void **state)
{
    struct fixture *f = *state;
    struct rlimit limit, none;
    int next = open("/dev/null", O_RDONLY | O_CLOEXEC);

    assert_true(next >= 0);
    close(next);
    open_store(f);
    close_store(f);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = limit;
    none.rlim_cur = (rlim_t)next;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    int code = try_open(f, f->url);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    check_number("code", code, HF_UNAVAILABLE);
    check_contains("text", f->err.text, "too many files are open; raise the limit (ulimit -n)");
}

static void network_file_systems_are_known(void **state)
{
    (void)state;
    check_text("nfs", hf__sqlite_network_name(0x6969), "NFS");
    check_text("cifs", hf__sqlite_network_name(0xff534d42), "CIFS");
    check_text("smb2", hf__sqlite_network_name(0xfe534d42), "SMB2");
    check_text("9p", hf__sqlite_network_name(0x01021997), "9p");
    check_text("fuse", hf__sqlite_network_name(0x65735546), "FUSE");
    check_text("ext4", hf__sqlite_network_name(0xef53), NULL);
    check_text("tmpfs", hf__sqlite_network_name(0x01021994), NULL);
    check_text("btrfs", hf__sqlite_network_name(0x9123683e), NULL);
}

int main(void)
{
#define FRESH(test) cmocka_unit_test_setup_teardown(test, setup_fixture, teardown)
    const struct CMUnitTest tests[] = {
        FRESH(makes_a_0700_directory_and_a_0600_file),
        FRESH(makes_a_0600_file_whatever_the_umask_takes),
        FRESH(a_mistyped_path_does_not_grow_a_tree),
        FRESH(every_form_of_url_names_the_same_file),
        FRESH(urls_without_a_file_are_refused),
        FRESH(a_symbolic_link_is_refused),
        FRESH(a_hard_link_is_refused),
        FRESH(what_is_not_a_regular_file_is_refused),
        FRESH(modes_that_let_others_in_are_refused),
        FRESH(a_directory_where_others_can_create_files_is_refused),
        FRESH(what_lies_beside_it_is_looked_at),
        FRESH(what_is_planted_beside_it_is_refused),
        FRESH(what_is_above_it_must_not_be_exchanged),
        FRESH(a_foreign_owner_is_refused),
        FRESH(rights_that_are_missing_are_told),
        FRESH(descriptors_that_are_missing_are_told),
        cmocka_unit_test(network_file_systems_are_known),
    };

    return cmocka_run_group_tests_name("sqlite_files", tests, NULL, NULL);
}
