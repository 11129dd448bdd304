/* Sessions of a client: one for each length that is in use (session.c), and their end (close.c). */
#ifndef HF_STORES_ZOOKEEPER_SESSION_H
#define HF_STORES_ZOOKEEPER_SESSION_H

#include "base/table.h"
#include "stores/store.h"
#include "stores/zookeeper/call.h"

#define HF__ZK_SESSIONS_MAX 16    /* per client: each has a connection and two threads */
#define HF__ZK_IDLE_MS      60000 /* a session without a bid is closed after so long, */
#define HF__ZK_SPARE_MS     3000  /* or after so long if the client uses another one */

enum hf__zk_session_state {
    HF__ZK_SESSION_CONNECTING,
    HF__ZK_SESSION_CONNECTED,
    HF__ZK_SESSION_DEAD
};

struct hf__zk_session {
    struct hf__zk *zk;
    struct hf__zk_session *next;
    zhandle_t *zh;
    enum hf__zk_session_state state;
    int64_t asked_ms, timeout_ms; /* as we want it, as the server gave it */
    int64_t id;
    size_t users;        /* bids that live in it, and calls under way */
    int64_t proved_ns;   /* before the last write that the leader has answered */
    int64_t idle_ns;     /* since when it has no users */
    unsigned connection; /* counts them: events come in the order of things within one only */
    struct hf__table watches;
};

/* connect.c: begins the session; NULL with errno. ENOENT, EINVAL: no server can be looked up. */
zhandle_t *hf__zk_connect(struct hf__zk_session *s, watcher_fn on_session);

/* probe.c: what a server says to `srvr`. `host` is "name:port". */
enum hf__zk_probed { HF__ZK_PROBED_ANSWERS, HF__ZK_PROBED_CLOSES, HF__ZK_PROBED_UNREACHABLE };
enum hf__zk_probed hf__zk_probe(const struct hf__zk *zk, const char *host, int64_t deadline_ns,
                                char *buf, size_t size);
/* Whether nothing listens on any of them. */
bool hf__zk_all_refuse(const struct hf__zk *zk, int64_t deadline_ns);
/* HF_UNAVAILABLE, with the reason as far as it can be found out until then. */
int hf__zk_fail_to_connect(const struct hf__zk *zk, int64_t deadline_ns, hf_error *err);

/* A connected session of this length, or as near to it as the server gives; the caller becomes a
 * user of it. HF_UNAVAILABLE, HF_DENIED, HF_FULL, HF_NO_MEMORY. */
int hf__zk_session(struct hf__zk *zk, int64_t timeout_ms, int64_t deadline_ns,
                   struct hf__zk_session **ret_session, hf_error *err);
/* The session of a holder, which may not be shorter: HF_UNSUPPORTED. */
int hf__zk_hold_session(struct hf__zk_bidding *b, int64_t deadline_ns,
                        struct hf__zk_session **ret_session, hf_error *err);
/* Any session, for looking. Closed with the last user if nobody has ever bid here. */
int hf__zk_any_session(struct hf__zk *zk, int64_t deadline_ns, struct hf__zk_session **ret_session,
                       hf_error *err);
/* What the server makes of a session of this length, in ms; 0: it did not say. */
int64_t hf__zk_negotiate(struct hf__zk *zk, int64_t asked_ms, int64_t deadline_ns);
/* Waits until a session that the caller uses is connected. False: dead, or the deadline. */
bool hf__zk_await(struct hf__zk_session *s, int64_t deadline_ns);
bool hf__zk_is_dead(struct hf__zk_session *s);
void hf__zk_unuse(struct hf__zk_session *s); /* not under the mutex */
void hf__zk_unuse_new(
    struct hf__zk_session *s); /* the same, and closes it if nobody has used it before */
void hf__zk_unuse_locked(struct hf__zk_session *s); /* under the mutex */
void hf__zk_use_locked(struct hf__zk_session *s);
/* The lease that a session of this length carries. */
int64_t hf__zk_lease_ms(const struct hf__zk_session *s, int64_t wanted_ms);
void hf__zk_proved(struct hf__zk_session *s, int64_t sent_ns);
/* Closes those that are dead or have been idle. Under the mutex, which it lets go meanwhile. */
void hf__zk_close_idle(struct hf__zk *zk, int64_t now_ns);
void hf__zk_close_session(struct hf__zk_session *s); /* likewise */
/* Closes all of them, or lets go of those in which a lock-delay runs. The timer thread has stopped. */
void hf__zk_close_all(struct hf__zk *zk);

#endif
