/* The ZooKeeper store: the published lock recipe behind the store contract.
 *
 * There is no doorman's record here. A bid is an ephemeral sequential node in the lock's directory,
 * named by its ticket; the order of the sequence suffixes is the queue, the sessions are the
 * leases.
 *
 *      attempt      create _c_<uuid>-lock- | -read-lock-      (write)
 *                   children of the directory, no watch       (read, sent with it; same session, so
 *                                                              it sees all that came before)
 *                   nobody before it who conflicts: GRANTED, generation = czxid of the own node
 *                   otherwise get + watch of itself and of the last two who do: QUEUED (ahead.c)
 *
 *      renew        multi [check own node]...                 (one write for many: the leader
 *                                                              agrees)
 *
 *      release      delete own node                           (write)
 *                   with [set directory: its number left] if it is a writer that had to wait
 *
 * A bid that holds lives in a session of ttl + lock-delay, one that waits in a session of its own
 * lease, so that a waiter that died is missed in seconds. The node changes its session in one multi
 * [set, delete, create at the same path]: it keeps its place, and its first czxid, its generation,
 * in the data; whoever watches it is told that it was written to. Such a move back into the long
 * session, or into a persistent node for a lock that never expires, is the claim of a grant.
 *
 * The lease told to the client is two thirds of the session: a follower passes on that it has heard
 * of a session, but only with its next ping to the leader, so the leader may count from the contact
 * before the last one, a third of the session ago.
 *
 * What ZooKeeper does not do is done by the warden, a thread of this store: it deletes the nodes of
 * bids that were not renewed although the session lives, keeps them for their lock-delay first, and
 * forgets spent tickets.
 *
 * Locks: zk->mutex guards everything below but what is marked; it is never held over the network.
 * It is taken on ZooKeeper's completion threads, so nobody holds it while calling
 * zookeeper_close(). */
#ifndef HF_STORES_ZOOKEEPER_ZK_H
#define HF_STORES_ZOOKEEPER_ZK_H

#include <pthread.h>

#include "stores/store.h"
#include "stores/zookeeper/call.h"
#include "util/heap.h"
#include "util/table.h"

#define HF__ZK_SESSIONS_MAX 16       /* per client: each has a connection and two threads */
#define HF__ZK_PATH_MAX     2048     /* the prefix, a name of 512 bytes escaped, a node's name */
#define HF__ZK_DATA_MAX     4096     /* what a node says about its bidder */
#define HF__ZK_MARKS        "%break" /* no escaped name looks like this */
#define HF__ZK_SIMPLE       "simple" /* the one node of the lock that is not fair */
#define HF__ZK_IDLE_MS      60000    /* a session without a bid is closed after so long */

struct zk;
struct bidding;

enum session_state { HF__ZK_CONNECTING, HF__ZK_CONNECTED, HF__ZK_DEAD };

struct session {
    struct zk *zk;
    struct session *next;
    zhandle_t *zh;
    enum session_state state;
    int64_t asked_ms, timeout_ms; /* as we want it, as the server gave it */
    int64_t id;
    size_t users;        /* bids that live in it, and calls under way */
    int64_t proved_ns;   /* before the last write that the leader has answered */
    int64_t idle_ns;     /* since when it has no users */
    unsigned connection; /* counts them: events come in the order of things within one only */
    struct hf__table watches;
};

/* The server will tell when a node changes (watch.c). */
struct watch {
    struct hf__link link; /* by path, in its session */
    struct session *session;
    struct sight *sights; /* who wants to know */
    bool armed;           /* the server has answered */
    char path[];
};

/* What a bid that waits looks at: its own node, the last one before it that keeps it out, and the
 * last one before that (ahead.c). */
enum sight_kind { HF__ZK_OWN, HF__ZK_FAR, HF__ZK_NEAR, HF__ZK_SIGHTS };
struct sight {
    struct watch *watch; /* NULL: none, or it has told */
    struct sight *next;  /* of the same watch */
    struct bidding *b;
};

/* JOINING: nothing is known to be in the store, or nothing is needed there (a waiter for the simple
 * lock). LEAVING: its node is to be deleted. SPENT: over; only the ticket is remembered. */
enum bid_state { HF__ZK_JOINING, HF__ZK_JOINED, HF__ZK_LINGERING, HF__ZK_LEAVING, HF__ZK_SPENT };

/* One ticket of this client. */
struct bidding {
    struct hf__link link; /* by ticket */
    struct hf__timer timer;
    struct zk *zk;
    struct hf__ticket ticket;
    unsigned refs;
    bool busy;   /* one operation at a time works on it */
    bool unsure; /* a create or a move may have been applied */
    bool inside, claimed, permanent, marked, listed;
    enum bid_state state;
    hf_mode mode;
    int64_t ttl_ms, lock_delay_ms, retire_ms;
    struct session *session; /* of its node; NULL: none */
    uint64_t generation;
    int64_t until_ns; /* of the lease, the lock-delay or the memory of the ticket */
    struct sight sights[HF__ZK_SIGHTS];
    size_t ahead;        /* at most so many keep it out, the watched ones among them */
    unsigned connection; /* in which `ahead` was counted */
    int32_t far_number;  /* of the one that is watched as HF__ZK_FAR */
    bool waited;         /* for its turn */
    bool asking;         /* whether others but the nearest are left (ahead.c) */
    bool near_gone;      /* while it asks */
    struct bidding *next_to_ask;
    char *directory; /* the lock's path */
    char *path;      /* its node; NULL: not known */
    char *data;      /* what its node says */
};

struct wakeup {
    struct wakeup *next;
    struct hf__ticket ticket;
    uint64_t generation; /* of the grant; 0: ask */
};

struct zk {
    struct hf__store base;
    char *hosts, *prefix; /* "h1:2181,h2:2181"; "/locks" */
    char *credentials;    /* "user:password" or NULL */
    const struct ACL_vector *acl;
    bool fair;
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* a session's state, a bidding's busy */
    pthread_cond_t due;     /* something for the warden, before armed_ns */
    int64_t armed_ns;
    size_t patient; /* who waits until a bidding is not busy */
    struct session *sessions;
    size_t session_count;
    struct session *marks_session; /* in which the marks are watched; NULL: they are not */
    struct hf__table biddings;
    struct hf__heap timers;
    uint64_t seed;
    pthread_t warden;
    bool warden_runs, stop;
    int wake_fd;
    struct wakeup *first_wake, **last_wake;
};

/* names.c ---------------------------------------------------------------------------------------*/

/* "<prefix>/<name escaped>". False if it does not fit. */
bool hf__zk_directory(const struct zk *zk, const char *name, size_t len, char *buf, size_t size);
/* The name behind a child of the prefix. False if it is not one of ours. */
bool hf__zk_unescape(const char *text, char *buf, size_t *ret_len);
void hf__zk_uuid(const struct hf__ticket *ticket, char buf[37]);
/* "_c_<uuid>-lock-" or "_c_<uuid>-read-lock-". */
void hf__zk_node_name(const struct hf__ticket *ticket, hf_mode mode, char buf[64]);

/* A child of a lock's directory, of whatever client. */
struct child {
    const char *name;
    int32_t sequence;
    bool sequential; /* false: the simple lock's node, or none of a lock */
    bool simple;
    hf_mode mode;
};
struct child hf__zk_child(const char *name);
/* The ticket behind "_c_<uuid>-" or 32 hex digits in front, as Curator and kazoo write them. */
bool hf__zk_ticket_of(const char *name, struct hf__ticket *ret);
/* Survives the wrap-around of the 32-bit counter. */
bool hf__zk_before(int32_t a, int32_t b);
/* Whether `other` keeps `mine` out. */
bool hf__zk_blocks(const struct child *other, const struct child *mine);

/* data.c ----------------------------------------------------------------------------------------*/
struct details {
    int64_t ttl_ms, lock_delay_ms, pid;
    uint64_t generation; /* 0: the node's own czxid */
    bool waits;          /* in a waiter's session */
    bool has_ticket;
    struct hf__ticket ticket;
    char host[256], user[256], program[256], note[HF_NOTE_MAX + 1];
};
/* A malloc()ed line for a node; NULL: no memory. */
char *hf__zk_describe(const struct hf__bid *bid, const struct hf__who *self);
/* The same line, with a generation and `waits` in front. */
char *hf__zk_redescribe(const char *data, uint64_t generation, bool waits);
void hf__zk_parse(const char *data, int len, struct details *ret);
/* The line of a lock's directory: the writer with this number was inside and has left. */
#define HF__ZK_LEFT_MAX 40
void hf__zk_format_left(int32_t number, char buf[HF__ZK_LEFT_MAX]);
bool hf__zk_parse_left(const char *data, int len, int32_t *ret_number);

/* session.c ------------------------------------------------------------------------------------*/

/* A connected session of this length, or as near to it as the server gives; the caller becomes a
 * user of it. HF_UNAVAILABLE, HF_DENIED, HF_FULL, HF_NO_MEMORY. */
int hf__zk_session(struct zk *zk, int64_t timeout_ms, int64_t deadline_ns,
                   struct session **ret_session, hf_error *err);
/* The session of a holder, which may not be shorter: HF_UNSUPPORTED. */
int hf__zk_hold_session(struct bidding *b, int64_t deadline_ns, struct session **ret_session,
                        hf_error *err);
/* Any session, for looking. Closed with the last user if nobody has ever bid here. */
int hf__zk_any_session(struct zk *zk, int64_t deadline_ns, struct session **ret_session,
                       hf_error *err);
/* What the server makes of a session of this length, in ms; 0: it did not say. */
int64_t hf__zk_negotiate(struct zk *zk, int64_t asked_ms, int64_t deadline_ns);
/* Waits until a session that the caller uses is connected. False: dead, or the deadline. */
bool hf__zk_await(struct session *s, int64_t deadline_ns);
bool hf__zk_is_dead(struct session *s);
void hf__zk_unuse(struct session *s);        /* not under the mutex */
void hf__zk_unuse_locked(struct session *s); /* under the mutex */
void hf__zk_use_locked(struct session *s);
/* The lease that a session of this length carries. */
int64_t hf__zk_lease_ms(const struct session *s, int64_t wanted_ms);
void hf__zk_proved(struct session *s, int64_t sent_ns);
/* Closes those that are dead or have been idle. Under the mutex, which it lets go meanwhile. */
void hf__zk_close_idle(struct zk *zk, int64_t now_ns);
void hf__zk_close_session(struct session *s); /* likewise */
/* Closes all of them, or lets go of those in which a lock-delay runs. The warden has stopped. */
void hf__zk_close_all(struct zk *zk);

/* watch.c --------------------------------------------------------------------------------------*/

/* Lets the bid look at these paths (NULL: leave that sight alone), in one round trip. ZNONODE: one
 * of them is not there. */
int hf__zk_watch(struct bidding *b, const char *const paths[HF__ZK_SIGHTS], int64_t deadline_ns);
void hf__zk_look_away(struct sight *sight); /* under the mutex */
/* Under the mutex. `generation` 0: ask. */
void hf__zk_call_ticket(struct zk *zk, const struct hf__ticket *ticket, uint64_t generation);
void hf__zk_free_watches(struct session *s);
int hf__zk_wake_fd(struct hf__store *store);
void hf__zk_wake(struct hf__store *store, hf__wake_sink *sink, void *ctx);

/* bidding.c ------------------------------------------------------------------------------------*/

/* The bidding of this ticket with a reference, NULL if there is none; _make: a new one if so. */
struct bidding *hf__zk_find(struct zk *zk, const struct hf__ticket *ticket);
struct bidding *hf__zk_bidding_make(struct zk *zk, const struct hf__bid *bid);
void hf__zk_bidding_unref(struct bidding *b);
/* One at a time. False: the deadline came first. */
bool hf__zk_begin(struct bidding *b, int64_t deadline_ns);
void hf__zk_end(struct bidding *b);
/* Under the mutex: */
struct bidding *hf__zk_lookup(struct zk *zk, const struct hf__ticket *ticket);
void hf__zk_set_timer(struct bidding *b, int64_t when_ns);
void hf__zk_leave_session(struct bidding *b);
/* The ticket is over and is remembered for so long; 0: forgotten at once. */
void hf__zk_spend(struct bidding *b, int64_t retire_ms);

/* warden.c -------------------------------------------------------------------------------------*/
int hf__zk_start_warden(struct zk *zk, hf_error *err);
void hf__zk_stop_warden(struct zk *zk);

/* ahead.c: what a waiter knows of those before it ---------------------------------------------*/
struct standing {
    bool present;           /* its node is among the children */
    size_t position;        /* how many are before it */
    size_t crowd;           /* children in all */
    size_t blockers;        /* how many keep it out */
    const char *near, *far; /* the last of them and the one before, borrowed; NULL: nobody */
};
/* Under the mutex: it will watch the last two of these. */
void hf__zk_look_ahead(struct bidding *b, const struct standing *at);
/* A watch has told `sight` that its node has gone, or will not tell. Under the mutex. True: its bid
 * must ask who is left, with hf__zk_ask_ahead() and without the mutex. */
bool hf__zk_seen(struct sight *sight, int type);
void hf__zk_ask_ahead(struct bidding *b);
/* Deletes the node of a writer that is inside, and says so to those behind it in the same step. */
int hf__zk_leave_word(struct bidding *b, int64_t deadline_ns);

/* place.c: where a bid stands, and moving its node --------------------------------------------*/
struct standing hf__zk_judge(const struct bidding *b, char *const *names, int count);
/* "<directory>/<name>". False if it does not fit. */
bool hf__zk_child_path(const struct bidding *b, const char *name, char buf[HF__ZK_PATH_MAX]);
/* Into this session, or into a permanent node (`to` NULL); keeps path and generation. */
int hf__zk_move(struct bidding *b, struct session *to, int64_t deadline_ns);
/* After a lost answer: finds its node, if there is one, and in which session it is. ZOK: b->path
 * and b->session say. */
int hf__zk_find_node(struct bidding *b, int64_t deadline_ns);
/* The same for the node at this path, as far as this server knows. */
int hf__zk_adopt(struct bidding *b, const char *path, int64_t deadline_ns);
/* The session lengths of a bid. */
int64_t hf__zk_hold_ms(int64_t ttl_ms, int64_t lock_delay_ms);
int64_t hf__zk_wait_ms(int64_t ttl_ms, int64_t lock_delay_ms);
/* The answer GRANTED, and the warden's timer. */
void hf__zk_granted(struct bidding *b, struct hf__answer *ret_answer);

/* join.c: 0 if the bid is in the store, wherever; 1 if its ticket is over. In `ret_list` the
 * children as they were when it joined, NULL if it was there before. */
int hf__zk_join(struct bidding *b, bool queue, int64_t deadline_ns, struct call **ret_list,
                hf_error *err);
bool hf__zk_is_over(struct bidding *b);

/* The operations of store.h, each in the file of its name. -------------------------------------*/
int hf__zk_attempt(struct hf__store *store, const struct hf__bid *bid, int64_t deadline_ns,
                   struct hf__answer *ret_answer, hf_error *err);
int hf__zk_spent(struct bidding *b, struct hf__answer *ret_answer); /* the answer WITHDRAWN */
int hf__zk_simple_ask(struct bidding *b, const struct hf__bid *bid, int64_t deadline_ns,
                      struct hf__answer *ret_answer, hf_error *err);
/* Deletes the one node of the lock if it is this ticket's, or ZNONODE. */
int hf__zk_simple_delete(struct session *s, const struct hf__ticket *ticket, const char *path,
                         int64_t deadline_ns);
int hf__zk_simple_remove(struct bidding *b, int64_t deadline_ns); /* likewise */
void hf__zk_deed_path(const struct zk *zk, const struct hf__ticket *ticket, char *buf, size_t size);
int hf__zk_withdraw(struct hf__store *store, const struct hf__bid *bid, int64_t retire_ms,
                    int64_t deadline_ns, struct hf__answer *ret_answer, hf_error *err);
int hf__zk_release(struct hf__store *store, const struct hf__bid *bid, int64_t retire_ms,
                   int64_t deadline_ns, struct hf__answer *ret_answer, hf_error *err);
int hf__zk_renew(struct hf__store *store, struct hf__renewal *items, size_t count,
                 int64_t deadline_ns, hf_error *err);
int hf__zk_break(struct hf__store *store, const struct hf__bid *bid, bool now, int64_t deadline_ns,
                 struct hf__answer *ret_answer, hf_error *err);
int hf__zk_inspect(struct hf__store *store, const struct hf__look *look, int64_t deadline_ns,
                   hf_error *err);
int hf__zk_upkeep(struct hf__store *store, enum hf__upkeep what, int64_t retain_ms,
                  int64_t deadline_ns, uint64_t *ret_count, hf_error *err);
int hf__zk_diagnose(struct hf__store *store, hf_finding_callback *found, void *arg,
                    int64_t deadline_ns, hf_error *err);

/* Deletes what a bid has in the store, and proves it. ZOK: it was there; ZNONODE: it was not. */
int hf__zk_remove(struct bidding *b, int64_t deadline_ns);

/* marks.c --------------------------------------------------------------------------------------*/

/* "<prefix>/%break/<uuid>", with "-now" behind it if so. */
void hf__zk_mark_path(const struct zk *zk, const struct hf__ticket *ticket, bool now, char *buf,
                      size_t size);
struct mark {
    bool now;
    int mode;        /* ZOO_EPHEMERAL: of the holder's session */
    const char *why; /* for people */
};
int hf__zk_put_mark(struct session *s, const struct hf__ticket *ticket, const struct mark *mark,
                    int64_t deadline_ns);
int hf__zk_make_marks(struct zk *zk, struct session *s, int64_t deadline_ns); /* their directory */
/* Sees to it that the marks are watched, and heeds those that are there. */
void hf__zk_heed_marks(struct zk *zk, struct session *s, int64_t deadline_ns);
/* The holder has been broken: its lease will not be renewed. Under the mutex. */
void hf__zk_apply_break(struct bidding *b, bool now);

#endif
