/* Which boot this is, and what becomes of the leases of another.
 *
 * Leases are counted on CLOCK_BOOTTIME, which begins anew with each boot: what an earlier boot
 * wrote has no meaning on this one's clock. All who held a lease then are gone with their machine,
 * so their leases are void; a claimed one with a lock-delay begins its delay now, since nobody
 * knows how long the machine was off. A claimed grant that never expires stays; its age is taken
 * from its generation, which is the wall clock of the grant (C4). Where /proc does not tell the
 * boot, nothing is voided: then the doorman's rule against a clock that went back cuts each lease
 * to its own length. So it is where a container manager has mounted an identity of the container's
 * own over it (systemd-nspawn): the clock is the kernel's all the same, and so are the leases.
 *
 * A time namespace shifts CLOCK_BOOTTIME for the processes inside; the shift is taken off again, so
 * that containers on one machine agree. */
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "stores/sqlite/sqlite.h"

#include "base/banned.h"

static size_t read_file(const char *path, char *buf, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, buf, size - 1);

    if (fd >= 0)
        close(fd);
    buf[n > 0 ? n : 0] = '\0';
    return n > 0 ? (size_t)n : 0;
}

/* systemd-nspawn mounts a file of its own over the kernel's. Whoever believed it would void the
 * leases of the host, which are counted on the same clock: two holders. So only what /proc itself
 * shows is read. */
void hf__sqlite_boot_read(struct hf__sqlite *s)
{
    static const char boot_id[] = "/proc/sys/kernel/random/boot_id";
    struct statfs fs;
    char text[256];

    s->boot[0] = '\0';
    if (statfs(boot_id, &fs) == 0 && (unsigned long)fs.f_type == PROC_SUPER_MAGIC)
        read_file(boot_id, s->boot, sizeof s->boot);
    s->boot[strcspn(s->boot, "\n")] = '\0';

    s->offset_ms = 0;
    if (read_file("/proc/self/timens_offsets", text, sizeof text) == 0)
        return;
    const char *line = strstr(text, "boottime");
    long long sec, nsec;
    if (line != NULL && sscanf(line, "boottime %lld %lld", &sec, &nsec) == 2)
        s->offset_ms = sec * 1000 + nsec / HF__NS_PER_MS;
}

/* ?1 now, ?2 the wall clock in us, ?3 how many the trail keeps. In this order: what a vanished holder had opened is in doubt; what
 * lingers already keeps its span, but for a time that counts from the grant (C14), which goes on by the
 * wall clock, or a machine that starts each morning would lose a slot each day; then those who held
 * with a delay begin to linger. */
static const char *const voiding[] = {
    ("INSERT INTO holdfast_value (name, generation, nth, doubt, bytes)"
     " SELECT name, 0, 0, 1, x'' FROM holdfast_entry JOIN holdfast_lock ON lock = id"
     " WHERE place = 2 AND until IS NOT NULL AND flags & 4"
     " ON CONFLICT (name) DO UPDATE SET doubt = 1"),
    "DELETE FROM holdfast_entry WHERE place = 1",
    "DELETE FROM holdfast_retired",
    ("UPDATE holdfast_entry SET until = ?1 + CASE WHEN until = since + lease"
     " THEN min(lease, max(0, lease - (?2 - generation) / 1000)) ELSE lease END WHERE place = 3"),
    ("UPDATE holdfast_entry SET place = 3, until = ?1 + delay, lease = delay"
     " WHERE place = 2 AND until IS NOT NULL AND claimed AND delay > 0"),
    "DELETE FROM holdfast_entry WHERE place = 2 AND until IS NOT NULL",
    "UPDATE holdfast_entry SET since = ?1 - max(0, ?2 - generation) / 1000",
    "UPDATE holdfast_lock SET waiting = 0, retired = 0 WHERE waiting <> 0 OR retired <> 0",
};

/* Before them, for whoever keeps a trail. Nobody knows when the machine went. */
static const char noting[] =
    "INSERT OR REPLACE INTO holdfast_history SELECT (lock << 32) + (2 * seq + 1) % (2 * ?3),"
    " ?2 / 1000, 3, mode, ticket, generation, max(0, ?2 - generation) / 1000, host, user, program,"
    " pid, note, 'reboot' FROM holdfast_entry WHERE place = 2 AND until IS NOT NULL";

static int void_some(struct hf__sqlite *s, const char *sql, struct hf__moment at, hf_error *err)
{
    sqlite3_stmt *statement = NULL;
    int result = sqlite3_prepare_v2(s->db, sql, -1, &statement, NULL);

    if (result == SQLITE_OK) {
        sqlite3_bind_int64(statement, 1, at.now_ms);
        sqlite3_bind_int64(statement, 2, (int64_t)at.stamp_us);
        sqlite3_bind_int64(statement, 3, s->history); /* of the first */
        result = sqlite3_step(statement);
    }
    sqlite3_finalize(statement);
    return result == SQLITE_DONE
               ? 0
               : hf__sqlite_fail(s, result, "void the leases of another boot", err);
}

static int void_leases(struct hf__sqlite *s, hf_error *err)
{
    struct hf__moment at = hf__sqlite_moment(s, NULL);
    int code = s->history > 0 ? void_some(s, noting, at, err) : 0;

    for (size_t i = 0; code == 0 && i < sizeof voiding / sizeof voiding[0]; i++)
        code = void_some(s, voiding[i], at, err);
    return code;
}

/* Empty if it is not known. */
static int read_noted(struct hf__sqlite *s, char *noted, size_t size, hf_error *err)
{
    sqlite3_stmt *statement = NULL;
    int code = 0,
        result = sqlite3_prepare_v2(s->db, "SELECT boot FROM holdfast_meta", -1, &statement, NULL);

    if (result == SQLITE_OK)
        result = sqlite3_step(statement);
    if (result == SQLITE_ROW)
        snprintf(noted, size, "%s", (const char *)sqlite3_column_text(statement, 0));
    else
        code = hf__sqlite_fail(s, result == SQLITE_DONE ? SQLITE_CORRUPT : result, "read", err);
    sqlite3_finalize(statement);
    return code;
}

/* The boot is read once more: another process may have voided the leases since, and granted new
 * ones. */
static int adopt_in_transaction(struct hf__sqlite *s, hf_error *err)
{
    char noted[sizeof s->boot];
    sqlite3_stmt *statement = NULL;
    int code = read_noted(s, noted, sizeof noted, err);

    if (code != 0 || strcmp(noted, s->boot) == 0)
        return code;
    if (noted[0] != '\0')
        code = void_leases(s, err);
    if (code != 0)
        return code;
    int result =
        sqlite3_prepare_v2(s->db, "UPDATE holdfast_meta SET boot = ?1", -1, &statement, NULL);
    if (result == SQLITE_OK) {
        sqlite3_bind_text(statement, 1, s->boot, -1, SQLITE_STATIC);
        result = sqlite3_step(statement);
    }
    sqlite3_finalize(statement);
    return result == SQLITE_DONE ? 0 : hf__sqlite_fail(s, result, "note the boot", err);
}

/* First without a transaction: all but the first opening after a boot find nothing to do, and must
 * not wait in line for that. */
int hf__sqlite_boot_adopt(struct hf__sqlite *s, hf_error *err)
{
    char noted[sizeof s->boot];
    int code = read_noted(s, noted, sizeof noted, err);

    if (code != 0 || s->boot[0] == '\0' || strcmp(noted, s->boot) == 0)
        return code;
    code = hf__sqlite_begin(s, err);
    if (code != 0)
        return code;
    code = adopt_in_transaction(s, err);
    if (code != 0) {
        hf__sqlite_rollback(s, NULL);
        return code;
    }
    s->durable = true;
    code = hf__sqlite_commit(s, err);
    if (code == 0)
        hf__sqlite_stale_sockets(s, true); /* all who listened then are gone */
    return code;
}
