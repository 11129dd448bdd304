/* A question and its answer, and what the server's errors mean.
 *
 * PQsendQueryParams with an unnamed statement: nothing stays in the session, so that a pooler may
 * give the next question to another server process. The rows come before the commit ("ready" comes
 * after it), so an answer counts only when everything was read; an error that follows the rows is
 * the truth.
 *
 * The search_path is set for the one transaction, in a pipeline, since a session behind a pooler is
 * shared with strangers, whom ours would surprise. */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "stores/postgres/postgres.h"

#include "base/banned.h"

enum { OID_BOOL = 16, OID_BYTEA = 17, OID_INT8 = 20, OID_TEXT = 25 };

/* Parameters --------------------------------------------------------------- */

static void add(struct hf__pg_query *q, Oid type, const char *value, size_t len, int format)
{
    q->types[q->count] = type;
    q->values[q->count] = value;
    q->lengths[q->count] = (int)len;
    q->formats[q->count++] = format;
}

void hf__pg_bytes(struct hf__pg_query *q, const void *bytes, size_t len)
{
    add(q, OID_BYTEA, bytes, len, 1);
}

void hf__pg_text(struct hf__pg_query *q, const char *text)
{
    add(q, OID_TEXT, text, 0, 0);
}

void hf__pg_number(struct hf__pg_query *q, int64_t number)
{
    snprintf(q->numbers[q->count], sizeof q->numbers[0], "%" PRId64, number);
    add(q, OID_INT8, q->numbers[q->count], 0, 0);
}

void hf__pg_number_or_null(struct hf__pg_query *q, int64_t number, int64_t null)
{
    if (number == null)
        add(q, OID_INT8, NULL, 0, 0);
    else
        hf__pg_number(q, number);
}

void hf__pg_flag(struct hf__pg_query *q, bool flag)
{
    add(q, OID_BOOL, flag ? "t" : "f", 0, 0);
}

void hf__pg_array(struct hf__pg_query *q, Oid type, const char *literal)
{
    add(q, type, literal, 0, 0);
}

static const char digits[] = "0123456789abcdef";

char *hf__pg_put_hex(char *at, const void *bytes, size_t len)
{
    const unsigned char *from = bytes;

    for (size_t i = 0; i < len; i++) {
        *at++ = digits[from[i] >> 4];
        *at++ = digits[from[i] & 15];
    }
    return at;
}

/* Errors ------------------------------------------------------------------- */

static const struct meaning {
    const char *state; /* or its class, two characters */
    int code;
    const char *advice;
} meanings[] = {
    {"40001", HF_UNAVAILABLE, "try again"},
    {"40P01", HF_UNAVAILABLE, "try again"},
    {"55P03", HF_UNAVAILABLE, "somebody keeps the lock's row locked; see pg_locks"},
    {"57014", HF_UNAVAILABLE, "the server's statement_timeout, or a DBA, ended it"},
    {HF__PG_TOO_LATE, HF_UNAVAILABLE, "the server is busy, or its clock was set forward"},
    {"25006", HF_UNAVAILABLE, "this server is a replica, or read-only; name the primary as well"},
    {"53300", HF_UNAVAILABLE, "the server has no connection left; lower max_active"},
    {"53100", HF_FULL, "the server's disk is full"},
    {"53200", HF_FULL, "the server is out of memory"},
    {"54000", HF_FULL, "a limit of the server was reached"},
    {"42501", HF_DENIED, "see the rights in `holdfast setup --print`"},
    {"42P01", HF_DENIED, "create the tables with `holdfast setup`"},
    {"42883", HF_DENIED, "create the functions with `holdfast setup`"},
    {"3D000", HF_DENIED, "name an existing database in the URL"},
    {"3F000", HF_DENIED, "create it with `holdfast setup`, or name another (schema=) in the URL"},
    {"22021", HF_INVALID, "the note is not text in the database's encoding"},
    {"22P05", HF_INVALID, "the note is not text in the database's encoding"},
    {"28", HF_DENIED, "check user and password (password_file, passfile, ~/.pgpass)"},
    {"42", HF_DENIED, "the tables or functions are of another version; run `holdfast setup`"},
    {"23", HF_CORRUPT, "a row contradicts another: rows were changed by hand"},
    {"XX", HF_CORRUPT, "the server found its data damaged; see its log"},
    {"08", HF_UNAVAILABLE, "the connection failed"},
    {"57", HF_UNAVAILABLE, "the server was stopped, or ended the connection"},
};

static const struct meaning *find_meaning(const char *state)
{
    for (size_t i = 0; state != NULL && i < sizeof meanings / sizeof meanings[0]; i++) {
        if (strncmp(state, meanings[i].state, strlen(meanings[i].state)) == 0)
            return &meanings[i];
    }
    return NULL;
}

/* Later lines are hints and the place in the statement. */
static const char *first_line(const char *text, char *buf, size_t size)
{
    return hf__sentence(text, strcspn(text, "\n"), buf, size);
}

static int fail_state(const char *state, const char *text, hf_error *err)
{
    const struct meaning *m = find_meaning(state);
    int code = m != NULL ? m->code : HF_UNAVAILABLE;
    char shown[200];

    first_line(text, shown, sizeof shown);
    hf__fail(err, code, "postgres: %s%s%s", shown, m != NULL ? "; " : "",
             m != NULL ? m->advice : "");
    if (state != NULL)
        hf__set_store_code(err, strtol(state, NULL, 36));
    return code;
}

bool hf__pg_state_is(const PGresult *result, const char *state)
{
    const char *is = PQresultErrorField(result, PG_DIAG_SQLSTATE);

    return is != NULL && strcmp(is, state) == 0;
}

int hf__pg_fail(const PGresult *result, hf_error *err)
{
    const char *text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);

    return fail_state(PQresultErrorField(result, PG_DIAG_SQLSTATE),
                      text != NULL ? text : PQresultErrorMessage(result), err);
}

/* "... FATAL:  28P01: password authentication failed": libpq has no other way to tell the state, and the first word is
 * in the server's language. */
int hf__pg_fail_connect(PGconn *pg, hf_error *err)
{
    const char *text = PQerrorMessage(pg);
    char state[6] = "";

    for (const char *at = text; state[0] == '\0' && (at = strstr(at, ":  ")) != NULL; at += 3) {
        if (strspn(at + 3, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == 5 && at[8] == ':' &&
            at[9] == ' ') {
            memcpy(state, at + 3, 5);
            text = at + 10;
        }
    }
    return fail_state(state[0] != '\0' ? state : NULL, text, err);
}

/* Asking ------------------------------------------------------------------- */

static int lost(struct hf__pg_conn *c, bool reads, bool late, hf_error *err)
{
    char shown[160];

    first_line(PQerrorMessage(c->pg), shown, sizeof shown);
    return hf__fail(err, reads ? HF_UNAVAILABLE : HF_UNKNOWN, "postgres: %s",
                    late ? "the server did not answer in time" : shown);
}

/* 1: everything is on its way. 0: not in time, or not at all: no "sync" has left, so nothing is
 * done. */
static int flush(struct hf__pg *s, struct hf__pg_conn *c, int64_t deadline_ns)
{
    int r;

    while ((r = PQflush(c->pg)) == 1) {
        if (!hf__pg_wait(s, c->pg, POLLIN | POLLOUT, deadline_ns) || !PQconsumeInput(c->pg))
            return 0;
    }
    return r == 0;
}

/* The next part of the answer; false if it does not come. */
static bool next_part(struct hf__pg *s, struct hf__pg_conn *c, int64_t deadline_ns,
                      PGresult **ret_part)
{
    while (PQisBusy(c->pg)) {
        if (!hf__pg_wait(s, c->pg, POLLIN, deadline_ns))
            return false;
        if (!PQconsumeInput(c->pg) && PQstatus(c->pg) != CONNECTION_OK)
            break; /* what came before the end may say why */
    }
    *ret_part = PQgetResult(c->pg);
    return true;
}

/* A server that ends the connection may have committed before it did. */
static int take_outcome(struct hf__pg_conn *c, PGresult *result, const struct hf__pg_query *q,
                        PGresult **ret_result, hf_error *err)
{
    ExecStatusType status = PQresultStatus(result);
    int r;

    if (result != NULL && (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK)) {
        *ret_result = result;
        return 0;
    }
    if (PQstatus(c->pg) != CONNECTION_OK || result == NULL)
        r = lost(c, q->reads, false, err);
    else
        r = hf__pg_fail(result, err);
    PQclear(result);
    return r;
}

/* The last part is the answer, unless one before it is an error. In a pipeline NULL only ends one statement, and
 * what follows an error was skipped. */
static int collect(struct hf__pg *s, struct hf__pg_conn *c, const struct hf__pg_query *q,
                   int64_t deadline_ns, PGresult **ret_result, hf_error *err)
{
    bool pipeline = PQpipelineStatus(c->pg) != PQ_PIPELINE_OFF, over = false;
    PGresult *part = NULL, *kept = NULL;

    while (!over) {
        if (!next_part(s, c, deadline_ns, &part)) {
            PQclear(kept);
            return lost(c, q->reads, true, err);
        }
        if (part == NULL) {
            over = !pipeline || PQstatus(c->pg) != CONNECTION_OK;
            continue;
        }
        over = PQresultStatus(part) == PGRES_PIPELINE_SYNC;
        if (over || (kept != NULL && PQresultStatus(kept) == PGRES_FATAL_ERROR)) {
            PQclear(part);
            continue;
        }
        PQclear(kept);
        kept = part;
    }
    if (pipeline)
        PQexitPipelineMode(c->pg);
    return take_outcome(c, kept, q, ret_result, err);
}

static bool put(struct hf__pg_conn *c, const struct hf__pg_query *q, const char *sql)
{
    bool guarded = !q->bare && PQtransactionStatus(c->pg) == PQTRANS_IDLE;

    if (!guarded && q->count == 0)
        return PQsendQuery(c->pg, sql);
    if (guarded && !(PQenterPipelineMode(c->pg) &&
                     PQsendQueryParams(c->pg, HF__PG_SAFE_PATH, 0, NULL, NULL, NULL, NULL, 0)))
        return false;
    return PQsendQueryParams(c->pg, sql, q->count, q->types, q->values, q->lengths, q->formats,
                             0) &&
           (!guarded || PQpipelineSync(c->pg));
}

int hf__pg_ask(struct hf__pg *s, struct hf__pg_conn *c, const struct hf__pg_query *q,
               int64_t deadline_ns, PGresult **ret_result, hf_error *err)
{
    const char *schema = s->set.schema;
    char *there = schema != NULL ? hf__pg_in_schema(schema, q->sql) : NULL;

    if (schema != NULL && there == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    bool sent = put(c, q, there != NULL ? there : q->sql);
    free(there);
    if (!sent)
        return lost(c, true, false, err);
    if (!flush(s, c, deadline_ns))
        return lost(c, true, PQstatus(c->pg) == CONNECTION_OK, err);
    return collect(s, c, q, deadline_ns, ret_result, err);
}

int hf__pg_run(struct hf__pg *s, struct hf__pg_conn *c, const char *sql, int64_t deadline_ns,
               hf_error *err)
{
    struct hf__pg_query q = {.sql = sql, .bare = true};
    PGresult *result = NULL;
    int r = hf__pg_ask(s, c, &q, deadline_ns, &result, err);

    PQclear(result);
    return r;
}

int64_t hf__pg_cell(const PGresult *result, int row, int column, int64_t null)
{
    if (PQgetisnull(result, row, column))
        return null;
    return strtoll(PQgetvalue(result, row, column), NULL, 10);
}

int hf__pg_cell_bytes(const PGresult *result, int row, int column, char *buf, size_t size)
{
    const char *hex = PQgetvalue(result, row, column);
    size_t len = strlen(hex) / 2;

    for (size_t i = 0; i < len && len <= size; i++) {
        const char *high = strchr(digits, hex[2 * i]), *low = strchr(digits, hex[2 * i + 1]);
        if (high == NULL || low == NULL)
            return -1;
        buf[i] = (char)((high - digits) << 4 | (low - digits));
    }
    return len <= size ? (int)len : -1;
}

bool hf__pg_cell_flag(const PGresult *result, int row, int column)
{
    return PQgetvalue(result, row, column)[0] == 't';
}
