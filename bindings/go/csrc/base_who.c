/* See who.h. A database refuses a whole statement for one byte that is not text, and a lock must
 * not fail because of a program's odd name. */
#include "base_who.h"

#include <stdio.h>
#include <string.h>

#include "base_utf8.h"

#include "base_banned.h"

/* How one character is written: itself, or an escape. */
static size_t escape(const char *at, size_t len, char out[5])
{
    if (len == 0)
        return (size_t)snprintf(out, 5, "\\%03o", (unsigned)(unsigned char)at[0]);
    if (at[0] == '\\')
        return (size_t)snprintf(out, 5, "\\\\");
    memcpy(out, at, len);
    return len;
}

static void copy(char *to, size_t size, const char *at)
{
    size_t used = 0;
    uint32_t c;

    while (*at != '\0') {
        char out[5];
        size_t len = hf__utf8_decode(at, strnlen(at, 4), &c), out_len = escape(at, len, out);
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

char *hf__who_plain(char *text)
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

void hf__who_text_init(struct hf__who_text *who, const struct hf__who *from)
{
    copy(who->host, sizeof who->host, from->host);
    copy(who->user, sizeof who->user, from->user);
    copy(who->program, sizeof who->program, from->program);
    copy(who->note, sizeof who->note, from->note);
    who->pid = from->pid;
}
