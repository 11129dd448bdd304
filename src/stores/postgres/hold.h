/* hold=session and hold=advisory: a lock of the server that lives as long as a connection. */
#ifndef HF_STORES_POSTGRES_HOLD_H
#define HF_STORES_POSTGRES_HOLD_H

#include "stores/postgres/postgres.h"

extern const struct hf__store_type hf_store_type_v1, hf__pg_hold_type;

int hf__pg_hold_init(struct hf__pg *s, hf_error *err);

/* hold_text.c: what is asked. The statements of a bid name the lock by a literal, and begin with a
 * comment that says who asks, which is what others see in pg_stat_activity. For the caller to free;
 * NULL: no memory. */
char *hf__pg_hold_sql(const struct hf__pg *s, const struct hf__bid *bid);
const char *hf__pg_unhold_sql(const struct hf__pg *s);

/* What a session needs first, in one round trip: its settings and prepared statements. The last
 * answer is what the server calls it, and the time. `pid` is what the connection calls it; where
 * that differs it is refused with "22012". For the caller to free; NULL: no memory. */
char *hf__pg_session_sql(const struct hf__pg *s, int pid);

/* hold_look.c */
int hf__pg_hold_inspect(struct hf__store *store, const struct hf__search *search,
                        int64_t deadline_ns, hf_error *err);

/* The key of a name given as `bytes`, an SQL expression, as SQL. */
#define HF__PG_KEY(bytes) "('x' || encode(substr(sha256(" bytes "), 1, 8), 'hex'))::bit(64)::bigint"

#endif
