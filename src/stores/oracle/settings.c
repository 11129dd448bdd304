/* What a URL says: oracle://user@/schema?dsn=NAME, or ...?connect=<driver string>.
 *
 * Passwords come from `password_file` or `password_env`; one in the URL works but is seen by
 * everybody who sees the command line. A driver string must not carry one: it is not known to every
 * place that hides passwords. */
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base/bytes.h"
#include "sql/url.h"
#include "stores/oracle/oracle.h"

#include "base/banned.h"

const struct hf__option hf__ora_options[] = {
    {"dsn", HF__OPTION_TEXT, NULL, 0, 0, "the data source, a section of odbc.ini"},
    {"connect", HF__OPTION_TEXT, NULL, 0, 0,
     "a driver string instead of a dsn: DRIVER={...};DBQ=//host:1521/service"},
    {"hold", HF__OPTION_TEXT, "lease", 0, 0, "lease; there is nothing else on Oracle"},
    {"dialect", HF__OPTION_TEXT, NULL, 0, 0, "oracle or mariadb; as the driver says by default"},
    HF__PASSWORD_OPTIONS,
    {"poll", HF__OPTION_DURATION, "50ms", 1, 60000,
     "how often the first of the queue asks, give or take 25 %"},
    HF__SQL_POOL_OPTIONS,
    {0},
};

/* Whether a driver string has a value for this key. */
static bool has_key(const char *connect, const char *key)
{
    size_t len = strlen(key);

    for (const char *at = connect; at != NULL; at = strchr(at, ';')) {
        at += strspn(at, "; ");
        if (strncasecmp(at, key, len) == 0 && at[len + strspn(at + len, " ")] == '=')
            return true;
    }
    return false;
}

/* Appends ;KEY=value, in braces if it has to be. */
static void add_key(char *to, size_t size, const char *key, const char *value)
{
    bool plain = value[strcspn(value, "[]{}(),;?*=!@\\ ")] == '\0';
    size_t len = strlen(to);

    len += (size_t)snprintf(to + len, size - len, ";%s=%s", key, plain ? "" : "{");
    for (; *value != '\0' && len + 3 < size; value++) {
        to[len++] = *value;
        if (*value == '}')
            to[len++] = '}';
    }
    snprintf(to + len, size - len, "%s", plain ? "" : "}");
}

static int read_connect(const char *connect, struct hf__ora *s, hf_error *err)
{
    const char *user = s->sql.set.account.user != NULL ? s->sql.set.account.user : "";
    const char *password = s->sql.set.account.password != NULL ? s->sql.set.account.password : "";
    size_t size = strlen(connect) + 2 * (strlen(user) + strlen(password)) + 20;

    if (has_key(connect, "PWD") || has_key(connect, "PASSWORD"))
        return hf__fail(err, HF_INVALID,
                        "connect must not hold a password: use password_file or password_env");
    s->set.connect = malloc(size);
    if (s->set.connect == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    snprintf(s->set.connect, size, "%s", connect);
    if (s->sql.set.account.user != NULL)
        add_key(s->set.connect, size, "UID", user);
    if (s->sql.set.account.password != NULL)
        add_key(s->set.connect, size, "PWD", password);
    return 0;
}

static int read_source(const struct hf__url *url, struct hf__ora *s, hf_error *err)
{
    const char *dsn = hf__url_text(url, "dsn"), *connect = hf__url_text(url, "connect");

    if (url->host[0] != '\0')
        return hf__fail(err, HF_INVALID,
                        "a host does not belong here: oracle://user@/?dsn=NAME, or connect=...");
    if ((dsn != NULL) + (connect != NULL) != 1)
        return hf__fail(err, HF_INVALID, "name either a dsn or a driver string (connect)");
    return dsn != NULL ? hf__copy_text(dsn, &s->set.dsn, err) : read_connect(connect, s, err);
}

/* It stands in a statement, so it must be a plain name. */
static int read_schema(const struct hf__url *url, struct hf__ora_settings *set, hf_error *err)
{
    const char *name = url->path + (url->path[0] == '/');

    if (name[0] == '\0')
        return 0;
    if (name[strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_$#")] !=
            '\0' ||
        strlen(name) > 128)
        return hf__fail(err, HF_INVALID, "the schema in the path is not a plain name");
    return hf__copy_text(name, &set->schema, err);
}

int hf__ora_read_url(struct hf__ora *s, const struct hf__url *url, hf_error *err)
{
    const char *dialect = hf__url_text(url, "dialect");
    int r = hf__sql_read_account(url, &s->sql.set, err);

    if (r == 0)
        r = read_source(url, s, err);
    if (r == 0)
        r = read_schema(url, &s->set, err);
    if (r != 0)
        return r;
    if (dialect != NULL && (s->set.dialect = hf__ora_dialect_named(dialect)) == NULL)
        return hf__fail(err, HF_INVALID, "dialect is one of oracle, mariadb");
    /* There is no FOR SHARE on Oracle, its server does not look whether somebody who waits for a row is still there, and
     * ODBC does not say that a connection was lost until it is used. */
    if (strcmp(hf__url_text(url, "hold"), "lease") != 0)
        return hf__fail(err, HF_UNSUPPORTED, "hold=session and the like are not there on Oracle");
    return 0;
}
