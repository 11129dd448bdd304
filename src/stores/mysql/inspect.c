/* Looking: one SELECT, which is one consistent snapshot and keeps nobody from writing. What has run
 * out but was not swept yet is shown as the doorman would leave it. */
#include <stdlib.h>

#include "stores/mysql/mysql.h"
#include "stores/search.h"

#include "base/banned.h"

#define WHO    " name, host, username, program, pid, note, "
#define NOW_MS "(SELECT " HF__MY_MS(HF__MY_CLOCK) ")"

enum { NAME = HF__SQL_ENTRY_CELLS, HOST, USER, PROGRAM, PID, NOTE, NOW };

static int show(MYSQL_RES *result, MYSQL_ROW row, const struct hf__search *search, hf_error *err)
{
    struct hf__who who = {.host = row[HOST],
                          .user = row[USER],
                          .program = row[PROGRAM],
                          .note = row[NOTE],
                          .pid = hf__sql_integer(row[PID], 0)};
    struct hf__sql_row entry;

    if (!hf__sql_read_row((const char *const *)row, &entry))
        return hf__fail(err, HF_CORRUPT, "mysql: a row makes no sense");
    return hf__sql_show(search, &entry.was, hf__sql_integer(row[NOW], 0), row[NAME],
                        mysql_fetch_lengths(result)[NAME], &who);
}

static void add_where(const struct hf__search *search, struct hf__my_text *t)
{
    char next[HF_NAME_MAX];

    if (search->name != NULL) {
        hf__my_add(t, " WHERE name = ");
        hf__my_add_bytes(t, search->name, search->name_len);
    } else if (search->prefix != NULL && search->prefix_len > 0) {
        size_t len = hf__search_next_prefix(search, next);
        hf__my_add(t, " WHERE name >= ");
        hf__my_add_bytes(t, search->prefix, search->prefix_len);
        if (len > 0) {
            hf__my_add(t, " AND name < ");
            hf__my_add_bytes(t, next, len);
        }
    }
}

int hf__my_inspect(struct hf__store *store, const struct hf__search *search, int64_t deadline_ns,
                   hf_error *err)
{
    struct hf__my *s = (struct hf__my *)store;
    struct hf__my_conn *c = NULL;
    struct hf__my_text t = {0};
    MYSQL_RES *result = NULL;
    MYSQL_ROW row;

    if (search->prefix_len > HF_NAME_MAX)
        return 0; /* no name is that long */
    int r = hf__my_borrow(s, deadline_ns, &c, err);
    if (r != 0)
        return r;
    hf__my_add(&t, "SELECT " HF__MY_HOLDER_COLUMNS "," WHO NOW_MS " FROM holdfast_holder");
    add_where(search, &t);
    hf__my_add(&t, " UNION ALL SELECT " HF__MY_ALONE_COLUMNS "," WHO NOW_MS
                   " FROM (SELECT * FROM holdfast_lock");
    add_where(search, &t);
    hf__my_add(&t, ") k WHERE inside <> " HF__MY_NOBODY);
    hf__my_add(&t,
               " UNION ALL SELECT " HF__MY_WAITER_COLUMNS "," WHO NOW_MS " FROM holdfast_waiter");
    add_where(search, &t);
    hf__my_add(&t, " ORDER BY name, 1");
    r = hf__my_ask(s, c, &t, true, deadline_ns, &result, err);
    hf__my_give_back(s, c);
    hf__my_text_clear(&t);
    while (r == 0 && (row = mysql_fetch_row(result)) != NULL)
        r = show(result, row, search, err);
    mysql_free_result(result);
    return r;
}
