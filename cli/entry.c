/* Holders and waiters for people and for scripts. The fields of the JSON objects are a promise: see
 * holdfast-show(1). */
#include "entry.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/banned.h"

static const char *mode_name(hf_mode mode)
{
    return mode == HF_SHARED ? "shared" : "exclusive";
}

static const char *place_name(hf_place place)
{
    static const char *const names[] = {"inside", "lingering", "waiting"};

    return names[place];
}

const char *cli_cause_word(hf_cause cause)
{
    switch (cause) {
    case HF_CAUSE_EXPIRED:
        return "expired";
    case HF_CAUSE_GONE:
        return "gone";
    case HF_CAUSE_MAX_HOLD:
        return "max-hold";
    case HF_CAUSE_STORE_LOST:
        return "store-lost";
    default:
        return "unknown";
    }
}

struct cli_span cli_span_at(const hf_view *view, size_t first)
{
    struct cli_span span = {.view = view, .first = first};
    const hf_entry *start = hf_view_entry(view, first), *e;

    while ((e = hf_view_entry(view, first + span.count)) != NULL &&
           e->name_len == start->name_len && memcmp(e->name, start->name, e->name_len) == 0)
        span.count++;
    return span;
}

size_t cli_span_count(const struct cli_span *span, hf_place place)
{
    size_t count = 0;

    for (size_t i = 0; i < span->count; i++)
        count += hf_view_entry(span->view, span->first + i)->place == place;
    return count;
}

void cli_print_mode(FILE *out, const hf_entry *entry)
{
    fputs(mode_name(entry->mode), out);
    if (entry->limit != 0)
        fprintf(out, ", at most %" PRIu32, entry->limit);
}

/* Other clients of the same store leave nothing of this behind, or only what they are. */
static void print_stranger(FILE *out, const hf_entry *entry)
{
    cli_print_text(out, entry->program[0] != '\0' ? entry->program : "(another client)");
}

void cli_print_who(FILE *out, const hf_entry *entry)
{
    if (entry->user[0] == '\0' && entry->host[0] == '\0' && entry->pid == 0) {
        print_stranger(out, entry);
        return;
    }
    cli_print_text(out, entry->user[0] != '\0' ? entry->user : "?");
    putc('@', out);
    cli_print_text(out, entry->host[0] != '\0' ? entry->host : "?");
    if (entry->pid != 0)
        fprintf(out, ", pid %" PRId64, entry->pid);
    if (entry->program[0] != '\0') {
        fputs(", ", out);
        cli_print_text(out, entry->program);
    }
}

void cli_print_left(FILE *out, const hf_entry *entry)
{
    if (entry->remaining_ms == HF_NEVER)
        fputs(entry->ttl_ms == HF_NEVER ? "never expires" : "with its connection", out);
    else
        cli_print_duration(out, entry->remaining_ms);
}

static void json_limit(struct cli_json *json, const hf_entry *entry)
{
    if (entry->limit != 0)
        cli_json_number(json, "limit", entry->limit);
    else
        cli_json_null(json, "limit");
}

void cli_json_entry(struct cli_json *json, const char *key, const hf_entry *entry)
{
    cli_json_open(json, key, '{');
    cli_json_text(json, "place", place_name(entry->place));
    if (entry->place == HF_PLACE_WAITING)
        cli_json_number(json, "position", (int64_t)entry->position);
    cli_json_text(json, "mode", mode_name(entry->mode));
    json_limit(json, entry);
    cli_json_text(json, "ticket", entry->ticket);
    cli_json_generation(json, "generation", entry->generation);
    cli_json_span(json, "ttl_ms", entry->ttl_ms);
    cli_json_number(json, "lock_delay_ms", entry->lock_delay_ms);
    cli_json_number(json, "age_ms", entry->age_ms);
    cli_json_span(json, "remaining_ms", entry->remaining_ms);
    cli_json_bool(json, "claimed", entry->claimed != 0);
    cli_json_bool(json, "cached", entry->cached != 0);
    cli_json_bytes(json, "host", entry->host, strlen(entry->host));
    cli_json_bytes(json, "user", entry->user, strlen(entry->user));
    cli_json_number(json, "pid", entry->pid);
    cli_json_bytes(json, "program", entry->program, strlen(entry->program));
    cli_json_bytes(json, "note", entry->note, strlen(entry->note));
    cli_json_close(json, '}');
}

static void json_entries(struct cli_json *json, const char *key, const struct cli_span *span,
                         bool waiting)
{
    cli_json_open(json, key, '[');
    for (size_t i = 0; i < span->count; i++) {
        const hf_entry *e = hf_view_entry(span->view, span->first + i);
        if ((e->place == HF_PLACE_WAITING) == waiting)
            cli_json_entry(json, NULL, e);
    }
    cli_json_close(json, ']');
}

void cli_json_lock_fields(struct cli_json *json, const char *name, size_t name_len,
                          const struct cli_span *span, bool with_queue)
{
    cli_json_bytes(json, "name", name, name_len);
    cli_json_bool(json, "free", span->count == 0);
    json_entries(json, "holders", span, false);
    if (with_queue)
        json_entries(json, "queue", span, true);
    else
        cli_json_null(json, "queue");
}

void cli_json_lock_object(struct cli_json *json, const char *name, size_t name_len,
                          const struct cli_span *span, bool with_queue)
{
    cli_json_open(json, NULL, '{');
    cli_json_lock_fields(json, name, name_len, span, with_queue);
    cli_json_close(json, '}');
}

void cli_json_lock(struct cli_json *json, const char *name, size_t name_len,
                   const struct cli_span *span, bool with_queue)
{
    cli_json_lock_object(json, name, name_len, span, with_queue);
    cli_json_end(json);
}

bool cli_print_holder(FILE *out, const hf_view *view)
{
    const hf_entry *e, *holder = NULL;
    size_t others = 0;
    char since[32];

    for (size_t i = 0; (e = hf_view_entry(view, i)) != NULL; i++) {
        if (e->place == HF_PLACE_WAITING)
            continue;
        others += holder != NULL;
        if (holder == NULL || e->age_ms > holder->age_ms)
            holder = e;
    }
    if (holder == NULL)
        return false;
    fputs(holder->place == HF_PLACE_LINGERING ? "kept closed after " : "held by ", out);
    cli_print_who(out, holder);
    if (holder->note[0] != '\0') {
        fputs(" (", out);
        cli_print_text(out, holder->note);
        putc(')', out);
    }
    cli_format_moment(-holder->age_ms, since, sizeof since);
    fprintf(out, ", since %s", since);
    if (others > 0)
        fprintf(out, ", and %zu more", others);
    return true;
}

int cli_fail_conflict(int status, const hf_error *err, hf_client *client, const char *name)
{
    hf_query query = {.size = sizeof query, .name = name, .name_len = strlen(name)};
    hf_view *view = NULL;
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);

    if (out != NULL && hf_inspect(client, &query, &view, NULL) == HF_OK &&
        !cli_print_holder(out, view) && hf_view_count(view) > 0)
        fprintf(out, "%zu wait%s for it", hf_view_count(view), hf_view_count(view) == 1 ? "s" : "");
    hf_view_free(view);
    bool known = out != NULL && fclose(out) == 0 && len > 0;
    cli_fail(status, "%s%s%s", err->text, known ? ": " : "", known ? text : "");
    free(text);
    return status;
}

int cli_look(hf_client *client, const char *name, hf_view **ret_view)
{
    hf_query query = {.size = sizeof query, .name = name, .name_len = strlen(name)};
    hf_error err = {0};

    if (hf_inspect(client, &query, ret_view, &err) != HF_OK)
        return cli_fail_error(&err);
    return 0;
}

/* Whoever is let in gets a larger number: one that is there is the present holder's. */
bool cli_value_is_live(const hf_view *view, uint64_t generation)
{
    const hf_entry *e;

    for (size_t i = 0; (e = hf_view_entry(view, i)) != NULL; i++) {
        if (e->place == HF_PLACE_INSIDE && e->generation == generation && generation != 0)
            return true;
    }
    return false;
}

const hf_entry *cli_find_ticket(const hf_view *view, const char *ticket)
{
    const hf_entry *e;

    for (size_t i = 0; (e = hf_view_entry(view, i)) != NULL; i++) {
        if (strcasecmp(e->ticket, ticket) == 0)
            return e;
    }
    return NULL;
}
