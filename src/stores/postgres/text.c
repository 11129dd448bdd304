/* See text.h. A database refuses a whole statement for one byte that is not text, and a lock must
 * not fail because of a program's odd name. */
#include "stores/postgres/text.h"

#include <stdio.h>

#include "util/banned.h"

/* The length of the character at `at`; 0 if it is not UTF-8. */
static size_t character(const unsigned char *at)
{
    size_t len = at[0] < 0x80                    ? 1
                 : at[0] >= 0xc2 && at[0] < 0xe0 ? 2
                 : at[0] >= 0xe0 && at[0] < 0xf0 ? 3
                 : at[0] >= 0xf0 && at[0] < 0xf5 ? 4
                                                 : 0;

    for (size_t i = 1; i < len; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    }
    if (len == 3 && ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] > 0x9f)))
        return 0; /* too long a form, or half of a pair */
    if (len == 4 && ((at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] > 0x8f)))
        return 0;
    return len;
}

bool hf__pg_is_text(const char *bytes, size_t len)
{
    for (size_t i = 0, n; i < len; i += n) {
        unsigned char at[5] = {0}; /* a character that is cut off ends in NUL */
        memcpy(at, bytes + i, len - i < 4 ? len - i : 4);
        n = character(at);
        if (n == 0 || at[0] == '\0')
            return false;
    }
    return true;
}

/* How one character is written: itself, or an escape. */
static size_t escape(const unsigned char *at, size_t len, char out[5])
{
    if (len == 0)
        return (size_t)snprintf(out, 5, "\\%03o", (unsigned)at[0]);
    if (at[0] == '\\')
        return (size_t)snprintf(out, 5, "\\\\");
    memcpy(out, at, len);
    return len;
}

static void copy(char *to, size_t size, const char *from)
{
    const unsigned char *at = (const unsigned char *)from;
    size_t used = 0;

    while (*at != '\0') {
        char out[5];
        size_t len = character(at), out_len = escape(at, len, out);
        if (used + out_len >= size)
            break;
        memcpy(to + used, out, out_len);
        used += out_len;
        at += len > 0 ? len : 1;
    }
    to[used] = '\0';
}

static bool is_octal(const char *at)
{
    return strspn(at, "01234567") >= 3;
}

char *hf__pg_plain(char *text)
{
    char *to = text;

    for (const char *from = text; *from != '\0';) {
        if (from[0] == '\\' && is_octal(from + 1)) {
            *to++ = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0'));
            from += 4;
        } else {
            from += from[0] == '\\' && from[1] == '\\';
            *to++ = *from++;
        }
    }
    *to = '\0';
    return text;
}

void hf__pg_who_init(struct hf__pg_who *who, const struct hf__who *from)
{
    copy(who->host, sizeof who->host, from->host);
    copy(who->user, sizeof who->user, from->user);
    copy(who->program, sizeof who->program, from->program);
    copy(who->note, sizeof who->note, from->note);
    who->pid = from->pid;
}
