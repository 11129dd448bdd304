/* See locks_table.h. The holder who has been inside longest stands for all. */
#include "locks_table.h"

#include "base/banned.h"

bool locks_table_init(struct locks_table *ret_table, bool with_waiters)
{
    static const char *const titles[] = {"NAME", "MODE",    "HELD BY", "FOR",
                                         "LEFT", "WAITING", "NOTE",    NULL};

    ret_table->with_waiters = with_waiters;
    return cli_table_init(&ret_table->table, titles);
}

static void add_holders(struct cli_table *table, const struct cli_span *lock)
{
    const hf_entry *first = hf_view_entry(lock->view, lock->first);
    size_t holders = lock->count - cli_span_count(lock, HF_PLACE_WAITING);

    if (holders == 0) {
        fputs("nobody", table->out);
        cli_table_next(table);
        cli_table_next(table);
        cli_table_next(table);
        return;
    }
    cli_print_who(table->out, first);
    if (first->place == HF_PLACE_LINGERING)
        fputs(" (gone)", table->out);
    if (holders > 1)
        fprintf(table->out, " and %zu more", holders - 1);
    cli_table_next(table);
    cli_print_duration(table->out, first->age_ms);
    cli_table_next(table);
    cli_print_left(table->out, first);
    cli_table_next(table);
}

void locks_table_add(struct locks_table *rows, const struct cli_span *lock)
{
    const hf_entry *first = hf_view_entry(lock->view, lock->first);
    struct cli_table *table = &rows->table;

    cli_print_name(table->out, first->name, first->name_len);
    cli_table_next(table);
    cli_print_mode(table->out, first);
    cli_table_next(table);
    add_holders(table, lock);
    if (rows->with_waiters)
        fprintf(table->out, "%zu", cli_span_count(lock, HF_PLACE_WAITING));
    else
        putc('-', table->out);
    cli_table_next(table);
    cli_print_text(table->out, first->note);
    cli_table_next(table);
}
