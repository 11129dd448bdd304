/* The inside of the store of Cassandra.
 *
 *   cassandra.c   the table of functions
 *   open.c        what the URL says; the statements
 *   operate.c     one operation: read, decide, swap, and again if somebody else was faster
 *   decide.c       the doorman on a row, whose waiters may be dead: what to write, when to ask
 *   row.c         a row of the table `locks` as the doorman's record, and back
 *   heartbeat.c       signs of life
 *   inspect.c, upkeep.c, diagnose.c
 *   simple.c, simple_look.c   layout=simple: the published recipe, in a table of its own
 *
 * The mutex guards `jitter`, `heartbeats` and `notes` only and is never kept during a request. */
#ifndef HF_STORES_CASSANDRA_CASSANDRA_H
#define HF_STORES_CASSANDRA_CASSANDRA_H

#include <pthread.h>

#include "base/who.h"
#include "cql/cql.h"
#include "stores/store.h"

#define HF__CS_HEARTBEATS      1024 /* waiters of one client whose last sign is remembered */
#define HF__CS_SKEW_MAX        4000 /* ms; the shortest lease that counts on it is of 5 s */
#define HF__CS_WAITERS         1000 /* per lock: the queue is one cell, written whole each time */
#define HF__CS_ROW_MAX         (4 << 20) /* bytes in one collection */
#define HF__CS_REPLICATION_MAX 512

extern const char hf__cs_ddl[]; /* schema.cql */
extern const struct hf__option hf__cs_options[];
extern const struct hf__store_type hf_store_type_v1;

enum hf__cs_query {
    HF__CS_QUERY_READ,   /* one lock, and the clock, also if there is no such lock */
    HF__CS_QUERY_CREATE, /* a lock that was not there */
    HF__CS_QUERY_SWAP,
    HF__CS_QUERY_PURGE,
    HF__CS_QUERY_SCAN,
    HF__CS_QUERY_HEARTBEAT,
    HF__CS_QUERY_READ_HEARTBEATS, /* some tickets of one lock */
    HF__CS_QUERY_TAKE_LEASE,
    HF__CS_QUERY_KEEP_LEASE,
    HF__CS_QUERY_DROP_LEASE,
    HF__CS_QUERY_READ_LEASE,
    HF__CS_QUERY_SCAN_LEASES,
    HF__CS_QUERY_LOCAL,
    HF__CS_QUERY_PEERS,
    HF__CS_QUERY_SETTINGS,
    HF__CS_QUERY_KEYSPACE,
    HF__CS_QUERIES
};

struct hf__cs {
    struct hf__store base;
    struct hf__cql *cql;
    char keyspace[HF__CQL_KEYSPACE_MAX + 1];
    char *replication; /* for setup: the URL's, as options of the strategy; NULL */
    int64_t skew_ms;
    bool simple; /* layout */
    struct hf__cql_statement statements[HF__CS_QUERIES];
    atomic_ulong swaps; /* sent so far: what a lock costs the cluster */

    pthread_mutex_t mutex;
    uint64_t jitter; /* see hf__jitter() */
    struct hf__cs_heartbeat {
        struct hf__ticket ticket;
        int64_t due_ns;
    } heartbeats
        [HF__CS_HEARTBEATS]; /* by the ticket's first bits; whoever is pushed out signs once more */
    struct hf__cs_note {
        struct hf__ticket ticket;
        int64_t until_ns; /* what it was told to have; INT64_MAX */
        bool retired;
    } notes[HF__CS_HEARTBEATS]; /* layout=simple: tickets that were let in or withdrawn here */
};

enum hf__cs_proof { HF__CS_PROOF_ASSUMED, HF__CS_PROOF_ALIVE, HF__CS_PROOF_DEAD };

/* What a row says of a bid besides the doorman's part. Texts are borrowed from the answer. */
struct hf__cs_extra {
    struct hf__cql_bytes host, user, program, note;
    int64_t pid, skew_ms;
    /* Of one who waits, whose `until` in the row is as old as the row. */
    enum hf__cs_proof proof;
    int64_t alive_until_ms;
};

/* A row as it was read, and room for the doorman to change it. */
struct hf__cs_row {
    bool exists;
    int64_t version;
    uint64_t generation;
    int64_t touched_ms;
    int64_t now_ms;               /* the clock of the node that read it */
    int64_t sent_ns, received_ns; /* of the read that brought the clock */
    struct hf__entry *was;        /* as read; `who` is the entry's extra */
    struct hf__cs_extra *extras;
    size_t count, capacity;
    struct hf__record record;     /* of the doorman */
    struct hf__cql_result result; /* what the texts are borrowed from */
};

/* open.c ------------------------------------------------------------------- */
int hf__cs_open(const struct hf__url *url, const struct hf__host *host,
                struct hf__store **ret_store, hf_error *err);
void hf__cs_close(struct hf__store *store);

/* A number below `below` (> 0): hf__jitter() under the mutex. */
uint64_t hf__cs_jitter(struct hf__cs *s, uint64_t below);

/* Sends a statement with the store's levels: SERIAL for a read of one lock and for a swap, QUORUM
 * for everything else. `prefer` is a node as in hf__cql_request. */
struct hf__cs_call {
    enum hf__cs_query query;
    const struct hf__cql_value *values;
    size_t value_count;
    int32_t page_size;
    int prefer;
    int64_t deadline_ns;
};
struct hf__cql_request hf__cs_request(const struct hf__cs *s, const struct hf__cs_call *call);
int hf__cs_ask(struct hf__cs *s, const struct hf__cs_call *call, struct hf__cql_result *ret_result,
               hf_error *err);

/* operate.c ---------------------------------------------------------------- */
int hf__cs_operate(struct hf__cs *s, const struct hf__operation *op, int64_t deadline_ns,
                   struct hf__answer *ret_answer, hf_error *err);

/* One lock, until when to work on it, and where to say what went wrong (NULL: nowhere). */
struct hf__cs_lock {
    struct hf__cs *s;
    const char *name;
    size_t name_len;
    int64_t deadline_ns;
    hf_error *err;
};

/* Reads a lock and the clock, at SERIAL; `prefer` as in hf__cs_call. The row is to be cleared, also
 * after a failure. */
int hf__cs_read(const struct hf__cs_lock *lock, int prefer, struct hf__cs_row *row);

/* decide.c ------------------------------------------------------------------ */

/* An operation on a row, and what came of it. */
struct hf__cs_case {
    struct hf__cs_lock lock;
    const struct hf__operation *op;
    struct hf__cs_row row;
    int64_t now_ms; /* of the row's clock */
    struct hf__answer answer;
};

/* Lets the doorman decide; signs of life of those who would be let in are looked up. The row's
 * record is then as it should be, and `answer` the doorman's. */
int hf__cs_decide(struct hf__cs_case *c);

/* Whether the answer is true only once the row is written. */
bool hf__cs_must_write(const struct hf__cs_case *c);

/* Makes the answer what the caller wants: leases as told, the time to ask again. */
void hf__cs_finish(struct hf__cs_case *c);

/* row.c -------------------------------------------------------------------- */
struct hf__cs_packed {
    struct hf__cql_bytes holders, waiters, retired;
};

/* Takes the entries of a row into it. HF_CORRUPT, HF_NO_MEMORY. */
int hf__cs_row_take(struct hf__cs_row *row, const struct hf__cs_packed *packed, hf_error *err);
void hf__cs_row_clear(struct hf__cs_row *row);

/* The entry of a ticket as it was read; NULL if it was not there. */
const struct hf__entry *hf__cs_row_was(const struct hf__cs_row *row,
                                       const struct hf__ticket *ticket);

/* Writes the record's entries that are in these places (a bit for each) as a collection. */
void hf__cs_pack(struct hf__cql_writer *w, const struct hf__cs_row *row, unsigned places);
#define HF__CS_IN(place) (1U << (place))

/* heartbeat.c ------------------------------------------------------------------ */

/* A sign of life of this waiter, if one is due. */
int hf__cs_send_heartbeat(const struct hf__cs_lock *lock, const struct hf__ticket *ticket,
                          int64_t own_lease_ms);
/* It has just joined: the row itself is the sign. */
void hf__cs_note_heartbeat(struct hf__cs *s, const struct hf__ticket *ticket, int64_t own_lease_ms);

/* Looks up the signs of those who wait in the row and whose `wanted` is set (NULL: of all). */
int hf__cs_read_heartbeats(const struct hf__cs_lock *lock, struct hf__cs_row *row,
                           const bool *wanted);

/* The rest ----------------------------------------------------------------- */
int hf__cs_inspect(struct hf__store *store, const struct hf__search *search, int64_t deadline_ns,
                   hf_error *err);
/* The keyspace that a URL names. Errors: HF_INVALID. */
int hf__cs_keyspace(const struct hf__url *url, char keyspace[HF__CQL_KEYSPACE_MAX + 1],
                    hf_error *err);
int hf__cs_ddl_of(const struct hf__url *url, char **ret_text, hf_error *err);
int hf__cs_upkeep(struct hf__store *store, enum hf__upkeep what, int64_t retain_ms,
                  int64_t deadline_ns, uint64_t *ret_count, hf_error *err);
int hf__cs_diagnose(struct hf__store *store, hf_finding_callback *found, void *arg,
                    int64_t deadline_ns, hf_error *err);

/* layout=simple: operations that hf__cs_operate() would do otherwise. */
int hf__cs_simple_operate(struct hf__cs *s, const struct hf__operation *op, int64_t deadline_ns,
                          struct hf__answer *ret_answer, hf_error *err);
int hf__cs_simple_inspect(struct hf__cs *s, const struct hf__search *search, int64_t deadline_ns,
                          hf_error *err);

#endif
