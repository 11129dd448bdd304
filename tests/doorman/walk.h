/* The walk: every state that a few clients, one record and a bad network can reach, on the real
 * doorman and the real bidder.
 *
 * A world is one such state. Its clock always stands at the same instant: when a tick passes, all
 * that was written down moves into the past instead, so that worlds that differ only in their date
 * are one. For the same reason generations are renumbered by rank (the rules only compare them),
 * and what can make no difference any more is set to zero. What is left is packed into a few dozen
 * bytes and looked up among those already seen. The search is breadth-first, so that the first
 * trace to a violation is a shortest one.
 *
 * The network: a request or an answer may take up to `life` ticks, overtake others, arrive twice or
 * never; a wake-up may come at any time or never. An attempt arrives a second time only after its
 * client gave up waiting for the answer (and so knows that it is unanswered): drivers do not resend
 * silently. A ticket stays retired for longer than a request may live. */
#ifndef HF_TESTS_DOORMAN_WALK_H
#define HF_TESTS_DOORMAN_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "doorman/bidder.h"
#include "doorman/doorman.h"
#include "planted.h"

#define MAX_CLIENTS  3
#define MAX_BIDS     2 /* one after the other, per client: a ticket each */
#define MAX_TICKETS  (MAX_CLIENTS * MAX_BIDS)
#define MAX_MESSAGES 8
#define MAX_MOVES    64
#define MAX_PACKED   192
#define NO_TICKET    15

#define NOW_MS INT64_C(1000000000)
#define NOW_NS (NOW_MS * 1000000)

/* Scenarios ---------------------------------------------------------------- */
struct bidding {
    hf_mode mode;
    uint32_t limit;
    int64_t ttl_ms, delay_ms;
    bool no_wait;
    bool tell;           /* it wants to know when somebody waits */
    bool cached;         /* it may keep the lock after a release; with tell */
    int64_t at_least_ms; /* of its releases */
    int writes;          /* it reads the value, and writes it so many times per bid */
    bool near;           /* its requests and answers take no time and are never lost */
    int bids;            /* 1 to MAX_BIDS */
};

struct scenario {
    const char *name;
    int64_t tick_ms; /* all durations are multiples of it */
    int life;        /* ticks that a request with its answer may take; retired for one more */
    int messages;    /* in flight at most; one more for a wake-up */
    int deaths, breaks, steps_back;
    int64_t back_ms; /* what a step of the store's clock takes */
    bool unlock;     /* a person may release a waiting ticket */
    bool twice;      /* requests may arrive twice */
    bool deep;       /* only with --deep */
    int clients;
    struct bidding client[MAX_CLIENTS];
};

extern const struct scenario scenarios[];
extern const size_t scenario_count;

/* Where a planted bug must show, and as the breach of which clause. Indexed by enum planted. */
struct hunt {
    const char *scenario, *clause;
};

extern const struct hunt hunts[];
extern const size_t hunt_count;

/* The world ---------------------------------------------------------------- */
enum kind {
    NO_MESSAGE,
    /* requests */
    ATTEMPT,
    RENEW,
    WITHDRAW,
    RELEASE,
    WRITE,
    /* to a client */
    ATTEMPT_ANSWER,
    RENEW_ANSWER,
    WRITE_ANSWER,
    WAKE,
    /* no messages, only deeds */
    READING,
    BREAKING,
    SWEEPING,
};

struct message {
    uint8_t kind, ticket;
    uint8_t age;    /* ticks since the request was sent; wake-ups have none */
    uint8_t late;   /* nobody waits for the answer any more */
    uint8_t copied; /* it arrived once already */
    uint8_t retire; /* WITHDRAW, RELEASE */
    uint8_t named;  /* RENEW and its answer, WRITE, RELEASE: the generation named */
    uint8_t order;  /* WRITE */
    uint8_t generation;
    uint8_t verdict, claimed, wanted;
    int64_t lease_ms;
};

enum pending { NOTHING_PENDING, WITHDRAW_PENDING, RELEASE_PENDING };

struct client {
    struct hf__bidder bidder;
    uint8_t alive;
    uint8_t bid; /* which of its bids, from 0 */
    uint8_t attempt_out, renew_out, write_out, end_out;
    uint8_t order;         /* of its last write */
    uint8_t write_is_open; /* it was not answered: to be sent again */
    uint8_t pending;
    /* Of a cached lock: as core/cache.c does it. */
    uint8_t idle, called; /* not in use; somebody is known to want it */
    uint8_t local;        /* grants since the store's own */
    uint8_t used;         /* to be named with its release */
};

/* What an observer who sees everything remembers of a ticket. Times are ticks to come. */
struct ghost {
    uint8_t withdrawn; /* a withdraw or release was applied */
    uint8_t claimed;   /* somebody who knew of the grant said so to the store */
    uint8_t broken;
    uint8_t cut;          /* broken so that its holder may believe longer than the store */
    uint8_t barred;       /* it is over: not to be let in */
    uint8_t closed;       /* the door must stay closed for its sake */
    uint8_t kept;         /* because its release asked for that */
    uint8_t age;          /* since it was let in; counted if its releases ask for a time */
    uint8_t called;       /* to hear that somebody waits; not since it heard that nobody does */
    uint8_t heard_nobody; /* after a call: the next that comes calls again */
    uint8_t opened;       /* it has read or written the value, as the only holder */
};

struct world {
    struct hf__entry entries[MAX_TICKETS + 1];
    size_t entry_count;
    uint64_t generation;
    struct client client[MAX_CLIENTS];
    struct message message[MAX_MESSAGES];
    size_t message_count;
    struct ghost ghost[MAX_TICKETS];
    uint64_t gate_exclusive, gate_highest;
    uint64_t value_generation;
    uint8_t value_order, doubt, must_doubt; /* as the record says, and as it should say */
    uint8_t deaths, breaks, steps_back;     /* left */
    uint8_t stepped;                        /* the store's clock went back */
};

/* A broken property: the clause, and what happened. NULL clause: all is well. */
struct finding {
    const char *clause, *what;
};

#define FOUND(clause, what) ((struct finding){clause, what})
#define FINE                ((struct finding){NULL, NULL})

/* Things worth seeing; a walk that never sees one of them proves nothing about it. */
#define SIGHTS(X)                                                       \
    X(HANDED_OVER, "a grant by hand-over")                              \
    X(WAKE_BELIEVED, "a wake-up believed")                              \
    X(WAKE_REFUSED, "a wake-up taken for a hint only")                  \
    X(ANSWER_TOO_LATE, "a grant whose answer came too late")            \
    X(LATE_ATTEMPT_REFUSED, "a late attempt of a ticket that was over") \
    X(LINGERED, "a lock-delay")                                         \
    X(DELAY_WITHDRAWN, "a lock-delay ended by a withdrawal")            \
    X(UNCLAIMED_EXPIRED, "an unclaimed grant that expired")             \
    X(READERS_TOGETHER, "readers inside together")                      \
    X(LIMIT_REACHED, "a limit reached")                                 \
    X(READER_BEHIND_WRITER, "a reader waiting behind a writer")         \
    X(BROKEN_READER, "one reader of several broken")                    \
    X(BROKEN_NOW, "a lock broken now")                                  \
    X(NEVER_CLAIMED, "a never-expiring grant claimed")                  \
    X(RELEASE_RETRIED, "a release that arrived twice")                  \
    X(DEAD_WAITER_LEFT, "a dead waiter that left")                      \
    X(BUSY_TOLD, "a no-wait bid refused")                               \
    X(CLOCK_CUT, "a time cut because the clock went back")              \
    X(LOST_GONE, "a lock lost because the store says so")               \
    X(LOST_EXPIRED, "a lock lost by the local timer")                   \
    X(KEPT_CLOSED, "a release that kept the lock closed")               \
    X(KEPT_LONG_ENOUGH, "a release after the time it asked for")        \
    X(HOLDER_CALLED, "a holder called because somebody waits")          \
    X(HOLDER_CALLED_AGAIN, "a holder called a second time")             \
    X(GRANT_WANTED, "a grant answered as wanted")                       \
    X(VALUE_WRITTEN, "a value written")                                 \
    X(VALUE_WRITTEN_TWICE, "a write that arrived again")                \
    X(OLD_WRITE_DROPPED, "a write that was overtaken")                  \
    X(LATE_WRITE_REFUSED, "a write of a grant that is over")            \
    X(VALUE_DOUBTED, "a value in doubt")                                \
    X(DOUBT_ENDED, "a doubt ended by a write")                          \
    X(USED_AGAIN, "a lock taken again without the store")               \
    X(USED_ALL, "all tokens of a cached lock used")                     \
    X(CALLED_EARLY, "a call before the grant was known")                \
    X(TOKENS_LOST, "a cached holder that vanished")

enum sight {
#define X(id, text) SAW_##id,
    SIGHTS(X)
#undef X
        SIGHT_COUNT
};

/* Shared by all parts of one run. */
struct walk {
    const struct scenario *s;
    uint64_t sights[SIGHT_COUNT];
    struct promise_cache *promises;
};

#define SAW(k, sight) ((k)->sights[SAW_##sight]++)

/* walk_world.c */
uint8_t ticket_of(const struct world *w, int client);
int client_of(uint8_t ticket);
struct hf__ticket ticket_bits(uint8_t ticket);
uint8_t ticket_number(const struct hf__ticket *bits);
int64_t retire_ms(const struct scenario *s);
struct hf__bid bid_of(const struct scenario *s, uint8_t ticket);
void world_begin(const struct scenario *s, struct world *w);
void world_tick(const struct scenario *s, struct world *w);
struct hf__entry *entry_of(struct world *w, uint8_t ticket);
uint64_t token_of(const struct client *c);
bool conflict(const struct scenario *s, uint8_t a, uint8_t b);

/* walk_tidy.c, walk_pack.c */
void world_tidy(const struct scenario *s, struct world *w);
size_t world_pack(const struct scenario *s, struct world *w, uint8_t out[MAX_PACKED]);
void world_unpack(const struct scenario *s, const uint8_t *in, struct world *w);

/* walk_store.c: one operation of the real doorman, and all that must be true of it. */
struct deed {
    enum kind kind; /* a request, BREAKING or SWEEPING */
    uint8_t ticket;
    uint64_t generation;
    uint8_t order;
    bool retire, now;
};
struct finding store_apply(struct walk *k, struct world *w, const struct deed *d,
                           struct hf__answer *ret_answer);

/* walk_moves.c */
enum move_kind {
    TICK,
    ASK,
    SIGN_OF_LIFE,
    GIVE_UP,
    LET_GO,
    UNLOCK,
    SEND_AGAIN,
    READ_VALUE,
    WRITE_VALUE,
    KEEP_IDLE,
    USE_AGAIN,
    BID_ANEW,
    DIE,
    DELIVER,
    DELIVER_COPY,
    LOSE,
    BREAK,
    BREAK_NOW,
    STEP_BACK,
    SWEEP,
};
struct move {
    uint8_t kind, arg; /* a client, a message or a ticket */
};
size_t moves_of(const struct scenario *s, const struct world *w, struct move out[MAX_MOVES]);
struct finding move_apply(struct walk *k, struct world *w, struct move m);

/* walk_check.c: what must be true in every world. */
struct finding world_check(struct walk *k, struct world *w);
void promises_free(struct walk *k);

/* walk_trace.c */
void print_move(const struct scenario *s, const struct world *before, struct move m);
void print_world(const struct scenario *s, const struct world *w);

/* walk_search.c */
struct result {
    uint64_t states, moves;
    double seconds;
    struct finding finding;
    bool exhausted; /* no room for more states */
};
struct result search(struct walk *k, bool print_trace);

#endif
