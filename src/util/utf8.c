/* See utf8.h. */
#include "util/utf8.h"

#include "util/banned.h"

size_t hf__utf8_decode(const char *bytes, size_t len, uint32_t *ret_char)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *b = (const unsigned char *)bytes;
    size_t n = b[0] < 0x80 ? 1 : b[0] >= 0xf0 ? 4 : b[0] >= 0xe0 ? 3 : b[0] >= 0xc0 ? 2 : 0;

    if (n == 0 || n > len || b[0] > 0xf7)
        return 0;
    uint32_t c = n == 1 ? b[0] : b[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((b[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (b[i] & 0x3f);
    }
    if (c < smallest[n] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        return 0;
    *ret_char = c;
    return n;
}

bool hf__is_text(const char *bytes, size_t len)
{
    uint32_t c;

    for (size_t i = 0, n; i < len; i += n) {
        n = hf__utf8_decode(bytes + i, len - i, &c);
        if (n == 0 || c == 0)
            return false;
    }
    return true;
}
