/* A hash table whose links live inside its members. The caller hashes and compares; the table only
 * finds those with the same hash. It grows by itself and keeps working, slower, if it cannot.
 * Not thread-safe. */
#ifndef HF_BASE_TABLE_H
#define HF_BASE_TABLE_H

#include <stddef.h>
#include <stdint.h>

struct hf__link {
    struct hf__link *next;
    uint64_t hash;
};

struct hf__table {
    struct hf__link **buckets;
    size_t bucket_count; /* a power of two */
    size_t count;
    struct hf__link
        *first_bucket; /* used until the first growth, so that a table needs no memory */
};

void hf__table_add(struct hf__table *table, struct hf__link *link, uint64_t hash);
void hf__table_remove(struct hf__table *table, struct hf__link *link);

/* The first with this hash, and the next after one that was given; NULL at the end. */
struct hf__link *hf__table_find(const struct hf__table *table, uint64_t hash);
struct hf__link *hf__table_next(const struct hf__link *link);

/* Any member, for taking them all out; NULL if empty. */
struct hf__link *hf__table_any(const struct hf__table *table);

/* Calls `visit` for each; it must not change the table. */
void hf__table_each(const struct hf__table *table, void (*visit)(struct hf__link *, void *),
                    void *ctx);

void hf__table_clear(struct hf__table *table); /* frees the buckets, not the members */

/* A hash that somebody who does not know the seed cannot aim at. */
uint64_t hf__hash(uint64_t seed, const void *bytes, size_t len);

#endif
