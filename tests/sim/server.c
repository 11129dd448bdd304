/* See server.h: the records, and the real doorman's rules applied to them. */
#include "server.h"

#include <string.h>

#include "ledger.h"
#include "lib/operate.h"
#include "stores/search.h"

#define ROOMS_MAX  2048
#define WALL_START UINT64_C(1700000000000000) /* microseconds */

static struct {
    struct room rooms[ROOMS_MAX];
    size_t count;
    int64_t offset_ns; /* of its clock against the true time */
    struct hf__record remembered[ROOMS_MAX];
} server;

void server_begin(void)
{
    server.offset_ns = sim_between(0, 1000000) * SIM_MS;
}

size_t server_room_count(void)
{
    return server.count;
}

struct room *server_room_at(size_t i)
{
    return &server.rooms[i];
}

struct room *server_room(const char *name, size_t len)
{
    for (size_t i = 0; i < server.count; i++) {
        struct room *r = &server.rooms[i];
        if (r->name_len == len && memcmp(r->name, name, len) == 0)
            return r;
    }
    if (server.count == ROOMS_MAX || len >= sizeof server.rooms[0].name)
        sim_fail("the server has no room for '%.*s'", (int)len, name);
    struct room *r = &server.rooms[server.count++];
    memcpy(r->name, name, len);
    r->name_len = len;
    return r;
}

int64_t server_now_ms(void)
{
    return (sim.now_ns + server.offset_ns) / SIM_MS;
}

int64_t server_true_ns(int64_t server_ms)
{
    return server_ms == HF__NEVER ? SIM_NEVER : server_ms * SIM_MS - server.offset_ns;
}

static struct hf__moment moment(void)
{
    return (struct hf__moment){server_now_ms(), WALL_START + (uint64_t)sim.now_ns / 1000};
}

static void make_room(struct hf__record *record)
{
    if (record->count < record->capacity)
        return;
    size_t capacity = record->capacity == 0 ? 16 : 2 * record->capacity;
    struct hf__entry *entries = sim_alloc(capacity * sizeof *entries);
    if (record->count > 0)
        memcpy(entries, record->entries, record->count * sizeof *entries);
    record->entries = entries;
    record->capacity = capacity;
}

static const char *verdict_text(enum hf__verdict v)
{
    static const char *const texts[] = {"granted", "queued", "busy", "withdrawn", "full",
                                        "done",    "stale",  "gone", "more"};
    return texts[v];
}

/* Tells those that were let in, but for the one that learns it from its answer. */
static void settle(struct room *room, const struct hf__ticket *knows)
{
    for (size_t i = 0; i < room->record.count; i++) {
        struct hf__entry *e = &room->record.entries[i];
        bool knows_it = knows != NULL && hf__ticket_equal(&e->ticket, knows);
        if ((e->effects & HF__EFFECT_WANTED) && e->who != NULL)
            network_call(e->who, 0);
        if (!(e->effects & HF__EFFECT_LET_IN) || e->place != HF__PLACE_INSIDE)
            continue;
        if (e->generation <= room->highest)
            sim_fail("C4: '%s' gave generation %llu after %llu", room->name,
                     (unsigned long long)e->generation, (unsigned long long)room->highest);
        room->highest = e->generation;
        if (!knows_it && e->who != NULL)
            network_call(e->who, e->generation);
    }
    hf__record_settle(&room->record);
    ledger_looked(room);
}

static struct hf__answer apply_one(struct request *q, struct item *item)
{
    static const enum hf__operation_kind kinds[] = {
        [OP_ATTEMPT] = HF__OPERATION_ATTEMPT, [OP_WITHDRAW] = HF__OPERATION_WITHDRAW,
        [OP_RELEASE] = HF__OPERATION_RELEASE, [OP_RENEW] = HF__OPERATION_RENEW,
        [OP_BREAK] = HF__OPERATION_BREAK,     [OP_BREAK_NOW] = HF__OPERATION_BREAK,
        [OP_READ] = HF__OPERATION_READ,       [OP_WRITE] = HF__OPERATION_WRITE};
    struct hf__record *record = &item->room->record;
    struct hf__value *value = &item->room->value;
    struct hf__operation op = {.kind = kinds[q->op],
                               .bid = &q->terms,
                               .who = item->bid,
                               .retire_ms = q->retire_ms,
                               .at_least_ms = q->at_least_ms,
                               .generation = item->generation,
                               .value = &q->value,
                               .now = q->op == OP_BREAK_NOW};

    make_room(&item->room->record);
    q->terms.name = item->room->name;
    q->terms.name_len = item->room->name_len;
    q->terms.ticket = item->bid->ticket;
    record->value_generation = value->generation;
    record->value_order = value->order;
    record->doubt = value->doubt;
    struct hf__answer a = hf__doorman_apply(record, &op, moment());
    if (q->op == OP_WRITE && a.verdict == HF__VERDICT_DONE)
        *value = q->value;
    value->generation = record->value_generation;
    value->order = record->value_order;
    value->doubt = record->doubt;
    if (q->op == OP_READ)
        q->value = *value;
    return a;
}

/* A leased holder that is broken gently keeps the door closed; any other is not told in time. */
static void note_break(const struct request *q, struct item *item)
{
    const struct hf__entry *e = hf__record_find(&item->room->record, &item->bid->ticket);

    if (e == NULL || e->place == HF__PLACE_RETIRED)
        return;
    item->bid->broken = true;
    if (e->place != HF__PLACE_WAITING && (q->op == OP_BREAK_NOW || e->until_ms == HF__NEVER))
        item->bid->excepted = true;
    if (network.tells_holders)
        network_call(item->bid, 0);
}

static void inspect(struct request *q)
{
    size_t count = 0;

    for (size_t i = 0; i < server.count; i++)
        count += server.rooms[i].record.count;
    q->found_count = 0;
    q->found = sim_alloc((count + 1) * sizeof *q->found);
    for (size_t i = 0; i < server.count; i++) {
        struct room *room = &server.rooms[i];
        for (int waiting = 0; waiting < 2; waiting++) {
            for (size_t k = 0; k < room->record.count; k++) {
                struct hf__entry copy = room->record.entries[k];
                if ((copy.place == HF__PLACE_WAITING) != (waiting == 1) ||
                    !hf__search_settle(&copy, server_now_ms()))
                    continue;
                copy.since_ms = server_now_ms() - copy.since_ms;
                if (copy.until_ms != HF__NEVER)
                    copy.until_ms -= server_now_ms();
                copy.who = room;
                q->found[q->found_count++] = copy;
            }
        }
    }
}

void server_apply(struct request *q)
{
    if (q->op == OP_INSPECT) {
        inspect(q);
        return;
    }
    for (size_t i = 0; i < q->count; i++) {
        struct item *item = &q->items[i];
        int64_t sent_ns = item->answer.sent_ns;
        if (q->op == OP_BREAK || q->op == OP_BREAK_NOW)
            note_break(q, item);
        item->answer = apply_one(q, item);
        item->answer.sent_ns = sent_ns;
        sim_note("    server: request %d of p%d, '%s' %02x%02x: %s %llu", q->number,
                 q->from->number, item->room->name, item->bid->ticket.bits[0],
                 item->bid->ticket.bits[1], verdict_text(item->answer.verdict),
                 (unsigned long long)item->answer.generation % 1000000000);
        settle(item->room, q->op == OP_ATTEMPT ? &item->bid->ticket : NULL);
    }
}

void server_sweep(void)
{
    for (size_t i = 0; i < server.count; i++) {
        make_room(&server.rooms[i].record);
        ask_doorman(&server.rooms[i].record, op_sweep(), moment());
        server.rooms[i].value.doubt |= server.rooms[i].record.doubt;
        settle(&server.rooms[i], NULL);
    }
}

/* What goes wrong with it. --------------------------------------------------------------------- */
void server_step_clock(int64_t ms)
{
    sim_note("the server's clock steps by %lld ms", (long long)ms);
    server.offset_ns += ms * SIM_MS;
    if (ms > 0)
        ledger_except_all();
    else
        ledger_last_longer(-ms * SIM_MS);
    figures.clock_steps++;
}

void server_remember(void)
{
    for (size_t i = 0; i < server.count; i++) {
        struct hf__record *copy = &server.remembered[i], *now = &server.rooms[i].record;
        *copy = *now;
        server.rooms[i].remembered = server.rooms[i].value;
        copy->entries = sim_alloc((now->capacity + 1) * sizeof *copy->entries);
        if (now->count > 0)
            memcpy(copy->entries, now->entries, now->count * sizeof *copy->entries);
    }
}

/* The record of a name that was not there yet is empty again; its generation was lost too. */
void server_lose(void)
{
    sim_note("the server loses its last writes");
    ledger_except_all();
    for (size_t i = 0; i < server.count; i++) {
        server.rooms[i].record = server.remembered[i];
        server.rooms[i].value = server.rooms[i].remembered;
        server.rooms[i].remembered = (struct hf__value){0};
        server.rooms[i].written = 0;
        server.remembered[i] = (struct hf__record){0};
        ledger_looked(&server.rooms[i]);
    }
    figures.data_losses++;
}
