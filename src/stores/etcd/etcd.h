/* etcd://h1,h2,h3/prefix - the inside of the store.
 *
 * No doorman here: etcd orders keys by the revision that created them, and that is the queue. A bid
 * is a lease, which it has for itself as long as it bids and holds, and keys that die with it:
 *
 *   <prefix><name>/write/<lease>              a writer's place in the queue (read/ for a reader)
 *   <prefix>.holdfast/inside/<name>/<lease>   it was let in; its create revision is the generation
 *   <prefix>.holdfast/broken/<name>/<lease>   somebody broke it: it is not renewed any more. Every
 *                                             client watches for these
 *   <prefix>.holdfast/next/<inbox>/<lease>    who stands right behind it, told to its client
 *   <prefix>.holdfast/slot/<lease>            where that one learns that it must ask: handover.c
 *   <prefix>.holdfast/retired/<ticket>        a tombstone: this ticket is never let in again
 *
 * <lease> is in hex without leading zeros, as the Go client writes it, so that every contender of
 * etcd's own Mutex, of `etcdctl lock` and of the v3lock service stands in the same queue. '/' and
 * '%' in a name are escaped, as is a '.' in front: no name lies below another, nor in .holdfast. */
#ifndef HF_STORES_ETCD_ETCD_H
#define HF_STORES_ETCD_ETCD_H

#include <curl/curl.h>
#include <pthread.h>

#include "stores/etcd/request.h"
#include "stores/store.h"
#include "util/table.h"

#define HF__ETCD_ENDPOINTS 16
#define HF__ETCD_ALIVE     2048
#define HF__ETCD_WHERE     100 /* of an address, in messages */
#define HF__ETCD_IDLE      16  /* connections kept */
#define HF__ETCD_SPARE     16  /* leases kept */

struct hf__etcd_settings {
    char *endpoints[HF__ETCD_ENDPOINTS]; /* "http://host:2379" */
    size_t endpoint_count;
    char *prefix; /* "" or ends in '/' */
    char *user, *password;
    char *tls_ca, *tls_cert, *tls_key;
    bool tls_insecure;
};

/* What this client knows of one of its tickets. */
struct hf__etcd_bid {
    struct hf__link link;
    struct hf__ticket ticket;
    hf_mode mode;
    int64_t ttl_ms, delay_ms;
    int64_t lease;       /* its own for as long as it bids or holds; in the names of its keys */
    bool lease_given;    /* by an answer: it is never asked for again */
    bool doubted;        /* a request of it may still be on the way */
    int64_t asked_ns;    /* when the lease was first asked for */
    bool lease_dropped;  /* it never expires, and is claimed */
    bool retired;        /* over: never let in again */
    uint64_t joined;     /* create revision of its place; 0: not known */
    uint64_t generation; /* 0: not inside */
    uint64_t marked;     /* revision at which its mark was last put, as far as is known */
    bool handed;         /* by another's release, and not claimed yet */
    int64_t proved_ns;   /* sent before the request that last restarted the lease */
    int64_t forget_ns;   /* INT64_MAX while it is of use */
    struct hf__etcd_next {
        struct hf__ticket ticket;
        int64_t lease;
        uint64_t joined;
    } next; /* the writer right behind it, as far as is known; `joined` 0: nobody */
};

/* See stream.c and watch.c. */
struct hf__etcd_stream {
    /* Under the store's mutex. */
    struct hf__table watches; /* by ticket */
    struct hf__table numbers; /* the same, by their own: see watch.h */
    int64_t last_number;
    struct hf__etcd_bytes out; /* messages that the server has not got yet */
    bool urgent;               /* a new watch is among them */
    bool doubted;              /* something was missed: dial again */
    size_t asked, confirmed;   /* watches of the present request */

    /* Of wake() only. */
    int epoll_fd, bell_fd;  /* -1 until somebody listens */
    int timer_fd, pause_fd; /* curl's, and ours */
    CURLM *multi;
    CURL *curl;
    struct curl_slist *headers;
    struct hf__etcd_bytes in; /* what has come of the present message */
    bool rests;               /* the request waits for more to send */
    unsigned failures;
    size_t endpoint;
    size_t open;        /* watches that were not confirmed when we last looked */
    int64_t retry_ns;   /* when to dial again; INT64_MAX: no need */
    int64_t confirm_ns; /* until when the server must have confirmed a watch; likewise */
    hf__wake_sink *sink;
    void *sink_ctx;
};

struct hf__etcd {
    struct hf__store base;
    struct hf__etcd_settings set;
    uint64_t seed;
    char inbox[HF__ETCD_INBOX]; /* where others tell that they are next */

    pthread_mutex_t mutex; /* guards all below; never held during a request */
    struct hf__table bids; /* by ticket */
    size_t sweep_at;       /* see bids.c */
    CURL *idle[HF__ETCD_IDLE];
    size_t idle_count;
    CURLM *multi;                       /* of batches; NULL while one runs */
    struct hf__etcd_partings *partings; /* see batch.c */
    size_t endpoint;                    /* the one that answered last */
    char *token;                        /* NULL: none yet */
    struct hf__etcd_spare {
        int64_t lease, seconds, proved_ns, fresh_ns;
    } spare[HF__ETCD_SPARE];
    size_t spare_count;
    struct hf__etcd_alive {
        int64_t lease, until_ns;
    } alive[HF__ETCD_ALIVE]; /* see inspect.c */
    struct hf__etcd_stream stream;
};

extern const struct hf__option hf__etcd_options[];

/* open.c --------------------------------------------------------------------------------------- */
int hf__etcd_settings_read(const struct hf__url *url, struct hf__etcd_settings *set, hf_error *err);
void hf__etcd_settings_clear(struct hf__etcd_settings *set);

/* names.c -------------------------------------------------------------------------------------- */
/* The number of a lease that this ticket asks for; positive. */
int64_t hf__etcd_lease_of(const struct hf__ticket *ticket);
/* The lease in the name of a place or a mark; 0: none. It need not hang on that lease: see renew.c
 * and break.c for what is put again. */
int64_t hf__etcd_named(const struct hf__etcd_key *key);

enum hf__etcd_kind { HF__ETCD_PLACE, HF__ETCD_INSIDE, HF__ETCD_BROKEN };

struct hf__etcd_name {
    const char *bytes;
    size_t len;
};

/* The key below which all of one kind lie for names that begin with `name`, or, if `whole`, for
 * this very name: then it ends in '/'. */
void hf__etcd_root(const struct hf__etcd *e, enum hf__etcd_kind kind, struct hf__etcd_name name,
                   bool whole, struct hf__etcd_key *ret_key);
void hf__etcd_append(struct hf__etcd_key *key, const char *text);
/* root + "write/" or "read/" + lease; root + lease. */
void hf__etcd_place_key(const struct hf__etcd *e, struct hf__etcd_name name, hf_mode mode,
                        int64_t lease, struct hf__etcd_key *ret_key);
void hf__etcd_mark_key(const struct hf__etcd *e, enum hf__etcd_kind kind, struct hf__etcd_name name,
                       int64_t lease, struct hf__etcd_key *ret_key);
void hf__etcd_tombstone_key(const struct hf__etcd *e, const struct hf__ticket *ticket,
                            struct hf__etcd_key *ret_key);
void hf__etcd_slot_key(const struct hf__etcd *e, int64_t lease, struct hf__etcd_key *ret_key);
/* Below which a client is told who is next; and where, for one of its bids. */
void hf__etcd_inbox_key(const struct hf__etcd *e, const char *inbox, struct hf__etcd_key *ret_key);
void hf__etcd_next_key(const struct hf__etcd *e, const char *inbox, int64_t lease,
                       struct hf__etcd_key *ret_key);
/* The first key after all that begin with this one. Empty: there is none. */
void hf__etcd_end_of(const struct hf__etcd_key *key, struct hf__etcd_key *ret_end);

/* Takes "<name>/write/<lease>" or a stranger's "<name>/<lease>" apart, after the prefix. False if
 * it is neither. `ret_name` needs HF_NAME_MAX bytes. */
struct hf__etcd_parts {
    size_t name_len;
    char name[HF_NAME_MAX];
    hf_mode mode;
    bool ours; /* has the write/ or read/ */
};
bool hf__etcd_parse_place(const struct hf__etcd *e, const struct hf__etcd_key *key,
                          struct hf__etcd_parts *ret_parts);

/* http.c, flight.c, outcome.c, batch.c ---------------------------------------------------------- */
struct hf__etcd_request {
    const char *path; /* "kv/txn" */
    char *body;       /* stolen; NULL: out of memory */
    int64_t deadline_ns;
    bool once;     /* not again on another server if it may have been applied */
    bool *doubted; /* set if a copy of it may still be on the way; or NULL */
    bool stream;   /* the body is several messages, and the answer an array of them */
};

/* One request, on whichever server answers. HF_NOT_FOUND: there is no such lease. HF_BUSY: there is
 * one already. HF_UNAVAILABLE, HF_UNKNOWN, HF_DENIED, HF_FULL, HF_CORRUPT, HF_NO_MEMORY. */
int hf__etcd_call(struct hf__etcd *e, struct hf__etcd_request q, json_t **ret_answer,
                  hf_error *err);
/* The same on one server and no other. */
int hf__etcd_call_at(struct hf__etcd *e, size_t endpoint, struct hf__etcd_request q,
                     json_t **ret_answer, hf_error *err);
/* Many at once, on a few connections to one server; each has its own code and answer. What failed
 * for want of a server is tried again like a single one. */
struct hf__etcd_many {
    struct hf__etcd_request request;
    json_t *answer;
    int code;
};
void hf__etcd_call_many(struct hf__etcd *e, struct hf__etcd_many *all, size_t count, hf_error *err);
/* Sends it, and does not wait for the answer: for what need not be known. */
void hf__etcd_send_off(struct hf__etcd *e, struct hf__etcd_request q);
void hf__etcd_partings_clear(struct hf__etcd *e);
/* Set to what all requests have in common; NULL: out of memory. */
CURL *hf__etcd_new_curl(const struct hf__etcd *e);
/* Gives it the address of `path` on this server. */
int hf__etcd_aim(const struct hf__etcd *e, CURL *curl, size_t endpoint, const char *path);
struct curl_slist *hf__etcd_headers(struct hf__etcd *e);
void hf__etcd_http_clear(struct hf__etcd *e);

/* lease.c -------------------------------------------------------------------------------------- */
int64_t hf__etcd_lease_seconds(int64_t ttl_ms, int64_t delay_ms);
int hf__etcd_lease_grant(struct hf__etcd *e, int64_t lease, int64_t seconds, int64_t deadline_ns,
                         hf_error *err);
char *hf__etcd_lease_request(int64_t lease);
/* 0, HF_NOT_FOUND, or an error. */
int hf__etcd_lease_renew(struct hf__etcd *e, int64_t lease, int64_t deadline_ns, hf_error *err);
/* All in one request. `ret_alive`: for each, whether it was. */
int hf__etcd_lease_renew_all(struct hf__etcd *e, const int64_t *leases, size_t count,
                             int64_t deadline_ns, bool *ret_alive, hf_error *err);
int hf__etcd_lease_revoke(struct hf__etcd *e, int64_t lease, int64_t deadline_ns, hf_error *err);
struct hf__etcd_life {
    int64_t left_s, given_s; /* left: rounded down */
};
int hf__etcd_lease_life(struct hf__etcd *e, int64_t lease, int64_t deadline_ns,
                        struct hf__etcd_life *ret_life, hf_error *err);
/* Whether somebody who has not been let in has given no sign of life for longer than it may. */
bool hf__etcd_is_dead(const struct hf__etcd_life *life, int64_t ttl_ms);
/* Whether somebody inside has outlived its ttl and only its lock-delay keeps the door closed. */
bool hf__etcd_lingers(const struct hf__etcd_life *life, int64_t ttl_ms, int64_t delay_ms);

/* bids.c: what is known of our tickets. Each takes the mutex. ----------------------------------- */
/* A copy of what is known; with `bid` not NULL it is noted first if it is new. False: unknown, or
 * out of memory. */
bool hf__etcd_bid_get(struct hf__etcd *e, const struct hf__ticket *ticket,
                      const struct hf__bid *bid, struct hf__etcd_bid *ret_copy);
/* Writes back what a request has taught: fields only rise. */
void hf__etcd_bid_learn(struct hf__etcd *e, const struct hf__etcd_bid *copy);
/* It is over. Remembered for so long, so that a late attempt finds it; 0: none is on the way. */
void hf__etcd_bid_retire(struct hf__etcd *e, const struct hf__bid *bid, int64_t remember_ms);
/* Who stands right behind this ticket, if it is known here. */
void hf__etcd_bid_set_next(struct hf__etcd *e, const struct hf__ticket *ticket,
                           const struct hf__etcd_next *next);
/* Whose key below inside/ or broken/ this is. False: nobody's here. */
bool hf__etcd_bid_of_mark(struct hf__etcd *e, const struct hf__etcd_key *key,
                          struct hf__ticket *ret_ticket);
void hf__etcd_bids_clear(struct hf__etcd *e);

/* pool.c: leases that nothing hangs on any more, for the next bids. Each takes the mutex, but for
 * `take`, which wants it held. ------------------------------------------------------------------ */
/* `b` is over, and nothing hangs on its lease: keeps it, or ends it. */
void hf__etcd_lease_keep(struct hf__etcd *e, const struct hf__etcd_bid *b);
/* Gives `b` a lease that was kept, if there is one that will do. */
void hf__etcd_lease_take(struct hf__etcd *e, struct hf__etcd_bid *b);
void hf__etcd_leases_clear(struct hf__etcd *e);

/* attempt.c, end.c, break.c, renew.c, inspect.c, diagnose.c: the operations of store.h. ---------- */
int hf__etcd_attempt(struct hf__store *store, const struct hf__bid *bid, int64_t deadline_ns,
                     struct hf__answer *ret_answer, hf_error *err);
int hf__etcd_withdraw(struct hf__store *store, const struct hf__bid *bid, int64_t retire_ms,
                      int64_t deadline_ns, struct hf__answer *ret_answer, hf_error *err);
int hf__etcd_release(struct hf__store *store, const struct hf__bid *bid, int64_t retire_ms,
                     int64_t deadline_ns, struct hf__answer *ret_answer, hf_error *err);
int hf__etcd_break(struct hf__store *store, const struct hf__bid *bid, bool now,
                   int64_t deadline_ns, struct hf__answer *ret_answer, hf_error *err);
int hf__etcd_renew(struct hf__store *store, struct hf__renewal *items, size_t count,
                   int64_t deadline_ns, hf_error *err);
int hf__etcd_inspect(struct hf__store *store, const struct hf__look *look, int64_t deadline_ns,
                     hf_error *err);
int hf__etcd_diagnose(struct hf__store *store, hf_finding_callback *found, void *arg,
                      int64_t deadline_ns, hf_error *err);

/* What is in the store for one ticket. */
struct hf__etcd_found {
    bool there; /* it has a place */
    bool ours;  /* it was made by holdfast */
    hf_mode mode;
    int64_t lease;               /* its place hangs on this; 0: none, it never expires */
    int64_t named;               /* the lease in its keys' names */
    uint64_t joined, generation; /* generation 0: waits */
    bool broken;
    uint64_t revision; /* of the answer */
    int64_t ttl_ms, delay_ms;
    struct hf__etcd_key place; /* its key */
};
/* One request. A stranger is found by the ticket that inspect shows for it. */
int hf__etcd_find(struct hf__etcd *e, struct hf__etcd_name name, const struct hf__ticket *ticket,
                  int64_t deadline_ns, struct hf__etcd_found *ret_found, hf_error *err);
/* The ticket under which a stranger's place is shown. */
void hf__etcd_stranger(int64_t lease, uint64_t joined, struct hf__ticket *ret_ticket);

/* handover.c ----------------------------------------------------------------------------------- */
/* What stands in a mark below inside/: since when. */
#define HF__ETCD_MARK_VALUE 40
void hf__etcd_mark_value(const struct hf__etcd *e, char ret_value[HF__ETCD_MARK_VALUE]);
/* Whether the mark (or NULL) of a place that was made at `joined` was put by the release of somebody
 * else, and not claimed yet. */
bool hf__etcd_is_handed(const json_t *mark, uint64_t joined);
/* What came into our inbox. */
void hf__etcd_hear_next(struct hf__etcd *e, const json_t *kv);
/* Whether a release of `b` can let in the next one. */
bool hf__etcd_can_hand_over(const struct hf__etcd_bid *b);

/* stream.c: the one request for all wake-ups. -------------------------------------------------- */
int hf__etcd_wake_fd(struct hf__store *store);
void hf__etcd_wake(struct hf__store *store, hf__wake_sink *sink, void *ctx);
void hf__etcd_stream_clear(struct hf__etcd *e);

/* watch.c, hear.c: what is watched, and for whom. ---------------------------------------------- */
struct hf__etcd_wanted {
    const struct hf__etcd_key *before; /* calls when this is deleted */
    const struct hf__etcd_key *mark;   /* and when this is put by a hand-over; NULL: never */
    uint64_t from;                     /* at this revision or later */
};
/* Calls `ticket` once, of which nothing else is watched from now on. */
void hf__etcd_watch(struct hf__etcd *e, const struct hf__ticket *ticket,
                    const struct hf__etcd_wanted *wanted);
/* Whether it is watching this key for its deletion, and was not called yet. */
bool hf__etcd_watches(struct hf__etcd *e, const struct hf__ticket *ticket,
                      const struct hf__etcd_key *before);
/* The lease of the one whose slot it watches; 0: it watches none. */
int64_t hf__etcd_behind(struct hf__etcd *e, const struct hf__ticket *ticket);
/* Whether anybody listens to the stream. */
bool hf__etcd_listens(struct hf__etcd *e);
void hf__etcd_unwatch(struct hf__etcd *e, const struct hf__ticket *ticket);
/* Whether it was called since. */
bool hf__etcd_was_told(struct hf__etcd *e, const struct hf__ticket *ticket);
/* What it watches for has happened, by another account. If no call has come, none may come. */
void hf__etcd_missed(struct hf__etcd *e, const struct hf__ticket *ticket);
/* For the stream: all that is watched becomes what there is to send. */
void hf__etcd_watches_renew(struct hf__etcd *e);
/* For the stream: one message of the server, with the end of its line. False: it is no answer. */
bool hf__etcd_watches_hear(struct hf__etcd *e, const char *line, size_t len);
void hf__etcd_watches_clear(struct hf__etcd *e);

#endif
