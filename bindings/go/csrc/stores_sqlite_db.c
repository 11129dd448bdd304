/* One connection: its turn, its statements, its transactions, and what SQLite's results mean.
 *
 * Every operation is BEGIN IMMEDIATE ... COMMIT: the write lock is taken before the first row is
 * read, so that what was read is still true when it is written. With synchronous=NORMAL a commit is
 * a write to the WAL without fsync: a power cut may lose the last ones, but then the leases in them
 * are lost with their holders. A grant that never expires outlives its holder, so a transaction
 * that touches one ends with an fsync of the WAL. (PRAGMA synchronous cannot be changed inside a
 * transaction, and only inside it do we know; the WAL file's own xSync does the same as FULL
 * would.) */
#include <errno.h>
#include <time.h>

#include "base_backoff.h"
#include "stores_sqlite_sqlite.h"

#include "base_banned.h"

#define STAYS 200 /* commits after which a client is there to stay */

static const char *const statements[] = {
#define X(id, sql) sql,
    HF__SQLITE_STATEMENTS(X)
#undef X
};

struct hf__moment hf__sqlite_moment(struct hf__sqlite *s, int64_t *ret_ns)
{
    const struct hf_env *env = s->base.host->env;
    int64_t now_ns = hf__now_ns(env);

    if (ret_ns != NULL)
        *ret_ns = now_ns;
    return (struct hf__moment){.now_ms = now_ns / HF__NS_PER_MS - s->offset_ms,
                               .stamp_us = env->wall_us(env->ctx)};
}

/* What went wrong ---------------------------------------------------------- */

struct meaning {
    int code;
    const char *text;
};

/* The code decides what the core does (HF_UNAVAILABLE is tried again, HF_DENIED is not), the text
 * what a person does. SQLite's own words say what it was doing ("unable to open database file"),
 * seldom what to do about it; errno tells more, where there is one. */
static struct meaning meaning_of(int result, int system_errno)
{
    switch (result & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return (struct meaning){HF_UNAVAILABLE,
                                "other processes kept the database busy; try again"};
    case SQLITE_FULL:
        return (struct meaning){HF_FULL, "the disk is full; make room and try again"};
    case SQLITE_CORRUPT:
        return (struct meaning){HF_CORRUPT,
                                "the database is damaged; stop its users and move the file away"};
    case SQLITE_NOTADB:
        return (struct meaning){HF_CORRUPT,
                                "this file is not an SQLite database; name another one"};
    case SQLITE_READONLY:
        return (struct meaning){HF_DENIED,
                                "the database cannot be written; check the rights of the "
                                "file, its directory and the file system"};
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return (struct meaning){HF_DENIED, "access refused; check the rights of the file"};
    case SQLITE_CANTOPEN:
        if (system_errno == EMFILE || system_errno == ENFILE)
            return (struct meaning){HF_UNAVAILABLE,
                                    "too many files are open; raise the limit (ulimit -n)"};
        if (system_errno == ENOMEM)
            return (struct meaning){HF_NO_MEMORY, "out of memory"};
        return (struct meaning){
            system_errno == EACCES || system_errno == EPERM ? HF_DENIED : HF_UNAVAILABLE,
            "the database cannot be opened; check that its directory exists and "
            "can be written"};
    case SQLITE_NOMEM:
        return (struct meaning){HF_NO_MEMORY, "out of memory"};
    case SQLITE_IOERR:
        if (system_errno == ENOSPC || system_errno == EDQUOT)
            return (struct meaning){HF_FULL, "the disk is full; make room and try again"};
        if (system_errno == EFBIG)
            return (struct meaning){HF_FULL, "the size of files is limited (ulimit -f); raise it"};
        if (system_errno == ENOMEM || result == SQLITE_IOERR_NOMEM)
            return (struct meaning){HF_NO_MEMORY, "out of memory"};
        return (struct meaning){HF_UNAVAILABLE, "the file system failed; see the system's log"};
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
        return (struct meaning){HF_CORRUPT, "a row contradicts another; see `holdfast doctor`"};
    default:
        return (struct meaning){HF_UNAVAILABLE, sqlite3_errstr(result)};
    }
}

int hf__sqlite_fail(struct hf__sqlite *s, int result, const char *doing, hf_error *err)
{
    int system_errno = s->db != NULL ? sqlite3_system_errno(s->db) : 0;
    int extended = s->db != NULL ? sqlite3_extended_errcode(s->db) : result;
    struct meaning m = meaning_of(result, system_errno);

    s->was_busy = (result & 0xff) == SQLITE_BUSY;
    hf__fail(err, m.code, "sqlite: %s: %s", doing, m.text);
    hf__set_store_code(err, extended != SQLITE_OK ? extended : result);
    return m.code;
}

/* Statements --------------------------------------------------------------- */

int hf__sqlite_statement(struct hf__sqlite *s, enum hf__sqlite_statement which,
                         sqlite3_stmt **ret_statement, hf_error *err)
{
    if (s->statements[which] == NULL) {
        int result = sqlite3_prepare_v3(s->db, statements[which], -1, SQLITE_PREPARE_PERSISTENT,
                                        &s->statements[which], NULL);
        if (result != SQLITE_OK)
            return hf__sqlite_fail(s, result, "prepare", err);
    }
    *ret_statement = s->statements[which];
    return 0;
}

void hf__sqlite_done(sqlite3_stmt *statement)
{
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
}

int hf__sqlite_run(struct hf__sqlite *s, sqlite3_stmt *statement, const char *doing, hf_error *err)
{
    int result = sqlite3_step(statement), code = 0;

    if (result != SQLITE_DONE && result != SQLITE_ROW)
        code = hf__sqlite_fail(s, result, doing, err);
    hf__sqlite_done(statement);
    return code;
}

int hf__sqlite_exec(struct hf__sqlite *s, const char *sql, const char *doing, hf_error *err)
{
    int result = sqlite3_exec(s->db, sql, NULL, NULL, NULL);

    return result == SQLITE_OK ? 0 : hf__sqlite_fail(s, result, doing, err);
}

int hf__sqlite_ask(struct hf__sqlite *s, const char *sql, int64_t *ret_value, hf_error *err)
{
    sqlite3_stmt *statement = NULL;
    int code = 0, result = sqlite3_prepare_v2(s->db, sql, -1, &statement, NULL);

    if (result == SQLITE_OK)
        result = sqlite3_step(statement);
    if (result == SQLITE_ROW)
        *ret_value = sqlite3_column_int64(statement, 0);
    else
        code = hf__sqlite_fail(s, result == SQLITE_DONE ? SQLITE_CORRUPT : result, "read", err);
    sqlite3_finalize(statement);
    return code;
}

/* Waiting inside SQLite ---------------------------------------------------- */

/* Waiting is counted by what was slept, not by the host's clock alone, which a test may have
 * stopped. */
bool hf__sqlite_pause(struct hf__sqlite *s, int tries)
{
    int64_t most_us = tries < 4 ? 50 : tries < 16 ? 250 : 2000;
    int64_t ns = (int64_t)(1 + hf__jitter(&s->jitter, (uint64_t)most_us)) * 1000;
    struct timespec span = {.tv_nsec = ns};

    if (s->patience_ns <= 0 || hf__now_ns(s->base.host->env) >= s->deadline_ns)
        return false;
    s->patience_ns -= ns + 50000; /* what the kernel's timer adds */
    nanosleep(&span, NULL);
    return true;
}

/* Transactions ------------------------------------------------------------- */

/* Whoever finds the database busy waits outside SQLite, in line with the other processes. SQLite's
 * own waiting is turned off (busy_tries = 0): its lock has no queue, and with a thousand processes
 * the tries were all that the machine did. What keeps or ends a grant tries before it gets in
 * line. */
static int take_write_lock(struct hf__sqlite *s, sqlite3_stmt *begin, hf_error *err)
{
    bool may_try = s->rank == HF__SQLITE_RANK_KEEPS || !hf__writers_busy(&s->writers);
    uint32_t commits = hf__writers_commits(&s->writers);
    int code, busy_tries = s->busy_tries;

    for (;; may_try = true) {
        s->was_busy = true;
        s->busy_tries = 0;
        code = may_try ? hf__sqlite_run(s, begin, "begin", err) : HF_UNAVAILABLE;
        s->busy_tries = busy_tries;
        if (code == 0 || !s->was_busy)
            return code;
        if (!hf__sqlite_wait(s)) {
            hf__writers_give_up(&s->writers);
            if (hf__writers_commits(&s->writers) != commits)
                atomic_fetch_add(&s->base.turns, 1);
            return may_try ? code : hf__sqlite_fail(s, SQLITE_BUSY, "begin", err);
        }
    }
}

int hf__sqlite_begin(struct hf__sqlite *s, hf_error *err)
{
    sqlite3_stmt *begin = NULL;
    int code = hf__sqlite_rollback(s, err); /* if that failed after the last operation */

    if (code == 0)
        code = hf__sqlite_statement(s, HF__SQLITE_STATEMENT_BEGIN, &begin, err);
    if (code == 0)
        code = take_write_lock(s, begin, err);
    if (code != 0)
        return code;
    s->durable = false;
    code = hf__sqlite_still_ours(s, err);
    if (code != 0)
        hf__sqlite_rollback(s, NULL);
    return code;
}

int hf__sqlite_begin_at_once(struct hf__sqlite *s)
{
    sqlite3_stmt *begin = NULL;
    int busy_tries = s->busy_tries;
    int code = hf__writers_busy(&s->writers)
                   ? HF_UNAVAILABLE
                   : hf__sqlite_statement(s, HF__SQLITE_STATEMENT_BEGIN, &begin, NULL);

    s->busy_tries = 0;
    if (code == 0)
        code = hf__sqlite_run(s, begin, "begin", NULL);
    s->busy_tries = busy_tries;
    s->durable = false;
    return code;
}

/* A second try, because an open transaction would keep everybody else out. */
int hf__sqlite_rollback(struct hf__sqlite *s, hf_error *err)
{
    sqlite3_stmt *rollback = NULL;
    int code = 0;

    s->call_count = 0;
    if (sqlite3_get_autocommit(s->db))
        return 0;
    for (int tries = 0; tries < 2 && !sqlite3_get_autocommit(s->db); tries++) {
        code = hf__sqlite_statement(s, HF__SQLITE_STATEMENT_ROLLBACK, &rollback, err);
        if (code == 0)
            code = hf__sqlite_run(s, rollback, "roll back", err);
    }
    hf__writers_next(&s->writers);
    return sqlite3_get_autocommit(s->db) ? 0 : code;
}

static int sync_wal(struct hf__sqlite *s)
{
    sqlite3_file *wal = NULL;

    if (sqlite3_file_control(s->db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &wal) != SQLITE_OK ||
        wal == NULL || wal->pMethods == NULL)
        return SQLITE_IOERR_FSYNC;
    return wal->pMethods->xSync(wal, SQLITE_SYNC_NORMAL);
}

/* A failed write of the WAL for want of room was not applied; of any other failure we cannot
 * tell. */
static int fail_commit(struct hf__sqlite *s, int result, hf_error *err)
{
    int code = hf__sqlite_fail(s, result, "commit", err);

    if ((result & 0xff) != SQLITE_IOERR)
        return code;
    hf__fail(err, HF_UNKNOWN, "sqlite: commit: the file system failed; see the system's log");
    hf__set_store_code(err, result);
    return HF_UNKNOWN;
}

/* The next writer and those who were let in are woken before the fsync, which takes as long as many
 * transactions. They may: what is committed is seen by every process, and only a power cut, which
 * ends them all, can undo it. */
int hf__sqlite_commit(struct hf__sqlite *s, hf_error *err)
{
    sqlite3_stmt *commit = NULL;
    int code = hf__sqlite_statement(s, HF__SQLITE_STATEMENT_COMMIT, &commit, err), result;

    if (code != 0)
        goto undo;
    result = sqlite3_step(commit);
    sqlite3_reset(commit);
    if (result != SQLITE_DONE) {
        code = fail_commit(s, sqlite3_extended_errcode(s->db), err);
        goto undo;
    }
    atomic_fetch_add(&s->base.turns, 1);
    hf__writers_committed(&s->writers);
    hf__sqlite_tell(s);
    if (s->commits < STAYS &&
        ++s->commits == STAYS) /* a checkpoint is two fsyncs: make them rarer */
        sqlite3_wal_autocheckpoint(s->db, HF__SQLITE_WAL_LONG);
    result = s->durable ? sync_wal(s) : SQLITE_OK;
    return result == SQLITE_OK ? 0 : fail_commit(s, result, err);
undo:
    hf__sqlite_rollback(s, NULL);
    return code;
}

bool hf__sqlite_make_room(struct hf__sqlite *s)
{
    return sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_RESTART, NULL, NULL) ==
           SQLITE_OK;
}
