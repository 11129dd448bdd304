/* See torture.h. The linker's --wrap sends our calls here. */
#include "lib/torture.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/timerfd.h>

#include "holdfast.h"
#include "lib/check.h"

#define NTH_MAX 100000

static enum torture_aim aimed_at = TORTURE_MEMORY;
static atomic_size_t seen, target;
static atomic_bool keep_failing, has_failed;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t size);
int __real_vasprintf(char **ret, const char *format, va_list args);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
                          void *arg);
int __real_eventfd(unsigned count, int flags);
int __real_epoll_create1(int flags);
int __real_epoll_ctl(int epoll, int op, int fd, struct epoll_event *event);
int __real_timerfd_create(int clock, int flags);
ssize_t __real_getrandom(void *buf, size_t size, unsigned flags);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t size);
int __wrap_vasprintf(char **ret, const char *format, va_list args);
int __wrap_asprintf(char **ret, const char *format, ...);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
                          void *arg);
int __wrap_eventfd(unsigned count, int flags);
int __wrap_epoll_create1(int flags);
int __wrap_epoll_ctl(int epoll, int op, int fd, struct epoll_event *event);
int __wrap_timerfd_create(int clock, int flags);
ssize_t __wrap_getrandom(void *buf, size_t size, unsigned flags);

void torture_at(enum torture_aim aim)
{
    aimed_at = aim;
}

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

static bool hits(enum torture_aim aim)
{
    size_t wanted = target;

    if (wanted == 0 || aimed_at != aim)
        return false;
    size_t number = atomic_fetch_add(&seen, 1) + 1;
    if (keep_failing ? number < wanted : number != wanted)
        return false;
    has_failed = true;
    errno = aim == TORTURE_MEMORY ? ENOMEM : EMFILE;
    return true;
}

static bool must_fail(void)
{
    return hits(TORTURE_MEMORY);
}

static bool call_must_fail(void)
{
    return hits(TORTURE_SYSTEM);
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

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
                          void *arg)
{
    return call_must_fail() ? EAGAIN : __real_pthread_create(thread, attr, run, arg);
}

int __wrap_eventfd(unsigned count, int flags)
{
    return call_must_fail() ? -1 : __real_eventfd(count, flags);
}

int __wrap_epoll_create1(int flags)
{
    return call_must_fail() ? -1 : __real_epoll_create1(flags);
}

int __wrap_epoll_ctl(int epoll, int op, int fd, struct epoll_event *event)
{
    return call_must_fail() ? -1 : __real_epoll_ctl(epoll, op, fd, event);
}

int __wrap_timerfd_create(int clock, int flags)
{
    return call_must_fail() ? -1 : __real_timerfd_create(clock, flags);
}

ssize_t __wrap_getrandom(void *buf, size_t size, unsigned flags)
{
    return call_must_fail() ? -1 : __real_getrandom(buf, size, flags);
}

static bool is_clean(int code)
{
    int own = aimed_at == TORTURE_MEMORY ? HF_NO_MEMORY : HF_SYSTEM;

    return code == HF_OK || (torture_failed() && (code == own || code == HF_UNKNOWN));
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
    if (!is_clean(code))
        fail_msg("with number %zu failing%s: %s", tally->nth, forever ? " and all after it" : "",
                 hf_code_name(code));
    tally->runs++;
    tally->refused += code != HF_OK;
    return torture_failed();
}

size_t torture_run(torture_scenario *scenario, void *arg, size_t step)
{
    struct tally tally = {.nth = 1};
    const char *given = getenv("HOLDFAST_TORTURE_STEP");
    bool more = true;

    long wanted = given != NULL ? strtol(given, NULL, 10) : 0;
    if (wanted > 0)
        step = (size_t)wanted;
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
