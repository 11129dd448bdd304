-- What holdfast keeps in its SQLite database. Schema version 1 (PRAGMA user_version), application id
-- 0x686f6c64 ("hold").
--
-- Times are milliseconds of CLOCK_BOOTTIME of the boot named in holdfast_meta, as the initial time
-- namespace counts them. Leases of another boot are void. To look inside use `holdfast ls` and `holdfast
-- show`; to take a lock away, `holdfast break`: rows changed by hand bypass the rules.

CREATE TABLE holdfast_meta (
    only    INTEGER PRIMARY KEY CHECK (only = 1),
    boot    TEXT NOT NULL,                 -- /proc/sys/kernel/random/boot_id; '' if it was not known
    created INTEGER NOT NULL               -- seconds since 1970
) STRICT;

-- One row per name that was ever asked for. It outlives the grant, for the sake of its generation;
-- what has been idle for long is removed by others' operations, or by `holdfast gc`.
CREATE TABLE holdfast_lock (
    id         INTEGER PRIMARY KEY,
    name       BLOB NOT NULL UNIQUE,
    generation INTEGER NOT NULL,           -- the last fencing token given
    last_seq   INTEGER NOT NULL,           -- the last place in the line given out
    waiting    INTEGER NOT NULL,           -- rows of holdfast_entry that wait
    retired    INTEGER NOT NULL,           -- rows of holdfast_retired
    touched    INTEGER NOT NULL            -- when it was last in use, ms since 1970, to the minute
) STRICT;

-- Who is inside and who waits. In the order of seq those inside come before those who wait, so that the
-- head of the line is found without looking at the rest of it.
CREATE TABLE holdfast_entry (
    lock       INTEGER NOT NULL,
    seq        INTEGER NOT NULL,           -- in the order in which they came
    ticket     BLOB NOT NULL,              -- 16 random bytes: the right to release
    place      INTEGER NOT NULL,           -- 1 waits, 2 inside, 3 gone but keeps the lock closed
    mode       INTEGER NOT NULL,           -- 0 exclusive, 1 shared
    room       INTEGER NOT NULL,           -- shared: at most so many; 0: no limit
    generation INTEGER NOT NULL,           -- the fencing token; 0 while waiting
    ttl        INTEGER NOT NULL,           -- 0: never expires once claimed
    delay      INTEGER NOT NULL,           -- lock-delay
    retire     INTEGER NOT NULL,           -- how long the ticket is remembered afterwards
    since      INTEGER NOT NULL,
    until      INTEGER,                    -- NULL: never
    lease      INTEGER,                    -- the span last given; NULL: never
    claimed    INTEGER NOT NULL,           -- the holder knows that it holds
    wake       BLOB,                       -- its client's socket in the .wake directory; NULL: it polls
    host       TEXT NOT NULL,
    user       TEXT NOT NULL,
    program    TEXT NOT NULL,
    pid        INTEGER NOT NULL,
    note       TEXT NOT NULL,
    PRIMARY KEY (lock, seq)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX holdfast_waiting_ticket ON holdfast_entry (lock, ticket) WHERE place = 1;
CREATE INDEX holdfast_waiting_until ON holdfast_entry (lock, until) WHERE place = 1;

-- Tickets that must not be let in again: a request of theirs may still be on its way.
CREATE TABLE holdfast_retired (
    lock   INTEGER NOT NULL,
    ticket BLOB NOT NULL,
    until  INTEGER NOT NULL,
    lease  INTEGER NOT NULL,
    PRIMARY KEY (lock, ticket)
) STRICT, WITHOUT ROWID;

CREATE INDEX holdfast_retired_until ON holdfast_retired (lock, until);

-- What came later, in the words that also add it to a database of before, while locks in it are held.
-- Programs of before go on with such a database.

-- 1 the holder wants to know when somebody waits, 2 it was told, 4 it has read or written the value,
-- 8 its client may keep it after its release, and numbers after its own belong to it.
ALTER TABLE holdfast_entry ADD COLUMN flags INTEGER NOT NULL DEFAULT 0;

-- The values beside locks. They stay when the lock's row is removed.
CREATE TABLE holdfast_value (
    name       BLOB NOT NULL PRIMARY KEY,
    generation INTEGER NOT NULL,           -- of the grant that wrote it; 0: nobody has
    nth        INTEGER NOT NULL,           -- counts the writes of one grant, from 1
    doubt      INTEGER NOT NULL,           -- a holder that had opened it vanished
    bytes      BLOB NOT NULL
) STRICT, WITHOUT ROWID;
