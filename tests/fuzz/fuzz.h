/* What the fuzz targets share. A target is a file with LLVMFuzzerTestOneInput: libFuzzer drives it
 * with -Dfuzz=true, replay.c with the kept corpus in every build. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(condition)                                                          \
    do {                                                                            \
        if (!(condition)) {                                                         \
            fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                                \
        }                                                                           \
    } while (0)

/* The input as a string, in a block of its own size so that a byte too far is seen. */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    REQUIRE(text != NULL);
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

static inline int is_printable(const char *text)
{
    size_t left = strlen(text), n;
    uint32_t c;

    for (; left > 0; text += n, left -= n) {
        n = hf__utf8_decode(text, left, &c);
        if (n == 0 || !hf__utf8_is_visible(c))
            return 0;
    }
    return 1;
}

#endif
