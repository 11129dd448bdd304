/* Frames and segments: put together again however they are cut, and refused when they are not what
 * they should be. The segments are those that another driver makes. */
#include "cql/segment.h"
#include "golden.h"
#include "lib/random.h"

/* Everything in `bytes`, given in pieces of `piece` bytes; the headers of the frames that come out
 * are noted as "stream/opcode/length ". */
static int decode(struct hf__cql_decoder *d, const unsigned char *bytes, size_t len, size_t piece,
                  char *notes, size_t size)
{
    size_t used = 0;
    hf_error err;

    notes[0] = '\0';
    for (size_t at = 0; at < len; at += piece) {
        size_t n = len - at < piece ? len - at : piece;
        unsigned char *copy = malloc(n);
        struct hf__cql_bytes data = {copy, n};
        struct hf__cql_frame frame;
        int r;

        assert_non_null(copy);
        memcpy(copy, bytes + at, n);
        while ((r = hf__cql_decode(d, &data, &frame, &err)) > 0) {
            used += (size_t)snprintf(notes + used, size - used, "%d/%d/%u ", frame.header.stream,
                                     frame.header.opcode, frame.header.length);
            free(frame.body);
        }
        free(copy);
        if (r < 0)
            return r;
        assert_int_equal(data.len, 0);
    }
    return 0;
}

static void check_decode(const char *bytes, bool segmented, const char *wanted)
{
    struct golden g = golden(bytes);
    char notes[400];

    for (size_t piece = 1; piece <= g.len; piece++) {
        struct hf__cql_decoder d = {.segmented = segmented};
        check_number(bytes, decode(&d, g.bytes, g.len, piece, notes, sizeof notes), 0);
        check_text(bytes, notes, wanted);
        hf__cql_decoder_clear(&d);
    }
}

static void check_refused(const char *bytes, bool segmented)
{
    struct golden g = golden(bytes);
    struct hf__cql_decoder d = {.segmented = segmented};
    char notes[100];

    check_number(bytes, decode(&d, g.bytes, g.len, g.len, notes, sizeof notes), HF_CORRUPT);
    hf__cql_decoder_clear(&d);
}

static void frames_are_put_together_again(void **state)
{
    (void)state;
    check_decode("84 00 0001 02 00000000", false, "1/2/0 ");
    check_decode("84 00 0102 08 00000004 00000001  85 08 ffff 0c 00000000", false,
                 "258/8/4 -1/12/0 ");
}

static void what_is_no_frame_is_refused(void **state)
{
    (void)state;
    check_refused("04 00 0001 02 00000000", false);     /* a request */
    check_refused("82 00 0001 02 00000000", false);     /* version 2 */
    check_refused("86 00 0001 02 00000000", false);     /* version 6 */
    check_refused("84 01 0001 08 00000004", false);     /* compressed */
    check_refused("84 00 0001 11 00000000", false);     /* no such message */
    check_refused("84 00 0001 08 01000001", false);     /* a byte too long */
    check_refused("84 00 0001 08 ffffffff", false);     /* below zero */
    check_refused("'HTTP/1.1 400 Bad Request'", false); /* another protocol */
}

static void segments_are_those_of_another_driver(void **state)
{
    const unsigned char options[] = {5, 0, 0, 1, 5, 0, 0, 0, 0};
    struct golden wanted = golden("090002 a4c8c1 050000010500000000 b5557486");
    struct hf__cql_writer w;

    (void)state;
    hf__cql_writer_init(&w, 1000);
    hf__cql_wrap_frame(&w, (struct hf__cql_bytes){options, sizeof options}, true);
    assert_int_equal(w.len, wanted.len);
    assert_memory_equal(w.data, wanted.bytes, wanted.len);
    hf__cql_writer_clear(&w);

    check_decode("000002 6a36c4 d37e7744", true, "");
    check_decode("140002 adc429 850000010600000002 0000 850000020200000000 8fedb597", true,
                 "1/6/2 2/2/0 ");
    check_decode("050000 044823 8500000106 797a42cf  060000 2ce89b 000000020000 dbf875e1", true,
                 "1/6/2 ");
}

static void broken_segments_are_refused(void **state)
{
    (void)state;
    check_refused("140002 adc428 850000010600000002", true);          /* CRC24 */
    check_refused("150002 adc429 850000010600000002", true);          /* the length */
    check_refused("140000 adc429 850000010600000002", true);          /* the flag */
    check_refused("090002 a4c8c1 050000010500000000 b5557487", true); /* CRC32 */
    check_refused("090002 a4c8c1 050000010500000001 b5557486", true); /* the payload */
    check_refused("050000 044823 8500000106 797a42cf 000002 6a36c4 d37e7744",
                  true); /* broken off */
}

/* Larger than a segment: cut by us, put together by us. */
static void long_frames_span_segments(void **state)
{
    enum { BODY = 300000 };
    struct random random = {1};
    struct hf__cql_writer frame, wire;
    char notes[100];

    (void)state;
    hf__cql_writer_init(&frame, HF__CQL_REQUEST_MAX);
    hf__cql_writer_init(&wire, HF__CQL_REQUEST_MAX);
    hf__cql_begin_frame(&frame, 0x85, HF__CQL_OP_RESULT);
    for (size_t i = 0; i < BODY; i++)
        hf__cql_put_byte(&frame, (uint8_t)random_next(&random));
    hf__cql_end_frame(&frame);
    hf__cql_set_stream(&frame, 7);
    hf__cql_wrap_frame(&wire, (struct hf__cql_bytes){frame.data, frame.len}, true);
    assert_false(wire.failed);
    assert_int_equal(wire.len, frame.len + 3 * (HF__CQL_SEGMENT_HEAD + HF__CQL_SEGMENT_TAIL));
    for (size_t piece = 1000; piece <= wire.len; piece = piece * 3 + 1) {
        struct hf__cql_decoder d = {.segmented = true};
        assert_int_equal(decode(&d, wire.data, wire.len, piece, notes, sizeof notes), 0);
        assert_string_equal(notes, "7/8/300000 ");
        hf__cql_decoder_clear(&d);
    }
    hf__cql_writer_clear(&frame);
    hf__cql_writer_clear(&wire);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_are_put_together_again),
        cmocka_unit_test(what_is_no_frame_is_refused),
        cmocka_unit_test(segments_are_those_of_another_driver),
        cmocka_unit_test(broken_segments_are_refused),
        cmocka_unit_test(long_frames_span_segments),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
