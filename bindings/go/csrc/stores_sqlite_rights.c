/* See rights.h. Every sentence names what is wrong, and what to do about it. */
#include "stores_sqlite_rights.h"

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base_banned.h"

#define ENTRY_MAX (1 << 20) /* of the group database */

/* 0, or an errno; ESRCH: there is none. */
static int find_group(const char *name, gid_t *ret_gid)
{
    struct group entry, *found = NULL;
    int result = ERANGE;

    for (size_t size = 1024; result == ERANGE && size <= ENTRY_MAX; size *= 4) {
        char *buf = malloc(size);
        if (buf == NULL)
            return ENOMEM;
        result = getgrnam_r(name, &entry, buf, size, &found);
        if (result == 0 && found != NULL)
            *ret_gid = found->gr_gid;
        free(buf);
    }
    return result != 0 || found != NULL ? result : ESRCH;
}

static bool is_number(const char *text, gid_t *ret_gid)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);

    if (text[0] < '0' || text[0] > '9' || *end != '\0' || value >= (gid_t)-1)
        return false;
    *ret_gid = (gid_t)value;
    return true;
}

/* Asked before anything is made: files that a stranger to the group had made could not be given to
 * it. */
static bool is_member(gid_t gid)
{
    int count = getgroups(0, NULL);
    gid_t *groups = count > 0 ? calloc((size_t)count, sizeof *groups) : NULL;
    bool found = geteuid() == 0 || getegid() == gid;

    count = groups != NULL ? getgroups(count, groups) : 0;
    for (int i = 0; i < count; i++)
        found |= groups[i] == gid;
    free(groups);
    return found;
}

int hf__rights_init(struct hf__rights *r, const char *group, hf_error *err)
{
    struct stat st;

    *r = (struct hf__rights){.file = 0600, .directory = 0700};
    if (lstat("/", &st) == 0)
        r->root = st.st_uid;
    if (group == NULL)
        return 0;
    *r = (struct hf__rights){
        .by_group = true, .root = r->root, .file = 0660, .directory = S_ISGID | 0770};
    snprintf(r->group, sizeof r->group, "%s", group);
    int result = find_group(group, &r->gid);
    if (result == ENOMEM)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    if (result != 0 && !is_number(group, &r->gid))
        return hf__fail(err, HF_INVALID, "sqlite: there is no group '%s' on this machine",
                        r->group);
    if (!is_member(r->gid))
        return hf__fail(err, HF_DENIED,
                        "sqlite: you are not a member of the group '%s', which shares these locks",
                        r->group);
    return 0;
}

const char *hf__rights_of_file(const struct hf__rights *r, const struct stat *st)
{
    if (r->by_group)
        return st->st_gid != r->gid || (st->st_mode & 0777) != r->file
                   ? "is not shared with the group alone; chgrp it to the group and chmod 660 it"
                   : NULL;
    if ((st->st_mode & 077) == 060)
        return "is shared with a group; add ?group=NAME to the URL, or name a file of your own";
    if (st->st_uid != geteuid())
        return "belongs to another user; use a file of your own";
    if ((st->st_mode & 077) != 0)
        return "can be read or written by others; name another path, or chmod 600 it if it is a "
               "database of holdfast";
    return NULL;
}

const char *hf__rights_of_directory(const struct hf__rights *r, const struct stat *st)
{
    if (r->by_group)
        return st->st_gid != r->gid || (st->st_mode & 07777) != r->directory
                   ? "is not shared with the group alone; chgrp it to the group and chmod 2770 it"
                   : NULL;
    if ((st->st_mode & 07777) == (S_ISGID | 0770))
        return "is shared with a group (2770); add ?group=NAME to the URL, or use a directory of "
               "your own";
    if (st->st_uid != geteuid() && st->st_uid != 0)
        return "belongs to another user, who could replace the database; use a directory of your "
               "own";
    if ((st->st_mode & 022) != 0)
        return (st->st_mode & S_ISVTX) != 0
                   ? "is open to all, who could put files beside the database that SQLite would "
                     "use; use a directory of your own in it"
                   : "can be written by others, who could replace the database; chmod 700 it";
    return NULL;
}

/* A directory whose group is our own, and nobody else's as a rule, is writable by it on many
 * machines. */
const char *hf__rights_above(const struct hf__rights *r, const struct stat *st, uid_t owner)
{
    bool ours = st->st_uid == 0 || st->st_uid == r->root || st->st_uid == geteuid() ||
                (r->by_group && st->st_uid == owner);
    bool our_group =
        st->st_gid == 0 || st->st_gid == getegid() || (r->by_group && st->st_gid == r->gid);

    if (!ours)
        return "is above the database and belongs to another user, who could replace it; use a "
               "place of your own";
    if (!S_ISDIR(st->st_mode) || (st->st_mode & S_ISVTX) != 0)
        return NULL;
    if ((st->st_mode & 02) != 0 || ((st->st_mode & 020) != 0 && !our_group))
        return "is above the database and can be written by others, who could replace it; chmod "
               "go-w it, or use another place";
    return NULL;
}
