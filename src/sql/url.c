/* See url.h. */
#include "sql/url.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/secret.h"

#include "base/banned.h"

#define SYSTEM_CA "/etc/ssl/certs/ca-certificates.crt"

int hf__sql_copy(const char *text, char **ret_copy, hf_error *err)
{
    *ret_copy = text != NULL ? strdup(text) : NULL;
    return text != NULL && *ret_copy == NULL ? hf__fail(err, HF_NO_MEMORY, NULL) : 0;
}

/* Servers ------------------------------------------------------------------ */

static enum hf__sql_tls tls_for(const char *host, int tls)
{
    if (host[0] == '/')
        return HF__TLS_OFF;
    if (tls != HF__TLS_BY_HOST)
        return (enum hf__sql_tls)tls;
    return hf__url_is_loopback(host) ? HF__TLS_OFF : HF__TLS_VERIFY;
}

/* "h", "h:1", "[::1]", "[::1]:1" */
static int add_host(struct hf__sql_hosts *hosts, const char *from, size_t len, const char *port,
                    hf_error *err)
{
    bool bracket = from[0] == '[';
    const char *end = from + len, *name = from + bracket;
    size_t name_len = strcspn(name, bracket ? "]" : ":,");
    const char *colon = memchr(name + name_len, ':', (size_t)(end - name) - name_len);
    struct hf__sql_host *host = &hosts->list[hosts->count];

    if (hosts->count == HF__SQL_HOSTS_MAX)
        return hf__fail(err, HF_INVALID, "at most %d servers", HF__SQL_HOSTS_MAX);
    hosts->count++;
    host->host = strndup(name, name_len);
    host->port = colon != NULL ? strndup(colon + 1, (size_t)(end - colon) - 1) : strdup(port);
    return host->host != NULL && host->port != NULL ? 0 : hf__fail(err, HF_NO_MEMORY, NULL);
}

static int read_authority(const char *at, const char *port, struct hf__sql_hosts *hosts,
                          hf_error *err)
{
    int r = 0;

    for (; r == 0 && *at != '\0'; at += *at == ',') {
        size_t len = strcspn(at, ",");
        r = add_host(hosts, at, len, port, err);
        at += len;
    }
    return r;
}

static int read_socket(const char *path, const char *port, struct hf__sql_hosts *hosts,
                       hf_error *err)
{
    hosts->count = 1;
    int r = hf__sql_copy(path, &hosts->list[0].host, err);
    return r != 0 ? r : hf__sql_copy(port, &hosts->list[0].port, err);
}

/* The hosts of the authority, or `socket`, or what is preset. */
static int read_hosts(const struct hf__url *url, const struct hf__sql_defaults *preset,
                      struct hf__sql_hosts *ret_hosts, hf_error *err)
{
    static const struct hf__choice tlss[] = {
        {"verify", HF__TLS_VERIFY}, {"insecure", HF__TLS_INSECURE}, {"off", HF__TLS_OFF}, {0}};
    const char *socket = hf__url_text(url, "socket"), *at = url->host;
    bool files = hf__url_text(url, "tls_ca") != NULL || hf__url_text(url, "tls_cert") != NULL ||
                 hf__url_text(url, "tls_key") != NULL;
    /* Whoever names certificates wants TLS, on loopback too. */
    int tls = files ? HF__TLS_VERIFY : HF__TLS_BY_HOST;
    int r = hf__url_choose(url, "tls", tlss, &tls, err);

    if (r != 0)
        return r;
    if (socket != NULL && socket[0] != '/')
        return hf__fail(err, HF_INVALID, "socket is a whole path, from the root on");
    if (socket != NULL && at[0] != '\0' && strcmp(at, "localhost") != 0)
        return hf__fail(err, HF_INVALID, "give either a host or a socket");
    r = at[0] == '\0' || socket != NULL
            ? read_socket(socket != NULL ? socket : preset->preset_socket, preset->socket_port,
                          ret_hosts, err)
            : read_authority(at, preset->port, ret_hosts, err);
    for (size_t i = 0; r == 0 && i < ret_hosts->count; i++)
        ret_hosts->list[i].tls = tls_for(ret_hosts->list[i].host, tls);
    return r;
}

static int read_tls(const struct hf__url *url, bool has_ca, struct hf__sql_settings *set,
                    hf_error *err)
{
    const char *ca = hf__url_text(url, "tls_ca");

    if (ca == NULL && !has_ca && access(SYSTEM_CA, R_OK) == 0)
        ca = SYSTEM_CA;
    int r = hf__sql_copy(ca, &set->tls_ca, err);
    if (r == 0)
        r = hf__sql_copy(hf__url_text(url, "tls_cert"), &set->tls_cert, err);
    return r != 0 ? r : hf__sql_copy(hf__url_text(url, "tls_key"), &set->tls_key, err);
}

int hf__sql_read_servers(const struct hf__url *url, const struct hf__sql_defaults *preset,
                         struct hf__sql_settings *set, hf_error *err)
{
    static const struct hf__choice modes[] = {{"push", 1}, {"poll", 0}, {0}};
    const char *database = url->path + (url->path[0] == '/');
    int push = 1, r = hf__url_choose(url, "mode", modes, &push, err);

    set->push = push;
    set->max_held = hf__url_number(url, "max_held");
    if (r == 0)
        r = read_hosts(url, preset, &set->hosts, err);
    if (r == 0)
        r = hf__sql_copy(database[0] != '\0' ? database : NULL, &set->database, err);
    return r != 0 ? r : read_tls(url, preset->has_ca, set, err);
}

/* The rest ----------------------------------------------------------------- */

int hf__sql_read_password(const struct hf__url *url, char **ret_password, hf_error *err)
{
    struct hf__secret_source source = {.given = url->password,
                                       .file = hf__url_text(url, "password_file"),
                                       .env = hf__url_text(url, "password_env")};

    return hf__secret_read(&source, ret_password, err);
}

int hf__sql_read_account(const struct hf__url *url, struct hf__sql_settings *set, hf_error *err)
{
    int r = hf__sql_copy(url->user, &set->user, err);

    set->routines = hf__url_switch(url, "routines");
    set->limits = (struct hf__pool_limits){.max_active = hf__url_number(url, "max_active"),
                                           .max_idle = hf__url_number(url, "max_idle"),
                                           .idle_timeout_ms = hf__url_number(url, "idle_timeout")};
    set->poll_ms = hf__url_number(url, "poll");
    set->retain_ms = hf__url_number(url, "retain");
    return r != 0 ? r : hf__sql_read_password(url, &set->password, err);
}

void hf__sql_settings_clear(struct hf__sql_settings *set)
{
    char *texts[] = {set->user, set->database, set->tls_ca, set->tls_cert, set->tls_key};

    hf__sql_forget(set->password);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        free(texts[i]);
    for (size_t i = 0; i < set->hosts.count; i++) {
        free(set->hosts.list[i].host);
        free(set->hosts.list[i].port);
    }
}

void hf__sql_forget(char *password)
{
    if (password != NULL)
        explicit_bzero(password, strlen(password));
    free(password);
}
