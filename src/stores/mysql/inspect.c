/* Looking: one SELECT, which is one consistent snapshot and keeps nobody from writing. What has run
 * out but was not swept yet is shown as the doorman would leave it. */
#include "stores/mysql/mysql.h"

#include "base/banned.h"

enum { NAME = HF__SQL_ENTRY_CELLS, HOST, USER, PROGRAM, PID, NOTE, NOW };

int hf__my_inspect(struct hf__store *store, const struct hf__search *search, int64_t deadline_ns,
                   hf_error *err)
{
    struct hf__my *s = (struct hf__my *)store;
    struct hf__my_conn *c = NULL;
    char low[HF__MY_LITERAL], high[HF__MY_LITERAL];
    struct hf__my_text t = {0};
    struct hf__sql_range range;
    MYSQL_RES *result = NULL;
    MYSQL_ROW row;

    if (!hf__sql_range(search, &range))
        return 0;
    int r = hf__my_borrow(s, deadline_ns, &c, err);
    if (r != 0)
        return r;
    const char *const values[] = {hf__my_literal(range.low, range.low_len, low),
                                  hf__my_literal(range.high, range.high_len, high)};
    hf__my_add_statement(&t, hf__my_inspect_sql, values);
    r = hf__my_ask(s, c, &t, true, deadline_ns, &result, err);
    hf__my_text_clear(&t);
    hf__my_give_back(s, c); /* the caller is told without a connection in hand */
    while (r == 0 && (row = mysql_fetch_row(result)) != NULL) {
        struct hf__sql_entry entry = {.cells = (const char *const *)row,
                                      .name = row[NAME],
                                      .name_len = mysql_fetch_lengths(result)[NAME],
                                      .who = {.host = row[HOST],
                                              .user = row[USER],
                                              .program = row[PROGRAM],
                                              .note = row[NOTE],
                                              .pid = hf__sql_integer(row[PID], 0)},
                                      .now_ms = hf__sql_integer(row[NOW], 0)};
        r = hf__sql_show("mysql", &entry, search, err);
    }
    mysql_free_result(result);
    return r;
}
