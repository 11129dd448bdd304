/* A lock without a queue, by one statement instead of a procedure:
 *
 *      UPDATE holdfast_lock SET ... inside = <ticket> ... WHERE name = ... AND inside = <zeros>
 *      UPDATE holdfast_lock SET ... inside = <zeros> WHERE name = ... AND inside = <ticket> ...
 *
 * Each is a transaction of its own that locks the lock's row and no other. Zeros say that nobody
 * holds or waits and that no ticket is remembered, a ticket says that it holds and that there is
 * nobody else; so the doorman would let this bid in, or have nobody to let in, and the statement
 * does just that. The clock is read after the row is locked, and must not have gone back; the lease
 * must not have run out. Whatever does not match is left as it is and goes through the rules, which
 * costs a second round trip. Names that were crowded the last time go there at once, and so does
 * everything on a connection through a proxy, which may not keep the session's time zone.
 *
 * The statements are prepared once on each connection. (A procedure that does the same takes twice
 * as long: its parameters, its variables and its result are as much work for the server as the
 * row.) */
#include "base/table.h"
#include "base/utf8.h"
#include "stores/mysql/mysql.h"

#include "base/banned.h"

static atomic_bool *crowded(struct hf__my *s, const struct hf__bid *bid)
{
    return &s->crowded[hf__hash(0, bid->name, bid->name_len) % HF__MY_HINTS];
}

static bool is_simple(const struct hf__sql_operation *op)
{
    const struct hf__bid *bid = op->bid;

    if (op->kind == HF__OPERATION_ATTEMPT)
        return bid->mode == HF_EXCLUSIVE && bid->ttl_ms != HF__NEVER && bid->lock_delay_ms == 0 &&
               !bid->tell;
    return (op->kind == HF__OPERATION_RELEASE || op->kind == HF__OPERATION_WITHDRAW) &&
           op->retire_ms == 0 && op->at_least_ms == 0;
}

#define COLUMNS_MAX 11
#define TEXT_MAX    255 /* characters of host, username, program */

/* Parameters, in the order of the statement's question marks. */
struct params {
    MYSQL_BIND list[COLUMNS_MAX];
    size_t count;
    int64_t numbers[4];
    char texts[3][4 * TEXT_MAX];
};

static void add(struct params *p, enum enum_field_types type, const void *from, size_t len)
{
    p->list[p->count++] =
        (MYSQL_BIND){.buffer_type = type, .buffer = (void *)(uintptr_t)from, .buffer_length = len};
}

static void add_number(struct params *p, size_t which, int64_t number)
{
    p->numbers[which] = number;
    add(p, MYSQL_TYPE_LONGLONG, &p->numbers[which], sizeof number);
}

/* The server refuses a statement for one byte that is not text. */
static void add_text(struct params *p, size_t which, const char *text)
{
    size_t len = 0, count = 0;
    uint32_t c;

    for (; *text != '\0' && count < TEXT_MAX; count++) {
        size_t one = hf__utf8_decode(text, strnlen(text, 4), &c);
        memcpy(p->texts[which] + len, one > 0 ? text : "?", one > 0 ? one : 1);
        len += one > 0 ? one : 1;
        text += one > 0 ? one : 1;
    }
    add(p, MYSQL_TYPE_STRING, p->texts[which], len);
}

static void fill_take(struct hf__my *s, struct params *p, const struct hf__sql_operation *op,
                      int64_t deadline_ns)
{
    const struct hf__bid *bid = op->bid;
    const struct hf__who *who = bid->who != NULL ? bid->who : s->base.host->self;

    add(p, MYSQL_TYPE_BLOB, bid->ticket.bits, sizeof bid->ticket.bits);
    add_number(p, 0, bid->ttl_ms);
    add_number(p, 1, bid->retire_ms);
    add(p, op->wake != NULL ? MYSQL_TYPE_STRING : MYSQL_TYPE_NULL, op->wake,
        op->wake != NULL ? strlen(op->wake) : 0);
    add_text(p, 0, who->host);
    add_text(p, 1, who->user);
    add_text(p, 2, who->program);
    add_number(p, 2, who->pid);
    add(p, MYSQL_TYPE_BLOB, who->note, strnlen(who->note, HF_NOTE_MAX));
    add(p, MYSQL_TYPE_BLOB, bid->name, bid->name_len);
    add_number(p, 3, hf__sql_latest_us(&s->sql, deadline_ns));
}

static void answer(const struct hf__my_conn *c, const struct hf__sql_operation *op,
                   struct hf__answer *ret_answer)
{
    *ret_answer = (struct hf__answer){.verdict = HF__VERDICT_DONE, .sent_ns = ret_answer->sent_ns};
    if (op->kind != HF__OPERATION_ATTEMPT)
        return;
    ret_answer->verdict = HF__VERDICT_GRANTED;
    ret_answer->generation = mysql_stmt_insert_id(c->take);
    ret_answer->lease_ms = op->bid->ttl_ms;
    ret_answer->claimed = true;
}

/* Where the server has no room for another prepared statement there is still the long way. */
static int prepare(struct hf__my *s, struct hf__my_conn *c, const char *sql, int64_t deadline_ns,
                   MYSQL_STMT **ret_stmt, hf_error *err)
{
    hf_error why = {0};
    int r = hf__my_prepare(s, c, sql, deadline_ns, ret_stmt, &why);

    c->unprepared = why.store_code == 1461;
    if (c->unprepared) {
        c->broken = false;
        return 0;
    }
    if (r != 0 && err != NULL)
        *err = why;
    return r;
}

int hf__my_quick(struct hf__my *s, struct hf__my_conn *c, const struct hf__sql_operation *op,
                 int64_t deadline_ns, struct hf__answer *ret_answer, bool *ret_done, hf_error *err)
{
    bool takes = op->kind == HF__OPERATION_ATTEMPT;
    MYSQL_STMT **at = takes ? &c->take : &c->free;
    struct params p;

    *ret_done = false;
    if (!is_simple(op) || c->proxied || c->unprepared || atomic_load(crowded(s, op->bid)))
        return 0;
    if (*at == NULL) {
        int r = prepare(s, c, takes ? hf__my_take_sql : hf__my_free_sql, deadline_ns, at, err);
        if (r != 0 || c->unprepared)
            return r;
    }
    p.count = 0;
    if (takes) {
        fill_take(s, &p, op, deadline_ns);
    } else {
        add(&p, MYSQL_TYPE_BLOB, op->bid->name, op->bid->name_len);
        add(&p, MYSQL_TYPE_BLOB, op->bid->ticket.bits, sizeof op->bid->ticket.bits);
    }
    int r = hf__my_execute(s, c, *at, p.list, deadline_ns, err);
    if (r != 0)
        return r;
    *ret_done = mysql_stmt_affected_rows(*at) == 1;
    if (*ret_done)
        answer(c, op, ret_answer);
    else
        atomic_store(crowded(s, op->bid), true);
    return 0;
}

void hf__my_quick_learn(struct hf__my *s, const struct hf__sql_operation *op,
                        const struct hf__answer *got)
{
    if (op->kind == HF__OPERATION_ATTEMPT && is_simple(op) && got->verdict == HF__VERDICT_GRANTED &&
        got->claimed)
        atomic_store(crowded(s, op->bid), false);
}
