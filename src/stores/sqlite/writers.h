/* The line of processes that want to write: who may try BEGIN IMMEDIATE next.
 *
 * SQLite's own lock keeps writers apart. It has no queue: whoever finds it taken sleeps and tries
 * again, and with hundreds of processes those tries are all that the machine does. So a process
 * that finds it taken gets into a line, in a small file that all of them map (<database>-writers),
 * and sleeps there; whoever ends a transaction wakes the first.
 *
 * The line decides nothing but who tries next. Whatever is written into the file, whoever is
 * killed, stopped or forked: SQLite's lock still keeps writers apart, and who waits tries by itself
 * after a second. Where the file cannot be used everybody naps and tries, as without a line.
 *
 * One thread of a process at a time uses this (the turn of struct hf__sqlite). */
#ifndef HF_STORES_SQLITE_WRITERS_H
#define HF_STORES_SQLITE_WRITERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct hf__writers_map;

struct hf__writers {
    struct hf__writers_map *map; /* NULL: there is no line */
    int fd;
    int slot;        /* ours in the map; -1: none yet */
    uint32_t ticket; /* our place; 0: not in line */
    uint32_t word;   /* of our slot before the last try */
    uint32_t kept;   /* the place of one who gave up, for the next try; 0: none */
    int64_t kept_ns; /* since when */
    bool front;      /* it was our turn to try, and we did */
    unsigned tries;  /* since we have been in front */
    int64_t naps;    /* without a line: how often we have napped */
    uint64_t jitter;
};

#define HF__WRITERS_SUFFIX "-writers"

/* `seed` is for jitter. Never fails: without a file there is no line. */
void hf__writers_open(struct hf__writers *w, const char *path, mode_t mode, uint64_t seed);

/* Lets go of the file and of nothing else, so that a forked child can do it as well. */
void hf__writers_close(struct hf__writers *w);

/* Whether somebody may be in line, so that who comes now should not try before them. */
bool hf__writers_busy(const struct hf__writers *w);

/* The database was busy, or it is crowded: gets in line and sleeps until it is worth trying (again),
 * for `most_ns` at most. `first`: before all who are not. Returns what was slept, more or less. */
int64_t hf__writers_wait(struct hf__writers *w, bool first, int64_t most_ns);

/* The transaction is over: leaves the line and wakes the first of it. */
void hf__writers_next(struct hf__writers *w);

/* The same, of one that was committed. */
void hf__writers_committed(struct hf__writers *w);

/* Changes when somebody in line has had a turn, not when all of them gave up. 0: there is no line. */
uint32_t hf__writers_commits(const struct hf__writers *w);

/* The time is over: as hf__writers_next(), but whoever tries again soon has the same place. */
void hf__writers_give_up(struct hf__writers *w);

/* How many are in line, for `doctor`. -1: there is no line. */
int hf__writers_count(const struct hf__writers *w);

#endif
