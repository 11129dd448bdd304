/* From the URL to settings: etcd://user:password@h1:2379,h2,h3/prefix?options.
 *
 * The path is put before every name, with a '/' behind it. TLS is verified for every host but those
 * of loopback, where there is none unless the URL says so or names certificates. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/secret.h"
#include "base/utf8.h"
#include "stores/etcd/settings.h"

#include "base/banned.h"

#define HOST_MAX   300
#define PREFIX_MAX 512
#define PORT       "2379"

const struct hf__option hf__etcd_options[] = {
    {"tls", HF__OPTION_TEXT, NULL, 0, 0,
     "verify (the default, but for loopback), insecure (no check of the server) or off"},
    {"tls_ca", HF__OPTION_TEXT, NULL, 0, 0,
     "the authority that signed the servers' certificates (PEM)"},
    {"tls_cert", HF__OPTION_TEXT, NULL, 0, 0, "our own certificate (PEM)"},
    {"tls_key", HF__OPTION_TEXT, NULL, 0, 0, "its key, if it is not in the same file"},
    {"password_file", HF__OPTION_TEXT, NULL, 0, 0, "a file whose first line is the password"},
    {"password_env", HF__OPTION_TEXT, NULL, 0, 0, "the environment variable that has the password"},
    {0},
};

static int copy(const char *from, size_t len, char **to, hf_error *err)
{
    *to = strndup(from, len);
    return *to == NULL ? hf__fail(err, HF_NO_MEMORY, NULL) : 0;
}

/* "host", "host:port" or "[address]:port"; the URL parser has checked its form. */
static int add_endpoint(const char *text, bool plain, struct hf__etcd_settings *set, hf_error *err)
{
    char url[HOST_MAX + 20];

    if (text[0] == '\0' || strlen(text) > HOST_MAX || strpbrk(text, "/?#@\\ ") != NULL)
        return hf__fail(err, HF_INVALID, "name the servers as in etcd://h1:2379,h2:2379/prefix");
    if (set->endpoint_count == HF__ETCD_ENDPOINTS)
        return hf__fail(err, HF_INVALID, "at most %d servers", HF__ETCD_ENDPOINTS);

    struct hf__etcd_endpoint *to = &set->endpoints[set->endpoint_count++];
    bool bracket = text[0] == '[';
    const char *host = text + bracket;
    size_t host_len = strcspn(host, bracket ? "]" : ":");
    const char *colon = strchr(host + host_len, ':');
    const char *port = colon != NULL ? colon + 1 : PORT;

    snprintf(url, sizeof url, "%s://%s%s", plain ? "http" : "https", text,
             colon != NULL ? "" : ":" PORT);
    to->plain = plain;
    int r = copy(url, strlen(url), &to->url, err);
    if (r == 0)
        r = copy(host, host_len, &to->host, err);
    return r != 0 ? r : copy(port, strlen(port), &to->port, err);
}

/* Whoever names certificates wants TLS, on loopback too. */
static bool is_plain(const struct hf__url *url, const char *host)
{
    const char *tls = hf__url_text(url, "tls");
    bool files = hf__url_text(url, "tls_ca") != NULL || hf__url_text(url, "tls_cert") != NULL ||
                 hf__url_text(url, "tls_key") != NULL;

    return tls == NULL ? !files && hf__url_is_loopback(host) : strcmp(tls, "off") == 0;
}

static int read_hosts(const struct hf__url *url, struct hf__etcd_settings *set, hf_error *err)
{
    const char *tls = hf__url_text(url, "tls");
    char *hosts = strdup(url->host), *rest = hosts, *host;
    int r = hosts == NULL ? hf__fail(err, HF_NO_MEMORY, NULL) : 0;

    if (tls != NULL && strcmp(tls, "verify") != 0 && strcmp(tls, "insecure") != 0 &&
        strcmp(tls, "off") != 0)
        r = hf__fail(err, HF_INVALID, "tls is verify, insecure or off");
    while (r == 0 && (host = strsep(&rest, ",")) != NULL)
        r = add_endpoint(host, is_plain(url, host), set, err);
    free(hosts);
    return r;
}

static int check_file(const char *name, const char *path, hf_error *err)
{
    char shown[100];

    if (path == NULL || access(path, R_OK) == 0)
        return 0;
    return hf__fail_errno(err, HF_DENIED, "%s '%s' cannot be read", name,
                          hf__printable(path, strlen(path), shown, sizeof shown));
}

static int read_tls(const struct hf__url *url, struct hf__etcd_settings *set, hf_error *err)
{
    const char *tls = hf__url_text(url, "tls");
    struct hf__tls_options options = {.insecure = tls != NULL && strcmp(tls, "insecure") == 0,
                                      .ca_file = hf__url_text(url, "tls_ca"),
                                      .cert_file = hf__url_text(url, "tls_cert"),
                                      .key_file = hf__url_text(url, "tls_key"),
                                      .protocol = "h2"};
    bool plain = true;
    int r = check_file("tls_ca", options.ca_file, err);

    if (r == 0)
        r = check_file("tls_cert", options.cert_file, err);
    if (r == 0)
        r = check_file("tls_key", options.key_file, err);
    for (size_t i = 0; i < set->endpoint_count; i++)
        plain &= set->endpoints[i].plain;
    set->tls_insecure = options.insecure;
    set->has_certificate = options.cert_file != NULL;
    if (r == 0 && plain &&
        (options.ca_file != NULL || options.cert_file != NULL || options.key_file != NULL))
        r = hf__fail(err, HF_INVALID, "tls=off has no use for certificates");
    return r != 0 || plain ? r : hf__tls_new(&options, &set->tls, err);
}

static int read_user(const struct hf__url *url, struct hf__etcd_settings *set, hf_error *err)
{
    struct hf__secret_source source = {.given = url->password,
                                       .file = hf__url_text(url, "password_file"),
                                       .env = hf__url_text(url, "password_env")};
    int r = hf__secret_read(&source, &set->password, err);
    bool named = url->user != NULL && url->user[0] != '\0';
    if (r == 0 && named != (set->password != NULL))
        return hf__fail(err, HF_INVALID, "a user needs a password, and a password a user");
    if (r == 0 && named &&
        !(hf__is_text(url->user, strlen(url->user)) &&
          hf__is_text(set->password, strlen(set->password))))
        return hf__fail(err, HF_INVALID, "user and password must be UTF-8");
    return r == 0 && named ? copy(url->user, strlen(url->user), &set->user, err) : r;
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
    int r = read_hosts(url, set, err);

    if (r == 0)
        r = read_prefix(url, set, err);
    if (r == 0)
        r = read_user(url, set, err);
    if (r == 0)
        r = read_tls(url, set, err);
    return r;
}

void hf__etcd_settings_clear(struct hf__etcd_settings *set)
{
    for (size_t i = 0; i < set->endpoint_count; i++) {
        free(set->endpoints[i].url);
        free(set->endpoints[i].host);
        free(set->endpoints[i].port);
    }
    hf__tls_free(set->tls);
    free(set->prefix);
    free(set->user);
    if (set->password != NULL)
        explicit_bzero(set->password, strlen(set->password));
    free(set->password);
}
