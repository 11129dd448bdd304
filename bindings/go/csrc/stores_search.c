/* See search.h. */
#include "stores_search.h"

#include "base_banned.h"

bool hf__search_wants(const struct hf__search *search, const char *name, size_t len)
{
    if (search->name != NULL && (len != search->name_len || memcmp(name, search->name, len) != 0))
        return false;
    return search->prefix == NULL ||
           (len >= search->prefix_len && memcmp(name, search->prefix, search->prefix_len) == 0);
}

size_t hf__search_next_prefix(const struct hf__search *search, char next[HF_NAME_MAX])
{
    size_t len = search->prefix_len;

    memcpy(next, search->prefix, len);
    while (len > 0 && (unsigned char)next[len - 1] == 0xff)
        len--;
    if (len > 0)
        next[len - 1]++;
    return len;
}

/* A waiter alone would be let in. */
bool hf__search_settle(struct hf__entry *e, int64_t now_ms)
{
    struct hf__record alone = {.entries = e, .count = 1, .capacity = 1};

    if (e->place == HF__PLACE_WAITING)
        return e->until_ms > now_ms;
    hf__doorman_apply(&alone, &(struct hf__operation){.kind = HF__OPERATION_SWEEP},
                      (struct hf__moment){.now_ms = now_ms});
    return e->place == HF__PLACE_INSIDE || e->place == HF__PLACE_LINGERING;
}

bool hf__search_is_old_enough(const struct hf__search *search, const struct hf__entry *e)
{
    return search->older_than_ms <= 0 ||
           (e->place == HF__PLACE_INSIDE && e->since_ms >= search->older_than_ms);
}
