/* The messages: requests as frames, answers from the bodies of frames. No I/O. */
#ifndef HF_CQL_MESSAGE_H
#define HF_CQL_MESSAGE_H

#include "cql/cql.h"
#include "cql/frame.h"

#define HF__CQL_COLUMNS_MAX 1024
#define HF__CQL_ID_MAX      64 /* of a prepared statement; Cassandra's have 16 bytes (MD5) */

/* Requests: each fills an empty writer with one frame ---------------------- */
struct hf__cql_parameters {
    const struct hf__cql_value *values;
    size_t value_count;
    enum hf__cql_consistency consistency;
    enum hf__cql_consistency serial; /* 0: not said */
    int32_t page_size;               /* 0: not said */
    struct hf__cql_bytes paging_state;
    bool skip_metadata; /* we know the columns */
};

/* What PREPARE gave. */
struct hf__cql_prepared {
    unsigned char id[HF__CQL_ID_MAX], metadata_id[HF__CQL_ID_MAX];
    size_t id_len, metadata_id_len; /* the latter in v5 only */
};

void hf__cql_write_startup(struct hf__cql_writer *w, int version);
void hf__cql_write_options(struct hf__cql_writer *w, int version);
void hf__cql_write_login(struct hf__cql_writer *w, int version, const char *user,
                         const char *password); /* SASL PLAIN */
void hf__cql_write_query(struct hf__cql_writer *w, int version, const char *text,
                         const struct hf__cql_parameters *parameters);
void hf__cql_write_prepare(struct hf__cql_writer *w, int version, const char *text);
void hf__cql_write_execute(struct hf__cql_writer *w, int version,
                           const struct hf__cql_prepared *prepared,
                           const struct hf__cql_parameters *parameters);

/* Answers ------------------------------------------------------------------ */

/* The body without what the flags put before the message (trace, warnings, payload). */
struct hf__cql_reader hf__cql_message_of(const struct hf__cql_frame *frame);

enum hf__cql_result_kind {
    HF__CQL_RESULT_VOID = 1,
    HF__CQL_RESULT_ROWS = 2,
    HF__CQL_RESULT_SET_KEYSPACE = 3,
    HF__CQL_RESULT_PREPARED = 4,
    HF__CQL_RESULT_SCHEMA_CHANGE = 5,
};

/* A RESULT frame. Its body becomes the result's, also on failure. PREPARED has its own. Every cell
 * of the rows has been seen to be there. HF_CORRUPT. */
int hf__cql_read_result(struct hf__cql_frame *frame, struct hf__cql_result *ret_result,
                        hf_error *err);
int hf__cql_read_prepared(const struct hf__cql_frame *frame, struct hf__cql_prepared *ret_prepared,
                          hf_error *err);

#endif
