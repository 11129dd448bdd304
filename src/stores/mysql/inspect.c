/* Looking: one SELECT, which is one consistent snapshot and keeps nobody from writing. What has run
 * out but was not swept yet is shown as the doorman would leave it. */
#include <stdlib.h>

#include "stores/mysql/mysql.h"

#include "util/banned.h"

#define WHO    " name, host, username, program, pid, note, "
#define NOW_MS "(SELECT " HF__MY_MS(HF__MY_CLOCK) ")"

enum { NAME = HF__MY_COLUMNS, HOST, USER, PROGRAM, PID, NOTE, NOW };

/* The first byte string after all that begin with the prefix; 0 if there is none. */
static size_t next_prefix(const char *prefix, size_t len, char *next)
{
    memcpy(next, prefix, len);
    while (len > 0 && (unsigned char)next[len - 1] == 0xff)
        len--;
    if (len > 0)
        next[len - 1]++;
    return len;
}

/* As the doorman would leave it; false if it would be over. */
static bool settle(struct hf__entry *e, int64_t now_ms)
{
    struct hf__record alone = {.entries = e, .count = 1, .capacity = 1};

    if (e->place == HF__WAITING)
        return e->until_ms > now_ms;
    hf__doorman_sweep(&alone, (struct hf__moment){.now_ms = now_ms});
    return e->place == HF__INSIDE || e->place == HF__LINGERING;
}

static int show(MYSQL_RES *result, MYSQL_ROW row, const struct hf__look *look, hf_error *err)
{
    int64_t now_ms = hf__my_number(row[NOW], 0);
    struct hf__my_row entry;
    struct hf__entry *e = &entry.was;
    int r = hf__my_read_entry(row, &entry, err);

    if (r != 0 || !settle(e, now_ms))
        return r;
    e->since_ms = now_ms - e->since_ms;
    if (look->older_than_ms > 0 && (e->place != HF__INSIDE || e->since_ms < look->older_than_ms))
        return 0;
    if (e->until_ms != HF__NEVER)
        e->until_ms -= now_ms;
    struct hf__who who = {.host = row[HOST],
                          .user = row[USER],
                          .program = row[PROGRAM],
                          .note = row[NOTE],
                          .pid = hf__my_number(row[PID], 0)};
    e->who = &who;
    e->marks = 0;
    return look->found(look->ctx, row[NAME], mysql_fetch_lengths(result)[NAME], e);
}

static void add_where(const struct hf__look *look, struct hf__my_text *t)
{
    char next[HF_NAME_MAX];

    if (look->name != NULL) {
        hf__my_add(t, " WHERE name = ");
        hf__my_add_bytes(t, look->name, look->name_len);
    } else if (look->prefix != NULL && look->prefix_len > 0) {
        size_t len = next_prefix(look->prefix, look->prefix_len, next);
        hf__my_add(t, " WHERE name >= ");
        hf__my_add_bytes(t, look->prefix, look->prefix_len);
        if (len > 0) {
            hf__my_add(t, " AND name < ");
            hf__my_add_bytes(t, next, len);
        }
    }
}

int hf__my_inspect(struct hf__store *store, const struct hf__look *look, int64_t deadline_ns,
                   hf_error *err)
{
    struct hf__my *s = (struct hf__my *)store;
    struct hf__my_conn *c = NULL;
    struct hf__my_text t = {0};
    MYSQL_RES *result = NULL;
    MYSQL_ROW row;

    if (look->prefix_len > HF_NAME_MAX)
        return 0; /* no name is that long */
    int r = hf__my_borrow(s, deadline_ns, &c, err);
    if (r != 0)
        return r;
    hf__my_add(&t, "SELECT " HF__MY_HOLDER_COLUMNS "," WHO NOW_MS " FROM holdfast_holder");
    add_where(look, &t);
    hf__my_add(&t,
               " UNION ALL SELECT " HF__MY_WAITER_COLUMNS "," WHO NOW_MS " FROM holdfast_waiter");
    add_where(look, &t);
    hf__my_add(&t, " ORDER BY name, 1");
    r = hf__my_ask(s, c, &t, true, deadline_ns, &result, err);
    hf__my_give_back(s, c);
    hf__my_text_clear(&t);
    while (r == 0 && (row = mysql_fetch_row(result)) != NULL)
        r = show(result, row, look, err);
    mysql_free_result(result);
    return r;
}
