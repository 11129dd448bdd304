/* ERROR messages: what the server says went wrong, and what that means to who asked. */
#ifndef HF_CQL_FAILURE_H
#define HF_CQL_FAILURE_H

#include "cql/message.h"

/* Everything that any of them carries; what one does not carry is zero. The bytes are borrowed from
 * the frame. */
struct hf__cql_failure {
    int32_t code; /* enum hf__cql_code, or one we do not know */
    struct hf__cql_bytes message;
    uint16_t consistency;
    int32_t received, required; /* of Unavailable: alive, required */
    int32_t failures;           /* replicas that failed */
    uint16_t contentions;       /* v5: how often the swap was outbid */
    bool data_present;
    struct hf__cql_bytes write_type;      /* "CAS", "SIMPLE", ... */
    struct hf__cql_bytes keyspace, thing; /* AlreadyExists: and the table; FunctionFailure */
    struct hf__cql_bytes id;              /* Unprepared */
};

/* HF_CORRUPT if it is shorter than it says. */
int hf__cql_read_failure(const struct hf__cql_frame *frame, struct hf__cql_failure *ret_failure,
                         hf_error *err);

/* What it means for a statement of this kind (see cql.h), and the sentence. */
int hf__cql_meaning(const struct hf__cql_failure *failure, enum hf__cql_kind kind);
int hf__cql_report(const struct hf__cql_failure *failure, enum hf__cql_kind kind, hf_error *err);

/* Whether another node may be asked: the fault is this one's, and nothing can have been applied. */
bool hf__cql_is_local(const struct hf__cql_failure *failure, enum hf__cql_kind kind);

const char *hf__cql_consistency_name(uint16_t consistency);

#endif
