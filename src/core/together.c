/* Several locks at once (C19): one after the other in the order of their names, so that two sets can
 * never wait for each other, with one time limit for all. What was got is given back, the last first,
 * when one fails; a lock that was lost while the others were waited for counts as a failure. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "core/acquire.h"

#include "base/banned.h"

struct member {
    const char *name;
    size_t len;
    size_t place; /* in the caller's order */
};

static int by_name(const void *a, const void *b)
{
    const struct member *x = a, *y = b;

    return hf__bytes_order(x->name, x->len, y->name, y->len);
}

/* The names in the order in which they are to be taken. */
static int sort_names(const char *const *names, const size_t *lens, size_t count,
                      struct member *ret, hf_error *err)
{
    char shown[80];

    for (size_t i = 0; i < count; i++) {
        ret[i] = (struct member){.name = names[i], .place = i};
        int r = hf__name_len(names[i], lens != NULL ? lens[i] : HF_NTS, &ret[i].len, err);
        if (r < 0)
            return r;
    }
    qsort(ret, count, sizeof *ret, by_name);
    for (size_t i = 1; i < count; i++) {
        if (by_name(&ret[i - 1], &ret[i]) == 0)
            return hf__fail(err, HF_INVALID, "'%s' is named twice",
                            hf__printable(ret[i].name, ret[i].len, shown, sizeof shown));
    }
    return 0;
}

static int release_last_first(hf_lock **locks, size_t count, hf_error *err)
{
    int code = 0;

    while (count-- > 0) {
        hf_error why = {0};
        int r = hf_lock_release(locks[count], &why);
        if (r < 0 && code == 0) {
            code = r;
            if (err != NULL)
                *err = why;
        }
    }
    return code;
}

/* One that was lost meanwhile: the set is not whole. */
static int check_held(hf_lock **taken, size_t count, hf_error *err)
{
    char shown[80];
    size_t len;

    for (size_t i = 0; i < count; i++) {
        hf_cause cause = hf_lock_cause(taken[i]);
        const char *name = hf_lock_name(taken[i], &len);
        if (cause != HF_CAUSE_NONE)
            return hf__fail(err, HF_LOST, "'%s' was lost while others were waited for: %s",
                            hf__printable(name, len, shown, sizeof shown), hf_cause_text(cause));
    }
    return 0;
}

static int take_all(hf_client *client, const struct member *members, size_t count,
                    const hf_options *opt, hf_lock **taken, hf_error *err)
{
    hf_options each = *opt;
    int64_t until_ns =
        opt->wait_ms > 0 ? hf__moment_after(hf__now_ns(client->env), opt->wait_ms) : INT64_MAX;
    size_t got = 0;
    int r = 0;

    for (; r == 0 && got < count; got += r == 0) {
        if (opt->wait_ms > 0) {
            int64_t left_ms = (until_ns - hf__now_ns(client->env)) / HF__NS_PER_MS;
            each.wait_ms = left_ms > 0 ? left_ms : 0;
        }
        r = hf_acquire(client, members[got].name, members[got].len, &each, &taken[got], err);
        if (r == HF_BUSY && opt->wait_ms > 0) /* the time was up before it was asked for */
            r = hf__wrap(err, HF_TIMEOUT, "no time was left");
    }
    if (r == 0)
        r = check_held(taken, count, err);
    if (r < 0) {
        hf_error left;
        if (release_last_first(taken, got, &left) == HF_UNKNOWN) {
            if (err != NULL)
                *err = left;
            r = HF_UNKNOWN;
        }
    }
    return r;
}

int hf_acquire_all(hf_client *client, const char *const *names, const size_t *lens, size_t count,
                   const hf_options *opt, hf_lock **ret_locks, hf_error *err)
{
    hf_options known;

    if (client == NULL)
        return hf__fail(err, HF_INVALID, "there is no client");
    if (count == 0 || names == NULL || ret_locks == NULL)
        return hf__fail(err, HF_INVALID, "there are no names, or no place for the locks");
    if (count > HF_TOGETHER_MAX)
        return hf__fail(err, HF_INVALID, "at most %d locks can be taken together", HF_TOGETHER_MAX);
    struct member *members = calloc(count, sizeof *members);
    hf_lock **taken = calloc(count, sizeof(*taken));
    int r = members == NULL || taken == NULL ? hf__fail(err, HF_NO_MEMORY, NULL)
                                             : sort_names(names, lens, count, members, err);
    if (r == 0)
        r = hf__copy_options(opt, &known, err);
    known.size = sizeof known; /* whatever the caller's was: the rest is unset */
    if (r == 0)
        r = take_all(client, members, count, &known, taken, err);
    for (size_t i = 0; r == 0 && i < count; i++)
        ret_locks[members[i].place] = taken[i];
    free(members);
    free(taken);
    return r;
}

/* The order in which they were taken is that of their names, whatever the caller's. */
static int by_lock_name(const void *a, const void *b)
{
    size_t x_len, y_len;
    const char *x = hf_lock_name(*(hf_lock *const *)a, &x_len);
    const char *y = hf_lock_name(*(hf_lock *const *)b, &y_len);

    return hf__bytes_order(x, x_len, y, y_len);
}

int hf_release_all(hf_lock **locks, size_t count, hf_error *err)
{
    if (locks == NULL && count > 0)
        return hf__fail(err, HF_INVALID, "there are no locks");
    if (count > 1)
        qsort(locks, count, sizeof(*locks), by_lock_name);
    return release_last_first(locks, count, err);
}
