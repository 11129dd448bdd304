/* See server.h: how messages travel.
 *
 * A request arrives after a while and its reply comes back after a while; the weather says which
 * kinds of request, of whom, from when to when, are refused, lost, slow, late, repeated, applied
 * without a reply or answered by an error. A request that its caller no longer waits for may still
 * arrive, within what tombstones remember (C5). An attempt that was answered is not repeated: no
 * store sends it again (store.h). */
#include "server.h"

#include <limits.h>
#include <string.h>

#include "ledger.h"

#define WEATHERS_MAX 16
#define SLOW_NS      (40 * SIM_MS) /* an answer after that is trouble */

struct network network;

enum fate { FINE, SLOW, REFUSED, REFUSED_LATE, LOST, REPLY_LOST, RESET, LATE, TWICE, ERROR, FATES };
static const char *const fate_names[] = {"fine",       "slow",  "refused", "refused late", "lost",
                                         "reply lost", "reset", "late",    "twice",        "error"};

struct weather {
    int64_t from_ns, to_ns, extra_ns;
    unsigned ops;
    int process; /* 0: all */
    int permille;
    enum fate fate;
};

static struct {
    struct weather weathers[WEATHERS_MAX];
    int weather_count;
    int requests;
    int64_t trouble_ns[64][OPS]; /* by process */
    struct sim_store *stores;
} net;

void network_begin(void)
{
    static const int64_t latencies_us[] = {60, 200, 1000, 5000};
    static const int64_t op_timeouts_ms[] = {100, 300, 1000, 2000, 5000, 10000};

    network.pushes = sim_chance(750);
    network.tells_holders = network.pushes && sim_chance(300);
    network.latency_ns = latencies_us[sim_between(0, 3)] * SIM_US;
    network.op_timeout_ms = op_timeouts_ms[sim_between(0, 5)];
    network.late_ns = sim_between(10, 15000) * SIM_MS;
    network.trouble_permille = sim_chance(500) ? (int)sim_between(1, 60) : 0;
    for (int p = 0; p < 64; p++) {
        for (int op = 0; op < OPS; op++)
            net.trouble_ns[p][op] = INT64_MIN / 2;
    }
}

/* A stretch of trouble; most kinds spare most requests, or nothing would ever be obtained. */
void network_add_weather(void)
{
    static const unsigned kinds[] = {1u << OP_ATTEMPT,
                                     1u << OP_WITHDRAW,
                                     1u << OP_RELEASE,
                                     1u << OP_RENEW,
                                     1u << OP_WITHDRAW | 1u << OP_RELEASE,
                                     ~0u};

    if (net.weather_count == WEATHERS_MAX)
        return;
    struct weather *w = &net.weathers[net.weather_count++];
    int64_t span_ns = sim_chance(300) ? sim_between(5000, 40000) : sim_between(50, 5000);
    *w = (struct weather){.from_ns = sim.now_ns,
                          .to_ns = sim.now_ns + span_ns * SIM_MS,
                          .extra_ns = sim_between(1, 3 * network.op_timeout_ms / 2) * SIM_MS,
                          .ops = kinds[sim_between(0, 5)],
                          .process = sim_chance(500) ? 0 : (int)sim_between(1, 5),
                          .permille = sim_chance(500) ? 1000 : (int)sim_between(100, 900),
                          .fate = (enum fate)sim_between(SLOW, FATES - 1)};
    sim_note("weather for %lld ms: %s (extra %lld ms), requests %x of p%d, %d of 1000",
             (long long)span_ns, fate_names[w->fate], (long long)(w->extra_ns / SIM_MS), w->ops,
             w->process, w->permille);
}

void network_calm(void)
{
    sim_note("the faults are over");
    net.weather_count = 0;
    network.trouble_permille = 0;
    network.quiet = true;
}

static enum fate draw_fate(const struct request *q, int64_t *ret_extra_ns)
{
    *ret_extra_ns = 0;
    for (int i = 0; i < net.weather_count; i++) {
        const struct weather *w = &net.weathers[i];
        if (sim.now_ns < w->from_ns || sim.now_ns >= w->to_ns || !(w->ops & 1u << q->op) ||
            (w->process != 0 && w->process != q->from->number) || !sim_chance(w->permille))
            continue;
        *ret_extra_ns = w->extra_ns;
        return w->fate;
    }
    if (!sim_chance(network.trouble_permille))
        return FINE;
    *ret_extra_ns = sim_between(0, network.op_timeout_ms) * SIM_MS;
    return (enum fate)sim_between(SLOW, FATES - 1);
}

static int64_t draw_latency(void)
{
    int64_t ns = sim_between(network.latency_ns / 2, 2 * network.latency_ns);

    return !network.quiet && sim_chance(10) ? 10 * ns : ns;
}

int64_t network_trouble_ns(const struct process *p, enum op op)
{
    return net.trouble_ns[p->number][op];
}

/* Requests and replies. ------------------------------------------------------------------------ */
static void bring_reply(void *arg, uint64_t n)
{
    struct request *q = arg;

    (void)n;
    if (q->caller == NULL || q->from->dead)
        return;
    q->answered = true;
    sim_wake(q->caller);
}

static void arrive(void *arg, uint64_t reply_after_ns)
{
    struct request *q = arg, copy;

    if (q->arrived) { /* applied again, for nobody */
        copy = *q;
        copy.items = sim_alloc((q->count + 1) * sizeof *copy.items);
        memcpy(copy.items, q->items, q->count * sizeof *copy.items);
        q = &copy;
    }
    q->arrived = true;
    server_apply(q);
    if (reply_after_ns != UINT64_MAX && q != &copy)
        sim_at(sim.now_ns + (int64_t)reply_after_ns, bring_reply, q, 0);
}

static int refuse(hf_error *err, int code, const char *text)
{
    return hf__fail(err, code, "%s", text);
}

static int other_error(hf_error *err)
{
    static const int codes[] = {HF_DENIED, HF_FULL, HF_CORRUPT, HF_SYSTEM, HF_NO_MEMORY};

    return refuse(err, codes[sim_between(0, 4)], "the server says no");
}

/* Puts the request on its way. What the caller is told if no reply comes, and when. */
static int dispatch(struct request *q, enum fate fate, int64_t extra_ns, int64_t *until_ns)
{
    int64_t go_ns = draw_latency(), back_ns = draw_latency();
    bool there = sim_chance(500); /* which way is slow */

    if (fate == SLOW)
        *(there ? &go_ns : &back_ns) += extra_ns;
    if (fate == LATE)
        go_ns = *until_ns - sim.now_ns + sim_between(0, network.late_ns);
    bool early = fate == REFUSED || fate == RESET || fate == ERROR;
    if (early || (fate == REPLY_LOST && sim_chance(300)))
        *until_ns =
            sim.now_ns + go_ns + back_ns < *until_ns ? sim.now_ns + go_ns + back_ns : *until_ns;
    if (fate == REFUSED_LATE && extra_ns < *until_ns - sim.now_ns)
        *until_ns = sim.now_ns + extra_ns;
    if (fate == REFUSED || fate == REFUSED_LATE)
        return HF_UNAVAILABLE;
    if (fate == ERROR)
        return HF_DENIED;
    if (fate == LOST || (fate == RESET && there))
        return HF_UNKNOWN;
    bool replies = fate == FINE || fate == SLOW || fate == TWICE;
    sim_at(sim.now_ns + go_ns, arrive, q, replies ? (uint64_t)back_ns : UINT64_MAX);
    if (fate == TWICE || (fate == LATE && there)) {
        int64_t again_ns =
            go_ns + sim_between(0, q->op == OP_ATTEMPT && replies ? 0 : network.late_ns);
        if (q->op != OP_ATTEMPT || !replies)
            sim_at(sim.now_ns + again_ns, arrive, q, UINT64_MAX);
    }
    return HF_UNKNOWN;
}

int network_ask(struct request *q, int64_t deadline_local_ns, hf_error *err)
{
    static const char *const names[] = {"attempt", "withdraw",  "release", "renew", "inspect",
                                        "break",   "break now", "read",    "write"};
    int64_t sent_ns = sim.now_ns, extra_ns;
    int64_t until_ns = sim_true_ns(q->from, deadline_local_ns);

    q->number = ++net.requests;
    ledger_sent(q, sim.self);
    if (until_ns <= sim.now_ns)
        return refuse(err, HF_UNAVAILABLE, "there is no time left to send it");
    enum fate fate = draw_fate(q, &extra_ns);
    if (fate != FINE)
        net.trouble_ns[q->from->number][q->op] = sim.now_ns;
    q->caller = sim.self;
    sim_note("request %d: %s %zu, %s, %.3f s to go", q->number, names[q->op], q->count,
             fate_names[fate], (double)(until_ns - sim.now_ns) / 1e9);
    int code = dispatch(q, fate, extra_ns, &until_ns);
    sim_block(SIM_REPLY, q, until_ns);
    q->caller = NULL;
    if (!q->answered || sim.now_ns - sent_ns > SLOW_NS)
        net.trouble_ns[q->from->number][q->op] = sim.now_ns;
    sim_note("request %d: %s", q->number, q->answered ? "answered" : "not answered");
    if (q->answered)
        return 0;
    if (code == HF_DENIED)
        return other_error(err);
    if (code == HF_UNKNOWN && q->op == OP_RELEASE)
        q->items[0].bid->release_unanswered = true;
    return refuse(err, code, code == HF_UNKNOWN ? "no answer" : "the server cannot be reached");
}

/* Wake-ups. ------------------------------------------------------------------------------------ */
struct wake {
    struct sim_store *store;
    struct bid *bid;
    uint64_t generation;
};

static bool is_open(const struct sim_store *store)
{
    for (const struct sim_store *s = net.stores; s != NULL; s = s->next) {
        if (s == store)
            return !s->process->dead && s->wake_fd >= 0;
    }
    return false;
}

static void bring_wake(void *arg, uint64_t n)
{
    struct wake *w = arg;

    (void)n;
    if (!is_open(w->store) || w->store->called_count == 256)
        return;
    figures.wakes++;
    sim_note("    p%d is called: %s %llu", w->store->process->number,
             w->bid == NULL ? "everybody" : w->bid->room->name,
             (unsigned long long)w->generation % 1000000000);
    w->store->called[w->store->called_count++] = (struct call_out){w->bid, w->generation};
    sim_raise(w->store->wake_fd);
    if (w->bid != NULL)
        ledger_woken(w->bid);
}

static void send_wake(struct sim_store *store, struct bid *bid, uint64_t generation)
{
    struct wake *w = sim_alloc(sizeof *w);
    int copies =
        network.quiet || !sim_chance(network.trouble_permille) ? 1 : (int)sim_between(0, 2);

    *w = (struct wake){store, bid, generation};
    while (copies-- > 0) {
        int64_t after_ns = draw_latency();
        if (!network.quiet && sim_chance(network.trouble_permille))
            after_ns += sim_between(0, 12000) * SIM_MS;
        sim_at(sim.now_ns + after_ns, bring_wake, w, 0);
    }
}

void network_call(struct bid *bid, uint64_t generation)
{
    if (bid->listens && is_open(bid->store))
        send_wake(bid->store, bid, generation);
}

void network_call_everybody(void)
{
    for (struct sim_store *s = net.stores; s != NULL; s = s->next) {
        if (is_open(s))
            send_wake(s, NULL, 0);
    }
}

void network_tell(bool data_lost)
{
    for (struct sim_store *s = net.stores; s != NULL; s = s->next) {
        if (s->process->dead)
            continue;
        if (data_lost)
            s->base.data_lost = true;
        else
            s->base.moved = true;
    }
}

bool network_data_lost(const struct process *p)
{
    const struct sim_store *s = net.stores;

    while (s != NULL && !(s->process == p && s->base.data_lost))
        s = s->next;
    return s != NULL;
}

void network_join(struct sim_store *store)
{
    store->next = net.stores;
    net.stores = store;
}

void network_part(struct sim_store *store)
{
    struct sim_store **at = &net.stores;

    while (*at != store)
        at = &(*at)->next;
    *at = store->next;
}
