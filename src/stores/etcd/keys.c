/* See keys.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "stores/etcd/etcd.h"

#include "base/banned.h"

static const char *const kinds[] = {"", ".holdfast/inside/", ".holdfast/broken/",
                                    ".holdfast/opened/", ".holdfast/value/"};

/* Clients may choose their leases' numbers: so a grant whose answer was lost is simply asked for
 * again, and everybody who knows a ticket knows its keys. */
int64_t hf__etcd_lease_of(const struct hf__ticket *ticket)
{
    uint64_t number = 0;

    for (size_t i = 0; i < 8; i++)
        number = number << 8 | ticket->bits[i];
    number &= INT64_MAX;
    return number != 0 ? (int64_t)number : 1;
}

static void add(struct hf__etcd_key *key, const void *bytes, size_t len)
{
    if (key->len + len > sizeof key->bytes)
        return; /* never: a name has a limit and open() has measured the prefix */
    memcpy(key->bytes + key->len, bytes, len);
    key->len += len;
}

void hf__etcd_append(struct hf__etcd_key *key, const char *text)
{
    add(key, text, strlen(text));
}

void hf__etcd_root(const struct hf__etcd *e, enum hf__etcd_key_kind kind, struct hf__etcd_name name,
                   bool whole, struct hf__etcd_key *ret_key)
{
    ret_key->len = 0;
    hf__etcd_append(ret_key, e->set.prefix);
    hf__etcd_append(ret_key, kinds[kind]);
    for (size_t i = 0; i < name.len; i++) {
        char byte = name.bytes[i], escaped[4];
        if (byte == '/' || byte == '%' || (byte == '.' && i == 0)) {
            snprintf(escaped, sizeof escaped, "%%%02X", (unsigned char)byte);
            add(ret_key, escaped, 3);
        } else {
            add(ret_key, &byte, 1);
        }
    }
    if (whole)
        hf__etcd_append(ret_key, "/");
}

static void add_lease(struct hf__etcd_key *key, int64_t lease)
{
    char hex[20];

    snprintf(hex, sizeof hex, "%" PRIx64, (uint64_t)lease);
    hf__etcd_append(key, hex);
}

void hf__etcd_place_key(const struct hf__etcd *e, struct hf__etcd_name name, hf_mode mode,
                        int64_t lease, struct hf__etcd_key *ret_key)
{
    hf__etcd_root(e, HF__ETCD_KEY_PLACE, name, true, ret_key);
    hf__etcd_append(ret_key, mode == HF_SHARED ? "read/" : "write/");
    add_lease(ret_key, lease);
}

void hf__etcd_mark_key(const struct hf__etcd *e, enum hf__etcd_key_kind kind,
                       struct hf__etcd_name name, int64_t lease, struct hf__etcd_key *ret_key)
{
    hf__etcd_root(e, kind, name, true, ret_key);
    add_lease(ret_key, lease);
}

int64_t hf__etcd_lease_in(struct hf__slice key)
{
    const char *slash = key.len > 0 ? memrchr(key.data, '/', key.len) : NULL;
    size_t len = slash != NULL ? (size_t)(key.data + key.len - slash) - 1 : 0;
    char hex[17] = "";

    if (len == 0 || len >= sizeof hex)
        return 0;
    memcpy(hex, slash + 1, len);
    return (int64_t)strtoull(hex, NULL, 16);
}

void hf__etcd_inbox_key(const struct hf__etcd *e, const char *inbox, struct hf__etcd_key *ret_key)
{
    ret_key->len = 0;
    hf__etcd_append(ret_key, e->set.prefix);
    hf__etcd_append(ret_key, ".holdfast/next/");
    hf__etcd_append(ret_key, inbox);
    hf__etcd_append(ret_key, "/");
}

void hf__etcd_next_key(const struct hf__etcd *e, const char *inbox, int64_t lease,
                       struct hf__etcd_key *ret_key)
{
    hf__etcd_inbox_key(e, inbox, ret_key);
    add_lease(ret_key, lease);
}

void hf__etcd_slot_key(const struct hf__etcd *e, int64_t lease, struct hf__etcd_key *ret_key)
{
    ret_key->len = 0;
    hf__etcd_append(ret_key, e->set.prefix);
    hf__etcd_append(ret_key, ".holdfast/slot/");
    add_lease(ret_key, lease);
}

void hf__etcd_tombstone_key(const struct hf__etcd *e, const struct hf__ticket *ticket,
                            struct hf__etcd_key *ret_key)
{
    char hex[HF_TICKET_SIZE];

    hf__ticket_format(ticket, hex);
    ret_key->len = 0;
    hf__etcd_append(ret_key, e->set.prefix);
    hf__etcd_append(ret_key, ".holdfast/retired/");
    hf__etcd_append(ret_key, hex);
}

bool hf__etcd_is_key(struct hf__slice slice, const struct hf__etcd_key *key)
{
    return slice.len == key->len && memcmp(slice.data, key->bytes, key->len) == 0;
}

void hf__etcd_end_of(const struct hf__etcd_key *key, struct hf__etcd_key *ret_end)
{
    *ret_end = *key;
    while (ret_end->len > 0 && (unsigned char)ret_end->bytes[ret_end->len - 1] == 0xff)
        ret_end->len--;
    if (ret_end->len > 0)
        ret_end->bytes[ret_end->len - 1]++;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool unescape(const char *text, size_t len, struct hf__etcd_parts *parts)
{
    parts->name_len = 0;
    for (size_t i = 0; i < len; i++) {
        char byte = text[i];
        if (byte == '%') {
            bool room = i + 2 < len;
            int high = room ? hex_digit(text[i + 1]) : -1;
            int low = room ? hex_digit(text[i + 2]) : -1;
            if (high < 0 || low < 0)
                return false;
            byte = (char)(high * 16 + low);
            i += 2;
        }
        if (parts->name_len == HF_NAME_MAX)
            return false;
        parts->name[parts->name_len++] = byte;
    }
    return parts->name_len > 0;
}

bool hf__etcd_parse_place(const struct hf__etcd *e, struct hf__slice key,
                          struct hf__etcd_parts *ret_parts)
{
    size_t prefix_len = strlen(e->set.prefix);

    if (key.len <= prefix_len || memcmp(key.data, e->set.prefix, prefix_len) != 0)
        return false;
    const char *text = key.data + prefix_len;
    const char *slash = memrchr(text, '/', key.len - prefix_len);
    if (slash == NULL || slash == text || text[0] == '.')
        return false;
    size_t len = (size_t)(slash - text);
    ret_parts->ours = true;
    ret_parts->mode = HF_EXCLUSIVE;
    if (len > 6 && memcmp(text + len - 6, "/write", 6) == 0) {
        len -= 6;
    } else if (len > 5 && memcmp(text + len - 5, "/read", 5) == 0) {
        len -= 5;
        ret_parts->mode = HF_SHARED;
    } else {
        ret_parts->ours = false;
    }
    return memchr(text, '/', len) == NULL && unescape(text, len, ret_parts);
}
