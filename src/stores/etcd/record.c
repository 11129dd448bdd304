/* See record.h. A reader of as much JSON as there is in our records: an object of texts and numbers,
 * in which nothing is nested. What is more is a stranger's. */
#include "stores/etcd/record.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "stores/etcd/etcd.h"

#include "base/banned.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* Reading. ------------------------------------------------------------------------------------- */
struct parser {
    const char *at, *end;
    char *
        into; /* where the next text is written, with a NUL: never longer than what it was read from */
};

static void skip_blanks(struct parser *p)
{
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\t' || *p->at == '\n' || *p->at == '\r'))
        p->at++;
}

static bool skip(struct parser *p, char expected)
{
    skip_blanks(p);
    if (p->at == p->end || *p->at != expected)
        return false;
    p->at++;
    skip_blanks(p);
    return true;
}

static bool read_hex(struct parser *p, uint32_t *ret_number)
{
    *ret_number = 0;
    if (p->end - p->at < 4)
        return false;
    for (int i = 0; i < 4; i++) {
        char c = *p->at++;
        uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                         : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
                         : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
                                                : 16;
        if (digit == 16)
            return false;
        *ret_number = *ret_number << 4 | digit;
    }
    return true;
}

static void put_utf8(struct parser *p, uint32_t c)
{
    int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const unsigned char first[] = {0, 0xc0, 0xe0, 0xf0};

    *p->into++ = (char)(first[more] | c >> (6 * more));
    while (more-- > 0)
        *p->into++ = (char)(0x80 | (c >> (6 * more) & 0x3f));
}

/* After the 'u'. A character beyond 16 bits is a pair of halves. */
static bool read_unicode(struct parser *p)
{
    uint32_t c, low;

    if (!read_hex(p, &c) || c == 0 || (c >= 0xdc00 && c < 0xe000))
        return false;
    if (c >= 0xd800 && c < 0xdc00) {
        if (p->end - p->at < 2 || p->at[0] != '\\' || p->at[1] != 'u')
            return false;
        p->at += 2;
        if (!read_hex(p, &low) || low < 0xdc00 || low >= 0xe000)
            return false;
        c = 0x10000 + ((c & 0x3ff) << 10 | (low & 0x3ff));
    }
    put_utf8(p, c);
    return true;
}

static bool read_escape(struct parser *p)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";

    if (p->at == p->end)
        return false;
    char c = *p->at++;
    if (c == 'u')
        return read_unicode(p);
    const char *known = c != '\0' ? strchr(from, c) : NULL;
    if (known != NULL)
        *p->into++ = to[known - from];
    return known != NULL;
}

static const char *read_text(struct parser *p)
{
    const char *text = p->into;

    if (p->at == p->end || *p->at++ != '"')
        return NULL;
    while (p->at < p->end) {
        char c = *p->at++;
        if (c == '"') {
            *p->into++ = '\0';
            return text;
        }
        if ((unsigned char)c < 0x20 || (c == '\\' && !read_escape(p)))
            return NULL;
        if (c != '\\')
            *p->into++ = c;
    }
    return NULL;
}

static bool read_number(struct parser *p, int64_t *ret_number)
{
    char text[24];
    size_t len = 0;
    char *rest;

    while (p->at < p->end && len < sizeof text - 1 &&
           ((*p->at >= '0' && *p->at <= '9') || (*p->at == '-' && len == 0)))
        text[len++] = *p->at++;
    text[len] = '\0';
    errno = 0;
    *ret_number = strtoll(text, &rest, 10);
    return len > 0 && *rest == '\0' && errno == 0;
}

static bool read_field(struct parser *p, struct hf__etcd_field *f)
{
    f->name = read_text(p);
    if (f->name == NULL || !skip(p, ':') || p->at == p->end)
        return false;
    if (*p->at != '"')
        return read_number(p, &f->number);
    f->text = read_text(p);
    return f->text != NULL;
}

bool hf__etcd_record_read(struct hf__slice value, struct hf__etcd_record *ret)
{
    struct parser p = {.at = value.data, .end = value.data + value.len};

    *ret = (struct hf__etcd_record){0};
    if (value.len == 0 || !hf__is_text(value.data, value.len) ||
        (ret->texts = p.into = malloc(value.len + 1)) == NULL || !skip(&p, '{'))
        return false;
    if (!skip(&p, '}')) {
        do {
            if (ret->count == HF__ETCD_FIELDS || !read_field(&p, &ret->fields[ret->count]))
                return false;
            ret->count++;
        } while (skip(&p, ','));
        if (!skip(&p, '}'))
            return false;
    }
    return p.at == p.end;
}

void hf__etcd_record_clear(struct hf__etcd_record *r)
{
    free(r->texts);
    *r = (struct hf__etcd_record){0};
}

static const struct hf__etcd_field *find(const struct hf__etcd_record *r, const char *name)
{
    for (size_t i = r->count; i-- > 0;) {
        if (strcmp(r->fields[i].name, name) == 0)
            return &r->fields[i];
    }
    return NULL;
}

const char *hf__etcd_record_text(const struct hf__etcd_record *r, const char *name)
{
    const struct hf__etcd_field *f = find(r, name);

    return f != NULL ? f->text : NULL;
}

int64_t hf__etcd_record_number(const struct hf__etcd_record *r, const char *name)
{
    const struct hf__etcd_field *f = find(r, name);

    return f == NULL ? 0 : f->text != NULL ? strtoll(f->text, NULL, 10) : f->number;
}

int64_t hf__etcd_record_since(const struct hf__etcd_record *r)
{
    int64_t since_ms = hf__etcd_record_number(r, "since_ms");

    return since_ms > 0 && since_ms < INT64_C(1) << 53 ? since_ms : 0;
}

/* In place: it gets shorter. */
static void decode_base64(char *text)
{
    char *into = text;
    uint32_t bits = 0;
    unsigned have = 0;

    for (const char *at, *in = text; *in != '\0' && (at = strchr(digits, *in)) != NULL; in++) {
        bits = bits << 6 | (uint32_t)(at - digits);
        have += 6;
        if (have < 8)
            continue;
        have -= 8;
        *into++ = (char)(bits >> have & 0xff);
    }
    *into = '\0';
}

/* A text that may have been written as base64. */
static const char *read_words(const struct hf__etcd_record *r, const char *name)
{
    char other[24];
    const char *text = hf__etcd_record_text(r, name);

    if (text != NULL)
        return text;
    snprintf(other, sizeof other, "%s64", name);
    text = hf__etcd_record_text(r, other);
    if (text == NULL)
        return "";
    decode_base64(r->texts + (text - r->texts));
    return text;
}

bool hf__etcd_details_read(struct hf__slice value, struct hf__etcd_details *ret)
{
    *ret = (struct hf__etcd_details){.ttl_ms = HF__NEVER, .who = {"", "", "", "", 0}};
    if (!hf__etcd_record_read(value, &ret->keep))
        return false;
    const struct hf__etcd_record *r = &ret->keep;
    const char *ticket = hf__etcd_record_text(r, "ticket");
    const char *inbox = hf__etcd_record_text(r, "inbox");
    if (ticket == NULL || !hf__ticket_parse(ticket, &ret->ticket))
        return false;
    int64_t ttl_ms = hf__etcd_record_number(r, "ttl_ms");
    ret->delay_ms = hf__etcd_record_number(r, "delay_ms");
    ret->since_ms = hf__etcd_record_since(r);
    ret->tells = hf__etcd_record_number(r, "tell") != 0;
    if (ttl_ms < 0 || ttl_ms > HF_TTL_MAX_MS || ret->delay_ms < 0 ||
        ret->delay_ms > HF_DELAY_MAX_MS)
        return false; /* none of ours writes this */
    ret->ttl_ms = hf__ttl_of_stored(ttl_ms);
    snprintf(ret->inbox, sizeof ret->inbox, "%s", inbox != NULL ? inbox : "");
    ret->who = (struct hf__who){.host = read_words(r, "host"),
                                .user = read_words(r, "user"),
                                .program = read_words(r, "program"),
                                .note = read_words(r, "note"),
                                .pid = hf__etcd_record_number(r, "pid")};
    return true;
}

void hf__etcd_details_clear(struct hf__etcd_details *d)
{
    hf__etcd_record_clear(&d->keep);
}

/* Writing. ------------------------------------------------------------------------------------- */
static void add(struct hf__buffer *b, const char *text)
{
    hf__buffer_add(b, text, strlen(text));
}

static void add_number(struct hf__buffer *b, const char *name, int64_t number)
{
    char text[60];

    snprintf(text, sizeof text, ",\"%s\":%" PRId64, name, number);
    add(b, text);
}

static void add_base64(struct hf__buffer *b, const char *text)
{
    size_t len = strlen(text);
    const unsigned char *in = (const unsigned char *)text;

    for (size_t i = 0; i < len; i += 3) {
        size_t have = len - i < 3 ? len - i : 3;
        uint32_t three = (uint32_t)in[i] << 16 | (have > 1 ? (uint32_t)in[i + 1] << 8 : 0) |
                         (have > 2 ? in[i + 2] : 0);
        char four[4] = {digits[three >> 18], digits[three >> 12 & 63],
                        have > 1 ? digits[three >> 6 & 63] : '=',
                        have > 2 ? digits[three & 63] : '='};
        hf__buffer_add(b, four, sizeof four);
    }
}

static void add_text(struct hf__buffer *b, const char *name, const char *text)
{
    bool is_text = hf__is_text(text, strlen(text));

    add(b, ",\"");
    add(b, name);
    add(b, is_text ? "\":\"" : "64\":\"");
    if (!is_text)
        add_base64(b, text);
    for (; is_text && *text != '\0'; text++) {
        char escape[8];
        if (*text == '"' || *text == '\\')
            snprintf(escape, sizeof escape, "\\%c", *text);
        else if ((unsigned char)*text < 0x20)
            snprintf(escape, sizeof escape, "\\u%04x", (unsigned char)*text);
        else
            snprintf(escape, sizeof escape, "%c", *text);
        add(b, escape);
    }
    add(b, "\"");
}

char *hf__etcd_details_text(const struct hf__etcd *e, const struct hf__bid *bid)
{
    const struct hf_env *env = e->base.host->env;
    const struct hf__who *who = bid->who != NULL ? bid->who : e->base.host->self;
    struct hf__buffer b = {0};
    char ticket[HF_TICKET_SIZE];

    hf__ticket_format(&bid->ticket, ticket);
    add(&b, "{\"ticket\":\"");
    add(&b, ticket);
    add(&b, "\"");
    add_number(&b, "ttl_ms", hf__ttl_stored(bid->ttl_ms));
    add_number(&b, "delay_ms", bid->lock_delay_ms);
    add_number(&b, "since_ms", (int64_t)(env->wall_us(env->ctx) / 1000));
    add_number(&b, "pid", who->pid);
    add_text(&b, "inbox", e->inbox);
    add_text(&b, "host", who->host);
    add_text(&b, "user", who->user);
    add_text(&b, "program", who->program);
    add_text(&b, "note", who->note);
    if (bid->tell)
        add_number(&b, "tell", 1);
    hf__buffer_add(&b, "}", 2);
    if (!b.failed)
        return b.data;
    hf__buffer_clear(&b);
    return NULL;
}

void hf__etcd_mark_value(const struct hf__etcd *e, char ret_value[HF__ETCD_MARK_VALUE])
{
    const struct hf_env *env = e->base.host->env;

    snprintf(ret_value, HF__ETCD_MARK_VALUE, "{\"since_ms\":%" PRIu64 "}",
             (uint64_t)(env->wall_us(env->ctx) / 1000));
}
