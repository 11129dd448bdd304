/* One operation, before and after: shared by what does it and what judges it. */
#ifndef HF_TESTS_DOORMAN_WALK_STEP_H
#define HF_TESTS_DOORMAN_WALK_STEP_H

#include "walk.h"

/* An entry as the contract sees it at this moment, before the operation. */
struct seen {
    enum hf__place place; /* GONE: not there */
    int64_t until_ms;
    uint64_t generation;
};

struct step {
    struct walk *k;
    const struct scenario *s;
    struct world *w;
    const struct deed *d;
    struct hf__answer a;
    struct hf__entry before[MAX_TICKETS + 1];
    size_t before_count;
    uint64_t before_generation, before_value_generation;
    uint8_t before_value_order;
    bool before_called[MAX_TICKETS];
    struct seen seen[MAX_TICKETS];
};

static inline bool was_let_in(const struct step *p, const struct hf__entry *e)
{
    const struct seen *before = &p->seen[ticket_number(&e->ticket)];

    return e->place == HF__PLACE_INSIDE && before->place != HF__PLACE_INSIDE;
}

/* walk_step.c: what must be true of it. */
struct finding step_check(const struct step *p);

#endif
