/* hold=session: a row lock of the server that lives as long as a connection. */
#ifndef HF_STORES_MYSQL_HOLD_H
#define HF_STORES_MYSQL_HOLD_H

#include "stores/mysql/mysql.h"

extern const struct hf__store_type hf_store_type_v1, hf__my_hold_type;

int hf__my_hold_init(struct hf__my *s, hf_error *err);

/* hold_begin.c: makes the connection ready, begins the transaction, and writes what is to be asked;
 * the library does not copy it. */
struct hf__my_hold_texts {
    struct hf__my_text to_door, to_row, from_door;
};
int hf__my_hold_begin(struct hf__my *s, struct hf__my_conn *c, const struct hf__bid *bid,
                      int64_t deadline_ns, struct hf__my_hold_texts *ret_texts, hf_error *err);
void hf__my_hold_texts_clear(struct hf__my_hold_texts *t);

/* Where a bid stands: what it has asked for last. */
enum hf__my_step { HF__MY_AT_THE_DOOR, HF__MY_AT_THE_ROW, HF__MY_LEAVES_THE_DOOR, HF__MY_HAS_IT };

struct hf__my_held {
    struct hf__held base;
    struct hf__my_conn *c;       /* NULL: hung up */
    struct hf__my_session id;    /* how the server calls it */
    char ticket[HF_TICKET_SIZE]; /* by which the process list shows it while it waits */
    enum hf__my_step step;
    bool asked;   /* a statement is under way */
    bool patient; /* it waits, at the door and for the row */
    bool ended;   /* its wait was cancelled: no further step */
    struct hf__my_hold_texts texts;
};

/* hold_cancel.c: see struct hf__hold_type. */
bool hf__my_hold_cancel(void *owner, struct hf__held *base, void *other, int64_t deadline_ns);
enum hf__held_gone hf__my_hold_kill(void *owner, const struct hf__held *base, void *other,
                                    int64_t deadline_ns);

/* hold_look.c */
int hf__my_hold_inspect(struct hf__store *store, const struct hf__search *search,
                        int64_t deadline_ns, hf_error *err);

#endif
