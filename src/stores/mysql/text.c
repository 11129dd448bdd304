/* A statement as it is put together. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "stores/mysql/mysql.h"

#include "base/banned.h"

static bool make_room(struct hf__my_text *t, size_t more)
{
    if (t->failed)
        return false;
    if (t->len + more < t->capacity)
        return true;
    size_t capacity = 2 * (t->len + more) + 1000;
    char *grown = realloc(t->data, capacity);
    if (grown == NULL) {
        t->failed = true;
        return false;
    }
    t->data = grown;
    t->capacity = capacity;
    return true;
}

static void add_plain(struct hf__my_text *t, const char *text)
{
    size_t len = strlen(text);

    if (!make_room(t, len + 1))
        return;
    memcpy(t->data + t->len, text, len + 1);
    t->len += len;
}

void hf__my_add(struct hf__my_text *t, const char *format, ...)
{
    va_list args, again;

    if (strchr(format, '%') == NULL) { /* most of a statement is */
        add_plain(t, format);
        return;
    }
    va_start(args, format);
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, format, args);
    if (len >= 0 && make_room(t, (size_t)len + 1)) {
        vsnprintf(t->data + t->len, (size_t)len + 1, format, again);
        t->len += (size_t)len;
    }
    va_end(again);
    va_end(args);
}

/* Gives back what follows. */
static char *put_hex(char *to, const void *bytes, size_t len)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *from = bytes;

    for (size_t i = 0; i < len; i++) {
        *to++ = digits[from[i] >> 4];
        *to++ = digits[from[i] & 15];
    }
    *to = '\0';
    return to;
}

void hf__my_add_hex(struct hf__my_text *t, const void *bytes, size_t len)
{
    if (make_room(t, 2 * len + 1))
        t->len = (size_t)(put_hex(t->data + t->len, bytes, len) - t->data);
}

const char *hf__my_literal(const void *bytes, size_t len, char buf[HF__MY_LITERAL])
{
    memcpy(buf, "x'", 2);
    memcpy(put_hex(buf + 2, bytes, len), "'", 2);
    return buf;
}

void hf__my_add_bytes(struct hf__my_text *t, const void *bytes, size_t len)
{
    hf__my_add(t, "x'");
    hf__my_add_hex(t, bytes, len);
    hf__my_add(t, "'");
}

/* The server refuses a statement for one byte that is not text, and a lock must not fail because of
 * a program's odd name. */
void hf__my_add_text(struct hf__my_text *t, const char *text)
{
    uint32_t c;

    if (text == NULL) {
        hf__my_add(t, "NULL");
        return;
    }
    hf__my_add(t, "_utf8mb4 x'");
    while (*text != '\0') {
        size_t len = hf__utf8_decode(text, strnlen(text, 4), &c);
        hf__my_add_hex(t, len > 0 ? text : "?", len > 0 ? len : 1);
        text += len > 0 ? len : 1;
    }
    hf__my_add(t, "'");
}

void hf__my_add_short(struct hf__my_text *t, const char *text)
{
    bool fits = strlen(text) <= 255;

    hf__my_add(t, fits ? "" : "LEFT(");
    hf__my_add_text(t, text);
    hf__my_add(t, fits ? "" : ", 255)");
}

void hf__my_add_or_null(struct hf__my_text *t, int64_t number, int64_t null)
{
    if (number == null)
        hf__my_add(t, "NULL");
    else
        hf__my_add(t, "%" PRId64, number);
}

void hf__my_add_statement(struct hf__my_text *t, const char *sql, const char *const *values)
{
    for (const char *mark; !t->failed && (mark = strchr(sql, '?')) != NULL; sql = mark + 2)
        hf__my_add(t, "%.*s%s", (int)(mark - sql), sql, values[mark[1] - '1']);
    add_plain(t, sql);
}

void hf__my_text_clear(struct hf__my_text *t)
{
    free(t->data);
    *t = (struct hf__my_text){0};
}
