/* The statements of hold=session and hold=advisory.
 *
 * advisory: SELECT pg_advisory_lock(K), nextval('holdfast_token'), in this order. The server's lock manager is
 * fair: who comes later does not pass a waiting writer.
 *
 * session: a row lock, inside a transaction that stays open. Row locks are not fair: readers pass a
 * waiting FOR UPDATE. So everybody passes a door first, an advisory lock D = K # 1 that is given
 * back when the row is ours, and puts up a mark M = K # 2 by which others see who is inside. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "stores/postgres/hold.h"

#include "util/banned.h"

#define BYTES "'\\x%s'::bytea"
#define TOKEN "nextval('holdfast_token')"
/* Shows the generation t to others, as a lock with two keys that are its halves: they are seen in
 * pg_locks at once, and cost a tenth of what a setting costs. Somebody else's lock may be in the
 * way; then it is not shown. */
#define SHOW_TOKEN \
    "pg_try_advisory_lock_shared((t >> 32)::int, (t & 4294967295)::bit(32)::int) FROM (SELECT "
/* A door that is closed divides by zero, which ends the transaction and the statements that follow.
 */
#define SESSION                                                                              \
    "BEGIN ISOLATION LEVEL READ COMMITTED; SELECT 1, CASE WHEN %s(" HF__PG_KEY(              \
        BYTES) " # 1) %s"                                                                    \
               " THEN 1 ELSE 1 / (SELECT 0) END; SELECT 1, 1 FROM holdfast_name WHERE name " \
               "= " BYTES " FOR %s%s; SELECT 1, 1 FROM pg_advisory_lock_shared(" HF__PG_KEY( \
                   BYTES) " # 2),"                                                           \
                          " pg_advisory_unlock(" HF__PG_KEY(                                 \
                              BYTES) " # 1); SELECT 1, t, " SHOW_TOKEN TOKEN                 \
                                     " AS t OFFSET 0) AS n"

static void put_hex(const char *bytes, size_t len, char *out)
{
    for (size_t i = 0; i < len; i++)
        snprintf(out + 2 * i, 3, "%02x", (unsigned char)bytes[i]);
    out[2 * len] = '\0';
}

/* Literals are written with standard_conforming_strings, the server's default and ours. */
static int print_statements(char **ret_sql, const struct hf__pg *s, const struct hf__bid *bid,
                            const char *about, const char *hex)
{
    bool shared = bid->mode == HF_SHARED, wait = bid->queue;

    if (s->set.hold == HF__PG_ADVISORY && wait)
        return asprintf(ret_sql,
                        "%s SELECT l, t, " SHOW_TOKEN
                        "pg_advisory_lock%s(" HF__PG_KEY(BYTES) ") AS l, " TOKEN
                                                                " AS t OFFSET 0) AS n",
                        about, shared ? "_shared" : "", hex);
    if (s->set.hold == HF__PG_ADVISORY)
        return asprintf(ret_sql,
                        "%s SELECT 1, t, " SHOW_TOKEN
                        "CASE WHEN pg_try_advisory_lock%s(" HF__PG_KEY(
                            BYTES) ") THEN " TOKEN " END AS t OFFSET 0) AS n",
                        about, shared ? "_shared" : "", hex);
    return asprintf(ret_sql, "%s " SESSION, about,
                    wait ? "pg_advisory_lock" : "pg_try_advisory_lock", hex,
                    wait ? "IS NOT NULL" : "", hex, shared ? "SHARE" : "UPDATE",
                    wait ? "" : " NOWAIT", hex, hex);
}

char *hf__pg_hold_sql(const struct hf__pg *s, const struct hf__bid *bid)
{
    char hex[2 * HF_NAME_MAX + 1], about[HF__ABOUT_MAX];
    char *sql = NULL;

    put_hex(bid->name, bid->name_len, hex);
    hf__about_format(bid, bid->who != NULL ? bid->who : s->base.host->self, about);
    return print_statements(&sql, s, bid, about, hex) < 0 ? NULL : sql;
}

const char *hf__pg_unhold_sql(const struct hf__pg *s)
{
    return s->set.hold == HF__PG_ADVISORY ? "SELECT pg_advisory_unlock_all()"
                                          : "COMMIT; SELECT pg_advisory_unlock_all()";
}
