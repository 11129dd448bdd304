//go:build cgo

/* See shim.h. */
#include "shim.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

int hfgo_open(const char *url, const char *program, const char *modules, hf_client **ret_client,
              hf_error *err)
{
    hf_client_options opt = {.size = sizeof opt, .program = program, .modules = modules};

    return hf_open(url, &opt, ret_client, err);
}

static hf_options options(const struct hfgo_terms *terms, const char *note)
{
    return (hf_options){.size = sizeof(hf_options),
                        .mode = terms->shared ? HF_SHARED : HF_EXCLUSIVE,
                        .limit = terms->limit,
                        .ttl_ms = terms->ttl_ms,
                        .wait_ms = terms->wait_ms,
                        .lock_delay_ms = terms->lock_delay_ms,
                        .max_hold_ms = terms->max_hold_ms,
                        .reentrant = terms->reentrant,
                        .owner = terms->owner,
                        .by_hand = terms->by_hand,
                        .confirmed = terms->confirmed,
                        .patience_ms = terms->patience_ms,
                        .note = note};
}

static uint64_t token_of(const hf_lock *lock)
{
    uint64_t token;

    return lock != NULL && hf_lock_generation(lock, &token) == HF_OK ? token : 0;
}

int hfgo_acquire(hf_client *client, const char *name, size_t name_len,
                 const struct hfgo_terms *terms, const char *note, uint64_t tag, int here,
                 struct hfgo_got *got, hf_error *err)
{
    hf_options opt = options(terms, note);
    int r = here ? hf_acquire_or_start(client, name, name_len, &opt, tag, &got->lock, err)
                 : hf_acquire_start(client, name, name_len, &opt, tag, err);

    if (r == HF_OK)
        got->token = token_of(got->lock);
    return r;
}

int hfgo_adopt(hf_client *client, const char *name, size_t name_len, const char *ticket,
               const struct hfgo_terms *terms, struct hfgo_got *got, hf_error *err)
{
    hf_options opt = options(terms, NULL);
    int r = hf_adopt(client, name, name_len, ticket, &opt, &got->lock, err);

    if (r == HF_OK)
        got->token = token_of(got->lock);
    return r;
}

int hfgo_event_next(hf_client *client, struct hfgo_event *ret_event)
{
    hf_event event = {.size = sizeof event};
    int r = hf_event_next(client, 0, &event);

    if (r != HF_OK)
        return r;
    ret_event->tag = event.tag;
    ret_event->lock = event.lock;
    ret_event->kind = (int)event.kind;
    ret_event->cause = (int)event.cause;
    ret_event->code = event.err.code;
    ret_event->token = event.kind == HF_EVENT_ACQUIRED ? token_of(event.lock) : 0;
    if (event.err.code != HF_OK) {
        ret_event->retriable = event.err.retriable;
        ret_event->store_code = event.err.store_code;
        ret_event->may_hold_ms = event.err.may_hold_ms;
        memcpy(ret_event->text, event.err.text, sizeof ret_event->text);
    }
    return HF_OK;
}

int hfgo_dup(int fd)
{
    return fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

int hfgo_inspect(hf_client *client, const char *name, size_t name_len, const char *prefix,
                 size_t prefix_len, int64_t older_than_ms, hf_view **ret_view, hf_error *err)
{
    hf_query query = {.size = sizeof query,
                      .name = name_len > 0 ? name : NULL,
                      .name_len = name_len,
                      .prefix = prefix_len > 0 ? prefix : NULL,
                      .prefix_len = prefix_len,
                      .older_than_ms = older_than_ms};

    return hf_inspect(client, &query, ret_view, err);
}

/* Room for one more of `size` bytes; NULL: no memory, and that is noted. */
static void *add(struct hfgo_list *list, size_t size)
{
    char *items = list->no_memory ? NULL : realloc(list->items, (list->count + 1) * size);

    if (items == NULL) {
        list->no_memory = 1;
        return NULL;
    }
    list->items = items;
    return memset(items + list->count++ * size, 0, size);
}

static char *copy(struct hfgo_list *list, const char *text)
{
    char *copied = text != NULL ? strdup(text) : NULL;

    if (text != NULL && copied == NULL)
        list->no_memory = 1;
    return copied;
}

static void on_finding(int level, const char *clause, const char *text, void *arg)
{
    struct hfgo_list *list = arg;
    struct hfgo_finding *f = add(list, sizeof *f);

    if (f != NULL)
        *f = (struct hfgo_finding){level, copy(list, clause), copy(list, text)};
}

int hfgo_diagnose(hf_client *client, struct hfgo_list *list, hf_error *err)
{
    return hf_diagnose(client, on_finding, list, err);
}

void hfgo_findings_free(struct hfgo_list *list)
{
    struct hfgo_finding *f = list->items;

    for (size_t i = 0; i < list->count; i++) {
        free(f[i].clause);
        free(f[i].text);
    }
    free(f);
}

static void on_store(const hf_store_info *info, void *arg)
{
    struct hfgo_list *list = arg;
    struct hfgo_store *s = add(list, sizeof *s);

    if (s == NULL)
        return;
    s->name = copy(list, info->name);
    s->schemes = copy(list, info->schemes);
    s->summary = copy(list, info->summary);
    s->options = copy(list, info->options);
    s->ddl = copy(list, info->ddl);
    s->missing = copy(list, info->missing);
    s->capabilities = info->capabilities;
}

int hfgo_stores(struct hfgo_list *list)
{
    return hf_stores(on_store, list);
}

void hfgo_stores_free(struct hfgo_list *list)
{
    struct hfgo_store *s = list->items;

    for (size_t i = 0; i < list->count; i++) {
        char *texts[] = {s[i].name,    s[i].schemes, s[i].summary,
                         s[i].options, s[i].ddl,     s[i].missing};
        for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++)
            free(texts[t]);
    }
    free(s);
}
