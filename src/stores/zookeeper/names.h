/* What is written into paths and nodes: names of locks and of bids (names.c), and the line of text
 * that a node holds (data.c). */
#ifndef HF_STORES_ZOOKEEPER_NAMES_H
#define HF_STORES_ZOOKEEPER_NAMES_H

#include "stores/store.h"

struct hf__zk;

#define HF__ZK_PATH_MAX        2048     /* the prefix, a name of 512 bytes escaped, a node's name */
#define HF__ZK_DATA_MAX        4096     /* what a node says about its bidder */
#define HF__ZK_BREAK_DIRECTORY "%break" /* no escaped name looks like this */
#define HF__ZK_VALUE_DIRECTORY "%value" /* likewise */
#define HF__ZK_SIMPLE          "simple" /* the one node of the lock that is not fair */

/* "<prefix>/<name escaped>". False if it does not fit. */
bool hf__zk_directory(const struct hf__zk *zk, const char *name, size_t len, char *buf,
                      size_t size);
/* The name behind a child of the prefix. False if it is not one of ours. */
bool hf__zk_unescape(const char *text, char *buf, size_t *ret_len);
void hf__zk_uuid(const struct hf__ticket *ticket, char buf[37]);

/* Whose names our nodes have: other clients look for names of their own only. We heed them all. */
enum hf__zk_layout { HF__ZK_LAYOUT_CURATOR, HF__ZK_LAYOUT_CURATOR_RW, HF__ZK_LAYOUT_KAZOO };
bool hf__zk_layout(const char *text, enum hf__zk_layout *ret);
/* What a bid's node is called before its number. */
void hf__zk_node_name(enum hf__zk_layout layout, const struct hf__ticket *ticket, hf_mode mode,
                      char buf[64]);
/* Of another client's node: who does not see nodes of this layout, and what would help, in words; NULL
 * if it sees them. */
const char *hf__zk_blind(enum hf__zk_layout layout, const char *name);

/* A child of a lock's directory, of whatever client. */
struct hf__zk_child {
    const char *name;
    int32_t sequence;
    bool sequential; /* false: the simple lock's node, or none of a lock */
    bool simple;
    hf_mode mode;
};
struct hf__zk_child hf__zk_child(const char *name);
/* The ticket behind "_c_<uuid>-" or 32 hex digits in front, as Curator and kazoo write them. */
bool hf__zk_ticket_of(const char *name, struct hf__ticket *ret);
/* Survives the wrap-around of the 32-bit counter. */
bool hf__zk_before(int32_t a, int32_t b);
/* Whether `other` keeps `mine` out. */
bool hf__zk_blocks(const struct hf__zk_child *other, const struct hf__zk_child *mine);

struct hf__zk_details {
    int64_t ttl_ms; /* HF__NEVER; -1: of another client, which tells none */
    int64_t lock_delay_ms, pid;
    uint64_t generation;    /* 0: the node's own czxid */
    bool waits;             /* in a waiter's session */
    bool has_ticket, tells; /* tells: its holder wants to know when somebody waits */
    struct hf__ticket ticket;
    char host[256], user[256], program[256], note[HF_NOTE_MAX + 1];
};
/* A malloc()ed line for a node; NULL: no memory. */
char *hf__zk_describe(const struct hf__bid *bid, const struct hf__who *self);
/* The same line, with a generation and `waits` in front. */
char *hf__zk_redescribe(const char *data, uint64_t generation, bool waits);
void hf__zk_parse(const char *data, int len, struct hf__zk_details *ret);
/* What a value's node says: a line, and then the bytes of the value. Gives their number; false: it is
 * none that we have written. */
#define HF__ZK_VALUE_MAX (HF_VALUE_MAX + 80)
size_t hf__zk_format_value(const struct hf__value *value, uint64_t generation,
                           char buf[HF__ZK_VALUE_MAX]);
bool hf__zk_parse_value(const char *data, int len, struct hf__value *ret_value);
/* The line of a lock's directory: the writer with this number was inside and has left. */
#define HF__ZK_LEFT_MAX 40
void hf__zk_format_left(int32_t number, char buf[HF__ZK_LEFT_MAX]);
bool hf__zk_parse_left(const char *data, int len, int32_t *ret_number);

#endif
