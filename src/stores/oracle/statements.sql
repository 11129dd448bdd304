-- What the client asks besides calling the package of rules.sql. A line "-- : name" begins each.
--
-- Numbers come as texts: they keep all their digits whatever the driver takes them for. The clock is a scalar subquery,
-- so that it is read once.

-- : hf__ora_inspect_sql
-- Who holds and who waits, from one name to below another. The first column is what all SQL stores show, as words.
SELECT seq || ' ' || RAWTOHEX(ticket) || ' ' || (2 + lingering) || ' ' || shared || ' ' || NVL(room, 0) || ' '
       || generation || ' ' || ttl || ' ' || delay || ' ' || since_ms || ' ' || until_ms || ' ' || NVL(lease, -1) || ' '
       || claimed, RAWTOHEX(name), seq, host, username, program, '' || pid, RAWTOHEX(note),
       '' || (SELECT EXTRACT(DAY FROM d) * 86400000000 + EXTRACT(HOUR FROM d) * 3600000000
                  + EXTRACT(MINUTE FROM d) * 60000000 + TRUNC(EXTRACT(SECOND FROM d) * 1000000)
                  FROM (SELECT SYSTIMESTAMP - TIMESTAMP '1970-01-01 00:00:00 +00:00' AS d FROM DUAL) t)
  FROM holdfast_holder WHERE name >= HEXTORAW(?) AND name < HEXTORAW(?)
UNION ALL
SELECT seq || ' ' || RAWTOHEX(ticket) || ' 1 ' || shared || ' ' || NVL(room, 0) || ' 0 ' || ttl || ' ' || delay || ' '
       || since_ms || ' ' || until_ms || ' ' || lease || ' 0', RAWTOHEX(name), seq, host, username, program, '' || pid,
       RAWTOHEX(note),
       '' || (SELECT EXTRACT(DAY FROM d) * 86400000000 + EXTRACT(HOUR FROM d) * 3600000000
                  + EXTRACT(MINUTE FROM d) * 60000000 + TRUNC(EXTRACT(SECOND FROM d) * 1000000)
                  FROM (SELECT SYSTIMESTAMP - TIMESTAMP '1970-01-01 00:00:00 +00:00' AS d FROM DUAL) t)
  FROM holdfast_waiter WHERE name >= HEXTORAW(?) AND name < HEXTORAW(?)
 ORDER BY 2, 3;

-- : hf__ora_clock_sql
SELECT '' || (SELECT EXTRACT(DAY FROM d) * 86400000000 + EXTRACT(HOUR FROM d) * 3600000000
                  + EXTRACT(MINUTE FROM d) * 60000000 + TRUNC(EXTRACT(SECOND FROM d) * 1000000)
                  FROM (SELECT SYSTIMESTAMP - TIMESTAMP '1970-01-01 00:00:00 +00:00' AS d FROM DUAL) t)
  FROM DUAL;

-- : hf__ora_idle_sql
-- Locks from one name to below another that nobody has used since an instant, 200 at most (HF__SQL_PURGE_BATCH). What has
-- run out by another, given three times, but was never swept must not keep an idle lock alive.
SELECT RAWTOHEX(name) FROM holdfast_lock l
 WHERE name >= HEXTORAW(?) AND name < HEXTORAW(?) AND touched_us <= ?
   AND NOT EXISTS (SELECT 1 FROM holdfast_holder h WHERE h.name = l.name
        AND (h.lease IS NULL OR h.until_ms + h.delay + h.retire > ?))
   AND NOT EXISTS (SELECT 1 FROM holdfast_waiter w WHERE w.name = l.name AND w.until_ms > ?)
   AND NOT EXISTS (SELECT 1 FROM holdfast_retired r WHERE r.name = l.name AND r.until_ms > ?)
   AND ROWNUM <= 200;

-- : hf__ora_rows_sql
SELECT (SELECT COUNT(*) FROM holdfast_lock), (SELECT COUNT(*) FROM holdfast_holder),
       (SELECT COUNT(*) FROM holdfast_waiter), (SELECT COUNT(*) FROM holdfast_retired)
  FROM DUAL;
