/* What the URLs of all stores on Redis have in common. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/secret.h"
#include "stores/redis/link.h"

#include "base/banned.h"

static int copy(const char *from, char **to, hf_error *err)
{
    *to = from != NULL ? strdup(from) : NULL;
    return from != NULL && *to == NULL ? hf__fail(err, HF_NO_MEMORY, NULL) : 0;
}

int hf__redis_read_host(const char **at, const char *preset_port, char **ret_host, char **ret_port,
                        hf_error *err)
{
    const char *host = **at != '\0' ? *at : "localhost";
    bool bracket = host[0] == '[';
    const char *from = host + bracket;
    size_t len = strcspn(from, bracket ? "]" : ":,");
    const char *rest = from + len + bracket;
    size_t rest_len = strcspn(rest, ",");

    *ret_host = strndup(from, len);
    *ret_port = rest_len > 1 ? strndup(rest + 1, rest_len - 1) : strdup(preset_port);
    *at += **at != '\0' ? (size_t)(rest + rest_len - host) : 0;
    *at += **at == ',';
    return *ret_host != NULL && *ret_port != NULL ? 0 : hf__fail(err, HF_NO_MEMORY, NULL);
}

int hf__redis_read_db(const struct hf__url *url, const char *path, int64_t *ret_db, hf_error *err)
{
    int64_t option = hf__url_number(url, "db");

    path += path[0] == '/';
    *ret_db = option;
    if (path[0] == '\0')
        return 0;
    if (strspn(path, "0123456789") != strlen(path) || strlen(path) > 7)
        return hf__fail(err, HF_INVALID,
                        "the path of the URL is the number of a database, as in redis://host/0");
    *ret_db = strtoll(path, NULL, 10);
    if (option != 0 && option != *ret_db)
        return hf__fail(err, HF_INVALID,
                        "the path of the URL says %" PRId64 " and the option db says %" PRId64
                        ": name one database",
                        *ret_db, option);
    return 0;
}

int hf__redis_read_account(const struct hf__url *url, const struct hf__redis_account_options *names,
                           char **ret_user, char **ret_password, hf_error *err)
{
    struct hf__secret_source source = {.given = names->user == NULL ? url->password : NULL,
                                       .file = hf__url_text(url, names->password_file),
                                       .env = hf__url_text(url, names->password_env),
                                       .file_name = names->password_file,
                                       .env_name = names->password_env};
    const char *user = names->user == NULL ? url->user : hf__url_text(url, names->user);
    int r = hf__secret_read(&source, ret_password, err);

    if (r == 0 && user != NULL && user[0] != '\0')
        r = copy(user, ret_user, err);
    if (r == 0 && *ret_user != NULL && *ret_password == NULL)
        r = hf__fail(err, HF_INVALID, "the URL names a user but there is no password");
    return r;
}

/* rediss:// has it by its name; the schemes that name several servers by the option. */
static int read_tls(const struct hf__url *url, struct hf__redis_settings *set, hf_error *err)
{
    const char *scheme = url->scheme, *tls = hf__url_text(url, "tls");
    struct hf__tls_options options = {.insecure = tls != NULL && strcmp(tls, "insecure") == 0,
                                      .ca_file = hf__url_text(url, "tls_ca"),
                                      .cert_file = hf__url_text(url, "tls_cert"),
                                      .key_file = hf__url_text(url, "tls_key")};
    bool by_option = strcmp(scheme, "redlock") == 0 || strcmp(scheme, "redis+sentinel") == 0;
    bool off = tls == NULL || strcmp(tls, "off") == 0;
    bool files = options.ca_file != NULL || options.cert_file != NULL || options.key_file != NULL;

    if (!off && !options.insecure && strcmp(tls, "verify") != 0)
        return hf__fail(err, HF_INVALID, "tls is verify or insecure");
    if (strcmp(scheme, "rediss") == 0 && tls != NULL && off)
        return hf__fail(err, HF_INVALID,
                        "tls is verify or insecure; for a connection without TLS write redis://");
    if (strcmp(scheme, "rediss") == 0 || (by_option && !off)) {
        set->tls_insecure = options.insecure;
        return hf__tls_new(&options, &set->tls, err);
    }
    if (by_option && files)
        return hf__fail(err, HF_INVALID, "the tls_ options want tls=verify");
    if (files || !off)
        return hf__fail(err, HF_INVALID, "TLS options go with rediss://, not with %s://", scheme);
    return 0;
}

static int read_client_name(const char *name, struct hf__redis_settings *set, hf_error *err)
{
    for (const char *c = name; *c != '\0'; c++) {
        if (*c <= ' ' || *c > '~')
            return hf__fail(err, HF_INVALID, "client_name may not have blanks or special bytes");
    }
    return copy(name, &set->client_name, err);
}

int hf__redis_key_format(const char *format, struct hf__redis_settings *set, hf_error *err)
{
    const char *place = strstr(format, "%s");

    if (place == NULL || strchr(place + 1, '%') != NULL || strchr(format, '%') != place)
        return hf__fail(
            err, HF_INVALID,
            "key_format must contain %%s once, for the lock's name, and no other %%; in "
            "a URL write it as %%25s");
    if (strlen(format) > 256)
        return hf__fail(err, HF_INVALID, "key_format is longer than 256 bytes");
    set->key_before = strndup(format, (size_t)(place - format));
    set->key_after = strdup(place + 2);
    return set->key_before != NULL && set->key_after != NULL ? 0
                                                             : hf__fail(err, HF_NO_MEMORY, NULL);
}

int hf__redis_read_link(const struct hf__url *url, struct hf__redis_settings *set, hf_error *err)
{
    const char *force = hf__url_text(url, "force");
    struct hf__redis_account_options names = {.password_file = "password_file",
                                              .password_env = "password_env"};
    int r = hf__redis_read_account(url, &names, &set->user, &set->password, err);

    if (r == 0)
        r = read_tls(url, set, err);
    if (r == 0)
        r = read_client_name(hf__url_text(url, "client_name"), set, err);
    if (r == 0)
        r = hf__redis_key_format(hf__url_text(url, "key_format"), set, err);
    if (r == 0 && force != NULL && strcmp(force, "evicting") != 0)
        r = hf__fail(err, HF_INVALID, "force: the only thing to force is 'evicting'");
    set->allow_evicting = force != NULL;
    set->limits = (struct hf__pool_limits){.max_active = hf__url_number(url, "max_active"),
                                           .max_idle = hf__url_number(url, "max_idle"),
                                           .idle_timeout_ms = hf__url_number(url, "idle_timeout"),
                                           .fail_at_once = !hf__url_switch(url, "pool_wait")};
    return r;
}

void hf__redis_settings_clear(struct hf__redis_settings *set)
{
    char *texts[] = {set->host,        set->port,       set->path,     set->user,
                     set->client_name, set->key_before, set->key_after};

    hf__tls_free(set->tls);
    if (set->password != NULL)
        explicit_bzero(set->password, strlen(set->password));
    free(set->password);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        free(texts[i]);
}
