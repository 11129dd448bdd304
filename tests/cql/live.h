/* A client of a real server, as a fleet script announces it. */
#ifndef TESTS_CQL_LIVE_H
#define TESTS_CQL_LIVE_H

#include <stdlib.h>

#include "cql/cql.h"
#include "lib/check.h"

#define LIVE_MS 20000 /* for one request: the server may share a slow machine */

static const struct hf__option live_options[] = {HF__CQL_OPTIONS, {0}};

/* cassandra://[account@]the server/?`options`; "%s" in it is the fleet's directory. The error of
 * what cannot be opened is in `err`. */
static inline int live_open(const char *account, const char *options, struct hf__cql **ret_cql,
                            hf_error *err)
{
    const char *server = getenv("HOLDFAST_TEST_CASSANDRA");
    const char *dir = getenv("HOLDFAST_TEST_CASSANDRA_DIR");
    char more[400], text[800];
    struct hf__cql_settings settings = {0};
    struct hf__url url;

    if (server == NULL || dir == NULL)
        fail_msg("run it by tests/fleet/with-cassandra");
    const char *place = strstr(options, "%s");
    if (place != NULL)
        snprintf(more, sizeof more, "%.*s%s%s", (int)(place - options), options, dir, place + 2);
    else
        snprintf(more, sizeof more, "%s", options);
    snprintf(text, sizeof text, "cassandra://%s%s/?%s", account, server, more);
    int code = hf__url_parse(text, &url, err);
    if (code != 0)
        return code;
    code = hf__url_check(&url, live_options, err);
    if (code == 0)
        code = hf__cql_settings_read(&url, live_options, &settings, err);
    hf__url_clear(&url);
    if (code != 0) {
        hf__cql_settings_clear(&settings);
        return code;
    }
    return hf__cql_open(&settings, &hf__system_env, ret_cql, err);
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
    return (struct hf__cql_request){
        .statement = statement,
        .values = values,
        .value_count = count,
        .consistency = HF__CQL_ONE,
        .serial = HF__CQL_SERIAL,
        .deadline_ns = hf__moment_after(hf__now_ns(&hf__system_env), LIVE_MS),
    };
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
    const struct hf__cql_statement statement = {HF__CQL_SCHEMA, schema_text};
    struct hf__cql_result result = live_run(cql, live_request(&statement, NULL, 0));

    hf__cql_result_clear(&result);
}

#endif
