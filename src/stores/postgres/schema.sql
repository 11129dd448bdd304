-- What holdfast keeps in PostgreSQL. Schema version 1.
--
-- To look inside: SELECT * FROM public.holdfast_now; or `holdfast ls` and `holdfast show`. To take a lock away:
-- `holdfast break`. Rows changed by hand bypass the rules.
--
-- Least rights of a role that locks (and USAGE on the schema, which everybody has on public):
--   GRANT SELECT, INSERT, UPDATE, DELETE ON public.holdfast_lock, public.holdfast_holder, public.holdfast_waiter,
--       public.holdfast_retired, public.holdfast_value TO app;
--   GRANT SELECT ON public.holdfast_schema, public.holdfast_now TO app;
--   GRANT USAGE ON SEQUENCE public.holdfast_line TO app;
--   and for history=N: GRANT SELECT, INSERT, DELETE ON public.holdfast_history TO app;
--   and for hold=session, hold=advisory: GRANT SELECT, INSERT, UPDATE, DELETE ON public.holdfast_name TO app;
--   GRANT USAGE, UPDATE ON SEQUENCE public.holdfast_token TO app;
-- and EXECUTE on the functions holdfast_*, which everybody has unless it was revoked. It needs no right to create
-- anything: whoever applies this text does.
--
-- Instants are the server's clock_timestamp(), cut to milliseconds; spans are milliseconds.

CREATE TABLE IF NOT EXISTS public.holdfast_schema (
    one_row boolean PRIMARY KEY DEFAULT true CHECK (one_row),
    version integer NOT NULL
);
INSERT INTO public.holdfast_schema (version) VALUES (1) ON CONFLICT (one_row) DO NOTHING;

-- One row per name that was ever asked for. Whoever locks this row may touch the lock. It outlives the
-- grant, for the sake of its generation; `holdfast gc` removes what has been idle for long.
CREATE TABLE IF NOT EXISTS public.holdfast_lock (
    name       bytea PRIMARY KEY,          -- compared as bytes
    generation bigint NOT NULL,            -- the last fencing token given
    touched    timestamptz NOT NULL,       -- the time of the last operation
    before     timestamptz NOT NULL,       -- and of the one before: later than that means the clock went back
    state      smallint NOT NULL           -- 1: nobody inside, nobody waits, no ticket is remembered;
                                           -- 2: the same, but for one inside; 0: the rows must be looked at
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

-- The order in which they came.
CREATE SEQUENCE IF NOT EXISTS public.holdfast_line;

-- Who holds what, since when, and why.
CREATE TABLE IF NOT EXISTS public.holdfast_holder (
    name       bytea NOT NULL,
    ticket     bytea NOT NULL,             -- 16 random bytes: the right to release
    seq        bigint NOT NULL,
    lingering  boolean NOT NULL,           -- gone, but keeps the lock closed for its lock-delay
    shared     boolean NOT NULL,           -- false: exclusive
    room       bigint,                     -- shared: at most so many; NULL: no limit
    generation bigint NOT NULL,            -- the fencing token
    ttl        bigint NOT NULL,            -- 0: never expires once claimed
    delay      bigint NOT NULL,            -- lock-delay
    retire     bigint NOT NULL,            -- how long the ticket is remembered afterwards
    since      timestamptz NOT NULL,
    until      timestamptz NOT NULL,       -- 'infinity': never
    lease      bigint,                     -- the span last given; NULL: never
    claimed    boolean NOT NULL,           -- the holder knows that it holds
    wake       text,                       -- the channel on which its client listens; NULL: it asks
    host       text NOT NULL,
    username   text NOT NULL,
    program    text NOT NULL,
    pid        bigint NOT NULL,
    note       text NOT NULL,
    PRIMARY KEY (name, ticket)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);

-- Who waits, in the order of seq.
CREATE TABLE IF NOT EXISTS public.holdfast_waiter (
    name       bytea NOT NULL,
    seq        bigint NOT NULL,
    ticket     bytea NOT NULL,
    shared     boolean NOT NULL,
    room       bigint,
    ttl        bigint NOT NULL,
    delay      bigint NOT NULL,
    retire     bigint NOT NULL,
    since      timestamptz NOT NULL,
    until      timestamptz NOT NULL,       -- its next sign of life is due
    lease      bigint NOT NULL,
    wake       text,
    host       text NOT NULL,
    username   text NOT NULL,
    program    text NOT NULL,
    pid        bigint NOT NULL,
    note       text NOT NULL,
    PRIMARY KEY (name, seq),
    UNIQUE (name, ticket)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX IF NOT EXISTS holdfast_waiter_until ON public.holdfast_waiter (name, until);

-- Tickets that must not be let in again: a request of theirs may still be on its way.
CREATE TABLE IF NOT EXISTS public.holdfast_retired (
    name   bytea NOT NULL,
    ticket bytea NOT NULL,
    until  timestamptz NOT NULL,
    lease  bigint NOT NULL,
    PRIMARY KEY (name, ticket)
);
CREATE INDEX IF NOT EXISTS holdfast_retired_until ON public.holdfast_retired (name, until);

-- What came later, in the words that also add it to tables of before, while locks in them are held. Clients of before go
-- on with such tables.

-- 1: the holder wants to know when somebody waits, 2: it was told, 4: it has read or written the value,
-- 8: its client may keep it after its release, and numbers after its own belong to it.
DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['public.holdfast_holder', 'public.holdfast_waiter'] LOOP
        IF NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = to_regclass(t)::oid AND attname = 'flags'::name) THEN
            EXECUTE 'ALTER TABLE ' || t || ' ADD COLUMN flags integer NOT NULL DEFAULT 0';
        END IF;
    END LOOP;
END $$;

-- The values beside locks. They stay when the lock's row is removed.
CREATE TABLE IF NOT EXISTS public.holdfast_value (
    name       bytea PRIMARY KEY,
    generation bigint NOT NULL,            -- of the grant that wrote it; 0: nobody has
    nth        bigint NOT NULL,            -- counts the writes of one grant, from 1
    doubt      boolean NOT NULL,           -- a holder that had opened it vanished
    bytes      bytea NOT NULL
);

-- The trail, written by clients whose URL says history=N (and by nobody else). About the last N rows of each name stay; they
-- go with the row of the lock, when such a client purges.
CREATE TABLE IF NOT EXISTS public.holdfast_history (
    name       bytea NOT NULL,
    nth        bigint NOT NULL,            -- counts those of a name
    at         timestamptz NOT NULL,
    what       smallint NOT NULL,          -- 1 granted, 2 released, 3 lost, 4 broken, 5 withdrawn, 6 vanished
    shared     boolean NOT NULL,
    ticket     bytea NOT NULL,
    generation bigint NOT NULL,            -- the fencing token; 0: it was not let in
    span       bigint NOT NULL,            -- for so many milliseconds it had held, or waited
    host       text NOT NULL,
    username   text NOT NULL,
    program    text NOT NULL,
    pid        bigint NOT NULL,
    note       text NOT NULL,
    cause      text NOT NULL,
    PRIMARY KEY (name, nth)
);

-- For hold=session and hold=advisory only. The key is that of the server's advisory locks; session mode locks
-- the row itself. `holdfast gc` with such a URL removes those that nobody holds or waits for.
CREATE TABLE IF NOT EXISTS public.holdfast_name (
    name bytea PRIMARY KEY,
    key  bigint NOT NULL UNIQUE            -- the first 8 bytes of the name's SHA-256
);

-- Their generations, which no rollback takes back. Not logged where the server can do that (15), so that taking
-- one never waits for the disk; after a crash it begins anew, and whoever comes first lifts it to the time in
-- microseconds, which is above all that were given.
DO $$
BEGIN
    IF to_regclass('public.holdfast_token') IS NULL THEN
        EXECUTE CASE WHEN current_setting('server_version_num')::integer < 150000 THEN 'CREATE SEQUENCE public.holdfast_token'
                ELSE 'CREATE UNLOGGED SEQUENCE public.holdfast_token' END;
    END IF;
END $$;

-- For people.
CREATE OR REPLACE VIEW public.holdfast_now AS
    SELECT encode(name, 'escape') AS name, CASE WHEN lingering THEN 'closed' ELSE 'holds' END AS state,
           CASE WHEN shared THEN 'shared' ELSE 'exclusive' END AS mode, since, until, generation,
           host, username, program, pid, note, encode(ticket, 'hex') AS ticket, seq
      FROM public.holdfast_holder WHERE until > clock_timestamp()
    UNION ALL
    SELECT encode(name, 'escape'), 'waits', CASE WHEN shared THEN 'shared' ELSE 'exclusive' END, since, until,
           NULL, host, username, program, pid, note, encode(ticket, 'hex'), seq
      FROM public.holdfast_waiter WHERE until > clock_timestamp()
    ORDER BY 1, 13;
