/* How a client asks another one's holder to leave (break_requests.c). */
#ifndef HF_STORES_ZOOKEEPER_BREAK_REQUESTS_H
#define HF_STORES_ZOOKEEPER_BREAK_REQUESTS_H

#include "stores/zookeeper/bidding.h"

/* "<prefix>/%break/<uuid>", with "-now" behind it if so. */
void hf__zk_break_request_path(const struct hf__zk *zk, const struct hf__ticket *ticket, bool now,
                               char *buf, size_t size);
struct hf__zk_break_request {
    bool now;
    int mode;        /* ZOO_EPHEMERAL: of the holder's session */
    const char *why; /* for people */
};
int hf__zk_put_break_request(struct hf__zk_session *s, const struct hf__ticket *ticket,
                             const struct hf__zk_break_request *request, int64_t deadline_ns);
int hf__zk_make_break_directory(struct hf__zk *zk, struct hf__zk_session *s,
                                int64_t deadline_ns); /* their directory */
/* Sees to it that requests are watched, and applies those that are there. */
void hf__zk_watch_break_requests(struct hf__zk *zk, struct hf__zk_session *s, int64_t deadline_ns);
/* The holder has been broken: its lease will not be renewed. Under the mutex. */
void hf__zk_apply_break(struct hf__zk_bidding *b, bool now);

#endif
