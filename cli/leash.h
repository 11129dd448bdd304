/* When a command must end because its lock does. Pure arithmetic: no clock, no process, no lock.
 *
 *   HOLDING ── the lease runs short, it was lost, or max-hold came ──> SIGNALLED
 *   SIGNALLED ── kill-after ──> KILLED
 *
 *   sent         renewal        overdue         signal       SIGKILL   local deadline
 *    |--- ttl/3 ---|--- ttl/3 ---|   . . .   |-- kill-after --|-- margin --|   . . .   lease ends
 *
 * The lease is renewed after a third of it. Counted back from the local deadline (the moment at
 * which the library declares the lock lost, which is itself before the store can give it to anybody
 * else), the margin is for the kill to take effect, and kill-after lies before it. What is left
 * must be more than a renewal needs: half of the ttl, a third until it is sent and a sixth for its
 * answer. Otherwise a slow store would kill healthy commands. */
#ifndef CLI_LEASH_H
#define CLI_LEASH_H

#include <stdbool.h>
#include <stdint.h>

#include "holdfast.h"

enum leash_policy { LEASH_KILL, LEASH_TERM, LEASH_IGNORE };
enum leash_stage { LEASH_HOLDING, LEASH_SIGNALLED, LEASH_KILLED };

/* What to do now. */
enum leash_order {
    LEASH_GO_ON,
    LEASH_SEND_SIGNAL,
    LEASH_SEND_KILL,
    LEASH_TELL, /* only say that it is lost */
};

struct leash {
    enum leash_policy policy;
    int64_t kill_after_ms, margin_ms;
    int64_t hold_until_ns; /* max-hold; INT64_MAX: none */
    enum leash_stage stage;
    hf_cause cause; /* why it left HOLDING */
    bool told;
    int64_t kill_at_ns; /* in SIGNALLED */
};

/* What the lock says of itself. */
struct leash_view {
    int64_t remaining_ms; /* until the local deadline; INT64_MAX: never expires; 0 if lost */
    hf_cause cause;       /* HF_CAUSE_NONE: not lost */
};

/* The time for the kill itself to take effect. */
int64_t leash_margin_ms(int64_t ttl_ms);

/* The longest kill-after that fits into a ttl. */
int64_t leash_longest_ms(int64_t ttl_ms);

/* The shortest ttl, in whole seconds, into which this kill-after fits. */
int64_t leash_shortest_ttl_ms(int64_t kill_after_ms);

/* Moves on to the present. Each order but LEASH_GO_ON is given once. */
enum leash_order leash_step(struct leash *leash, int64_t now_ns, const struct leash_view *view);

/* When to look again at the latest; INT64_MAX: only when something happens. */
int64_t leash_next_ns(const struct leash *leash, int64_t now_ns, const struct leash_view *view);

/* When a guard has to kill if we do not speak up again; INT64_MAX: never. */
int64_t leash_guard_ns(const struct leash *leash, int64_t now_ns, const struct leash_view *view);

#endif
