/* Which files may be used, and whether they are still the same.
 *
 * A lock file that a stranger can replace is no lock, so the file has to be ours alone in a
 * directory where nobody else can create, rename or remove anything (rights.h). That is also what
 * makes "look, then open" safe: between the two only those who share the locks, and root, could
 * change what the path means.
 *
 * The database file is never opened here: closing any descriptor of it would drop the POSIX locks
 * that SQLite holds in this process. It is looked at by path, and created with mknod(). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "stores_sqlite_sqlite.h"

#include "base_banned.h"

#define WAL_LOOK_NS (25 * HF__NS_PER_MS)

static const struct {
    unsigned long magic;
    const char *name;
} networks[] = {
    {0x6969, "NFS"},        {0x517b, "SMB"},          {0xff534d42, "CIFS"},
    {0xfe534d42, "SMB2"},   {0x01021997, "9p"},       {0x65735546, "FUSE"},
    {0x5346414f, "AFS"},    {0x6b414653, "AFS"},      {0x00c36400, "Ceph"},
    {0x01161970, "GFS2"},   {0x7461636f, "OCFS2"},    {0x73757245, "Coda"},
    {0x564c, "NCP"},        {0x0bd00bd0, "Lustre"},   {0x786f4256, "vboxsf"},
    {0xbacbacbc, "vmhgfs"}, {0x20030528, "OrangeFS"}, {0x19830326, "BeeGFS"},
    {0xaad7aaea, "PanFS"},
};

const char *hf__sqlite_network_name(unsigned long magic)
{
    for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++) {
        if (networks[i].magic == magic)
            return networks[i].name;
    }
    return NULL;
}

int hf__sqlite_absolute(const char *path, char **ret_path, hf_error *err)
{
    size_t len = strlen(path);
    char *cwd = NULL, *whole = NULL;

    if (len == 0 || path[len - 1] == '/')
        return hf__fail(err, HF_INVALID,
                        "sqlite: the URL names no file; write sqlite:/directory/locks.db");
    if (path[0] != '/' && (cwd = getcwd(NULL, 0)) == NULL)
        return hf__fail_errno(err, HF_SYSTEM, "sqlite: the current directory");
    if (asprintf(&whole, "%s%s%s", cwd != NULL ? cwd : "", cwd != NULL ? "/" : "", path) < 0)
        whole = NULL;
    free(cwd);
    if (whole == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    if (strlen(whole) > 4000) {
        free(whole);
        return hf__fail(err, HF_INVALID, "sqlite: the path is longer than 4000 bytes");
    }
    *ret_path = whole;
    return 0;
}

static int fail_path(hf_error *err, int code, const char *path, const char *what)
{
    char shown[160];

    return hf__fail(err, code, "sqlite: '%s' %s",
                    hf__printable(path, strlen(path), shown, sizeof shown), what);
}

static int fail_call(hf_error *err, const char *path, const char *doing)
{
    int reason = errno;
    char shown[160];
    int code = reason == EACCES || reason == EPERM || reason == EROFS ? HF_DENIED
               : reason == ENOSPC || reason == EDQUOT                 ? HF_FULL
                                                                      : HF_UNAVAILABLE;

    hf__printable(path, strlen(path), shown, sizeof shown);
    errno = reason;
    return hf__fail_errno(err, code, "sqlite: cannot %s '%s'", doing, shown);
}

/* What was just made gets its group and its mode, whatever the umask took. */
static int give_rights(const struct hf__rights *r, const char *path, mode_t mode, hf_error *err)
{
    if ((r->by_group && chown(path, (uid_t)-1, r->gid) != 0) || chmod(path, mode) != 0)
        return fail_call(err, path, "set the rights of");
    return 0;
}

/* All that is above it, from the root on. `path` is as before afterwards. */
static int check_above(const struct hf__rights *r, char *path, uid_t owner, hf_error *err)
{
    int code = 0;

    for (char *slash = path; slash != NULL && code == 0; slash = strchr(slash + 1, '/')) {
        char kept = slash[slash == path]; /* the root is its slash */
        struct stat st;
        slash[slash == path] = '\0';
        const char *wrong = NULL;
        if (lstat(path, &st) != 0)
            code = fail_call(err, path, "look at");
        else
            wrong = hf__rights_above(r, &st, owner);
        if (wrong != NULL)
            code = fail_path(err, HF_DENIED, path, wrong);
        slash[slash == path] = kept;
    }
    return code;
}

/* The directory, and the way to it: the one that the path names, with its symbolic links, and the
 * one that they lead to, which is given back: SQLite refuses a path with links in it. Whoever can
 * write anywhere on either way can exchange the directory for another. */
static int check_directory(const struct hf__rights *r, char *path, char **ret_real, hf_error *err)
{
    struct stat st;

    if (lstat(path, &st) != 0)
        return fail_call(err, path, "look at");
    if (S_ISLNK(st.st_mode))
        return fail_path(err, HF_DENIED, path,
                         "is a symbolic link; name the directory it points to");
    if (!S_ISDIR(st.st_mode))
        return fail_path(err, HF_DENIED, path, "is not a directory; name another path");
    const char *wrong = hf__rights_of_directory(r, &st);
    if (wrong != NULL)
        return fail_path(err, HF_DENIED, path, wrong);
    int code = check_above(r, path, st.st_uid, err);
    if (code != 0)
        return code;
    char *real = realpath(path, NULL);
    if (real == NULL)
        return fail_call(err, path, "look at");
    code = check_above(r, real, st.st_uid, err);
    if (code == 0)
        *ret_real = real;
    else
        free(real);
    return code;
}

static int check_file_system(const struct hf__sqlite *s, const char *directory, hf_error *err)
{
    struct statfs fs;
    const char *network;
    char text[200];

    if (s->allow_network)
        return 0;
    if (statfs(directory, &fs) != 0)
        return fail_call(err, directory, "look at the file system of");
    network = hf__sqlite_network_name((unsigned long)fs.f_type & 0xffffffff);
    if (network == NULL)
        return 0;
    snprintf(text, sizeof text,
             "is on %s, where SQLite's locks cannot be trusted; use a local disk, or force=network "
             "if no other machine uses it",
             network);
    return fail_path(err, HF_DENIED, directory, text);
}

/* The database or one of the files SQLite keeps beside it. HF_NOT_FOUND if it is not there. */
static int check_file(const struct hf__rights *r, const char *path, hf_error *err)
{
    struct stat st;

    if (lstat(path, &st) != 0)
        return errno == ENOENT ? HF_NOT_FOUND : fail_call(err, path, "look at");
    if (S_ISLNK(st.st_mode))
        return fail_path(err, HF_DENIED, path, "is a symbolic link; name the file it points to");
    if (!S_ISREG(st.st_mode))
        return fail_path(err, HF_DENIED, path, "is not a regular file; name another path");
    if (st.st_nlink > 1)
        return fail_path(err, HF_DENIED, path,
                         "has more than one name, under which SQLite would not see the same locks; "
                         "remove the other hard links");
    const char *wrong = hf__rights_of_file(r, &st);
    return wrong != NULL ? fail_path(err, HF_DENIED, path, wrong) : 0;
}

/* Another member of the group may just be making it, which takes two steps. */
static int check_file_patiently(const struct hf__rights *r, const char *path, hf_error *err)
{
    int code = check_file(r, path, err);
    struct stat st;

    for (int i = 0; r->by_group && code == HF_DENIED && i < 20; i++) {
        if (lstat(path, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > 0 ||
            (st.st_mode & 077 & ~r->file) != 0)
            break;
        usleep(5000);
        code = check_file(r, path, err);
    }
    return code;
}

static int check_or_make(const struct hf__rights *r, const char *path, bool make, hf_error *err)
{
    int code = check_file_patiently(r, path, err);

    if (code != HF_NOT_FOUND)
        return code;
    if (!make)
        return 0;
    if (mknod(path, S_IFREG | 0600, 0) == 0)
        code = give_rights(r, path, r->file, err);
    else
        code = errno == EEXIST ? 0 : fail_call(err, path, "create");
    if (code == 0)
        code = check_file_patiently(r, path, err);
    return code == HF_NOT_FOUND ? fail_path(err, HF_UNAVAILABLE, path, "vanished; try again")
                                : code;
}

/* What SQLite would open beside the database is looked at, whether it is there or not: it plays
 * back a journal that somebody else put there, and believes the locks in it. SQLite makes the first
 * two with the mode of the database, but in two steps: with a group we make them, so that nobody
 * finds them before the group may use them. A super-journal is named in a journal only, which
 * nobody but us can write. */
static int check_siblings(const struct hf__rights *r, const char *path, hf_error *err)
{
    static const char *const suffixes[] = {"-wal", "-shm", HF__WRITERS_SUFFIX, "-journal"};
    int code = 0;

    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0] && code == 0; i++) {
        char *sibling = NULL;
        if (asprintf(&sibling, "%s%s", path, suffixes[i]) < 0)
            return hf__fail(err, HF_NO_MEMORY, NULL);
        code = check_or_make(r, sibling, r->by_group && i < 3, err);
        free(sibling);
    }
    return code;
}

static int set_path(struct hf__sqlite *s, const char *directory, hf_error *err)
{
    const char *slash = strrchr(s->path, '/');
    char *path = NULL;

    if (asprintf(&path, "%s%s", directory[1] != '\0' ? directory : "", slash) < 0)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    free(s->path);
    s->path = path;
    return 0;
}

int hf__sqlite_secure(struct hf__sqlite *s, hf_error *err)
{
    char *directory = strdup(s->path), *real = NULL, *slash;
    int code;

    if (directory == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    slash = strrchr(directory, '/');
    slash[slash == directory] = '\0';
    code = 0;
    if (mkdir(directory, 0700) == 0) /* only the last one: a mistyped path should not grow a tree */
        code = give_rights(&s->rights, directory, s->rights.directory, err);
    else if (errno != EEXIST)
        code = fail_call(err, directory, "create the directory");
    if (code == 0)
        code = check_directory(&s->rights, directory, &real, err);
    if (code == 0)
        code = check_file_system(s, directory, err);
    if (code == 0)
        code = set_path(s, real, err);
    free(real);
    free(directory);
    if (code == 0)
        code = check_or_make(&s->rights, s->path, true, err);
    return code != 0 ? code : check_siblings(&s->rights, s->path, err);
}

static int lost(struct hf__sqlite *s, hf_error *err)
{
    s->base.data_lost = true;
    return hf__fail(err, HF_UNAVAILABLE,
                    "sqlite: the database file was replaced or deleted; open the store anew");
}

static int still_there(struct hf__sqlite *s, const char *path, dev_t dev, ino_t ino, hf_error *err)
{
    struct stat st;

    if (lstat(path, &st) == 0)
        return st.st_dev == dev && st.st_ino == ino ? 0 : lost(s, err);
    return errno == ENOENT || errno == ENOTDIR ? lost(s, err) : fail_call(err, path, "look at");
}

/* SQLite itself keeps the WAL while a connection is open, so both files must be the ones we opened.
 * The WAL alone is hardly ever removed: it is looked at less often, but more than leases need. */
int hf__sqlite_still_ours(struct hf__sqlite *s, hf_error *err)
{
    int64_t now_ns = hf__now_ns(s->base.host->env);
    int code;

    if (s->base.data_lost)
        return lost(s, err);
    code = still_there(s, s->path, s->file.dev, s->file.ino, err);
    if (code != 0 || s->wal.ino == 0 || now_ns - s->wal_seen_ns < WAL_LOOK_NS)
        return code;
    s->wal_seen_ns = now_ns;
    return still_there(s, s->wal_path, s->wal.dev, s->wal.ino, err);
}
