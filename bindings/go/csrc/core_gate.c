/* The gate: the check of sequencers beside a resource, without the store (C10).
 *
 * Per name it keeps two levels: the highest exclusive generation that passed, and the highest of
 * all. A writer passes unless somebody newer has been here; a reader unless a newer writer has.
 * Readers raise the highest level too, or a writer that was given up for dead could still write
 * under their eyes. Limited grants overlap in any order, so their generations say nothing:
 * hf_check() must tell.
 *
 * Names are text of strangers, so the hash is seeded. A name is never forgotten: what was let
 * through once must be refused for ever after. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base_env.h"
#include "base_error.h"
#include "base_sequencer.h"
#include "base_table.h"

#include "base_banned.h"

struct levels {
    struct hf__link link; /* first, so that a link is its levels */
    uint64_t exclusive, highest;
    size_t name_len;
    char name[];
};

struct hf_gate {
    pthread_mutex_t mutex;
    struct hf__table names;
    uint64_t seed;
};

int hf_gate_new(hf_gate **ret_gate)
{
    if (ret_gate == NULL)
        return HF_INVALID;
    hf_gate *gate = calloc(1, sizeof *gate);
    if (gate == NULL)
        return HF_NO_MEMORY;
    int code = hf__system_env.random(hf__system_env.ctx, &gate->seed, sizeof gate->seed);
    if (code == 0 && pthread_mutex_init(&gate->mutex, NULL) != 0)
        code = HF_SYSTEM;
    if (code != 0) {
        free(gate);
        return code;
    }
    *ret_gate = gate;
    return 0;
}

void hf_gate_free(hf_gate *gate)
{
    struct hf__link *link;

    if (gate == NULL)
        return;
    while ((link = hf__table_any(&gate->names)) != NULL) {
        hf__table_remove(&gate->names, link);
        free((struct levels *)link);
    }
    hf__table_clear(&gate->names);
    pthread_mutex_destroy(&gate->mutex);
    free(gate);
}

static struct levels *find(const hf_gate *gate, const char *name, size_t len, uint64_t hash)
{
    struct hf__link *link = hf__table_find(&gate->names, hash);

    for (; link != NULL; link = hf__table_next(link)) {
        struct levels *levels = (struct levels *)link;
        if (levels->name_len == len && memcmp(levels->name, name, len) == 0)
            return levels;
    }
    return NULL;
}

static struct levels *find_or_add(hf_gate *gate, const char *name, size_t len)
{
    uint64_t hash = hf__hash(gate->seed, name, len);
    struct levels *levels = find(gate, name, len, hash);

    if (levels != NULL)
        return levels;
    levels = calloc(1, sizeof *levels + len);
    if (levels == NULL)
        return NULL;
    levels->name_len = len;
    memcpy(levels->name, name, len);
    hf__table_add(&gate->names, &levels->link, hash);
    return levels;
}

static bool pass(struct levels *levels, hf_mode mode, uint64_t generation)
{
    if (mode == HF_EXCLUSIVE ? generation < levels->highest : generation <= levels->exclusive)
        return false;
    if (mode == HF_EXCLUSIVE)
        levels->exclusive = generation;
    if (generation > levels->highest)
        levels->highest = generation;
    return true;
}

int hf_gate_pass(hf_gate *gate, const char *sequencer, hf_error *err)
{
    struct hf__sequencer s;
    bool passed = false;
    int code = hf__sequencer_parse(sequencer, &s, err);

    if (code != 0)
        return code;
    if (gate == NULL)
        return hf__fail(err, HF_INVALID, "there is no gate");
    if (s.limited)
        return hf__fail(err, HF_UNSUPPORTED,
                        "grants with a limit have no order: ask the store with hf_check()");
    pthread_mutex_lock(&gate->mutex);
    struct levels *levels = find_or_add(gate, s.name, s.name_len);
    if (levels != NULL)
        passed = pass(levels, s.mode, s.generation);
    pthread_mutex_unlock(&gate->mutex);
    if (levels == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    return passed ? 0 : hf__fail(err, HF_STALE, "a newer holder has been here");
}

static bool name_is_good(const char *name, size_t *len)
{
    if (name != NULL && *len == HF_NTS)
        *len = strlen(name);
    return name != NULL && *len >= 1 && *len <= HF_NAME_MAX;
}

int hf_gate_levels(hf_gate *gate, const char *name, size_t name_len, uint64_t *ret_exclusive,
                   uint64_t *ret_highest)
{
    if (gate == NULL || ret_exclusive == NULL || ret_highest == NULL ||
        !name_is_good(name, &name_len))
        return HF_INVALID;
    pthread_mutex_lock(&gate->mutex);
    const struct levels *levels = find(gate, name, name_len, hf__hash(gate->seed, name, name_len));
    if (levels != NULL) {
        *ret_exclusive = levels->exclusive;
        *ret_highest = levels->highest;
    }
    pthread_mutex_unlock(&gate->mutex);
    return levels != NULL ? 0 : HF_NOT_FOUND;
}

int hf_gate_restore(hf_gate *gate, const char *name, size_t name_len, uint64_t exclusive,
                    uint64_t highest)
{
    if (gate == NULL || !name_is_good(name, &name_len))
        return HF_INVALID;
    if (highest < exclusive)
        highest = exclusive;
    if (highest == 0)
        return 0; /* nobody had passed */
    pthread_mutex_lock(&gate->mutex);
    struct levels *levels = find_or_add(gate, name, name_len);
    if (levels != NULL && exclusive > levels->exclusive)
        levels->exclusive = exclusive;
    if (levels != NULL && highest > levels->highest)
        levels->highest = highest;
    pthread_mutex_unlock(&gate->mutex);
    return levels != NULL ? 0 : HF_NO_MEMORY;
}
