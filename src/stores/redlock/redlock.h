/* The Redlock store's inside: N servers that know nothing of each other, and a client that counts.
 *
 *   redlock.c   the operations: what is asked, and what the votes mean
 *   renew.c     extending many locks at once
 *   key.c       the key of a name, and the note of a ticket
 *   round.c     asks all nodes at once, from one thread
 *   line.c      one connection to one node; never blocks
 *   pool.c      sets of N connections, lent to one operation at a time
 *   open.c      from the URL to a store
 *   inspect.c, scan.c   what a majority knows, and of which names
 *   diagnose.c  what each node gives
 *
 * store->mutex guards the pool and what is noted of the nodes; it is never held during I/O. */
#ifndef HF_STORES_REDLOCK_REDLOCK_H
#define HF_STORES_REDLOCK_REDLOCK_H

#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>

#include "stores/redis/link.h"

#define HF__REDLOCK_NODES_MAX 15
#define HF__REDLOCK_GRANT     1 /* a ticket is let in once; see store.h on stores without tokens */
#define HF__REDLOCK_SELF_MAX  512
#define HF__REDLOCK_NOTE      "holdfast.redlock:" /* before a ticket: its note */
#define HF__REDLOCK_OWN_WORD  "holdfast."         /* no lock's key begins like this */

#define HF__REDLOCK_SCRIPTS(X) \
    X(ATTEMPT, attempt)        \
    X(RELEASE, release)        \
    X(RENEW, renew)            \
    X(LOOK, look)

enum hf__redlock_script {
#define X(id, name) HF__REDLOCK_SCRIPT_##id,
    HF__REDLOCK_SCRIPTS(X)
#undef X
        HF__REDLOCK_SCRIPT_NONE, /* a plain command */
};

/* One of the servers. The strings are set at opening; the rest is guarded by the store's mutex. */
struct hf__redlock_node {
    const char *host, *port;    /* borrowed from the settings */
    struct addrinfo *addresses; /* NULL: to be looked up */
    unsigned tries;             /* which of them to try next */
    int64_t retry_ns;           /* nobody dials before then */
    unsigned failures;
    int64_t adrift_ns;        /* until then an attempt without an answer may still reach it */
    hf_error why;             /* why the last dial failed */
    char run_id[41];          /* of the server that was found there last; "" if it is not known */
    int64_t up_since_ns;      /* since when that one has been up, at the earliest */
    _Atomic int64_t heard_ns; /* when it answered last */
};

enum hf__redlock_state {
    HF__REDLOCK_STATE_DOWN,
    HF__REDLOCK_STATE_LOGGING_IN,
    HF__REDLOCK_STATE_READY
};

/* A connection to a node. */
struct hf__redlock_line {
    enum hf__redlock_state state;
    struct hf__redis_conn *c; /* NULL: DOWN */
    int step;                 /* of logging in */
    size_t sent;              /* of the bytes in c->out */
    short events;             /* what writing waits for; 0: nothing to write */
    unsigned owed;            /* replies to earlier operations that are still to come */
    int64_t since_ns;         /* the dial, or the oldest request that is owed a reply */
    int64_t up_since_ns;      /* the server's own start */
    int64_t used_ns;
};

struct hf__redlock_set {
    struct hf__pooled pooled;
    size_t count;
    struct hf__redlock_line lines[];
};

struct hf__redlock {
    struct hf__store base;
    struct hf__redis_settings set;
    int64_t max_ttl_ms, node_timeout_ms, retry_ms;
    bool guard;
    size_t count, quorum;
    struct hf__redlock_node nodes[HF__REDLOCK_NODES_MAX];
    char self[HF__REDLOCK_SELF_MAX]; /* "pid\0host\0user\0program\0" */
    size_t self_len;
    pthread_mutex_t mutex; /* for the nodes */
    struct hf__pool pool;  /* of sets of connections */
};

extern const struct hf__option hf__redlock_options[];
__attribute__((visibility("default"))) extern const struct hf__store_type hf_store_type_v1;

/* line.c ------------------------------------------------------------------- */

/* Begins to connect, if it is time to. Errors: why not; the node is noted. */
int hf__redlock_dial(struct hf__redlock *s, size_t node, struct hf__redlock_line *line,
                     int64_t deadline_ns, hf_error *err);
/* The script itself, or its SHA-1. */
const char *hf__redlock_script_text(enum hf__redlock_script script, bool whole);

void hf__redlock_hang_up(struct hf__redlock_line *line);

/* Writes what can be without waiting. Errors: the line is of no more use. */
int hf__redlock_flush(struct hf__redlock *s, size_t node, struct hf__redlock_line *line,
                      hf_error *err);

/* The same, and reads. Replies are passed on in turn, but for those of the
 * log-in and those owed to earlier operations. Errors: the line is of no more use. */
typedef int hf__redlock_hear(void *ctx, redisReply **reply, hf_error *err);
int hf__redlock_exchange(struct hf__redlock *s, size_t node, struct hf__redlock_line *line,
                         hf__redlock_hear *hear, void *ctx, hf_error *err);

/* The line failed: hangs up, and notes it if the node could not be reached or used. */
void hf__redlock_fail(struct hf__redlock *s, size_t node, struct hf__redlock_line *line,
                      const hf_error *why);

/* Whether it has kept us waiting for longer than a node may. */
bool hf__redlock_lags(const struct hf__redlock *s, const struct hf__redlock_line *line,
                      int64_t now_ns);

/* pool.c ------------------------------------------------------------------- */
extern const struct hf__pool_type hf__redlock_pool_type;
int hf__redlock_take(struct hf__redlock *s, int64_t deadline_ns, struct hf__redlock_set **ret_set,
                     hf_error *err);
void hf__redlock_give(struct hf__redlock *s, struct hf__redlock_set *set);

/* round.c ------------------------------------------------------------------ */

/* A question to all nodes. The functions get it back; it is the first member of what they need. */
struct hf__redlock_ask {
    enum hf__redlock_script script;
    /* The words after "EVALSHA sha1", or the whole command. */
    void (*write)(struct hf__redlock_ask *ask, size_t node, struct hf__redis_conn *c);
    /* Takes what it keeps of the reply, and sets it to NULL then. An error is that node's only. */
    int (*reply)(struct hf__redlock_ask *ask, size_t node, redisReply **reply, hf_error *err);
    /* The rest need not be waited for. NULL: never. */
    bool (*decided)(const struct hf__redlock_ask *ask);
    uint32_t to;            /* the nodes to ask, a bit each */
    bool patient;           /* waits also for nodes that have been silent */
    bool voters_only;       /* not those that the restart guard keeps out */
    size_t argc;            /* words that `write` adds */
    uint32_t sent, replied; /* set by the round */
    uint32_t kept_out; /* so are these: they answer, but the restart guard lets them not vote */
    hf_error why;      /* what kept the most telling node from answering */
};

/* All nodes, and how many there are in a set of them. */
static inline uint32_t hf__redlock_all(const struct hf__redlock *s)
{
    return (1U << s->count) - 1;
}

static inline size_t hf__redlock_votes(uint32_t nodes)
{
    return (size_t)__builtin_popcount(nodes);
}

/* now + ms, but no later than `deadline_ns`. */
int64_t hf__redlock_soon(const struct hf__redlock *s, int64_t ms, int64_t deadline_ns);

/* Returns when it is decided, when nobody is left to wait for, or at the deadline. */
void hf__redlock_round(struct hf__redlock *s, struct hf__redlock_set *set,
                       struct hf__redlock_ask *ask, int64_t deadline_ns);

/* Too few have answered: says so, with `why`. */
int hf__redlock_too_few(const struct hf__redlock *s, const struct hf__redlock_ask *ask,
                        size_t answered, hf_error *err);

/* key.c, redlock.c, renew.c, open.c, inspect.c, diagnose.c ----------------- */

/* The key of a lock's name. HF_INVALID: it would be one of the store's own. */
struct hf__redlock_key {
    char bytes[HF__REDIS_KEY_MAX];
    size_t len;
};
int hf__redlock_key(const struct hf__redlock *s, const char *name, size_t len,
                    struct hf__redlock_key *ret_key, hf_error *err);

/* The name of a ticket's note, as the next word of a request. */
void hf__redlock_add_note_name(struct hf__redis_conn *c, const char *ticket);

int hf__redlock_open(const struct hf__url *url, const struct hf__host *host,
                     struct hf__store **ret_store, hf_error *err);
void hf__redlock_close(struct hf__store *store);
/* There is nothing to create and nothing to purge: looks whether a majority is there. */
int hf__redlock_upkeep(struct hf__store *store, enum hf__upkeep what, int64_t retain_ms,
                       int64_t deadline_ns, uint64_t *ret_count, hf_error *err);
int hf__redlock_renew(struct hf__store *store, struct hf__renewal *items, size_t count,
                      int64_t deadline_ns, hf_error *err);
int hf__redlock_diagnose(struct hf__store *store, hf_finding_callback *found, void *arg,
                         int64_t deadline_ns, hf_error *err);
int hf__redlock_inspect(struct hf__store *store, const struct hf__search *search,
                        int64_t deadline_ns, hf_error *err);

#endif
