/* RESULT messages: rows and what was prepared.
 *
 * The body is walked to its end when it arrives, so that reading rows later cannot run out of
 * bytes: nobody who uses rows has to ask whether the server lied about a length. */
#include <stdlib.h>
#include <string.h>

#include "cql/message.h"

#include "base/banned.h"

enum { GLOBAL_TABLE = 1, HAS_MORE = 2, NO_METADATA = 4, METADATA_CHANGED = 8 };
enum {
    TYPE_CUSTOM = 0,
    TYPE_LIST = 0x20,
    TYPE_MAP = 0x21,
    TYPE_SET = 0x22,
    TYPE_UDT = 0x30,
    TYPE_TUPLE = 0x31
};

#define TYPE_DEPTH_MAX 16 /* collections inside of each other */

struct hf__cql_reader hf__cql_message_of(const struct hf__cql_frame *frame)
{
    struct hf__cql_reader r = {.at = frame->body, .left = frame->header.length};

    if (frame->header.flags & HF__CQL_FLAG_TRACED)
        hf__cql_take(&r, 16);
    if (frame->header.flags & HF__CQL_FLAG_WARNED) {
        for (unsigned count = hf__cql_take_short(&r); count > 0 && !r.failed; count--)
            hf__cql_take_string(&r);
    }
    if (frame->header.flags & HF__CQL_FLAG_PAYLOAD) {
        for (unsigned count = hf__cql_take_short(&r); count > 0 && !r.failed; count--) {
            hf__cql_take_string(&r);
            hf__cql_take_bytes(&r);
        }
    }
    return r;
}

static void skip_type(struct hf__cql_reader *r, int depth);

static void skip_fields(struct hf__cql_reader *r, bool named, int depth)
{
    for (unsigned count = hf__cql_take_short(r); count > 0 && !r->failed; count--) {
        if (named)
            hf__cql_take_string(r);
        skip_type(r, depth);
    }
}

static void skip_type(struct hf__cql_reader *r, int depth)
{
    unsigned type = hf__cql_take_short(r);

    r->failed = r->failed || depth == 0;
    if (r->failed)
        return;
    switch (type) {
    case TYPE_CUSTOM:
        hf__cql_take_string(r);
        break;
    case TYPE_MAP:
        skip_type(r, depth - 1);
        skip_type(r, depth - 1);
        break;
    case TYPE_LIST:
    case TYPE_SET:
        skip_type(r, depth - 1);
        break;
    case TYPE_UDT:
        hf__cql_take_string(r);
        hf__cql_take_string(r);
        skip_fields(r, true, depth - 1);
        break;
    case TYPE_TUPLE:
        skip_fields(r, false, depth - 1);
        break;
    default: /* of one of the simple types, which have no more to say */
        break;
    }
}

/* Gives the column's name. */
static struct hf__cql_bytes take_spec(struct hf__cql_reader *r, bool has_table)
{
    if (has_table) {
        hf__cql_take_string(r);
        hf__cql_take_string(r);
    }
    struct hf__cql_bytes name = hf__cql_take_string(r);
    skip_type(r, TYPE_DEPTH_MAX);
    return name;
}

static void read_specs(struct hf__cql_reader *r, int32_t flags, struct hf__cql_result *ret)
{
    if (flags & GLOBAL_TABLE) {
        hf__cql_take_string(r);
        hf__cql_take_string(r);
    }
    ret->specs_have_table = !(flags & GLOBAL_TABLE);
    ret->specs = *r;
    for (uint32_t i = 0; i < ret->column_count && !r->failed; i++)
        take_spec(r, ret->specs_have_table);
    ret->specs.left -= r->left;
}

static void read_metadata(struct hf__cql_reader *r, struct hf__cql_result *ret)
{
    int32_t flags = hf__cql_take_int(r), columns = hf__cql_take_int(r);

    r->failed = r->failed || columns < 0 || columns > HF__CQL_COLUMNS_MAX;
    ret->column_count = r->failed ? 0 : (uint32_t)columns;
    if (flags & HAS_MORE)
        ret->paging_state = hf__cql_take_bytes(r);
    ret->has_more = ret->paging_state.data != NULL;
    if (flags & METADATA_CHANGED)
        hf__cql_take_short_bytes(r);
    if (!(flags & NO_METADATA) && !r->failed)
        read_specs(r, flags, ret);
}

static void read_rows(struct hf__cql_reader *r, struct hf__cql_result *ret)
{
    read_metadata(r, ret);
    ret->row_count = (uint32_t)hf__cql_take_count(r, 4 * (size_t)ret->column_count);
    r->failed = r->failed || (ret->row_count > 0 && ret->column_count == 0);
    ret->rest = *r;
    ret->rows_left = ret->row_count;
    for (uint64_t cells = (uint64_t)ret->row_count * ret->column_count; cells > 0 && !r->failed;
         cells--)
        hf__cql_take_bytes(r);
}

int hf__cql_read_result(struct hf__cql_frame *frame, struct hf__cql_result *ret_result,
                        hf_error *err)
{
    struct hf__cql_reader r = hf__cql_message_of(frame);
    int32_t kind = hf__cql_take_int(&r);

    ret_result->body = frame->body;
    frame->body = NULL;
    if (kind == HF__CQL_RESULT_ROWS)
        read_rows(&r, ret_result);
    if (r.failed || kind < HF__CQL_RESULT_VOID || kind > HF__CQL_RESULT_SCHEMA_CHANGE ||
        kind == HF__CQL_RESULT_PREPARED) {
        hf__cql_result_clear(ret_result);
        return hf__fail(err, HF_CORRUPT, "the server's answer is malformed");
    }
    return 0;
}

static bool keep_id(struct hf__cql_reader *r, unsigned char *id, size_t *ret_len)
{
    struct hf__cql_bytes bytes = hf__cql_take_short_bytes(r);

    if (r->failed || bytes.len == 0 || bytes.len > HF__CQL_ID_MAX)
        return false;
    memcpy(id, bytes.data, bytes.len);
    *ret_len = bytes.len;
    return true;
}

int hf__cql_read_prepared(const struct hf__cql_frame *frame, struct hf__cql_prepared *ret_prepared,
                          hf_error *err)
{
    struct hf__cql_reader r = hf__cql_message_of(frame);
    bool right = hf__cql_take_int(&r) == HF__CQL_RESULT_PREPARED &&
                 keep_id(&r, ret_prepared->id, &ret_prepared->id_len);

    ret_prepared->metadata_id_len = 0;
    if (right && frame->header.version >= 5)
        right = keep_id(&r, ret_prepared->metadata_id, &ret_prepared->metadata_id_len);
    return right ? 0 : hf__fail(err, HF_CORRUPT, "the server's answer to PREPARE is malformed");
}

/* Rows --------------------------------------------------------------------- */
bool hf__cql_next_row(struct hf__cql_result *result)
{
    if (result->rows_left == 0)
        return false;
    result->rows_left--;
    result->row = result->rest;
    for (uint32_t i = 0; i < result->column_count; i++)
        hf__cql_take_bytes(&result->rest);
    return true;
}

struct hf__cql_bytes hf__cql_column(const struct hf__cql_result *result, size_t index)
{
    struct hf__cql_reader r = result->row;

    if (index >= result->column_count)
        return (struct hf__cql_bytes){NULL, 0};
    while (index-- > 0)
        hf__cql_take_bytes(&r);
    return hf__cql_take_bytes(&r);
}

int hf__cql_column_of(const struct hf__cql_result *result, const char *name)
{
    struct hf__cql_reader r = result->specs;

    for (uint32_t i = 0; i < result->column_count && r.left > 0; i++) {
        struct hf__cql_bytes found = take_spec(&r, result->specs_have_table);
        if (found.len == strlen(name) && memcmp(found.data, name, found.len) == 0)
            return (int)i;
    }
    return -1;
}

int hf__cql_applied(struct hf__cql_result *result, bool *ret_applied, hf_error *err)
{
    if (!hf__cql_next_row(result) || hf__cql_column_of(result, "[applied]") != 0 ||
        !hf__cql_get_boolean(hf__cql_column(result, 0), ret_applied))
        return hf__fail(err, HF_UNKNOWN, "the server does not say whether it was applied");
    return 0;
}

void hf__cql_result_clear(struct hf__cql_result *result)
{
    int node = result->node;

    free(result->body);
    *result = (struct hf__cql_result){.node = node};
}
