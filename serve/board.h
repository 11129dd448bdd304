/* Who holds what in one store, as the server saw it last, for all who listen. One watch looks at the store, and only
 * while somebody listens; what it finds is kept, so that whoever comes back is told what has changed meanwhile.
 *
 * Each change has a number, the version. A listener knows up to which one it was told. */
#ifndef SERVE_BOARD_H
#define SERVE_BOARD_H

#include "stream.h"

#define BOARD_GONE_MAX 4096 /* locks that became free, by which a list can be brought up to date */

struct board;

/* Lives inside of who listens. */
struct listener {
    struct listener *prev, *next;
    struct board *board;
    void (*news)(struct listener *listener);
};

/* Which locks: those from `from` up to, and without, what does not begin with it; or exactly this. */
struct board_filter {
    struct bytes name;
    bool exact;
};

/* The board of a store, made when it is asked for first. NULL with an error: also if the store cannot be watched. */
struct board *board_of(struct loop *loop, struct store *store, hf_error *err);
void board_free(struct board *board);

/* The first that listens begins the watch, the last one that goes ends it. */
int board_join(struct board *board, struct listener *listener, hf_error *err);
void board_leave(struct listener *listener);

/* False: nothing was seen since the watch began. */
bool board_is_fresh(const struct board *board);

uint64_t board_epoch(const struct board *board);
uint64_t board_version(const struct board *board);

/* Why the store could not be looked at; NULL: it was. */
const hf_error *board_trouble(const struct board *board);

/* Whether somebody who was told up to `version` has missed anything. Cheaper than to tell him. */
bool board_has_news(const struct board *board, uint64_t version, const struct board_filter *filter);

/* The event that brings somebody who was told up to `version` up to date; version 0, or one that is too long ago: all
 * of it. NULL: nothing that he listens to has changed, or out of memory. With a reference for the caller. */
struct text *board_tell(struct board *board, uint64_t version, const struct board_filter *filter);

#endif
