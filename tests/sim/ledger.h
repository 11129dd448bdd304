/* What every call, bid and grant has promised, as seen from outside, and the checks that it is
 * kept. C1 to C13 are the clauses of docs/GUARANTEES.md.
 *
 * The checks know the public header, the simulated server's records and the true time: nothing of
 * the engine. A call's note carries its number to the server, and so ties tickets to calls. */
#ifndef TESTS_SIM_LEDGER_H
#define TESTS_SIM_LEDGER_H

#include "server.h"

/* One call of the program into the library. */
enum call_kind {
    CALL_ACQUIRE,
    CALL_ADOPT,
    CALL_RELEASE,
    CALL_RENEW,
    CALL_DETACH,
    CALL_CLOSE,
    CALL_ASK
};

struct call {
    int number;
    enum call_kind kind;
    struct process *process;
    struct fiber *fiber;
    struct call *outer; /* in whose callback this one is */
    struct room *room;
    hf_options opt;
    int64_t began_ns, began_local_ns, frozen_before_ns;
    int64_t cancelled_ns, closed_ns; /* when somebody did that; SIM_NEVER */
    int64_t callback_ns;             /* spent in callbacks of its own thread so far */
    int64_t callbacks_before_ns;     /* of its process */
    int64_t woken_ns;                /* the server's call came, and nothing has happened since */
    uint64_t mutexes_before, tokens_before;
    uint64_t requests;
    size_t locks_before; /* CALL_CLOSE: that its process has */
    bool in_callback, returned;
    bool used; /* it returned a lock, which may not be given back yet */
    unsigned lost_told, risk_told;
    struct bid *bids; /* the last one first */
    struct grant *grant;
    struct call
        *again; /* on the same terms as this one, whose note it has: see program_acquire() */
    char note[24];
    int on_lost, on_at_risk, on_wait; /* what its callbacks do: program.c */
    bool here;                        /* started, after a first attempt of its own */
    bool started;                     /* it waits for its event; then that is here */
    const hf_event *event;
    const struct fiber *asked_by; /* the runner that had it last */
};

/* A ticket. */
struct bid {
    struct hf__ticket ticket;
    struct bid *next, *next_hash, *next_present;
    uint64_t seen;
    hf_mode mode;
    uint32_t limit;
    struct call *call;
    struct sim_store *store;
    struct room *room;
    enum hf__place place; /* as the server last had it */
    uint64_t generation;
    bool claimed;
    bool listens;  /* the server knows where to call it */
    bool excepted; /* broken or lost in a way that no promise covers (C7) */
    bool broken;
    bool over; /* nothing of it may be in the store, from may_stay_ns on */
    bool detached;
    bool kept;         /* its release asked for the lock to stay closed */
    int64_t since_ms;  /* let in, by the server's clock; the least that it has said since */
    int64_t opened_ms; /* neither inside nor lingering any more, by the server's clock of then */
    bool release_unanswered; /* it may have been given back, or not */
    bool used;               /* somebody was told that it holds */
    int64_t may_stay_ns;     /* SIM_NEVER: for ever */
    int64_t lease_end_ns;    /* as the server last gave it while it was inside; SIM_NEVER */
    int64_t waits_until_ns;
    int64_t asked_since_ns;
    uint64_t asked;  /* since then */
    int64_t gone_ns; /* since when it is not inside any more; SIM_NEVER */
};

/* A lock that a call returned and that is not given back. */
struct grant {
    struct call *call;
    hf_lock *lock;
    struct bid *bid;
    struct process *process;
    int fd;
    unsigned count; /* reentrant */
    hf_mode mode;
    uint32_t limit;
    uint64_t token;
    int64_t returned_local_ns, returned_ns;
    int64_t remaining_ms;      /* when it was returned */
    int64_t believed_until_ns; /* true time */
    int64_t lost_ns;           /* its descriptor became readable; SIM_NEVER */
    bool closed;               /* its client is, or is being */
    bool ended;                /* is being given back */
    bool lost;
    bool in_order; /* the release must succeed */
    bool checked_loss;
};

/* Figures of this seed, for the summary. */
struct figures {
    uint64_t calls, grants, losses, requests, unknown, timeouts, cancelled, closes, kills, freezes,
        forks, breaks, adopted, cached, wakes, data_losses, clock_steps, callbacks;
    /* After the caller's time was up, in thousandths of an op_timeout. */
    int64_t longest_acquire_permille, longest_close_permille, longest_other_permille;
    uint64_t requests_most; /* about one ticket in a second */
};
extern struct figures figures;

/* Calls. */
struct call *ledger_begin(enum call_kind kind, struct room *room, const hf_options *opt);
void ledger_end(struct call *call);
struct call *ledger_call(const char *note); /* by the note of its bid */
struct call *ledger_numbered(int number);
void ledger_callback_begin(struct call *call, bool on_own_thread);
void ledger_callback_end(struct call *call, bool on_own_thread, int64_t began_ns);
bool ledger_callback_runs(const struct process *process);
void ledger_cancelling(const hf_cancel *cancel); /* it is about to be fired */
void ledger_stopping(struct call *call);         /* likewise, by its tag */
void ledger_adopting(struct call *call, const char *ticket);
void ledger_quiet(void);                                   /* from here on the store answers */
void ledger_closing(struct process *process, bool closed); /* before, and after hf_close() */
bool ledger_all_entered(const struct process *process);    /* no call is still at the door */

void ledger_acquired(struct call *call, hf_lock *lock);
void ledger_refused(struct call *call, int code, const hf_error *err);
void ledger_believe(struct grant *grant); /* asks the lock what it says of itself */
void ledger_giving_back(struct grant *grant);
void ledger_gave_back(struct grant *grant, struct call *call, int code, const hf_error *err);
void ledger_detached(struct grant *grant);
void ledger_forget(struct process *process); /* it is dead */

/* Bids. */
struct bid *ledger_bid(const struct hf__ticket *ticket, bool make);
void ledger_except_all(void);           /* the store broke its own promises now */
void ledger_last_longer(int64_t by_ns); /* its clock was set back */
void ledger_sent(struct request *q, const struct fiber *by);
void ledger_looked(struct room *room); /* the server did something */
void ledger_woken(struct bid *bid);

/* Whenever time has passed. */
void ledger_look(void);
hf_lock *ledger_any_lock(const struct process *process); /* NULL: it has none */
bool ledger_is_orphan(const struct bid *bid);
const char *ledger_describe_calls(void);

#endif
