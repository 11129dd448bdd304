/* Locks for people, one a line: what `ls` and `top` print. */
#ifndef CLI_LOCKS_TABLE_H
#define CLI_LOCKS_TABLE_H

#include "entry.h"
#include "table.h"

struct locks_table {
    struct cli_table table; /* for cli_table_print(), which frees it */
    bool with_waiters;
};

/* Without waiters, because nobody asked the store for them, that column says "-". False after a
 * sentence: out of memory. */
bool locks_table_init(struct locks_table *ret_table, bool with_waiters);

void locks_table_add(struct locks_table *table, const struct cli_span *lock);

#endif
