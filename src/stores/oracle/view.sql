-- For people: who holds, who waits, since when. Times are UTC.
CREATE OR REPLACE VIEW holdfast_now AS
    SELECT UTL_RAW.CAST_TO_VARCHAR2(name) AS name,
           CASE lingering WHEN 1 THEN 'closed' ELSE 'holds' END AS state,
           CASE shared WHEN 1 THEN 'shared' ELSE 'exclusive' END AS held_as,
           TIMESTAMP '1970-01-01 00:00:00 +00:00' + NUMTODSINTERVAL(since_ms / 1000, 'SECOND') AS since,
           TIMESTAMP '1970-01-01 00:00:00 +00:00'
               + NUMTODSINTERVAL(LEAST(until_ms, 253402214400000) / 1000, 'SECOND') AS until,
           generation, host, username, program, pid, UTL_RAW.CAST_TO_VARCHAR2(note) AS note,
           RAWTOHEX(ticket) AS ticket, seq
      FROM holdfast_holder
    UNION ALL
    SELECT UTL_RAW.CAST_TO_VARCHAR2(name), 'waits', CASE shared WHEN 1 THEN 'shared' ELSE 'exclusive' END,
           TIMESTAMP '1970-01-01 00:00:00 +00:00' + NUMTODSINTERVAL(since_ms / 1000, 'SECOND'),
           TIMESTAMP '1970-01-01 00:00:00 +00:00'
               + NUMTODSINTERVAL(LEAST(until_ms, 253402214400000) / 1000, 'SECOND'),
           NULL, host, username, program, pid, UTL_RAW.CAST_TO_VARCHAR2(note), RAWTOHEX(ticket), seq
      FROM holdfast_waiter
/
