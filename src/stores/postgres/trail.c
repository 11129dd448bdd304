/* The trail: what is said to the functions that write it, and reading it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/who.h"
#include "doorman/trail.h"
#include "stores/postgres/postgres.h"

#include "base/banned.h"

enum {
    NAME,
    NTH,
    AT,
    WHAT,
    SHARED,
    TICKET,
    GENERATION,
    SPAN,
    HOST,
    USER,
    PROGRAM,
    PID,
    NOTE,
    CAUSE
};

/* "N who": the setting lasts for the one transaction that the call is, so a pooler may stand between. */
void hf__pg_tell(const struct hf__pg *s, struct hf__pg_query *q, struct hf__pg_tells *tells)
{
    char breaker[HF__TRAIL_CAUSE_MAX];
    struct hf__who who = *s->base.host->self;
    struct hf__who_text text;

    if (s->sql.set.history == 0)
        return;
    hf__who_text_init(&text, &who);
    who.host = text.host;
    who.user = text.user;
    who.program = text.program;
    hf__trail_breaker(&who, breaker);
    snprintf(tells->text, sizeof tells->text, "%" PRId64 " %s", s->sql.set.history, breaker);
    hf__pg_text(q, tells->text);
}

static int tell(const PGresult *q, int row, const struct hf__trail_search *search, hf_error *err)
{
    char name[HF_NAME_MAX];
    int len = hf__pg_cell_bytes(q, row, NAME, name, sizeof name);
    struct hf__who who = {.host = hf__who_plain(PQgetvalue(q, row, HOST)),
                          .user = hf__who_plain(PQgetvalue(q, row, USER)),
                          .program = hf__who_plain(PQgetvalue(q, row, PROGRAM)),
                          .note = hf__who_plain(PQgetvalue(q, row, NOTE)),
                          .pid = hf__pg_cell(q, row, PID, 0)};
    struct hf__trail_entry e = {.name = name,
                                .name_len = len > 0 ? (size_t)len : 0,
                                .kind = (hf_trail_kind)hf__pg_cell(q, row, WHAT, 0),
                                .at_ms = hf__pg_cell(q, row, AT, 0),
                                .mode = hf__pg_cell_flag(q, row, SHARED) ? HF_SHARED : HF_EXCLUSIVE,
                                .generation = (uint64_t)hf__pg_cell(q, row, GENERATION, 0),
                                .span_ms = hf__pg_cell(q, row, SPAN, 0),
                                .who = &who,
                                .cause = hf__who_plain(PQgetvalue(q, row, CAUSE))};

    if (len <= 0 || e.kind < HF_TRAIL_GRANTED || e.kind > HF_TRAIL_VANISHED || e.at_ms < 0 ||
        e.span_ms < 0 || !hf__ticket_parse(PQgetvalue(q, row, TICKET), &e.ticket))
        return hf__fail(err, HF_CORRUPT, "postgres: a row of the trail makes no sense");
    return search->found(search->ctx, &e);
}

int hf__pg_trail(struct hf__store *store, const struct hf__trail_search *search,
                 int64_t deadline_ns, hf_error *err)
{
    struct hf__pg *s = (struct hf__pg *)store;
    struct hf__pg_query q = {.sql = hf__pg_trail_sql, .reads = true};
    const struct hf__search names = {.name = search->name,
                                     .name_len = search->name_len,
                                     .prefix = search->prefix,
                                     .prefix_len = search->prefix_len};
    struct hf__pg_conn *c = NULL;
    struct hf__sql_range range;
    PGresult *result = NULL;
    hf_error why = {0};

    if (!hf__sql_range(&names, &range))
        return 0;
    hf__pg_bytes(&q, range.low, range.low_len);
    hf__pg_bytes(&q, range.high, range.high_len);
    hf__pg_number(&q, search->since_ms);
    hf__pg_number_or_null(&q, (int64_t)search->limit, 0);
    int r = hf__pg_borrow(s, deadline_ns, &c, err);
    if (r != 0)
        return r;
    r = hf__pg_ask(s, c, &q, deadline_ns, &result, &why);
    hf__pg_give_back(s, c); /* the caller is told without a connection in hand */
    if (why.store_code == strtol("42P01", NULL, 36))
        r = hf__fail(err, HF_UNSUPPORTED,
                     "postgres: the tables are older than the trail; run `holdfast setup`");
    else if (r != 0 && err != NULL)
        *err = why;
    for (int row = 0; r == 0 && row < PQntuples(result); row++)
        r = tell(result, row, search, err);
    PQclear(result);
    return r;
}
