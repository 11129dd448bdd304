/* Reading a password. */
#include "stores/password.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/banned.h"

#define PASSWORD_MAX 1024

static int copy(const char *from, char **ret_to, hf_error *err)
{
    *ret_to = strdup(from);
    return *ret_to != NULL ? 0 : hf__fail(err, HF_NO_MEMORY, NULL);
}

static int read_file(const struct hf__password_from *from, char **ret_password, hf_error *err)
{
    char line[PASSWORD_MAX] = "", shown[100];
    FILE *file = fopen(from->file, "re");
    bool there = file != NULL && fgets(line, sizeof line, file) != NULL;
    bool failed = file == NULL || ferror(file); /* a directory can be opened */
    int error = errno, r;

    if (file != NULL)
        fclose(file);
    line[strcspn(line, "\r\n")] = '\0';
    hf__printable(from->file, strlen(from->file), shown, sizeof shown);
    errno = error;
    if (failed)
        r = hf__fail_errno(err, HF_DENIED, "%s '%s' cannot be read", from->file_option, shown);
    else if (!there || line[0] == '\0')
        r = hf__fail(err, HF_INVALID, "%s '%s' has no first line", from->file_option, shown);
    else
        r = copy(line, ret_password, err);
    explicit_bzero(line, sizeof line);
    return r;
}

static int read_env(const struct hf__password_from *from, char **ret_password, hf_error *err)
{
    const char *value = secure_getenv(from->env);
    char shown[100];

    if (value != NULL)
        return copy(value, ret_password, err);
    return hf__fail(err, HF_INVALID, "%s: there is no environment variable '%s'", from->env_option,
                    hf__printable(from->env, strlen(from->env), shown, sizeof shown));
}

int hf__read_password(const struct hf__password_from *from, char **ret_password, hf_error *err)
{
    *ret_password = NULL;
    if ((from->given != NULL) + (from->file != NULL) + (from->env != NULL) > 1)
        return hf__fail(err, HF_INVALID, "the password is given twice: keep one of URL, %s, %s",
                        from->file_option, from->env_option);
    if (from->file != NULL)
        return read_file(from, ret_password, err);
    if (from->env != NULL)
        return read_env(from, ret_password, err);
    return from->given != NULL ? copy(from->given, ret_password, err) : 0;
}
