/* The statements of hold=session and hold=advisory.
 *
 * advisory: SELECT pg_advisory_lock(K), nextval('holdfast_token'), in this order. The server's lock
 * manager is fair: who comes later does not pass a waiting writer.
 *
 * session: a row lock, inside a transaction that stays open. Row locks are not fair: readers pass a
 * waiting FOR UPDATE. So everybody passes a door first, an advisory lock D = K # 1 that is given
 * back when the row is ours, and puts up a mark M = K # 2 by which others see who is inside.
 *
 * They are prepared once in each session. A bid is then an EXECUTE, whose text says who asks, and
 * costs the server a third of the whole statement. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "stores/postgres/hold.h"

#include "base/banned.h"

#define KEY   HF__PG_KEY("$1")
#define TOKEN "nextval('public.holdfast_token'::regclass)"
/* Shows the generation t to others, as a lock with two keys that are its halves: they are seen in
 * pg_locks at once, and cost a tenth of what a setting costs. Somebody else's lock may be in the
 * way; then it is not shown. */
#define SHOW_TOKEN \
    "pg_try_advisory_lock_shared((t >> 32)::int, (t & 4294967295)::bit(32)::int) FROM (SELECT "

#define ADVISORY_WAIT(name, lock)                                                    \
    "PREPARE holdfast_wait_" name "(bytea) AS SELECT l, t, " SHOW_TOKEN lock "(" KEY \
    ") AS l, " TOKEN " AS t OFFSET 0) AS n;"
#define ADVISORY_TRY(name, lock)                                                                 \
    "PREPARE holdfast_try_" name "(bytea) AS SELECT 1, t, " SHOW_TOKEN "CASE WHEN " lock "(" KEY \
    ") THEN " TOKEN " END AS t OFFSET 0) AS n;"

/* A door that is closed divides by zero, which ends the transaction and the statements that
 * follow. */
#define DOOR(name, lock, is_open)                                                \
    "PREPARE holdfast_door_" name "(bytea) AS SELECT 1, CASE WHEN " lock "(" KEY \
    " # 1::bigint) " is_open " THEN 1 ELSE 1 / (SELECT 0) END;"
#define ROW(name, strength)                                            \
    "PREPARE holdfast_row_" name                                       \
    "(bytea) AS SELECT 1, 1 FROM public.holdfast_name WHERE name = $1" \
    " FOR " strength ";"
#define INSIDE                                                                                     \
    "PREPARE holdfast_inside(bytea) AS SELECT m, t, d, " SHOW_TOKEN "pg_advisory_lock_shared(" KEY \
    " # 2::bigint) AS m, pg_advisory_unlock(" KEY " # 1::bigint) AS d, " TOKEN                     \
    " AS t OFFSET 0) AS n;"

#define LEAVE "PREPARE holdfast_leave AS SELECT pg_advisory_unlock_all();"

static const char advisory[] = ADVISORY_WAIT("x", "pg_advisory_lock")
    ADVISORY_WAIT("s", "pg_advisory_lock_shared") ADVISORY_TRY("x", "pg_try_advisory_lock")
        ADVISORY_TRY("s", "pg_try_advisory_lock_shared") LEAVE;

static const char session[] = DOOR("wait", "pg_advisory_lock", "IS NOT NULL")
    DOOR("try", "pg_try_advisory_lock", "") ROW("wait_x", "UPDATE") ROW("wait_s", "SHARE")
        ROW("try_x", "UPDATE NOWAIT") ROW("try_s", "SHARE NOWAIT") INSIDE LEAVE;

/* A pooler gives out a process id of its own making: then the first statement divides by zero, and
 * nothing is left in a session that is not ours. */
#define OWN HF__PG_SAFE_PATH "; SELECT 1 / (pg_backend_pid() = %d)::int;"
/* What a DBA allows other sessions is not meant for one that waits or keeps a lock; the last of
 * these limits is known from PostgreSQL 17 on. */
#define SETTINGS                                                                                  \
    "SET search_path = pg_catalog, pg_temp; SET client_connection_check_interval = '1s'; SET "    \
    "statement_timeout = 0; SET lock_timeout = "                                                  \
    "0; SET idle_in_transaction_session_timeout = 0; SET idle_session_timeout = 0; SELECT "       \
    "set_config('transaction_timeout', '0', false) WHERE current_setting('transaction_timeout', " \
    "true) IS NOT NULL; SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 3; SET "      \
    "tcp_keepalives_count = 3; SET plan_cache_mode = force_generic_plan;"

/* The sequence is not logged, else every 32nd lock would wait for the disk. It begins anew after a
 * crash, and on a standby that was promoted; no session survives that, so each looks first whether
 * the next token would be lower than any instant, and then lifts the sequence above all that were
 * given: to the time. One at a time: nobody has taken a token from below. */
#define BEGINS_ANEW \
    "coalesce(pg_sequence_last_value('public.holdfast_token'::regclass), 0) < 1000000000000000"
#define LIFT                                                                                 \
    "SELECT pg_advisory_xact_lock(" HF__PG_KEY(                                              \
        "'public.holdfast_token'::bytea") " # 3::bigint) WHERE " BEGINS_ANEW ";"             \
                                          "SELECT setval('public.holdfast_token'::regclass," \
                                          " (extract(epoch FROM clock_timestamp()) *"        \
                                          " 1000000.0)::bigint)"                             \
                                          " WHERE " BEGINS_ANEW ";"

char *hf__pg_session_sql(const struct hf__pg *s, int pid)
{
    char *sql = NULL;

    return asprintf(&sql,
                    OWN SETTINGS LIFT "%s SELECT pg_backend_pid(), (extract(epoch FROM "
                                      "clock_timestamp()) * 1000000.0)::bigint",
                    pid, s->set.hold == HF__PG_ADVISORY ? advisory : session) < 0
               ? NULL
               : sql;
}

/* What a backslash in a literal means is a matter of settings: there is none. */
#define NAME "decode('%s', 'hex')"
char *hf__pg_hold_sql(const struct hf__pg *s, const struct hf__bid *bid)
{
    char hex[2 * HF_NAME_MAX + 1], about[HF__ABOUT_MAX], *sql = NULL;
    const char *how = bid->queue ? "wait" : "try";
    char mode = bid->mode == HF_SHARED ? 's' : 'x';
    int len;

    *hf__pg_put_hex(hex, bid->name, bid->name_len) = '\0';
    hf__about_format(bid, bid->who != NULL ? bid->who : s->base.host->self, about);
    if (s->set.hold == HF__PG_ADVISORY)
        len = asprintf(&sql, "%s EXECUTE holdfast_%s_%c(" NAME ")", about, how, mode, hex);
    else
        len =
            asprintf(&sql,
                     "%s BEGIN ISOLATION LEVEL READ COMMITTED; EXECUTE holdfast_door_%s(" NAME ");"
                     " EXECUTE holdfast_row_%s_%c(" NAME "); EXECUTE holdfast_inside(" NAME ")",
                     about, how, hex, how, mode, hex, hex);
    return len < 0 ? NULL : sql;
}

const char *hf__pg_unhold_sql(const struct hf__pg *s)
{
    return s->set.hold == HF__PG_ADVISORY ? "EXECUTE holdfast_leave"
                                          : "COMMIT; EXECUTE holdfast_leave";
}
