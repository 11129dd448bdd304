/* See look.h. */
#include "stores/look.h"

#include "base/banned.h"

bool hf__look_wants(const struct hf__look *look, const char *name, size_t len)
{
    if (look->name != NULL && (len != look->name_len || memcmp(name, look->name, len) != 0))
        return false;
    return look->prefix == NULL ||
           (len >= look->prefix_len && memcmp(name, look->prefix, look->prefix_len) == 0);
}

size_t hf__look_next_prefix(const struct hf__look *look, char next[HF_NAME_MAX])
{
    size_t len = look->prefix_len;

    memcpy(next, look->prefix, len);
    while (len > 0 && (unsigned char)next[len - 1] == 0xff)
        len--;
    if (len > 0)
        next[len - 1]++;
    return len;
}

/* A waiter alone would be let in. */
bool hf__look_settle(struct hf__entry *e, int64_t now_ms)
{
    struct hf__record alone = {.entries = e, .count = 1, .capacity = 1};

    if (e->place == HF__PLACE_WAITING)
        return e->until_ms > now_ms;
    hf__doorman_apply(&alone, &(struct hf__operation){.kind = HF__OPERATION_SWEEP},
                      (struct hf__moment){.now_ms = now_ms});
    return e->place == HF__PLACE_INSIDE || e->place == HF__PLACE_LINGERING;
}

bool hf__look_is_old_enough(const struct hf__look *look, const struct hf__entry *e)
{
    return look->older_than_ms <= 0 ||
           (e->place == HF__PLACE_INSIDE && e->since_ms >= look->older_than_ms);
}
