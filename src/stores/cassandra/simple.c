/* layout=simple: the published recipe, a plain mutex in the table leases(name, owner, value).
 *
 *      INSERT INTO leases (name, owner, value) VALUES (?, ?, ?) IF NOT EXISTS USING TTL ?
 *      UPDATE leases USING TTL ? SET owner = ?, value = ? WHERE name = ? IF owner = ?
 *      DELETE FROM leases WHERE name = ? IF owner = ?
 *
 * The owner is the ticket, the value says who that is. The server's own TTL ends a lease: it is of
 * whole seconds, counted from the second in which it was written, so one more is asked for than the
 * holder is told. Whoever finds its own ticket there (the answer to an earlier request was lost)
 * writes it anew, so that it knows when its lease began. Others that follow the recipe in the same
 * table are kept out and keep us out; there is no queue, no token and no lock-delay, and a request
 * that the network delivers after its bid was withdrawn keeps the lock closed until its TTL ends. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "stores/cassandra/cassandra.h"

#include "util/banned.h"

#define NAME_TEXT  (2 * HF_NAME_MAX + 2)
#define VALUE_TEXT 2200
#define ASK_MS     100

/* names -------------------------------------------------------------------------------------------
 */

/* A name that is UTF-8 stands there as it is. Any other, and one that begins with \001, is \001 and
 * its bytes in hex; so no two names meet. */
static void name_text(const char *name, size_t len, char *to)
{
    static const char digits[] = "0123456789abcdef";

    if (name[0] != '\001' && hf__pg_is_text(name, len)) {
        memcpy(to, name, len);
        to[len] = '\0';
        return;
    }
    *to++ = '\001';
    for (size_t i = 0; i < len; i++) {
        *to++ = digits[(unsigned char)name[i] >> 4];
        *to++ = digits[(unsigned char)name[i] & 15];
    }
    *to = '\0';
}

static int digit(unsigned char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* False: no name of ours, and too long to be one. */
static bool name_bytes(struct hf__cql_bytes text, char *to, size_t *ret_len)
{
    bool hex = text.len > 1 && text.data[0] == '\001' && text.len % 2 == 1;

    for (size_t i = 1; hex && i < text.len; i++)
        hex = digit(text.data[i]) >= 0;
    *ret_len = hex ? text.len / 2 : text.len;
    if (*ret_len == 0 || *ret_len > HF_NAME_MAX)
        return false;
    if (!hex)
        memcpy(to, text.data, text.len);
    for (size_t i = 0; hex && i < *ret_len; i++)
        to[i] = (char)(digit(text.data[1 + 2 * i]) << 4 | digit(text.data[2 + 2 * i]));
    return true;
}

/* values: "ttl since pid host user program note", where only the note has blanks ------------------
 */

struct value {
    int64_t ttl_ms, since_ms, pid;
    struct hf__pg_who who;
};

static void write_value(char *text, size_t size, const struct hf__bid *bid, int64_t since_ms)
{
    struct hf__pg_who who;
    char *words[] = {who.host, who.user, who.program};

    hf__pg_who_init(&who, bid->who);
    for (size_t i = 0; i < 3; i++) {
        for (char *at = words[i]; *at != '\0'; at++)
            *at = *at == ' ' ? '_' : *at;
    }
    snprintf(text, size, "%" PRId64 " %" PRId64 " %" PRId64 " %s %s %s %s", bid->ttl_ms, since_ms,
             who.pid, who.host, who.user, who.program, who.note);
}

/* A value that is not ours says nothing: then all of it is the note. */
static struct value read_value(struct hf__cql_bytes text)
{
    struct value v = {.ttl_ms = -1};
    char copy[VALUE_TEXT];
    int used = 0;
    size_t len = text.len < sizeof copy - 1 ? text.len : sizeof copy - 1;

    if (len > 0)
        memcpy(copy, text.data, len);
    copy[len] = '\0';
    if (sscanf(copy, "%" SCNd64 " %" SCNd64 " %" SCNd64 " %255s %255s %255s%n", &v.ttl_ms,
               &v.since_ms, &v.pid, v.who.host, v.who.user, v.who.program, &used) != 6 ||
        copy[used] != ' ') {
        v = (struct value){.ttl_ms = -1};
        used = -1;
    }
    snprintf(v.who.note, sizeof v.who.note, "%.1024s", copy + used + 1);
    return v;
}

/* statements --------------------------------------------------------------------------------------
 */

/* Whole seconds from the beginning of this one, on any node's clock. */
static int32_t seconds(const struct hf__cs *s, int64_t ms)
{
    return (int32_t)((ms + s->skew_ms + 999) / 1000 + 1);
}

struct ask {
    const char *name, *ticket, *value;
    int32_t ttl_s;
    int64_t deadline_ns;
};

static int swap(struct hf__cs *s, enum hf__cs_query query, const struct ask *a, bool *ret_applied,
                struct hf__cql_result *ret_result, hf_error *err)
{
    struct hf__cql_value name = hf__cql_text(a->name), ticket = hf__cql_text(a->ticket),
                         value = hf__cql_text(a->value), ttl = hf__cql_integer(a->ttl_s);
    struct hf__cql_value take[] = {name, ticket, value, ttl};
    struct hf__cql_value keep[] = {ttl, ticket, value, name, ticket};
    struct hf__cql_value drop[] = {name, ticket};
    struct hf__cs_call call = {.query = query,
                               .values = query == HF__CS_TAKE_LEASE   ? take
                                         : query == HF__CS_KEEP_LEASE ? keep
                                                                      : drop,
                               .value_count = query == HF__CS_TAKE_LEASE   ? 4
                                              : query == HF__CS_KEEP_LEASE ? 5
                                                                           : 2,
                               .deadline_ns = a->deadline_ns};
    int code = hf__cs_ask(s, &call, ret_result, err);

    return code != 0 ? code : hf__cql_applied(ret_result, ret_applied, err);
}

/* Once more after an unknown outcome: each is answered by the ticket. *ret_unsure: there was one. */
static int swap_surely(struct hf__cs *s, enum hf__cs_query query, const struct ask *a,
                       bool *ret_applied, struct hf__cql_result *result, bool *ret_unsure,
                       hf_error *err)
{
    int code;

    *ret_unsure = false;
    for (;;) {
        hf__cql_result_clear(result);
        code = swap(s, query, a, ret_applied, result, err);
        if (code != HF_UNKNOWN || hf__now_ns(s->base.host->env) >= a->deadline_ns)
            break;
        *ret_unsure = true;
    }
    if (code == HF_UNAVAILABLE && *ret_unsure)
        code = hf__wrap(err, HF_UNKNOWN, "not known whether it was applied");
    return code;
}

/* notes -------------------------------------------------------------------------------------------
 */

/* The table has no room for what is over: a ticket is let in at most once, and not after it was
 * withdrawn, as far as this process remembers (the last thousand or so). */
static struct hf__cs_note *slot(struct hf__cs *s, const struct hf__ticket *ticket)
{
    return &s->notes[(ticket->bits[0] << 8 | ticket->bits[1]) % HF__CS_SIGNS];
}

static void note(struct hf__cs *s, const struct hf__ticket *ticket, int64_t until_ns, bool retired)
{
    pthread_mutex_lock(&s->mutex);
    *slot(s, ticket) = (struct hf__cs_note){*ticket, until_ns, retired};
    pthread_mutex_unlock(&s->mutex);
}

/* What is known of it; false: nothing. */
static bool look_up(struct hf__cs *s, const struct hf__ticket *ticket, struct hf__cs_note *ret_note)
{
    pthread_mutex_lock(&s->mutex);
    *ret_note = *slot(s, ticket);
    pthread_mutex_unlock(&s->mutex);
    return hf__ticket_equal(&ret_note->ticket, ticket);
}

static void note_grant(struct hf__cs *s, const struct hf__ticket *ticket,
                       const struct hf__answer *answer)
{
    note(s, ticket, hf__moment_after(answer->sent_ns, answer->lease_ms), false);
}

/* operations --------------------------------------------------------------------------------------
 */

/* There is no token: a number of the ticket's own, for the core alone. */
static uint64_t number_of(const struct hf__ticket *ticket)
{
    uint64_t number;

    memcpy(&number, ticket->bits, sizeof number);
    return number >> 1 | 1;
}

static bool is_owner(const struct hf__cql_result *result, const char *ticket)
{
    int column = hf__cql_column_of(result, "owner");
    struct hf__cql_bytes owner =
        column < 0 ? (struct hf__cql_bytes){0} : hf__cql_column(result, (size_t)column);

    return owner.len == strlen(ticket) && memcmp(owner.data, ticket, owner.len) == 0;
}

static struct hf__answer not_now(struct hf__cs *s, const struct hf__bid *bid, int64_t sent_ns)
{
    return (struct hf__answer){.verdict = bid->queue ? HF__QUEUED : HF__BUSY,
                               .ask_again_ms = ASK_MS + (int64_t)hf__cs_dice(s, ASK_MS),
                               .lease_ms = hf__provisional_lease_ms(bid->ttl_ms),
                               .sent_ns = sent_ns};
}

static struct hf__answer granted(const struct hf__bid *bid, int64_t sent_ns)
{
    bool claimed = bid->ttl_ms > 0; /* one that never expires has to be claimed first */

    return (struct hf__answer){.verdict = HF__GRANTED,
                               .generation = number_of(&bid->ticket),
                               .lease_ms = claimed ? bid->ttl_ms : hf__provisional_lease_ms(0),
                               .claimed = claimed,
                               .sent_ns = sent_ns};
}

static int attempt(struct hf__cs *s, const struct hf__cs_op *op, struct ask *a,
                   struct hf__answer *ret_answer, hf_error *err)
{
    struct hf__bid bid = *op->bid;
    struct hf__cql_result result = {0};
    char value[VALUE_TEXT];
    bool applied = false, unsure;

    bid.ttl_ms -= bid.ttl_ms > 0 ? s->skew_ms : 0; /* seconds() adds it */
    const struct hf_env *env = s->base.host->env;
    write_value(value, sizeof value, &bid, (int64_t)(env->wall_us(env->ctx) / 1000));
    a->value = value;
    a->ttl_s = seconds(s, bid.ttl_ms > 0 ? bid.ttl_ms : hf__provisional_lease_ms(0));
    int64_t sent_ns = hf__now_ns(env);
    struct hf__cs_note known;
    bool seen = look_up(s, &bid.ticket, &known);
    if (seen && (known.retired || known.until_ns <= sent_ns)) {
        *ret_answer = (struct hf__answer){.verdict = HF__WITHDRAWN, .sent_ns = sent_ns};
        return 0;
    }
    int code = seen ? 0 : swap_surely(s, HF__CS_TAKE_LEASE, a, &applied, &result, &unsure, err);
    if (code == 0 && !applied && (seen || is_owner(&result, a->ticket))) {
        sent_ns = hf__now_ns(env);
        code = swap_surely(s, HF__CS_KEEP_LEASE, a, &applied, &result, &unsure, err);
        seen = true;
    }
    hf__cql_result_clear(&result);
    if (code != 0)
        return code;
    *ret_answer = applied ? granted(&bid, sent_ns) : not_now(s, &bid, sent_ns);
    if (applied)
        note_grant(s, &bid.ticket, ret_answer);
    else if (seen)
        ret_answer->verdict = HF__WITHDRAWN;
    return 0;
}

static int end(struct hf__cs *s, const struct hf__cs_op *op, struct ask *a,
               struct hf__answer *ret_answer, hf_error *err)
{
    struct hf__cql_result result = {0};
    bool applied = false, unsure;

    note(s, &op->bid->ticket, 0, true);
    int code = swap_surely(s, HF__CS_DROP_LEASE, a, &applied, &result, &unsure, err);

    hf__cql_result_clear(&result);
    if (code == 0)
        *ret_answer = (struct hf__answer){.verdict = applied || unsure ? HF__DONE : HF__STALE};
    return code;
}

/* The value is written anew as well, or it would end before its owner: so it is read first. */
static int renew(struct hf__cs *s, const struct hf__cs_op *op, struct ask *a,
                 struct hf__answer *ret_answer, hf_error *err)
{
    struct hf__cql_value name = hf__cql_text(a->name);
    struct hf__cs_call call = {.query = HF__CS_READ_LEASE,
                               .values = &name,
                               .value_count = 1,
                               .deadline_ns = a->deadline_ns};
    struct hf__cql_result result = {0};
    char value[VALUE_TEXT];
    bool applied = false, unsure;
    int code = hf__cs_ask(s, &call, &result, err);

    if (code != 0)
        return code;
    struct hf__cql_bytes text = {0};
    if (hf__cql_next_row(&result))
        text = hf__cql_column(&result, 2);
    struct hf__bid bid = *op->bid;
    bid.ttl_ms = read_value(text).ttl_ms;
    snprintf(value, sizeof value, "%.*s", (int)text.len, (const char *)text.data);
    bool knows = op->generation == number_of(&bid.ticket);
    a->value = value;
    a->ttl_s = bid.ttl_ms > 0 ? seconds(s, bid.ttl_ms)
               : knows        ? 0
                              : seconds(s, hf__provisional_lease_ms(0));
    int64_t sent_ns = hf__now_ns(s->base.host->env);
    struct hf__cs_note known;
    bool too_late = look_up(s, &bid.ticket, &known) && known.until_ns <= sent_ns;
    if (too_late) /* its TTL may run on, but what was told is over */
        code = swap_surely(s, HF__CS_DROP_LEASE, a, &applied, &result, &unsure, err);
    else if (bid.ttl_ms >= 0 && (knows || op->generation == 0))
        code = swap_surely(s, HF__CS_KEEP_LEASE, a, &applied, &result, &unsure, err);
    applied = applied && !too_late;
    hf__cql_result_clear(&result);
    if (code != 0)
        return code;
    *ret_answer = applied ? granted(&bid, sent_ns)
                          : (struct hf__answer){.verdict = HF__GONE_LOST, .sent_ns = sent_ns};
    if (applied && bid.ttl_ms == 0 && knows) {
        ret_answer->lease_ms = HF__NEVER;
        ret_answer->claimed = true;
    }
    if (applied)
        note_grant(s, &bid.ticket, ret_answer);
    return 0;
}

int hf__cs_simple_operate(struct hf__cs *s, const struct hf__cs_op *op, int64_t deadline_ns,
                          struct hf__answer *ret_answer, hf_error *err)
{
    char name[NAME_TEXT], ticket[HF_TICKET_SIZE];
    struct ask a = {.name = name, .ticket = ticket, .value = "", .deadline_ns = deadline_ns};

    name_text(op->bid->name, op->bid->name_len, name);
    hf__ticket_format(&op->bid->ticket, ticket);
    switch (op->kind) {
    case HF__CS_ATTEMPT:
        return attempt(s, op, &a, ret_answer, err);
    case HF__CS_RENEW:
        return renew(s, op, &a, ret_answer, err);
    default:
        return end(s, op, &a, ret_answer, err);
    }
}

/* looking -----------------------------------------------------------------------------------------
 */

/* A row put aside until it is its turn: rows come in the order of their hashes. */
struct kept {
    struct hf__ticket ticket;
    struct value value;
    int64_t left_ms;
    size_t name_len;
    char name[HF_NAME_MAX];
};

struct selection {
    const struct hf__look *look;
    struct kept *rows;
    size_t count, capacity;
};

static bool read_kept(const struct hf__cql_result *r, struct kept *to)
{
    struct hf__cql_bytes owner = hf__cql_column(r, 1);
    char ticket[HF_TICKET_SIZE] = "";
    int32_t left_s;

    if (owner.len == 0 || !name_bytes(hf__cql_column(r, 0), to->name, &to->name_len))
        return false;
    if (owner.len == sizeof ticket - 1)
        memcpy(ticket, owner.data, owner.len);
    if (!hf__ticket_parse(ticket, &to->ticket)) /* of somebody else's making: it has no ticket */
        to->ticket = (struct hf__ticket){0};
    to->value = read_value(hf__cql_column(r, 2));
    to->left_ms =
        hf__cql_get_integer(hf__cql_column(r, 3), &left_s) ? left_s * INT64_C(1000) : HF__NEVER;
    return true;
}

static bool keep(struct selection *all, const struct hf__cql_result *r)
{
    const struct hf__look *look = all->look;

    if (all->count == all->capacity) {
        size_t capacity = all->capacity == 0 ? 16 : 2 * all->capacity;
        void *grown = realloc(all->rows, capacity * sizeof *all->rows);
        if (grown == NULL)
            return false;
        all->rows = grown;
        all->capacity = capacity;
    }
    struct kept *row = &all->rows[all->count];
    if (read_kept(r, row) &&
        (look->prefix == NULL || (row->name_len >= look->prefix_len &&
                                  memcmp(row->name, look->prefix, look->prefix_len) == 0)))
        all->count++;
    return true;
}

static int by_name(const void *a, const void *b)
{
    const struct kept *x = a, *y = b;
    size_t shorter = x->name_len < y->name_len ? x->name_len : y->name_len;
    int order = memcmp(x->name, y->name, shorter);

    return order != 0 ? order : (x->name_len > y->name_len) - (x->name_len < y->name_len);
}

static int show(struct hf__cs *s, const struct hf__look *look, struct kept *row)
{
    const struct hf_env *env = s->base.host->env;
    struct value *v = &row->value;
    int64_t now_ms = (int64_t)(env->wall_us(env->ctx) / 1000);
    struct hf__who who = {.host = hf__pg_plain(v->who.host),
                          .user = hf__pg_plain(v->who.user),
                          .program = hf__pg_plain(v->who.program),
                          .note = hf__pg_plain(v->who.note),
                          .pid = v->pid};
    struct hf__entry e = {.ticket = row->ticket,
                          .place = HF__INSIDE,
                          .mode = HF_EXCLUSIVE,
                          .claimed = true,
                          .ttl_ms = v->ttl_ms > 0 ? v->ttl_ms : 0,
                          .since_ms =
                              v->since_ms > 0 && v->since_ms < now_ms ? now_ms - v->since_ms : 0,
                          .until_ms = row->left_ms,
                          .who = &who};

    if (e.ttl_ms > 0 && e.until_ms > e.ttl_ms)
        e.until_ms = e.ttl_ms; /* as it was told at most */
    if (look->older_than_ms > 0 && e.since_ms < look->older_than_ms)
        return 0;
    return look->found(look->ctx, row->name, row->name_len, &e);
}

int hf__cs_simple_inspect(struct hf__cs *s, const struct hf__look *look, int64_t deadline_ns,
                          hf_error *err)
{
    char text[NAME_TEXT] = "";
    bool one = look->name != NULL;
    struct selection all = {.look = look};

    if (one)
        name_text(look->name, look->name_len, text);
    struct hf__cql_value name = hf__cql_text(text);
    struct hf__cs_call call = {.query = one ? HF__CS_READ_LEASE : HF__CS_SCAN_LEASES,
                               .values = &name,
                               .value_count = one,
                               .page_size = one ? 0 : 200,
                               .deadline_ns = deadline_ns};
    struct hf__cql_request request = hf__cs_request(s, &call);
    struct hf__cql_result result = {0};
    int code = hf__cql_execute(s->cql, &request, &result, err);

    while (code == 0) {
        while (code == 0 && hf__cql_next_row(&result)) {
            if (!keep(&all, &result))
                code = hf__fail(err, HF_NO_MEMORY, NULL);
        }
        if (code != 0 || !result.has_more)
            break;
        code = hf__cql_next_page(s->cql, &request, &result, err);
    }
    hf__cql_result_clear(&result);
    if (all.count > 1)
        qsort(all.rows, all.count, sizeof *all.rows, by_name);
    for (size_t i = 0; i < all.count && code == 0; i++)
        code = show(s, look, &all.rows[i]);
    free(all.rows);
    return code;
}
