/* Breadth-first through all worlds. A world once seen is kept packed, with where it came from. */
#include "walk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_STATES (UINT32_C(1) << 25)

struct state {
    uint64_t at; /* in the arena */
    uint32_t parent;
    struct move by;
    uint8_t size;
};

struct seen {
    uint8_t *arena;
    uint64_t arena_used, arena_size;
    struct state *state;
    uint32_t count, capacity;
    uint64_t *table; /* part of the hash, state + 1; 0: free */
    uint32_t table_size;
};

static void *grow(void *old, size_t count, size_t size)
{
    void *grown = realloc(old, count * size);

    if (grown == NULL) {
        fprintf(stderr, "walk: out of memory\n");
        exit(2);
    }
    return grown;
}

static uint64_t hash_bytes(const uint8_t *bytes, size_t size)
{
    uint64_t h = size;

    for (; size >= 8; size -= 8, bytes += 8) {
        uint64_t v;
        memcpy(&v, bytes, 8);
        h = (h ^ v) * UINT64_C(0x9E3779B97F4A7C15);
        h ^= h >> 32;
    }
    for (; size > 0; size--)
        h = (h ^ *bytes++) * UINT64_C(0x100000001B3);
    h *= UINT64_C(0xD6E8FEB86659FD93);
    return h ^ h >> 29;
}

/* The slot of these bytes, or a free one for them. */
static uint64_t *find_slot(struct seen *seen, const uint8_t *packed, size_t size, uint64_t hash)
{
    uint32_t i = (uint32_t)hash & (seen->table_size - 1);

    for (;; i = (i + 1) & (seen->table_size - 1)) {
        uint64_t entry = seen->table[i];
        if (entry == 0)
            return &seen->table[i];
        if (entry >> 32 != hash >> 32)
            continue;
        const struct state *st = &seen->state[(uint32_t)entry - 1];
        if (st->size == size && memcmp(seen->arena + st->at, packed, size) == 0)
            return &seen->table[i];
    }
}

static void fill_slot(uint64_t *slot, uint64_t hash, uint32_t state)
{
    *slot = hash >> 32 << 32 | (state + 1);
}

static void grow_table(struct seen *seen)
{
    free(seen->table);
    seen->table_size = seen->table_size == 0 ? 1 << 16 : seen->table_size * 2;
    seen->table = grow(NULL, seen->table_size, sizeof *seen->table);
    memset(seen->table, 0, seen->table_size * sizeof *seen->table);
    for (uint32_t i = 0; i < seen->count; i++) {
        const uint8_t *packed = seen->arena + seen->state[i].at;
        uint64_t hash = hash_bytes(packed, seen->state[i].size);
        fill_slot(find_slot(seen, packed, seen->state[i].size, hash), hash, i);
    }
}

static void make_room(struct seen *seen)
{
    if (seen->count == seen->capacity) {
        seen->capacity = seen->capacity == 0 ? 1 << 15 : seen->capacity * 2;
        seen->state = grow(seen->state, seen->capacity, sizeof *seen->state);
    }
    if (seen->arena_size - seen->arena_used < MAX_PACKED) {
        seen->arena_size = seen->arena_size == 0 ? 1 << 21 : seen->arena_size * 3 / 2;
        seen->arena = grow(seen->arena, seen->arena_size, 1);
    }
    if (seen->count >= seen->table_size / 3 * 2)
        grow_table(seen);
}

/* Adds a world unless it was seen before. */
static void meet(const struct scenario *s, struct seen *seen, struct world *w, struct state from)
{
    uint8_t packed[MAX_PACKED];
    size_t size = world_pack(s, w, packed);

    make_room(seen);
    uint64_t hash = hash_bytes(packed, size);
    uint64_t *slot = find_slot(seen, packed, size, hash);
    if (*slot != 0)
        return;
    from.at = seen->arena_used;
    from.size = (uint8_t)size;
    memcpy(seen->arena + seen->arena_used, packed, size);
    seen->arena_used += size;
    fill_slot(slot, hash, seen->count);
    seen->state[seen->count++] = from;
}

static void load(const struct scenario *s, const struct seen *seen, uint32_t i, struct world *w)
{
    world_unpack(s, seen->arena + seen->state[i].at, w);
}

static void print_path(const struct scenario *s, const struct seen *seen, uint32_t i)
{
    struct world before;

    if (i == 0)
        return;
    uint32_t parent = seen->state[i].parent;
    print_path(s, seen, parent);
    load(s, seen, parent, &before);
    printf("  - ");
    print_move(s, &before, seen->state[i].by);
}

static void print_violation(struct walk *k, const struct seen *seen, struct state last,
                            const struct world *w, struct finding f)
{
    struct world before;

    printf("  %s is broken: %s (generations are renumbered by rank in every state)\n", f.clause,
           f.what);
    print_path(k->s, seen, last.parent);
    load(k->s, seen, last.parent, &before);
    printf("  - ");
    print_move(k->s, &before, last.by);
    printf("  and then\n");
    print_world(k->s, w);
}

/* Everything that can follow one world. */
static struct finding expand(struct walk *k, struct seen *seen, uint32_t i, struct result *r,
                             bool print)
{
    struct world here, next;
    struct move moves[MAX_MOVES];

    load(k->s, seen, i, &here);
    size_t count = moves_of(k->s, &here, moves);
    for (size_t m = 0; m < count; m++) {
        struct state from = {.parent = i, .by = moves[m]};
        next = here;
        struct finding f = move_apply(k, &next, moves[m]);
        if (f.clause == NULL)
            f = world_check(k, &next);
        r->moves++;
        if (f.clause != NULL) {
            if (print)
                print_violation(k, seen, from, &next, f);
            return f;
        }
        meet(k->s, seen, &next, from);
    }
    return FINE;
}

static double seconds_used(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

struct result search(struct walk *k, bool print_trace)
{
    struct seen seen = {0};
    struct result r = {0};
    struct world w;
    double begin = seconds_used();

    world_begin(k->s, &w);
    meet(k->s, &seen, &w, (struct state){0});
    for (uint32_t i = 0; i < seen.count && r.finding.clause == NULL && !r.exhausted; i++) {
        r.finding = expand(k, &seen, i, &r, print_trace);
        r.exhausted = seen.count >= MAX_STATES;
    }
    r.states = seen.count;
    r.seconds = seconds_used() - begin;
    free(seen.arena);
    free(seen.state);
    free(seen.table);
    promises_free(k);
    return r;
}
