/* The SQLite store's inside: one connection, the statements it keeps, and the record it works on.
 *
 * Everything but the sockets' descriptors is guarded by `turn`: one thread of the process at a time
 * asks SQLite. Among processes those who want to write get in line (writers.h). */
#ifndef HF_STORES_SQLITE_SQLITE_H
#define HF_STORES_SQLITE_SQLITE_H

#include <pthread.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include "stores_sqlite_rights.h"
#include "stores_sqlite_writers.h"
#include "stores_store.h"

#define HF__SQLITE_APPLICATION 0x686f6c64
#define HF__SQLITE_VERSION     1
#define HF__SQLITE_WAKE_SIZE   16 /* bytes of a socket's name */
#define HF__SQLITE_TELL        1  /* holdfast_entry.flags */
#define HF__SQLITE_TOLD        2
#define HF__SQLITE_OPENED      4
#define HF__SQLITE_CACHED      8
#define HF__SQLITE_WAL_SHORT   300  /* pages in the WAL before a checkpoint, */
#define HF__SQLITE_WAL_LONG    2000 /* and for a client that stays */

extern const char hf__sqlite_schema[], hf__sqlite_history[];
extern const struct hf__option hf__sqlite_options[];

/* The statements that are prepared once per connection. ?1 is the lock's id unless it says
 * otherwise. */
#define HF__SQLITE_STATEMENTS(X)                                                                  \
    X(BEGIN, "BEGIN IMMEDIATE")                                                                   \
    X(COMMIT, "COMMIT")                                                                           \
    X(ROLLBACK, "ROLLBACK")                                                                       \
    X(FIND_LOCK, "SELECT id, generation, last_seq, waiting, retired, touched"                     \
                 " FROM holdfast_lock WHERE name = ?1")                                           \
    X(ADD_LOCK,                                                                                   \
      "INSERT INTO holdfast_lock (name, generation, last_seq, waiting, retired, touched)"         \
      " VALUES (?1, 0, 0, 0, 0, 0)")                                                              \
    X(SET_LOCK, "UPDATE holdfast_lock SET generation = ?2, last_seq = ?3, waiting = ?4,"          \
                " retired = ?5, touched = ?6 WHERE id = ?1")                                      \
    X(DROP_LOCK, "DELETE FROM holdfast_lock WHERE id = ?1")                                       \
    X(WALK, "SELECT id, name, touched FROM holdfast_lock WHERE id > ?1 ORDER BY id LIMIT ?2")     \
    X(LINE, "SELECT " HF__SQLITE_COLUMNS " FROM holdfast_entry WHERE lock = ?1 ORDER BY seq")     \
    X(OVERDUE, "SELECT " HF__SQLITE_COLUMNS " FROM holdfast_entry"                                \
               " INDEXED BY holdfast_waiting_until"                                               \
               " WHERE lock = ?1 AND place = 1 AND until <= ?2 AND seq > ?3")                     \
    X(BY_TICKET, "SELECT " HF__SQLITE_COLUMNS " FROM holdfast_entry"                              \
                 " INDEXED BY holdfast_waiting_ticket"                                            \
                 " WHERE lock = ?1 AND place = 1 AND ticket = ?2")                                \
    X(AHEAD, "SELECT count(*) FROM (SELECT 1 FROM holdfast_entry NOT INDEXED"                     \
             " WHERE lock = ?1 AND seq < ?2 AND place = 1 LIMIT ?3)")                             \
    X(ADD_ENTRY,                                                                                  \
      "INSERT INTO holdfast_entry (lock, seq, ticket, place, mode, room, generation, ttl,"        \
      " delay, retire, since, until, lease, claimed, wake, host, user, program, pid,"             \
      " note, flags) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15,"   \
      " ?16, ?17, ?18, ?19, ?20, ?21)")                                                           \
    X(SET_ENTRY, "UPDATE holdfast_entry SET place = ?3, generation = ?4, since = ?5, until = ?6," \
                 " lease = ?7, claimed = ?8, flags = ?9 WHERE lock = ?1 AND seq = ?2")            \
    X(SET_WAKE, "UPDATE holdfast_entry SET wake = ?3 WHERE lock = ?1 AND seq = ?2")               \
    X(DROP_ENTRY, "DELETE FROM holdfast_entry WHERE lock = ?1 AND seq = ?2")                      \
    X(FIND_RETIRED, "SELECT ticket, until, lease FROM holdfast_retired"                           \
                    " WHERE lock = ?1 AND ticket = ?2")                                           \
    X(ALL_RETIRED, "SELECT ticket, until, lease FROM holdfast_retired WHERE lock = ?1")           \
    X(ADD_RETIRED, "INSERT OR REPLACE INTO holdfast_retired (lock, ticket, until, lease)"         \
                   " VALUES (?1, ?2, ?3, ?4)")                                                    \
    X(DROP_RETIRED, "DELETE FROM holdfast_retired WHERE lock = ?1 AND ticket = ?2")               \
    X(FIND_VALUE, "SELECT generation, nth, doubt, bytes FROM holdfast_value WHERE name = ?1")     \
    X(SET_VALUE, "INSERT OR REPLACE INTO holdfast_value (name, generation, nth, doubt, bytes)"    \
                 " VALUES (?1, ?2, ?3, 0, ?4)")                                                   \
    X(DOUBT_VALUE, "INSERT INTO holdfast_value (name, generation, nth, doubt, bytes)"             \
                   " VALUES (?1, 0, 0, 1, x'') ON CONFLICT (name) DO UPDATE SET doubt = 1")       \
    X(DROP_VALUE, "DELETE FROM holdfast_value WHERE name = ?1 AND length(bytes) = 0")             \
    X(ADD_TRAIL,                                                                                  \
      "INSERT OR REPLACE INTO holdfast_history SELECT (?1 << 32) + ?8, ?2, ?3, mode, ticket, ?4," \
      " ?5, host, user, program, pid, note, ?6 FROM holdfast_entry WHERE lock = ?1 AND seq = ?7") \
    X(DROP_TRAIL, "DELETE FROM holdfast_history WHERE id >= ?1 << 32 AND id < (?1 + 1) << 32")    \
    X(FORGET_RETIRED, "DELETE FROM holdfast_retired INDEXED BY holdfast_retired_until"            \
                      " WHERE lock = ?1 AND until <= ?2")

#define HF__SQLITE_COLUMNS                                                                  \
    "seq, ticket, place, mode, room, generation, ttl, delay, retire, since, until, lease, " \
    "claimed,"                                                                              \
    " wake, flags"

enum hf__sqlite_statement {
#define X(id, sql) HF__SQLITE_STATEMENT_##id,
    HF__SQLITE_STATEMENTS(X)
#undef X
        HF__SQLITE_STATEMENT_COUNT
};

/* One loaded entry as it is in the database. */
struct hf__sqlite_row {
    int64_t seq;
    struct hf__entry was;
    unsigned char wake[HF__SQLITE_WAKE_SIZE];
    bool can_wake;
};

/* Somebody to be told after the commit. */
struct hf__sqlite_call {
    unsigned char wake[HF__SQLITE_WAKE_SIZE];
    struct hf__ticket ticket;
    uint64_t generation;
};

struct hf__sqlite_lock {
    int64_t id; /* 0: there is no row yet */
    int64_t last_seq, waiting, retired, touched;
    uint64_t generation;
};

/* What keeps or ends a grant goes before what asks for one: else a crowd of bids could cost a
 * holder its lease. */
enum hf__sqlite_rank { HF__SQLITE_RANK_KEEPS, HF__SQLITE_RANK_ASKS, HF__SQLITE_RANKS };

struct hf__sqlite_waiter; /* a thread that waits for its turn */

struct hf__sqlite {
    struct hf__store base;
    struct hf__sqlite *next; /* see process.c */
    struct {
        pthread_mutex_t mutex;
        bool taken;
        struct hf__sqlite_waiter *next[HF__SQLITE_RANKS], **last[HF__SQLITE_RANKS];
    } turn;
    struct hf__writers writers;
    char *path, *wal_path; /* absolute */
    struct hf__rights rights;
    bool allow_network;
    int64_t retain_ms, history;
    struct {
        dev_t dev;
        ino_t ino;
    } file, wal; /* of the files that SQLite has open; wal.ino 0: not looked at yet */
    int64_t wal_seen_ns;

    sqlite3 *db;
    sqlite3_stmt *statements[HF__SQLITE_STATEMENT_COUNT];
    int64_t deadline_ns, patience_ns; /* of the running operation: see the busy handler */
    enum hf__sqlite_rank rank;        /* of the running operation */
    int busy_tries;                   /* how often SQLite may try by itself when it is busy */
    bool was_busy;                    /* why the last failure: another process is in the way */
    uint64_t jitter;                  /* see hf__jitter() */
    unsigned commits;                 /* until it is known to be there to stay */
    struct {
        bool due;        /* a name was added, or an idle one found */
        unsigned others; /* operations since it was */
        int64_t last_id; /* looked at; negative: none yet */
    } tidy;

    char boot[40];
    int64_t offset_ms; /* of this time namespace */

    /* The record of the running operation; the arrays are kept between operations. */
    struct hf__record record;
    struct hf__sqlite_row *rows;
    struct hf__sqlite_lock lock;
    bool in_doubt; /* the value, as it was loaded */
    bool durable;  /* the transaction touches a grant that never expires, or a value */
    struct hf__sqlite_call *calls;
    size_t call_count, call_capacity;

    struct {
        int dir, in, out; /* the directory, our socket, the one we send from; -1: not there */
        bool asked;
        unsigned backlog, unread; /* what our socket holds; read since it was last seen empty */
        unsigned char name[HF__SQLITE_WAKE_SIZE];
    } wake;
};

/* db.c: one connection ----------------------------------------------------- */

/* A cached statement, ready to be bound. Give it back with hf__sqlite_done(). */
int hf__sqlite_statement(struct hf__sqlite *s, enum hf__sqlite_statement which,
                         sqlite3_stmt **ret_statement, hf_error *err);
void hf__sqlite_done(sqlite3_stmt *statement);

/* Runs a statement that gives no rows, and gives it back. */
int hf__sqlite_run(struct hf__sqlite *s, sqlite3_stmt *statement, const char *doing, hf_error *err);

/* Runs SQL that is used once. */
int hf__sqlite_exec(struct hf__sqlite *s, const char *sql, const char *doing, hf_error *err);

/* The one number that `sql` asks for. */
int hf__sqlite_ask(struct hf__sqlite *s, const char *sql, int64_t *ret_value, hf_error *err);

/* What an SQLite result means; the text is "sqlite: <doing>: <what>; <what to do>". */
int hf__sqlite_fail(struct hf__sqlite *s, int result, const char *doing, hf_error *err);

/* One write transaction. `commit` makes it durable if s->durable is set, and tells s->calls. */
int hf__sqlite_begin(struct hf__sqlite *s, hf_error *err);
int hf__sqlite_begin_at_once(struct hf__sqlite *s); /* or not at all: waits for nobody */
int hf__sqlite_commit(struct hf__sqlite *s, hf_error *err);
int hf__sqlite_rollback(struct hf__sqlite *s, hf_error *err); /* 0: no transaction is open */

/* After HF_FULL: on a full disk the WAL cannot grow, but what is in it can often be moved into the
 * database, and then it is written from its beginning again. True: try once more, so that a lock can
 * at least be kept and released. */
bool hf__sqlite_make_room(struct hf__sqlite *s);

/* How SQLite's busy handler waits. False when the time is over. */
bool hf__sqlite_pause(struct hf__sqlite *s, int tries);

/* The present in the store's time; `ret_ns` (may be NULL) is the client's clock at that moment. */
struct hf__moment hf__sqlite_moment(struct hf__sqlite *s, int64_t *ret_ns);

/* turn.c: one thread at a time, one process at a time ----------------------- */
void hf__sqlite_turn_init(struct hf__sqlite *s);
void hf__sqlite_turn_clear(struct hf__sqlite *s);

/* The turn of this thread among those of the process, first come, first served within a rank, by
 * the deadline. HF_UNAVAILABLE. */
int hf__sqlite_enter(struct hf__sqlite *s, enum hf__sqlite_rank rank, int64_t deadline_ns,
                     hf_error *err);
void hf__sqlite_leave(struct hf__sqlite *s);

/* Outside SQLite, when it was busy: sleeps until it is worth trying again (writers.h). A fork can
 * happen meanwhile. False when the time is over. */
bool hf__sqlite_wait(struct hf__sqlite *s);

/* open.c: making and checking the database --------------------------------- */
int hf__sqlite_open(const struct hf__url *url, const struct hf__host *host,
                    struct hf__store **ret_store, hf_error *err);
void hf__sqlite_close(struct hf__store *store);

void hf__sqlite_disconnect(struct hf__sqlite *s); /* from the file; nothing else */

/* process.c: fork() -------------------------------------------------------- */

/* Around everything that calls SQLite; a fork waits in between. */
void hf__sqlite_process_enter(void);
void hf__sqlite_process_leave(void);

/* The stores that are open in this process. */
void hf__sqlite_enlist(struct hf__sqlite *s);
void hf__sqlite_delist(struct hf__sqlite *s);

/* Closes what this process has inherited by fork(). HF_FORKED: that cannot be done. */
int hf__sqlite_disinherit(hf_error *err);

/* files.c: what may be used ------------------------------------------------ */

/* An absolute path without a trailing slash, for the caller to free. */
int hf__sqlite_absolute(const char *path, char **ret_path, hf_error *err);

/* Creates the directory and an empty file if they are missing, and refuses what is unsafe. Then the
 * path is one without symbolic links. */
int hf__sqlite_secure(struct hf__sqlite *s, hf_error *err);

/* The name of a file system that is not safe for SQLite's locks, or NULL. */
const char *hf__sqlite_network_name(unsigned long magic);

/* Sets data_lost if the files are no longer those that SQLite has open. HF_UNAVAILABLE. */
int hf__sqlite_still_ours(struct hf__sqlite *s, hf_error *err);

/* boot.c ------------------------------------------------------------------- */
void hf__sqlite_boot_read(struct hf__sqlite *s);

/* Voids the leases of another boot, in a transaction of its own, once. */
int hf__sqlite_boot_adopt(struct hf__sqlite *s, hf_error *err);

/* record.c: the record in rows --------------------------------------------- */

struct hf__sqlite_window {
    const char *name;
    size_t name_len;
    const struct hf__ticket *ticket; /* whose operation it is; NULL: nobody's */
    size_t waiters;                  /* how many of the queue's head; SIZE_MAX: all */
    bool remembered;                 /* whether the tickets that were retired matter */
    struct hf__value *value;         /* to be filled in; NULL: it does not matter */
    int64_t now_ms;
};

/* Fills s->record and s->lock. */
int hf__sqlite_load(struct hf__sqlite *s, const struct hf__sqlite_window *window, hf_error *err);

/* Writes what the doorman has changed; op->bid is for an entry that is new, and names the lock. Adds to
 * s->calls. */
int hf__sqlite_save(struct hf__sqlite *s, const struct hf__operation *op, struct hf__moment at,
                    hf_error *err);

/* trail.c. The table, if this client writes one. */
int hf__sqlite_make_trail(struct hf__sqlite *s, hf_error *err);

/* What has become of the entry, whose row is still there or there already. Only with s->history. */
int hf__sqlite_note(struct hf__sqlite *s, const struct hf__operation *op, struct hf__moment at,
                    const struct hf__entry *entry, int64_t seq, hf_error *err);
void hf__sqlite_drop_trail(struct hf__sqlite *s);
int hf__sqlite_trail(struct hf__store *store, const struct hf__trail_search *search,
                     int64_t deadline_ns, hf_error *err);

/* value.c. What is not there is empty. */
int hf__sqlite_load_value(struct hf__sqlite *s, const char *name, size_t name_len,
                          struct hf__value *ret_value, hf_error *err);
int hf__sqlite_save_value(struct hf__sqlite *s, const struct hf__bid *bid,
                          const struct hf__value *value, hf_error *err);
int hf__sqlite_doubt_value(struct hf__sqlite *s, const struct hf__bid *bid, hf_error *err);
int hf__sqlite_drop_value(struct hf__sqlite *s, const struct hf__bid *bid, hf_error *err);

/* Reads the columns HF__SQLITE_COLUMNS into an entry. */
int hf__sqlite_read_entry(sqlite3_stmt *statement, struct hf__sqlite_row *ret_row, hf_error *err);

/* How many wait before the entry; SIZE_MAX if they are too many to be counted. */
int hf__sqlite_ahead(struct hf__sqlite *s, const struct hf__entry *entry, size_t *ret_count,
                     hf_error *err);

/* Somebody to be told after the commit: `generation` 0 means "ask". */
void hf__sqlite_call(struct hf__sqlite *s, const struct hf__entry *entry, uint64_t generation);

/* wake.c: sockets ---------------------------------------------------------- */
void hf__sqlite_wake_init(struct hf__sqlite *s);
void hf__sqlite_wake_clear(struct hf__sqlite *s);

/* Where the sockets should be is something that is not ours alone: nobody can be called. */
bool hf__sqlite_wake_barred(const struct hf__sqlite *s);
int hf__sqlite_wake_fd(struct hf__store *store);
void hf__sqlite_wake(struct hf__store *store, hf__wake_sink *sink, void *ctx);

/* Sends s->calls and empties the list. Never fails: a call that is lost costs time only. */
void hf__sqlite_tell(struct hf__sqlite *s);

/* Counts the sockets nobody listens to any more; `remove` also removes them. */
size_t hf__sqlite_stale_sockets(struct hf__sqlite *s, bool remove);

/* inspect.c, upkeep.c, diagnose.c ------------------------------------------ */
int hf__sqlite_inspect(struct hf__store *store, const struct hf__search *search,
                       int64_t deadline_ns, hf_error *err);
int hf__sqlite_upkeep(struct hf__store *store, enum hf__upkeep what, int64_t retain_ms,
                      int64_t deadline_ns, uint64_t *ret_count, hf_error *err);

/* After an operation for which s->tidy.due is set: removes a lock that has been idle for long, if
 * there is one among the next few. Cannot fail: it is a favour. */
void hf__sqlite_tidy(struct hf__sqlite *s);
int hf__sqlite_diagnose(struct hf__store *store, hf_finding_callback *found, void *arg,
                        int64_t deadline_ns, hf_error *err);

#endif
