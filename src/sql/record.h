/* A doorman record in rows: how it is read, changed by the doorman, written back and shown.
 *
 * For stores whose tables are holdfast_lock, holdfast_holder, holdfast_waiter and holdfast_retired.
 * The store locks the lock's row, reads the others into a record, lets the doorman decide, and
 * writes what changed, all in one transaction; the statements are the store's own. */
#ifndef HF_SQL_RECORD_H
#define HF_SQL_RECORD_H

#include "net/listener.h"
#include "stores/store.h"

#define HF__SQL_WAKE HF__LISTENER_ADDRESS /* bytes: where a waiter's client can be called */

struct hf__sql_operation {
    enum hf__operation_kind kind;
    const struct hf__bid *bid;  /* RENEW by routines: NULL */
    int64_t retire_ms;          /* WITHDRAW, RELEASE */
    uint64_t generation;        /* RENEW by plain statements */
    bool now;                   /* BREAK */
    struct hf__renewal **items; /* RENEW: in the order of their names */
    size_t count;
    const char *wake; /* ATTEMPT: where its client can be called; NULL: nowhere */
    bool silent; /* the server cannot call anybody now: those who are let in ask by themselves */
};

/* Answers ------------------------------------------------------------------ */

/* The cells of an answer, as text; NULL is null. */
enum {
    HF__SQL_VERDICT,
    HF__SQL_GENERATION,
    HF__SQL_LEASE,
    HF__SQL_CLAIMED,
    HF__SQL_ASK_AGAIN,
    HF__SQL_PLACE,
    HF__SQL_ANSWER_CELLS
};

/* Keeps sent_ns. False: this is no answer (doorman/sound.h), the routines are of another version. */
bool hf__sql_read_answer(const char *const cells[HF__SQL_ANSWER_CELLS],
                         struct hf__answer *ret_answer);

int64_t hf__sql_integer(const char *cell, int64_t null);
bool hf__sql_flag(const char *cell); /* 1 or t */

/* Reading ------------------------------------------------------------------ */

/* The cells of an entry; instants are milliseconds since 1970. */
enum {
    HF__SQL_SEQ,
    HF__SQL_TICKET, /* hex, with or without \x before it */
    HF__SQL_KIND,   /* enum hf__place */
    HF__SQL_SHARED,
    HF__SQL_ROOM,
    HF__SQL_ENTRY_GENERATION,
    HF__SQL_TTL,
    HF__SQL_DELAY,
    HF__SQL_RETIRE,
    HF__SQL_SINCE,
    HF__SQL_UNTIL, /* null: never */
    HF__SQL_ENTRY_LEASE,
    HF__SQL_ENTRY_CLAIMED,
    HF__SQL_WAKE_AT,
    HF__SQL_ENTRY_CELLS
};

struct hf__sql_row {
    struct hf__entry was;
    char wake[HF__SQL_WAKE]; /* "": nowhere */
};

/* False: it makes no sense. The ticket is not 16 bytes long, or a number is none of ours
 * (doorman/sound.h). */
bool hf__sql_read_row(const char *const cells[HF__SQL_ENTRY_CELLS], struct hf__sql_row *ret_row);

struct hf__sql_record {
    struct hf__record record;
    struct hf__sql_row *rows; /* an entry that was loaded points to its row by `who` */
    struct hf__moment at;
};

/* Room for `count` rows and what the doorman adds. HF_NO_MEMORY. */
int hf__sql_record_init(struct hf__sql_record *r, size_t count, hf_error *err);
bool hf__sql_record_add(struct hf__sql_record *r, const char *const cells[HF__SQL_ENTRY_CELLS]);

/* Writing ------------------------------------------------------------------ */

/* What it takes to apply an operation; from `add` on one statement each. `from` and e->place:
 * HF__PLACE_RETIRED, HF__PLACE_WAITING, else a holder. set_wake and call are NULL where nobody is called. */
struct hf__sql_writer {
    int (*load)(void *ctx);          /* begins, locks the lock's row, fills in the record */
    int (*end)(void *ctx, int code); /* commits, or rolls back if there is a code already */
    int (*add)(void *ctx, const struct hf__entry *e);         /* a new waiter or holder */
    int (*set)(void *ctx, const struct hf__entry *e);         /* its until, lease, place, claimed */
    int (*move_inside)(void *ctx, const struct hf__entry *e); /* a waiter becomes a holder */
    int (*drop)(void *ctx, const struct hf__entry *e, enum hf__place from);
    int (*set_retired)(void *ctx, const struct hf__entry *e); /* inserts it or changes it */
    int (*set_wake)(void *ctx, const struct hf__entry *e);    /* a waiter's: the operation's */
    int (*call)(void *ctx, const char *wake, const struct hf__entry *e, uint64_t generation);
    int (*set_lock)(void *ctx, bool let_in); /* the lock's row, at last */
};

/* Applies the operation in one transaction: loads the record, lets the doorman decide, writes what
 * it has marked, and calls those who were let in and do not learn of it from the answer, and
 * whoever was broken. Clears the record. */
int hf__sql_apply(struct hf__sql_record *r, const struct hf__sql_operation *op,
                  const struct hf__sql_writer *writer, void *ctx, struct hf__answer *ret_answer,
                  hf_error *err);

/* Showing ------------------------------------------------------------------ */

/* Shows an entry as the doorman would leave it at `now_ms`, if it is asked for. */
int hf__sql_show(const struct hf__search *search, struct hf__entry *e, int64_t now_ms,
                 const char *name, size_t name_len, struct hf__who *who);

#endif
