/* Aligned columns. The cells are collected in one buffer, each ended by a NUL, and measured before
 * the first is printed. */
#include "table.h"

#include <stdlib.h>
#include <string.h>

#include "text.h"

#include "base/banned.h"

bool cli_table_init(struct cli_table *table, const char *const *titles)
{
    *table = (struct cli_table){0};
    table->out = open_memstream(&table->text, &table->size);
    if (table->out == NULL) {
        cli_fail(EXIT_MACHINE, "out of memory");
        return false;
    }
    for (; titles[table->columns] != NULL && table->columns < CLI_COLUMNS_MAX; table->columns++) {
        fputs(titles[table->columns], table->out);
        cli_table_next(table);
    }
    return true;
}

void cli_table_next(struct cli_table *table)
{
    putc('\0', table->out);
}

static size_t width_of(const struct cli_table *table, const char *cell)
{
    size_t width = cli_width(cell);

    return table->widest > 0 && width > table->widest ? table->widest : width;
}

/* What is cut may take a column less than it might: a wide character does not come in halves. */
static void print_cell(const char *cell, size_t columns)
{
    if (cli_width(cell) <= columns) {
        fputs(cell, stdout);
        return;
    }
    size_t dots = columns < 6 ? 0 : 2;
    printf("%.*s%.*s", (int)cli_fit(cell, columns - dots), cell, (int)dots, "..");
}

static void measure(const struct cli_table *table, size_t *widths)
{
    const char *cell = table->text, *end = table->text + table->size;

    for (size_t i = 0; cell < end; i++, cell += strlen(cell) + 1) {
        size_t width = width_of(table, cell);
        if (width > widths[i % table->columns])
            widths[i % table->columns] = width;
    }
}

/* Blanks are printed before the cell that needs them, so that no line ends in blanks. `room` is what the
 * line has left. */
static void print_cells(const struct cli_table *table, const struct cli *cli, int indent)
{
    size_t widths[CLI_COLUMNS_MAX] = {0}, blanks = 0, room = 0;
    const char *cell = table->text, *end = table->text + table->size;

    measure(table, widths);
    for (size_t i = 0; cell < end; i++, cell += strlen(cell) + 1) {
        size_t column = i % table->columns, width = width_of(table, cell);
        if (i == 0)
            fputs(cli_paint(cli, PAINT_BOLD), stdout);
        if (column == 0) {
            blanks = (size_t)indent;
            room = table->line > 0 ? table->line : SIZE_MAX;
        }
        if (cell[0] != '\0' && room > blanks) {
            room -= blanks;
            printf("%*s", (int)blanks, "");
            print_cell(cell, width < room ? width : room);
            room -= width < room ? width : room;
            blanks = 0;
        }
        blanks += widths[column] - width + 2;
        if (i + 1 == table->columns)
            fputs(cli_paint(cli, PAINT_NONE), stdout);
        if (column + 1 == table->columns)
            putchar('\n');
    }
}

int cli_table_print(struct cli_table *table, const struct cli *cli, int indent, int status)
{
    bool whole = !ferror(table->out);

    if (fclose(table->out) != 0 || !whole) {
        free(table->text);
        return cli_fail(EXIT_MACHINE, "out of memory");
    }
    print_cells(table, cli, indent);
    free(table->text);
    return status;
}
