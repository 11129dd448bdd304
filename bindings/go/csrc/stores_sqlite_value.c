/* The values beside locks (C15), by name. A row is there once a holder has vanished or written. */
#include "doorman_sound.h"
#include "stores_sqlite_sqlite.h"

#include "base_banned.h"

static int corrupt(hf_error *err)
{
    return hf__fail(err, HF_CORRUPT, "sqlite: a value is out of range; see `holdfast doctor`");
}

static int read_row(sqlite3_stmt *q, struct hf__value *ret_value, hf_error *err)
{
    size_t len = (size_t)sqlite3_column_bytes(q, 3);
    struct hf__value value = {.generation = (uint64_t)sqlite3_column_int64(q, 0),
                              .order = (uint64_t)sqlite3_column_int64(q, 1),
                              .doubt = sqlite3_column_int(q, 2) != 0,
                              .len = len};
    const struct hf__record record = {.value_generation = value.generation,
                                      .value_order = value.order};

    if (len > sizeof value.bytes || !hf__record_is_sound(&record))
        return corrupt(err);
    if (len > 0)
        memcpy(value.bytes, sqlite3_column_blob(q, 3), len);
    *ret_value = value;
    return 0;
}

int hf__sqlite_load_value(struct hf__sqlite *s, const char *name, size_t name_len,
                          struct hf__value *ret_value, hf_error *err)
{
    sqlite3_stmt *q;
    int code = hf__sqlite_statement(s, HF__SQLITE_STATEMENT_FIND_VALUE, &q, err);

    *ret_value = (struct hf__value){0};
    if (code != 0)
        return code;
    sqlite3_bind_blob(q, 1, name, (int)name_len, SQLITE_STATIC);
    int result = sqlite3_step(q);
    if (result == SQLITE_ROW)
        code = read_row(q, ret_value, err);
    else if (result != SQLITE_DONE)
        code = hf__sqlite_fail(s, result, "read", err);
    hf__sqlite_done(q);
    return code;
}

/* It is synced: a checkpoint that was acknowledged must not go back after a power cut. */
int hf__sqlite_save_value(struct hf__sqlite *s, const struct hf__bid *bid,
                          const struct hf__value *value, hf_error *err)
{
    sqlite3_stmt *q;
    int code = hf__sqlite_statement(s, HF__SQLITE_STATEMENT_SET_VALUE, &q, err);

    if (code != 0)
        return code;
    sqlite3_bind_blob(q, 1, bid->name, (int)bid->name_len, SQLITE_STATIC);
    sqlite3_bind_int64(q, 2, (int64_t)s->record.value_generation);
    sqlite3_bind_int64(q, 3, (int64_t)s->record.value_order);
    sqlite3_bind_blob(q, 4, value->bytes, (int)value->len, SQLITE_STATIC);
    s->durable = true;
    return hf__sqlite_run(s, q, "write", err);
}

static int run_by_name(struct hf__sqlite *s, enum hf__sqlite_statement which,
                       const struct hf__bid *bid, hf_error *err)
{
    sqlite3_stmt *q;
    int code = hf__sqlite_statement(s, which, &q, err);

    if (code != 0)
        return code;
    sqlite3_bind_blob(q, 1, bid->name, (int)bid->name_len, SQLITE_STATIC);
    return hf__sqlite_run(s, q, "write", err);
}

int hf__sqlite_doubt_value(struct hf__sqlite *s, const struct hf__bid *bid, hf_error *err)
{
    s->durable = true;
    return run_by_name(s, HF__SQLITE_STATEMENT_DOUBT_VALUE, bid, err);
}

int hf__sqlite_drop_value(struct hf__sqlite *s, const struct hf__bid *bid, hf_error *err)
{
    return run_by_name(s, HF__SQLITE_STATEMENT_DROP_VALUE, bid, err);
}
