/* Frames: the header, and putting the pieces that arrive together again. Segments are in
 * segment.c. */
#include "cql/frame.h"

#include <stdlib.h>
#include <string.h>

#include "cql/segment.h"

#include "base/banned.h"

#define ANSWER 0x80 /* the bit of the version that marks one */

void hf__cql_begin_frame(struct hf__cql_writer *w, int version, enum hf__cql_opcode opcode)
{
    hf__cql_put_byte(w, (uint8_t)version);
    hf__cql_put_byte(w, 0);
    hf__cql_put_short(w, 0);
    hf__cql_put_byte(w, (uint8_t)opcode);
    hf__cql_put_int(w, 0);
}

void hf__cql_end_frame(struct hf__cql_writer *w)
{
    hf__cql_fill_int(w, 5, (int32_t)(w->len - HF__CQL_HEADER));
}

void hf__cql_set_stream(struct hf__cql_writer *w, int16_t stream)
{
    if (w->failed)
        return;
    w->data[2] = (unsigned char)(stream >> 8);
    w->data[3] = (unsigned char)stream;
}

void hf__cql_wrap_frame(struct hf__cql_writer *to, struct hf__cql_bytes frame, bool segmented)
{
    bool whole = frame.len <= HF__CQL_SEGMENT_MAX;

    if (!segmented) {
        hf__cql_put(to, frame.data, frame.len);
        return;
    }
    while (frame.len > 0) {
        size_t len = frame.len < HF__CQL_SEGMENT_MAX ? frame.len : HF__CQL_SEGMENT_MAX;
        hf__cql_put_segment(to, (struct hf__cql_bytes){frame.data, len}, whole);
        frame.data += len;
        frame.len -= len;
    }
}

static int not_cql(hf_error *err)
{
    return hf__fail(err, HF_CORRUPT,
                    "what answers does not speak CQL (if it wants TLS, write tls=verify)");
}

static int refuse_header(const struct hf__cql_header *h, hf_error *err)
{
    if (h->version < 3 || h->version > 5 || h->opcode > HF__CQL_OP_AUTH_SUCCESS)
        return not_cql(err);
    if (h->flags & HF__CQL_FLAG_COMPRESSED)
        return hf__fail(err, HF_CORRUPT, "the server compressed an answer without being asked");
    if (h->length > HF__CQL_ANSWER_MAX)
        return hf__fail(err, HF_CORRUPT, "the server's answer is longer than %d MiB",
                        HF__CQL_ANSWER_MAX >> 20);
    return 0;
}

static int read_header(struct hf__cql_decoder *d, hf_error *err)
{
    struct hf__cql_reader r = {.at = d->head, .left = sizeof d->head};
    struct hf__cql_header *h = &d->frame.header;
    uint8_t version = hf__cql_take_byte(&r);

    h->version = version & (uint8_t)~ANSWER;
    h->flags = hf__cql_take_byte(&r);
    h->stream = (int16_t)hf__cql_take_short(&r);
    h->opcode = hf__cql_take_byte(&r);
    h->length = (uint32_t)hf__cql_take_int(&r);
    if (!(version & ANSWER))
        return not_cql(err);
    int code = refuse_header(h, err);
    if (code != 0 || h->length == 0)
        return code;
    d->frame.body = malloc(h->length);
    return d->frame.body != NULL ? 0 : hf__fail(err, HF_NO_MEMORY, NULL);
}

static size_t move(unsigned char *to, size_t wanted, struct hf__cql_bytes *data)
{
    size_t len = data->len < wanted ? data->len : wanted;

    if (len > 0)
        memcpy(to, data->data, len);
    data->data += len;
    data->len -= len;
    return len;
}

/* Frames out of bytes that are nothing but frames. */
static int decode_plain(struct hf__cql_decoder *d, struct hf__cql_bytes *data,
                        struct hf__cql_frame *ret_frame, hf_error *err)
{
    if (d->head_len < HF__CQL_HEADER) {
        d->head_len += move(d->head + d->head_len, HF__CQL_HEADER - d->head_len, data);
        if (d->head_len < HF__CQL_HEADER)
            return 0;
        int code = read_header(d, err);
        if (code != 0)
            return code;
    }
    if (d->frame.body != NULL)
        d->body_len +=
            move(d->frame.body + d->body_len, d->frame.header.length - d->body_len, data);
    if (d->body_len < d->frame.header.length)
        return 0;
    *ret_frame = d->frame;
    d->frame = (struct hf__cql_frame){0};
    d->head_len = d->body_len = 0;
    return 1;
}

/* Frames out of the payload of a complete segment. */
static int decode_payload(struct hf__cql_decoder *d, struct hf__cql_frame *ret_frame, hf_error *err)
{
    bool whole = hf__cql_segment_is_whole(d->segment);
    struct hf__cql_bytes payload = {d->segment + d->payload_at,
                                    d->segment_size - HF__CQL_SEGMENT_TAIL - d->payload_at};

    if (whole && d->payload_at == HF__CQL_SEGMENT_HEAD && d->head_len > 0)
        return hf__fail(err, HF_CORRUPT, "the server broke off a frame between two segments");
    int code = decode_plain(d, &payload, ret_frame, err);
    d->payload_at = (size_t)(payload.data - d->segment);
    if (code == 0 && whole && d->head_len > 0)
        return hf__fail(err, HF_CORRUPT, "the server cut a frame in a whole segment");
    if (code >= 0 && payload.len == 0)
        d->payload_at = d->segment_len = d->segment_size = 0;
    return code;
}

static int decode_segment(struct hf__cql_decoder *d, struct hf__cql_bytes *data, hf_error *err)
{
    if (d->segment == NULL)
        d->segment = malloc(HF__CQL_SEGMENT_HEAD + HF__CQL_SEGMENT_MAX + HF__CQL_SEGMENT_TAIL);
    if (d->segment == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    if (d->segment_len < HF__CQL_SEGMENT_HEAD) {
        d->segment_len +=
            move(d->segment + d->segment_len, HF__CQL_SEGMENT_HEAD - d->segment_len, data);
        if (d->segment_len < HF__CQL_SEGMENT_HEAD)
            return 0;
        int code = hf__cql_check_segment_head(d->segment, &d->segment_size, err);
        if (code != 0)
            return code;
    }
    d->segment_len += move(d->segment + d->segment_len, d->segment_size - d->segment_len, data);
    if (d->segment_len < d->segment_size)
        return 0;
    d->payload_at = HF__CQL_SEGMENT_HEAD;
    return hf__cql_check_segment_tail(d->segment, d->segment_size, err);
}

int hf__cql_decode(struct hf__cql_decoder *d, struct hf__cql_bytes *data,
                   struct hf__cql_frame *ret_frame, hf_error *err)
{
    if (!d->segmented)
        return decode_plain(d, data, ret_frame, err);
    do {
        int code = d->payload_at == 0 ? decode_segment(d, data, err) : 0;
        if (code == 0 && d->payload_at > 0)
            code = decode_payload(d, ret_frame, err);
        if (code != 0)
            return code;
    } while (data->len > 0);
    return 0;
}

void hf__cql_decoder_clear(struct hf__cql_decoder *d)
{
    free(d->frame.body);
    free(d->segment);
    *d = (struct hf__cql_decoder){0};
}
