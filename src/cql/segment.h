/* Segments of protocol v5: one payload between its checksums. */
#ifndef HF_CQL_SEGMENT_H
#define HF_CQL_SEGMENT_H

#include "cql/frame.h"

#define HF__CQL_SEGMENT_HEAD 6
#define HF__CQL_SEGMENT_TAIL 4

/* `payload` has at most HF__CQL_SEGMENT_MAX bytes; `whole`: it holds whole frames. */
void hf__cql_put_segment(struct hf__cql_writer *w, struct hf__cql_bytes payload, bool whole);

/* Checks the first bytes of one and says how long it is with all checksums; later, the rest.
 * HF_CORRUPT. */
int hf__cql_check_segment_head(const unsigned char *head, size_t *ret_size, hf_error *err);
int hf__cql_check_segment_tail(const unsigned char *segment, size_t size, hf_error *err);
bool hf__cql_segment_is_whole(const unsigned char *head);

#endif
