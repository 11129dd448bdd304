/* See values.h. What is written are numbers that rise with every call, so that a value that went back shows
 * as a smaller number. */
#include "values.h"

#include <string.h>

static uint64_t number_of(const struct hf__value *value)
{
    uint64_t number = 0;

    if (value->len == sizeof number)
        memcpy(&number, value->bytes, sizeof number);
    return number;
}

/* Whether something happened that no promise covers. */
static bool is_excepted(const struct grant *g, uint64_t losses)
{
    return g->bid->excepted || figures.data_losses != losses || network_data_lost(g->process);
}

static void check_lost(struct grant *g, const char *doing)
{
    ledger_believe(g);
    if (!g->lost && !g->closed)
        sim_fail("C15: '%s' (call %d) was told LOST by a %s, and is held by its own account",
                 g->bid->room->name, g->call->number, doing);
}

static void write_value(struct grant *g, struct call *c)
{
    struct room *room = g->bid->room;
    uint64_t number = ++room->wrote, losses = figures.data_losses;
    hf_error err = {0};
    int r = hf_lock_set_value(g->lock, &number, sizeof number, &err);

    sim_note("call %d: write %llu: %s %s", c->number, (unsigned long long)number,
             r == 0 ? "OK" : hf_code_name(r), err.text);
    if (r == HF_LOST)
        check_lost(g, "write");
    if (r == HF_STALE && !is_excepted(g, losses))
        sim_fail("C15: the newest write to '%s' was taken for an old one", room->name);
    if (r != 0)
        return;
    if (number_of(&room->value) < number && !is_excepted(g, losses))
        sim_fail("C15: the write of %llu to '%s' was acknowledged, and it has %llu",
                 (unsigned long long)number, room->name,
                 (unsigned long long)number_of(&room->value));
    if (number_of(&room->value) >= number && number > room->written)
        room->written = number;
}

static void read_value(struct grant *g, struct call *c)
{
    struct room *room = g->bid->room;
    uint64_t number = 0, before = room->written, losses = figures.data_losses;
    size_t len = 0;
    hf_error err = {0};
    int r = hf_lock_value(g->lock, &number, sizeof number, &len, NULL, &err);

    sim_note("call %d: read %llu: %s %s", c->number, (unsigned long long)number,
             r == 0 ? "OK" : hf_code_name(r), err.text);
    if (r == HF_LOST)
        check_lost(g, "read");
    if (r == 0 && number < before && !is_excepted(g, losses))
        sim_fail("C15: the value of '%s' went back from %llu to %llu", room->name,
                 (unsigned long long)before, (unsigned long long)number);
}

void values_use(struct grant *g)
{
    struct call *c = ledger_begin(CALL_RENEW, g->bid->room, NULL);

    if (g->mode == HF_EXCLUSIVE && sim_chance(600))
        write_value(g, c);
    else
        read_value(g, c);
    ledger_end(c);
}

void values_check_closed(const struct grant *g, int64_t at_least_ms)
{
    const struct bid *b = g->bid;
    const struct hf__entry *e = hf__record_find(&b->room->record, &b->ticket);
    bool is_closed = e != NULL && e->place == HF__PLACE_LINGERING;

    if (!is_closed && !b->broken && !b->excepted && !network_data_lost(g->process) &&
        b->opened_ms < b->since_ms + at_least_ms)
        sim_fail("C14: '%s' (call %d) opened %lld ms too early", b->room->name, g->call->number,
                 (long long)(b->since_ms + at_least_ms - b->opened_ms));
}

void values_check_wanted(struct grant *g)
{
    const struct room *room = g->bid->room;

    if (!hf_lock_wanted(g->lock))
        return;
    if (g->call->opt.cached) /* it was asked for by the call that got it from the store */
        return;
    if (!g->call->opt.wanted && g->call->kind == CALL_ACQUIRE)
        sim_fail("C16: '%s' (call %d) is told what it did not ask for", room->name,
                 g->call->number);
    if (g->call->kind == CALL_ACQUIRE && room->waited_ns < g->call->began_ns)
        sim_fail("C16: '%s' (call %d) is wanted, and nobody has waited", room->name,
                 g->call->number);
}
