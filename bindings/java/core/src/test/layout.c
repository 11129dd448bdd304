/* Prints the offsets that Scratch.java and Views.java repeat: NAME VALUE on each line. */
#include <holdfast.h>
#include <stdio.h>

#define AT(name, type, field) printf(name " %zu\n", offsetof(type, field))
#define SIZE(name, value)     printf(name " %zu\n", (size_t)(value))

int main(void)
{
    AT("ERROR_CODE", hf_error, code);
    AT("ERROR_RETRIABLE", hf_error, retriable);
    AT("ERROR_STORE_CODE", hf_error, store_code);
    AT("ERROR_MAY_HOLD", hf_error, may_hold_ms);
    AT("ERROR_TEXT", hf_error, text);
    SIZE("ERROR_TEXT_SIZE", sizeof((hf_error *)0)->text);
    SIZE("ERROR_SIZE", sizeof(hf_error));
    AT("OPTIONS_MODE", hf_options, mode);
    AT("OPTIONS_LIMIT", hf_options, limit);
    AT("OPTIONS_TTL", hf_options, ttl_ms);
    AT("OPTIONS_WAIT", hf_options, wait_ms);
    AT("OPTIONS_LOCK_DELAY", hf_options, lock_delay_ms);
    AT("OPTIONS_MAX_HOLD", hf_options, max_hold_ms);
    AT("OPTIONS_OWNER", hf_options, owner);
    AT("OPTIONS_BY_HAND", hf_options, by_hand);
    AT("OPTIONS_CONFIRMED", hf_options, confirmed);
    AT("OPTIONS_NOTE", hf_options, note);
    AT("OPTIONS_PATIENCE", hf_options, patience_ms);
    SIZE("OPTIONS_SIZE", offsetof(hf_options, patience_ms) + sizeof(int64_t));
    AT("EVENT_KIND", hf_event, kind);
    AT("EVENT_TAG", hf_event, tag);
    AT("EVENT_LOCK", hf_event, lock);
    AT("EVENT_ERR", hf_event, err);
    SIZE("EVENT_SIZE", sizeof(hf_event));
    AT("CLIENT_OPTIONS_PROGRAM", hf_client_options, program);
    AT("CLIENT_OPTIONS_MODULES", hf_client_options, modules);
    SIZE("CLIENT_OPTIONS_SIZE", offsetof(hf_client_options, modules) + sizeof(char *));
    AT("QUERY_NAME", hf_query, name);
    AT("QUERY_PREFIX", hf_query, prefix);
    AT("QUERY_OLDER_THAN", hf_query, older_than_ms);
    SIZE("QUERY_SIZE", offsetof(hf_query, older_than_ms) + sizeof(int64_t));
    AT("ENTRY_NAME_LEN", hf_entry, name_len);
    AT("ENTRY_PLACE", hf_entry, place);
    AT("ENTRY_POSITION", hf_entry, position);
    AT("ENTRY_MODE", hf_entry, mode);
    AT("ENTRY_LIMIT", hf_entry, limit);
    AT("ENTRY_TICKET", hf_entry, ticket);
    AT("ENTRY_GENERATION", hf_entry, generation);
    AT("ENTRY_TTL", hf_entry, ttl_ms);
    AT("ENTRY_LOCK_DELAY", hf_entry, lock_delay_ms);
    AT("ENTRY_AGE", hf_entry, age_ms);
    AT("ENTRY_REMAINING", hf_entry, remaining_ms);
    AT("ENTRY_CLAIMED", hf_entry, claimed);
    AT("ENTRY_HOST", hf_entry, host);
    AT("ENTRY_USER", hf_entry, user);
    AT("ENTRY_PROGRAM", hf_entry, program);
    AT("ENTRY_NOTE", hf_entry, note);
    AT("ENTRY_PID", hf_entry, pid);
    AT("STORE_CAPABILITIES", hf_store_info, capabilities);
    AT("STORE_OPTIONS", hf_store_info, options);
    AT("STORE_DDL", hf_store_info, ddl);
    AT("STORE_MISSING", hf_store_info, missing);
    return 0;
}
