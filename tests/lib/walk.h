/* Rules that are written somewhere else against the doorman's: random operations go through both,
 * on the same made-up clock, and every answer must be the same.
 *
 * What is compared with the doorman is a struct walk_type; a whole store is one (store_walk.h). */
#ifndef TESTS_LIB_WALK_H
#define TESTS_LIB_WALK_H

#include "lib/random.h"
#include "stores/store.h"

#define WALK_TICKETS  14
#define WALK_CAPACITY 64

enum walk_kind {
    WALK_ATTEMPT,
    WALK_RELEASE,
    WALK_WITHDRAW,
    WALK_RENEW,
    WALK_BREAK,
    WALK_READ,
    WALK_WRITE,
    WALK_KINDS
};

struct walk_request {
    enum walk_kind kind;
    struct hf__bid bid;
    size_t who;             /* whose ticket it is */
    int64_t number;         /* RELEASE, WITHDRAW: how long it is retired; BREAK: whether at once */
    int64_t at_least_ms;    /* RELEASE */
    uint64_t generation;    /* RENEW, READ, WRITE */
    struct hf__value value; /* WRITE */
};

struct walk;

struct walk_type {
    /* Asks, at w->now_us; the doorman is asked next. */
    struct hf__answer (*ask)(struct walk *w, const struct walk_request *q);

    /* Compares more than the answer: whoever was let in is marked in w->record. May be NULL. */
    void (*compare)(struct walk *w, const struct walk_request *q);

    /* Compares all entries, now and then. May be NULL. */
    void (*compare_entries)(struct walk *w);

    int64_t polls_ms; /* waiters ask after so long, whatever the doorman's advice; 0: as it says */
};

struct walk {
    const struct walk_type *type;
    int64_t now_us;
    unsigned lock;
    char name[32];  /* of that lock */
    size_t bidders; /* of most requests; WALK_TICKETS: all */
    uint32_t can;   /* HF_CAN_AT_LEAST, _VALUE and _WANTED are used if they are here */
    bool quiet;     /* mostly plain bids that are released soon: where there is a short way */
    struct hf__who who;
    struct random random;
    struct hf__record record;
    struct hf__value value; /* as it should be */
    struct hf__value read;  /* READ: what was found */
    /* What was seen so far. */
    unsigned let_in, went_back, queued, kept, wanted, written, doubted, cached, used;
    /* Its own. */
    unsigned step;
    struct hf__entry entries[WALK_CAPACITY];
    struct hf__ticket tickets[WALK_TICKETS];
    uint64_t known[WALK_TICKETS]; /* a generation this ticket was told of, perhaps an old one */
};

void walk_init(struct walk *w, const struct walk_type *type);
void walk(struct walk *w, unsigned operations);

/* For `compare`: whoever was let in by somebody else's request, or is wanted, and has to be called,
 * from the i-th entry on; NULL: nobody else. */
const struct hf__entry *walk_next_called(const struct walk *w, const struct walk_request *q,
                                         size_t *i);

#endif
