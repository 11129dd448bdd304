/* Answers of the JSON gateway, and what the values of keys say: bytes are base64, 64-bit numbers are
 * strings, and what is 0 or empty is left out. Requests are written in request.c. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "stores/etcd/etcd.h"

#include "util/banned.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void hf__etcd_to_base64(const void *bytes, size_t len, char *ret_text)
{
    const unsigned char *in = bytes;

    for (size_t i = 0; i < len; i += 3) {
        size_t have = len - i < 3 ? len - i : 3;
        uint32_t three = (uint32_t)in[i] << 16;
        if (have > 1)
            three |= (uint32_t)in[i + 1] << 8;
        if (have > 2)
            three |= in[i + 2];
        *ret_text++ = digits[three >> 18];
        *ret_text++ = digits[three >> 12 & 63];
        *ret_text++ = have > 1 ? digits[three >> 6 & 63] : '=';
        *ret_text++ = have > 2 ? digits[three & 63] : '=';
    }
    *ret_text = '\0';
}

static json_t *b64_json(const void *bytes, size_t len)
{
    char *text = malloc(HF__ETCD_BASE64(len));

    if (text == NULL)
        return NULL;
    hf__etcd_to_base64(bytes, len, text);
    json_t *json = json_string(text);
    free(text);
    return json;
}

bool hf__etcd_unb64(const json_t *text, struct hf__etcd_key *ret_bytes)
{
    const char *in = json_string_value(text);
    uint32_t bits = 0;
    unsigned have = 0;

    ret_bytes->len = 0;
    if (in == NULL)
        return false;
    for (; *in != '\0' && *in != '='; in++) {
        const char *at = strchr(digits, *in);
        if (at == NULL)
            return false;
        bits = bits << 6 | (uint32_t)(at - digits);
        have += 6;
        if (have < 8)
            continue;
        have -= 8;
        if (ret_bytes->len == sizeof ret_bytes->bytes)
            return false;
        ret_bytes->bytes[ret_bytes->len++] = (char)(bits >> have & 0xff);
    }
    return true;
}

int64_t hf__etcd_int(const json_t *object, const char *field)
{
    const json_t *value = json_object_get(object, field);

    if (json_is_integer(value))
        return json_integer_value(value);
    const char *text = json_string_value(value);
    return text != NULL ? strtoll(text, NULL, 10) : 0;
}

uint64_t hf__etcd_revision(const json_t *answer)
{
    return (uint64_t)hf__etcd_int(json_object_get(answer, "header"), "revision");
}

const json_t *hf__etcd_nth(const json_t *answer, size_t n, const char *what)
{
    return json_object_get(json_array_get(json_object_get(answer, "responses"), n), what);
}

const json_t *hf__etcd_kv(const json_t *range, size_t n)
{
    return json_array_get(json_object_get(range, "kvs"), n);
}

/* Details of a bid. ---------------------------------------------------------------------------- */

/* JSON is UTF-8; what is not goes in as base64, under another name. */
static int set_text(json_t *object, const char *field, const char *text)
{
    json_t *plain = json_string(text);
    char other[24];

    if (plain != NULL)
        return json_object_set_new(object, field, plain);
    snprintf(other, sizeof other, "%s64", field);
    return json_object_set_new(object, other, b64_json(text, strlen(text)));
}

char *hf__etcd_details_text(const struct hf__etcd *e, const struct hf__bid *bid)
{
    const struct hf_env *env = e->base.host->env;
    const struct hf__who *who = bid->who != NULL ? bid->who : e->base.host->self;
    char ticket[HF_TICKET_SIZE];

    hf__ticket_format(&bid->ticket, ticket);
    json_t *d = json_pack("{s:s, s:I, s:I, s:I, s:I, s:s}", "ticket", ticket, "ttl_ms",
                          (json_int_t)bid->ttl_ms, "delay_ms", (json_int_t)bid->lock_delay_ms,
                          "since_ms", (json_int_t)(env->wall_us(env->ctx) / 1000), "pid",
                          (json_int_t)who->pid, "inbox", e->inbox);
    if (set_text(d, "host", who->host) < 0 || set_text(d, "user", who->user) < 0 ||
        set_text(d, "program", who->program) < 0 || set_text(d, "note", who->note) < 0) {
        json_decref(d);
        return NULL;
    }
    char *text = json_dumps(d, JSON_COMPACT);
    json_decref(d);
    return text;
}

static const char *text_of(const json_t *object, const char *field)
{
    const char *text = json_string_value(json_object_get(object, field));

    return text != NULL ? text : "";
}

static void read_note(const json_t *object, struct hf__etcd_details *d)
{
    struct hf__etcd_key bytes;
    const char *plain = text_of(object, "note");

    snprintf(d->note, sizeof d->note, "%s", plain);
    if (hf__etcd_unb64(json_object_get(object, "note64"), &bytes) && bytes.len <= HF_NOTE_MAX) {
        memcpy(d->note, bytes.bytes, bytes.len);
        d->note[bytes.len] = '\0';
    }
}

bool hf__etcd_details_read(const json_t *kv, struct hf__etcd_details *ret)
{
    struct hf__etcd_key value;

    *ret = (struct hf__etcd_details){.who = {"", "", "", "", 0}};
    if (!hf__etcd_unb64(json_object_get(kv, "value"), &value))
        return false;
    ret->keep = json_loadb(value.bytes, value.len, 0, NULL);
    const char *ticket = json_string_value(json_object_get(ret->keep, "ticket"));
    if (ticket == NULL || !hf__ticket_parse(ticket, &ret->ticket))
        return false;
    ret->ttl_ms = hf__etcd_int(ret->keep, "ttl_ms");
    ret->delay_ms = hf__etcd_int(ret->keep, "delay_ms");
    ret->since_ms = hf__etcd_int(ret->keep, "since_ms");
    snprintf(ret->inbox, sizeof ret->inbox, "%s", text_of(ret->keep, "inbox"));
    read_note(ret->keep, ret);
    ret->who = (struct hf__who){.host = text_of(ret->keep, "host"),
                                .user = text_of(ret->keep, "user"),
                                .program = text_of(ret->keep, "program"),
                                .note = ret->note,
                                .pid = hf__etcd_int(ret->keep, "pid")};
    return true;
}

void hf__etcd_details_clear(struct hf__etcd_details *d)
{
    json_decref(d->keep);
    d->keep = NULL;
}
