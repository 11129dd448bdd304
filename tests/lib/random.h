/* Numbers that look random and are the same in every run (splitmix64), for property loops. */
#ifndef TESTS_LIB_RANDOM_H
#define TESTS_LIB_RANDOM_H

#include <stddef.h>
#include <stdint.h>

struct random {
    uint64_t state;
};

static inline uint64_t random_next(struct random *r)
{
    uint64_t z = r->state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* 0 to below - 1. */
static inline uint64_t random_below(struct random *r, uint64_t below)
{
    return random_next(r) % below;
}

static inline void random_fill(struct random *r, void *buf, size_t size)
{
    unsigned char *at = buf;

    while (size-- > 0)
        *at++ = (unsigned char)random_next(r);
}

#endif
