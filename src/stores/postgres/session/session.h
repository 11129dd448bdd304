/* hold=session and hold=advisory: a lock of the server that lives as long as a connection. */
#ifndef HF_STORES_POSTGRES_SESSION_SESSION_H
#define HF_STORES_POSTGRES_SESSION_SESSION_H

#include "stores/postgres/postgres.h"

extern const struct hf__store_type hf__pg_session_type;
extern const char hf__pg_session_settings_sql[], hf__pg_prepare_advisory_sql[],
    hf__pg_prepare_row_sql[], hf__pg_register_sql[], hf__pg_cancel_sql[], hf__pg_kill_sql[],
    hf__pg_session_inspect_sql[], hf__pg_purge_names_sql[]; /* statements.sql */

int hf__pg_session_init(struct hf__pg *s, hf_error *err);

/* inspect.c */
int hf__pg_session_inspect(struct hf__store *store, const struct hf__search *search,
                           int64_t deadline_ns, hf_error *err);

#endif
