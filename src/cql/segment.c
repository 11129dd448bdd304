/* Segments and their checksums.
 *
 * CRC24 covers the three bytes of length and flag: polynomial 0x1974f0b, started at 0x875060, most
 * significant bit first. CRC32 covers the payload: the usual one (as in zlib), but started as if
 * the bytes fa 2d 55 ca had come before. Our segments are short, so four bits at a time are fast
 * enough. */
#include "cql/segment.h"

#include "base/banned.h"

#define CRC24_START   0x875060u
#define CRC24_DIVISOR 0x1974f0bu
#define WHOLE         (1u << 17)

uint32_t hf__cql_crc24(const unsigned char *data, size_t len)
{
    uint32_t crc = CRC24_START;

    for (size_t i = 0; i < len; i++) {
        crc ^= (uint32_t)data[i] << 16;
        for (int bit = 0; bit < 8; bit++) {
            crc <<= 1;
            if (crc & 0x1000000u)
                crc ^= CRC24_DIVISOR;
        }
    }
    return crc;
}

static uint32_t crc32_more(uint32_t crc, const unsigned char *data, size_t len)
{
    static const uint32_t of_half[16] = {
        0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
        0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
        0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
    };

    for (size_t i = 0; i < len; i++) {
        crc ^= data[i];
        crc = crc >> 4 ^ of_half[crc & 15];
        crc = crc >> 4 ^ of_half[crc & 15];
    }
    return crc;
}

uint32_t hf__cql_crc32(const unsigned char *data, size_t len)
{
    static const unsigned char before[] = {0xfa, 0x2d, 0x55, 0xca};

    return ~crc32_more(crc32_more(~0u, before, sizeof before), data, len);
}

static void put_little(struct hf__cql_writer *w, uint32_t value, size_t size)
{
    for (size_t i = 0; i < size; i++)
        hf__cql_put_byte(w, (uint8_t)(value >> 8 * i));
}

static uint32_t get_little(const unsigned char *from, size_t size)
{
    uint32_t value = 0;

    for (size_t i = 0; i < size; i++)
        value |= (uint32_t)from[i] << 8 * i;
    return value;
}

void hf__cql_put_segment(struct hf__cql_writer *w, struct hf__cql_bytes payload, bool whole)
{
    uint32_t head = (uint32_t)payload.len | (whole ? WHOLE : 0);
    unsigned char bytes[3] = {(unsigned char)head, (unsigned char)(head >> 8),
                              (unsigned char)(head >> 16)};

    hf__cql_put(w, bytes, sizeof bytes);
    put_little(w, hf__cql_crc24(bytes, sizeof bytes), 3);
    hf__cql_put(w, payload.data, payload.len);
    put_little(w, hf__cql_crc32(payload.data, payload.len), 4);
}

int hf__cql_check_segment_head(const unsigned char *head, size_t *ret_size, hf_error *err)
{
    if (get_little(head + 3, 3) != hf__cql_crc24(head, 3))
        return hf__fail(err, HF_CORRUPT, "the checksum of a segment's header is wrong");
    *ret_size =
        HF__CQL_SEGMENT_HEAD + (get_little(head, 3) & HF__CQL_SEGMENT_MAX) + HF__CQL_SEGMENT_TAIL;
    return 0;
}

int hf__cql_check_segment_tail(const unsigned char *segment, size_t size, hf_error *err)
{
    const unsigned char *tail = segment + size - HF__CQL_SEGMENT_TAIL;
    const unsigned char *payload = segment + HF__CQL_SEGMENT_HEAD;

    if (get_little(tail, 4) != hf__cql_crc32(payload, (size_t)(tail - payload)))
        return hf__fail(err, HF_CORRUPT, "the checksum of a segment is wrong");
    return 0;
}

bool hf__cql_segment_is_whole(const unsigned char *head)
{
    return get_little(head, 3) & WHOLE;
}
