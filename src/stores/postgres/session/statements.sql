-- The statements of hold=session and hold=advisory. A line "-- : name" begins each.
--
-- The key of a name is ('x' || encode(substr(sha256(name), 1, 8), 'hex'))::bit(64)::bigint, the first 8 bytes of its
-- SHA-256.

-- : hf__pg_session_settings_sql
-- What a session begins with. What a DBA allows other sessions is not meant for one that waits or keeps a lock; the last
-- of these limits is known from PostgreSQL 17 on.
SET search_path = pg_catalog, pg_temp;
SET client_connection_check_interval = '1s';
SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET idle_session_timeout = 0;
SELECT set_config('transaction_timeout', '0', false) WHERE current_setting('transaction_timeout', true) IS NOT NULL;
SET tcp_keepalives_idle = 10;
SET tcp_keepalives_interval = 3;
SET tcp_keepalives_count = 3;
SET plan_cache_mode = force_generic_plan;
-- The sequence is not logged, else every 32nd lock would wait for the disk. It begins anew after a crash, and on a standby
-- that was promoted; no session survives that, so each looks first whether the next token would be lower than any instant,
-- and then lifts the sequence above all that were given: to the time. One at a time: nobody has taken a token from below.
SELECT pg_advisory_xact_lock(('x' || encode(substr(sha256('public.holdfast_token'::bytea), 1, 8), 'hex'))::bit(64)::bigint # 3::bigint)
 WHERE coalesce(pg_sequence_last_value('public.holdfast_token'::regclass), 0) < 1000000000000000;
SELECT setval('public.holdfast_token'::regclass, (extract(epoch FROM clock_timestamp()) * 1000000.0)::bigint)
 WHERE coalesce(pg_sequence_last_value('public.holdfast_token'::regclass), 0) < 1000000000000000;

-- : hf__pg_prepare_advisory_sql
-- hold=advisory: the lock, then the token, in this order. The server's lock manager is fair: who comes later does not pass a
-- waiting writer. The token t is shown to others as a lock with two keys that are its halves: they are seen in pg_locks at
-- once, and cost a tenth of what a setting costs. Somebody else's lock may be in the way; then it is not shown.
PREPARE holdfast_wait_x(bytea) AS
    SELECT l, t, pg_try_advisory_lock_shared((t >> 32)::int, (t & 4294967295)::bit(32)::int)
      FROM (SELECT pg_advisory_lock(('x' || encode(substr(sha256($1), 1, 8), 'hex'))::bit(64)::bigint) AS l,
                   nextval('public.holdfast_token'::regclass) AS t OFFSET 0) AS n;
PREPARE holdfast_wait_s(bytea) AS
    SELECT l, t, pg_try_advisory_lock_shared((t >> 32)::int, (t & 4294967295)::bit(32)::int)
      FROM (SELECT pg_advisory_lock_shared(('x' || encode(substr(sha256($1), 1, 8), 'hex'))::bit(64)::bigint) AS l,
                   nextval('public.holdfast_token'::regclass) AS t OFFSET 0) AS n;
PREPARE holdfast_try_x(bytea) AS
    SELECT 1, t, pg_try_advisory_lock_shared((t >> 32)::int, (t & 4294967295)::bit(32)::int)
      FROM (SELECT CASE WHEN pg_try_advisory_lock(('x' || encode(substr(sha256($1), 1, 8), 'hex'))::bit(64)::bigint)
                   THEN nextval('public.holdfast_token'::regclass) END AS t OFFSET 0) AS n;
PREPARE holdfast_try_s(bytea) AS
    SELECT 1, t, pg_try_advisory_lock_shared((t >> 32)::int, (t & 4294967295)::bit(32)::int)
      FROM (SELECT CASE WHEN pg_try_advisory_lock_shared(('x' || encode(substr(sha256($1), 1, 8), 'hex'))::bit(64)::bigint)
                   THEN nextval('public.holdfast_token'::regclass) END AS t OFFSET 0) AS n;
PREPARE holdfast_leave AS SELECT pg_advisory_unlock_all();

-- : hf__pg_prepare_row_sql
-- hold=session: a row lock, inside a transaction that stays open. Row locks are not fair: readers pass a waiting FOR UPDATE.
-- So everybody passes a door first, an advisory lock (key # 1) that is given back when the row is ours, and puts up a mark
-- (key # 2) by which others see who is inside. A door that is closed divides by zero, which ends the transaction and the
-- statements that follow.
PREPARE holdfast_door_wait(bytea) AS
    SELECT 1, CASE WHEN pg_advisory_lock(('x' || encode(substr(sha256($1), 1, 8), 'hex'))::bit(64)::bigint # 1::bigint)
                        IS NOT NULL THEN 1 ELSE 1 / (SELECT 0) END;
PREPARE holdfast_door_try(bytea) AS
    SELECT 1, CASE WHEN pg_try_advisory_lock(('x' || encode(substr(sha256($1), 1, 8), 'hex'))::bit(64)::bigint # 1::bigint)
                        THEN 1 ELSE 1 / (SELECT 0) END;
PREPARE holdfast_row_wait_x(bytea) AS SELECT 1, 1 FROM public.holdfast_name WHERE name = $1 FOR UPDATE;
PREPARE holdfast_row_wait_s(bytea) AS SELECT 1, 1 FROM public.holdfast_name WHERE name = $1 FOR SHARE;
PREPARE holdfast_row_try_x(bytea) AS SELECT 1, 1 FROM public.holdfast_name WHERE name = $1 FOR UPDATE NOWAIT;
PREPARE holdfast_row_try_s(bytea) AS SELECT 1, 1 FROM public.holdfast_name WHERE name = $1 FOR SHARE NOWAIT;
PREPARE holdfast_inside(bytea) AS
    SELECT m, t, d, pg_try_advisory_lock_shared((t >> 32)::int, (t & 4294967295)::bit(32)::int)
      FROM (SELECT pg_advisory_lock_shared(('x' || encode(substr(sha256($1), 1, 8), 'hex'))::bit(64)::bigint # 2::bigint) AS m,
                   pg_advisory_unlock(('x' || encode(substr(sha256($1), 1, 8), 'hex'))::bit(64)::bigint # 1::bigint) AS d,
                   nextval('public.holdfast_token'::regclass) AS t OFFSET 0) AS n;
PREPARE holdfast_leave AS SELECT pg_advisory_unlock_all();

-- : hf__pg_register_sql
-- So that others can tell what a key stands for.
INSERT INTO public.holdfast_name (name, key)
    VALUES ($1, ('x' || encode(substr(sha256($1), 1, 8), 'hex'))::bit(64)::bigint) ON CONFLICT DO NOTHING;

-- : hf__pg_cancel_sql
-- Our own process, $1: a later one of the same number began later than $2, and is left alone.
SELECT pg_cancel_backend(pid) FROM pg_stat_activity
 WHERE pid = $1 AND (extract(epoch FROM backend_start) * 1000000.0)::bigint <= $2;

-- : hf__pg_kill_sql
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
 WHERE pid = $1 AND (extract(epoch FROM backend_start) * 1000000.0)::bigint <= $2;

-- : hf__pg_session_inspect_sql
-- Who holds and who waits, from name $1 to below $2: the server's own lock table, and the comment at the head of the
-- statement that took the lock, which the server still shows. Who is inside comes first, then who came first.
SELECT encode(n.name, 'hex'), bool_or(l.granted AND l.kind <> 1), min(a.query),
       min((extract(epoch FROM clock_timestamp()
           - CASE WHEN a.state = 'active' THEN a.query_start ELSE a.state_change END) * 1000.0)::bigint), min(g.generation)
  FROM (SELECT pid, granted, waitstart, kind, ((classid::bigint << 32) | objid::bigint) # kind AS key
          FROM pg_locks, pg_catalog.unnest(ARRAY[0, 1, 2]::bigint[]) AS kind
         WHERE locktype = 'advisory' AND objsubid = 1
           AND database = (SELECT oid FROM pg_database WHERE datname = current_database())) AS l
  JOIN public.holdfast_name n ON n.key = l.key
  JOIN pg_stat_activity a ON a.pid = l.pid AND a.query LIKE '/*holdfast %'
  LEFT JOIN (SELECT pid, (classid::bigint << 32) | objid::bigint AS generation FROM pg_locks
              WHERE locktype = 'advisory' AND objsubid = 2) AS g ON g.pid = l.pid
 WHERE n.name >= $1 AND n.name < $2
 GROUP BY n.name, l.pid
 ORDER BY 1, 2 DESC,
       min(CASE WHEN NOT l.granted THEN pg_catalog.cardinality(pg_blocking_pids(l.pid)) END) NULLS FIRST,
       min(l.waitstart), min(a.query_start);

-- : hf__pg_purge_names_sql
-- Names that nobody holds or waits for, 200 at most. Those whose row or key is locked are passed over; one that is wanted
-- just now is registered again. Tokens do not depend on them.
WITH free AS (
    SELECT name FROM public.holdfast_name
     WHERE key <> ALL (ARRAY(SELECT ((classid::bigint << 32) | objid::bigint) # kind
                               FROM pg_locks, pg_catalog.unnest(ARRAY[0, 1, 2]::bigint[]) AS kind
                              WHERE locktype = 'advisory' AND objsubid = 1
                                AND database = (SELECT oid FROM pg_database WHERE datname = current_database())))
     LIMIT 200 FOR UPDATE SKIP LOCKED)
DELETE FROM public.holdfast_name WHERE name IN (SELECT name FROM free);
