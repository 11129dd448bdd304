/* See servers.h. The parser of URLs has checked the form of hosts and ports already (url.c), so
 * that what is left here is taking them apart. */
#include "base_servers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base_bytes.h"
#include "base_secret.h"

#include "base_banned.h"

#define HOST_MAX 255

/* TLS ----------------------------------------------------------------------- */

int hf__tls_settings_read(const struct hf__url *url, enum hf__tls_mode preset,
                          struct hf__tls_settings *ret_tls, hf_error *err)
{
    static const struct hf__choice modes[] = {{"verify", HF__TLS_MODE_VERIFY},
                                              {"insecure", HF__TLS_MODE_INSECURE},
                                              {"off", HF__TLS_MODE_OFF},
                                              {0}};
    struct hf__tls_settings tls = {.ca_file = hf__url_text(url, "tls_ca"),
                                   .cert_file = hf__url_text(url, "tls_cert"),
                                   .key_file = hf__url_text(url, "tls_key")};
    bool files = tls.ca_file != NULL || tls.cert_file != NULL || tls.key_file != NULL;
    int mode = files && preset == HF__TLS_MODE_BY_HOST ? HF__TLS_MODE_VERIFY : preset;
    int r = hf__url_choose(url, "tls", modes, &mode, err);

    /* Who names certificates expects TLS: a plain connection must not come about unnoticed. */
    if (r == 0 && files && mode == HF__TLS_MODE_OFF)
        r = hf__fail(err, HF_INVALID, "tls=off has no use for certificates: write tls=verify");
    if (r != 0)
        return r;
    tls.mode = (enum hf__tls_mode)mode;
    *ret_tls = tls;
    return 0;
}

/* Servers ------------------------------------------------------------------- */

static int check_count(size_t count, const struct hf__servers_form *form, hf_error *err)
{
    if (count == 0 && form->example != NULL)
        return hf__fail(err, HF_INVALID, "name the servers as in %s", form->example);
    if (count > 1 && form->max == 1)
        return hf__fail(err, HF_INVALID, "name one server only");
    if (count > form->max)
        return hf__fail(err, HF_INVALID, "name at most %zu servers", form->max);
    return 0;
}

/* Escapes let any byte into a host. None that could end it in a protocol or in somebody's log. */
static int check_host(const char *host, bool socket, hf_error *err)
{
    char shown[100];

    if (strlen(host) <= HOST_MAX && strpbrk(host, socket ? "?#" : "/?#\\ ") == NULL)
        return 0;
    return hf__fail(err, HF_INVALID, "'%s' is no host: write host, host:port or [address]:port",
                    hf__printable(host, strlen(host), shown, sizeof shown));
}

/* "h", "h:1", "[::1]" or "[::1]:1" */
static int add_server(struct hf__servers *servers, const char *text, size_t len,
                      const struct hf__servers_form *form, hf_error *err)
{
    struct hf__server *server = &servers->list[servers->count++];
    bool bracket = text[0] == '[';
    const char *host = text + bracket, *end = text + len;
    size_t host_len = strcspn(host, bracket ? "]" : ":,");
    const char *port = host + host_len + bracket;
    bool has_port = port < end && port[0] == ':';

    server->host = strndup(host, host_len);
    server->port = has_port ? strndup(port + 1, (size_t)(end - port) - 1) : strdup(form->port);
    return server->host != NULL && server->port != NULL ? 0 : hf__fail(err, HF_NO_MEMORY, NULL);
}

int hf__servers_read(const struct hf__url *url, const struct hf__servers_form *form,
                     const struct hf__tls_settings *tls, struct hf__servers *servers, hf_error *err)
{
    const char *at = url->host[0] != '\0' || form->host == NULL ? url->host : form->host;
    size_t count = at[0] != '\0';

    for (const char *c = at; *c != '\0'; c++)
        count += *c == ',';
    int r = check_count(count, form, err);
    while (r == 0 && servers->count < count) {
        struct hf__server *server = &servers->list[servers->count];
        size_t len = strcspn(at, ",");
        r = add_server(servers, at, len, form, err);
        if (r != 0)
            break;
        bool socket = form->sockets && server->host[0] == '/';
        bool by_host = tls->mode == HF__TLS_MODE_BY_HOST;
        server->tls = socket || (by_host && hf__url_is_loopback(server->host)) ? HF__TLS_MODE_OFF
                      : by_host                                                ? HF__TLS_MODE_VERIFY
                                                                               : tls->mode;
        r = check_host(server->host, socket, err);
        at += len + 1;
    }
    return r;
}

void hf__servers_clear(struct hf__servers *servers)
{
    for (size_t i = 0; i < servers->count; i++) {
        free(servers->list[i].host);
        free(servers->list[i].port);
    }
    servers->count = 0;
}

bool hf__servers_use_tls(const struct hf__servers *servers)
{
    for (size_t i = 0; i < servers->count; i++) {
        if (servers->list[i].tls != HF__TLS_MODE_OFF)
            return true;
    }
    return false;
}

int hf__server_text(const struct hf__server *server, char *buf, size_t size)
{
    bool six = strchr(server->host, ':') != NULL;

    return snprintf(buf, size, "%s%s%s:%s", six ? "[" : "", server->host, six ? "]" : "",
                    server->port);
}

/* Account ------------------------------------------------------------------- */

/* A user that is there but empty, as in "://:password@", is none. */
static int read_account(const char *user, const struct hf__secret_source *source,
                        enum hf__account_rule rule, struct hf__account *account, hf_error *err)
{
    int r = hf__copy_text(user != NULL && user[0] != '\0' ? user : NULL, &account->user, err);

    if (r == 0)
        r = hf__secret_read(source, &account->password, err);
    if (r != 0 || rule == HF__ACCOUNT_ANY)
        return r;
    if (account->user != NULL && account->password == NULL)
        return hf__fail(err, HF_INVALID,
                        "a user needs a password, and there is no password: give %s or %s",
                        source->file_name, source->env_name);
    if (account->user == NULL && account->password != NULL && rule == HF__ACCOUNT_BOTH_OR_NONE)
        return hf__fail(err, HF_INVALID, "a password needs a user: write user@ before the hosts");
    return 0;
}

int hf__account_read(const struct hf__url *url, enum hf__account_rule rule,
                     struct hf__account *account, hf_error *err)
{
    struct hf__secret_source source = {.given = url->password,
                                       .file = hf__url_text(url, "password_file"),
                                       .env = hf__url_text(url, "password_env"),
                                       .file_name = "password_file",
                                       .env_name = "password_env"};

    return read_account(url->user, &source, rule, account, err);
}

int hf__account_read_options(const struct hf__url *url, const char *prefix,
                             enum hf__account_rule rule, struct hf__account *account, hf_error *err)
{
    char user[40], file[40], env[40];

    snprintf(user, sizeof user, "%suser", prefix);
    snprintf(file, sizeof file, "%spassword_file", prefix);
    snprintf(env, sizeof env, "%spassword_env", prefix);
    struct hf__secret_source source = {.file = hf__url_text(url, file),
                                       .env = hf__url_text(url, env),
                                       .file_name = file,
                                       .env_name = env};

    return read_account(hf__url_text(url, user), &source, rule, account, err);
}

void hf__account_clear(struct hf__account *account)
{
    free(account->user);
    hf__secret_free(account->password);
    *account = (struct hf__account){0};
}
