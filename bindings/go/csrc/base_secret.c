/* See secret.h. */
#include "base_secret.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base_bytes.h"
#include "base_error.h"
#include "base_handed_down.h"

#include "base_banned.h"

#define SECRET_MAX 1024

/* The rights that nobody but the owner may have. Root may let a group read: that is how a service
 * gets a file that it cannot change. What is no file (a pipe from a shell) is not kept anywhere. */
static bool is_open_to_others(FILE *file)
{
    struct stat st;

    if (fstat(fileno(file), &st) != 0)
        return true;
    mode_t forbidden = st.st_uid == 0 ? S_IWGRP | S_IXGRP | S_IRWXO : S_IRWXG | S_IRWXO;
    return S_ISREG(st.st_mode) && (st.st_mode & forbidden) != 0;
}

static int read_line(FILE *file, char *line, const char *option, const char *shown, hf_error *err)
{
    setvbuf(file, NULL, _IONBF, 0); /* no copy of it stays in a buffer */
    size_t len = fgets(line, SECRET_MAX, file) != NULL ? strcspn(line, "\r\n") : 0;
    if (ferror(file)) /* a directory can be opened */
        return hf__fail_errno(err, HF_DENIED, "%s '%s' cannot be read", option, shown);
    if (len == 0)
        return hf__fail(err, HF_INVALID, "%s '%s' has no first line", option, shown);
    if (len == SECRET_MAX - 1)
        return hf__fail(err, HF_INVALID, "the first line of %s '%s' is too long", option, shown);
    line[len] = '\0';
    return 0;
}

static int read_stream(FILE *file, const char *option, const char *shown, char **ret_secret,
                       hf_error *err)
{
    char line[SECRET_MAX] = "";
    int r = read_line(file, line, option, shown, err);

    if (r == 0)
        r = hf__copy_text(line, ret_secret, err);
    explicit_bzero(line, sizeof line);
    return r;
}

static int read_file(const char *path, const char *option, char **ret_secret, hf_error *err)
{
    char shown[100];
    FILE *file = fopen(path, "re");

    hf__printable(path, strlen(path), shown, sizeof shown);
    if (file == NULL)
        return hf__fail_errno(err, HF_DENIED, "%s '%s' cannot be read", option, shown);
    int r = is_open_to_others(file)
                ? hf__fail(err, HF_DENIED, "%s '%s' is open to others; run: chmod 600 %s", option,
                           shown, shown)
                : read_stream(file, option, shown, ret_secret, err);
    fclose(file);
    return r;
}

static int read_variable(const char *name, const char *option, char **ret_secret, hf_error *err)
{
    const char *value = secure_getenv(name);
    char shown[100];

    *ret_secret = value != NULL ? NULL : hf__handed_down(name);
    if (*ret_secret != NULL)
        return 0;
    if (value == NULL)
        return hf__fail(err, HF_INVALID,
                        "%s: there is no environment variable '%s'; 'holdfast run' takes it from "
                        "its command",
                        option, hf__printable(name, strlen(name), shown, sizeof shown));
    return hf__copy_text(value, ret_secret, err);
}

int hf__secret_read(const struct hf__secret_source *from, char **ret_secret, hf_error *err)
{
    const char *file_name = from->file_name != NULL ? from->file_name : "password_file";
    const char *env_name = from->env_name != NULL ? from->env_name : "password_env";

    if ((from->given != NULL) + (from->file != NULL) + (from->env != NULL) > 1)
        return hf__fail(err, HF_INVALID, "the password is given twice: keep one of URL, %s, %s",
                        file_name, env_name);
    if (from->stream != NULL)
        return read_stream(from->stream, file_name, "-", ret_secret, err);
    if (from->file != NULL)
        return read_file(from->file, file_name, ret_secret, err);
    if (from->env == NULL)
        return hf__copy_text(from->given, ret_secret, err);
    return read_variable(from->env, env_name, ret_secret, err);
}

void hf__secret_free(char *secret)
{
    if (secret != NULL)
        explicit_bzero(secret, strlen(secret));
    free(secret);
}
