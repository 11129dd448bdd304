/* Where the URL comes from.
 *
 * -u wins, then HOLDFAST_URL, then the user's config file, then the machine's, then the embedded
 * default. A config file that is there but cannot be read, or is not safe, is an error and never
 * skipped: two programs that end up on different stores do not exclude each other. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/handed_down.h"
#include "cli.h"

#include "base/banned.h"

static bool has_password(const char *url)
{
    char shown[sizeof "..."];

    return hf__url_redact(url, shown, sizeof shown);
}

char *cli_take_url(char *argument)
{
    char *copy = strdup(argument);

    if (copy == NULL || !has_password(argument))
        return copy;
    cli_fail(0, "warning: a password on the command line can be seen by everybody with ps; put the "
                "URL into HOLDFAST_URL or a config file");
    memset(argument, 'x', strlen(argument));
    return copy;
}

static char *trim(char *text)
{
    text += strspn(text, " \t");
    size_t len = strlen(text);
    while (len > 0 && strchr(" \t\r\n", text[len - 1]) != NULL)
        text[--len] = '\0';
    return text;
}

/* One line: "url = ...", a comment or nothing. */
static int read_line(const char *path, int number, char *line, char **ret_url)
{
    char *key = trim(line), *value = strchr(key, '=');

    if (key[0] == '\0' || key[0] == '#')
        return 0;
    if (value == NULL)
        return cli_fail(EXIT_USAGE, "%s line %d: expected 'url = URL'", path, number);
    *value++ = '\0';
    key = trim(key);
    value = trim(value);
    if (strcmp(key, "url") != 0)
        return cli_fail(EXIT_USAGE, "%s line %d: there is no setting '%s', only 'url'", path,
                        number, key);
    if (value[0] == '\0' || *ret_url != NULL)
        return cli_fail(EXIT_USAGE, "%s line %d: expected one 'url = URL' with a value", path,
                        number);
    if (strpbrk(value, " \t") != NULL)
        return cli_fail(EXIT_USAGE,
                        "%s line %d: there is a blank in the URL; write it as %%20, and comments "
                        "on lines of their own",
                        path, number);
    *ret_url = strdup(value);
    return *ret_url != NULL ? 0 : cli_fail(EXIT_MACHINE, "out of memory");
}

static int read_lines(FILE *file, const char *path, char **ret_url)
{
    char *line = NULL;
    size_t size = 0;
    int status = 0;

    for (int number = 1; status == 0 && getline(&line, &size, file) >= 0; number++)
        status = read_line(path, number, line, ret_url);
    if (status == 0 && ferror(file))
        status = cli_fail(EXIT_USAGE, "cannot read %s: %s", path, strerror(errno));
    if (line != NULL)
        explicit_bzero(line, size);
    free(line);
    return status;
}

int cli_check_rights(int fd, const char *path, const char *url)
{
    struct stat st;

    if (fstat(fd, &st) != 0)
        return cli_fail(EXIT_USAGE, "cannot read %s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return cli_fail(EXIT_USAGE, "%s is not a regular file", path);
    if (st.st_uid != 0 && st.st_uid != geteuid())
        return cli_fail(EXIT_USAGE, "%s belongs to another user; it must be yours or root's", path);
    if (st.st_mode & S_IWOTH)
        return cli_fail(EXIT_USAGE, "everybody can write %s; run: chmod o-w %s", path, path);
    if (url != NULL && (st.st_mode & 077) != 0 && has_password(url))
        return cli_fail(EXIT_USAGE, "%s holds a password and others can open it; run: chmod 600 %s",
                        path, path);
    return 0;
}

/* A link that leads nowhere: somebody meant a file to be there. */
static bool is_link(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
}

/* 0 with *ret_url still NULL: there is no such file, or it names no URL. */
static int read_config(const char *path, char **ret_url)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    if (fd < 0) {
        int error = errno;
        if ((error == ENOENT || error == ENOTDIR) && !is_link(path))
            return 0;
        return cli_fail(EXIT_USAGE,
                        "%s is there but cannot be used: %s; mend it, or give the URL with -u",
                        path, strerror(error));
    }
    int status = cli_check_rights(fd, path, NULL);
    FILE *file = status == 0 ? fdopen(fd, "r") : NULL;
    if (file == NULL) {
        close(fd);
        return status != 0 ? status : cli_fail(EXIT_MACHINE, "out of memory");
    }
    status = read_lines(file, path, ret_url);
    if (status == 0)
        status = cli_check_rights(fd, path, *ret_url);
    fclose(file);
    return status;
}

static int read_user_config(char **ret_url)
{
    const char *base = secure_getenv("XDG_CONFIG_HOME"), *below = "/holdfast/config";
    char *path;

    if (base == NULL || base[0] != '/') { /* the specification ignores relative ones */
        base = secure_getenv("HOME");
        below = "/.config/holdfast/config";
    }
    if (base == NULL || base[0] != '/')
        return 0;
    if (asprintf(&path, "%s%s", base, below) < 0)
        return cli_fail(EXIT_MACHINE, "out of memory");
    int status = read_config(path, ret_url);
    free(path);
    return status;
}

int cli_find_url(char **ret_url)
{
    hf_error err = {0};
    char *url = NULL;
    int status = 0;

    if (hf__environment_url(&url, &err) != HF_OK)
        return cli_fail_error(&err);
    if (url == NULL)
        status = read_user_config(&url);
    if (status == 0 && url == NULL)
        status = read_config("/etc/holdfast/config", &url);
    if (status != 0) {
        free(url);
        return status;
    }
    *ret_url = url;
    return 0;
}
