/* trace+URL: one line for each call of the store inside, and for each wake-up.
 *
 *   4711 +12.345 attempt invoice/1 9f86d081 queue -> granted 1789034 30000ms claimed (0.082ms)
 *
 * A line is put together first and written by one write(), to a file opened for appending, so that
 * the lines of several threads and processes do not mix. Names are escaped and a ticket is cut to a
 * quarter: nobody can release a lock with what stands here. What cannot be written is dropped:
 * watching a store must not change what it does. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stores/wrap.h"

#include "base/banned.h"

#define LINE_MAX_BYTES 1000
#define NAME_BYTES     80

struct trace {
    struct hf__wrapper wrapper;
    int fd;
    bool own_fd;
    int64_t opened_ns;
};

struct line {
    struct trace *trace;
    int64_t began_ns;
    hf_error own, *err; /* the caller may not want the error, but the line does */
    size_t used;
    char text[LINE_MAX_BYTES];
};

static const struct hf__option options[] = {
    {"trace", HF__OPTION_TEXT, "fd:2", 0, 0, "where the lines go: a file, or fd:N"},
    {NULL, HF__OPTION_TEXT, NULL, 0, 0, NULL},
};

__attribute__((format(printf, 2, 3))) static void put(struct line *line, const char *format, ...)
{
    size_t room = sizeof line->text - line->used;
    va_list args;

    va_start(args, format);
    int n = vsnprintf(line->text + line->used, room, format, args);
    va_end(args);
    if (n > 0)
        line->used += (size_t)n < room ? (size_t)n : room - 1;
}

static double ms_between(int64_t from_ns, int64_t to_ns)
{
    return (double)(to_ns - from_ns) / (double)HF__NS_PER_MS;
}

/* The text of the error is emptied because a store may fail without setting it, and what the caller
 * gave need not be initialised. */
static void begin(struct hf__store *store, struct line *line, const char *operation, hf_error *err)
{
    struct trace *t = (struct trace *)store;

    line->trace = t;
    line->err = err != NULL ? err : &line->own;
    line->err->text[0] = '\0';
    line->used = 0;
    line->began_ns = hf__now_ns(store->host->env);
    put(line, "%ld +%.3f %s", (long)getpid(), ms_between(t->opened_ns, line->began_ns), operation);
}

static void put_name(struct line *line, const char *name, size_t len)
{
    char shown[NAME_BYTES];

    put(line, " '%s'", hf__printable(name, len, shown, sizeof shown));
}

static void put_ticket(struct line *line, const struct hf__ticket *ticket)
{
    char text[HF_TICKET_SIZE];

    hf__ticket_format(ticket, text);
    put(line, " %.8s", text);
}

static void put_answer(struct line *line, const struct hf__answer *a)
{
    static const char *const verdicts[] = {
        [HF__VERDICT_GRANTED] = "granted", [HF__VERDICT_QUEUED] = "queued",
        [HF__VERDICT_BUSY] = "busy",       [HF__VERDICT_WITHDRAWN] = "withdrawn",
        [HF__VERDICT_FULL] = "full",       [HF__VERDICT_DONE] = "done",
        [HF__VERDICT_STALE] = "stale",     [HF__VERDICT_GONE] = "gone",
        [HF__VERDICT_MORE] = "more",
    };

    put(line, " -> %s", verdicts[a->verdict]);
    if (a->verdict == HF__VERDICT_GRANTED && a->lease_ms == HF__NEVER)
        put(line, " %llu never", (unsigned long long)a->generation);
    else if (a->verdict == HF__VERDICT_GRANTED)
        put(line, " %llu %lldms", (unsigned long long)a->generation, (long long)a->lease_ms);
    if (a->verdict == HF__VERDICT_GRANTED)
        put(line, a->claimed ? " claimed" : " provisional");
    if (a->wanted)
        put(line, " wanted");
    if (a->verdict == HF__VERDICT_QUEUED)
        put(line, " %zu", a->position);
}

/* Writes the line. Gives back `r`. Not into a pipe or a terminal that is full, where it would wait
 * for the reader, nor into a pipe without one, where it would be ended by SIGPIPE. */
static int end(struct line *line, int r)
{
    struct trace *t = line->trace;
    int64_t now_ns = hf__now_ns(t->wrapper.base.host->env);
    struct pollfd ready = {t->fd, POLLOUT, 0};

    if (r != 0)
        put(line, " -> %s: %s", hf_code_name(r), line->err->text);
    put(line, " (%.3fms)", ms_between(line->began_ns, now_ns));
    line->text[line->used++] = '\n'; /* put() always leaves room for it */
    if (poll(&ready, 1, 0) == 1 && ready.revents == POLLOUT) {
        while (write(t->fd, line->text, line->used) < 0 && errno == EINTR)
            continue;
    }
    return r;
}

static int trace_operate(struct hf__store *store, const struct hf__operation *op,
                         int64_t deadline_ns, struct hf__answer *ret_answer, hf_error *err)
{
    static const char *const words[] = {
        [HF__OPERATION_ATTEMPT] = "attempt",   [HF__OPERATION_RELEASE] = "release",
        [HF__OPERATION_WITHDRAW] = "withdraw", [HF__OPERATION_BREAK] = "break",
        [HF__OPERATION_READ] = "read",         [HF__OPERATION_WRITE] = "write"};
    struct line line;

    begin(store, &line, words[op->kind], err);
    put_name(&line, op->bid->name, op->bid->name_len);
    put_ticket(&line, &op->bid->ticket);
    if (op->kind == HF__OPERATION_ATTEMPT)
        put(&line, " %s %s", op->bid->mode == HF_SHARED ? "shared" : "exclusive",
            op->bid->queue ? "queue" : "nowait");
    else if (op->kind == HF__OPERATION_WITHDRAW)
        put(&line, " retire %lldms", (long long)op->retire_ms);
    else if (op->kind == HF__OPERATION_RELEASE && op->at_least_ms > 0)
        put(&line, " at least %lldms", (long long)op->at_least_ms);
    else if (op->kind == HF__OPERATION_WRITE) /* what it says may be a secret */
        put(&line, " %llu bytes", (unsigned long long)op->value->len);
    else if (op->kind == HF__OPERATION_BREAK)
        put(&line, op->now ? " now" : " later");
    int r = hf__wrapper_operate(store, op, deadline_ns, ret_answer, line.err);
    if (r == 0)
        put_answer(&line, ret_answer);
    return end(&line, r);
}

static int trace_renew(struct hf__store *store, struct hf__renewal *items, size_t count,
                       int64_t deadline_ns, hf_error *err)
{
    struct line line;

    begin(store, &line, "renew", err);
    put(&line, " %zu", count);
    int r = hf__wrapper_renew(store, items, count, deadline_ns, line.err);
    /* Hundreds may be renewed at once: the first few will do, and leave room for the error. */
    for (size_t i = 0; i < count && line.used < LINE_MAX_BYTES / 2; i++) {
        put_name(&line, items[i].name, items[i].name_len);
        put_ticket(&line, &items[i].ticket);
        if (r == 0)
            put_answer(&line, &items[i].answer);
    }
    return end(&line, r);
}

struct counted {
    const struct hf__search *search;
    size_t count;
};

static int count_found(void *ctx, const char *name, size_t name_len, const struct hf__entry *entry)
{
    struct counted *c = ctx;

    c->count++;
    return c->search->found(c->search->ctx, name, name_len, entry);
}

static int trace_inspect(struct hf__store *store, const struct hf__search *search,
                         int64_t deadline_ns, hf_error *err)
{
    struct counted counted = {.search = search};
    struct hf__search counting = *search;
    struct line line;

    begin(store, &line, "inspect", err);
    if (search->name != NULL)
        put_name(&line, search->name, search->name_len);
    counting.found = count_found;
    counting.ctx = &counted;
    int r = hf__wrapper_inspect(store, &counting, deadline_ns, line.err);
    put(&line, " -> %zu found", counted.count);
    return end(&line, r);
}

static int trace_trail(struct hf__store *store, const struct hf__trail_search *search,
                       int64_t deadline_ns, hf_error *err)
{
    struct line line;

    begin(store, &line, "trail", err);
    if (search->name != NULL)
        put_name(&line, search->name, search->name_len);
    return end(&line, hf__wrapper_trail(store, search, deadline_ns, line.err));
}

static int trace_upkeep(struct hf__store *store, enum hf__upkeep what, int64_t retain_ms,
                        int64_t deadline_ns, uint64_t *ret_count, hf_error *err)
{
    struct line line;

    begin(store, &line, what == HF__UPKEEP_SETUP ? "setup" : "purge", err);
    return end(&line, hf__wrapper_upkeep(store, what, retain_ms, deadline_ns, ret_count, line.err));
}

struct told {
    struct hf__store *store;
    hf__wake_sink *sink;
    void *ctx;
};

/* The line comes first: what the receiver does next may write lines of its own. */
static void pass_wake(void *ctx, const struct hf__ticket *ticket, uint64_t generation)
{
    struct told *told = ctx;
    struct line line;

    begin(told->store, &line, "wake", NULL);
    if (ticket != NULL)
        put_ticket(&line, ticket);
    else
        put(&line, " everybody");
    put(&line, " %llu", (unsigned long long)generation);
    end(&line, 0);
    told->sink(told->ctx, ticket, generation);
}

static void trace_wake(struct hf__store *store, hf__wake_sink *sink, void *ctx)
{
    struct told told = {store, sink, ctx};

    hf__wrapper_wake(store, pass_wake, &told);
}

/* A descriptor that the caller gave stays the caller's: it is used as it is and never closed. A
 * file is for its owner only, as the names of locks may tell more than others should know. */
static int open_output(struct trace *t, const char *where, hf_error *err)
{
    char *end_of_number;

    if (strncmp(where, "fd:", 3) == 0) {
        long fd = strtol(where + 3, &end_of_number, 10);
        if (where[3] < '0' || where[3] > '9' || *end_of_number != '\0' ||
            fcntl((int)fd, F_GETFD) < 0)
            return hf__fail(err, HF_INVALID, "trace=%s: there is no such descriptor", where);
        t->fd = (int)fd;
        return 0;
    }
    t->fd = open(where, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600);
    if (t->fd < 0)
        return hf__fail_errno(err, HF_DENIED, "trace=%s", where);
    t->own_fd = true;
    return 0;
}

static void trace_close(struct hf__store *store)
{
    struct trace *t = (struct trace *)store;

    hf__wrapper_close(&t->wrapper);
    if (t->own_fd)
        close(t->fd);
    free(t);
}

static int trace_open(const struct hf__url *url, const struct hf__host *host,
                      struct hf__store **ret_store, hf_error *err);

__attribute__((visibility("default"))) extern const struct hf__store_type hf_store_type_v1;

const struct hf__store_type hf_store_type_v1 = {
    .abi = HF__STORE_ABI,
    .name = "trace",
    .schemes = (const char *const[]){"trace", NULL},
    .summary = "writes a line for each call of another store: trace+URL",
    .options = options,
    .open = trace_open,
    .close = trace_close,
    .operate = trace_operate,
    .renew = trace_renew,
    .inspect = trace_inspect,
    .upkeep = trace_upkeep,
    .diagnose = hf__wrapper_diagnose,
    .wake_fd = hf__wrapper_wake_fd,
    .wake = trace_wake,
    .trail = trace_trail,
};

static int trace_open(const struct hf__url *url, const struct hf__host *host,
                      struct hf__store **ret_store, hf_error *err)
{
    struct trace *t = calloc(1, sizeof *t);

    if (t == NULL)
        return hf__fail(err, HF_NO_MEMORY, NULL);
    t->opened_ns = hf__now_ns(host->env);
    int r = open_output(t, hf__url_text(url, "trace"), err);
    if (r == 0)
        r = hf__wrapper_open(&t->wrapper, &hf_store_type_v1, url, host, err);
    if (r != 0) {
        if (t->own_fd)
            close(t->fd);
        free(t);
        return r;
    }
    *ret_store = &t->wrapper.base;
    return 0;
}
