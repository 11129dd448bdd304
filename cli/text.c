/* How wide characters are on a terminal. The locale is not asked: it would cost a millisecond
 * at start, and a terminal of today speaks UTF-8. */
#include "text.h"

#include <string.h>

#include "base/banned.h"

struct range {
    uint32_t first, last;
};

static bool within(uint32_t c, const struct range *ranges, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (c >= ranges[i].first && c <= ranges[i].last)
            return true;
    }
    return false;
}

#define WITHIN(c, ranges) within(c, ranges, sizeof(ranges) / sizeof((ranges)[0]))

static size_t char_width(uint32_t c)
{
    static const struct range none[] = {{0x300, 0x36f}, {0x1ab0, 0x1aff}, {0x20d0, 0x20ff}};
    static const struct range wide[] = {
        {0x1100, 0x115e},   {0x2e80, 0x303e},   {0x3041, 0xa4cf}, {0xac00, 0xd7a3},
        {0xf900, 0xfaff},   {0xfe30, 0xfe6f},   {0xff01, 0xff60}, {0xffe0, 0xffe6},
        {0x1f300, 0x1faff}, {0x20000, 0x3fffd},
    };

    return WITHIN(c, none) ? 0 : WITHIN(c, wide) ? 2 : 1;
}

/* The length of the character that the text begins with, and the columns that it takes. */
static size_t step(const char *text, size_t left, size_t *ret_columns)
{
    uint32_t c;
    size_t n = hf__utf8_decode(text, left, &c);

    *ret_columns = n > 0 ? char_width(c) : 1;
    return n > 0 ? n : 1;
}

size_t cli_fit(const char *text, size_t columns)
{
    size_t len = strlen(text), used = 0, width;

    while (used < len) {
        size_t n = step(text + used, len - used, &width);
        if (width > columns)
            break;
        columns -= width;
        used += n;
    }
    return used;
}

size_t cli_width(const char *text)
{
    size_t total = 0, left = strlen(text), width, n;

    for (; left > 0; text += n, left -= n) {
        n = step(text, left, &width);
        total += width;
    }
    return total;
}
