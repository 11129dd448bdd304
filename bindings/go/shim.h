/* What cgo cannot say itself: structures with pointers in them, and callbacks. Go's memory may be lent to C only
 * while it holds no pointers, so options come as plain numbers. */
#ifndef HOLDFAST_GO_SHIM_H
#define HOLDFAST_GO_SHIM_H

#include <holdfast.h>

struct hfgo_terms {
    int64_t ttl_ms, wait_ms, lock_delay_ms, max_hold_ms, patience_ms;
    uint64_t owner;
    uint32_t limit;
    int32_t shared, reentrant, by_hand, confirmed;
};

struct hfgo_got {
    hf_lock *lock; /* NULL: it waits */
    uint64_t token;
};

/* An event without the bytes that nobody reads. */
struct hfgo_event {
    uint64_t tag, token;
    hf_lock *lock;
    int kind, cause, code, retriable;
    long store_code;
    int64_t may_hold_ms;
    char text[400];
};

struct hfgo_list {
    void *items; /* of hfgo_finding or hfgo_store; to be freed with hfgo_list_free() */
    size_t count;
    int no_memory;
};
struct hfgo_finding {
    int level;
    char *clause, *text; /* clause: NULL */
};
struct hfgo_store {
    char *name, *schemes, *summary, *options, *ddl, *missing;
    uint32_t capabilities;
};

int hfgo_open(const char *url, const char *program, const char *modules, hf_client **ret_client,
              hf_error *err);
int hfgo_acquire(hf_client *client, const char *name, size_t name_len,
                 const struct hfgo_terms *terms, const char *note, uint64_t tag, int here,
                 struct hfgo_got *got, hf_error *err);
int hfgo_adopt(hf_client *client, const char *name, size_t name_len, const char *ticket,
               const struct hfgo_terms *terms, struct hfgo_got *got, hf_error *err);
int hfgo_event_next(hf_client *client, struct hfgo_event *ret_event);
int hfgo_dup(int fd); /* closed on exec */
int hfgo_inspect(hf_client *client, const char *name, size_t name_len, const char *prefix,
                 size_t prefix_len, int64_t older_than_ms, hf_view **ret_view, hf_error *err);
int hfgo_diagnose(hf_client *client, struct hfgo_list *list, hf_error *err);
int hfgo_stores(struct hfgo_list *list);
void hfgo_findings_free(struct hfgo_list *list);
void hfgo_stores_free(struct hfgo_list *list);

#endif
