-- What the client asks besides calling the functions of operations.sql. A line "-- : name" begins each.

-- : hf__pg_learn_sql
-- What is there, of which version, and what the clock says. Fails where the tables or the functions are missing, or may not
-- be used.
SELECT version, public.holdfast_routines(), current_setting('transaction_isolation') <> 'read committed',
       (extract(epoch FROM clock_timestamp()) * 1000000.0)::bigint
  FROM public.holdfast_schema;

-- : hf__pg_location_sql
-- Where tables are, and what the role may do there: $1 is our schema.
WITH t AS (
    SELECT nspname FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace
     WHERE relname = 'holdfast_schema' AND relkind = 'r')
SELECT EXISTS (SELECT FROM t WHERE nspname = $1),
       (SELECT string_agg(nspname::text, ', ' ORDER BY nspname) FROM t WHERE nspname <> $1),
       (SELECT min(nspname::text) FROM t WHERE nspname <> $1),
       (SELECT has_schema_privilege(oid, 'create') FROM pg_namespace WHERE nspname = $1),
       (SELECT has_schema_privilege('public'::name, oid, 'create') FROM pg_namespace WHERE nspname = $1),
       has_database_privilege(current_database()::text, 'create'), current_user, current_database();

-- : hf__pg_inspect_sql
-- Who holds and who waits, from name $1 to below $2. No text depends on a setting: bytes are written in hex, instants
-- as numbers.
SELECT *, floor(extract(epoch FROM clock_timestamp()) * 1000.0)::bigint
  FROM (SELECT seq, encode(ticket, 'hex'), CASE WHEN lingering THEN 3 ELSE 2 END, shared, room, generation, ttl, delay,
               (extract(epoch FROM since) * 1000.0)::bigint,
               CASE WHEN until < 'infinity' THEN (extract(epoch FROM until) * 1000.0)::bigint END, lease, claimed,
               flags & 8 <> 0, encode(name, 'hex'), host, username, program, pid, note
          FROM public.holdfast_holder WHERE name >= $1 AND name < $2
        UNION ALL
        SELECT seq, encode(ticket, 'hex'), 1, shared, room, 0, ttl, delay,
               (extract(epoch FROM since) * 1000.0)::bigint, (extract(epoch FROM until) * 1000.0)::bigint, lease, false, false,
               encode(name, 'hex'), host, username, program, pid, note
          FROM public.holdfast_waiter WHERE name >= $1 AND name < $2) AS e
 ORDER BY 14, 1;

-- : hf__pg_trail_sql
-- The trail of the names from $1 to below $2, since $3 (milliseconds since 1970); the newest $4, NULL: all.
SELECT * FROM (
    SELECT encode(name, 'hex'), nth, floor(extract(epoch FROM at) * 1000.0)::bigint, what, shared, encode(ticket, 'hex'),
           generation, span, host, username, program, pid, note, cause
      FROM public.holdfast_history WHERE name >= $1 AND name < $2 AND extract(epoch FROM at) * 1000.0 >= $3::float8
     ORDER BY at DESC, nth DESC LIMIT $4) AS newest
 ORDER BY 1, 2;

-- : hf__pg_purge_sql
-- Locks that nobody has used for $1 milliseconds, 200 at most (HF__SQL_PURGE_BATCH). Rows that somebody works on are
-- passed over: they are not idle. What has run out but was never swept must not keep an idle lock alive. An operation
-- that began before we locked the row may have changed what the statement's snapshot shows as idle; then the row itself
-- was changed too, and FOR UPDATE sees it again by its new `touched`. Values stay, unless they are empty. A holder that had
-- opened one and vanished stays too, until somebody asks and finds the value in doubt.
WITH idle AS (
    SELECT name FROM public.holdfast_lock l
     WHERE touched <= clock_timestamp() - $1::float8 * interval '1 millisecond'
       AND NOT EXISTS (SELECT FROM public.holdfast_holder h WHERE h.name = l.name AND (h.until = 'infinity'
           OR h.flags & 4 <> 0 AND NOT h.lingering OR h.until + (h.delay + h.retire)::float8 * interval '1 millisecond' > clock_timestamp()))
       AND NOT EXISTS (SELECT FROM public.holdfast_waiter w WHERE w.name = l.name AND w.until > clock_timestamp())
       AND NOT EXISTS (SELECT FROM public.holdfast_retired r WHERE r.name = l.name AND r.until > clock_timestamp())
     LIMIT 200 FOR UPDATE SKIP LOCKED),
a AS (DELETE FROM public.holdfast_holder WHERE name IN (SELECT name FROM idle)),
b AS (DELETE FROM public.holdfast_waiter WHERE name IN (SELECT name FROM idle)),
c AS (DELETE FROM public.holdfast_retired WHERE name IN (SELECT name FROM idle)),
d AS (DELETE FROM public.holdfast_value WHERE name IN (SELECT name FROM idle) AND bytes = ''::bytea)
DELETE FROM public.holdfast_lock WHERE name IN (SELECT name FROM idle);

-- : hf__pg_purge_trail_sql
-- Trails of names that are gone, for who writes them.
DELETE FROM public.holdfast_history h WHERE at <= clock_timestamp() - $1::float8 * interval '1 millisecond'
    AND NOT EXISTS (SELECT FROM public.holdfast_lock l WHERE l.name = h.name);

-- : hf__pg_server_sql
SELECT current_setting('server_version'), pg_is_in_recovery(), current_setting('transaction_isolation'),
       current_setting('fsync'), current_setting('synchronous_commit'), current_setting('synchronous_standby_names'),
       current_setting('server_version_num')::bigint;

-- : hf__pg_rights_sql
-- The tables that the role may not use as it has to.
SELECT t, current_user
  FROM pg_catalog.unnest(ARRAY['public.holdfast_lock', 'public.holdfast_holder', 'public.holdfast_waiter',
                               'public.holdfast_retired', 'public.holdfast_value']) AS t
 WHERE NOT (has_table_privilege(to_regclass(t)::oid, 'select') AND has_table_privilege(to_regclass(t)::oid, 'insert')
       AND has_table_privilege(to_regclass(t)::oid, 'update') AND has_table_privilege(to_regclass(t)::oid, 'delete'));

-- : hf__pg_rows_sql
SELECT (SELECT count(*) FROM public.holdfast_lock), (SELECT count(*) FROM public.holdfast_holder),
       (SELECT count(*) FROM public.holdfast_waiter), (SELECT count(*) FROM public.holdfast_retired);

-- : hf__pg_sizes_sql
SELECT coalesce(sum(n_dead_tup), 0), pg_size_pretty(sum(pg_total_relation_size(relid::regclass))),
       coalesce(sum(n_dead_tup), 0) > 100000.0 AND coalesce(sum(n_dead_tup), 0) > 10.0 * coalesce(sum(n_live_tup), 0)
  FROM pg_stat_user_tables
 WHERE relid IN (to_regclass('public.holdfast_lock')::oid, to_regclass('public.holdfast_holder')::oid,
                 to_regclass('public.holdfast_waiter')::oid, to_regclass('public.holdfast_retired')::oid);
