/* One operation on one lock:
 *
 *      SELECT count(*), currentTimestamp(), version, ... FROM locks WHERE name = ?     at SERIAL
 *      <the doorman decides, decide.c>
 *      UPDATE locks SET version = ?, ... WHERE name = ? IF version = ? AND ...         at SERIAL
 *
 * The first is a linearizable read; count(*) makes it answer with the clock also where there is no
 * row. The second is atomic and applied only to what was read, since no version comes twice. If
 * somebody else was faster it answers with the row that is there now, because its conditions name
 * all the columns, and the decision is made again without a read: the time is then that of the read
 * plus what has passed here since its answer came, which is never ahead of the node's clock.
 *
 * A swap of unknown outcome is asked about by a SERIAL read, on the same node if that is well: it
 * completes what was under way. The ticket tells what became of it, and the operation is decided
 * anew: all of them can be repeated. One that is still on its way somewhere fails as soon as any
 * other swap is applied, since the version it names is then gone. */
#include <time.h>

#include "stores/cassandra/cassandra.h"

#include "base/banned.h"

#define CLOCK_GOOD_MS 500 /* how long the time of a read may be carried on */

/* Reading ------------------------------------------------------------------ */

enum { COUNT, CLOCK, VERSION, GENERATION, HOLDERS, WAITERS, RETIRED };

static int take_answer(struct hf__cs_row *row, hf_error *err)
{
    const struct hf__cql_result *r = &row->result;
    int64_t generation;

    if (!hf__cql_next_row(&row->result) || r->column_count != RETIRED + 1 ||
        !hf__cql_get_bigint(hf__cql_column(r, CLOCK), &row->now_ms))
        return hf__fail(err, HF_CORRUPT, "cassandra: the server's answer has no time in it");
    row->exists = hf__cql_get_bigint(hf__cql_column(r, VERSION), &row->version);
    if (!row->exists)
        row->version = 0;
    if (!hf__cql_get_bigint(hf__cql_column(r, GENERATION), &generation))
        generation = 0;
    row->generation = (uint64_t)generation;
    struct hf__cs_packed packed = {hf__cql_column(r, HOLDERS), hf__cql_column(r, WAITERS),
                                   hf__cql_column(r, RETIRED)};
    return hf__cs_row_take(row, &packed, err);
}

int hf__cs_read(const struct hf__cs_lock *lock, int prefer, struct hf__cs_row *row)
{
    const struct hf_env *env = lock->s->base.host->env;
    struct hf__cql_value value = hf__cql_blob(lock->name, lock->name_len);
    struct hf__cs_call call = {.query = HF__CS_QUERY_READ,
                               .values = &value,
                               .value_count = 1,
                               .prefer = prefer,
                               .deadline_ns = lock->deadline_ns};

    hf__cql_result_clear(&row->result);
    row->sent_ns = hf__now_ns(env);
    int code = hf__cs_ask(lock->s, &call, &row->result, lock->err);
    row->received_ns = hf__now_ns(env);
    return code != 0 ? code : take_answer(row, lock->err);
}

/* Swapping ----------------------------------------------------------------- */

struct swap {
    struct hf__cql_writer holders, waiters, retired;
    int64_t version;
};

static void pack(struct swap *swap, const struct hf__cs_case *c)
{
    const struct hf__cs_row *row = &c->row;

    hf__cql_writer_init(&swap->holders, HF__CS_ROW_MAX);
    hf__cql_writer_init(&swap->waiters, HF__CS_ROW_MAX);
    hf__cql_writer_init(&swap->retired, HF__CS_ROW_MAX);
    hf__cs_pack(&swap->holders, row, HF__CS_IN(HF__PLACE_INSIDE) | HF__CS_IN(HF__PLACE_LINGERING));
    hf__cs_pack(&swap->waiters, row, HF__CS_IN(HF__PLACE_WAITING));
    hf__cs_pack(&swap->retired, row, HF__CS_IN(HF__PLACE_RETIRED));
    /* Like a generation above all before it, and by its last digits like no other, also after the
     * row was purged and made anew. */
    swap->version = c->now_ms * 1000 + (int64_t)hf__cs_jitter(c->lock.s, 1000);
    if (swap->version <= row->version)
        swap->version = row->version + 1;
}

static int send_swap(const struct hf__cs_case *c, const struct swap *swap,
                     struct hf__cql_result *ret_result)
{
    char label[4 * 64];
    const struct hf__cs_lock *lock = &c->lock;
    bool exists = c->row.exists;
    struct hf__cql_value name = hf__cql_blob(lock->name, lock->name_len),
                         version = hf__cql_bigint(swap->version),
                         generation = hf__cql_bigint((int64_t)c->row.record.generation),
                         holders = hf__cql_packed(&swap->holders),
                         waiters = hf__cql_packed(&swap->waiters),
                         retired = hf__cql_packed(&swap->retired),
                         touched = hf__cql_timestamp(c->now_ms);

    hf__printable(lock->name, lock->name_len, label, sizeof label);
    struct hf__cql_value create[] = {
        name, hf__cql_text(label), version, generation, holders, waiters, retired, touched};
    struct hf__cql_value change[] = {version, generation, holders, waiters,
                                     retired, touched,    name,    hf__cql_bigint(c->row.version)};
    struct hf__cs_call call = {.query = exists ? HF__CS_QUERY_SWAP : HF__CS_QUERY_CREATE,
                               .values = exists ? change : create,
                               .value_count = 8,
                               .prefer = c->row.result.node,
                               .deadline_ns = lock->deadline_ns};
    atomic_fetch_add(&lock->s->swaps, 1);
    return hf__cs_ask(lock->s, &call, ret_result, lock->err);
}

static struct hf__cql_bytes named(const struct hf__cql_result *result, const char *name)
{
    int column = hf__cql_column_of(result, name);

    return column < 0 ? (struct hf__cql_bytes){0} : hf__cql_column(result, (size_t)column);
}

/* Somebody else was faster: its row takes the place of ours, the time stays. */
static int take_other(struct hf__cs_row *row, struct hf__cql_result *result, hf_error *err)
{
    int64_t generation;

    hf__cql_result_clear(&row->result);
    row->result = *result;
    *result = (struct hf__cql_result){0};
    row->exists = hf__cql_get_bigint(named(&row->result, "version"), &row->version);
    if (!row->exists)
        row->version = 0;
    if (!hf__cql_get_bigint(named(&row->result, "generation"), &generation))
        generation = 0;
    row->generation = (uint64_t)generation;
    struct hf__cs_packed packed = {named(&row->result, "holders"), named(&row->result, "waiters"),
                                   named(&row->result, "retired")};
    return hf__cs_row_take(row, &packed, err);
}

/* 0 and whether it was applied; if not, the row is what is there now. */
static int swap_row(struct hf__cs_case *c, bool *ret_applied)
{
    struct hf__cql_result result = {0};
    struct swap swap;
    int code;

    pack(&swap, c);
    if (swap.holders.failed || swap.waiters.failed || swap.retired.failed)
        code = hf__fail(c->lock.err, HF_FULL, "cassandra: this lock's row is too large");
    else
        code = send_swap(c, &swap, &result);
    hf__cql_writer_clear(&swap.holders);
    hf__cql_writer_clear(&swap.waiters);
    hf__cql_writer_clear(&swap.retired);
    if (code == 0)
        code = hf__cql_applied(&result, ret_applied, c->lock.err);
    if (code == 0 && !*ret_applied)
        code = take_other(&c->row, &result, c->lock.err);
    hf__cql_result_clear(&result);
    return code;
}

/* The whole ---------------------------------------------------------------- */

/* A swap of which it is not known whether it was applied. */
struct doubt {
    bool any;
    enum hf__verdict verdict; /* what it would have answered */
};

static void back_off(struct hf__cs *s, unsigned tries, int64_t deadline_ns)
{
    int64_t most_ms = tries > 4 ? 64 : INT64_C(4) << tries;
    int64_t pause_ns = (int64_t)hf__cs_jitter(s, (uint64_t)(most_ms * HF__NS_PER_MS));
    int64_t left_ns = deadline_ns - hf__now_ns(s->base.host->env);

    if (tries == 0 || left_ns <= 0)
        return;
    /* Swaps that meet refuse each other: without a random pause all of a crowd would, again and again. */
    pause_ns = pause_ns < left_ns ? pause_ns : left_ns;
    struct timespec pause = {.tv_nsec = (long)pause_ns};
    nanosleep(&pause, NULL);
}

/* The time of the row's clock, as far as it has surely come. */
static int64_t clock_of(const struct hf__cs_case *c)
{
    int64_t now_ns = hf__now_ns(c->lock.s->base.host->env);

    return c->row.now_ms + (now_ns - c->row.received_ns) / HF__NS_PER_MS;
}

/* Reads if need be, decides and, if need be, swaps. 1: again. */
static int try_once(struct hf__cs_case *c, struct doubt *doubt)
{
    bool applied = false;
    int code = 0;

    if (c->row.received_ns == 0 || clock_of(c) - c->row.now_ms > CLOCK_GOOD_MS)
        code = hf__cs_read(&c->lock, c->row.result.node, &c->row);
    if (code != 0)
        return code;
    c->now_ms = clock_of(c);
    code = hf__cs_decide(c);
    if (code != 0)
        return code;
    c->answer.sent_ns = c->row.sent_ns;
    bool write = hf__cs_must_write(c);
    hf__cs_finish(c);
    /* Its ticket is not there any more because the first try was applied after all. */
    if (doubt->any && c->answer.verdict == HF__VERDICT_STALE && doubt->verdict == HF__VERDICT_DONE)
        c->answer.verdict = HF__VERDICT_DONE;
    if (!write)
        return 0;
    code = swap_row(c, &applied);
    if (code == HF_UNKNOWN) {
        /* Not "no": a later read finds it if it was applied, and every operation may be repeated. */
        *doubt = (struct doubt){.any = true, .verdict = c->answer.verdict};
        c->row.received_ns = 0; /* read it */
        return 1;
    }
    return code != 0 ? code : !applied;
}

int hf__cs_operate(struct hf__cs *s, const struct hf__operation *op, int64_t deadline_ns,
                   struct hf__answer *ret_answer, hf_error *err)
{
    struct hf__cs_case c = {.lock = {s, op->bid->name, op->bid->name_len, deadline_ns, err},
                            .op = op};
    struct doubt doubt = {0};
    int code = 1;

    for (unsigned tries = 0; code == 1; tries++) {
        back_off(s, tries, deadline_ns);
        if (hf__now_ns(s->base.host->env) >= deadline_ns)
            code = hf__fail(err, HF_UNAVAILABLE, "cassandra: others were faster, again and again");
        else
            code = try_once(&c, &doubt);
    }
    if (code == 0 && c.answer.verdict == HF__VERDICT_QUEUED) {
        const struct hf__entry *was = hf__cs_row_was(&c.row, &op->bid->ticket);
        if (was != NULL && was->place == HF__PLACE_WAITING)
            code = hf__cs_send_heartbeat(&c.lock, &op->bid->ticket, was->lease_ms);
        else /* the row itself says that it lived when it joined */
            hf__cs_note_heartbeat(s, &op->bid->ticket, hf__own_lease_ms(op->bid->ttl_ms));
    }
    if (code == 0)
        *ret_answer = c.answer;
    else if (doubt.any)
        code = hf__wrap(err, HF_UNKNOWN, "not known whether it was applied");
    hf__cs_row_clear(&c.row);
    return code;
}
