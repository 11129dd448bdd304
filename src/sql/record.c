/* See record.h: answers, reading and showing. Writing is in save.c. */
#include "sql/record.h"

#include <stdio.h>
#include <stdlib.h>

#include "doorman/sound.h"
#include "stores/search.h"

#include "base/banned.h"

int64_t hf__sql_integer(const char *cell, int64_t null)
{
    return cell == NULL ? null : strtoll(cell, NULL, 10);
}

bool hf__sql_flag(const char *cell)
{
    return cell != NULL && (cell[0] == 't' || hf__sql_integer(cell, 0) != 0);
}

/* Answers ------------------------------------------------------------------ */

static bool read_verdict(const char *text, enum hf__verdict *ret_verdict)
{
    static const char *const verdicts[] = {
        [HF__VERDICT_GRANTED] = "granted", [HF__VERDICT_QUEUED] = "queued",
        [HF__VERDICT_BUSY] = "busy",       [HF__VERDICT_WITHDRAWN] = "withdrawn",
        [HF__VERDICT_FULL] = "full",       [HF__VERDICT_DONE] = "done",
        [HF__VERDICT_STALE] = "stale",     [HF__VERDICT_GONE] = "lost",
    };

    for (size_t i = 0; text != NULL && i < sizeof verdicts / sizeof verdicts[0]; i++) {
        if (strcmp(verdicts[i], text) == 0) {
            *ret_verdict = (enum hf__verdict)i;
            return true;
        }
    }
    return false;
}

bool hf__sql_read_answer(const char *const cells[HF__SQL_ANSWER_CELLS],
                         struct hf__answer *ret_answer)
{
    struct hf__answer a = {.sent_ns = ret_answer->sent_ns};

    if (!read_verdict(cells[HF__SQL_VERDICT], &a.verdict))
        return false;
    if (a.verdict == HF__VERDICT_GRANTED || a.verdict == HF__VERDICT_QUEUED) {
        a.generation = (uint64_t)hf__sql_integer(cells[HF__SQL_GENERATION], 0);
        a.lease_ms = hf__sql_integer(cells[HF__SQL_LEASE], HF__NEVER);
    }
    if (a.verdict == HF__VERDICT_GRANTED)
        a.claimed = hf__sql_flag(cells[HF__SQL_CLAIMED]);
    if (a.verdict == HF__VERDICT_QUEUED) {
        a.position = (size_t)hf__sql_integer(cells[HF__SQL_PLACE], 0);
        a.ask_again_ms = hf__sql_integer(cells[HF__SQL_ASK_AGAIN], HF__NEVER);
    }
    if (!hf__answer_is_sound(&a))
        return false;
    *ret_answer = a;
    return true;
}

/* Reading ------------------------------------------------------------------ */

static bool read_ticket(const char *hex, struct hf__ticket *ret_ticket)
{
    if (hex == NULL)
        return false;
    return hf__ticket_parse(strncmp(hex, "\\x", 2) == 0 ? hex + 2 : hex, ret_ticket);
}

bool hf__sql_read_row(const char *const cells[HF__SQL_ENTRY_CELLS], struct hf__sql_row *ret_row)
{
    struct hf__sql_row r = {0};
    struct hf__entry *e = &r.was;
    const char *wake = cells[HF__SQL_WAKE_AT];

    if (!read_ticket(cells[HF__SQL_TICKET], &e->ticket))
        return false;
    e->place = (enum hf__place)hf__sql_integer(cells[HF__SQL_KIND], 0);
    e->mode = hf__sql_flag(cells[HF__SQL_SHARED]) ? HF_SHARED : HF_EXCLUSIVE;
    int64_t room = hf__sql_integer(cells[HF__SQL_ROOM], 0);
    e->limit = (uint32_t)room;
    e->generation = (uint64_t)hf__sql_integer(cells[HF__SQL_ENTRY_GENERATION], 0);
    e->ttl_ms = hf__sql_integer(cells[HF__SQL_TTL], 0);
    e->lock_delay_ms = hf__sql_integer(cells[HF__SQL_DELAY], 0);
    e->retire_ms = hf__sql_integer(cells[HF__SQL_RETIRE], 0);
    e->since_ms = hf__sql_integer(cells[HF__SQL_SINCE], 0);
    e->until_ms = hf__sql_integer(cells[HF__SQL_UNTIL], HF__NEVER);
    e->lease_ms = hf__sql_integer(cells[HF__SQL_ENTRY_LEASE], HF__NEVER);
    e->claimed = hf__sql_flag(cells[HF__SQL_ENTRY_CLAIMED]);
    if (room < 0 || room > UINT32_MAX || !hf__entry_is_sound(e))
        return false;
    snprintf(r.wake, sizeof r.wake, "%s", wake != NULL ? wake : "");
    *ret_row = r;
    return true;
}

int hf__sql_record_init(struct hf__sql_record *r, size_t count, hf_error *err)
{
    r->record.capacity = count + 2;
    r->record.entries = calloc(r->record.capacity, sizeof *r->record.entries);
    r->rows = calloc(r->record.capacity, sizeof *r->rows);
    if (r->record.entries == NULL || r->rows == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    return 0;
}

bool hf__sql_record_add(struct hf__sql_record *r, const char *const cells[HF__SQL_ENTRY_CELLS])
{
    struct hf__sql_row *row = &r->rows[r->record.count];
    struct hf__entry *e = &r->record.entries[r->record.count];

    if (!hf__sql_read_row(cells, row))
        return false;
    *e = row->was;
    e->who = row;
    r->record.count++;
    return true;
}

/* Showing ------------------------------------------------------------------ */

int hf__sql_show(const struct hf__search *search, struct hf__entry *e, int64_t now_ms,
                 const char *name, size_t name_len, struct hf__who *who)
{
    if (!hf__search_settle(e, now_ms))
        return 0;
    e->since_ms = now_ms - e->since_ms;
    if (!hf__search_is_old_enough(search, e))
        return 0;
    if (e->until_ms != HF__NEVER)
        e->until_ms -= now_ms;
    e->who = who;
    e->marks = 0;
    return search->found(search->ctx, name, name_len, e);
}
