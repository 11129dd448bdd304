/* Looking. One name is a SERIAL read. All of them is a scan of the table `locks` at QUORUM, page by
 * page, and of nothing else (that is not a decision, and a linearizable scan does not exist); the
 * rows come in the order of their hashes and are sorted here. Signs of life are read only for locks
 * that have waiters to be shown. */
#include <stdlib.h>

#include "base/bytes.h"
#include "stores/cassandra/cassandra.h"
#include "stores/search.h"

#include "base/banned.h"

#define PAGE 200

/* One lock ----------------------------------------------------------------- */

/* A waiter may have given a sign of life that the row does not know of. */
static bool settle(struct hf__entry *e, int64_t now_ms)
{
    const struct hf__cs_extra *x = e->who;

    return (e->place == HF__PLACE_WAITING && x->proof == HF__CS_PROOF_ALIVE) ||
           hf__search_settle(e, now_ms);
}

static char *plain(char *to, size_t size, struct hf__cql_bytes text)
{
    size_t len = text.len < size - 1 ? text.len : size - 1;

    if (len > 0)
        memcpy(to, text.data, len);
    to[len] = '\0';
    return hf__who_plain(to);
}

static int show(const struct hf__search *search, const struct hf__cs_lock *lock, struct hf__entry e,
                int64_t now_ms)
{
    const struct hf__cs_extra *x = e.who;
    struct hf__who_text text;

    if (e.place == HF__PLACE_RETIRED || !settle(&e, now_ms))
        return 0;
    e.since_ms = now_ms - e.since_ms;
    if (!hf__search_is_old_enough(search, &e))
        return 0;
    if (e.place == HF__PLACE_WAITING && x->proof == HF__CS_PROOF_ALIVE)
        e.until_ms = x->alive_until_ms;
    if (e.until_ms != HF__NEVER) /* as its bidder was told */
        e.until_ms -= now_ms + (e.place == HF__PLACE_INSIDE ? x->skew_ms : 0);
    if (e.until_ms < 0)
        e.until_ms = 0;
    e.ttl_ms -= e.ttl_ms != HF__NEVER ? x->skew_ms : 0;
    struct hf__who who = {.host = plain(text.host, sizeof text.host, x->host),
                          .user = plain(text.user, sizeof text.user, x->user),
                          .program = plain(text.program, sizeof text.program, x->program),
                          .note = plain(text.note, sizeof text.note, x->note),
                          .pid = x->pid};
    e.who = &who;
    e.effects = 0;
    return search->found(search->ctx, lock->name, lock->name_len, &e);
}

static bool needs_heartbeats(const struct hf__search *search, const struct hf__cs_row *row)
{
    for (size_t i = 0; search->older_than_ms == 0 && i < row->count; i++) {
        if (row->was[i].place == HF__PLACE_WAITING && row->was[i].until_ms <= row->now_ms)
            return true;
    }
    return false;
}

/* A row's entries are those inside first, then those who wait. */
static int show_row(const struct hf__cs_lock *lock, const struct hf__search *search,
                    struct hf__cs_row *row)
{
    int code = 0;

    if (needs_heartbeats(search, row))
        code = hf__cs_read_heartbeats(lock, row, NULL);
    for (size_t i = 0; i < row->count && code == 0; i++)
        code = show(search, lock, row->was[i], row->now_ms);
    return code;
}

static int inspect_one(struct hf__cs *s, const struct hf__search *search, int64_t deadline_ns,
                       hf_error *err)
{
    struct hf__cs_lock lock = {s, search->name, search->name_len, deadline_ns, err};
    struct hf__cs_row row = {0};
    int code = hf__cs_read(&lock, 0, &row);

    if (code == 0)
        code = show_row(&lock, search, &row);
    hf__cs_row_clear(&row);
    return code;
}

/* Many --------------------------------------------------------------------- */

enum { NAME, CLOCK, VERSION, TOUCHED, HOLDERS, WAITERS };

/* A row put aside until it is its turn. */
struct kept {
    int64_t now_ms;
    size_t name_len, holders_len, waiters_len;
    unsigned char bytes[]; /* name, holders, waiters */
};

struct selection {
    const struct hf__search *search;
    struct kept **rows;
    size_t count, capacity;
};

/* A collection of nothing is its length, 0. */
static bool is_empty(struct hf__cql_bytes list)
{
    return list.len <= 4;
}

static bool keep(struct selection *all, const struct hf__cql_result *r)
{
    struct hf__cql_bytes name = hf__cql_column(r, NAME), holders = hf__cql_column(r, HOLDERS),
                         waiters = hf__cql_column(r, WAITERS);
    int64_t now_ms = 0;

    hf__cql_get_bigint(hf__cql_column(r, CLOCK), &now_ms);
    if (!hf__search_wants(all->search, (const char *)name.data, name.len) ||
        (is_empty(holders) && is_empty(waiters)))
        return true;
    if (all->count == all->capacity) {
        size_t capacity = all->capacity == 0 ? 64 : 2 * all->capacity;
        void *grown = realloc(all->rows, capacity * sizeof *all->rows);
        if (grown == NULL)
            return false;
        all->rows = grown;
        all->capacity = capacity;
    }
    struct kept *row = malloc(sizeof *row + name.len + holders.len + waiters.len);
    if (row == NULL)
        return false;
    *row = (struct kept){now_ms, name.len, holders.len, waiters.len};
    memcpy(row->bytes, name.data, name.len);
    if (holders.len > 0)
        memcpy(row->bytes + name.len, holders.data, holders.len);
    if (waiters.len > 0)
        memcpy(row->bytes + name.len + holders.len, waiters.data, waiters.len);
    all->rows[all->count++] = row;
    return true;
}

static int by_name(const void *a, const void *b)
{
    const struct kept *x = *(struct kept *const *)a, *y = *(struct kept *const *)b;

    return hf__bytes_order(x->bytes, x->name_len, y->bytes, y->name_len);
}

static int scan(struct hf__cs *s, struct selection *all, int64_t deadline_ns, hf_error *err)
{
    struct hf__cs_call call = {
        .query = HF__CS_QUERY_SCAN, .page_size = PAGE, .deadline_ns = deadline_ns};
    struct hf__cql_request request = hf__cs_request(s, &call);
    struct hf__cql_result result = {0};
    int code = hf__cql_execute(s->cql, &request, &result, err);

    while (code == 0) {
        while (code == 0 && hf__cql_next_row(&result)) {
            if (!keep(all, &result))
                code = hf__fail(err, HF_NO_MEMORY, NULL);
        }
        if (code != 0 || !result.has_more)
            break;
        code = hf__cql_next_page(s->cql, &request, &result, err);
    }
    hf__cql_result_clear(&result);
    return code;
}

static int show_kept(struct hf__cs *s, const struct hf__search *search, const struct kept *kept,
                     int64_t deadline_ns, hf_error *err)
{
    struct hf__cs_lock lock = {s, (const char *)kept->bytes, kept->name_len, deadline_ns, err};
    const unsigned char *at = kept->bytes + kept->name_len;
    struct hf__cs_row row = {.now_ms = kept->now_ms};
    struct hf__cs_packed packed = {.holders = {at, kept->holders_len},
                                   .waiters = {at + kept->holders_len, kept->waiters_len}};
    int code = hf__cs_row_take(&row, &packed, err);

    if (code == 0)
        code = show_row(&lock, search, &row);
    hf__cs_row_clear(&row);
    return code;
}

int hf__cs_inspect(struct hf__store *store, const struct hf__search *search, int64_t deadline_ns,
                   hf_error *err)
{
    struct hf__cs *s = (struct hf__cs *)store;
    struct selection all = {.search = search};

    if (s->simple)
        return hf__cs_simple_inspect(s, search, deadline_ns, err);
    if (search->name != NULL)
        return inspect_one(s, search, deadline_ns, err);
    int code = scan(s, &all, deadline_ns, err);
    if (all.count > 0)
        qsort(all.rows, all.count, sizeof(struct kept *), by_name);
    for (size_t i = 0; i < all.count; i++) {
        if (code == 0)
            code = show_kept(s, search, all.rows[i], deadline_ns, err);
        free(all.rows[i]);
    }
    free(all.rows);
    return code;
}
