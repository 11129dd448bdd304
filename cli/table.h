/* Tables for people: columns as wide as their widest cell, the last one not padded. */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include "cli.h"

#define CLI_COLUMNS_MAX 10

struct cli_table {
    FILE *out; /* write the next cell here, free of NULs, then cli_table_next() */
    size_t columns;
    char *text;  /* all cells, each with a NUL */
    size_t size; /* of text */
    /* What is wider than this is cut, and ends in ".."; 0: nothing is */
    size_t widest; /* a cell */
    size_t line;   /* a line */
};

/* `titles` ends with NULL: the first row. False after a sentence: out of memory. */
bool cli_table_init(struct cli_table *table, const char *const *titles);

/* Ends a cell. */
void cli_table_next(struct cli_table *table);

/* Prints the table, indented by `indent` columns, and frees it. `status`, or EXIT_MACHINE. */
int cli_table_print(struct cli_table *table, const struct cli *cli, int indent, int status);

#endif
