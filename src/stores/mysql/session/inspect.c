/* Who holds and who waits by hold=session: those who wait are in the process list, with the comment
 * at the head of their statement; those who hold have a row that is not committed. Asked in this
 * order, so that nobody who is let in meanwhile is missed. */
#include <stdlib.h>

#include "base/bytes.h"
#include "stores/mysql/session/session.h"
#include "stores/search.h"

#include "base/banned.h"

struct found {
    struct hf__session_comment comment;
    struct hf__entry entry;
    char name[HF_NAME_MAX];
    size_t name_len;
    size_t order;
};

struct all {
    struct found *list;
    size_t count, capacity;
};

static bool is_there(const struct all *all, const struct hf__ticket *ticket)
{
    for (size_t i = 0; i < all->count; i++) {
        if (hf__ticket_equal(&all->list[i].entry.ticket, ticket))
            return true;
    }
    return false;
}

static struct found *add(struct all *all)
{
    if (all->count == all->capacity) {
        size_t capacity = all->capacity * 2 + 16;
        struct found *grown = realloc(all->list, capacity * sizeof *grown);
        if (grown == NULL)
            return NULL;
        all->list = grown;
        all->capacity = capacity;
    }
    struct found *f = &all->list[all->count];
    *f = (struct found){.order = all->count};
    return f;
}

enum { NAME, ABOUT, GENERATION, SINCE, INSIDE };

/* False: no memory. */
static bool note(struct all *all, MYSQL_ROW row, size_t name_len, const struct hf__search *search)
{
    struct found *f = add(all);

    if (f == NULL)
        return false;
    if (row[NAME] == NULL || row[ABOUT] == NULL || name_len > HF_NAME_MAX ||
        !hf__search_wants(search, row[NAME], name_len) ||
        !hf__session_comment_parse(row[ABOUT], &f->comment))
        return true;
    bool inside = hf__sql_flag(row[INSIDE]);
    f->entry = (struct hf__entry){.ticket = f->comment.ticket,
                                  .place = inside ? HF__PLACE_INSIDE : HF__PLACE_WAITING,
                                  .mode = f->comment.mode,
                                  .ttl_ms = f->comment.ttl_ms,
                                  .generation = (uint64_t)hf__sql_integer(row[GENERATION], 0),
                                  .since_ms = hf__sql_integer(row[SINCE], 0),
                                  .until_ms = HF__NEVER,
                                  .lease_ms = HF__NEVER,
                                  .claimed = inside};
    memcpy(f->name, row[NAME], name_len);
    f->name_len = name_len;
    all->count++;
    return true;
}

static int collect(struct hf__my *s, struct hf__my_conn *c, const char *sql,
                   const struct hf__search *search, int64_t deadline_ns, struct all *all,
                   hf_error *err)
{
    const char *time_ms = mariadb_connection(c->my) ? "time_ms" : "time * 1000";
    struct hf__my_text t = {0};
    MYSQL_RES *result = NULL;
    MYSQL_ROW row;

    hf__my_add_statement(&t, sql, &time_ms);
    int r = hf__my_ask(s, c, &t, true, deadline_ns, &result, err);
    hf__my_text_clear(&t);
    while (r == 0 && (row = mysql_fetch_row(result)) != NULL) {
        if (!note(all, row, mysql_fetch_lengths(result)[NAME], search))
            r = hf__fail(err, HF_NO_MEMORY, NULL);
    }
    mysql_free_result(result);
    return r;
}

/* By name; who is inside first. */
static int compare(const void *a, const void *b)
{
    const struct found *x = a, *y = b;
    int order = hf__bytes_order(x->name, x->name_len, y->name, y->name_len);

    if (order == 0)
        order = (y->entry.place == HF__PLACE_INSIDE) - (x->entry.place == HF__PLACE_INSIDE);
    return order != 0 ? order : (x->order > y->order) - (x->order < y->order);
}

static int show(struct all *holders, struct all *waiters, const struct hf__search *search,
                hf_error *err)
{
    int r = 0;

    for (size_t i = 0; i < waiters->count; i++) {
        if (is_there(holders, &waiters->list[i].entry.ticket))
            continue;
        struct found *f = add(holders);
        if (f == NULL)
            return hf__fail(err, HF_NO_MEMORY, NULL);
        *f = waiters->list[i];
        f->order = holders->count++;
    }
    if (holders->count > 0)
        qsort(holders->list, holders->count, sizeof holders->list[0], compare);
    for (size_t i = 0; i < holders->count && r == 0; i++) {
        struct found *f = &holders->list[i];
        struct hf__who who = {.host = f->comment.text[0],
                              .user = f->comment.text[1],
                              .program = f->comment.text[2],
                              .note = f->comment.text[3],
                              .pid = f->comment.who.pid};
        if (!hf__search_is_old_enough(search, &f->entry))
            continue;
        f->entry.who = &who;
        r = search->found(search->ctx, f->name, f->name_len, &f->entry);
    }
    return r;
}

int hf__my_session_inspect(struct hf__store *store, const struct hf__search *search,
                           int64_t deadline_ns, hf_error *err)
{
    struct hf__my *s = (struct hf__my *)store;
    struct hf__my_conn *c = NULL;
    struct all waiters = {0}, holders = {0};
    int r = hf__my_borrow(s, deadline_ns, &c, err);

    if (r != 0)
        return r;
    r = collect(s, c, hf__my_waiters_sql, search, deadline_ns, &waiters, err);
    if (r == 0)
        r = hf__my_run(s, c, "SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED", deadline_ns, err);
    if (r == 0)
        r = collect(s, c, hf__my_holders_sql, search, deadline_ns, &holders, err);
    hf__my_give_back(s, c);
    if (r == 0)
        r = show(&holders, &waiters, search, err);
    free(waiters.list);
    free(holders.list);
    return r;
}
