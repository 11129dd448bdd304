/* From the URL to settings: etcd://user:password@h1:2379,h2,h3/prefix?options.
 *
 * The path is put before every name, with a '/' behind it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "stores/etcd/settings.h"

#include "base/banned.h"

#define PREFIX_MAX 512

const struct hf__option hf__etcd_options[] = {
    HF__TLS_OPTIONS,
    HF__PASSWORD_OPTIONS,
    {0},
};

/* What messages call them. */
static int name_endpoints(struct hf__etcd_settings *set, hf_error *err)
{
    for (size_t i = 0; i < set->servers.count; i++) {
        const struct hf__server *server = &set->servers.list[i];
        struct hf__etcd_endpoint *to = &set->endpoints[i];
        char name[300];
        *to = (struct hf__etcd_endpoint){
            .host = server->host, .port = server->port, .plain = server->tls == HF__TLS_MODE_OFF};
        hf__server_text(server, name, sizeof name);
        if (asprintf(&to->url, "%s://%s", to->plain ? "http" : "https", name) < 0) {
            to->url = NULL;
            return hf__fail(err, HF_NO_MEMORY, NULL);
        }
        set->endpoint_count++;
    }
    return 0;
}

static int read_servers(const struct hf__url *url, struct hf__etcd_settings *set, hf_error *err)
{
    static const struct hf__servers_form form = {
        .port = "2379", .max = HF__ETCD_ENDPOINTS, .example = "etcd://h1:2379,h2:2379/prefix"};
    struct hf__tls_settings tls;
    int r = hf__tls_settings_read(url, HF__TLS_MODE_BY_HOST, &tls, err);

    if (r == 0)
        r = hf__servers_read(url, &form, &tls, &set->servers, err);
    if (r == 0)
        r = name_endpoints(set, err);
    if (r != 0)
        return r;
    set->tls_insecure = tls.mode == HF__TLS_MODE_INSECURE;
    set->has_certificate = tls.cert_file != NULL;
    return hf__servers_use_tls(&set->servers) ? hf__tls_new(&tls, "h2", &set->tls, err) : 0;
}

static int read_account(const struct hf__url *url, struct hf__etcd_settings *set, hf_error *err)
{
    int r = hf__account_read(url, HF__ACCOUNT_BOTH_OR_NONE, &set->account, err);

    /* They travel as protobuf strings, which a server refuses without a word about them. */
    if (r == 0 && set->account.user != NULL &&
        !(hf__is_text(set->account.user, strlen(set->account.user)) &&
          hf__is_text(set->account.password, strlen(set->account.password))))
        return hf__fail(err, HF_INVALID, "user and password must be UTF-8");
    return r;
}

static int read_prefix(const struct hf__url *url, struct hf__etcd_settings *set, hf_error *err)
{
    const char *path = url->path + (url->path[0] == '/');
    size_t len = strlen(path);
    bool slash = len > 0 && path[len - 1] != '/';

    if (len > PREFIX_MAX)
        return hf__fail(err, HF_INVALID, "the prefix has at most %d bytes", PREFIX_MAX);
    set->prefix = malloc(len + 2);
    if (set->prefix == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    snprintf(set->prefix, len + 2, "%s%s", path, slash ? "/" : "");
    return 0;
}

int hf__etcd_settings_read(const struct hf__url *url, struct hf__etcd_settings *set, hf_error *err)
{
    int r = read_prefix(url, set, err);

    if (r == 0)
        r = read_account(url, set, err);
    return r != 0 ? r : read_servers(url, set, err);
}

void hf__etcd_settings_clear(struct hf__etcd_settings *set)
{
    for (size_t i = 0; i < set->endpoint_count; i++)
        free(set->endpoints[i].url);
    hf__servers_clear(&set->servers);
    hf__account_clear(&set->account);
    hf__tls_free(set->tls);
    free(set->prefix);
}
