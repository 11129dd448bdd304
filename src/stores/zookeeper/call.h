/* Requests to ZooKeeper that end by a deadline (call.c). */
#ifndef HF_STORES_ZOOKEEPER_CALL_H
#define HF_STORES_ZOOKEEPER_CALL_H

#define THREADED
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <zookeeper/zookeeper.h>

#include "holdfast.h"

struct hf__zk;
struct hf__zk_session;
struct hf__zk_bidding;
struct hf__zk_watch;

struct hf__zk_call {
    pthread_mutex_t mutex; /* guards this call; inside zk->mutex, if both */
    pthread_cond_t answered;
    unsigned refs;
    bool done;
    int rc;
    struct Stat stat;
    char *text; /* the path that was made, or the data */
    int text_len;
    char **names; /* children */
    int name_count;
    zoo_op_result_t *results;
    int result_count;
    int world;                  /* what anybody may do, of an ACL */
    struct hf__zk_watch *watch; /* that goes with it (watch.c) */
};

struct hf__zk_call *hf__zk_call_new(void); /* NULL: no memory */
void hf__zk_call_free(struct hf__zk_call *call);
/* The completions to hand to zoo_a*() with the call as data; each takes a reference first. */
void hf__zk_call_ref(struct hf__zk_call *call);
void hf__zk_call_again(struct hf__zk_call *call); /* for another try, once it was answered */
void hf__zk_on_void(int rc, const void *data);
void hf__zk_on_stat(int rc, const struct Stat *stat, const void *data);
void hf__zk_on_data(int rc, const char *value, int len, const struct Stat *stat, const void *data);
void hf__zk_on_path(int rc, const char *path, const struct Stat *stat, const void *data);
void hf__zk_on_name(int rc, const char *path, const void *data);
void hf__zk_on_children(int rc, const struct String_vector *names, const void *data);
/* A moment of the host's clock for pthread_cond_clockwait() with CLOCK_MONOTONIC. */
struct timespec hf__zk_moment(const struct hf__zk *zk, int64_t when_ns);
/* The server's code, or ZOPERATIONTIMEOUT at the deadline. `sent` is what zoo_a*() returned. */
int hf__zk_wait(struct hf__zk *zk, struct hf__zk_call *call, int sent, int64_t deadline_ns);

/* One request and its answer. All give the server's code. */
int hf__zk_make(struct hf__zk_session *s, const char *path, const char *data, int mode,
                int64_t deadline_ns, struct hf__zk_call *call);
int hf__zk_delete(struct hf__zk_session *s, const char *path, int64_t deadline_ns);
int hf__zk_get(struct hf__zk_session *s, const char *path, int64_t deadline_ns,
               struct hf__zk_call *call);
int hf__zk_get_acl(struct hf__zk_session *s, const char *path, int64_t deadline_ns,
                   struct hf__zk_call *call);
int hf__zk_children(struct hf__zk_session *s, const char *path, bool sync, int64_t deadline_ns,
                    struct hf__zk_call *call);
int hf__zk_multi(struct hf__zk_session *s, zoo_op_t *ops, int count, int64_t deadline_ns,
                 struct hf__zk_call *call);
/* Makes a sequential node and lists its directory behind it, in one round trip: what a session asks
 * is done in its order. Gives the code of the first, and in `ret_listed` that of the second. */
int hf__zk_make_and_list(struct hf__zk_bidding *b, const char *path, int64_t deadline_ns,
                         struct hf__zk_call *made, struct hf__zk_call *list, int *ret_listed);
int hf__zk_exists(struct hf__zk_session *s, const char *path, int64_t deadline_ns,
                  struct hf__zk_call *call);
/* Creates the directories above and including `path`. */
int hf__zk_make_directory(struct hf__zk_session *s, const char *path, int64_t deadline_ns);
/* Whether a write with this answer may have been applied. */
bool hf__zk_may_be_applied(int rc);
/* From the server's code; `what` names the request. */
int hf__zk_fail(hf_error *err, int rc, const char *what);

#endif
