/* hold=session: a row lock of the server that lives as long as a connection. */
#ifndef HF_STORES_MYSQL_SESSION_SESSION_H
#define HF_STORES_MYSQL_SESSION_SESSION_H

#include "stores/mysql/mysql.h"

extern const struct hf__store_type hf__my_session_type;
extern const char hf__my_session_settings_sql[], hf__my_register_sql[], hf__my_row_sql[],
    hf__my_token_sql[], hf__my_waiters_sql[], hf__my_holders_sql[]; /* statements.sql */

int hf__my_session_init(struct hf__my *s, hf_error *err);

/* begin.c: makes the connection ready, begins the transaction, and writes what is to be asked;
 * the library does not copy it. */
struct hf__my_lock_texts {
    struct hf__my_text to_door, to_row, from_door;
};
int hf__my_session_begin(struct hf__my *s, struct hf__my_conn *c, const struct hf__bid *bid,
                         int64_t deadline_ns, struct hf__my_lock_texts *ret_texts, hf_error *err);
void hf__my_lock_texts_clear(struct hf__my_lock_texts *t);

/* Where a bid stands: what it has asked for last. */
enum hf__my_step {
    HF__MY_STEP_AT_THE_DOOR,
    HF__MY_STEP_AT_THE_ROW,
    HF__MY_STEP_LEAVES_THE_DOOR,
    HF__MY_STEP_HAS_IT
};

struct hf__my_session_lock {
    struct hf__session_lock base;
    struct hf__my_conn *c;       /* NULL: hung up */
    struct hf__my_process id;    /* how the server calls it */
    char ticket[HF_TICKET_SIZE]; /* by which the process list shows it while it waits */
    enum hf__my_step step;
    bool asked;   /* a statement is under way */
    bool patient; /* it waits, at the door and for the row */
    bool ended;   /* its wait was cancelled: no further step */
    struct hf__my_lock_texts texts;
};

/* cancel.c: see struct hf__session_type. */
bool hf__my_session_cancel(void *owner, struct hf__session_lock *base, void *other,
                           int64_t deadline_ns);
enum hf__session_gone hf__my_session_kill(void *owner, const struct hf__session_lock *base,
                                          void *other, int64_t deadline_ns);

/* inspect.c */
int hf__my_session_inspect(struct hf__store *store, const struct hf__search *search,
                           int64_t deadline_ns, hf_error *err);

#endif
