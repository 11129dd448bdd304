/* See url.h. */
#include "sql/url.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"

#include "base/banned.h"

#define SERVERS_MAX 16
#define SYSTEM_CA   "/etc/ssl/certs/ca-certificates.crt"

/* The hosts of the authority, or `socket`, or what is preset. */
static int read_hosts(const struct hf__url *url, const struct hf__sql_defaults *preset,
                      const struct hf__tls_settings *tls, struct hf__servers *servers,
                      hf_error *err)
{
    const struct hf__servers_form form = {
        .port = preset->port, .max = SERVERS_MAX, .sockets = true};
    const char *socket = hf__url_text(url, "socket");

    if (socket != NULL && socket[0] != '/')
        return hf__fail(err, HF_INVALID, "socket is a whole path, from the root on");
    if (socket != NULL && url->host[0] != '\0' && strcmp(url->host, "localhost") != 0)
        return hf__fail(err, HF_INVALID, "give either a host or a socket");
    if (socket == NULL && url->host[0] != '\0')
        return hf__servers_read(url, &form, tls, servers, err);

    struct hf__server *server = &servers->list[servers->count++];
    server->tls = HF__TLS_MODE_OFF;
    int r = hf__copy_text(socket != NULL ? socket : preset->preset_socket, &server->host, err);
    return r != 0 ? r : hf__copy_text(preset->socket_port, &server->port, err);
}

int hf__sql_read_servers(const struct hf__url *url, const struct hf__sql_defaults *preset,
                         struct hf__sql_settings *set, hf_error *err)
{
    static const struct hf__choice modes[] = {{"push", true}, {"poll", false}, {0}};
    const char *database = url->path + (url->path[0] == '/');
    struct hf__tls_settings tls;
    int push = true, r = hf__url_choose(url, "mode", modes, &push, err);

    set->push = push;
    set->max_held = hf__url_number(url, "max_held");
    if (r == 0)
        r = hf__tls_settings_read(url, HF__TLS_MODE_BY_HOST, &tls, err);
    if (r == 0)
        r = read_hosts(url, preset, &tls, &set->servers, err);
    if (r == 0)
        r = hf__copy_text(database[0] != '\0' ? database : NULL, &set->database, err);
    if (r != 0)
        return r;
    /* Client libraries look for authorities of their own only; most servers have a certificate of those that the system
     * trusts. */
    bool of_system = tls.ca_file == NULL && !preset->has_ca && access(SYSTEM_CA, R_OK) == 0;
    r = hf__copy_text(of_system ? SYSTEM_CA : tls.ca_file, &set->tls_ca, err);
    if (r == 0)
        r = hf__copy_text(tls.cert_file, &set->tls_cert, err);
    return r != 0 ? r : hf__copy_text(tls.key_file, &set->tls_key, err);
}

int hf__sql_read_account(const struct hf__url *url, struct hf__sql_settings *set, hf_error *err)
{
    set->limits = (struct hf__pool_limits){.max_active = hf__url_number(url, "max_active"),
                                           .max_idle = hf__url_number(url, "max_idle"),
                                           .idle_timeout_ms = hf__url_number(url, "idle_timeout")};
    set->poll_ms = hf__url_number(url, "poll");
    set->retain_ms = hf__url_number(url, "retain");
    set->history = hf__url_number(url, "history");
    return hf__account_read(url, HF__ACCOUNT_ANY, &set->account, err);
}

void hf__sql_settings_clear(struct hf__sql_settings *set)
{
    hf__servers_clear(&set->servers);
    hf__account_clear(&set->account);
    free(set->database);
    free(set->tls_ca);
    free(set->tls_cert);
    free(set->tls_key);
}
