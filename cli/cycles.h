/* Who waits for whom in a circle: what `holdfast ls --cycles` prints. Nothing acts on it.
 *
 * A party is one process: host and pid. A store knows nothing finer, so two threads of a process are one
 * party: one of them may hold what the other does not wait for, and the circle then opens by itself. */
#ifndef CLI_CYCLES_H
#define CLI_CYCLES_H

#include <stdbool.h>

#include "holdfast.h"

/* A step of a circle: a party holds one lock and waits for another, which the party of the next step
 * holds; the last one waits for what the first one holds. Borrowed from the first view. */
struct cli_wait {
    const hf_entry *holds, *waits;
};

/* Called for each circle. */
typedef void cli_cycle_sink(const struct cli_wait *steps, size_t count, void *ctx);

/* Finds the circles that were closed at one moment. `again` is a view of the same store that was asked
 * for after `first` was complete. A ticket never comes back, so who waits in both has waited in between,
 * and who holds in both has held: all that is in both was there at once. Only such waits count, or a
 * slow look would join what never met. A party is told of in one circle at most; what else it is in
 * shows once that one is open. False: out of memory. */
bool cli_find_cycles(const hf_view *first, const hf_view *again, cli_cycle_sink *found, void *ctx);

#endif
