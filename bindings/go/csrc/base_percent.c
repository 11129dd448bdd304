/* See percent.h. Upper-case digits are written, both are read. */
#include "base_percent.h"

#include "base_banned.h"

size_t hf__percent_put(char *to, size_t room, char byte, bool plain)
{
    static const char hex[] = "0123456789ABCDEF";
    unsigned char c = (unsigned char)byte;

    if (room < (plain ? 1 : 3))
        return 0;
    if (plain) {
        to[0] = byte;
        return 1;
    }
    to[0] = '%';
    to[1] = hex[c >> 4];
    to[2] = hex[c & 15];
    return 3;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

int hf__percent_get(const char *text, size_t len)
{
    if (len < 3 || text[0] != '%' || hex_digit(text[1]) < 0 || hex_digit(text[2]) < 0)
        return -1;
    return hex_digit(text[1]) << 4 | hex_digit(text[2]);
}
