/* What is watched, and for whom: one watch call of etcd per client, however many of its bids wait.
 *
 * The server knows a watch by a number of ours. Of a bid there are up to two: one on what is before
 * it, for its deletion, and one on its own mark, for being let in; of a holder one on who lines up. So a bid has a number, and twice
 * that is the one, and one more the other. Numbers are never used twice: what the server still says
 * about a watch that is over finds nobody. */
#ifndef HF_STORES_ETCD_WATCH_H
#define HF_STORES_ETCD_WATCH_H

#include "base/table.h"
#include "grpc/conn.h"
#include "stores/etcd/message.h"
#include "stores/store.h"

#define HF__ETCD_BROKEN_ID 1 /* the watch on broken locks */
#define HF__ETCD_INBOX_ID  2 /* on our inbox */
#define HF__ETCD_FIRST_BID 2 /* the lowest number of a bid */

struct hf__etcd_watching {
    /* Under the store's mutex. */
    struct hf__table watches; /* by ticket */
    struct hf__table numbers; /* the same, by their own */
    int64_t last_number;
    uint64_t seen[HF__ETCD_INBOX_ID + 1]; /* up to where the two of the client have heard all */
    struct hf__grpc_conn *conn;           /* with `call`: a reference */
    struct hf__grpc_call *call;           /* the one call; NULL: there is none */
    bool lost;                            /* there was one */
    bool is_new;                          /* nothing was taken from it yet */
    bool rung;                            /* for that, and nobody has come yet */
    int64_t begun_ns;                     /* when the call began */
    bool timed;                           /* the timer is set */
    int epoll_fd, bell_fd, timer_fd;      /* -1 until somebody listens */

    /* Of wake() only. */
    struct hf__buffer in; /* what has come and was not heard yet */
    hf__wake_sink *sink;
    void *sink_ctx;
};

/* For bids. Each takes the mutex. --------------------------------------------------------------- */
struct hf__etcd_to_watch {
    const struct hf__etcd_key *before; /* calls when this is deleted */
    const struct hf__etcd_key *mark;   /* and when this is put by a hand-over; NULL: never */
    bool arrivals;                     /* in place of both: when somebody lines up below `before` */
    bool readers_enter;                /* with it: who comes as a reader does not wait */
    uint64_t from;                     /* at this revision or later */
};
/* Calls `ticket` once, of which nothing else is watched from now on. */
void hf__etcd_watch(struct hf__etcd *e, const struct hf__ticket *ticket,
                    const struct hf__etcd_to_watch *wanted);
/* Whether it is watching this key for its deletion, and was not called yet. */
bool hf__etcd_watches(struct hf__etcd *e, const struct hf__ticket *ticket,
                      const struct hf__etcd_key *before);
/* The lease of the one whose slot it watches; 0: it watches none. */
int64_t hf__etcd_behind(struct hf__etcd *e, const struct hf__ticket *ticket);
/* Whether anybody listens. */
bool hf__etcd_listens(struct hf__etcd *e);
void hf__etcd_unwatch(struct hf__etcd *e, const struct hf__ticket *ticket);
/* Whether it was called since. */
bool hf__etcd_was_told(struct hf__etcd *e, const struct hf__ticket *ticket);
/* What it watches for has happened, by another account. If no call has come, none may come. */
void hf__etcd_missed(struct hf__etcd *e, const struct hf__ticket *ticket);

/* The call. Mutex held. ------------------------------------------------------------------------- */
/* Begins it on the cluster's connection, with all that is watched, from the same revisions. Nothing
 * happens if nobody listens, or there is one. */
void hf__etcd_watches_begin(struct hf__etcd *e);
/* It is over, or of no more use. */
void hf__etcd_watches_lose(struct hf__etcd *e);
/* It was refused to watch something: if its user's token may have expired, it is made anew with
 * another, which whoever asks next will get. */
void hf__etcd_watches_refused(struct hf__etcd *e);
/* Signs of life are looked for while there is anything to lose. */
void hf__etcd_watches_time(struct hf__etcd *e);

/* try_watch.c: a watch of its own, on this server: the microseconds from a change until it has told of it;
 * negative: it has not. */
int64_t hf__etcd_try_watch(struct hf__etcd *e, size_t endpoint, int64_t deadline_ns, hf_error *err);

/* Inside. ---------------------------------------------------------------------------------------- */
enum hf__etcd_watched { HF__ETCD_WATCHED_BEFORE, HF__ETCD_WATCHED_OWN_MARK };

struct hf__etcd_watch {
    struct hf__link by_ticket; /* first */
    struct hf__link by_number;
    struct hf__ticket ticket;
    int64_t number;
    uint64_t from;                /* revision */
    bool told;                    /* it was called, and that is all it gets */
    bool arrivals, readers_enter; /* of a holder; then the keys are the two ends of a range */
    size_t len[2];                /* of the keys; that of the mark may be 0: it is not watched */
    char keys[];
};

/* Mutex held. NULL: there is none. */
struct hf__etcd_watch *hf__etcd_watch_by_id(struct hf__etcd *e, int64_t id);
/* Whether what was put says that somebody waits for who watches arrivals. Mutex held. */
bool hf__etcd_has_arrived(const struct hf__etcd_watch *w, const struct hf__etcd_kv *kv);
/* In wake(), without the mutex: what the server says. False: it makes no sense. */
bool hf__etcd_take_notices(struct hf__etcd *e);
void hf__etcd_watches_clear(struct hf__etcd *e);

#endif
