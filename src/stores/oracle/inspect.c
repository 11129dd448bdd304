/* Looking: one SELECT, which is one consistent snapshot and keeps nobody from writing. What has run
 * out but was not swept yet is shown as the doorman would leave it. */
#include <stdlib.h>

#include "stores/oracle/oracle.h"
#include "stores/search.h"

#include "base/banned.h"

#define WHO                                                                          \
    ", RAWTOHEX(name), seq, host, username, program, '' || pid, RAWTOHEX(note), '' " \
    "|| " HF__ORA_CLOCK
#define LOOK(where)                                            \
    "SELECT " HF__ORA_HOLDER WHO " FROM holdfast_holder" where \
    " UNION ALL SELECT " HF__ORA_WAITER WHO " FROM holdfast_waiter" where " ORDER BY 2, 3"

enum { ENTRY, NAME, SEQ, HOST, USER, PROGRAM, PID, NOTE, NOW };

static const char all_sql[] = LOOK("");
static const char name_sql[] = LOOK(" WHERE name = HEXTORAW(?)");
static const char from_sql[] = LOOK(" WHERE name >= HEXTORAW(?)");
static const char range_sql[] = LOOK(" WHERE name >= HEXTORAW(?) AND name < HEXTORAW(?)");

static int digit(char c)
{
    return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
}

/* Hex digits to bytes and a NUL; NULL is nothing. */
static size_t read_bytes(const char *hex, char *to, size_t size)
{
    size_t len = 0;

    for (; hex != NULL && hex[0] != '\0' && hex[1] != '\0' && len + 1 < size; hex += 2)
        to[len++] = (char)(digit(hex[0]) << 4 | digit(hex[1]));
    to[len] = '\0';
    return len;
}

static const char *text(const char *cell)
{
    return cell != NULL ? cell : "";
}

static int show(char **cells, const struct hf__search *search, hf_error *err)
{
    const char *words[HF__SQL_ENTRY_CELLS];
    char name[HF_NAME_MAX + 1], note[HF_NOTE_MAX + 1];
    struct hf__sql_row row;

    if (cells[ENTRY] == NULL || !hf__ora_split(cells[ENTRY], words, HF__SQL_ENTRY_CELLS) ||
        !hf__sql_read_row(words, &row))
        return hf__fail(err, HF_CORRUPT, "oracle: a row makes no sense");
    size_t name_len = read_bytes(cells[NAME], name, sizeof name);
    read_bytes(cells[NOTE], note, sizeof note);
    struct hf__who who = {.host = text(cells[HOST]),
                          .user = text(cells[USER]),
                          .program = text(cells[PROGRAM]),
                          .note = note,
                          .pid = hf__sql_integer(cells[PID], 0)};
    return hf__sql_show(search, &row.was, hf__sql_integer(cells[NOW], 0) / 1000, name, name_len,
                        &who);
}

static void ask_by_prefix(struct hf__ora_conn *c, const struct hf__search *search)
{
    char next[HF_NAME_MAX];
    size_t len = hf__search_next_prefix(search, next);

    hf__ora_start(c, len > 0 ? range_sql : from_sql);
    for (int i = 0; i < 2; i++) { /* holders, waiters */
        hf__ora_add_bytes(c, search->prefix, search->prefix_len);
        if (len > 0)
            hf__ora_add_bytes(c, next, len);
    }
}

static void ask(struct hf__ora_conn *c, const struct hf__search *search)
{
    if (search->name == NULL && search->prefix != NULL && search->prefix_len > 0) {
        ask_by_prefix(c, search);
        return;
    }
    hf__ora_start(c, search->name != NULL ? name_sql : all_sql);
    for (int i = 0; search->name != NULL && i < 2; i++)
        hf__ora_add_bytes(c, search->name, search->name_len);
}

int hf__ora_inspect(struct hf__store *store, const struct hf__search *search, int64_t deadline_ns,
                    hf_error *err)
{
    struct hf__ora *s = (struct hf__ora *)store;
    struct hf__ora_conn *c = NULL;

    if (search->prefix_len > HF_NAME_MAX)
        return 0; /* no name is that long */
    int r = hf__ora_borrow(s, deadline_ns, &c, err);
    if (r != 0)
        return r;
    ask(c, search);
    r = hf__ora_run(s, c, true, deadline_ns, err);
    struct hf__ora_rows rows = {0};
    if (r == 0) {
        rows = c->job.rows; /* the caller is told without a connection in hand */
        c->job.rows = (struct hf__ora_rows){0};
    }
    hf__ora_give_back(s, c);
    for (size_t i = 0; r == 0 && i < rows.count; i++)
        r = rows.columns > NOW ? show(rows.cells + i * rows.columns, search, err)
                               : hf__fail(err, HF_CORRUPT, "oracle: columns are missing");
    hf__ora_rows_clear(&rows);
    return r;
}
