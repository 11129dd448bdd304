/* What the server answers, as cells of text: the answers of the routines, and rows of
 * holdfast_holder and holdfast_waiter for people to look at. The statements are the store's own. */
#ifndef HF_SQL_ROWS_H
#define HF_SQL_ROWS_H

#include "stores/store.h"

/* NULL is null. */
int64_t hf__sql_integer(const char *cell, int64_t null);
bool hf__sql_flag(const char *cell); /* 1 or t */

/* The cells of an answer. */
enum {
    HF__SQL_ANSWER_VERDICT,
    HF__SQL_ANSWER_GENERATION,
    HF__SQL_ANSWER_LEASE,
    HF__SQL_ANSWER_CLAIMED,
    HF__SQL_ANSWER_ASK_AGAIN,
    HF__SQL_ANSWER_WANTED,
    HF__SQL_ANSWER_PLACE,
    HF__SQL_ANSWER_CELLS
};

/* Keeps sent_ns. Cells that are not there are NULL. False: this is no answer (doorman/sound.h), the routines are of another version. */
bool hf__sql_read_answer(const char *const cells[HF__SQL_ANSWER_CELLS],
                         struct hf__answer *ret_answer);

/* The cells of a value that was read: the verdict is that of an answer. */
enum {
    HF__SQL_VALUE_GENERATION = HF__SQL_ANSWER_VERDICT + 1,
    HF__SQL_VALUE_ORDER,
    HF__SQL_VALUE_DOUBT,
    HF__SQL_VALUE_BYTES, /* in hex */
    HF__SQL_VALUE_CELLS
};

/* False: it makes no sense. What is not there is empty. */
bool hf__sql_read_value(const char *const cells[HF__SQL_VALUE_CELLS], struct hf__value *ret_value);

/* The cells of an entry; instants are milliseconds since 1970. */
enum {
    HF__SQL_ENTRY_SEQ,    /* to sort by */
    HF__SQL_ENTRY_TICKET, /* hex */
    HF__SQL_ENTRY_KIND,   /* enum hf__place */
    HF__SQL_ENTRY_SHARED,
    HF__SQL_ENTRY_ROOM,
    HF__SQL_ENTRY_GENERATION,
    HF__SQL_ENTRY_TTL,
    HF__SQL_ENTRY_DELAY,
    HF__SQL_ENTRY_SINCE,
    HF__SQL_ENTRY_UNTIL, /* null: never */
    HF__SQL_ENTRY_LEASE,
    HF__SQL_ENTRY_CLAIMED,
    HF__SQL_ENTRY_CACHED, /* NULL: no */
    HF__SQL_ENTRY_CELLS
};

/* The names that are looked for, as bytes from `low` to below `high`. */
struct hf__sql_range {
    char low[HF_NAME_MAX], high[HF_NAME_MAX + 1];
    size_t low_len, high_len;
};

/* False: no name is that long. */
bool hf__sql_range(const struct hf__search *search, struct hf__sql_range *ret_range);

struct hf__sql_entry {
    const char *const *cells; /* HF__SQL_ENTRY_CELLS */
    const char *name;
    size_t name_len;
    struct hf__who who;
    int64_t now_ms; /* by the server's clock */
};

/* Shows it as the doorman would leave it now, if it is asked for. HF_CORRUPT: it makes no sense; the
 * ticket is none, or a number is none of ours (doorman/sound.h). `store` is for the message. */
int hf__sql_show(const char *store, struct hf__sql_entry *entry, const struct hf__search *search,
                 hf_error *err);

#endif
