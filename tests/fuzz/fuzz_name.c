/* Names, which are any bytes: each form in which they leave the library is printable and can be
 * read back. */
#include "base/error.h"
#include "base/sequencer.h"
#include "fuzz.h"

#include "cli/cli.h"
#include "cli/text.h"

static void check_visible(const char *text)
{
    REQUIRE(is_printable(text) && cli_width(text) <= strlen(text));
}

/* Reads %XX back in place and gives the new length. */
static size_t unescape(char *text, size_t len)
{
    size_t out = 0;

    for (size_t in = 0; in < len; in++, out++) {
        unsigned byte = (unsigned char)text[in];
        if (byte == '%') {
            REQUIRE(in + 2 < len && sscanf(text + in + 1, "%2X", &byte) == 1);
            in += 2;
        }
        text[out] = (char)byte;
    }
    return out;
}

static void check_printable(const char *name, size_t len)
{
    char *whole = malloc(3 * len + 4), shown[40];

    REQUIRE(whole != NULL);
    hf__printable(name, len, whole, 3 * len + 4);
    check_visible(whole);
    for (size_t room = 4; room <= sizeof shown; room++) {
        hf__printable(name, len, shown, room);
        REQUIRE(strnlen(shown, room) < room);
        if (strcmp(shown, whole) == 0)
            continue;
        size_t kept = strlen(shown) - 3;
        REQUIRE(strcmp(shown + kept, "...") == 0 && memcmp(shown, whole, kept) == 0);
    }
    REQUIRE(unescape(whole, strlen(whole)) == len && (len == 0 || memcmp(whole, name, len) == 0));
    free(whole);
}

static void check_sequencer(const char *name, size_t len)
{
    struct hf__sequencer s = {.mode = HF_SHARED, .generation = len, .name_len = len}, back;
    char text[HF_SEQUENCER_MAX];

    if (len > HF_NAME_MAX || len == 0)
        return;
    memcpy(s.name, name, len);
    REQUIRE(hf__sequencer_format(&s, text, sizeof text) == 0);
    REQUIRE(is_printable(text) && strchr(text, ' ') == NULL);
    REQUIRE(hf__sequencer_parse(text, &back, NULL) == 0);
    REQUIRE(back.name_len == len && memcmp(back.name, name, len) == 0);
}

/* What `print` writes, as a string. */
static char *printed(void (*print)(FILE *, const char *, size_t), const char *name, size_t len)
{
    char *text = NULL;
    size_t text_len = 0;
    FILE *out = open_memstream(&text, &text_len);

    REQUIRE(out != NULL);
    print(out, name, len);
    REQUIRE(fclose(out) == 0 && strlen(text) == text_len);
    return text;
}

/* Writes one character of \uXXXX as UTF-8; a pair of them above U+FFFF. */
static const char *read_unicode(const char *in, char **out)
{
    unsigned c, low;
    char *o = *out;

    REQUIRE(sscanf(in, "\\u%4x", &c) == 1);
    in += 6;
    if (c >= 0xd800 && c < 0xdc00) {
        REQUIRE(sscanf(in, "\\u%4x", &low) == 1 && low >= 0xdc00 && low < 0xe000);
        in += 6;
        c = 0x10000 + ((c & 0x3ff) << 10 | (low & 0x3ff));
        *o++ = (char)(0xf0 | c >> 18);
        *o++ = (char)(0x80 | (c >> 12 & 0x3f));
    } else if (c >= 0x800) {
        *o++ = (char)(0xe0 | c >> 12);
    }
    if (c >= 0x800)
        *o++ = (char)(0x80 | (c >> 6 & 0x3f));
    else if (c >= 0x80)
        *o++ = (char)(0xc0 | c >> 6);
    *o++ = (char)(c >= 0x80 ? 0x80 | (c & 0x3f) : c);
    *out = o;
    return in;
}

/* Reads one JSON string in place, without its quotes, and gives its length. */
static size_t read_json(char *text)
{
    const char *in = text + 1;
    char *out = text;

    REQUIRE(text[0] == '"');
    while (*in != '"') {
        REQUIRE((unsigned char)*in >= 0x20);
        if (*in == '\\' && in[1] == 'u') {
            in = read_unicode(in, &out);
            continue;
        }
        if (*in == '\\')
            in++;
        *out++ = *in++;
    }
    REQUIRE(in[1] == '\0');
    return (size_t)(out - text);
}

static void check_json(const char *name, size_t len)
{
    char *text = printed(cli_print_json_string, name, len);

    check_visible(text);
    REQUIRE(unescape(text, read_json(text)) == len && (len == 0 || memcmp(text, name, len) == 0));
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *name = (const char *)data;

    check_printable(name, size);
    check_sequencer(name, size);
    check_json(name, size);
    return 0;
}
