/* See cycles.h. Circles are what is left when nobody can be taken away any more who waits for nobody
 * that is left. Most waits are gone before that: a party that only holds or only waits is in no circle, so its
 * waits are not even collected, and the crowd at a busy lock costs one look at each of its waiters. */
#include "cycles.h"

#include <stdlib.h>
#include <string.h>

#include "entry.h"

#include "base/banned.h"

struct wait {
    size_t from, to; /* parties */
    struct cli_wait step;
};

struct graph {
    const hf_entry **by_party;  /* the first view's holders and waiters */
    const hf_entry **by_ticket; /* the second view's */
    size_t count, again_count;
    bool
        *left; /* whether a party, named by its first place in by_party, may still be in a circle */
    const struct wait **next; /* from a party that is left: one of its waits */
    struct cli_wait *steps;
    struct wait *waits;
    size_t waits_count, waits_capacity;
};

static int compare_parties(const hf_entry *a, const hf_entry *b)
{
    int by_host = strcmp(a->host, b->host);

    return by_host != 0 ? by_host : (a->pid > b->pid) - (a->pid < b->pid);
}

static int compare_by_party(const void *a, const void *b)
{
    return compare_parties(*(const hf_entry *const *)a, *(const hf_entry *const *)b);
}

static int compare_by_ticket(const void *a, const void *b)
{
    return strcmp((*(const hf_entry *const *)a)->ticket, (*(const hf_entry *const *)b)->ticket);
}

static bool has_party(const hf_entry *e)
{
    return e->host[0] != '\0' && e->pid != 0;
}

/* Who only keeps a lock closed has gone, and waits nowhere. */
static const hf_entry **collect(const hf_view *view, int (*compare)(const void *a, const void *b),
                                size_t *ret_count)
{
    const hf_entry **entries = calloc(hf_view_count(view) + 1, sizeof(*entries)), *e;
    size_t count = 0;

    for (size_t i = 0; entries != NULL && (e = hf_view_entry(view, i)) != NULL; i++) {
        if (e->place != HF_PLACE_LINGERING)
            entries[count++] = e;
    }
    if (entries != NULL)
        qsort(entries, count, sizeof(*entries), compare);
    *ret_count = count;
    return entries;
}

static size_t party_of(const struct graph *graph, const hf_entry *e)
{
    size_t low = 0, high = graph->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_parties(graph->by_party[middle], e) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Only who holds one lock and waits for another can be in a circle. */
static void leave_those_who_do_both(struct graph *graph)
{
    for (size_t i = 0, next; i < graph->count; i = next) {
        bool holds = false, waits = false;
        for (next = i;
             next < graph->count && compare_parties(graph->by_party[i], graph->by_party[next]) == 0;
             next++) {
            holds |= graph->by_party[next]->place == HF_PLACE_INSIDE;
            waits |= graph->by_party[next]->place == HF_PLACE_WAITING;
        }
        graph->left[i] = holds && waits && has_party(graph->by_party[i]);
    }
}

static bool same_again(const struct graph *graph, const hf_entry *e)
{
    const hf_entry *const *again = bsearch(&e, graph->by_ticket, graph->again_count,
                                           sizeof(*graph->by_ticket), compare_by_ticket);

    return again != NULL && (*again)->place == e->place;
}

static bool add_wait(struct graph *graph, size_t from, const hf_entry *waits, size_t to,
                     const hf_entry *holds)
{
    if (graph->waits_count == graph->waits_capacity) {
        size_t capacity = graph->waits_capacity * 2 + 64;
        struct wait *waits_new = realloc(graph->waits, capacity * sizeof(*waits_new));
        if (waits_new == NULL)
            return false;
        graph->waits = waits_new;
        graph->waits_capacity = capacity;
    }
    graph->waits[graph->waits_count++] =
        (struct wait){.from = from, .to = to, .step = {.holds = holds, .waits = waits}};
    return true;
}

/* A waiter waits for each holder, if it or somebody before it wants the lock alone; else only for one who
 * has the lock alone. Readers of a limited lock are let in when any of them leaves, so nobody in
 * particular keeps the next one out. Whoever stood before a waiter in the second view stood there in the
 * first one too: places are not exchanged. */
static bool add_waits_of(struct graph *graph, const struct cli_span *lock, const hf_entry *waiter,
                         bool for_all)
{
    size_t from = party_of(graph, waiter);

    if (!graph->left[from] || !same_again(graph, waiter))
        return true;
    for (size_t i = 0; i < lock->count; i++) {
        const hf_entry *e = hf_view_entry(lock->view, lock->first + i);
        if (e->place != HF_PLACE_INSIDE || !(for_all || e->mode == HF_EXCLUSIVE))
            continue;
        size_t to = party_of(graph, e);
        if (to != from && graph->left[to] && same_again(graph, e) &&
            !add_wait(graph, from, waiter, to, e))
            return false;
    }
    return true;
}

static bool add_waits(struct graph *graph, const hf_view *view)
{
    for (size_t i = 0; i < hf_view_count(view);) {
        struct cli_span lock = cli_span_at(view, i);
        bool for_all = false;
        for (size_t k = 0; k < lock.count; k++) {
            const hf_entry *e = hf_view_entry(view, i + k);
            if (e->place != HF_PLACE_WAITING)
                continue;
            for_all |= e->mode == HF_EXCLUSIVE && same_again(graph, e);
            if (!add_waits_of(graph, &lock, e, for_all))
                return false;
        }
        i += lock.count;
    }
    return true;
}

/* Takes out, until nothing changes, every party that waits for nobody who is left. For the others it
 * notes one wait each. */
static void narrow(struct graph *graph)
{
    bool changed;

    do {
        changed = false;
        for (size_t i = 0; i < graph->count; i++)
            graph->next[i] = NULL;
        for (size_t i = 0; i < graph->waits_count; i++) {
            const struct wait *wait = &graph->waits[i];
            if (graph->left[wait->from] && graph->left[wait->to])
                graph->next[wait->from] = wait;
        }
        for (size_t i = 0; i < graph->count; i++) {
            changed |= graph->left[i] && graph->next[i] == NULL;
            graph->left[i] &= graph->next[i] != NULL;
        }
    } while (changed);
}

/* From any party that is left the noted waits lead into a circle: as many steps as there are parties
 * are surely inside it. Its parties are then taken out. */
static void tell_circle(struct graph *graph, size_t party, cli_cycle_sink *found, void *ctx)
{
    size_t count = 0;

    for (size_t i = 0; i < graph->count; i++)
        party = graph->next[party]->to;
    for (; graph->left[party]; party = graph->next[party]->to) {
        graph->left[party] = false;
        graph->steps[count++] = graph->next[party]->step;
    }
    /* A wait names what the next party holds; a step what its own does. */
    const hf_entry *holds = graph->steps[count - 1].holds;
    for (size_t i = count - 1; i > 0; i--)
        graph->steps[i].holds = graph->steps[i - 1].holds;
    graph->steps[0].holds = holds;
    found(graph->steps, count, ctx);
}

static bool graph_init(struct graph *graph, const hf_view *first, const hf_view *again)
{
    *graph = (struct graph){0};
    graph->by_party = collect(first, compare_by_party, &graph->count);
    graph->by_ticket = collect(again, compare_by_ticket, &graph->again_count);
    graph->left = calloc(graph->count + 1, sizeof(*graph->left));
    graph->next = calloc(graph->count + 1, sizeof(*graph->next));
    graph->steps = calloc(graph->count + 1, sizeof(*graph->steps));
    return graph->by_party != NULL && graph->by_ticket != NULL && graph->left != NULL &&
           graph->next != NULL && graph->steps != NULL;
}

static void graph_clear(struct graph *graph)
{
    free(graph->by_party);
    free(graph->by_ticket);
    free(graph->left);
    free(graph->next);
    free(graph->steps);
    free(graph->waits);
}

bool cli_find_cycles(const hf_view *first, const hf_view *again, cli_cycle_sink *found, void *ctx)
{
    struct graph graph;
    bool enough_memory = graph_init(&graph, first, again);

    if (enough_memory) {
        leave_those_who_do_both(&graph);
        enough_memory = add_waits(&graph, first);
    }
    if (enough_memory)
        narrow(&graph);
    for (size_t i = 0; enough_memory && i < graph.count; i++) {
        if (!graph.left[i])
            continue;
        tell_circle(&graph, i, found, ctx);
        narrow(&graph);
    }
    graph_clear(&graph);
    return enough_memory;
}
