/* See log.h. Entries wait in a list of their own, with one turn in the notifier's heap for all: so there
 * need not be room there for each. */
#include "core/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/client.h"

#include "base/banned.h"

#define WAITING_MAX 1000
#define TEXT_MAX    512

struct entry {
    struct entry *next;
    hf_log_entry told;
    char bytes[]; /* the text and the name, each with its NUL */
};

struct hf__log {
    hf_log_callback *on_log;
    void *arg;
    struct hf__timer turn;
    struct entry *first, **end;
    size_t waiting;
};

int hf__log_open(hf_client *client, hf_log_callback *on_log, void *arg)
{
    struct hf__log *log = calloc(1, sizeof *log);

    if (log == NULL || !hf__heap_reserve(&client->notifier.jobs, 1)) {
        free(log);
        return HF_NO_MEMORY;
    }
    log->on_log = on_log;
    log->arg = arg;
    log->end = &log->first;
    client->log = log;
    return 0;
}

static struct entry *take_first(struct hf__log *log)
{
    struct entry *e = log->first;

    if (e == NULL)
        return NULL;
    log->first = e->next;
    if (log->first == NULL)
        log->end = &log->first;
    log->waiting--;
    return e;
}

void hf__log_free(struct hf__log *log)
{
    struct entry *e;

    while (log != NULL && (e = take_first(log)) != NULL)
        free(e);
    free(log);
}

static int level_of(hf_log_kind kind)
{
    static const int levels[] = {
#define X(id, level, name, text) level,
        HF_LOG_KINDS(X)
#undef X
    };

    return levels[kind];
}

static struct entry *new_entry(const hf_log_entry *told, const char *text)
{
    size_t text_len = strlen(text);
    struct entry *e = malloc(sizeof *e + text_len + 1 + told->name_len + 1);

    if (e == NULL)
        return NULL;
    e->next = NULL;
    e->told = *told;
    e->told.level = level_of(told->kind);
    e->told.text = memcpy(e->bytes, text, text_len + 1);
    if (told->name != NULL) /* its NUL is there */
        e->told.name = memcpy(e->bytes + text_len + 1, told->name, told->name_len + 1);
    return e;
}

static void push(struct hf__log *log, struct entry *e)
{
    *log->end = e;
    log->end = &e->next;
    log->waiting++;
}

/* The last place is for the note that there was no room. */
static void put(hf_client *client, const hf_log_entry *told, const char *text)
{
    static const hf_log_entry drop = {.kind = HF_LOG_DROPPED};
    struct hf__log *log = client->log;
    bool full = log->waiting >= WAITING_MAX - 1;
    struct entry *e = !full                        ? new_entry(told, text)
                      : log->waiting < WAITING_MAX ? new_entry(&drop, "entries were dropped here")
                                                   : NULL;

    if ((full || e == NULL) && client->meter != NULL)
        hf__raise(&client->meter->seen.log_dropped);
    if (e == NULL)
        return;
    push(log, e);
    /* No thread to be had: it is tried again with the next entry. */
    hf__workers_add(&client->notifier, &log->turn, hf__now_ns(client->env));
}

void hf__log(hf_client *client, hf_log_kind kind, int code, const char *format, ...)
{
    hf_log_entry told = {.kind = kind, .code = code};
    char text[TEXT_MAX];
    va_list args;

    if (client->log == NULL)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    put(client, &told, text);
}

void hf__log_lock(const hf_lock *lock, hf_log_kind kind, int code, const char *format, ...)
{
    hf_log_entry told = {
        .kind = kind, .code = code, .name = lock->name, .name_len = lock->bid.name_len};
    char text[TEXT_MAX], shown[80];
    va_list args;

    if (lock->client->log == NULL)
        return;
    if (kind == HF_LOG_LOST)
        told.cause = lock->bidder.cause;
    int used =
        snprintf(text, sizeof text,
                 "'%s': ", hf__printable(lock->name, lock->bid.name_len, shown, sizeof shown));
    va_start(args, format);
    vsnprintf(text + used, sizeof text - (size_t)used, format, args);
    va_end(args);
    put(lock->client, &told, text);
}

bool hf__log_work(hf_client *client, const struct hf__timer *turn)
{
    struct hf__log *log = client->log;

    if (log == NULL || turn != &log->turn)
        return false;
    struct entry *e = take_first(log);
    hf__heap_remove(&client->notifier.jobs, &log->turn);
    if (log->first != NULL) /* behind the callbacks that came up meanwhile */
        hf__workers_add(&client->notifier, &log->turn, hf__now_ns(client->env));
    hf__unlock_client(client);
    log->on_log(&e->told, log->arg);
    hf__lock_client(client);
    free(e);
    return true;
}
