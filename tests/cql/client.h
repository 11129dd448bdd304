/* Clients for tests: from a URL, with requests that are made in one line. */
#ifndef TESTS_CQL_CLIENT_H
#define TESTS_CQL_CLIENT_H

#include "cql/cql.h"
#include "lib/check.h"

static const struct hf__option client_options[] = {HF__CQL_OPTIONS, {0}};

/* What the URL says; to be cleared in any case. */
static inline int client_settings(const char *text, struct hf__cql_settings *ret_settings,
                                  hf_error *err)
{
    struct hf__url url;
    int code = hf__url_parse(text, &url, err);

    if (code != 0)
        return code;
    code = hf__url_check(&url, client_options, err);
    if (code == 0)
        code = hf__cql_settings_read(&url, ret_settings, err);
    hf__url_clear(&url);
    return code;
}

/* The error of what cannot be opened is in `err`. */
static inline int client_open(const char *text, struct hf__cql **ret_cql, hf_error *err)
{
    struct hf__cql_settings settings = {0};
    int code = client_settings(text, &settings, err);

    if (code == 0)
        return hf__cql_open(&settings, &hf__system_env, ret_cql, err);
    hf__cql_settings_clear(&settings);
    return code;
}

static inline int64_t in_ms(int64_t ms)
{
    return hf__moment_after(hf__now_ns(&hf__system_env), ms);
}

/* To be answered within so many ms. */
static inline struct hf__cql_request client_request(const struct hf__cql_statement *statement,
                                                    const struct hf__cql_value *values,
                                                    size_t count, int64_t ms)
{
    return (struct hf__cql_request){.statement = statement,
                                    .values = values,
                                    .value_count = count,
                                    .consistency = HF__CQL_CONSISTENCY_ONE,
                                    .serial = HF__CQL_CONSISTENCY_SERIAL,
                                    .deadline_ns = in_ms(ms)};
}

#endif
