/* See table.h. Chains, because members come and go by pointer; the load factor stays below one. */
#include "base/table.h"

#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

static struct hf__link **bucket(const struct hf__table *table, uint64_t hash)
{
    if (table->bucket_count == 0)
        return (struct hf__link **)&table->first_bucket;
    return &table->buckets[hash & (table->bucket_count - 1)];
}

static void move_all(struct hf__table *to, struct hf__link *link)
{
    while (link != NULL) {
        struct hf__link *next = link->next;
        struct hf__link **b = bucket(to, link->hash);
        link->next = *b;
        *b = link;
        link = next;
    }
}

static void grow(struct hf__table *table)
{
    struct hf__table larger = {.bucket_count =
                                   table->bucket_count < 8 ? 8 : 2 * table->bucket_count,
                               .count = table->count};

    larger.buckets = calloc(larger.bucket_count, sizeof *larger.buckets);
    if (larger.buckets == NULL)
        return; /* longer chains, the same answers */
    move_all(&larger, table->first_bucket);
    for (size_t i = 0; i < table->bucket_count; i++)
        move_all(&larger, table->buckets[i]);
    free(table->buckets);
    *table = larger;
}

void hf__table_add(struct hf__table *table, struct hf__link *link, uint64_t hash)
{
    if (table->count >= table->bucket_count)
        grow(table);

    struct hf__link **b = bucket(table, hash);
    link->hash = hash;
    link->next = *b;
    *b = link;
    table->count++;
}

void hf__table_remove(struct hf__table *table, struct hf__link *link)
{
    struct hf__link **at = bucket(table, link->hash);

    while (*at != NULL && *at != link)
        at = &(*at)->next;
    if (*at == NULL)
        return;
    *at = link->next;
    link->next = NULL;
    table->count--;
}

static struct hf__link *same_hash(struct hf__link *link, uint64_t hash)
{
    while (link != NULL && link->hash != hash)
        link = link->next;
    return link;
}

struct hf__link *hf__table_find(const struct hf__table *table, uint64_t hash)
{
    return same_hash(*bucket(table, hash), hash);
}

struct hf__link *hf__table_next(const struct hf__link *link)
{
    return same_hash(link->next, link->hash);
}

struct hf__link *hf__table_any(const struct hf__table *table)
{
    if (table->first_bucket != NULL)
        return table->first_bucket;
    for (size_t i = 0; i < table->bucket_count; i++) {
        if (table->buckets[i] != NULL)
            return table->buckets[i];
    }
    return NULL;
}

void hf__table_each(const struct hf__table *table, void (*visit)(struct hf__link *, void *),
                    void *ctx)
{
    for (struct hf__link *link = table->first_bucket; link != NULL; link = link->next)
        visit(link, ctx);
    for (size_t i = 0; i < table->bucket_count; i++) {
        for (struct hf__link *link = table->buckets[i]; link != NULL; link = link->next)
            visit(link, ctx);
    }
}

void hf__table_clear(struct hf__table *table)
{
    free(table->buckets);
    *table = (struct hf__table){0};
}

/* Both halves of the product, which has 128 bits; not every processor has such a type. */
static uint64_t mix(uint64_t a, uint64_t b)
{
#ifdef __SIZEOF_INT128__
    __extension__ unsigned __int128 product = (unsigned __int128)a * b;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
#else
    uint64_t low = (a & UINT32_MAX) * (b & UINT32_MAX), high = (a >> 32) * (b >> 32);
    uint64_t cross = (a >> 32) * (b & UINT32_MAX) + (low >> 32);
    uint64_t other = (a & UINT32_MAX) * (b >> 32) + (cross & UINT32_MAX);

    return (other << 32 | (low & UINT32_MAX)) ^ (high + (cross >> 32) + (other >> 32));
#endif
}

uint64_t hf__hash(uint64_t seed, const void *bytes, size_t len)
{
    const unsigned char *at = bytes;
    uint64_t hash = seed ^ mix(len ^ UINT64_C(0x9e3779b97f4a7c15), UINT64_C(0xd6e8feb86659fd93));

    while (len > 0) {
        uint64_t word = 0;
        size_t n = len < sizeof word ? len : sizeof word;
        memcpy(&word, at, n);
        hash = mix(hash ^ word, UINT64_C(0xa0761d6478bd642f) ^ seed);
        at += n;
        len -= n;
    }
    return mix(hash, UINT64_C(0xe7037ed1a0b428db) ^ seed);
}
