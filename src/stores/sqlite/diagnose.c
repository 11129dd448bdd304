/* What `holdfast doctor` says about a live database. It reads, makes one empty transaction, and
 * changes nothing. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statfs.h>

#include "base/report.h"
#include "stores/sqlite/sqlite.h"

#include "base/banned.h"

#define LATENCY_ROUNDS 16

struct report {
    struct hf__sqlite *s;
    struct hf__report to;
};

static void say_error(const struct report *r, const char *clause, const hf_error *err)
{
    hf__say(&r->to, HF__LEVEL_PROBLEM, clause, "%s", err->text);
}

static void report_files(const struct report *r)
{
    struct statfs fs;
    struct stat st;
    hf_error err;
    char shown[160];
    const char *network = NULL;

    if (hf__sqlite_secure(r->s, &err) != 0)
        say_error(r, "C1", &err);
    else if (r->s->rights.by_group)
        hf__say(&r->to, HF__LEVEL_FINE, "C1",
                "the file is shared with the group '%s' (0660), in a directory where nobody else "
                "can replace it",
                r->s->rights.group);
    else
        hf__say(&r->to, HF__LEVEL_FINE, "C1",
                "the file is ours alone (0600), in a directory where nobody else can replace it");
    if (statfs(r->s->path, &fs) == 0)
        network = hf__sqlite_network_name((unsigned long)fs.f_type & 0xffffffff);
    if (network != NULL)
        hf__say(&r->to, HF__LEVEL_WARNING, "C1",
                "the file is on %s (force=network): safe only while one machine uses it", network);
    hf__printable(r->s->path, strlen(r->s->path), shown, sizeof shown);
    if (stat(r->s->path, &st) == 0)
        hf__say(&r->to, HF__LEVEL_FINE, NULL, "'%s': %" PRIdMAX " bytes", shown,
                (intmax_t)st.st_size);
    if (stat(r->s->wal_path, &st) == 0)
        hf__say(&r->to, st.st_size > 64 << 20 ? HF__LEVEL_WARNING : HF__LEVEL_FINE, NULL,
                "write-ahead log: %" PRIdMAX " bytes", (intmax_t)st.st_size);
}

static void report_setting(const struct report *r, const char *sql, const char *expected,
                           const char *what)
{
    sqlite3_stmt *q = NULL;
    const char *value = "?";

    if (sqlite3_prepare_v2(r->s->db, sql, -1, &q, NULL) == SQLITE_OK &&
        sqlite3_step(q) == SQLITE_ROW)
        value = (const char *)sqlite3_column_text(q, 0);
    if (value != NULL && strcmp(value, expected) == 0)
        hf__say(&r->to, HF__LEVEL_FINE, NULL, "%s: %s", what, value);
    else
        hf__say(&r->to, HF__LEVEL_PROBLEM, NULL, "%s: %s, expected %s", what,
                value != NULL ? value : "nothing", expected);
    sqlite3_finalize(q);
}

static void report_rows(const struct report *r)
{
    static const struct {
        const char *what, *sql;
    } counts[] = {
        {"locks known", "SELECT count(*) FROM holdfast_lock"},
        {"inside, or keeping a lock closed",
         "SELECT count(*) FROM holdfast_entry WHERE place <> 1"},
        {"waiting", "SELECT count(*) FROM holdfast_entry WHERE place = 1"},
        {"tickets remembered", "SELECT count(*) FROM holdfast_retired"},
    };
    int64_t number = 0;
    hf_error err;

    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        if (hf__sqlite_ask(r->s, counts[i].sql, &number, &err) != 0)
            say_error(r, NULL, &err);
        else
            hf__say(&r->to, HF__LEVEL_FINE, NULL, "%s: %" PRId64, counts[i].what, number);
    }
    if (hf__sqlite_ask(r->s,
                       "SELECT count(*) FROM holdfast_lock WHERE waiting <>"
                       " (SELECT count(*) FROM holdfast_entry WHERE lock = id AND place = 1)",
                       &number, &err) != 0)
        say_error(r, NULL, &err);
    else if (number > 0)
        hf__say(&r->to, HF__LEVEL_PROBLEM, "C5",
                "%" PRId64 " locks have miscounted their queue: rows were changed by hand", number);
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static void report_latency(const struct report *r)
{
    const struct hf_env *env = r->s->base.host->env;
    int64_t took_ns[LATENCY_ROUNDS];
    hf_error err;

    for (int i = 0; i < LATENCY_ROUNDS; i++) {
        int64_t from_ns = hf__now_ns(env);
        if (hf__sqlite_begin(r->s, &err) != 0 || hf__sqlite_commit(r->s, &err) != 0) {
            say_error(r, NULL, &err);
            return;
        }
        took_ns[i] = hf__now_ns(env) - from_ns;
    }
    qsort(took_ns, LATENCY_ROUNDS, sizeof took_ns[0], compare);
    int64_t median_us = took_ns[LATENCY_ROUNDS / 2] / 1000;
    hf__say(&r->to, median_us > 20000 ? HF__LEVEL_WARNING : HF__LEVEL_FINE, NULL,
            "an empty transaction takes %" PRId64 " us (median)", median_us);
}

static void report_clock_and_push(const struct report *r)
{
    size_t stale = hf__sqlite_stale_sockets(r->s, false);
    char shown[160];

    if (r->s->boot[0] == '\0')
        hf__say(&r->to, HF__LEVEL_WARNING, "C3",
                "the kernel does not tell its boot (no /proc, or a container in its place): "
                "leases of an earlier boot last once more");
    else
        hf__say(&r->to, HF__LEVEL_FINE, "C3", "leases count on CLOCK_BOOTTIME of boot %s",
                r->s->boot);
    hf__say(&r->to, HF__LEVEL_FINE, "C4",
            "generations are kept per lock and never below the wall clock");
    if (stale > 0)
        hf__say(&r->to, HF__LEVEL_NOTE, "C12",
                "%zu sockets of clients that died; `holdfast gc` removes them", stale);
    if (hf__sqlite_wake_barred(r->s))
        hf__say(&r->to, HF__LEVEL_WARNING, "C12",
                "'%s.wake' is not a directory of ours alone (%04o), where waiters are called: they "
                "ask by themselves, and wait longer; remove it",
                hf__printable(r->s->path, strlen(r->s->path), shown, sizeof shown),
                (unsigned)r->s->rights.directory);
    else if (r->s->wake.asked && r->s->wake.in < 0)
        hf__say(&r->to, HF__LEVEL_WARNING, "C12",
                "no socket could be made beside the database: waiters ask by themselves");
    int writers = hf__writers_count(&r->s->writers);
    if (writers < 0)
        hf__say(&r->to, HF__LEVEL_WARNING, "C5",
                "no file for the line of writers beside the database: with hundreds of processes "
                "some would not get their turn in time");
    else
        hf__say(&r->to, HF__LEVEL_FINE, "C5", "in line to write: %d", writers);
    hf__say(&r->to, HF__LEVEL_FINE, NULL, "C1 to C13 hold for the processes of this machine");
}

int hf__sqlite_diagnose(struct hf__store *store, hf_finding_callback *found, void *arg,
                        int64_t deadline_ns, hf_error *err)
{
    struct report r = {.s = (struct hf__sqlite *)store,
                       .to = {.found = found, .arg = arg, .env = store->host->env}};
    int code = hf__sqlite_enter(r.s, HF__SQLITE_RANK_ASKS, deadline_ns, err);

    if (code != 0)
        return code;
    code = hf__sqlite_still_ours(r.s, err);
    if (code == 0) {
        hf__say(&r.to, HF__LEVEL_FINE, NULL, "SQLite %s", sqlite3_libversion());
        report_files(&r);
        report_setting(&r, "PRAGMA journal_mode", "wal", "journal mode");
        report_setting(&r, "PRAGMA quick_check(1)", "ok", "integrity");
        report_rows(&r);
        report_latency(&r);
        report_clock_and_push(&r);
    }
    hf__sqlite_leave(r.s);
    return code;
}
