/* See sound.h. */
#include "doorman/sound.h"

/* Stores keep it in a signed number, and the next one is larger. */
#define TOKEN_MAX ((uint64_t)INT64_MAX - 1)

static bool is_span(int64_t ms)
{
    return ms >= 0 && ms <= HF__SPAN_MAX_MS;
}

static bool is_lease(int64_t ms)
{
    return ms == HF__NEVER || (ms > 0 && ms <= HF__SPAN_MAX_MS);
}

static bool is_instant(int64_t ms)
{
    return ms >= -HF__INSTANT_MAX_MS && ms <= HF__INSTANT_MAX_MS;
}

bool hf__entry_is_sound(const struct hf__entry *e)
{
    if (e->place < HF__PLACE_WAITING || e->place > HF__PLACE_RETIRED ||
        !(e->ttl_ms == HF__NEVER || is_span(e->ttl_ms)) || !is_span(e->lock_delay_ms) ||
        !is_span(e->retire_ms) || !is_instant(e->since_ms))
        return false;
    if (e->place == HF__PLACE_INSIDE && e->generation == 0)
        return false;
    if (e->generation > TOKEN_MAX - (e->cached ? HF__TOKENS_RESERVED : 0))
        return false;
    return is_lease(e->lease_ms) && (e->until_ms == HF__NEVER || is_instant(e->until_ms));
}

bool hf__record_is_sound(const struct hf__record *record)
{
    for (size_t i = 0; i < record->count; i++) {
        if (!hf__entry_is_sound(&record->entries[i]))
            return false;
    }
    return record->generation <= TOKEN_MAX && record->value_generation <= TOKEN_MAX &&
           record->value_order <= TOKEN_MAX;
}

bool hf__answer_is_sound(const struct hf__answer *a)
{
    if (a->verdict != HF__VERDICT_GRANTED && a->verdict != HF__VERDICT_QUEUED)
        return true;
    if (a->generation > TOKEN_MAX || !is_lease(a->lease_ms))
        return false;
    if (a->verdict == HF__VERDICT_GRANTED)
        return a->generation > 0;
    return a->ask_again_ms == HF__NEVER ||
           (a->ask_again_ms >= -HF__SPAN_MAX_MS && a->ask_again_ms <= HF__INSTANT_MAX_MS);
}
