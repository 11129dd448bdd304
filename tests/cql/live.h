/* A client of a real server, as a fleet script announces it. */
#ifndef TESTS_CQL_LIVE_H
#define TESTS_CQL_LIVE_H

#include <stdlib.h>

#include "client.h"

#define LIVE_MS 20000 /* for one request: the server may share a slow machine */

/* cassandra://[account@]the server/?`options`; "%s" in it is the fleet's directory. The error of
 * what cannot be opened is in `err`. */
static inline int live_open(const char *account, const char *options, struct hf__cql **ret_cql,
                            hf_error *err)
{
    const char *server = getenv("HOLDFAST_TEST_CASSANDRA");
    const char *dir = getenv("HOLDFAST_TEST_CASSANDRA_DIR");
    const char *place = strstr(options, "%s");
    char url[800];

    if (server == NULL || dir == NULL)
        fail_msg("run it by tests/fleet/with-cassandra");
    int before = place != NULL ? (int)(place - options) : (int)strlen(options);
    snprintf(url, sizeof url, "cassandra://%s%s/?%.*s%s%s", account, server, before, options,
             place != NULL ? dir : "", place != NULL ? place + 2 : "");
    return client_open(url, ret_cql, err);
}

static inline struct hf__cql *live_must_open(const char *account, const char *options)
{
    struct hf__cql *cql = NULL;
    hf_error err = {0};

    if (live_open(account, options, &cql, &err) != 0)
        fail_msg("open: %s", err.text);
    return cql;
}

static inline struct hf__cql_request live_request(const struct hf__cql_statement *statement,
                                                  const struct hf__cql_value *values, size_t count)
{
    return client_request(statement, values, count, LIVE_MS);
}

static inline struct hf__cql_result live_run(struct hf__cql *cql, struct hf__cql_request request)
{
    struct hf__cql_result result;
    hf_error err = {0};

    if (hf__cql_execute(cql, &request, &result, &err) != 0)
        fail_msg("%.60s...: %s", request.statement->text, err.text);
    return result;
}

static inline void live_do(struct hf__cql *cql, const char *schema_text)
{
    const struct hf__cql_statement statement = {HF__CQL_KIND_SCHEMA, schema_text};
    struct hf__cql_result result = live_run(cql, live_request(&statement, NULL, 0));

    hf__cql_result_clear(&result);
}

#endif
