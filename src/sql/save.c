/* How an operation is applied by plain statements: which of them it takes to write back what the
 * doorman has marked. See record.h. */
#include "sql/record.h"

#include <stdlib.h>

#include "doorman/sound.h"

#include "base/banned.h"

struct save {
    const struct hf__sql_operation *op;
    const struct hf__sql_writer *to;
    void *ctx;
};

static int save_new(const struct save *save, const struct hf__entry *e)
{
    if (e->place == HF__PLACE_GONE)
        return 0;
    return e->place == HF__PLACE_RETIRED ? save->to->set_retired(save->ctx, e)
                                         : save->to->add(save->ctx, e);
}

static bool differs(const struct hf__entry *a, const struct hf__entry *b)
{
    return a->place != b->place || a->generation != b->generation || a->since_ms != b->since_ms ||
           a->until_ms != b->until_ms || a->lease_ms != b->lease_ms || a->claimed != b->claimed;
}

static int save_old(const struct save *save, const struct hf__entry *e)
{
    const struct hf__sql_row *row = e->who;
    enum hf__place was = row->was.place;

    if (!differs(e, &row->was))
        return 0;
    if (was == HF__PLACE_RETIRED && e->place != HF__PLACE_GONE)
        return save->to->set_retired(save->ctx, e);
    if (was == HF__PLACE_WAITING &&
        (e->place == HF__PLACE_INSIDE || e->place == HF__PLACE_LINGERING))
        return save->to->move_inside(save->ctx, e);
    if (e->place != HF__PLACE_GONE && e->place != HF__PLACE_RETIRED)
        return save->to->set(save->ctx, e);
    int code = save->to->drop(save->ctx, e, was);
    return code != 0 || e->place == HF__PLACE_GONE ? code : save->to->set_retired(save->ctx, e);
}

static int tell(const struct save *save, const struct hf__entry *e, bool own)
{
    const struct hf__sql_row *row = e->who;

    if (row == NULL || row->wake[0] == '\0')
        return 0;
    if ((e->marks & HF__MARK_LET_IN) && !(own && save->op->kind == HF__OPERATION_ATTEMPT))
        return save->to->call(save->ctx, row->wake, e, e->generation);
    if (own && save->op->kind == HF__OPERATION_BREAK)
        return save->to->call(save->ctx, row->wake, e, 0);
    return 0;
}

static int save_entry(const struct save *save, const struct hf__entry *e)
{
    bool own = hf__ticket_equal(&e->ticket, &save->op->bid->ticket);
    int code = e->marks & HF__MARK_NEW ? save_new(save, e) : save_old(save, e);

    if (code == 0)
        code = tell(save, e, own);
    if (code == 0 && own && save->op->kind == HF__OPERATION_ATTEMPT &&
        e->place == HF__PLACE_WAITING && !(e->marks & HF__MARK_NEW) && save->to->set_wake != NULL)
        code = save->to->set_wake(save->ctx, e);
    return code;
}

/* Stops at the first error. */
static int write_record(const struct save *save, const struct hf__sql_record *r)
{
    bool let_in = false;
    int code = 0;

    for (size_t i = 0; i < r->record.count && code == 0; i++) {
        const struct hf__entry *e = &r->record.entries[i];
        if (e->marks != 0)
            code = save_entry(save, e);
        let_in |= (e->marks & HF__MARK_LET_IN) != 0;
    }
    return code != 0 ? code : save->to->set_lock(save->ctx, let_in);
}

/* What was sent inside a transaction that was not committed is not applied. */
int hf__sql_apply(struct hf__sql_record *r, const struct hf__sql_operation *op,
                  const struct hf__sql_writer *writer, void *ctx, struct hf__answer *ret_answer,
                  hf_error *err)
{
    struct save save = {.op = op, .to = writer, .ctx = ctx};
    struct hf__answer answer = {0};
    int code = writer->load(ctx);

    if (code == 0 && !hf__record_is_sound(&r->record))
        code = hf__fail(err, HF_CORRUPT, "the record of this lock makes no sense");
    if (code == 0) {
        answer = hf__doorman_apply(&r->record,
                                   &(struct hf__operation){.kind = op->kind,
                                                           .bid = op->bid,
                                                           .retire_ms = op->retire_ms,
                                                           .generation = op->generation,
                                                           .now = op->now},
                                   r->at);
        code = write_record(&save, r);
    }
    if (code == HF_UNKNOWN)
        code = hf__wrap(err, HF_UNAVAILABLE, "not committed");
    code = writer->end(ctx, code);
    free(r->record.entries);
    free(r->rows);
    if (code != 0)
        return code;
    answer.sent_ns = ret_answer->sent_ns;
    *ret_answer = answer;
    return 0;
}
