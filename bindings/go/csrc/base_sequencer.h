/* Sequencers: the proof of a grant as one printable string (C10).
 *
 *      hf1:x:1763199999000001::invoice/123
 *      |   | |               |`- name, last: %XX for what is not [A-Za-z0-9._~/@+=,:-]
 *      |   | |               `- hint: what the store needs to find the grant again; may be empty
 *      |   | `- generation
 *      |   `- x exclusive, s shared, l shared with a limit
 *      `- version
 *
 * Every grant has exactly one spelling, and the ticket is never part of it. */
#ifndef HF_BASE_SEQUENCER_H
#define HF_BASE_SEQUENCER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast.h"

#define HF__HINT_SIZE 65 /* 64 bytes and a NUL */

struct hf__sequencer {
    hf_mode mode;
    bool limited;             /* HF_SHARED only */
    uint64_t generation;      /* not 0 */
    char hint[HF__HINT_SIZE]; /* of [A-Za-z0-9._~/@+=,-] */
    size_t name_len;          /* 1 to HF_NAME_MAX */
    char name[HF_NAME_MAX];   /* does not end in NUL */
};

/* HF_SEQUENCER_MAX bytes hold any. HF_INVALID if `buf` is too small or a field is not as above. */
int hf__sequencer_format(const struct hf__sequencer *sequencer, char *buf, size_t size);

/* HF_INVALID unless `text` is exactly what hf__sequencer_format() would have written. */
int hf__sequencer_parse(const char *text, struct hf__sequencer *ret, hf_error *err);

#endif
