/* Which files may be used, and whether they are still the same.
 *
 * A lock file that a stranger can replace is no lock, so the file has to be ours alone (0600) in a
 * directory where nobody else can rename or remove it: ours or root's, and not writable by others
 * unless it is sticky. That is also what makes "look, then open" safe: between the two only we and
 * root could change what the path means.
 *
 * The database file is never opened here: closing any descriptor of it would drop the POSIX locks
 * that SQLite holds in this process. It is looked at by path, and created with mknod(). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "stores/sqlite/sqlite.h"

#include "util/banned.h"

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

/* Only the last one: a mistyped path should not grow a tree. */
static int make_directory(const char *path, hf_error *err)
{
    if (mkdir(path, 0700) == 0 || errno == EEXIST)
        return 0;
    return fail_call(err, path, "create the directory");
}

static int check_directory(const char *path, bool *ret_shared, hf_error *err)
{
    struct stat st;

    if (lstat(path, &st) != 0)
        return fail_call(err, path, "look at");
    if (S_ISLNK(st.st_mode))
        return fail_path(err, HF_DENIED, path,
                         "is a symbolic link; name the directory it points to");
    if (!S_ISDIR(st.st_mode))
        return fail_path(err, HF_DENIED, path, "is not a directory; name another path");
    if (st.st_uid != geteuid() && st.st_uid != 0)
        return fail_path(err, HF_DENIED, path,
                         "belongs to another user, who could replace the database; use a directory "
                         "of your own");
    if ((st.st_mode & 022) != 0 && (st.st_mode & S_ISVTX) == 0)
        return fail_path(err, HF_DENIED, path,
                         "can be written by others, who could replace the database; chmod 700 it");
    *ret_shared = (st.st_mode & 022) != 0;
    return 0;
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
static int check_file(const char *path, hf_error *err)
{
    struct stat st;

    if (lstat(path, &st) != 0)
        return errno == ENOENT ? HF_NOT_FOUND : fail_call(err, path, "look at");
    if (S_ISLNK(st.st_mode))
        return fail_path(err, HF_DENIED, path, "is a symbolic link; name the file it points to");
    if (!S_ISREG(st.st_mode))
        return fail_path(err, HF_DENIED, path, "is not a regular file; name another path");
    if (st.st_uid != geteuid())
        return fail_path(err, HF_DENIED, path, "belongs to another user; use a file of your own");
    if (st.st_nlink > 1)
        return fail_path(err, HF_DENIED, path,
                         "has more than one name, under which SQLite would not see the same locks; "
                         "remove the other hard links");
    if ((st.st_mode & 077) != 0)
        return fail_path(err, HF_DENIED, path,
                         "can be read or written by others; name another path, or chmod 600 it if "
                         "it is a database of holdfast");
    return 0;
}

static int check_or_make(const char *path, bool make, hf_error *err)
{
    int code = check_file(path, err);

    if (code != HF_NOT_FOUND)
        return code;
    if (!make)
        return 0;
    if (mknod(path, S_IFREG | 0600, 0) != 0 ? errno != EEXIST
                                            : chmod(path, 0600) != 0) /* whatever the umask took */
        return fail_call(err, path, "create");
    code = check_file(path, err);
    return code == HF_NOT_FOUND ? fail_path(err, HF_UNAVAILABLE, path, "vanished; try again")
                                : code;
}

/* In a directory such as /tmp a stranger could put a WAL of his own beside our file: be there
 * first. */
static int check_siblings(const char *path, bool shared, hf_error *err)
{
    static const char *const suffixes[] = {"-wal", "-shm", "-journal", HF__WRITERS_SUFFIX};
    int code = 0;

    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0] && code == 0; i++) {
        char *sibling = NULL;
        if (asprintf(&sibling, "%s%s", path, suffixes[i]) < 0)
            return hf__fail(err, HF_NO_MEMORY, NULL);
        code = check_or_make(sibling, shared && i < 2, err);
        free(sibling);
    }
    return code;
}

int hf__sqlite_secure(struct hf__sqlite *s, hf_error *err)
{
    char *directory = strdup(s->path), *slash;
    bool shared = false;
    int code;

    if (directory == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    slash = strrchr(directory, '/');
    slash[slash == directory] = '\0';
    code = make_directory(directory, err);
    if (code == 0)
        code = check_directory(directory, &shared, err);
    if (code == 0)
        code = check_file_system(s, directory, err);
    free(directory);
    if (code == 0 && shared) /* what is refused below leaves no file of ours behind */
        code = check_siblings(s->path, false, err);
    if (code == 0)
        code = check_or_make(s->path, true, err);
    return code != 0 ? code : check_siblings(s->path, shared, err);
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
