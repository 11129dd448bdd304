/* Names of locks and nodes.
 *
 * A lock's name is one path component: letters, digits, '-', '_' and a '.' that is not the first
 * are themselves, everything else is %XX, so that no two names meet and ZooKeeper's rules for paths
 * hold.
 *
 * Other clients name their nodes otherwise; whatever ends in a sequence number takes part in the
 * order, and what is not known to be a reader counts as a writer. The number is a signed 32-bit
 * counter printed with %010d: "-2147483648" has eleven characters and "-000000001" ten, so it is
 * read from behind the dialect's own mark.
 *
 * We see all of them; they see names of their own kind only, and no name is of two kinds: Curator's
 * mutex sorts by what follows the last "lock-", its read-write lock by what follows "__READ__" or
 * "__WRIT__", kazoo by what follows "__lock__". So the URL says with whom the locks are shared. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/percent.h"
#include "stores/zookeeper/zk.h"

#include "base/banned.h"

static bool is_plain(unsigned char c, bool first)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || (c == '.' && !first);
}

bool hf__zk_directory(const struct hf__zk *zk, const char *name, size_t len, char *buf, size_t size)
{
    size_t used = (size_t)snprintf(buf, size, "%s/", zk->prefix);

    for (size_t i = 0; i < len && used < size; i++) {
        bool plain = is_plain((unsigned char)name[i], i == 0);
        size_t n = hf__percent_put(buf + used, size - 1 - used, name[i], plain);
        if (n == 0)
            return false;
        used += n;
    }
    if (used >= size)
        return false;
    buf[used] = '\0';
    return true;
}

bool hf__zk_unescape(const char *text, char *buf, size_t *ret_len)
{
    size_t used = 0;

    for (const char *c = text; *c != '\0'; c++) {
        if (used == HF_NAME_MAX)
            return false;
        if (is_plain((unsigned char)*c, c == text)) {
            buf[used++] = *c;
            continue;
        }
        int byte = hf__percent_get(c, strlen(c));
        bool small = byte >= 0 && (c[1] >= 'a' || c[2] >= 'a');
        if (byte < 0 || small || is_plain((unsigned char)byte, used == 0))
            return false; /* we would not have written it so */
        buf[used++] = (char)byte;
        c += 2;
    }
    *ret_len = used;
    return used > 0;
}

void hf__zk_uuid(const struct hf__ticket *ticket, char buf[37])
{
    char t[HF_TICKET_SIZE];

    hf__ticket_format(ticket, t);
    snprintf(buf, 37, "%.8s-%.4s-%.4s-%.4s-%.12s", t, t + 8, t + 12, t + 16, t + 20);
}

bool hf__zk_layout(const char *text, enum hf__zk_layout *ret)
{
    static const char *const names[] = {[HF__ZK_LAYOUT_CURATOR] = "curator",
                                        [HF__ZK_LAYOUT_CURATOR_RW] = "curator-rw",
                                        [HF__ZK_LAYOUT_KAZOO] = "kazoo"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(text, names[i]) == 0) {
            *ret = (enum hf__zk_layout)i;
            return true;
        }
    }
    return false;
}

/* A reader of ours looks like a writer to kazoo: its plain Lock does not heed its own ReadLocks. */
void hf__zk_node_name(enum hf__zk_layout layout, const struct hf__ticket *ticket, hf_mode mode,
                      char buf[64])
{
    bool shared = mode == HF_SHARED;
    char uuid[37], hex[HF_TICKET_SIZE];

    hf__zk_uuid(ticket, uuid);
    hf__ticket_format(ticket, hex);
    if (layout == HF__ZK_LAYOUT_KAZOO)
        snprintf(buf, 64, "%s%s__lock__", hex, shared ? "_r" : "");
    else if (layout == HF__ZK_LAYOUT_CURATOR_RW)
        snprintf(buf, 64, "_c_%s-__%s__", uuid, shared ? "READ" : "WRIT");
    else
        snprintf(buf, 64, "_c_%s-%slock-", uuid, shared ? "read-" : "");
}

static bool begins(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

const char *hf__zk_blind(enum hf__zk_layout layout, const char *name)
{
    if (begins(name, "lock-") || begins(name, "read-") || begins(name, "write-"))
        return "DistributedLock for .NET, which sees no node of another client";
    if (strstr(name, "__lock__") != NULL || strstr(name, "__rlock__") != NULL)
        return layout == HF__ZK_LAYOUT_KAZOO ? NULL
               : layout == HF__ZK_LAYOUT_CURATOR
                   ? "kazoo, which sees our nodes only if it has "
                     "extra_lock_patterns=[\"-lock-\"], or we layout=kazoo"
                   : "kazoo, which sees our nodes only with layout=kazoo";
    if (strstr(name, "__READ__") != NULL || strstr(name, "__WRIT__") != NULL)
        return layout == HF__ZK_LAYOUT_CURATOR_RW
                   ? NULL
                   : "Curator's read-write lock, which sees our nodes only "
                     "with layout=curator-rw";
    return layout == HF__ZK_LAYOUT_CURATOR
               ? NULL
               : "a client that sees our nodes only with layout=curator";
}

/* All of the text is a number of the server's. */
static bool number_in(const char *at, int32_t *ret)
{
    char *end;
    long long value = strtoll(at, &end, 10);

    if (end - at < 10 || *end != '\0' || value < INT32_MIN || value > INT32_MAX)
        return false;
    *ret = (int32_t)value;
    return true;
}

/* Of a client we do not know: ten characters at the end, or eleven with a sign of their own. */
static bool number_at_end(const char *name, int32_t *ret)
{
    size_t len = strlen(name);

    if (len < 10 || strspn(name + len - 9, "0123456789") != 9)
        return false;
    const char *at = name + len - 10;
    if (*at != '-' && (*at < '0' || *at > '9'))
        return false;
    if (*at != '-' && len > 11 && at[-1] == '-' && at[-2] == '-')
        at--;
    long long value = strtoll(at, NULL, 10);
    if (value > INT32_MAX)
        value = -value; /* only a negative one has such digits */
    if (value < INT32_MIN)
        return false;
    *ret = (int32_t)value;
    return true;
}

bool hf__zk_ticket_of(const char *name, struct hf__ticket *ret)
{
    char text[HF_TICKET_SIZE];
    size_t used = 0;

    if (strncmp(name, "_c_", 3) == 0)
        name += 3;
    for (; used < 32 && *name != '\0'; name++) {
        if (*name != '-')
            text[used++] = *name;
    }
    text[used] = '\0';
    return hf__ticket_parse(text, ret);
}

/* "_c_<uuid>-lock-<number>" and "-read-lock-", as Curator and we write them. In a long queue this is
 * what there is, so it is not searched for but looked at where it must be. */
static bool is_ours(const char *name, struct hf__zk_child *ret)
{
    if (strncmp(name, "_c_", 3) != 0 || strnlen(name, 40) < 40 || name[39] != '-')
        return false;
    const char *rest = name + 40;
    bool read = strncmp(rest, "read-", 5) == 0;
    rest += read ? 5 : 0;
    if (strncmp(rest, "lock-", 5) != 0 || !number_in(rest + 5, &ret->sequence))
        return false;
    ret->sequential = true;
    ret->mode = read ? HF_SHARED : HF_EXCLUSIVE;
    return true;
}

struct hf__zk_child hf__zk_child(const char *name)
{
    static const char *const dialects[] = {"__rlock__", "__lock__", "__READ__", "__WRIT__",
                                           "lock-"};
    struct hf__zk_child c = {.name = name, .simple = strcmp(name, HF__ZK_SIMPLE) == 0};

    if (is_ours(name, &c))
        return c;
    for (size_t i = 0; !c.sequential && i < sizeof dialects / sizeof dialects[0]; i++) {
        const char *last = NULL; /* a client may have put the same word into its own part */
        for (const char *at = name; (at = strstr(at, dialects[i])) != NULL; at++)
            last = at;
        c.sequential = last != NULL && number_in(last + strlen(dialects[i]), &c.sequence);
    }
    if (!c.sequential)
        c.sequential = number_at_end(name, &c.sequence);
    if (strstr(name, "-read-lock-") != NULL || strstr(name, "__READ__") != NULL ||
        strstr(name, "__rlock__") != NULL || strstr(name, "_r__lock__") != NULL)
        c.mode = HF_SHARED;
    return c;
}

bool hf__zk_before(int32_t a, int32_t b)
{
    uint32_t distance = (uint32_t)b - (uint32_t)a;

    /* Half way around either could be first; it must not be both, or neither. */
    return distance == UINT32_C(1) << 31 ? a < b : distance > 0 && distance < UINT32_C(1) << 31;
}

bool hf__zk_blocks(const struct hf__zk_child *other, const struct hf__zk_child *mine)
{
    if (other->simple)
        return !mine->simple;
    if (!other->sequential)
        return false;
    if (mine->simple)
        return true; /* the simple lock gives way to everybody in the queue */
    if (other->mode == HF_SHARED && mine->mode == HF_SHARED)
        return false;
    return hf__zk_before(other->sequence, mine->sequence);
}
