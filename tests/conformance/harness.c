/* Expectations, clients and names of a case. */
#include "harness.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

void fail_at(const char *file, int line, const char *format, ...)
{
    const char *base = strrchr(file, '/');
    va_list args;

    flockfile(stdout);
    printf("%s:%d: ", base != NULL ? base + 1 : file, line);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
    fflush(stdout);
    _exit(1);
}

void expect_at(const char *file, int line, const char *call, int expected, int got)
{
    if (expected != got)
        fail_at(file, line, "expected %s but got %s from %s", hf_code_name(expected),
                hf_code_name(got), call);
}

const char *name_of(struct ctx *ctx, const char *suffix)
{
    CHECK(ctx->name_count < sizeof ctx->names / sizeof ctx->names[0]);
    char *name = ctx->names[ctx->name_count++];
    snprintf(name, sizeof ctx->names[0], "%s%s", ctx->prefix, suffix);
    return name;
}

static hf_client *open_url(struct ctx *ctx, const char *url)
{
    hf_client *client;
    int r = hf_open(url, NULL, &client, &ctx->err);

    if (r != 0)
        fail_at(__FILE__, __LINE__, "open %s: %s", url, ctx->err.text);
    CHECK(ctx->client_count < sizeof ctx->clients / sizeof ctx->clients[0]);
    ctx->clients[ctx->client_count++] = client;
    return client;
}

hf_client *open_client(struct ctx *ctx)
{
    return open_url(ctx, ctx->url);
}

static hf_client *open_wrapped(struct ctx *ctx, const char *wrapper, const char *opts)
{
    char url[2000];

    snprintf(url, sizeof url, "%s%s%c%s", wrapper, ctx->url, strchr(ctx->url, '?') ? '&' : '?',
             opts);
    return open_url(ctx, url);
}

hf_client *open_impatient(struct ctx *ctx)
{
    return open_wrapped(ctx, "", "op_timeout=300ms");
}

hf_client *open_with(struct ctx *ctx, const char *opts)
{
    return open_wrapped(ctx, "", opts);
}

hf_client *open_fault(struct ctx *ctx, const char *opts)
{
    return open_wrapped(ctx, "fault+", opts);
}

hf_client *open_traced(struct ctx *ctx, const char *opts, const char *path)
{
    char both[1000];

    snprintf(both, sizeof both, "%s&trace=%s", opts, path);
    return open_wrapped(ctx, "fault+trace+", both);
}

void close_client(struct ctx *ctx, hf_client *client)
{
    for (size_t i = 0; i < ctx->client_count; i++) {
        if (ctx->clients[i] == client)
            ctx->clients[i] = NULL;
    }
    hf_close(client);
}

hf_options options(int64_t ttl_ms, int64_t wait_ms)
{
    static _Atomic uint64_t last_owner = 1000;
    hf_options opt = HF_OPTIONS_INIT;

    opt.ttl_ms = ttl_ms;
    opt.wait_ms = wait_ms;
    opt.owner = atomic_fetch_add(&last_owner, 1);
    return opt;
}

hf_options shared(int64_t ttl_ms, int64_t wait_ms)
{
    hf_options opt = options(ttl_ms, wait_ms);

    opt.mode = HF_SHARED;
    return opt;
}

hf_lock *take_at(const char *file, int line, struct ctx *ctx, hf_client *client, const char *name,
                 hf_options opt)
{
    hf_lock *lock = NULL;
    int r = hf_acquire(client, name, HF_NTS, &opt, &lock, &ctx->err);

    if (r != 0)
        fail_at(file, line, "%s: %s", hf_code_name(r), ctx->err.text);
    return lock;
}

static int probe_with(hf_client *client, const char *name, hf_options opt)
{
    hf_lock *lock;
    int r = hf_acquire(client, name, HF_NTS, &opt, &lock, NULL);

    return r != 0 ? r : hf_lock_release(lock, NULL);
}

int probe(hf_client *client, const char *name)
{
    return probe_with(client, name, options(LONG_MS, 0));
}

int probe_shared(hf_client *client, const char *name)
{
    return probe_with(client, name, shared(LONG_MS, 0));
}

uint64_t generation_of(const hf_lock *lock)
{
    uint64_t generation = 0;

    EXPECT(HF_OK, hf_lock_generation(lock, &generation));
    CHECK(generation > 0);
    return generation;
}

int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_BOOTTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* What is left in the store is left by a case that did not clean up, or by a store that did not. */
static void check_nothing_left(struct ctx *ctx)
{
    hf_query query = {
        .size = sizeof query, .prefix = ctx->prefix, .prefix_len = strlen(ctx->prefix)};
    hf_client *client = open_client(ctx);
    hf_view *view;

    EXPECT(HF_OK, hf_inspect(client, &query, &view, &ctx->err));
    if (hf_view_count(view) > 0)
        fail_at(__FILE__, __LINE__, "%zu left in the store, the first is %s at place %d",
                hf_view_count(view), hf_view_entry(view, 0)->name, hf_view_entry(view, 0)->place);
    hf_view_free(view);
}

void run_case(const struct conformance_case *c, struct ctx *ctx)
{
    signal(SIGPIPE, SIG_IGN);
    c->run(ctx);
    check_nothing_left(ctx);
    for (size_t i = 0; i < ctx->client_count; i++)
        hf_close(ctx->clients[i]);
    exit(0);
}
