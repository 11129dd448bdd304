/* A lock that is asked for over HTTP, until it is somebody else's affair: a lease, which its client renews by its
 * ticket, or a lock that lives as long as the connection.
 *
 *     STARTING --granted--> HELD --sent (a lease)--> left in the store
 *      |  `--queued--> WAITING --granted--'  |
 *      |                  |                  `--client gone, lost, server ends--> ENDING --released--> freed
 *      `--refused---------'--client gone, time over--> freed
 *
 * No thread waits: the first attempt is a worker's, and all that follows is told by the library's events. */
#ifndef SERVE_BID_H
#define SERVE_BID_H

#include "stream.h"

/* Takes the events of a store that have come. */
void bids_take_events(struct store *store);

/* The server ends: whoever waits is told so, and what lives on connections is given back. */
void bids_stop(struct store *store);

/* After hf_close(): no event will come any more. */
void bids_free(struct store *store);

#endif
