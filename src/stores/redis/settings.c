/* What the URLs of all stores on Redis have in common. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "stores/redis/link.h"

#include "base/banned.h"

int hf__redis_read_db(const struct hf__url *url, int64_t *ret_db, hf_error *err)
{
    const char *path = url->path + (url->path[0] == '/');
    int64_t option = hf__url_number(url, "db");

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

/* rediss:// has TLS by its name, redis:// and redis+unix:// never have it, and the schemes that name
 * several servers have it by the option. */
static int read_tls(const struct hf__url *url, struct hf__tls_settings *ret_tls, hf_error *err)
{
    const char *scheme = url->scheme;
    bool always = strcmp(scheme, "rediss") == 0;
    bool asked = strcmp(scheme, "redlock") == 0 || strcmp(scheme, "redis+sentinel") == 0;
    int r = hf__tls_settings_read(url,
                                  always  ? HF__TLS_MODE_VERIFY
                                  : asked ? HF__TLS_MODE_OFF
                                          : HF__TLS_MODE_BY_HOST,
                                  ret_tls, err);

    if (r != 0)
        return r;
    if (always && ret_tls->mode == HF__TLS_MODE_OFF)
        return hf__fail(err, HF_INVALID,
                        "tls is verify or insecure; for a connection without TLS write redis://");
    if (always || asked)
        return 0;
    if (ret_tls->mode != HF__TLS_MODE_BY_HOST && ret_tls->mode != HF__TLS_MODE_OFF)
        return hf__fail(err, HF_INVALID, "TLS options go with rediss://, not with %s://", scheme);
    ret_tls->mode = HF__TLS_MODE_OFF;
    return 0;
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

int hf__redis_read_link(const struct hf__url *url, const struct hf__servers_form *form,
                        struct hf__redis_settings *set, hf_error *err)
{
    const char *force = hf__url_text(url, "force"), *client_name = hf__url_text(url, "client_name");
    struct hf__tls_settings tls;
    int r = hf__account_read(url, HF__ACCOUNT_USER_NEEDS_PASSWORD, &set->account, err);

    if (r == 0)
        r = read_tls(url, &tls, err);
    if (r == 0 && form != NULL)
        r = hf__servers_read(url, form, &tls, &set->servers, err);
    if (r == 0 && tls.mode != HF__TLS_MODE_OFF) {
        set->tls_insecure = tls.mode == HF__TLS_MODE_INSECURE;
        r = hf__tls_new(&tls, NULL, &set->tls, err);
    }
    for (const char *at = client_name; r == 0 && *at != '\0';
         at++) { /* as CLIENT SETNAME wants it */
        if (*at <= ' ' || *at > '~')
            r = hf__fail(err, HF_INVALID, "client_name may not have blanks or special bytes");
    }
    if (r == 0)
        r = hf__copy_text(client_name, &set->client_name, err);
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
    char *texts[] = {set->path, set->client_name, set->key_before, set->key_after};

    hf__servers_clear(&set->servers);
    hf__account_clear(&set->account);
    hf__tls_free(set->tls);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        free(texts[i]);
}
