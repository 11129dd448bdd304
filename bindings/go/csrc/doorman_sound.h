/* Whether what came out of a store can be reckoned with. A row may have been written by hand, by another
 * program or by an enemy, and an answer by a server that is none of ours: a number that no client ever
 * writes is refused where it is read, so that no sum here or in the core overflows and no grant is
 * believed that has no token or no lease. */
#ifndef HF_DOORMAN_SOUND_H
#define HF_DOORMAN_SOUND_H

#include "doorman_doorman.h"

#define HF__SPAN_MAX_MS    (INT64_C(1) << 40) /* 34 years; in nanoseconds it still is a number */
#define HF__INSTANT_MAX_MS (INT64_C(1) << 53)

bool hf__entry_is_sound(const struct hf__entry *entry);

/* Its entries, and room for more tokens. */
bool hf__record_is_sound(const struct hf__record *record);

/* GRANTED and QUEUED; the other verdicts say nothing but themselves. */
bool hf__answer_is_sound(const struct hf__answer *answer);

#endif
