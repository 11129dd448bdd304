-- What holdfast keeps in an Oracle database. Schema version 1. For SQL*Plus and the like: a statement ends with
-- a line "/".
--
-- To look inside: SELECT * FROM holdfast_now; or `holdfast ls` and `holdfast show`. To take a lock away:
-- `holdfast break`. Rows changed by hand bypass the rules.
--
-- Least rights of an account that locks, if the tables belong to a user LOCKS (name it in the URL):
--   GRANT SELECT, INSERT, UPDATE, DELETE ON locks.holdfast_lock TO app;  -- and _holder, _waiter, _retired
--   GRANT SELECT ON locks.holdfast_schema TO app;
--   GRANT EXECUTE ON locks.holdfast_rules TO app;
-- It needs no right to create anything. `holdfast setup`, or whoever applies this text, needs CREATE SESSION, CREATE
-- TABLE, CREATE VIEW, CREATE PROCEDURE and a quota.
--
-- Instants are SYSTIMESTAMP in UTC as milliseconds (_ms) or microseconds (_us) since 1970, spans are
-- milliseconds; holdfast_now shows them as timestamps. Names, tickets and notes are bytes.

CREATE TABLE holdfast_schema (
    one_row NUMBER(1) NOT NULL,
    version NUMBER(9) NOT NULL,
    CONSTRAINT holdfast_schema_key PRIMARY KEY (one_row)
)
/
INSERT INTO holdfast_schema (one_row, version) VALUES (1, 1)
/

-- One row per name that was ever asked for. Whoever locks this row may touch the lock. It outlives the
-- grant, for the sake of its generation; `holdfast gc` removes what has been idle for long.
CREATE TABLE holdfast_lock (
    name       RAW(512) NOT NULL,
    generation NUMBER(19) NOT NULL,  -- the last fencing token given
    line       NUMBER(19) NOT NULL,  -- operations so far: the next place in the line
    touched_us NUMBER(19) NOT NULL,  -- the time of the last operation; later than now: the clock went back
    CONSTRAINT holdfast_lock_key PRIMARY KEY (name)
)
/

-- Who holds what, since when, and why.
CREATE TABLE holdfast_holder (
    name       RAW(512) NOT NULL,
    ticket     RAW(16) NOT NULL,     -- random: the right to release
    seq        NUMBER(19) NOT NULL,
    lingering  NUMBER(1) NOT NULL,   -- 1: gone, but keeps the lock closed for its lock-delay
    shared     NUMBER(1) NOT NULL,   -- 0: exclusive
    room       NUMBER(19),           -- shared: at most so many; NULL: no limit
    generation NUMBER(19) NOT NULL,  -- the fencing token
    ttl        NUMBER(19) NOT NULL,  -- 0: never expires once claimed
    delay      NUMBER(19) NOT NULL,  -- lock-delay
    retire     NUMBER(19) NOT NULL,  -- how long the ticket is remembered afterwards
    since_ms   NUMBER(19) NOT NULL,
    until_ms   NUMBER(19) NOT NULL,  -- 9223372036854775807: never
    lease      NUMBER(19),           -- the span last given; NULL: never
    claimed    NUMBER(1) NOT NULL,   -- 1: the holder knows that it holds
    host       VARCHAR2(255),
    username   VARCHAR2(255),
    program    VARCHAR2(255),
    pid        NUMBER(19) NOT NULL,
    note       RAW(256),
    CONSTRAINT holdfast_holder_key PRIMARY KEY (name, ticket)
)
/

-- Who waits, in the order of seq.
CREATE TABLE holdfast_waiter (
    name       RAW(512) NOT NULL,
    seq        NUMBER(19) NOT NULL,
    ticket     RAW(16) NOT NULL,
    shared     NUMBER(1) NOT NULL,
    room       NUMBER(19),
    ttl        NUMBER(19) NOT NULL,
    delay      NUMBER(19) NOT NULL,
    retire     NUMBER(19) NOT NULL,
    since_ms   NUMBER(19) NOT NULL,
    until_ms   NUMBER(19) NOT NULL,  -- its next sign of life is due
    lease      NUMBER(19) NOT NULL,
    host       VARCHAR2(255),
    username   VARCHAR2(255),
    program    VARCHAR2(255),
    pid        NUMBER(19) NOT NULL,
    note       RAW(256),
    CONSTRAINT holdfast_waiter_key PRIMARY KEY (name, seq),
    CONSTRAINT holdfast_waiter_ticket UNIQUE (name, ticket)
)
/

-- Tickets that must not be let in again: a request of theirs may still be on its way.
CREATE TABLE holdfast_retired (
    name     RAW(512) NOT NULL,
    ticket   RAW(16) NOT NULL,
    until_ms NUMBER(19) NOT NULL,
    lease    NUMBER(19) NOT NULL,
    CONSTRAINT holdfast_retired_key PRIMARY KEY (name, ticket)
)
/
