/* A tape of the SQL statements that somebody ran in this process, and a bare player for it.
 *
 * The floor of a benchmark is what SQLite itself takes for the same statements. Recording them
 * keeps the floor equal to what the store does today: there is no second copy of its SQL to grow
 * old.
 *
 * Statements are recorded with their values in place. Two pairs of acquire and release are recorded
 * and must be played in turns: SQLite does not write a page whose row is overwritten with what it
 * holds. */
#ifndef BENCH_TAPE_H
#define BENCH_TAPE_H

#include <holdfast.h>
#include <sqlite3.h>
#include <stddef.h>

struct tape {
    char **sql;
    size_t count;
};

struct learnt {
    struct tape opening; /* by a client that opens a database that is there already */
    struct tape pair[2]; /* by one acquire and its release, and by the next ones */
};

/* Learns it from a client on `url`. The database is left behind, closed. */
void tape_learn(const char *url, struct learnt *learnt);

/* One acquire and its release. */
void bench_pair(hf_client *client);

struct player {
    sqlite3 *db;
    sqlite3_stmt **statements;
    size_t count; /* of one pair */
};

/* Opens the database at `path`, runs the opening on it and prepares both pairs. */
void player_open(struct player *player, const char *path, const struct learnt *learnt);

/* Runs the statements of pair `which`, each to its end. */
void player_play(struct player *player, int which);

void player_close(struct player *player);

#endif
