/* What stands in the values of keys: flat objects of JSON, for people and for other clients to read.
 *
 *   a place   {"ticket":..,"ttl_ms":..,"delay_ms":..,"since_ms":..,"pid":..,"inbox":..,
 *              "host":..,"user":..,"program":..,"note":..}, and "tell":1 if its holder wants to know
 *              when somebody waits
 *   a mark    {"since_ms":..}, or nothing if it was handed over and not claimed yet
 *   a value   {"generation":"..","order":".."}, a line feed, and then its bytes
 *   next      {"to":"<ticket>","next":"<ticket>","lease":"..","joined":".."}
 *
 * JSON is UTF-8: a text that is not goes in as base64, under its name with 64 behind it. */
#ifndef HF_STORES_ETCD_RECORD_H
#define HF_STORES_ETCD_RECORD_H

#include "stores/etcd/keys.h"
#include "stores/store.h"

#define HF__ETCD_FIELDS 24 /* more is none of ours */

struct hf__etcd_record {
    size_t count;
    struct hf__etcd_field {
        const char *name, *text; /* `text` NULL: it is a number */
        int64_t number;
    } fields[HF__ETCD_FIELDS];
    char *texts; /* what they are borrowed from */
};
/* False: it is no such object, or out of memory. Clear in either case. */
bool hf__etcd_record_read(struct hf__slice value, struct hf__etcd_record *ret_record);
void hf__etcd_record_clear(struct hf__etcd_record *r);
/* NULL and 0: there is none. A number may be written as a text. */
const char *hf__etcd_record_text(const struct hf__etcd_record *r, const char *name);
int64_t hf__etcd_record_number(const struct hf__etcd_record *r, const char *name);
/* When it was written, by its writer's clock; 0: it does not say, or nothing that makes sense. */
int64_t hf__etcd_record_since(const struct hf__etcd_record *r);

/* What a place's value tells. `who`'s strings are borrowed from `keep`. */
struct hf__etcd_details {
    struct hf__ticket ticket;
    int64_t ttl_ms, delay_ms, since_ms; /* wall clock of whoever bid */
    bool tells;
    struct hf__who who;
    char inbox[HF__ETCD_INBOX]; /* "": it has none */
    struct hf__etcd_record keep;
};
/* To be freed; NULL: out of memory. */
char *hf__etcd_details_text(const struct hf__etcd *e, const struct hf__bid *bid);
/* False: a stranger's. Clear in either case. */
bool hf__etcd_details_read(struct hf__slice value, struct hf__etcd_details *ret);
void hf__etcd_details_clear(struct hf__etcd_details *d);

/* What stands in a mark below inside/: since when. */
#define HF__ETCD_MARK_VALUE 40
void hf__etcd_mark_value(const struct hf__etcd *e, char ret_value[HF__ETCD_MARK_VALUE]);

#endif
