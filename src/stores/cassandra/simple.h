/* layout=simple: what its two files share. */
#ifndef HF_STORES_CASSANDRA_SIMPLE_H
#define HF_STORES_CASSANDRA_SIMPLE_H

#include "stores/cassandra/cassandra.h"

#define HF__CS_NAME_TEXT  (2 * HF_NAME_MAX + 2)
#define HF__CS_VALUE_TEXT 2200

/* A name that is UTF-8 stands in the table as it is. Any other, and one that begins with \001, is
 * \001 and its bytes in hex; so no two names meet. */
void hf__cs_name_text(const char *name, size_t len, char to[HF__CS_NAME_TEXT]);
/* And back. False: no name of ours, and too long to be one. */
bool hf__cs_name_bytes(struct hf__cql_bytes text, char to[HF_NAME_MAX], size_t *ret_len);

/* The value says who holds: "ttl since pid host user program note", where only the note has
 * blanks. */
struct hf__cs_value {
    int64_t ttl_ms; /* HF__NEVER; -1: a value that is not ours, and all of it is the note */
    int64_t since_ms, pid;
    struct hf__who_text who;
};
void hf__cs_write_value(char *text, size_t size, const struct hf__bid *bid, int64_t since_ms);
struct hf__cs_value hf__cs_read_value(struct hf__cql_bytes text);

#endif
