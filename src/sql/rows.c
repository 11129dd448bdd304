/* See rows.h. */
#include "sql/rows.h"

#include <stdlib.h>

#include "doorman/sound.h"
#include "stores/search.h"

#include "base/banned.h"

static const char HEX_DIGITS[] = "0123456789abcdef";

int64_t hf__sql_integer(const char *cell, int64_t null)
{
    return cell == NULL ? null : strtoll(cell, NULL, 10);
}

bool hf__sql_flag(const char *cell)
{
    return cell != NULL && (cell[0] == 't' || hf__sql_integer(cell, 0) != 0);
}

bool hf__sql_read_answer(const char *const cells[HF__SQL_ANSWER_CELLS],
                         struct hf__answer *ret_answer)
{
    static const char *const verdicts[] = {
        [HF__VERDICT_GRANTED] = "granted", [HF__VERDICT_QUEUED] = "queued",
        [HF__VERDICT_BUSY] = "busy",       [HF__VERDICT_WITHDRAWN] = "withdrawn",
        [HF__VERDICT_FULL] = "full",       [HF__VERDICT_DONE] = "done",
        [HF__VERDICT_STALE] = "stale",     [HF__VERDICT_GONE] = "lost",
    };
    const char *word = cells[HF__SQL_ANSWER_VERDICT] != NULL ? cells[HF__SQL_ANSWER_VERDICT] : "";
    struct hf__answer a = {.sent_ns = ret_answer->sent_ns};
    size_t verdict = 0;

    while (verdict < sizeof verdicts / sizeof verdicts[0] && strcmp(verdicts[verdict], word) != 0)
        verdict++;
    if (verdict == sizeof verdicts / sizeof verdicts[0])
        return false;
    a.verdict = (enum hf__verdict)verdict;
    if (a.verdict == HF__VERDICT_GRANTED || a.verdict == HF__VERDICT_QUEUED) {
        a.generation = (uint64_t)hf__sql_integer(cells[HF__SQL_ANSWER_GENERATION], 0);
        a.lease_ms = hf__sql_integer(cells[HF__SQL_ANSWER_LEASE], HF__NEVER);
    }
    if (a.verdict == HF__VERDICT_GRANTED) {
        a.claimed = hf__sql_flag(cells[HF__SQL_ANSWER_CLAIMED]);
    }
    if (a.verdict == HF__VERDICT_GRANTED || a.verdict == HF__VERDICT_BUSY)
        a.wanted = hf__sql_flag(cells[HF__SQL_ANSWER_WANTED]);
    if (a.verdict == HF__VERDICT_QUEUED) {
        a.position = (size_t)hf__sql_integer(cells[HF__SQL_ANSWER_PLACE], 0);
        a.ask_again_ms = hf__sql_integer(cells[HF__SQL_ANSWER_ASK_AGAIN], HF__NEVER);
    }
    if (!hf__answer_is_sound(&a))
        return false;
    *ret_answer = a;
    return true;
}

bool hf__sql_read_value(const char *const cells[HF__SQL_VALUE_CELLS], struct hf__value *ret_value)
{
    const char *hex = cells[HF__SQL_VALUE_BYTES] != NULL ? cells[HF__SQL_VALUE_BYTES] : "";
    struct hf__value v = {.generation =
                              (uint64_t)hf__sql_integer(cells[HF__SQL_VALUE_GENERATION], 0),
                          .order = (uint64_t)hf__sql_integer(cells[HF__SQL_VALUE_ORDER], 0),
                          .doubt = hf__sql_flag(cells[HF__SQL_VALUE_DOUBT]),
                          .len = strlen(hex) / 2};
    const struct hf__record numbers = {.value_generation = v.generation, .value_order = v.order};

    if (v.len > sizeof v.bytes || !hf__record_is_sound(&numbers))
        return false;
    for (size_t i = 0; i < 2 * v.len; i++) {
        const char *at = memchr(HEX_DIGITS, hex[i], 16);
        if (at == NULL)
            return false;
        v.bytes[i / 2] = (unsigned char)(v.bytes[i / 2] << 4 | (at - HEX_DIGITS));
    }
    *ret_value = v;
    return true;
}

bool hf__sql_range(const struct hf__search *search, struct hf__sql_range *ret_range)
{
    struct hf__sql_range r = {.low_len =
                                  1}; /* the smallest name: an empty text is NULL to Oracle */

    if (search->name_len > HF_NAME_MAX || search->prefix_len > HF_NAME_MAX)
        return false;
    if (search->name != NULL) { /* nothing is between a name and the same with a zero after it */
        r.low_len = search->name_len;
        memcpy(r.low, search->name, search->name_len);
        r.high_len = search->name_len + 1;
        memcpy(r.high, search->name, search->name_len);
    } else if (search->prefix != NULL && search->prefix_len > 0) {
        r.low_len = search->prefix_len;
        memcpy(r.low, search->prefix, search->prefix_len);
        r.high_len = hf__search_next_prefix(search, r.high);
    }
    if (r.high_len == 0) { /* above all names, which are shorter */
        r.high_len = sizeof r.high;
        memset(r.high, 0xff, sizeof r.high);
    }
    *ret_range = r;
    return true;
}

int hf__sql_show(const char *store, struct hf__sql_entry *entry, const struct hf__search *search,
                 hf_error *err)
{
    const char *const *cells = entry->cells;
    int64_t room = hf__sql_integer(cells[HF__SQL_ENTRY_ROOM], 0);
    struct hf__entry e = {
        .place = (enum hf__place)hf__sql_integer(cells[HF__SQL_ENTRY_KIND], 0),
        .mode = hf__sql_flag(cells[HF__SQL_ENTRY_SHARED]) ? HF_SHARED : HF_EXCLUSIVE,
        .limit = (uint32_t)room,
        .generation = (uint64_t)hf__sql_integer(cells[HF__SQL_ENTRY_GENERATION], 0),
        .ttl_ms = hf__ttl_of_stored(hf__sql_integer(cells[HF__SQL_ENTRY_TTL], 0)),
        .lock_delay_ms = hf__sql_integer(cells[HF__SQL_ENTRY_DELAY], 0),
        .since_ms = hf__sql_integer(cells[HF__SQL_ENTRY_SINCE], 0),
        .until_ms = hf__sql_integer(cells[HF__SQL_ENTRY_UNTIL], HF__NEVER),
        .lease_ms = hf__sql_integer(cells[HF__SQL_ENTRY_LEASE], HF__NEVER),
        .claimed = hf__sql_flag(cells[HF__SQL_ENTRY_CLAIMED]),
        .cached = hf__sql_flag(cells[HF__SQL_ENTRY_CACHED]),
    };

    if (cells[HF__SQL_ENTRY_TICKET] == NULL ||
        !hf__ticket_parse(cells[HF__SQL_ENTRY_TICKET], &e.ticket) || room < 0 ||
        room > UINT32_MAX || !hf__entry_is_sound(&e))
        return hf__fail(err, HF_CORRUPT, "%s: a row makes no sense", store);
    if (!hf__search_settle(&e, entry->now_ms))
        return 0;
    e.since_ms = entry->now_ms - e.since_ms;
    if (!hf__search_is_old_enough(search, &e))
        return 0;
    if (e.until_ms != HF__NEVER)
        e.until_ms -= entry->now_ms;
    e.who = &entry->who;
    e.effects = 0; /* of the sweep, which changed nothing in the store */
    return search->found(search->ctx, entry->name, entry->name_len, &e);
}
