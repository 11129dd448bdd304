/* Bugs that tests/doorman plants, one at a time, to show that its walk would find them. Outside
 * that test PLANTED() is the constant false and leaves no trace in the code. */
#ifndef HF_DOORMAN_PLANTED_H
#define HF_DOORMAN_PLANTED_H

#define HF__PLANTABLE(X)           \
    X(READER_PASSES_WRITER)        \
    X(GENERATION_KEPT_ON_HANDOVER) \
    X(DEAD_WAITER_BLOCKS_HEAD)     \
    X(LATE_ATTEMPT_AFTER_WITHDRAW) \
    X(DELAY_SKIPPED)               \
    X(DELAY_AFTER_UNCLAIMED)       \
    X(DELAY_OUTLIVES_WITHDRAW)     \
    X(DELAY_ENDED_BY_RELEASE)      \
    X(WRONG_TICKET_RELEASES)       \
    X(LIMIT_OFF_BY_ONE)            \
    X(EXPIRED_HOLDER_RENEWS)       \
    X(STALE_WAKE_BELIEVED)         \
    X(LATE_WAKE_BELIEVED)          \
    X(ATTEMPT_KEEPS_OLD_LEASE)     \
    X(SHORTER_DELAY_OVERWRITES)    \
    X(EARLY_RENEWAL_CLAIMS)        \
    X(EXPIRED_TICKET_LET_IN_AGAIN) \
    X(WAITING_RELEASE_IGNORED)     \
    X(PROVISIONAL_NEVER_CUT)       \
    X(DEADLINE_FROM_RECEIPT)       \
    X(EARLY_ANSWER_COUNTS)

#ifdef HF__TEST_PLANT
enum hf__planted {
    HF__NOTHING_PLANTED,
#define X(bug) HF__PLANT_##bug,
    HF__PLANTABLE(X)
#undef X
};
extern enum hf__planted hf__planted;
#define PLANTED(bug) (hf__planted == HF__PLANT_##bug)
#else
#define PLANTED(bug) 0
#endif

#endif
