/* A tape of the SQL statements that somebody ran in this process, and a bare player for it.
 *
 * The floor of a benchmark is what SQLite itself takes for the same statements. Recording them
 * keeps the floor equal to what the store does today: there is no second copy of its SQL to grow
 * old.
 *
 * Statements are recorded with their values in place. Playing them over and over does the same work
 * each time if together they leave the database as they found it, as an acquire and its release do.
 */
#ifndef BENCH_TAPE_H
#define BENCH_TAPE_H

#include <holdfast.h>
#include <sqlite3.h>
#include <stddef.h>

struct tape {
    char **sql;
    size_t count;
};

/* Learns what a client on `url` runs: when it opens a database that is there already (`opening`),
 * and for one acquire and its release (`pair`). The database is left behind, closed. */
void tape_learn(const char *url, struct tape *opening, struct tape *pair);

/* One acquire and its release. */
void bench_pair(hf_client *client);

struct player {
    sqlite3 *db;
    sqlite3_stmt **statements;
    size_t count;
};

/* Opens the database at `path`, having run `opening` (pragmas, tables) on it, and prepares `body`.
 */
void player_open(struct player *player, const char *path, const struct tape *opening,
                 const struct tape *body);

/* Runs the prepared statements once, in order, each to its end. */
void player_play(struct player *player);

void player_close(struct player *player);

#endif
