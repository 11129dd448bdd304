-- The statements of hold=session: see session.c. A line "-- : name" begins each; ?1 and so on are replaced by what is given
-- (text.c).

-- : hf__my_session_settings_sql
-- Signs of life keep the session. MariaDB alone can also end idle transactions and long statements; these keep a lock.
SET innodb_lock_wait_timeout = 1, wait_timeout = 30 /*M! , max_statement_time = 0, idle_transaction_timeout = 0,
    idle_write_transaction_timeout = 0, idle_readonly_transaction_timeout = 0 */;

-- : hf__my_register_sql
-- The row of name ?1, without a lock on the index where it is there already.
INSERT IGNORE INTO holdfast_session (name)
    SELECT x FROM (SELECT ?1 AS x) n WHERE NOT EXISTS (SELECT 1 FROM holdfast_session WHERE name = ?1);

-- : hf__my_row_sql
-- The lock on name ?4, by who says ?1, on connection ?2; ?3 is another condition, ?5 how it is locked.
?1 INSERT INTO holdfast_session_holder (id, name, about, connection, since)
    SELECT ?2, name, '?1', ?2, SYSDATE(6) FROM holdfast_session WHERE ?3 name = ?4 ?5;

-- : hf__my_token_sql
-- The next generation of name ?1, which the server's LAST_INSERT_ID brings back.
INSERT INTO holdfast_lock (name, generation, line, touched, `before`)
    VALUES (?1, LAST_INSERT_ID(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6))), 1, SYSDATE(6), '1970-01-01')
    ON DUPLICATE KEY UPDATE `before` = touched, touched = SYSDATE(6), generation = LAST_INSERT_ID(GREATEST(generation + 1,
        TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6))));

-- : hf__my_waiters_sql
-- ?1 is for how long, in milliseconds. Whoever is past the door asks for the row, again and again; then who has waited
-- longest. MySQL knows whole seconds only: within one of them the bidders' own clocks decide, which they have written
-- behind the statement.
SELECT UNHEX(SUBSTRING_INDEX(SUBSTRING_INDEX(info, 'name = x''', -1), '''', 1)), info, NULL, CAST(?1 AS SIGNED), 0
  FROM information_schema.processlist WHERE info LIKE '/*holdfast %holdfast %'
 ORDER BY info NOT LIKE '% INSERT INTO %', ?1 DESC,
       CAST(SUBSTRING_INDEX(SUBSTRING_INDEX(info, ') -- at ', -1), ' ', 1) AS UNSIGNED);

-- : hf__my_holders_sql
SELECT name, about, generation, TIMESTAMPDIFF(MICROSECOND, since, SYSDATE(6)) DIV 1000, 1
  FROM holdfast_session_holder ORDER BY since, id;
