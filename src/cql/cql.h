/* A client of Cassandra's native protocol (v4 and v5): statements in, rows out.
 *
 * One connection per contact point, made when it is first needed and shared by all threads: each
 * sends its own request and waits for its own answer; whoever waits reads for all (conn.h). The
 * first contact point of the URL that works is used until it fails, so that the coordinator's clock
 * is mostly one clock. Other nodes of the cluster are not looked for.
 *
 * Statements are prepared, once per node, and take bound values only; schema statements, which have
 * none, are sent as text. There is no current keyspace: statements write keyspace.table (see
 * hf__cql_is_name). What failed says whether it may have been applied:
 *
 *   HF_UNAVAILABLE   surely not applied: not sent, or refused before anything was proposed
 *   HF_UNKNOWN       a write that may have been applied, or may be yet
 *   HF_DENIED        wrong password, no right, certificate not trusted, keyspace or table missing
 *   HF_INVALID       the server does not accept the statement or its values
 *   HF_CORRUPT       the server says what no server should
 *   HF_NO_MEMORY, HF_SYSTEM
 *
 * A read is never HF_UNKNOWN: one that failed was tried on the other nodes while there was time.
 * The store_code of the error is the server's own (enum hf__cql_code), if it answered. Nothing but
 * hf__cql_close() needs the callers to be alone. */
#ifndef HF_CQL_CQL_H
#define HF_CQL_CQL_H

#include "base/env.h"
#include "base/error.h"
#include "cql/settings.h"
#include "cql/value.h"

enum hf__cql_consistency {
    HF__CQL_CONSISTENCY_ANY = 0,
    HF__CQL_CONSISTENCY_ONE = 1,
    HF__CQL_CONSISTENCY_TWO = 2,
    HF__CQL_CONSISTENCY_THREE = 3,
    HF__CQL_CONSISTENCY_QUORUM = 4,
    HF__CQL_CONSISTENCY_ALL = 5,
    HF__CQL_CONSISTENCY_LOCAL_QUORUM = 6,
    HF__CQL_CONSISTENCY_EACH_QUORUM = 7,
    HF__CQL_CONSISTENCY_SERIAL = 8, /* as the consistency of a READ: a linearizable read */
    HF__CQL_CONSISTENCY_LOCAL_SERIAL = 9,
    HF__CQL_CONSISTENCY_LOCAL_ONE = 10,
};

/* What the server says went wrong; the store_code of an error. */
enum hf__cql_code {
    HF__CQL_CODE_SERVER_ERROR = 0x0000,
    HF__CQL_CODE_PROTOCOL_ERROR = 0x000a,
    HF__CQL_CODE_AUTH_ERROR = 0x0100,
    HF__CQL_CODE_UNAVAILABLE = 0x1000,
    HF__CQL_CODE_OVERLOADED = 0x1001,
    HF__CQL_CODE_BOOTSTRAPPING = 0x1002,
    HF__CQL_CODE_TRUNCATE_ERROR = 0x1003,
    HF__CQL_CODE_WRITE_TIMEOUT = 0x1100,
    HF__CQL_CODE_READ_TIMEOUT = 0x1200,
    HF__CQL_CODE_READ_FAILURE = 0x1300,
    HF__CQL_CODE_FUNCTION_FAILURE = 0x1400,
    HF__CQL_CODE_WRITE_FAILURE = 0x1500,
    HF__CQL_CODE_CDC_WRITE_FAILURE = 0x1600,
    HF__CQL_CODE_CAS_WRITE_UNKNOWN = 0x1700,
    HF__CQL_CODE_SYNTAX_ERROR = 0x2000,
    HF__CQL_CODE_UNAUTHORIZED = 0x2100,
    HF__CQL_CODE_INVALID = 0x2200,
    HF__CQL_CODE_CONFIG_ERROR = 0x2300,
    HF__CQL_CODE_ALREADY_EXISTS = 0x2400,
    HF__CQL_CODE_UNPREPARED = 0x2500,
};

/* What a statement does decides what its failure means and whether it may be sent again. */
enum hf__cql_kind {
    HF__CQL_KIND_READ,   /* SELECT: prepared; asked again on another node when one fails */
    HF__CQL_KIND_WRITE,  /* a plain write: prepared */
    HF__CQL_KIND_SWAP,   /* INSERT, UPDATE or DELETE with IF: prepared; first column "[applied]" */
    HF__CQL_KIND_SCHEMA, /* CREATE, ALTER, DROP: no values, sent as text */
};

/* Must stay where it is, unchanged, while the client lives (but for SCHEMA): it is the key to what
 * was prepared. At most HF__CQL_STATEMENTS different ones. */
struct hf__cql_statement {
    enum hf__cql_kind kind;
    const char *text;
};
#define HF__CQL_STATEMENTS 48

struct hf__cql_request {
    const struct hf__cql_statement *statement;
    const struct hf__cql_value *values;
    size_t value_count;
    enum hf__cql_consistency consistency;
    enum hf__cql_consistency serial; /* of a SWAP: SERIAL or LOCAL_SERIAL; else not looked at */
    int32_t page_size;               /* of a READ: rows in an answer; 0: no paging */
    int node;                        /* 1 + the node to ask first if it is well (as a result names
                                        it: the retry of an unknown SWAP); 0: any */
    int64_t deadline_ns;             /* of the whole call */
};

/* An answer: its rows, one after the other. */
struct hf__cql_result {
    int node;           /* as request.node wants it; set on failure too, 0 if none was asked */
    uint32_t row_count; /* in this page */
    uint32_t column_count;
    bool has_more; /* there is another page */

    /* The client's own. */
    struct hf__cql_bytes paging_state;
    struct hf__cql_reader specs; /* of the columns; empty if the answer has none */
    bool specs_have_table;       /* each column says which table it is of */
    struct hf__cql_reader row, rest;
    uint32_t rows_left;
    unsigned char *body;
};

struct hf__cql;

/* Connects to nothing yet. `settings` are taken over (also on failure: cleared). */
int hf__cql_open(struct hf__cql_settings *settings, const struct hf_env *env,
                 struct hf__cql **ret_cql, hf_error *err);
void hf__cql_close(struct hf__cql *cql); /* NULL is fine; says no goodbye */

/* Sends it and waits for the answer, which is to be cleared when this gives 0 (and may be after a
 * failure). */
int hf__cql_execute(struct hf__cql *cql, const struct hf__cql_request *request,
                    struct hf__cql_result *ret_result, hf_error *err);

/* The same request again, for the page after that of `result`, which it replaces; on failure it is
 * cleared. Only if has_more. */
int hf__cql_next_page(struct hf__cql *cql, const struct hf__cql_request *request,
                      struct hf__cql_result *result, hf_error *err);

/* The next row of this page; false at its end. The columns are borrowed from the result. */
bool hf__cql_next_row(struct hf__cql_result *result);
struct hf__cql_bytes hf__cql_column(const struct hf__cql_result *result, size_t index);

/* The place of a column by its name, or -1. Answers to READs have no names: they have the order of
 * the SELECT. */
int hf__cql_column_of(const struct hf__cql_result *result, const char *name);

/* Of the answer to a SWAP, which has one row: whether it was applied. If not, the row that was in
 * its way follows "[applied]" in the same row (nothing if there is none). Moves to that row.
 * HF_UNKNOWN if the answer does not say. */
int hf__cql_applied(struct hf__cql_result *result, bool *ret_applied, hf_error *err);

void hf__cql_result_clear(struct hf__cql_result *result);

/* For `doctor`: how many contact points there are; their names ("host:port", borrowed). */
size_t hf__cql_node_count(const struct hf__cql *cql);
const char *hf__cql_node_name(const struct hf__cql *cql, size_t index);

#endif
