/* Frames of the native protocol: nine bytes of header and a body; in v5, after the login, wrapped
 * into segments with checksums. No I/O here: bytes in, frames out, and the other way round.
 *
 *   frame     version(1) flags(1) stream(2) opcode(1) length(4) body
 *   segment   length(17 bits) self-contained(1 bit) CRC24(3) payload CRC32(4), little-endian
 *
 * A self-contained segment holds whole frames; a frame that does not fit one is cut into several
 * that are not. Compression is not spoken. */
#ifndef HF_CQL_FRAME_H
#define HF_CQL_FRAME_H

#include "base/error.h"
#include "cql/buffer.h"

#define HF__CQL_HEADER      9
#define HF__CQL_REQUEST_MAX (8 << 20)  /* bytes in a frame that we send; servers take 16 MiB */
#define HF__CQL_ANSWER_MAX  (16 << 20) /* in one that we take */
#define HF__CQL_SEGMENT_MAX ((1 << 17) - 1)

enum hf__cql_opcode {
    HF__CQL_OP_ERROR = 0x00,
    HF__CQL_OP_STARTUP = 0x01,
    HF__CQL_OP_READY = 0x02,
    HF__CQL_OP_AUTHENTICATE = 0x03,
    HF__CQL_OP_OPTIONS = 0x05,
    HF__CQL_OP_SUPPORTED = 0x06,
    HF__CQL_OP_QUERY = 0x07,
    HF__CQL_OP_RESULT = 0x08,
    HF__CQL_OP_PREPARE = 0x09,
    HF__CQL_OP_EXECUTE = 0x0a,
    HF__CQL_OP_EVENT = 0x0c,
    HF__CQL_OP_AUTH_CHALLENGE = 0x0e,
    HF__CQL_OP_AUTH_RESPONSE = 0x0f,
    HF__CQL_OP_AUTH_SUCCESS = 0x10,
};

enum hf__cql_flag {
    HF__CQL_FLAG_COMPRESSED = 0x01,
    HF__CQL_FLAG_TRACED = 0x02,  /* the body begins with a [uuid] */
    HF__CQL_FLAG_PAYLOAD = 0x04, /* then a [bytes map] */
    HF__CQL_FLAG_WARNED = 0x08,  /* before that a [string list] */
};

struct hf__cql_header {
    uint8_t version; /* without the bit that marks an answer */
    uint8_t flags;
    int16_t stream;
    uint8_t opcode;
    uint32_t length;
};

/* Encoding ----------------------------------------------------------------- */

/* Begins a request in an empty writer; hf__cql_end_frame() fills in the length. */
void hf__cql_begin_frame(struct hf__cql_writer *w, int version, enum hf__cql_opcode opcode);
void hf__cql_end_frame(struct hf__cql_writer *w);

/* The stream of a frame that is ready to be sent, and the version of one that was made for
 * another. */
void hf__cql_set_stream(struct hf__cql_writer *w, int16_t stream);

/* Appends a frame to `to`, in segments if `segmented`. */
void hf__cql_wrap_frame(struct hf__cql_writer *to, struct hf__cql_bytes frame, bool segmented);

/* Decoding ----------------------------------------------------------------- */

/* A whole frame as it came. */
struct hf__cql_frame {
    struct hf__cql_header header;
    unsigned char *body; /* the receiver's, to be freed; NULL if it is empty */
};

struct hf__cql_decoder {
    bool segmented; /* set by the user, between two frames, once the login says so */

    unsigned char head[HF__CQL_HEADER]; /* of the frame that is coming in */
    size_t head_len, body_len;
    struct hf__cql_frame frame;

    unsigned char *segment; /* header, payload, checksum of the segment that is coming in */
    size_t segment_len, segment_size;
    size_t payload_at; /* how much of a complete segment's payload was taken; 0: not complete */
};

/* Takes bytes, all or up to the end of a frame: moves `*data` behind what was taken. 1: a frame is
 * in *ret_frame; 0: give it more; or HF_CORRUPT (not this protocol, too long, a checksum that does
 * not fit), HF_NO_MEMORY: nothing more can be decoded. Call it until it gives 0: in a segment there
 * may be a frame left although the data are used up. */
int hf__cql_decode(struct hf__cql_decoder *d, struct hf__cql_bytes *data,
                   struct hf__cql_frame *ret_frame, hf_error *err);
void hf__cql_decoder_clear(struct hf__cql_decoder *d);

/* Checksums of segments ---------------------------------------------------- */
uint32_t hf__cql_crc24(const unsigned char *data, size_t len);
uint32_t hf__cql_crc32(const unsigned char *data, size_t len);

#endif
