/* See sequencer.h. Parsing is lenient and then compares with what formatting gives: that one test
 * refuses every other spelling (leading zeros, lower-case hex, needless escapes, cut ends), so that
 * two sequencers are the same grant only if they are the same text. */
#include "base_sequencer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base_error.h"
#include "base_percent.h"

#include "base_banned.h"

#define VERSION "hf1"
#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
#define PLAIN   LETTERS "._~/@+=,-"

static bool is_plain(char c)
{
    return c == ':' || (c != '\0' && strchr(PLAIN, c) != NULL);
}

static bool is_well_formed(const struct hf__sequencer *s)
{
    size_t hint_len = strnlen(s->hint, sizeof s->hint);

    return (s->mode == HF_SHARED || (s->mode == HF_EXCLUSIVE && !s->limited)) &&
           s->generation != 0 && hint_len < sizeof s->hint && strspn(s->hint, PLAIN) == hint_len &&
           s->name_len >= 1 && s->name_len <= sizeof s->name;
}

static char mode_letter(const struct hf__sequencer *s)
{
    if (s->mode == HF_EXCLUSIVE)
        return 'x';
    return s->limited ? 'l' : 's';
}

int hf__sequencer_format(const struct hf__sequencer *s, char *buf, size_t size)
{
    if (!is_well_formed(s))
        return HF_INVALID;
    int head =
        snprintf(buf, size, VERSION ":%c:%" PRIu64 ":%s:", mode_letter(s), s->generation, s->hint);
    size_t out = (size_t)head;
    for (size_t i = 0; i < s->name_len; i++) {
        size_t put = out < size ? hf__percent_put(buf + out, size - out - 1, s->name[i],
                                                  is_plain(s->name[i]))
                                : 0;
        if (put == 0)
            return HF_INVALID;
        out += put;
    }
    buf[out] = '\0';
    return 0;
}

/* Each of these reads one field at *at, and moves *at behind it and its colon. */

static bool read_mode(const char **at, struct hf__sequencer *s)
{
    char letter = (*at)[0];

    if (letter == '\0' || strchr("xsl", letter) == NULL || (*at)[1] != ':')
        return false;
    s->mode = letter == 'x' ? HF_EXCLUSIVE : HF_SHARED;
    s->limited = letter == 'l';
    *at += 2;
    return true;
}

static bool read_generation(const char **at, struct hf__sequencer *s)
{
    size_t digits = strspn(*at, "0123456789");

    if (digits < 1 || digits > 20 || (*at)[digits] != ':')
        return false;
    s->generation = strtoull(*at, NULL, 10); /* too large a one does not survive the comparison */
    *at += digits + 1;
    return true;
}

static bool read_hint(const char **at, struct hf__sequencer *s)
{
    size_t len = strspn(*at, PLAIN);

    if (len >= sizeof s->hint || (*at)[len] != ':')
        return false;
    memcpy(s->hint, *at, len);
    s->hint[len] = '\0';
    *at += len + 1;
    return true;
}

static bool read_name(const char *at, struct hf__sequencer *s)
{
    s->name_len = 0;
    for (; *at != '\0'; at++) {
        if (s->name_len == sizeof s->name)
            return false;
        int byte = *at;
        if (*at == '%') {
            byte = hf__percent_get(at, strnlen(at, 3));
            if (byte < 0)
                return false;
            at += 2;
        }
        s->name[s->name_len++] = (char)byte;
    }
    return true;
}

static bool read_all(const char *text, struct hf__sequencer *s)
{
    char again[HF_SEQUENCER_MAX];
    const char *at = text;

    if (strncmp(at, VERSION ":", sizeof VERSION) != 0)
        return false;
    at += sizeof VERSION;
    return read_mode(&at, s) && read_generation(&at, s) && read_hint(&at, s) && read_name(at, s) &&
           hf__sequencer_format(s, again, sizeof again) == 0 && strcmp(text, again) == 0;
}

int hf__sequencer_parse(const char *text, struct hf__sequencer *ret, hf_error *err)
{
    struct hf__sequencer s;
    char shown[80];

    if (text == NULL)
        return hf__fail(err, HF_INVALID, "a sequencer is needed");
    if (!read_all(text, &s))
        return hf__fail(err, HF_INVALID,
                        "'%s' is not a sequencer: give it exactly as it was printed",
                        hf__printable(text, strnlen(text, HF_SEQUENCER_MAX), shown, sizeof shown));
    *ret = s;
    return 0;
}
