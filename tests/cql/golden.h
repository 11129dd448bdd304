/* Frames as people write them down: hex digits, 'text', blanks for the eye. */
#ifndef TESTS_CQL_GOLDEN_H
#define TESTS_CQL_GOLDEN_H

#include <ctype.h>
#include <stdlib.h>

#include "cql/frame.h"
#include "lib/check.h"

struct golden {
    unsigned char bytes[2048];
    size_t len;
};

static inline struct golden golden(const char *notes)
{
    struct golden g = {.len = 0};

    for (const char *at = notes; *at != '\0';) {
        char pair[3] = {at[0], at[0] != '\0' ? at[1] : '\0', '\0'};
        assert_true(g.len < sizeof g.bytes);
        if (*at == ' ') {
            at++;
        } else if (*at == '\'') {
            for (at++; *at != '\''; at++)
                g.bytes[g.len++] = (unsigned char)*at;
            at++;
        } else {
            if (!isxdigit((unsigned char)pair[0]) || !isxdigit((unsigned char)pair[1]))
                fail_msg("not hex: %s", at);
            g.bytes[g.len++] = (unsigned char)strtoul(pair, NULL, 16);
            at += 2;
        }
    }
    return g;
}

/* The bytes in a block of their own size, so that a sanitizer sees who reads past them. */
static inline struct hf__cql_frame golden_frame(const char *body, uint8_t version, uint8_t opcode)
{
    struct golden g = golden(body);
    struct hf__cql_frame frame = {
        .header = {.version = version, .opcode = opcode, .length = (uint32_t)g.len}};

    frame.body = malloc(g.len > 0 ? g.len : 1);
    assert_non_null(frame.body);
    memcpy(frame.body, g.bytes, g.len);
    return frame;
}

static inline struct hf__cql_frame shorter(const struct hf__cql_frame *frame, uint32_t len)
{
    struct hf__cql_frame cut = *frame;

    cut.header.length = len;
    cut.body = malloc(len > 0 ? len : 1);
    assert_non_null(cut.body);
    memcpy(cut.body, frame->body, len);
    return cut;
}

#endif
