-- What holdfast keeps in MariaDB or MySQL. Schema version 2; upgrade.sql brings tables of version 1 to it.
--
-- To look inside: SELECT * FROM holdfast_now; or `holdfast ls` and `holdfast show`. To take a lock away:
-- `holdfast break`. Rows changed by hand bypass the rules.
--
-- Least rights of an account that locks, in a database of its own:
--   GRANT SELECT, INSERT, UPDATE, DELETE, EXECUTE ON locks.* TO app;
-- It needs no right to create anything. `holdfast setup`, or whoever applies this text, needs CREATE, ALTER, DROP, INDEX,
-- CREATE VIEW and CREATE/ALTER ROUTINE as well.
--
-- Instants are SYSDATE(6) in UTC, cut to milliseconds; spans are milliseconds. The procedures keep the sql_mode and the
-- character set that they were created with: these.

SET SESSION sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION';
SET NAMES utf8mb4;

CREATE TABLE IF NOT EXISTS holdfast_schema (
    one_row TINYINT NOT NULL DEFAULT 1 PRIMARY KEY,
    version INT NOT NULL
) ENGINE = InnoDB;
INSERT INTO holdfast_schema (version) VALUES (2) ON DUPLICATE KEY UPDATE one_row = 1;

-- One row per name that was ever asked for. Whoever locks this row may touch the lock. It outlives the
-- grant, for the sake of its generation; `holdfast gc` removes what has been idle for long.
--
-- Most locks have one holder and no queue. Such a holder stands in this row, which makes taking and
-- releasing the lock one statement each; whoever else comes moves it to holdfast_holder first.
CREATE TABLE IF NOT EXISTS holdfast_lock (
    name       VARBINARY(512) NOT NULL PRIMARY KEY, -- compared as bytes
    generation BIGINT NOT NULL,                     -- the last fencing token given
    line       BIGINT NOT NULL,                     -- the next place in the line
    touched    DATETIME(6) NOT NULL,                -- the time of the last operation
    `before`   DATETIME(6) NOT NULL,                -- and of the one before: later means the clock went back
    inside     BINARY(16),                          -- the ticket of the one who holds it alone, exclusively,
                                                    -- zeros if nobody holds, waits or is remembered,
                                                    -- NULL if that is not known: see the others
    token      BIGINT,                              -- from here on as in holdfast_holder, if somebody is inside
    since      DATETIME(6),
    ttl        BIGINT,                              -- until: since + ttl
    retire     BIGINT,
    wake       VARCHAR(60) CHARACTER SET ascii,
    host       VARCHAR(255) CHARACTER SET utf8mb4,
    username   VARCHAR(255) CHARACTER SET utf8mb4,
    program    VARCHAR(255) CHARACTER SET utf8mb4,
    pid        BIGINT,
    note       VARBINARY(256)
) ENGINE = InnoDB;

-- Who holds what, since when, and why; all but those who stand in holdfast_lock. holdfast_now shows both.
CREATE TABLE IF NOT EXISTS holdfast_holder (
    name       VARBINARY(512) NOT NULL,
    ticket     BINARY(16) NOT NULL,                 -- random: the right to release
    seq        BIGINT NOT NULL,
    lingering  BOOLEAN NOT NULL,                    -- gone, but keeps the lock closed for its lock-delay
    shared     BOOLEAN NOT NULL,                    -- 0: exclusive
    room       BIGINT,                              -- shared: at most so many; NULL: no limit
    generation BIGINT NOT NULL,                     -- the fencing token
    ttl        BIGINT NOT NULL,                     -- 0: never expires once claimed
    delay      BIGINT NOT NULL,                     -- lock-delay
    retire     BIGINT NOT NULL,                     -- how long the ticket is remembered afterwards
    since      DATETIME(3) NOT NULL,
    until      DATETIME(3) NOT NULL,                -- 9999-12-31: never
    lease      BIGINT,                              -- the span last given; NULL: never
    claimed    BOOLEAN NOT NULL,                    -- the holder knows that it holds
    wake       VARCHAR(60) CHARACTER SET ascii,     -- its client's listener, "connection word"; NULL: it asks
    host       VARCHAR(255) CHARACTER SET utf8mb4 NOT NULL,
    username   VARCHAR(255) CHARACTER SET utf8mb4 NOT NULL,
    program    VARCHAR(255) CHARACTER SET utf8mb4 NOT NULL,
    pid        BIGINT NOT NULL,
    note       VARBINARY(256) NOT NULL,
    flags      INT NOT NULL DEFAULT 0,              -- 1: it wants to know when somebody waits, 2: it was told,
                                                    -- 4: it has read or written the value
    PRIMARY KEY (name, ticket),
    KEY holdfast_holder_wake (wake, claimed)
) ENGINE = InnoDB;

-- Who waits, in the order of seq.
CREATE TABLE IF NOT EXISTS holdfast_waiter (
    name       VARBINARY(512) NOT NULL,
    seq        BIGINT NOT NULL,
    ticket     BINARY(16) NOT NULL,
    shared     BOOLEAN NOT NULL,
    room       BIGINT,
    ttl        BIGINT NOT NULL,
    delay      BIGINT NOT NULL,
    retire     BIGINT NOT NULL,
    since      DATETIME(3) NOT NULL,
    until      DATETIME(3) NOT NULL,                -- its next sign of life is due
    lease      BIGINT NOT NULL,
    wake       VARCHAR(60) CHARACTER SET ascii,
    host       VARCHAR(255) CHARACTER SET utf8mb4 NOT NULL,
    username   VARCHAR(255) CHARACTER SET utf8mb4 NOT NULL,
    program    VARCHAR(255) CHARACTER SET utf8mb4 NOT NULL,
    pid        BIGINT NOT NULL,
    note       VARBINARY(256) NOT NULL,
    flags      INT NOT NULL DEFAULT 0,
    PRIMARY KEY (name, seq),
    UNIQUE KEY holdfast_waiter_ticket (name, ticket),
    KEY holdfast_waiter_until (name, until)
) ENGINE = InnoDB;

-- Tickets that must not be let in again: a request of theirs may still be on its way.
CREATE TABLE IF NOT EXISTS holdfast_retired (
    name   VARBINARY(512) NOT NULL,
    ticket BINARY(16) NOT NULL,
    until  DATETIME(3) NOT NULL,
    lease  BIGINT NOT NULL,
    PRIMARY KEY (name, ticket),
    KEY holdfast_retired_until (name, until)
) ENGINE = InnoDB;

-- The values beside locks. They stay when the lock's row is removed.
CREATE TABLE IF NOT EXISTS holdfast_value (
    name       VARBINARY(512) NOT NULL PRIMARY KEY,
    generation BIGINT NOT NULL,                     -- of the grant that wrote it; 0: nobody has
    nth        BIGINT NOT NULL,                     -- counts the writes of one grant, from 1
    doubt      BOOLEAN NOT NULL,                    -- a holder that had opened it vanished
    bytes      VARBINARY(1024) NOT NULL
) ENGINE = InnoDB;

-- Adds what came later to tables of before, while locks in them are held. Clients of before go on with such tables.
DELIMITER $$
DROP PROCEDURE IF EXISTS holdfast_extend $$
CREATE PROCEDURE holdfast_extend()
SQL SECURITY INVOKER
BEGIN
    IF NOT EXISTS (SELECT 1 FROM information_schema.columns
                   WHERE table_schema = DATABASE() AND table_name = 'holdfast_holder' AND column_name = 'flags') THEN
        ALTER TABLE holdfast_holder ADD COLUMN flags INT NOT NULL DEFAULT 0;
    END IF;
    IF NOT EXISTS (SELECT 1 FROM information_schema.columns
                   WHERE table_schema = DATABASE() AND table_name = 'holdfast_waiter' AND column_name = 'flags') THEN
        ALTER TABLE holdfast_waiter ADD COLUMN flags INT NOT NULL DEFAULT 0;
    END IF;
END $$
DELIMITER ;
CALL holdfast_extend();

-- For hold=session only: the row that is locked, and who has it. Rows of the second table are never
-- committed: they are there as long as the connection, for whoever looks with READ UNCOMMITTED.
CREATE TABLE IF NOT EXISTS holdfast_session (
    name VARBINARY(512) NOT NULL PRIMARY KEY
) ENGINE = InnoDB;
CREATE TABLE IF NOT EXISTS holdfast_session_holder (
    id         BIGINT NOT NULL PRIMARY KEY,         -- the connection's number; a counter would be locked by
                                                    -- INSERT ... SELECT, which NOWAIT refuses on MariaDB 11
    name       VARBINARY(512) NOT NULL,
    generation BIGINT NOT NULL DEFAULT 0,
    connection BIGINT UNSIGNED NOT NULL,            -- CONNECTION_ID() of the holder
    since      DATETIME(6) NOT NULL,
    about      VARCHAR(1200) CHARACTER SET ascii NOT NULL, -- ticket, mode, ttl, pid, host, user, program, note
    KEY holdfast_session_holder_connection (connection)
) ENGINE = InnoDB;

-- For people. Times are UTC.
CREATE OR REPLACE SQL SECURITY INVOKER VIEW holdfast_now AS
    SELECT CONVERT(name USING utf8mb4) AS name, IF(lingering, 'closed', 'holds') AS state,
           IF(shared, 'shared', 'exclusive') AS mode, since, until, generation, host, username, program, pid,
           CONVERT(note USING utf8mb4) AS note, LOWER(HEX(ticket)) AS ticket, seq
      FROM holdfast_holder WHERE until > UTC_TIMESTAMP(3)
    UNION ALL
    SELECT CONVERT(name USING utf8mb4), 'holds', 'exclusive', since, since + INTERVAL ttl * 1000 MICROSECOND,
           token, host, username, program, pid, CONVERT(note USING utf8mb4), LOWER(HEX(inside)), 0
      FROM holdfast_lock WHERE inside <> x'00000000000000000000000000000000'
       AND since + INTERVAL ttl * 1000 MICROSECOND > UTC_TIMESTAMP(3)
    UNION ALL
    SELECT CONVERT(name USING utf8mb4), 'waits', IF(shared, 'shared', 'exclusive'), since, until, NULL, host,
           username, program, pid, CONVERT(note USING utf8mb4), LOWER(HEX(ticket)), seq
      FROM holdfast_waiter WHERE until > UTC_TIMESTAMP(3)
    ORDER BY 1, 13;
