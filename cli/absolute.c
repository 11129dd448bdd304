/* URLs that mean the same in every directory.
 *
 * A command that runs under a lock may go elsewhere, and a holdfast inside of it must find the same
 * store with the same URL. Only the path of sqlite: and the values of some options can be relative;
 * the URL is otherwise left as it was written. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/percent.h"
#include "cli.h"

#include "base/banned.h"

/* "trace+sqlite:": what stands behind it is a path, if it does not begin with "//". */
static bool is_file_scheme(const char *url, const char *colon)
{
    const char *name = "sqlite";
    size_t len = strlen(name);

    if (colon < url + len || strncasecmp(colon - len, name, len) != 0)
        return false;
    return colon == url + len || colon[-(ptrdiff_t)len - 1] == '+';
}

/* Whether the value of this option is the name of a file. */
static bool names_a_file(const char *name, size_t len)
{
    static const char *const names[] = {"tls_ca", "tls_cert", "tls_key", "socket", "trace"};

    if (len >= 4 && memcmp(name + len - 4, "file", 4) == 0)
        return true;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strlen(names[i]) == len && memcmp(names[i], name, len) == 0)
            return true;
    }
    return false;
}

/* Neither empty, nor from the root, nor something else than a file ("fd:2", an abstract "@socket"). */
static bool is_relative(const char *path)
{
    return path[0] != '\0' && strchr("/?&@%", path[0]) == NULL && strncmp(path, "fd:", 3) != 0;
}

static void put_directory(FILE *out, const char *directory)
{
    char escaped[4];

    for (const char *c = directory; *c != '\0'; c++) {
        bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                     (*c >= '0' && *c <= '9') || strchr("/-._~", *c) != NULL;
        hf__percent_put(escaped, sizeof escaped, *c, plain);
        fwrite(escaped, 1, plain ? 1 : 3, out);
    }
    if (strcmp(directory, "/") != 0)
        putc('/', out);
}

/* The URL with the directory put before what is relative. Gives how often that was. */
static size_t write_absolute(FILE *out, const char *url, const char *directory)
{
    const char *colon = strchr(url, ':'), *at = colon != NULL ? colon + 1 : url;
    size_t count = 0;

    fwrite(url, 1, (size_t)(at - url), out);
    if (colon != NULL && is_file_scheme(url, colon) && is_relative(at)) {
        put_directory(out, directory);
        count++;
    }
    for (size_t len = strcspn(at, "?"); *at != '\0'; len = strcspn(at, "&")) {
        len += at[len] != '\0'; /* with the mark */
        fwrite(at, 1, len, out);
        at += len;
        size_t name_len = strcspn(at, "=&");
        if (at[name_len] == '=' && names_a_file(at, name_len) && is_relative(at + name_len + 1)) {
            fwrite(at, 1, name_len + 1, out);
            put_directory(out, directory);
            at += name_len + 1;
            count++;
        }
    }
    return count;
}

bool cli_make_absolute(char **url)
{
    char *directory = getcwd(NULL, 0), *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);

    if (out == NULL) {
        free(directory);
        return false;
    }
    size_t count = write_absolute(out, *url, directory != NULL ? directory : "");
    bool ok = fclose(out) == 0 && (count == 0 || directory != NULL);
    free(directory);
    if (!ok) {
        free(text);
        return false;
    }
    free(*url);
    *url = text;
    return true;
}
