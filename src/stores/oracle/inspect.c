/* Looking: one SELECT, which is one consistent snapshot and keeps nobody from writing. What has run
 * out but was not swept yet is shown as the doorman would leave it. */
#include "stores/oracle/oracle.h"

#include "base/banned.h"

enum { ENTRY, NAME, SEQ, HOST, USER, PROGRAM, PID, NOTE, NOW };

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
    const char *words[HF__SQL_ENTRY_CELLS] = {0}; /* the last one does not exist here */
    char name[HF_NAME_MAX + 1], note[HF_NOTE_MAX + 1];

    if (cells[ENTRY] == NULL || !hf__ora_split(cells[ENTRY], words, HF__SQL_ENTRY_CACHED))
        return hf__fail(err, HF_CORRUPT, "oracle: a row makes no sense");
    size_t name_len = read_bytes(cells[NAME], name, sizeof name);
    read_bytes(cells[NOTE], note, sizeof note);
    struct hf__sql_entry entry = {.cells = words,
                                  .name = name,
                                  .name_len = name_len,
                                  .who = {.host = text(cells[HOST]),
                                          .user = text(cells[USER]),
                                          .program = text(cells[PROGRAM]),
                                          .note = note,
                                          .pid = hf__sql_integer(cells[PID], 0)},
                                  .now_ms = hf__sql_integer(cells[NOW], 0) / 1000};
    return hf__sql_show("oracle", &entry, search, err);
}

int hf__ora_inspect(struct hf__store *store, const struct hf__search *search, int64_t deadline_ns,
                    hf_error *err)
{
    struct hf__ora *s = (struct hf__ora *)store;
    struct hf__ora_conn *c = NULL;
    struct hf__sql_range range;

    if (!hf__sql_range(search, &range))
        return 0;
    int r = hf__ora_borrow(s, deadline_ns, &c, err);
    if (r != 0)
        return r;
    hf__ora_start(c, hf__ora_inspect_sql);
    for (int i = 0; i < 2; i++) { /* holders, waiters */
        hf__ora_add_bytes(c, range.low, range.low_len);
        hf__ora_add_bytes(c, range.high, range.high_len);
    }
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
