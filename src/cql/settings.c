/* See settings.h. */
#include "cql/settings.h"

#include <ctype.h>
#include <string.h>

#include "base/banned.h"

int hf__cql_settings_read(const struct hf__url *url, struct hf__cql_settings *set, hf_error *err)
{
    static const struct hf__servers_form form = {
        .port = "9042", .max = HF__CQL_NODES_MAX, .example = "cassandra://h1,h2:9042/keyspace"};
    struct hf__tls_settings tls;
    int code = hf__tls_settings_read(url, HF__TLS_MODE_BY_HOST, &tls, err);

    if (code == 0)
        code = hf__servers_read(url, &form, &tls, &set->contacts, err);
    set->protocol = (int)hf__url_number(url, "protocol");
    set->node_timeout_ms = hf__url_number(url, "node_timeout");
    if (code == 0 && set->protocol != 0 && set->protocol < 4)
        code = hf__fail(err, HF_INVALID, "protocol is 4, 5, or 0 to find out");
    if (code == 0)
        code = hf__account_read(url, HF__ACCOUNT_BOTH_OR_NONE, &set->account, err);
    if (code == 0 && hf__servers_use_tls(&set->contacts))
        code = hf__tls_new(&tls, NULL, &set->tls, err);
    return code;
}

void hf__cql_settings_clear(struct hf__cql_settings *set)
{
    hf__servers_clear(&set->contacts);
    hf__account_clear(&set->account);
    hf__tls_free(set->tls);
    *set = (struct hf__cql_settings){0};
}

bool hf__cql_is_name(const char *name)
{
    size_t len = strlen(name);

    for (size_t i = 0; i < len; i++) {
        if (!isascii(name[i]) || (!isalnum((unsigned char)name[i]) && name[i] != '_'))
            return false;
    }
    return len > 0 && len <= HF__CQL_KEYSPACE_MAX && isalpha((unsigned char)name[0]);
}
