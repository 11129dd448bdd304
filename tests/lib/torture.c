/* See torture.h. The linker's --wrap sends our calls here. */
#include "lib/torture.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "holdfast.h"
#include "lib/check.h"

#define NTH_MAX 100000

static atomic_size_t seen, target;
static atomic_bool keep_failing, has_failed;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t size);
int __real_vasprintf(char **ret, const char *format, va_list args);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t size);
int __wrap_vasprintf(char **ret, const char *format, va_list args);
int __wrap_asprintf(char **ret, const char *format, ...);

void torture_start(size_t nth, bool forever)
{
    target = 0;
    seen = 0;
    has_failed = false;
    keep_failing = forever;
    target = nth;
}

void torture_stop(void)
{
    target = 0;
}

bool torture_failed(void)
{
    return has_failed;
}

size_t torture_count(void)
{
    return seen;
}

static bool must_fail(void)
{
    size_t wanted = target;

    if (wanted == 0)
        return false;
    size_t number = atomic_fetch_add(&seen, 1) + 1;
    if (keep_failing ? number < wanted : number != wanted)
        return false;
    has_failed = true;
    errno = ENOMEM;
    return true;
}

void *__wrap_malloc(size_t size)
{
    return must_fail() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return must_fail() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *block, size_t size)
{
    return must_fail() ? NULL : __real_realloc(block, size);
}

char *__wrap_strdup(const char *text)
{
    return must_fail() ? NULL : __real_strdup(text);
}

char *__wrap_strndup(const char *text, size_t size)
{
    return must_fail() ? NULL : __real_strndup(text, size);
}

int __wrap_vasprintf(char **ret, const char *format, va_list args)
{
    return must_fail() ? -1 : __real_vasprintf(ret, format, args);
}

int __wrap_asprintf(char **ret, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    int len = __wrap_vasprintf(ret, format, args);
    va_end(args);
    return len;
}

struct tally {
    size_t nth, runs, refused;
};

/* Gives whether an allocation failed in this run. */
static bool run_once(torture_scenario *scenario, void *arg, bool forever, struct tally *tally)
{
    torture_start(tally->nth, forever);
    int code = scenario(arg);
    torture_stop();
    if (code != HF_OK && ((code != HF_NO_MEMORY && code != HF_UNKNOWN) || !torture_failed()))
        fail_msg("with allocation %zu failing%s: %s", tally->nth,
                 forever ? " and all after it" : "", hf_code_name(code));
    tally->runs++;
    tally->refused += code != HF_OK;
    return torture_failed();
}

size_t torture_run(torture_scenario *scenario, void *arg, size_t step)
{
    struct tally tally = {.nth = 1};
    const char *given = getenv("HOLDFAST_TORTURE_STEP");
    bool more = true;

    if (given != NULL && atoi(given) > 0)
        step = (size_t)atoi(given);
    torture_stop();
    check_number("without a failure", scenario(arg), HF_OK);
    for (; more && tally.nth < NTH_MAX; tally.nth += step) {
        more = run_once(scenario, arg, false, &tally);
        more = run_once(scenario, arg, true, &tally) || more;
    }
    if (more || tally.refused == 0)
        fail_msg("%zu runs, %zu refused", tally.runs, tally.refused);
    print_message("%zu runs, %zu refused\n", tally.runs, tally.refused);
    return tally.runs;
}
