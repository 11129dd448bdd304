-- What the client asks besides calling the procedures of operations.sql. A line "-- : name" begins each. ? is a parameter
-- of a prepared statement; ?1 and ?2 are replaced by what is given (text.c).

-- : hf__my_take_sql
-- A lock that nobody holds or waits for is taken by one statement: see quick.c. The last parameter is when it is too late:
-- see holdfast_check_time.
UPDATE holdfast_lock
   SET touched = SYSDATE(6),
       generation = LAST_INSERT_ID(GREATEST(generation + 1, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', touched))),
       inside = ?, token = generation, since = touched, ttl = ?, retire = ?, wake = ?, host = ?, username = ?,
       program = ?, pid = ?, note = ?
 WHERE name = ? AND touched <= SYSDATE(6) AND inside = x'00000000000000000000000000000000'
   AND TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6)) <= ?;

-- : hf__my_free_sql
-- And released by another. A lease runs out at a whole millisecond, so its last one is left to the rules.
UPDATE holdfast_lock SET touched = SYSDATE(6), inside = x'00000000000000000000000000000000'
 WHERE name = ? AND touched <= SYSDATE(6) AND inside = ?
   AND since + INTERVAL (ttl - 1) * 1000 MICROSECOND > SYSDATE(6);

-- : hf__my_inspect_sql
-- Who holds, who holds alone, and who waits, from name ?1 to below ?2. Instants are milliseconds since 1970.
SELECT seq, HEX(ticket), IF(lingering, 3, 2), shared, room, generation, ttl, delay,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', since) DIV 1000,
       IF(lease IS NULL AND NOT lingering, NULL, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', until) DIV 1000), lease, claimed, flags & 8,
       name, host, username, program, pid, note,
       (SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6)) DIV 1000)
  FROM holdfast_holder WHERE name >= ?1 AND name < ?2
UNION ALL
SELECT 0, HEX(inside), 2, 0, NULL, token, ttl, 0,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', since) DIV 1000,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', since) DIV 1000 + ttl, ttl, 1, 0,
       name, host, username, program, pid, note,
       (SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6)) DIV 1000)
  FROM holdfast_lock WHERE name >= ?1 AND name < ?2 AND inside <> x'00000000000000000000000000000000'
UNION ALL
SELECT seq, HEX(ticket), 1, shared, room, 0, ttl, delay,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', since) DIV 1000,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', until) DIV 1000, lease, 0, 0,
       name, host, username, program, pid, note,
       (SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6)) DIV 1000)
  FROM holdfast_waiter WHERE name >= ?1 AND name < ?2
 ORDER BY name, 1;

-- : hf__my_idle_sql
-- Locks that nobody has used for ?1 milliseconds and for which ?2 is true; ?3 is how many, or how they are locked. What
-- has run out but was never swept must not keep an idle lock alive; but a holder that had opened the value stays until
-- somebody asks and finds it in doubt.
SELECT HEX(name) FROM holdfast_lock l
 WHERE ?2 AND touched <= SYSDATE(6) - INTERVAL ?1 * 1000 MICROSECOND
   AND (inside IS NULL OR inside = x'00000000000000000000000000000000'
        OR since + INTERVAL (ttl + retire) * 1000 MICROSECOND <= SYSDATE(6))
   AND NOT EXISTS (SELECT 1 FROM holdfast_holder h WHERE h.name = l.name
        AND (h.lease IS NULL OR (h.flags & 4 AND NOT h.lingering) OR h.until + INTERVAL (h.delay + h.retire) * 1000 MICROSECOND > SYSDATE(6)))
   AND NOT EXISTS (SELECT 1 FROM holdfast_waiter w WHERE w.name = l.name AND w.until > SYSDATE(6))
   AND NOT EXISTS (SELECT 1 FROM holdfast_retired r WHERE r.name = l.name AND r.until > SYSDATE(6))
 ?3;

-- : hf__my_created_sql
-- How many of the tables, the view and the procedures are there.
SELECT (SELECT COUNT(*) FROM information_schema.tables
         WHERE table_schema = DATABASE() AND table_name LIKE 'holdfast\\_%')
     + (SELECT COUNT(*) FROM information_schema.routines
         WHERE routine_schema = DATABASE() AND routine_name LIKE 'holdfast\\_%');

-- : hf__my_counter_sql
SELECT COUNT(*) FROM information_schema.columns
 WHERE table_schema = DATABASE() AND table_name = 'holdfast_session_holder' AND extra LIKE '%auto_increment%';

-- : hf__my_server_sql
SELECT VERSION(), @@global.read_only, @@innodb_lock_wait_timeout, @@innodb_flush_log_at_trx_commit,
       @@global.binlog_format, @@log_bin, CURRENT_USER(), DATABASE(), @@global.innodb_lock_wait_timeout;

-- : hf__my_clock_sql
-- The clock, the zone, and whether the server runs with sysdate-is-now.
SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6)), @@global.time_zone,
       SYSDATE(6) = NOW(6) AND SLEEP(0.002) = 0 AND SYSDATE(6) = NOW(6);

-- : hf__my_rows_sql
SELECT (SELECT COUNT(*) FROM holdfast_lock),
       (SELECT COUNT(*) FROM holdfast_holder)
           + (SELECT COUNT(*) FROM holdfast_lock WHERE inside <> x'00000000000000000000000000000000'),
       (SELECT COUNT(*) FROM holdfast_waiter), (SELECT COUNT(*) FROM holdfast_retired),
       (SELECT COALESCE(SUM(data_length + index_length), 0) DIV 1024 FROM information_schema.tables
         WHERE table_schema = DATABASE() AND table_name LIKE 'holdfast\\_%');
