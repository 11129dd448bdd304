/* A SQLite store of its own per test, opened through its table of functions, on a clock the test
 * owns. */
#ifndef TESTS_SQLITE_FIXTURE_H
#define TESTS_SQLITE_FIXTURE_H

#include <fcntl.h>
#include <ftw.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/url.h"
#include "lib/check.h"
#include "lib/operate.h"
#include "lib/random.h"
#include "stores/builtin.h"

#define SECOND INT64_C(1000)

struct fixture {
    char dir[128];
    char path[160]; /* of the database */
    char url[200];
    int64_t now_ns;
    uint64_t wall_us;
    struct random random;
    struct hf_env env;
    struct hf__who who;
    struct hf__host host;
    struct hf__store *store;
    hf_error err;
};

static inline int64_t fixture_now(void *ctx)
{
    return ((struct fixture *)ctx)->now_ns;
}

static inline uint64_t fixture_wall(void *ctx)
{
    return ((struct fixture *)ctx)->wall_us;
}

static inline int fixture_random(void *ctx, void *buf, size_t size)
{
    random_fill(&((struct fixture *)ctx)->random, buf, size);
    return 0;
}

static inline void pass_time(struct fixture *f, int64_t ms)
{
    f->now_ns += ms * HF__NS_PER_MS;
    f->wall_us += (uint64_t)ms * 1000;
}

static inline int try_open(struct fixture *f, const char *text)
{
    struct hf__url url;
    int code = hf__url_parse(text, &url, &f->err);

    if (code != 0)
        return code;
    code = hf__url_check(&url, hf__sqlite_store_type.options, &f->err);
    if (code == 0)
        code = hf__sqlite_store_type.open(&url, &f->host, &f->store, &f->err);
    hf__url_clear(&url);
    return code;
}

static inline void open_store(struct fixture *f)
{
    if (try_open(f, f->url) != 0)
        fail_msg("open %s: %s", f->url, f->err.text);
}

static inline void close_store(struct fixture *f)
{
    if (f->store != NULL)
        hf__sqlite_store_type.close(f->store);
    f->store = NULL;
}

/* A clock and a directory, but no store yet. */
static inline struct fixture *make_fixture(void)
{
    const char *tmp = getenv("TMPDIR");
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    f->now_ns = 1000000 * SECOND * HF__NS_PER_MS;
    f->wall_us = UINT64_C(1700000000000000);
    f->random.state = (uint64_t)getpid() << 32 ^ (uint64_t)hf__now_ns(&hf__system_env);
    f->env = hf__system_env;
    f->env.ctx = f;
    f->env.now_ns = fixture_now;
    f->env.wall_us = fixture_wall;
    f->env.random = fixture_random;
    f->who = (struct hf__who){"host", "user", "program", "note", 42};
    f->host = (struct hf__host){.env = &f->env, .self = &f->who, .op_timeout_ms = 5 * SECOND};
    snprintf(f->dir, sizeof f->dir, "%s/hf-sqlite-XXXXXX", tmp != NULL ? tmp : "/tmp");
    assert_non_null(mkdtemp(f->dir));
    snprintf(f->path, sizeof f->path, "%s/locks.db", f->dir);
    snprintf(f->url, sizeof f->url, "sqlite:%s", f->path);
    return f;
}

static inline int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

static inline void free_fixture(struct fixture *f)
{
    close_store(f);
    nftw(f->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(f);
}

static inline int setup_fixture(void **state)
{
    *state = make_fixture();
    return 0;
}

static inline int setup_open(void **state)
{
    struct fixture *f = make_fixture();

    open_store(f);
    *state = f;
    return 0;
}

static inline int teardown(void **state)
{
    free_fixture(*state);
    return 0;
}

/* An exclusive bid with a lease of 10 s and a new ticket. */
static inline struct hf__bid make_bid(struct fixture *f, const char *name)
{
    struct hf__bid bid = {.name = name,
                          .name_len = strlen(name),
                          .ttl_ms = 10 * SECOND,
                          .retire_ms = 60 * SECOND,
                          .who = &f->who};

    random_fill(&f->random, bid.ticket.bits, sizeof bid.ticket.bits);
    return bid;
}

static inline int64_t soon(const struct fixture *f)
{
    return f->now_ns + 5 * SECOND * HF__NS_PER_MS;
}

static inline void check_ok(const struct fixture *f, const char *what, int code)
{
    if (code != 0)
        fail_msg("%s: %s: %s", what, hf_code_name(code), f->err.text);
}

static inline struct hf__answer attempt(struct fixture *f, const struct hf__bid *bid)
{
    struct hf__answer a = {.sent_ns = f->now_ns};

    check_ok(f, "attempt", ask_store(f->store, op_attempt(bid), soon(f), &a, &f->err));
    return a;
}

static inline struct hf__answer release(struct fixture *f, const struct hf__bid *bid)
{
    struct hf__answer a = {.sent_ns = f->now_ns};

    check_ok(f, "release", ask_store(f->store, op_release(bid, 0), soon(f), &a, &f->err));
    return a;
}

static inline struct hf__answer renew(struct fixture *f, const struct hf__bid *bid,
                                      uint64_t generation)
{
    struct hf__renewal item = {.name = bid->name,
                               .name_len = bid->name_len,
                               .ticket = bid->ticket,
                               .generation = generation,
                               .answer = {.sent_ns = f->now_ns}};

    check_ok(f, "renew", f->store->type->renew(f->store, &item, 1, soon(f), &f->err));
    return item.answer;
}

/* SQL on a connection of its own, as a stranger would. */
static inline void meddle(const struct fixture *f, const char *sql)
{
    sqlite3 *db;

    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    sqlite3_close(db);
}

static inline int64_t ask(const struct fixture *f, const char *sql)
{
    sqlite3 *db;
    sqlite3_stmt *q;
    int64_t value;

    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &q, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(q), SQLITE_ROW);
    value = sqlite3_column_int64(q, 0);
    sqlite3_finalize(q);
    sqlite3_close(db);
    return value;
}

/* Opening it is refused with this code, and says so. */
static inline void check_refused(struct fixture *f, const char *what, int code, const char *part)
{
    check_number(what, try_open(f, f->url), code);
    check_contains(what, f->err.text, "sqlite: ");
    check_contains(what, f->err.text, part);
    assert_null(f->store);
}

#endif
