/* See access.h. */
#include "access.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/url.h"
#include "cli/cli.h"

#include "base/banned.h"

static const char *const role_names[] = {"", "read", "lock", "break"};

static enum role find_role(const char *name)
{
    for (enum role role = ROLE_READ; role <= ROLE_BREAK; role++) {
        if (strcmp(name, role_names[role]) == 0)
            return role;
    }
    return ROLE_NONE;
}

static int add_token(struct access *access, const char *path, int number, const char *role_name,
                     const char *text)
{
    enum role role = find_role(role_name);
    size_t len = text != NULL ? strlen(text) : 0;

    if (role == ROLE_NONE || len == 0)
        return cli_fail(EXIT_USAGE,
                        "%s line %d: expected 'read TOKEN', 'lock TOKEN' or 'break TOKEN'", path,
                        number);
    if (len < TOKEN_LEAST || len >= TOKEN_MAX)
        return cli_fail(EXIT_USAGE, "%s line %d: a token has %d to %d characters, this one has %zu",
                        path, number, TOKEN_LEAST, TOKEN_MAX - 1, len);
    if (access->token_count == ACCESS_MAX)
        return cli_fail(EXIT_USAGE, "%s has more than %d tokens", path, ACCESS_MAX);
    struct token *token = &access->tokens[access->token_count++];
    token->role = role;
    memcpy(token->text, text, len);
    return 0;
}

static int read_line(struct access *access, const char *path, int number, char *line)
{
    char *rest, *role = strtok_r(line, " \t\r\n", &rest);

    if (role == NULL || role[0] == '#')
        return 0;
    char *text = strtok_r(NULL, " \t\r\n", &rest);
    if (strtok_r(NULL, " \t\r\n", &rest) != NULL)
        return cli_fail(EXIT_USAGE, "%s line %d: expected a role and a token, and nothing else",
                        path, number);
    return add_token(access, path, number, role, text);
}

static int read_lines(struct access *access, const char *path, FILE *file)
{
    char *line = NULL;
    size_t size = 0;
    int status = 0;

    for (int number = 1; status == 0 && getline(&line, &size, file) >= 0; number++)
        status = read_line(access, path, number, line);
    if (status == 0 && ferror(file))
        status = cli_fail(EXIT_USAGE, "cannot read %s: %s", path, strerror(errno));
    if (line != NULL)
        explicit_bzero(line, size);
    free(line);
    if (status == 0 && access->token_count == 0)
        status = cli_fail(EXIT_USAGE, "%s has no token; write lines such as 'lock TOKEN'", path);
    return status;
}

int access_read_tokens(struct access *access, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) != 0) {
        int status = cli_fail(EXIT_USAGE, "cannot read %s: %s", path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return status;
    }
    FILE *file = fdopen(fd, "r");
    int status = 0;
    if (file == NULL)
        status = cli_fail(EXIT_MACHINE, "out of memory");
    else if (!S_ISREG(st.st_mode) || (st.st_mode & 077) != 0)
        status = cli_fail(EXIT_USAGE, "others can open %s, which holds tokens; run: chmod 600 %s",
                          path, path);
    else
        status = read_lines(access, path, file);
    if (file != NULL)
        fclose(file);
    else
        close(fd);
    access->has_tokens = true;
    return status;
}

/* Every byte of both, whatever they are. */
static unsigned differ(const char *a, const char *b)
{
    volatile unsigned found = 0;

    for (size_t i = 0; i < TOKEN_MAX; i++)
        found |= (unsigned)((unsigned char)a[i] ^ (unsigned char)b[i]);
    return found;
}

enum role access_role(const struct access *access, const char *authorization)
{
    static const char scheme[] = "Bearer ";
    char given[TOKEN_MAX] = "";
    enum role role = ROLE_NONE;

    if (!access->has_tokens)
        return ROLE_BREAK;
    if (authorization == NULL || strncasecmp(authorization, scheme, sizeof scheme - 1) != 0)
        return ROLE_NONE;
    size_t len = strlen(authorization + sizeof scheme - 1);
    if (len == 0 || len >= TOKEN_MAX)
        return ROLE_NONE;
    memcpy(given, authorization + sizeof scheme - 1, len);
    for (size_t i = 0; i < access->token_count; i++) {
        if (differ(access->tokens[i].text, given) == 0 && access->tokens[i].role > role)
            role = access->tokens[i].role;
    }
    explicit_bzero(given, sizeof given);
    return role;
}

/* The length of the host without its port; 0 if it is no host. */
static size_t host_length(const char *host)
{
    size_t len = host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");

    if (len > strlen(host) || (host[len] != '\0' && host[len] != ':'))
        return 0;
    if (host[len] == ':' && strspn(host + len + 1, "0123456789") != strlen(host + len + 1))
        return 0;
    return len;
}

bool access_is_our_host(const struct access *access, const char *host)
{
    static const char *const own[] = {"localhost", "127.0.0.1", "[::1]"};

    if (access->any_host)
        return true;
    size_t len = host != NULL ? host_length(host) : 0;
    for (size_t i = 0; len > 0 && i < sizeof own / sizeof own[0]; i++) {
        if (strlen(own[i]) == len && strncasecmp(own[i], host, len) == 0)
            return true;
    }
    for (size_t i = 0; len > 0 && i < access->host_count; i++) {
        if (strlen(access->hosts[i]) == len && strncasecmp(access->hosts[i], host, len) == 0)
            return true;
    }
    return false;
}

bool access_is_our_origin(const char *host, const char *origin, const char *fetch_site)
{
    if (fetch_site != NULL && strcmp(fetch_site, "same-origin") != 0 &&
        strcmp(fetch_site, "none") != 0)
        return false;
    if (origin == NULL)
        return true;
    const char *authority = strstr(origin, "://");
    return authority != NULL && host != NULL && strcasecmp(authority + 3, host) == 0;
}
