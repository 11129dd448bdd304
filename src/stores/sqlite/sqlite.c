/* The store of one machine: the doorman's record in an SQLite database, for any number of
 * processes.
 *
 * Each operation is
 *
 *      BEGIN IMMEDIATE        -- from here on no other process writes
 *      SELECT ...             -- the lock's row and the part of its line that matters (record.c)
 *      <the doorman decides>  -- on the clock read after BEGIN
 *      INSERT/UPDATE/DELETE   -- only what changed (save.c)
 *      COMMIT                 -- and fsync if a grant that never expires was touched
 *      sendto                 -- to those who were let in (wake.c)
 *
 * The clock is the client's own (CLOCK_BOOTTIME of this machine), so an answer's sent_ns is the
 * moment read inside the transaction. */
#include "stores/sqlite/sqlite.h"
#include "base/backoff.h"
#include "stores/builtin.h"

#include "base/banned.h"

#define WINDOW_FIRST  4    /* waiters loaded at first; with one, each hand-over would load twice */
#define RENEW_BATCH   256  /* renewals in one transaction, then others get their turn */
#define TIDY_EACH     256  /* operations of names that are known, between two looks for idle ones */
#define LONG_LEASE_MS 5000 /* from here on the sign of life comes later than each second */

/* A waiter in the middle of a long queue: the doorman saw the others as a number only. */
static int count_ahead(struct hf__sqlite *s, const struct hf__operation *op,
                       struct hf__answer *answer, hf_error *err)
{
    const struct hf__entry *me = hf__record_find(&s->record, &op->bid->ticket);
    size_t ahead = 0;
    int code;

    if (op->kind != HF__OPERATION_ATTEMPT || answer->verdict != HF__VERDICT_QUEUED ||
        s->record.unseen == 0 || me == NULL || me->who == NULL ||
        me < s->record.entries + s->record.gap)
        return 0;
    code = hf__sqlite_ahead(s, me, &ahead, err);
    if (code == 0)
        answer->position = ahead == SIZE_MAX ? 0 : ahead + 1;
    return code;
}

/* Whoever is next looks once a second although it will be called: a call may be lost, or not reach
 * into another namespace. (With a short lease the sign of life, which is answered as well, is as
 * soon.) Without a socket asking is all there is; it becomes rarer with the time waited. */
static void pace(struct hf__sqlite *s, const struct hf__operation *op, struct hf__moment at,
                 struct hf__answer *answer)
{
    const struct hf__entry *me = hf__record_find(&s->record, &op->bid->ticket);
    const struct hf__sqlite_row *row = me != NULL ? me->who : NULL;
    bool called = row != NULL ? row->can_wake : s->wake.in >= 0;
    int64_t most_ms = HF__NEVER;

    if (answer->verdict != HF__VERDICT_QUEUED || me == NULL)
        return;
    if (!called) {
        int64_t waited_ms = at.now_ms - me->since_ms;
        most_ms = waited_ms < 20 ? 5 : waited_ms > 800 ? 200 : waited_ms / 4;
    } else if (answer->lease_ms >= LONG_LEASE_MS &&
               (s->record.unseen == 0 || me < s->record.entries + s->record.gap)) {
        most_ms = 800;
    }
    if (most_ms == HF__NEVER)
        return;
    most_ms += (int64_t)hf__jitter(&s->jitter, (uint64_t)most_ms / 4 + 1);
    if (answer->ask_again_ms > most_ms)
        answer->ask_again_ms = most_ms;
}

/* Inside a transaction: load, decide, save; with a wider window if the doorman asks for it. */
static int apply(struct hf__sqlite *s, const struct hf__operation *op, struct hf__moment at,
                 struct hf__answer *ret_answer, hf_error *err)
{
    struct hf__sqlite_window window = {.name = op->bid->name,
                                       .name_len = op->bid->name_len,
                                       .ticket = &op->bid->ticket,
                                       .waiters = WINDOW_FIRST,
                                       .remembered =
                                           op->kind == HF__OPERATION_ATTEMPT || op->retire_ms > 0,
                                       .now_ms = at.now_ms};
    struct hf__value value;
    struct hf__answer answer;
    int code;

    if (op->kind == HF__OPERATION_READ)
        window.value = op->value;
    else if (op->kind == HF__OPERATION_WRITE)
        window.value = &value;

    for (;; window.waiters *= 8) {
        code = hf__sqlite_load(s, &window, err);
        if (code != 0)
            return code;
        answer = hf__doorman_apply(&s->record, op, at);
        if (answer.verdict != HF__VERDICT_MORE)
            break;
    }
    code = hf__sqlite_save(s, op, at, err);
    if (code == 0 && op->kind == HF__OPERATION_READ)
        op->value->doubt = s->record.doubt; /* who opened it may have vanished just now */
    if (code == 0 && op->kind == HF__OPERATION_WRITE && answer.verdict == HF__VERDICT_DONE)
        code = hf__sqlite_save_value(s, op->bid, op->value, err);
    if (code == 0)
        code = count_ahead(s, op, &answer, err);
    if (code != 0)
        return code;
    pace(s, op, at, &answer);
    answer.sent_ns = ret_answer->sent_ns;
    *ret_answer = answer;
    return 0;
}

static void tell_broken(struct hf__sqlite *s, const struct hf__operation *op)
{
    for (size_t i = 0; op->kind == HF__OPERATION_BREAK && i < s->record.count; i++) {
        const struct hf__entry *e = &s->record.entries[i];
        if (hf__ticket_equal(&e->ticket, &op->bid->ticket))
            hf__sqlite_call(s, e, 0);
    }
}

static int operate_once(struct hf__sqlite *s, const struct hf__operation *op,
                        struct hf__answer *ret_answer, hf_error *err)
{
    struct hf__answer answer = {0};
    int code = hf__sqlite_begin(s, err);

    if (code != 0)
        return code;
    struct hf__moment at = hf__sqlite_moment(s, &answer.sent_ns);
    code = apply(s, op, at, &answer, err);
    if (code != 0) {
        hf__sqlite_rollback(s, NULL);
        return code;
    }
    tell_broken(s, op);
    code = hf__sqlite_commit(s, err);
    if (code == 0)
        *ret_answer = answer;
    return code;
}

static int operate(struct hf__store *store, const struct hf__operation *op, int64_t deadline_ns,
                   struct hf__answer *ret_answer, hf_error *err)
{
    struct hf__sqlite *s = (struct hf__sqlite *)store;
    enum hf__sqlite_rank rank =
        op->kind == HF__OPERATION_ATTEMPT ? HF__SQLITE_RANK_ASKS : HF__SQLITE_RANK_KEEPS;
    int code = hf__sqlite_enter(s, rank, deadline_ns, err);

    if (code != 0)
        return code;
    code = operate_once(s, op, ret_answer, err);
    if (code == HF_FULL && hf__sqlite_make_room(s))
        code = operate_once(s, op, ret_answer, err);
    if (code == 0 && (s->tidy.due || ++s->tidy.others >= TIDY_EACH)) {
        hf__sqlite_tidy(s);
        s->tidy.others = 0;
    }
    hf__sqlite_leave(s);
    return code;
}

static int renew_batch(struct hf__sqlite *s, struct hf__renewal *items, size_t count, hf_error *err)
{
    int64_t sent_ns;
    int code = hf__sqlite_begin(s, err);

    if (code != 0)
        return code;
    struct hf__moment at = hf__sqlite_moment(s, &sent_ns);
    for (size_t i = 0; i < count && code == 0; i++) {
        struct hf__bid bid = {
            .name = items[i].name, .name_len = items[i].name_len, .ticket = items[i].ticket};
        struct hf__operation op = {
            .kind = HF__OPERATION_RENEW, .bid = &bid, .generation = items[i].generation};
        items[i].answer.sent_ns = sent_ns;
        code = apply(s, &op, at, &items[i].answer, err);
    }
    if (code != 0) {
        hf__sqlite_rollback(s, NULL);
        return code;
    }
    return hf__sqlite_commit(s, err);
}

/* A waiter's sign of life has the time of its lease, as a bid has. */
static enum hf__sqlite_rank rank_of(const struct hf__renewal *items, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (items[i].generation != 0)
            return HF__SQLITE_RANK_KEEPS;
    }
    return HF__SQLITE_RANK_ASKS;
}

static int renew(struct hf__store *store, struct hf__renewal *items, size_t count,
                 int64_t deadline_ns, hf_error *err)
{
    struct hf__sqlite *s = (struct hf__sqlite *)store;
    int code = 0;

    for (size_t done = 0; done < count && code == 0; done += RENEW_BATCH) {
        size_t n = count - done < RENEW_BATCH ? count - done : RENEW_BATCH;
        code = hf__sqlite_enter(s, rank_of(items + done, n), deadline_ns, err);
        if (code != 0)
            break;
        code = renew_batch(s, items + done, n, err);
        if (code == HF_FULL && hf__sqlite_make_room(s))
            code = renew_batch(s, items + done, n, err);
        hf__sqlite_leave(s);
        /* The batches before this one were applied. */
        if (code == HF_UNAVAILABLE && done > 0 && err != NULL)
            err->code = HF_UNKNOWN;
        if (code == HF_UNAVAILABLE && done > 0)
            code = HF_UNKNOWN;
    }
    return code;
}

static const char *const schemes[] = {"sqlite", NULL};

const struct hf__store_type hf__sqlite_store_type = {
    .abi = HF__STORE_ABI,
    .name = "sqlite",
    .schemes = schemes,
    .summary = "a file on this machine, for any number of its processes (the default)",
    .capabilities = HF_CAN_SHARE | HF_CAN_LIMIT | HF_CAN_LEASE | HF_CAN_NEVER | HF_CAN_DELAY |
                    HF_CAN_QUEUE | HF_CAN_PUSH | HF_CAN_TOKEN | HF_CAN_CHECK | HF_CAN_BREAK |
                    HF_CAN_DETACH | HF_CAN_PROCESS | HF_CAN_PERSIST | HF_CAN_AT_LEAST |
                    HF_CAN_VALUE | HF_CAN_WANTED | HF_CAN_CACHE | HF_CAN_HISTORY,
    .options = hf__sqlite_options,
    .ddl = hf__sqlite_schema,
    .open = hf__sqlite_open,
    .close = hf__sqlite_close,
    .operate = operate,
    .renew = renew,
    .inspect = hf__sqlite_inspect,
    .upkeep = hf__sqlite_upkeep,
    .diagnose = hf__sqlite_diagnose,
    .wake_fd = hf__sqlite_wake_fd,
    .wake = hf__sqlite_wake,
    .trail = hf__sqlite_trail,
};
