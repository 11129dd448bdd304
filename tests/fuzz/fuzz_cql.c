/* Answers of a CQL server: whatever comes, nothing is read that is not there, what is accepted can
 * be read to its end, and what is refused is refused in one printable line. The first byte says as
 * what the rest is taken: a stream of frames or of segments, or the body of one message. */
#include "cql/failure.h"
#include "cql/value.h"
#include "shape.h"

enum {
    FRAMES,
    SEGMENTS,
    RESULT_4,
    RESULT_5,
    ERROR_4,
    ERROR_5,
    PREPARED_4,
    PREPARED_5,
    FLAGGED,
    SHAPED
};

static void read_error(const struct hf__cql_frame *frame)
{
    struct hf__cql_failure failure;
    hf_error err;

    if (hf__cql_read_failure(frame, &failure, &err) == 0) {
        for (int kind = HF__CQL_KIND_READ; kind <= HF__CQL_KIND_SCHEMA; kind++) {
            int code = hf__cql_report(&failure, (enum hf__cql_kind)kind, &err);
            REQUIRE(code < 0 && (kind != HF__CQL_KIND_READ || code != HF_UNKNOWN));
        }
    }
    REQUIRE(is_printable(err.text));
}

static void read_prepared(const struct hf__cql_frame *frame)
{
    struct hf__cql_prepared prepared;

    if (hf__cql_read_prepared(frame, &prepared, NULL) == 0)
        REQUIRE(prepared.id_len > 0 && prepared.id_len <= HF__CQL_ID_MAX &&
                prepared.metadata_id_len <= HF__CQL_ID_MAX);
}

/* Every byte of every cell. */
static unsigned sum_rows(struct hf__cql_result *result)
{
    unsigned sum = 0;
    uint32_t rows = 0;

    for (; hf__cql_next_row(result); rows++) {
        for (uint32_t i = 0; i < result->column_count; i++) {
            struct hf__cql_bytes cell = hf__cql_column(result, i);
            for (size_t k = 0; k < cell.len; k++)
                sum += cell.data[k];
        }
    }
    REQUIRE(rows == result->row_count && !result->rest.failed && !result->row.failed);
    return sum;
}

/* Takes the body over. */
static void read_result(struct hf__cql_frame *frame)
{
    struct hf__cql_result result = {0};
    volatile unsigned sum;

    if (hf__cql_read_result(frame, &result, NULL) != 0)
        return;
    REQUIRE(hf__cql_column_of(&result, "owner") < (int)result.column_count);
    sum = sum_rows(&result);
    (void)sum;
    hf__cql_result_clear(&result);
}

static void read_stream(const uint8_t *data, size_t size, bool segmented)
{
    struct hf__cql_decoder decoder = {.segmented = segmented};
    hf_error err;
    int r = 0;

    for (size_t at = 0, n = 1; at < size && r == 0; at += n, n = n % 7 + 1) {
        struct hf__cql_bytes piece = {data + at, n < size - at ? n : size - at};
        struct hf__cql_frame frame;
        while ((r = hf__cql_decode(&decoder, &piece, &frame, &err)) > 0) {
            if (frame.header.opcode == HF__CQL_OP_RESULT)
                read_result(&frame);
            else if (frame.header.opcode == HF__CQL_OP_ERROR)
                read_error(&frame);
            free(frame.body);
        }
    }
    REQUIRE(r == 0 || (r == HF_CORRUPT && is_printable(err.text)));
    hf__cql_decoder_clear(&decoder);
}

static void read_body(int as, const uint8_t *data, size_t size)
{
    struct hf__cql_frame frame = {.header = {.version = as % 2 ? 5 : 4, .length = (uint32_t)size}};

    frame.header.flags =
        as == FLAGGED ? HF__CQL_FLAG_TRACED | HF__CQL_FLAG_WARNED | HF__CQL_FLAG_PAYLOAD : 0;
    frame.body = malloc(size > 0 ? size : 1);
    REQUIRE(frame.body != NULL);
    if (size > 0)
        memcpy(frame.body, data, size);
    if (as == ERROR_4 || as == ERROR_5)
        read_error(&frame);
    else if (as == PREPARED_4 || as == PREPARED_5)
        read_prepared(&frame);
    else
        read_result(&frame);
    free(frame.body);
}

/* A type of a column: one of the simple ones, or made of others. */
static void build_type(struct shape *s, struct hf__cql_writer *w, int depth)
{
    static const uint16_t types[] = {1, 2, 9, 12, 13, 0, 0x20, 0x21, 0x22, 0x30, 0x31, 0xffff};
    uint16_t type = types[shape_choose(s, depth > 18 ? 5 : 12)];

    hf__cql_put_short(w, type);
    if (type == 0)
        hf__cql_put_string(w, "custom");
    for (int i = type == 0x21 ? 2 : type == 0x20 || type == 0x22; i > 0; i--)
        build_type(s, w, depth + 1);
    if (type == 0x30 || type == 0x31) {
        unsigned fields = shape_choose(s, 4);
        for (int i = 0; i < 2 && type == 0x30; i++)
            hf__cql_put_string(w, "k");
        hf__cql_put_short(w, (uint16_t)fields);
        while (fields-- > 0) {
            if (type == 0x30)
                hf__cql_put_string(w, "f");
            build_type(s, w, depth + 1);
        }
    }
}

/* Rows whose counts and lengths are nearly right. */
static void build_rows(struct shape *s, struct hf__cql_writer *w)
{
    static const char *const names[] = {"owner", "name", "[applied]", ""};
    int32_t columns = (int32_t)shape_choose(s, 6), rows = (int32_t)shape_choose(s, 5);
    int32_t flags = (int32_t)shape_choose(s, 16);
    char cell[256];

    hf__cql_put_int(w, HF__CQL_RESULT_ROWS);
    hf__cql_put_int(w, flags);
    hf__cql_put_int(w, columns + (shape_choose(s, 16) == 15));
    if (flags & 2)
        hf__cql_put_bytes(w, (struct hf__cql_bytes){(const unsigned char *)"page", 4});
    if (flags & 8)
        hf__cql_put_short_bytes(w, (struct hf__cql_bytes){(const unsigned char *)"id", 2});
    for (int i = 0; i < (flags & 4 || !(flags & 1) ? 0 : 2); i++)
        hf__cql_put_string(w, "t");
    for (int32_t i = 0; i < columns && !(flags & 4); i++) {
        for (int k = 0; k < 2 && !(flags & 1); k++)
            hf__cql_put_string(w, "t");
        hf__cql_put_string(w, names[shape_choose(s, 4)]);
        build_type(s, w, 0);
    }
    hf__cql_put_int(w, shape_choose(s, 16) == 15 ? (int32_t)shape_number(s) : rows);
    for (int32_t i = rows * columns; i > 0; i--) {
        size_t len = shape_bytes(s, cell, sizeof cell);
        if (shape_choose(s, 16) == 15)
            hf__cql_put_int(w, (int32_t)shape_number(s));
        else
            hf__cql_put_bytes(w, (struct hf__cql_bytes){(const unsigned char *)cell, len});
    }
}

static void read_built(const uint8_t *data, size_t size)
{
    struct shape s = {data, size};
    struct hf__cql_writer w;

    hf__cql_writer_init(&w, 1 << 20);
    build_rows(&s, &w);
    if (!w.failed)
        read_body(RESULT_4, w.data, w.len);
    hf__cql_writer_clear(&w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0 || data[0] > SHAPED)
        return 0;
    if (data[0] == SHAPED) {
        read_built(data + 1, size - 1);
        return 0;
    }
    if (data[0] == FRAMES || data[0] == SEGMENTS)
        read_stream(data + 1, size - 1, data[0] == SEGMENTS);
    else
        read_body(data[0], data + 1, size - 1);
    return 0;
}
