/* Holders and waiters, as `ls`, `show` and `break` tell of them. */
#ifndef CLI_ENTRY_H
#define CLI_ENTRY_H

#include "json.h"

/* Entries of one lock: a run in a view. */
struct cli_span {
    const hf_view *view;
    size_t first, count;
};

/* The lock that begins at entry `first`. */
struct cli_span cli_span_at(const hf_view *view, size_t first);

/* How many of them are at this place. */
size_t cli_span_count(const struct cli_span *span, hf_place place);

/* "exclusive", "shared", "shared, at most 3". */
void cli_print_mode(FILE *out, const hf_entry *entry);

/* "ann@host, pid 12, backup". */
void cli_print_who(FILE *out, const hf_entry *entry);

/* "held by ann@host, pid 12, backup (note), since 2026-11-15T10:20:30Z, and 2 more", of the one inside
 * for longest; or "kept closed after ...". False, and nothing: nobody is inside. */
bool cli_print_holder(FILE *out, const hf_view *view);

/* Why a lock was lost, in a word for scripts; the sentences of HF_CAUSES are for people. */
const char *cli_cause_word(hf_cause cause);

/* How long it has left: "12s", or "never expires". */
void cli_print_left(FILE *out, const hf_entry *entry);

/* One holder or waiter as an object. */
void cli_json_entry(struct cli_json *json, const char *key, const hf_entry *entry);

/* A lock: name, holders and queue; null for a queue that was not asked for. As the fields of an object that
 * is open, as an object, and as an object on a line of its own. */
void cli_json_lock_fields(struct cli_json *json, const char *name, size_t name_len,
                          const struct cli_span *span, bool with_queue);
void cli_json_lock_object(struct cli_json *json, const char *name, size_t name_len,
                          const struct cli_span *span, bool with_queue);
void cli_json_lock(struct cli_json *json, const char *name, size_t name_len,
                   const struct cli_span *span, bool with_queue);

/* The sentence of a bid that was refused or timed out, with who holds the lock: "...: held by
 * ann@host, pid 12, backup, since 2026-11-15T10:20:30Z". Gives `status`. */
int cli_fail_conflict(int status, const hf_error *err, hf_client *client, const char *name);

/* Looks for one name. 0 with a view to free, or an exit status after a sentence. */
int cli_look(hf_client *client, const char *name, hf_view **ret_view);

/* Whether the grant of this token is one of those inside: a value that it has written is the present
 * holder's. */
bool cli_value_is_live(const hf_view *view, uint64_t generation);

/* The entry with this ticket, or NULL. */
const hf_entry *cli_find_ticket(const hf_view *view, const char *ticket);

#endif
