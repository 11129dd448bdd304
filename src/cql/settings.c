/* From the URL to settings. TLS is verified for every host but those of loopback, where there is
 * none unless the URL says so. */
#include "cql/settings.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#include "base/banned.h"

#define PORT "9042"

static int copy(const char *from, size_t len, char **to, hf_error *err)
{
    *to = strndup(from, len);
    return *to != NULL ? 0 : hf__fail(err, HF_NO_MEMORY, NULL);
}

/* "host", "host:port" or "[address]:port"; the URL parser has checked its form. */
static int add_contact(const char *text, size_t len, struct hf__cql_settings *set, hf_error *err)
{
    if (set->contact_count == HF__CQL_NODES_MAX)
        return hf__fail(err, HF_INVALID, "at most %d nodes", HF__CQL_NODES_MAX);

    struct hf__cql_contact *to = &set->contacts[set->contact_count++];
    bool bracket = len > 0 && text[0] == '[';
    const char *host = text + bracket, *end = text + len;
    const char *stop = memchr(host, bracket ? ']' : ':', (size_t)(end - host));
    size_t host_len = (size_t)((stop != NULL ? stop : end) - host);
    const char *port = host + host_len + bracket;
    bool has_port = port < end && port[0] == ':';

    if (host_len == 0)
        return hf__fail(err, HF_INVALID, "name the nodes as in cassandra://h1,h2:9042/keyspace");
    int code = copy(host, host_len, &to->host, err);
    if (code == 0)
        code = has_port ? copy(port + 1, (size_t)(end - port - 1), &to->port, err)
                        : copy(PORT, sizeof PORT, &to->port, err);
    to->loopback = code == 0 && hf__url_is_loopback(to->host);
    return code;
}

static int read_contacts(const struct hf__url *url, struct hf__cql_settings *set, hf_error *err)
{
    const char *at = url->host;
    int code = 0;

    for (;;) {
        size_t len = strcspn(at, ",");
        code = add_contact(at, len, set, err);
        if (code != 0 || at[len] == '\0')
            return code;
        at += len + 1;
    }
}

static int read_account(const struct hf__url *url, struct hf__cql_settings *set, hf_error *err)
{
    bool named = url->user != NULL && url->user[0] != '\0';
    int code = hf__sql_read_password(url, &set->password, err);

    if (code == 0 && named != (set->password != NULL))
        return hf__fail(err, HF_INVALID, "a user needs a password, and a password a user");
    return code == 0 && named ? copy(url->user, strlen(url->user), &set->user, err) : code;
}

static bool all_loopback(const struct hf__cql_settings *set)
{
    for (size_t i = 0; i < set->contact_count; i++) {
        if (!set->contacts[i].loopback)
            return false;
    }
    return true;
}

static int read_tls(const struct hf__url *url, struct hf__cql_settings *set, hf_error *err)
{
    const char *tls = hf__url_text(url, "tls");
    struct hf__tls_options options = {.insecure = tls != NULL && strcmp(tls, "insecure") == 0,
                                      .ca_file = hf__url_text(url, "tls_ca"),
                                      .cert_file = hf__url_text(url, "tls_cert"),
                                      .key_file = hf__url_text(url, "tls_key")};
    bool files = options.ca_file != NULL || options.cert_file != NULL || options.key_file != NULL;
    bool off = tls != NULL ? strcmp(tls, "off") == 0 : !files && all_loopback(set);

    if (tls != NULL && !off && !options.insecure && strcmp(tls, "verify") != 0)
        return hf__fail(err, HF_INVALID, "tls is verify, insecure or off");
    if (off)
        return files ? hf__fail(err, HF_INVALID, "tls=off has no use for certificates") : 0;
    set->tls_everywhere = tls != NULL || files;
    return hf__tls_new(&options, &set->tls, err);
}

int hf__cql_settings_read(const struct hf__url *url, struct hf__cql_settings *set, hf_error *err)
{
    int code = read_contacts(url, set, err);

    set->protocol = (int)hf__url_number(url, "protocol");
    set->node_timeout_ms = hf__url_number(url, "node_timeout");
    if (code == 0 && set->protocol != 0 && set->protocol < 4)
        code = hf__fail(err, HF_INVALID, "protocol is 4, 5, or 0 to find out");
    if (code == 0)
        code = read_account(url, set, err);
    return code != 0 ? code : read_tls(url, set, err);
}

void hf__cql_settings_clear(struct hf__cql_settings *set)
{
    for (size_t i = 0; i < set->contact_count; i++) {
        free(set->contacts[i].host);
        free(set->contacts[i].port);
    }
    free(set->user);
    hf__sql_forget(set->password);
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
