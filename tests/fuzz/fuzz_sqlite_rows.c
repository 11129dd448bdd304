/* A SQLite database that somebody else has filled: rows with values of any type and size in every table,
 * and then the store's operations on it. None of them may crash, overflow or hang, and none grants
 * what says nothing. The tables are those of the schema, without STRICT. */
#include <ftw.h>
#include <sqlite3.h>
#include <unistd.h>

#include "base/lease.h"
#include "lib/operate.h"
#include "shape.h"
#include "stores/builtin.h"
#include "stores/sqlite/sqlite.h"

static struct {
    char dir[64], path[96];
    struct hf_env env;
    struct hf__host host;
    struct hf__store *store;
    sqlite3 *db;
} f;
static const struct hf__who who = {"host", "user", "program", "note", 42};
static const int64_t now_ms = INT64_C(1000000000);

static int64_t read_clock(void *ctx)
{
    (void)ctx;
    return now_ms * HF__NS_PER_MS;
}

static uint64_t read_wall(void *ctx)
{
    (void)ctx;
    return UINT64_C(1700000000000000);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

static void clean_up(void)
{
    nftw(f.dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void run(const char *sql)
{
    char *why = NULL;

    if (sqlite3_exec(f.db, sql, NULL, NULL, &why) != SQLITE_OK) {
        fprintf(stderr, "%s: %s\n", sql, why);
        abort();
    }
}

/* The schema with every STRICT taken out. */
static void make_database(void)
{
    char *schema = strdup(hf__sqlite_schema);

    REQUIRE(schema != NULL && sqlite3_open(f.path, &f.db) == SQLITE_OK);
    for (char *at = schema; (at = strstr(at, "STRICT, WITHOUT")) != NULL;)
        memset(at, ' ', strlen("STRICT,"));
    for (char *at = schema; (at = strstr(at, "STRICT")) != NULL;)
        memset(at, ' ', strlen("STRICT"));
    run("PRAGMA page_size = 1024; PRAGMA application_id = 1752132708; PRAGMA user_version = 1;");
    run("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF");
    run(schema);
    run("INSERT INTO holdfast_meta VALUES (1, '', 1700000000)");
    free(schema);
}

static void set_up(void)
{
    struct hf__url url;
    char text[128];
    hf_error err;

    snprintf(f.dir, sizeof f.dir, "%s/hf-fuzz-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    REQUIRE(mkdtemp(f.dir) != NULL);
    atexit(clean_up);
    umask(077);
    snprintf(f.path, sizeof f.path, "%s/locks.db", f.dir);
    make_database();
    f.env = hf__system_env;
    f.env.now_ns = read_clock;
    f.env.wall_us = read_wall;
    f.host = (struct hf__host){.env = &f.env, .self = &who, .op_timeout_ms = 5000};
    snprintf(text, sizeof text, "sqlite:%s", f.path);
    REQUIRE(hf__url_parse(text, &url, &err) == 0 &&
            hf__url_check(&url, hf__sqlite_store_type.options, &err) == 0);
    if (hf__sqlite_store_type.open(&url, &f.host, &f.store, &err) != 0) {
        fprintf(stderr, "%s\n", err.text);
        abort();
    }
    hf__url_clear(&url);
}

/* A value of any type. */
static void bind_wild(struct shape *s, sqlite3_stmt *q, int column)
{
    char text[300];
    size_t len;

    switch (shape_choose(s, 12)) {
    case 0:
        sqlite3_bind_zeroblob(q, column, (int)shape_byte(s));
        return;
    case 1:
        len = shape_bytes(s, text, sizeof text);
        sqlite3_bind_text(q, column, text, (int)len, SQLITE_TRANSIENT);
        return;
    case 2:
        sqlite3_bind_double(q, column, (double)shape_number(s) * 1.5);
        return;
    case 3:
        len = shape_bytes(s, text, sizeof text);
        sqlite3_bind_blob(q, column, text, (int)len, SQLITE_TRANSIENT);
        return;
    default:
        sqlite3_bind_int64(q, column, shape_number(s));
    }
}

/* A small number, a moment about now, nothing; or, once in a while, anything. */
static void bind_any(struct shape *s, sqlite3_stmt *q, int column)
{
    unsigned choice = shape_choose(s, 32);

    if (choice == 31)
        bind_wild(s, q, column);
    else if (choice < 12)
        sqlite3_bind_int64(q, column, choice % 6);
    else if (choice < 24)
        sqlite3_bind_int64(q, column, now_ms + (int64_t)shape_byte(s) - 100);
    else if (choice < 30)
        sqlite3_bind_int64(q, column, 100 * (int64_t)shape_byte(s));
}

static void bind_ticket(struct shape *s, sqlite3_stmt *q, int column)
{
    unsigned char bits[16] = {0};
    unsigned choice = shape_choose(s, 20);

    bits[15] = (unsigned char)(choice % 5);
    if (choice == 19)
        bind_wild(s, q, column);
    else
        sqlite3_bind_blob(q, column, bits, sizeof bits, SQLITE_TRANSIENT);
}

static void fill_table(struct shape *s, const char *sql, int columns, int ticket)
{
    sqlite3_stmt *q = NULL;

    REQUIRE(sqlite3_prepare_v2(f.db, sql, -1, &q, NULL) == SQLITE_OK);
    for (int i = 1; i <= columns; i++) {
        if (i == ticket)
            bind_ticket(s, q, i);
        else
            bind_any(s, q, i);
    }
    (void)sqlite3_step(q); /* a key that is there, or NULL where there must be a value */
    sqlite3_finalize(q);
}

static void fill(struct shape *s)
{
    run("BEGIN; DELETE FROM holdfast_lock; DELETE FROM holdfast_entry; DELETE FROM "
        "holdfast_retired; DELETE FROM holdfast_value;"
        "INSERT INTO holdfast_lock VALUES (1, x'61', 0, 6, 0, 0, 0)");
    for (unsigned n = shape_choose(s, 2); n > 0; n--)
        fill_table(s,
                   "REPLACE INTO holdfast_lock (id, name, generation, last_seq, waiting, retired,"
                   " touched) VALUES (1, x'61', coalesce(?1, 9), coalesce(?2, 9), coalesce(?3, 1),"
                   " coalesce(?4, 0), coalesce(?5, 0))",
                   5, 0);
    for (unsigned n = shape_choose(s, 5); n > 0; n--)
        fill_table(s,
                   "INSERT OR IGNORE INTO holdfast_entry VALUES (1, ?1, ?2, ?3, coalesce(?4, 0),"
                   " coalesce(?5, 0), coalesce(?6, 1), coalesce(?7, 30000), coalesce(?8, 0),"
                   " coalesce(?9, 60000), coalesce(?10, 0), ?11, ?12, coalesce(?13, 0), ?14,"
                   " coalesce(?15, 'h'), coalesce(?16, 'u'), coalesce(?17, 'p'), coalesce(?18, 1),"
                   " coalesce(?19, 'n'), coalesce(?20, 0))",
                   20, 2);
    for (unsigned n = shape_choose(s, 3); n > 0; n--)
        fill_table(s, "INSERT OR IGNORE INTO holdfast_retired VALUES (1, ?1, ?2, ?3)", 3, 1);
    for (unsigned n = shape_choose(s, 2); n > 0; n--)
        fill_table(s,
                   "INSERT INTO holdfast_value VALUES (x'61', coalesce(?1, 0), coalesce(?2, 1),"
                   " coalesce(?3, 0), ?4)",
                   4, 4);
    run("COMMIT");
}

static int found(void *ctx, const char *name, size_t name_len, const struct hf__entry *e)
{
    const struct hf__who *of = e->who;

    (void)ctx;
    REQUIRE(name_len > 0 && name != NULL && e->place != HF__PLACE_GONE);
    REQUIRE(strlen(of->host) + strlen(of->note) < 4096);
    return 0;
}

static void operate(struct shape *s)
{
    const struct hf__store_type *type = &hf__sqlite_store_type;
    struct hf__bid bid = {.name = "a",
                          .name_len = 1,
                          .ttl_ms = shape_choose(s, 2) ? 30000 : HF__NEVER,
                          .retire_ms = 60000,
                          .queue = shape_choose(s, 2),
                          .who = &who};
    struct hf__renewal item = {.name = "a", .name_len = 1, .generation = 1};
    struct hf__search search = {.found = found};
    struct hf__value value = {.order = 1, .len = 1};
    struct hf__operation of_value = {
        .kind = HF__OPERATION_READ, .bid = &bid, .generation = 1, .value = &value};
    struct hf__answer a = {.verdict = HF__VERDICT_DONE};
    int64_t deadline_ns = now_ms * HF__NS_PER_MS + 5000 * HF__NS_PER_MS;
    uint64_t count;
    hf_error err;
    int code;

    bid.ticket.bits[15] = item.ticket.bits[15] = (unsigned char)shape_choose(s, 5);
    switch (shape_choose(s, 9)) {
    case 0:
        code = ask_store(f.store, op_withdraw(&bid, 60000), deadline_ns, &a, &err);
        break;
    case 1:
        code = ask_store(f.store, op_release(&bid, 0), deadline_ns, &a, &err);
        break;
    case 2:
        code = type->renew(f.store, &item, 1, deadline_ns, &err);
        a = item.answer;
        break;
    case 3:
        code = ask_store(f.store, op_break(&bid, shape_choose(s, 2)), deadline_ns, &a, &err);
        break;
    case 4:
        code = type->upkeep(f.store, HF__UPKEEP_PURGE, 1000, deadline_ns, &count, &err);
        break;
    case 5:
        of_value.kind = HF__OPERATION_WRITE;
        code = ask_store(f.store, of_value, deadline_ns, &a, &err);
        break;
    case 6:
        code = ask_store(f.store, of_value, deadline_ns, &a, &err);
        REQUIRE(code != 0 || value.len <= HF_VALUE_MAX);
        break;
    default:
        code = ask_store(f.store, op_attempt(&bid), deadline_ns, &a, &err);
    }
    if (code == 0 && a.verdict == HF__VERDICT_GRANTED) {
        REQUIRE(a.lease_ms > 0);
        (void)hf__lease_deadline_ns(now_ms * HF__NS_PER_MS, a.lease_ms);
    }
    REQUIRE(code == 0 || is_printable(err.text));
    code = type->inspect(f.store, &search, deadline_ns, &err);
    REQUIRE(code == 0 || is_printable(err.text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct shape s = {data, size};

    if (f.store == NULL)
        set_up();
    fill(&s);
    operate(&s);
    return 0;
}
