/* What only reads: stores, doctor, locks. Each is one question to the store, asked by a worker; the objects are those
 * of `holdfast ls --json`, `show --json` and `doctor --json`. */
#include <string.h>

#include "base/percent.h"
#include "cli/capability.h"
#include "cli/entry.h"
#include "cli/findings.h"
#include "routes.h"
#include "server.h"
#include "survey.h"

#include "base/banned.h"

#define LIMIT_PRESET 1000
#define LIMIT_MAX    10000
#define SPAN_MAX_MS  (INT64_C(366) * 24 * 3600000)

/* Stores ------------------------------------------------------------------- */

/* Whether it answers: the smallest question there is. */
static const hf_query small_question = {
    .size = sizeof small_question, .name = "holdfast", .name_len = 8};

static void write_store(struct cli_json *json, const struct probe *probe)
{
    const struct cli_capability *c;

    cli_json_open(json, NULL, '{');
    cli_json_text(json, "id", probe->store->id);
    cli_json_text(json, "url", probe->store->shown);
    cli_json_text(json, "kind", probe->store->kind);
    cli_json_open(json, "capabilities", '[');
    for (size_t i = 0; (c = cli_capability_at(i)) != NULL; i++) {
        if (hf_capabilities(probe->store->client) & c->bit)
            cli_json_text(json, NULL, c->name);
    }
    cli_json_close(json, ']');
    cli_json_bool(json, "up", probe->code == HF_OK);
    if (probe->code == HF_OK)
        cli_json_null(json, "error");
    else
        reply_json_error(json, "error", &probe->err);
    cli_json_close(json, '}');
}

static void write_stores(struct request *request, const struct survey *survey)
{
    struct reply_writer writer;

    if (!reply_begin(&request->reply, 200, &writer))
        return;
    cli_json_open(&writer.json, NULL, '{');
    cli_json_open(&writer.json, "stores", '[');
    for (size_t i = 0; i < survey->count; i++)
        write_store(&writer.json, &survey->probes[i]);
    cli_json_close(&writer.json, ']');
    cli_json_bool(&writer.json, "allow_break", request->server->allow_break);
    cli_json_close(&writer.json, '}');
    reply_end(&writer);
}

void look_stores(struct request *request)
{
    survey_start(request, &small_question, write_stores);
}

static void write_ready(struct request *request, const struct survey *survey)
{
    for (size_t i = 0; i < survey->count; i++) {
        if (survey->probes[i].code != HF_OK) { /* not its text: nobody has shown a token */
            reply_refuse(&request->reply, 503, HF_UNAVAILABLE, "a store does not answer");
            return;
        }
    }
    request->reply = (struct reply){
        .status = 200, .type = "text/plain; charset=utf-8", .fixed = "ready\n", .len = 6};
}

void look_ready(struct request *request)
{
    survey_start(request, &small_question, write_ready);
}

/* Doctor ------------------------------------------------------------------- */

struct findings {
    struct cli_json *json;
    size_t warnings, problems;
};

static void found(int level, const char *clause, const char *text, void *arg)
{
    struct findings *findings = arg;

    findings->warnings += level == CLI_WARNING;
    findings->problems += level >= CLI_PROBLEM;
    cli_json_finding(findings->json, level, clause, text);
}

/* As the command does, but for the trial lock: whoever may only read changes nothing. */
static void diagnose(struct request *request)
{
    struct reply_writer writer;
    struct findings findings = {.json = &writer.json};
    hf_client *client = request->store->client;
    hf_error err = {0};

    if (!reply_begin(&request->reply, 200, &writer))
        return;
    cli_json_open(&writer.json, NULL, '{');
    cli_json_open(&writer.json, "findings", '[');
    int code = hf_diagnose(client, found, &findings, &err);
    cli_find_capabilities(hf_capabilities(client), found, &findings);
    cli_json_close(&writer.json, ']');
    cli_json_text(&writer.json, "verdict", cli_verdict(findings.problems, findings.warnings));
    cli_json_number(&writer.json, "problems", (int64_t)findings.problems);
    cli_json_number(&writer.json, "warnings", (int64_t)findings.warnings);
    cli_json_close(&writer.json, '}');
    reply_end(&writer);
    if (code != HF_OK)
        reply_error(&request->reply, &err);
}

void look_doctor(struct request *request)
{
    request_work(request, diagnose);
}

/* Locks -------------------------------------------------------------------- */

/* A cursor is the last name in hexadecimal digits: it can be passed on without thinking of escapes. */
static bool read_cursor(const struct bytes *cursor, char name[HF_NAME_MAX], size_t *ret_len)
{
    if (cursor->len % 2 != 0 || cursor->len > (size_t)2 * HF_NAME_MAX)
        return false;
    for (size_t i = 0; i < cursor->len; i += 2) {
        const char escape[3] = {'%', cursor->at[i], cursor->at[i + 1]};
        int byte = hf__percent_get(escape, sizeof escape);
        if (byte < 0)
            return false;
        name[i / 2] = (char)byte;
    }
    *ret_len = cursor->len / 2;
    return true;
}

static void write_cursor(struct cli_json *json, const hf_entry *last)
{
    char text[2 * HF_NAME_MAX + 1];

    for (size_t i = 0; i < last->name_len; i++)
        snprintf(text + 2 * i, 3, "%02x", (unsigned char)last->name[i]);
    cli_json_text(json, "next", text);
}

struct page {
    hf_query query;
    char after[HF_NAME_MAX];
    size_t after_len;
    int64_t limit;
};

static bool read_page(const struct request *request, struct page *page)
{
    const struct bytes *prefix = target_argument(&request->target, "prefix"),
                       *older = target_argument(&request->target, "older_than_ms"),
                       *limit = target_argument(&request->target, "limit"),
                       *after = target_argument(&request->target, "after");

    *page = (struct page){.query.size = sizeof page->query, .limit = LIMIT_PRESET};
    if (prefix != NULL && prefix->len > 0) {
        page->query.prefix = prefix->at;
        page->query.prefix_len = prefix->len;
    }
    return (older == NULL || bytes_number(older, SPAN_MAX_MS, &page->query.older_than_ms)) &&
           (limit == NULL || (bytes_number(limit, LIMIT_MAX, &page->limit) && page->limit > 0)) &&
           (after == NULL || read_cursor(after, page->after, &page->after_len)) &&
           page->query.prefix_len <= HF_NAME_MAX;
}

static bool is_behind(const hf_entry *e, const struct page *page)
{
    size_t len = e->name_len < page->after_len ? e->name_len : page->after_len;
    int order = len > 0 ? memcmp(e->name, page->after, len) : 0;

    return order > 0 || (order == 0 && e->name_len > page->after_len);
}

static void write_locks(struct reply *reply, const hf_view *view, const struct page *page)
{
    struct reply_writer writer;
    const hf_entry *e = NULL, *last = NULL;
    int64_t count = 0;

    if (!reply_begin(reply, 200, &writer))
        return;
    cli_json_open(&writer.json, NULL, '{');
    cli_json_open(&writer.json, "locks", '[');
    for (size_t i = 0; (e = hf_view_entry(view, i)) != NULL && count < page->limit;) {
        struct cli_span span = cli_span_at(view, i);
        i += span.count;
        if (page->after_len > 0 && !is_behind(e, page))
            continue;
        cli_json_lock_object(&writer.json, e->name, e->name_len, &span,
                             page->query.older_than_ms == 0);
        last = e;
        count++;
    }
    cli_json_close(&writer.json, ']');
    if (e != NULL && last != NULL)
        write_cursor(&writer.json, last);
    else
        cli_json_null(&writer.json, "next");
    cli_json_close(&writer.json, '}');
    reply_end(&writer);
}

static void list_locks(struct request *request)
{
    struct page page;
    hf_error err = {0};
    hf_view *view;

    read_page(request, &page);
    if (hf_inspect(request->store->client, &page.query, &view, &err) != HF_OK) {
        reply_error(&request->reply, &err);
        return;
    }
    write_locks(&request->reply, view, &page);
    hf_view_free(view);
}

void look_locks(struct request *request)
{
    struct page page;

    if (read_page(request, &page))
        request_work(request, list_locks);
    else
        reply_refuse(&request->reply, 400, HF_INVALID,
                     "prefix has at most 512 bytes, older_than_ms is a number, limit one from 1 to "
                     "10000, and after what 'next' said");
}

/* One lock ----------------------------------------------------------------- */

static void write_value(struct cli_json *json, const hf_view *view)
{
    const void *value;
    size_t len;
    uint64_t generation;
    int doubt;

    if (hf_view_value(view, &value, &len, &generation, &doubt) != HF_OK) {
        cli_json_null(json, "value");
        return;
    }
    cli_json_open(json, "value", '{');
    cli_json_bytes(json, "value", value, len);
    cli_json_generation(json, "generation", generation);
    cli_json_bool(json, "doubt", doubt != 0);
    cli_json_close(json, '}');
}

static void write_lock(struct request *request, const hf_view *view)
{
    struct cli_span all = {.view = view, .count = hf_view_count(view)};
    struct reply_writer writer;

    if (!reply_begin(&request->reply, 200, &writer))
        return;
    cli_json_open(&writer.json, NULL, '{');
    cli_json_lock_fields(&writer.json, request->name.at, request->name.len, &all, true);
    write_value(&writer.json, view);
    cli_json_close(&writer.json, '}');
    reply_end(&writer);
}

static void show_lock(struct request *request)
{
    const struct bytes *value = target_argument(&request->target, "value");
    hf_query query = {.size = sizeof query,
                      .name = request->name.at,
                      .name_len = request->name.len,
                      .value = value != NULL && bytes_are(value, "1")};
    hf_error err = {0};
    hf_view *view;

    if (hf_inspect(request->store->client, &query, &view, &err) != HF_OK) {
        reply_error(&request->reply, &err);
        return;
    }
    write_lock(request, view);
    hf_view_free(view);
}

void look_lock(struct request *request)
{
    const struct bytes *value = target_argument(&request->target, "value");

    if (value == NULL || bytes_are(value, "0") || bytes_are(value, "1"))
        request_work(request, show_lock);
    else
        reply_refuse(&request->reply, 400, HF_INVALID, "value is 0 or 1");
}
