/* The error list as text, and the filling in of hf_error. */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/percent.h"
#include "base/utf8.h"

#include "base/banned.h"

static const struct code {
    int code, status;
    const char *name, *text;
} codes[] = {{HF_OK, 0, "HF_OK", "no error"},
#define X(code, value, status, text) {code, status, #code, text},
             HF_ERRORS(X)
#undef X
};

static const struct code *find(int code)
{
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        if (codes[i].code == code)
            return &codes[i];
    }
    return NULL;
}

const char *hf_code_name(int code)
{
    const struct code *c = find(code);

    return c != NULL ? c->name : "HF_?";
}

const char *hf_code_text(int code)
{
    const struct code *c = find(code);

    return c != NULL ? c->text : "not an error of holdfast";
}

int hf_code_exit_status(int code)
{
    const struct code *c = find(code);

    return c != NULL ? c->status : 70;
}

const char *hf_cause_text(hf_cause cause)
{
    static const char *const texts[] = {
#define X(id, text) text,
        HF_CAUSES(X)
#undef X
    };

    return (size_t)cause < sizeof texts / sizeof texts[0] ? texts[cause] : "?";
}

static void set_code(hf_error *err, int code)
{
    err->code = code;
    err->retriable = code == HF_BUSY || code == HF_TIMEOUT || code == HF_UNAVAILABLE ||
                     code == HF_UNKNOWN || code == HF_FULL;
    err->store_code = 0;
    err->may_hold_ms = 0;
    memset(err->reserved, 0, sizeof err->reserved);
}

/* Where the text may have been cut. */
static void end_whole(hf_error *err)
{
    err->text[hf__utf8_whole(err->text, strlen(err->text))] = '\0';
}

int hf__fail(hf_error *err, int code, const char *format, ...)
{
    va_list args;

    if (err == NULL)
        return code;
    set_code(err, code);
    if (format == NULL) {
        snprintf(err->text, sizeof err->text, "%s", hf_code_text(code));
        return code;
    }
    va_start(args, format);
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    end_whole(err);
    return code;
}

const char *hf__errno_text(int error, char *buf, size_t size)
{
#ifdef __GLIBC__ /* and then _GNU_SOURCE gives another function of that name */
    return strerror_r(error, buf, size);
#else
    return strerror_r(error, buf, size) == 0 ? buf : "an unknown error";
#endif
}

int hf__fail_errno(hf_error *err, int code, const char *format, ...)
{
    int saved = errno;
    char reason[80];
    va_list args;

    if (err == NULL)
        return code;
    set_code(err, code);
    err->store_code = saved;
    va_start(args, format);
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);

    size_t used = strlen(err->text);
    snprintf(err->text + used, sizeof err->text - used, ": %s",
             hf__errno_text(saved, reason, sizeof reason));
    end_whole(err);
    return code;
}

int hf__wrap(hf_error *err, int code, const char *format, ...)
{
    char inner[sizeof err->text];
    va_list args;

    if (err == NULL)
        return code;
    memcpy(inner, err->text, sizeof inner);
    va_start(args, format);
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);

    size_t used = strlen(err->text);
    snprintf(err->text + used, sizeof err->text - used, ": %s", inner);
    end_whole(err);
    err->code = code;
    return code;
}

void hf__set_store_code(hf_error *err, long store_code)
{
    if (err != NULL)
        err->store_code = store_code;
}

enum wording { NAME, SENTENCE };

/* One character, whole or not at all. */
static size_t put(char *to, size_t room, const char *bytes, size_t len, bool plain)
{
    if (room < (plain ? len : 3 * len))
        return 0;
    for (size_t i = 0; i < len; i++)
        to += hf__percent_put(to, 3, bytes[i], plain);
    return plain ? len : 3 * len;
}

static const char *show(const char *bytes, size_t len, enum wording wording, char *buf, size_t size)
{
    size_t out = 0, n;
    uint32_t c = 0;

    for (size_t i = 0; i < len; i += n) {
        n = hf__utf8_decode(bytes + i, len - i, &c);
        bool plain = n > 0 && hf__utf8_is_visible(c);
        bool at_edge = i == 0 || i + 1 == len;
        if (wording == NAME && (c == '%' || (c == ' ' && at_edge)))
            plain = false;
        if (n == 0)
            n = 1;
        size_t written = put(buf + out, size - out - sizeof "...", bytes + i, n, plain);
        if (written == 0) {
            memcpy(buf + out, "...", sizeof "...");
            return buf;
        }
        out += written;
    }
    buf[out] = '\0';
    return buf;
}

const char *hf__printable(const char *bytes, size_t len, char *buf, size_t size)
{
    return show(bytes, len, NAME, buf, size);
}

const char *hf__sentence(const char *bytes, size_t len, char *buf, size_t size)
{
    return show(bytes, len, SENTENCE, buf, size);
}
