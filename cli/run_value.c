/* The value of `run`: what the command sees of it, and what it leaves. See run.c. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "run_inside.h"

#include "base/banned.h"

static int fail_value(struct run *r, int code, const hf_error *err)
{
    if (code == HF_LOST) {
        r->status.lost = true;
        r->status.cause = hf_lock_cause(r->lock);
    }
    return cli_fail_error(err);
}

static int fail_file(const struct run *r)
{
    return cli_fail(EXIT_MACHINE, "--value-file '%s': %s", r->set->value_file, strerror(errno));
}

static int write_file(struct run *r)
{
    int fd = open(r->set->value_file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0600);

    if (fd < 0)
        return fail_file(r);
    ssize_t written = write(fd, r->value, r->value_len);
    int status = written == (ssize_t)r->value_len ? 0 : fail_file(r);
    close(fd);
    return status;
}

static int set_value(struct run *r)
{
    hf_error err = {0};
    int code = hf_lock_set_value(r->lock, r->value, r->value_len, &err);

    return code == HF_OK ? 0 : fail_value(r, code, &err);
}

int run_open_value(struct run *r)
{
    const struct run_settings *set = r->set;
    hf_error err = {0};

    if (set->value == NULL && set->value_file == NULL)
        return 0;
    int code = hf_lock_value(r->lock, r->value, HF_VALUE_MAX, &r->value_len, &r->doubt, &err);
    if (code != HF_OK)
        return fail_value(r, code, &err);
    if (set->value == NULL)
        return write_file(r);
    r->value_len = strlen(set->value);
    memcpy(r->value, set->value, r->value_len + 1);
    return set_value(r);
}

/* One byte more than there may be tells that it is too long. */
static int read_file(struct run *r)
{
    int fd = open(r->set->value_file, O_RDONLY | O_CLOEXEC | O_NOCTTY);

    if (fd < 0)
        return fail_file(r);
    ssize_t len = read(fd, r->value, sizeof r->value);
    int status = len >= 0 ? 0 : fail_file(r);
    close(fd);
    if (len > HF_VALUE_MAX)
        status = cli_fail(hf_code_exit_status(HF_INVALID),
                          "--value-file '%s' has more than %d bytes: the value stays as it was",
                          r->set->value_file, HF_VALUE_MAX);
    r->value_len = len > 0 ? (size_t)len : 0;
    return status;
}

int run_keep_value(struct run *r)
{
    if (r->set->value_file == NULL || !run_ended_well(r) || r->leash.cause != HF_CAUSE_NONE)
        return 0;
    int status = read_file(r);
    return status == 0 ? set_value(r) : status;
}
