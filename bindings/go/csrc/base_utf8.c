/* See utf8.h. */
#include "base_utf8.h"

#include "base_banned.h"

/* Of a character that begins so; 0: none does. */
static size_t length_of(unsigned char first)
{
    return first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 0;
}

size_t hf__utf8_decode(const char *bytes, size_t len, uint32_t *ret_char)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *b = (const unsigned char *)bytes;
    size_t n = length_of(b[0]);

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

size_t hf__utf8_whole(const char *bytes, size_t len)
{
    for (size_t back = 1; back <= 3 && back <= len; back++) {
        size_t n = length_of((unsigned char)bytes[len - back]);
        if (n > 0)
            return n > back ? len - back : len;
    }
    return len;
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

bool hf__utf8_is_visible(uint32_t c)
{
    static const struct {
        uint32_t first, last;
    } hidden[] = {
        {0x00, 0x1f},       {0x7f, 0x9f},       {0xad, 0xad},     {0x34f, 0x34f},
        {0x61c, 0x61c},     {0x115f, 0x1160},   {0x17b4, 0x17b5}, {0x180b, 0x180f},
        {0x200b, 0x200f},   {0x2028, 0x202e},   {0x2060, 0x206f}, {0x3164, 0x3164},
        {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},   {0xffa0, 0xffa0}, {0xfff0, 0xfffb},
        {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
    };

    for (size_t i = 0; i < sizeof hidden / sizeof hidden[0]; i++) {
        if (c >= hidden[i].first && c <= hidden[i].last)
            return false;
    }
    return true;
}
