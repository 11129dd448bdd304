/* The calls that may block: each runs on a thread of libuv's pool and settles a promise. None of them
 * waits for somebody else's release (acquire and release are started, see addon.c), so however few
 * threads the pool has, each call ends by its own time-out. */
#include "addon.h"

#include <stdlib.h>
#include <string.h>

#define COLUMNS 7

/* What a callback of the library told, to be shown when the call is over. */
struct row {
    long number;
    char *texts[COLUMNS];
};

struct rows {
    struct row *at;
    size_t count, room;
    bool no_memory;
};

struct job {
    const struct kind *kind;
    struct client *client; /* NULL: open and stores */
    struct handle *handle;
    napi_async_work work;
    napi_deferred deferred;
    napi_ref kept; /* the arguments: nothing of them is collected meanwhile */
    char *name, *text;
    size_t name_len;
    double number;
    hf_options options;

    int code;
    hf_error err;
    hf_client *opened;
    hf_lock *lock;
    hf_view *view;
    uint64_t count;
    struct rows rows;
};

struct kind {
    const char *name;
    int (*run)(struct job *job);                         /* on a thread of the pool */
    napi_value (*result)(napi_env env, struct job *job); /* NULL: undefined */
};

static void add_row(struct rows *rows, long number, const char *const *texts, size_t count)
{
    if (rows->count == rows->room) {
        size_t room = rows->room * 2 + 16;
        struct row *at = realloc(rows->at, room * sizeof *at);
        if (at == NULL) {
            rows->no_memory = true;
            return;
        }
        rows->at = at;
        rows->room = room;
    }
    struct row *row = &rows->at[rows->count++];
    *row = (struct row){.number = number};
    for (size_t i = 0; i < count; i++) {
        row->texts[i] = texts[i] == NULL ? NULL : strdup(texts[i]);
        rows->no_memory |= texts[i] != NULL && row->texts[i] == NULL;
    }
}

static napi_value rows_value(napi_env env, struct job *job)
{
    napi_value list, row, number;
    napi_create_array_with_length(env, job->rows.count, &list);
    for (size_t i = 0; i < job->rows.count; i++) {
        napi_create_array_with_length(env, COLUMNS + 1, &row);
        napi_create_int64(env, job->rows.at[i].number, &number);
        napi_set_element(env, row, 0, number);
        for (uint32_t j = 0; j < COLUMNS; j++)
            napi_set_element(env, row, j + 1, text_value(env, job->rows.at[i].texts[j]));
        napi_set_element(env, list, (uint32_t)i, row);
    }
    return list;
}

static int failed(struct job *job, int code)
{
    job->err = (hf_error){.code = code};
    strncpy(job->err.text, hf_code_text(code), sizeof job->err.text - 1);
    return code;
}

static int rows_code(struct job *job, int code)
{
    return code == HF_OK && job->rows.no_memory ? failed(job, HF_NO_MEMORY) : code;
}

static int run_open(struct job *job)
{
    hf_client_options options = {.size = sizeof options, .program = job->text};
    return hf_open(job->name, &options, &job->opened, &job->err);
}

static napi_value opened(napi_env env, struct job *job)
{
    hf_client *hf = job->opened;
    job->opened = NULL;
    return client_wrap(env, hf);
}

static int run_close(struct job *job)
{
    client_end(job->client);
    return HF_OK;
}

static napi_value closed(napi_env env, struct job *job)
{
    (void)env;
    client_freed(job->client);
    return NULL;
}

static int run_adopt(struct job *job)
{
    return hf_adopt(job->client->hf, job->name, job->name_len, job->text, &job->options, &job->lock,
                    &job->err);
}

static napi_value adopted(napi_env env, struct job *job)
{
    hf_lock *lock = job->lock;
    (void)env;
    job->lock = NULL;
    napi_value handle = handle_wrap(job->client, lock);
    if (handle != NULL)
        handle_watch(job->client, job->number);
    return handle;
}

static int run_renew(struct job *job)
{
    return hf_lock_renew(job->handle->lock, &job->err);
}

static int run_detach(struct job *job)
{
    return hf_lock_detach(job->handle->lock, &job->err);
}

static napi_value detached(napi_env env, struct job *job)
{
    (void)env;
    handle_forget(job->handle);
    return NULL;
}

static int run_check(struct job *job)
{
    return hf_check(job->client->hf, job->text, &job->err);
}

static int run_break(struct job *job)
{
    return hf_break(job->client->hf, job->name, job->name_len, job->text, job->number != 0,
                    &job->err);
}

static int run_setup(struct job *job)
{
    return hf_setup(job->client->hf, &job->err);
}

static int run_purge(struct job *job)
{
    return hf_purge(job->client->hf, (int64_t)job->number, &job->count, &job->err);
}

static napi_value purged(napi_env env, struct job *job)
{
    napi_value count;
    napi_create_double(env, (double)job->count, &count);
    return count;
}

/* `text` says how the name is meant: "name", "prefix", or none of the two. */
static int run_inspect(struct job *job)
{
    hf_query query = {.size = sizeof query, .older_than_ms = (int64_t)job->number};
    if (job->text != NULL && strcmp(job->text, "name") == 0) {
        query.name = job->name;
        query.name_len = job->name_len;
    } else if (job->text != NULL && strcmp(job->text, "prefix") == 0) {
        query.prefix = job->name;
        query.prefix_len = job->name_len;
    }
    return hf_inspect(job->client->hf, &query, &job->view, &job->err);
}

static napi_value entry_value(napi_env env, const hf_entry *entry)
{
    const double numbers[] = {
        entry->place,          (double)entry->position,     entry->mode,
        entry->limit,          (double)entry->ttl_ms,       (double)entry->lock_delay_ms,
        (double)entry->age_ms, (double)entry->remaining_ms, entry->claimed,
        (double)entry->pid,
    };
    const char *const texts[] = {entry->ticket, entry->host, entry->user, entry->program,
                                 entry->note};
    napi_value list, value;
    uint32_t at = 0;
    napi_create_array(env, &list);
    napi_create_buffer_copy(env, entry->name_len, entry->name, NULL, &value);
    napi_set_element(env, list, at++, value);
    napi_create_bigint_uint64(env, entry->generation, &value);
    napi_set_element(env, list, at++, value);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        napi_create_double(env, numbers[i], &value);
        napi_set_element(env, list, at++, value);
    }
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        napi_set_element(env, list, at++, text_value(env, texts[i]));
    return list;
}

static napi_value inspected(napi_env env, struct job *job)
{
    napi_value list;
    napi_create_array(env, &list);
    for (size_t i = 0; i < hf_view_count(job->view); i++) {
        napi_handle_scope scope;
        napi_open_handle_scope(env, &scope);
        napi_set_element(env, list, (uint32_t)i, entry_value(env, hf_view_entry(job->view, i)));
        napi_close_handle_scope(env, scope);
    }
    return list;
}

static void add_finding(int level, const char *clause, const char *text, void *arg)
{
    const char *const texts[] = {clause, text};
    add_row(arg, level, texts, 2);
}

static int run_diagnose(struct job *job)
{
    return rows_code(job, hf_diagnose(job->client->hf, add_finding, &job->rows, &job->err));
}

static void add_store(const hf_store_info *info, void *arg)
{
    const char *const texts[] = {info->name,    info->schemes, info->summary,
                                 info->options, info->ddl,     info->missing};
    add_row(arg, info->capabilities, texts, 6);
}

static int run_stores(struct job *job)
{
    return rows_code(job, hf_stores(add_store, &job->rows));
}

static const struct kind kinds[] = {
    {"open", run_open, opened},
    {"close", run_close, closed},
    {"adopt", run_adopt, adopted},
    {"renew", run_renew, NULL},
    {"detach", run_detach, detached},
    {"check", run_check, NULL},
    {"break", run_break, NULL},
    {"setup", run_setup, NULL},
    {"purge", run_purge, purged},
    {"inspect", run_inspect, inspected},
    {"diagnose", run_diagnose, rows_value},
    {"stores", run_stores, rows_value},
};

static void run(napi_env env, void *data)
{
    struct job *job = data;
    bool uses = job->client != NULL && job->kind->run != run_close;
    (void)env;
    if (uses && !client_enter(job->client)) {
        job->code = failed(job, HF_CLOSED);
        return;
    }
    job->code = job->handle != NULL && job->handle->lock == NULL ? failed(job, HF_CLOSED)
                                                                 : job->kind->run(job);
    if (uses)
        client_leave(job->client);
}

static void free_job(napi_env env, struct job *job)
{
    if (job->opened != NULL)
        hf_close(job->opened);
    hf_view_free(job->view);
    for (size_t i = 0; i < job->rows.count; i++)
        for (size_t j = 0; j < COLUMNS; j++)
            free(job->rows.at[i].texts[j]);
    free(job->rows.at);
    free(job->name);
    free(job->text);
    if (job->kept != NULL)
        napi_delete_reference(env, job->kept);
    if (job->work != NULL)
        napi_delete_async_work(env, job->work);
    if (job->client != NULL)
        client_unref(job->client);
    free(job);
}

/* Also called when the environment ends: then the promise cannot be settled, but what was made is
 * still freed, or given to the client, which ends with the environment. */
static void done(napi_env env, napi_status status, void *data)
{
    struct job *job = data;
    napi_value value = NULL;
    if (status == napi_ok && job->code == HF_OK && job->kind->result != NULL)
        value = job->kind->result(env, job);
    if (status == napi_ok && job->code != HF_OK) {
        napi_reject_deferred(env, job->deferred, failure_object(env, &job->err));
    } else {
        if (value == NULL)
            napi_get_undefined(env, &value);
        napi_resolve_deferred(env, job->deferred, value);
    }
    free_job(env, job);
}

static char *bytes_arg(napi_env env, napi_value value, size_t *ret_len)
{
    void *data;
    bool is;
    if (napi_is_buffer(env, value, &is) != napi_ok || !is ||
        napi_get_buffer_info(env, value, &data, ret_len) != napi_ok)
        return NULL;
    char *copy = malloc(*ret_len + 1);
    if (copy == NULL)
        return NULL;
    if (*ret_len > 0)
        memcpy(copy, data, *ret_len);
    copy[*ret_len] = '\0';
    return copy;
}

static const struct kind *find_kind(const char *name)
{
    for (size_t i = 0; name != NULL && i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    return NULL;
}

enum { KIND, CLIENT, HANDLE, NAME, TEXT, NUMBER, OPTIONS, ARGS };

napi_value job_start(napi_env env, napi_callback_info info)
{
    napi_value args[ARGS], promise, label, kept;
    size_t count = ARGS;
    napi_get_cb_info(env, info, &count, args, NULL, NULL);
    char *name = text_arg(env, args[KIND]);
    const struct kind *kind = find_kind(name);
    free(name);
    struct job *job = kind == NULL ? NULL : calloc(1, sizeof *job);
    if (job == NULL) {
        napi_throw_error(env, NULL, "holdfast: no memory, or no such call");
        return NULL;
    }
    job->kind = kind;
    job->client = pointer_arg(env, args[CLIENT]);
    job->handle = pointer_arg(env, args[HANDLE]);
    if (job->handle != NULL)
        job->client = job->handle->client;
    job->name = bytes_arg(env, args[NAME], &job->name_len);
    job->text = text_arg(env, args[TEXT]);
    napi_get_value_double(env, args[NUMBER], &job->number);
    options_arg(env, args[OPTIONS], &job->options);
    if (job->client != NULL)
        client_ref(job->client);
    if (kind->run == run_close)
        client_stop(job->client);
    napi_create_array_with_length(env, 2, &kept);
    napi_set_element(env, kept, 0, args[CLIENT]);
    napi_set_element(env, kept, 1, args[HANDLE]);
    if (napi_create_reference(env, kept, 1, &job->kept) != napi_ok ||
        napi_create_string_utf8(env, "holdfast", NAPI_AUTO_LENGTH, &label) != napi_ok ||
        napi_create_promise(env, &job->deferred, &promise) != napi_ok ||
        napi_create_async_work(env, NULL, label, run, done, job, &job->work) != napi_ok ||
        napi_queue_async_work(env, job->work) != napi_ok) {
        free_job(env, job);
        return NULL;
    }
    return promise;
}
