/* What has become of an entry, as people would tell it: for stores that keep a trail (HF_CAN_HISTORY).
 *
 * The doorman does not know of it. Every operation sweeps first, so what an entry was before and is
 * afterwards, and whose operation it was, say what happened. A store that applies the doorman asks here
 * for each entry with an effect; one that has the rules in another language writes at the same places. */
#ifndef HF_DOORMAN_TRAIL_H
#define HF_DOORMAN_TRAIL_H

#include "base/who.h"
#include "doorman/doorman.h"

#define HF__TRAIL_CAUSE_MAX 600 /* bytes of a cause, NUL included */

struct hf__change {
    hf_trail_kind
        kind; /* 0: nothing that is written; so is a grant that had not waited: its end tells of it */
    int64_t wall_ms;   /* since 1970: when it happened, which may be before the operation */
    int64_t span_ms;   /* for how long it had held, or waited */
    const char *cause; /* of LOST; "" otherwise: hf__trail_breaker() is for the store to add */
};

/* `was` is the entry before the operation, NULL if it is new. */
struct hf__change hf__trail_change(const struct hf__entry *was, const struct hf__entry *is,
                                   const struct hf__operation *op, struct hf__moment at);

/* "ann@host, pid 12, holdfast": the cause of BROKEN. */
void hf__trail_breaker(const struct hf__who *self, char buf[HF__TRAIL_CAUSE_MAX]);

#endif
