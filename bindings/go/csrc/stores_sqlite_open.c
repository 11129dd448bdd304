/* Opening: refuse what is unsafe, connect, make or check the schema, void what another boot left.
 *
 * Made for a command that opens, takes one lock and closes: nothing is checkpointed at close and
 * the WAL stays, so that neither costs an fsync; pages are small and checkpoints early, so that the
 * WAL which the first connection has to read through is short. (A client that has made many commits
 * is there to stay and checkpoints less often: see hf__sqlite_commit.) A database that is not ours
 * is never changed. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "stores_builtin.h"
#include "stores_sqlite_sqlite.h"

#include "base_banned.h"

#define DATABASE_PAGE 1024

#define LIBRARY_LEAST 3040000 /* as meson.build asks of the header: nothing older was tested */

#define TEXT_OF(x)  #x
#define VALUE_OF(x) TEXT_OF(x)

const struct hf__option hf__sqlite_options[] = {
    {"force", HF__OPTION_TEXT, NULL, 0, 0,
     "'network': use the file although it is on a network file system; no other machine may use "
     "it"},
    {"group", HF__OPTION_TEXT, NULL, 0, 0,
     "share the file with the members of this group (directory 2770, file 0660) instead of having "
     "it "
     "for one user"},
    {NULL, HF__OPTION_TEXT, NULL, 0, 0, NULL},
};

/* A package depends on some SQLite, and hardly ever on the one that the build has seen. */
static int check_library(hf_error *err)
{
    int number = sqlite3_libversion_number();

    if (number >= LIBRARY_LEAST)
        return 0;
    return hf__fail(err, HF_NO_STORE,
                    "the library SQLite is of version %d.%d.%d: install 3.40 or newer",
                    number / 1000000, number / 1000 % 1000, number % 1000);
}

static int on_busy(void *ctx, int tries)
{
    struct hf__sqlite *s = ctx;

    return tries < s->busy_tries && hf__sqlite_pause(s, tries);
}

/* A file that somebody else may have written is not trusted: no triggers, no views, no functions in
 * its schema, and no damage that would be found only later. */
static int configure(struct hf__sqlite *s, hf_error *err)
{
    sqlite3_stmt *rollback;
    int on = 1;

    sqlite3_extended_result_codes(s->db, 1);
    sqlite3_busy_handler(s->db, on_busy, s);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    sqlite3_file_control(s->db, "main", SQLITE_FCNTL_PERSIST_WAL, &on);
    sqlite3_wal_autocheckpoint(s->db, HF__SQLITE_WAL_SHORT);
    int code = hf__sqlite_exec(s, "PRAGMA synchronous = NORMAL; PRAGMA cell_size_check = ON;",
                               "configure", err);
    /* It is needed when there is no memory to prepare it with; a transaction must never stay
     * open. */
    return code != 0 ? code
                     : hf__sqlite_statement(s, HF__SQLITE_STATEMENT_ROLLBACK, &rollback, err);
}

/* The file is synced with its directory once, so that a power cut does not lose it as a whole. */
static void sync_directory(const struct hf__sqlite *s)
{
    char path[4200];
    int fd;

    snprintf(path, sizeof path, "%s", s->path);
    char *slash = strrchr(path, '/');
    slash[slash == path] = '\0';
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    fsync(fd);
    close(fd);
}

static int note_creation(struct hf__sqlite *s, hf_error *err)
{
    sqlite3_stmt *q = NULL;
    const struct hf_env *env = s->base.host->env;
    int result =
        sqlite3_prepare_v2(s->db, "INSERT INTO holdfast_meta VALUES (1, ?1, ?2)", -1, &q, NULL);

    if (result == SQLITE_OK) {
        sqlite3_bind_text(q, 1, s->boot, -1, SQLITE_STATIC);
        sqlite3_bind_int64(q, 2, (int64_t)(env->wall_us(env->ctx) / 1000000));
        result = sqlite3_step(q);
    }
    sqlite3_finalize(q);
    return result == SQLITE_DONE ? 0 : hf__sqlite_fail(s, result, "create the tables", err);
}

/* Only in a database without any table: whoever came second finds the tables of the first. */
static int fill_empty(struct hf__sqlite *s, hf_error *err)
{
    int64_t objects = 0;
    int code = hf__sqlite_ask(s, "SELECT count(*) FROM sqlite_schema", &objects, err);

    if (code != 0 || objects > 0)
        return code;
    code = hf__sqlite_exec(s, hf__sqlite_schema, "create the tables", err);
    if (code == 0)
        code = hf__sqlite_exec(
            s,
            "PRAGMA application_id = " VALUE_OF(
                HF__SQLITE_APPLICATION) ";"
                                        "PRAGMA user_version = " VALUE_OF(HF__SQLITE_VERSION) ";",
            "create the tables", err);
    return code != 0 ? code : note_creation(s, err);
}

static int create(struct hf__sqlite *s, hf_error *err)
{
    int code = hf__sqlite_exec(s, "PRAGMA page_size = " VALUE_OF(DATABASE_PAGE), "configure", err);

    if (code == 0)
        code = hf__sqlite_begin(s, err);
    if (code != 0)
        return code;
    code = fill_empty(s, err);
    if (code == 0)
        code = hf__sqlite_commit(s, err);
    else
        hf__sqlite_rollback(s, NULL);
    if (code == 0)
        sync_directory(s);
    return code;
}

struct kind {
    int64_t application, version, objects;
};

/* In one transaction, as another process may be filling it at this moment: what is read must belong
 * together. */
static int read_kind(struct hf__sqlite *s, struct kind *kind, hf_error *err)
{
    int code = hf__sqlite_exec(s, "BEGIN", "read", err);

    if (code != 0)
        return code;
    code = hf__sqlite_ask(s, "PRAGMA application_id", &kind->application, err);
    if (code == 0)
        code = hf__sqlite_ask(s, "PRAGMA user_version", &kind->version, err);
    if (code == 0 && kind->application != HF__SQLITE_APPLICATION)
        code = hf__sqlite_ask(s, "SELECT count(*) FROM sqlite_schema", &kind->objects, err);
    int undone = hf__sqlite_rollback(s, code == 0 ? err : NULL);
    return code != 0 ? code : undone;
}

/* Ours, of a version we know. `ret_empty`: there is nothing in it yet. */
static int check_kind(struct hf__sqlite *s, bool *ret_empty, hf_error *err)
{
    struct kind kind = {0};
    int code = read_kind(s, &kind, err);

    *ret_empty = code == 0 && kind.application == 0 && kind.version == 0 && kind.objects == 0;
    if (code != 0 || *ret_empty)
        return code;
    if (kind.application != HF__SQLITE_APPLICATION)
        return hf__fail(err, HF_CORRUPT,
                        "sqlite: this is the database of another program; name another file");
    if (kind.version == HF__SQLITE_VERSION)
        return 0;
    return hf__fail(
        err, HF_CORRUPT,
        "sqlite: the database was made by a newer holdfast (schema %lld, this one knows "
        "%d); upgrade this program",
        (long long)kind.version, HF__SQLITE_VERSION);
}

/* The statement is needed by every operation, and cannot be prepared without the newest column. */
static bool is_of_before(struct hf__sqlite *s)
{
    sqlite3_stmt *line;

    return hf__sqlite_statement(s, HF__SQLITE_STATEMENT_LINE, &line, NULL) != 0 &&
           (sqlite3_errcode(s->db) & 0xff) == SQLITE_ERROR;
}

/* Adds what came later (schema.sql), with the locks in it held. The schema keeps its number, so that
 * programs of before can go on. Another process may have been faster. */
static int upgrade(struct hf__sqlite *s, hf_error *err)
{
    const char *later = strstr(hf__sqlite_schema, "ALTER TABLE");
    int code = hf__sqlite_begin(s, err);

    if (code != 0)
        return code;
    code = is_of_before(s) ? hf__sqlite_exec(s, later, "upgrade the tables", err) : 0;
    if (code == 0)
        return hf__sqlite_commit(s, err);
    hf__sqlite_rollback(s, NULL);
    return code;
}

/* The files are remembered by device and inode, the database before it is opened: if it is
 * exchanged between the two, the first operation finds another file there than the one remembered,
 * and refuses. The kind is checked once more after the tables were made, because another process,
 * of another version, may have been faster. */
static int connect_database(struct hf__sqlite *s, hf_error *err)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW;
    bool empty = false;
    struct stat st;

    if (lstat(s->path, &st) != 0)
        return hf__fail_errno(err, HF_UNAVAILABLE, "sqlite: the database file vanished");
    s->file.dev = st.st_dev;
    s->file.ino = st.st_ino;
    int result = sqlite3_open_v2(s->path, &s->db, flags, NULL);
    if (result != SQLITE_OK)
        return hf__sqlite_fail(s, result, "open", err);
    int code = configure(s, err);
    if (code == 0)
        code = check_kind(s, &empty, err);
    if (code == 0 && empty)
        code = create(s, err);
    if (code == 0 && empty)
        code = check_kind(s, &empty, err);
    if (code == 0)
        code = hf__sqlite_exec(s, "PRAGMA journal_mode = WAL", "switch to WAL", err);
    if (code == 0 && is_of_before(s))
        code = upgrade(s, err);
    if (code == 0)
        code = hf__sqlite_make_trail(s, err);
    if (code == 0)
        code = hf__sqlite_boot_adopt(s, err);
    if (code == 0 && lstat(s->wal_path, &st) == 0) { /* the first read has made it */
        s->wal.dev = st.st_dev;
        s->wal.ino = st.st_ino;
    }
    return code;
}

static int fill_in(struct hf__sqlite *s, const struct hf__url *url, hf_error *err)
{
    const char *force = hf__url_text(url, "force");
    const struct hf_env *env = s->base.host->env;

    if (url->host != NULL && url->host[0] != '\0')
        return hf__fail(err, HF_INVALID,
                        "sqlite: the URL names a host; write sqlite:/path/locks.db or "
                        "sqlite:///path/locks.db");
    if (force != NULL && strcmp(force, "network") != 0)
        return hf__fail(err, HF_INVALID, "sqlite: force=%s is not known; there is force=network",
                        force);
    s->allow_network = force != NULL;
    s->retain_ms = hf__url_number(url, "retain");
    s->history = hf__url_number(url, "history");
    if (env->random(env->ctx, &s->jitter, sizeof s->jitter) != 0)
        return hf__fail_errno(err, HF_SYSTEM, "sqlite: no random bits");
    s->jitter |= 1;
    int code = hf__rights_init(&s->rights, hf__url_text(url, "group"), err);
    if (code == 0)
        code = hf__sqlite_absolute(url->path, &s->path, err);
    return code;
}

/* Making the file, the change to WAL and the reading of a WAL that somebody left each need the
 * file for themselves for a moment. SQLite waits a little for that; then all is begun anew, in line
 * with the others. */
static int connect_as_this_process(struct hf__sqlite *s, hf_error *err)
{
    hf__sqlite_process_enter();
    int code = hf__sqlite_disinherit(err);
    if (code == 0) {
        s->busy_tries = 10;
        code = connect_database(s, err);
        while (code == HF_UNAVAILABLE && s->was_busy && hf__sqlite_wait(s)) {
            hf__sqlite_disconnect(s);
            code = connect_database(s, err);
        }
        s->busy_tries = INT_MAX;
        hf__writers_next(&s->writers);
    }
    if (code == 0)
        hf__sqlite_enlist(s);
    hf__sqlite_process_leave();
    return code;
}

int hf__sqlite_open(const struct hf__url *url, const struct hf__host *host,
                    struct hf__store **ret_store, hf_error *err)
{
    struct hf__sqlite *s = calloc(1, sizeof *s);
    char writers_path[4200];
    int code;

    if (s == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    code = check_library(err);
    if (code != 0) {
        free(s);
        return code;
    }
    s->base.type = &hf__sqlite_store_type;
    s->base.host = host;
    s->base.capabilities = s->base.type->capabilities;
    s->rank = HF__SQLITE_RANK_ASKS;
    s->tidy.last_id = -1;
    hf__sqlite_turn_init(s);
    hf__sqlite_wake_init(s);
    hf__sqlite_boot_read(s);
    s->patience_ns = host->op_timeout_ms * HF__NS_PER_MS;
    s->deadline_ns = hf__now_ns(host->env) + s->patience_ns;
    code = fill_in(s, url, err);
    if (code == 0)
        code = hf__sqlite_secure(s, err);
    if (code == 0 && asprintf(&s->wal_path, "%s-wal", s->path) < 0) {
        s->wal_path = NULL;
        code = hf__fail(err, HF_NO_MEMORY, NULL);
    }
    if (code == 0) {
        snprintf(writers_path, sizeof writers_path, "%s" HF__WRITERS_SUFFIX, s->path);
        hf__writers_open(&s->writers, writers_path, s->rights.file, s->jitter);
        code = connect_as_this_process(s, err);
    }
    if (code == 0 && hf__sqlite_wake_barred(s))
        s->base.capabilities &= ~(uint32_t)HF_CAN_PUSH;
    if (code != 0) {
        hf__sqlite_close(&s->base);
        return code;
    }
    *ret_store = &s->base;
    return 0;
}

void hf__sqlite_disconnect(struct hf__sqlite *s)
{
    for (size_t i = 0; i < HF__SQLITE_STATEMENT_COUNT; i++)
        sqlite3_finalize(s->statements[i]);
    memset(s->statements, 0, sizeof s->statements);
    sqlite3_close(s->db);
    s->db = NULL;
}

void hf__sqlite_close(struct hf__store *store)
{
    struct hf__sqlite *s = (struct hf__sqlite *)store;

    hf__sqlite_process_enter();
    hf__sqlite_delist(s);
    hf__sqlite_disconnect(s);
    hf__writers_close(&s->writers);
    hf__sqlite_process_leave();
    hf__sqlite_wake_clear(s);
    hf__sqlite_turn_clear(s);
    free(s->record.entries);
    free(s->rows);
    free(s->calls);
    free(s->path);
    free(s->wal_path);
    free(s);
}
