-- The doorman's rules (src/doorman/doorman.c) in PL/pgSQL: what the operations share.
--
-- Every operation locks the row of its name first, in one upsert, which makes all others that want the
-- same name wait until the commit; the clock is read after that. In READ COMMITTED each later statement
-- sees what the one before us has committed.
--
-- These are called by the functions of operations.sql, whose search_path has the system's schema alone. What is
-- not the system's has its schema, and values have the types that the system's own operators and functions take
-- (1000.0, float8, regclass).

-- The version of these functions, and of those of operations.sql: HF__PG_RULES. A client uses none of a lower one. What
-- a client of an older one calls stays as it was, with one argument less: so it goes on.
CREATE OR REPLACE FUNCTION public.holdfast_routines() RETURNS integer LANGUAGE sql IMMUTABLE AS $$
    SELECT 5
$$;

-- Clients of before ask for this, and want it to be 2.
CREATE OR REPLACE FUNCTION public.holdfast_version() RETURNS integer LANGUAGE sql IMMUTABLE AS $$
    SELECT 2
$$;

CREATE OR REPLACE FUNCTION public.holdfast_own_lease(ttl bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN ttl = 0 THEN 5000 ELSE least(greatest(ttl, 1000), 10000) END
$$;

-- The lease of a grant its bidder may not know of.
CREATE OR REPLACE FUNCTION public.holdfast_provisional_lease(ttl bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN ttl = 0 THEN 5000 ELSE least(ttl, 10000) END
$$;

-- STABLE, as the arithmetic of timestamptz is: else it would not be inlined.
CREATE OR REPLACE FUNCTION public.holdfast_after(moment timestamptz, span bigint) RETURNS timestamptz
LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN span IS NULL THEN 'infinity' ELSE moment + span::float8 * interval '1 millisecond' END
$$;

CREATE OR REPLACE FUNCTION public.holdfast_span(later timestamptz, moment timestamptz) RETURNS bigint
LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN later = 'infinity' THEN NULL ELSE (extract(epoch FROM later - moment) * 1000.0)::bigint END
$$;

CREATE OR REPLACE FUNCTION public.holdfast_next_generation(last bigint, moment timestamptz) RETURNS bigint
LANGUAGE sql STABLE AS $$
    SELECT greatest(last + 1, (extract(epoch FROM moment) * 1000000.0)::bigint)
$$;

-- The serialization point. `touched` is the time of this operation.
--
-- Where nobody is in anybody's way an operation knows what it will leave behind, and takes the short way: if
-- the state is as it `was`, and the clock did not go back, the state `becomes` what it expects, and a grant
-- has its generation. In every other case the state is 0, and the operation looks at the rows.
--
-- Nobody waits for the answer after `latest` (microseconds since 1970; NULL: no matter when), and has said that the store
-- holds nothing more. A request may have been late before it was read, or wait here for others: then nothing is done.
CREATE OR REPLACE FUNCTION public.holdfast_enter(a_name bytea, was integer, becomes integer, latest bigint)
RETURNS public.holdfast_lock LANGUAGE plpgsql AS $$
DECLARE
    l public.holdfast_lock;
    patience bigint := latest - (extract(epoch FROM clock_timestamp()) * 1000000.0)::bigint;
BEGIN
    IF patience > 0 THEN
        PERFORM set_config('lock_timeout', (patience / 1000 + 1)::text, true);
    ELSIF patience <= 0 THEN
        RAISE EXCEPTION 'the request came too late' USING ERRCODE = 'HF002';
    END IF;
    INSERT INTO public.holdfast_lock AS k (name, generation, touched, before, state)
        VALUES (a_name, 0, clock_timestamp(), '-infinity', 0)
        ON CONFLICT (name) DO UPDATE SET touched = clock_timestamp(), before = k.touched,
            state = CASE WHEN k.state = was AND k.touched <= clock_timestamp() THEN becomes ELSE 0 END,
            generation = CASE WHEN k.state = was AND k.touched <= clock_timestamp() AND becomes > was
                THEN public.holdfast_next_generation(k.generation, clock_timestamp()) ELSE k.generation END
        RETURNING * INTO l;
    -- The short ways read nothing that another one might have changed: they do with any isolation.
    IF l.state = 0 AND current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'holdfast needs READ COMMITTED' USING ERRCODE = 'HF001';
    END IF;
    IF (extract(epoch FROM l.touched) * 1000000.0)::bigint > latest THEN
        RAISE EXCEPTION 'the turn of the request came too late' USING ERRCODE = 'HF002';
    END IF;
    RETURN l;
END $$;

-- It was not as expected: the rows must be looked at.
CREATE OR REPLACE FUNCTION public.holdfast_look(INOUT l public.holdfast_lock) LANGUAGE plpgsql AS $$
BEGIN
    IF l.state <> 0 THEN
        UPDATE public.holdfast_lock SET state = 0 WHERE name = l.name;
        l.state := 0;
    END IF;
END $$;

-- Somebody left: the next operation may take the short way if nothing is left.
CREATE OR REPLACE FUNCTION public.holdfast_settle(l public.holdfast_lock, now timestamptz) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE public.holdfast_lock SET state = 1 WHERE name = l.name
        AND NOT EXISTS (SELECT FROM public.holdfast_waiter WHERE name = l.name)
        AND NOT EXISTS (SELECT FROM public.holdfast_holder WHERE name = l.name)
        AND NOT EXISTS (SELECT FROM public.holdfast_retired WHERE name = l.name AND until > now);
END $$;

-- Remembers a ticket, and forgets those whose time has come.
CREATE OR REPLACE FUNCTION public.holdfast_retire(a_name bytea, a_ticket bytea, from_when timestamptz, span bigint,
                                           now timestamptz) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF span <= 0 OR public.holdfast_after(from_when, span) <= now THEN
        RETURN;
    END IF;
    DELETE FROM public.holdfast_retired WHERE name = a_name AND until <= now;
    INSERT INTO public.holdfast_retired (name, ticket, until, lease)
        VALUES (a_name, a_ticket, public.holdfast_after(from_when, span), span)
        ON CONFLICT (name, ticket) DO UPDATE SET until = EXCLUDED.until, lease = EXCLUDED.lease;
END $$;

-- The clock went back: what lies further ahead than the span last given is cut to that span.
CREATE OR REPLACE FUNCTION public.holdfast_cut(l public.holdfast_lock, now timestamptz) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM public.holdfast_retired WHERE name = l.name AND until <= date_trunc('milliseconds', l.before);
    UPDATE public.holdfast_retired SET until = public.holdfast_after(now, lease)
        WHERE name = l.name AND until > public.holdfast_after(now, lease);
    UPDATE public.holdfast_holder SET until = public.holdfast_after(now, lease)
        WHERE name = l.name AND until > public.holdfast_after(now, lease) AND until < 'infinity';
    UPDATE public.holdfast_waiter SET until = public.holdfast_after(now, lease)
        WHERE name = l.name AND until > public.holdfast_after(now, lease);
END $$;

-- Numbers up to this one belong to somebody. NULL: none.
CREATE OR REPLACE FUNCTION public.holdfast_give_numbers(INOUT l public.holdfast_lock, last bigint) LANGUAGE plpgsql AS $$
BEGIN
    IF last > l.generation THEN
        l.generation := last;
        UPDATE public.holdfast_lock SET generation = last WHERE name = l.name;
    END IF;
END $$;

-- A holder's end that it did not announce leaves the value in doubt, if it had opened that; and a cached one may have used
-- each number that belonged to it.
CREATE OR REPLACE FUNCTION public.holdfast_note_end(INOUT l public.holdfast_lock, h public.holdfast_holder)
LANGUAGE plpgsql AS $$
BEGIN
    IF NOT h.lingering AND h.flags & 8 <> 0 THEN
        l := public.holdfast_give_numbers(l, h.generation + 1048576);
    END IF;
    IF NOT h.lingering AND h.flags & 4 <> 0 THEN
        INSERT INTO public.holdfast_value AS v VALUES (h.name, 0, 0, true, '')
            ON CONFLICT (name) DO UPDATE SET doubt = true;
    END IF;
END $$;

-- Whether this client wants a trail: it has said "N who" in the same statement. `who` is for breaks.
CREATE OR REPLACE FUNCTION public.holdfast_tells() RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT coalesce(current_setting('holdfast.history', true), '') <> ''
$$;

-- Writes down what became of a bid that had held or waited since then. What: see public.holdfast_history. Rows that are too
-- many go a quarter of N at a time.
CREATE OR REPLACE FUNCTION public.holdfast_note(
    a_what integer, a_name bytea, a_ticket bytea, a_shared boolean, a_generation bigint, a_since timestamptz,
    a_at timestamptz, a_host text, a_user text, a_program text, a_pid bigint, a_note text, a_cause text)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    kept bigint := split_part(current_setting('holdfast.history', true), ' ', 1);
    last bigint;
BEGIN
    SELECT coalesce(max(nth), 0) + 1 INTO last FROM public.holdfast_history WHERE name = a_name;
    INSERT INTO public.holdfast_history VALUES (a_name, last, a_at, a_what, a_shared, a_ticket, a_generation,
        greatest(public.holdfast_span(a_at, a_since), 0), a_host, a_user, a_program, a_pid, a_note, a_cause);
    IF last % greatest(kept / 4, 1) = 0 THEN
        DELETE FROM public.holdfast_history WHERE name = a_name AND nth <= last - kept;
    END IF;
END $$;

CREATE OR REPLACE FUNCTION public.holdfast_note_holder(a_what integer, h public.holdfast_holder, a_at timestamptz, a_cause text)
RETURNS void LANGUAGE sql AS $$
    SELECT public.holdfast_note(a_what, h.name, h.ticket, h.shared, h.generation, h.since, a_at, h.host, h.username,
                                h.program, h.pid, h.note, a_cause)
$$;

CREATE OR REPLACE FUNCTION public.holdfast_note_waiter(a_what integer, w public.holdfast_waiter, a_generation bigint,
                                                       a_at timestamptz, a_cause text)
RETURNS void LANGUAGE sql AS $$
    SELECT public.holdfast_note(a_what, w.name, w.ticket, w.shared, a_generation, w.since, a_at, w.host, w.username,
                                w.program, w.pid, w.note, a_cause)
$$;

-- A lease ran out: the lock stays closed for the lock-delay, or the holder leaves.
CREATE OR REPLACE FUNCTION public.holdfast_expire(INOUT l public.holdfast_lock, h public.holdfast_holder,
                                                  now timestamptz) LANGUAGE plpgsql AS $$
BEGIN
    l := public.holdfast_note_end(l, h);
    IF NOT h.lingering AND public.holdfast_tells() THEN
        PERFORM public.holdfast_note_holder(3, h, h.until, CASE WHEN h.claimed THEN 'expired' ELSE 'unclaimed' END);
    END IF;
    IF NOT h.lingering AND h.claimed AND h.delay > 0 THEN
        h.until := public.holdfast_after(h.until, h.delay);
        IF h.until > now THEN
            UPDATE public.holdfast_holder SET lingering = true, until = h.until, lease = h.delay
                WHERE name = h.name AND ticket = h.ticket;
            RETURN;
        END IF;
    END IF;
    DELETE FROM public.holdfast_holder WHERE name = h.name AND ticket = h.ticket;
    PERFORM public.holdfast_retire(h.name, h.ticket, h.until, h.retire, now);
END $$;

CREATE OR REPLACE FUNCTION public.holdfast_tidy(INOUT l public.holdfast_lock, now timestamptz) LANGUAGE plpgsql AS $$
DECLARE
    h public.holdfast_holder;
    w public.holdfast_waiter;
BEGIN
    IF l.before > l.touched THEN
        PERFORM public.holdfast_cut(l, now);
    END IF;
    -- A time that a release asked for counts from the grant, which may be ahead of a clock that has gone back since.
    FOR h IN SELECT * FROM public.holdfast_holder WHERE name = l.name
            AND (until <= now OR (lingering AND until > public.holdfast_after(now, lease))) ORDER BY seq LOOP
        IF h.until > now THEN
            UPDATE public.holdfast_holder SET until = public.holdfast_after(now, lease)
                WHERE name = h.name AND ticket = h.ticket;
        ELSE
            l := public.holdfast_expire(l, h, now);
        END IF;
    END LOOP;
    IF public.holdfast_tells() THEN
        FOR w IN SELECT * FROM public.holdfast_waiter WHERE name = l.name AND until <= now ORDER BY seq LOOP
            PERFORM public.holdfast_note_waiter(6, w, 0, w.until, '');
        END LOOP;
    END IF;
    DELETE FROM public.holdfast_waiter WHERE name = l.name AND until <= now;
END $$;

-- Calls a client that listens: this ticket was let in, or (generation 0) must ask. Silent: the server's queue of
-- notifications is full, and those who wait will ask by themselves.
CREATE OR REPLACE FUNCTION public.holdfast_call(wake text, ticket bytea, generation bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF wake IS NOT NULL AND current_setting('holdfast.silent', true) IS DISTINCT FROM 'on' THEN
        PERFORM pg_notify(wake, encode(ticket, 'hex') || ' ' || generation::text);
    END IF;
END $$;

-- Lets in the head of the queue while it fits, and calls those who listen. Whoever `knows` is told by the
-- answer. Gives back the last generation.
CREATE OR REPLACE FUNCTION public.holdfast_let_in(l public.holdfast_lock, now timestamptz, knows bytea) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    w public.holdfast_waiter;
    inside bigint;
    closed boolean;
    smallest bigint;
    last bigint := l.generation;
    lease bigint;
    own boolean;
BEGIN
    FOR w IN SELECT * FROM public.holdfast_waiter WHERE name = l.name ORDER BY seq LOOP
        IF inside IS NULL THEN
            SELECT count(*), coalesce(bool_or(NOT shared), false), min(room) INTO inside, closed, smallest
                FROM public.holdfast_holder WHERE name = l.name;
        END IF;
        EXIT WHEN inside > 0 AND (closed OR NOT w.shared OR inside >= least(smallest, w.room));
        last := public.holdfast_next_generation(last, l.touched);
        own := w.ticket IS NOT DISTINCT FROM knows AND w.ttl <> 0;
        lease := CASE WHEN own THEN w.ttl ELSE public.holdfast_provisional_lease(w.ttl) END;
        DELETE FROM public.holdfast_waiter WHERE name = w.name AND seq = w.seq;
        INSERT INTO public.holdfast_holder VALUES (w.name, w.ticket, w.seq, false, w.shared, w.room, last, w.ttl,
            w.delay, w.retire, now, public.holdfast_after(now, lease), lease, own, w.wake, w.host, w.username,
            w.program, w.pid, w.note, w.flags);
        IF w.ticket IS DISTINCT FROM knows THEN
            PERFORM public.holdfast_call(w.wake, w.ticket, last);
        END IF;
        IF w.since < now AND public.holdfast_tells() THEN
            PERFORM public.holdfast_note_waiter(1, w, last, now, '');
        END IF;
        inside := inside + 1;
        closed := closed OR NOT w.shared;
        smallest := least(smallest, w.room);
    END LOOP;
    IF last > l.generation THEN
        UPDATE public.holdfast_lock SET generation = last WHERE name = l.name;
    END IF;
    RETURN last;
END $$;

-- Somebody has come to wait: each holder that asked for it is called, once.
CREATE OR REPLACE FUNCTION public.holdfast_call_holders(a_name bytea) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    h public.holdfast_holder;
BEGIN
    FOR h IN WITH told AS (UPDATE public.holdfast_holder SET flags = flags | 2
            WHERE name = a_name AND NOT lingering AND flags & 3 = 1 RETURNING *) SELECT * FROM told ORDER BY seq LOOP
        PERFORM public.holdfast_call(h.wake, h.ticket, 0);
    END LOOP;
END $$;

-- The same for somebody who does not wait: those only that may keep the lock without using it. Whether there is one.
CREATE OR REPLACE FUNCTION public.holdfast_call_cached(a_name bytea) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    h public.holdfast_holder;
BEGIN
    SELECT * INTO h FROM public.holdfast_holder WHERE name = a_name AND NOT lingering AND flags & 8 <> 0;
    IF h.flags & 2 = 0 THEN
        UPDATE public.holdfast_holder SET flags = flags | 2 WHERE name = a_name AND ticket = h.ticket;
        PERFORM public.holdfast_call(h.wake, h.ticket, 0);
    END IF;
    RETURN h.ticket IS NOT NULL;
END $$;

-- Whether a holder is to be told that somebody waits. One that hears that nobody does is called again for the next who
-- comes.
CREATE OR REPLACE FUNCTION public.holdfast_is_wanted(a_name bytea, a_ticket bytea) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    asked integer;
    wanted boolean;
BEGIN
    SELECT flags & 3 INTO asked FROM public.holdfast_holder WHERE name = a_name AND ticket = a_ticket;
    IF asked = 0 THEN
        RETURN false;
    END IF;
    wanted := EXISTS (SELECT FROM public.holdfast_waiter WHERE name = a_name);
    IF asked = 3 AND NOT wanted THEN
        UPDATE public.holdfast_holder SET flags = flags & ~2 WHERE name = a_name AND ticket = a_ticket;
    END IF;
    RETURN wanted;
END $$;

-- When it is worth asking although nobody calls: the one before may have died, or a holder vanish.
CREATE OR REPLACE FUNCTION public.holdfast_ask_again(w public.holdfast_waiter, now timestamptz) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    due timestamptz;
BEGIN
    SELECT until INTO due FROM public.holdfast_waiter WHERE name = w.name AND seq < w.seq ORDER BY seq DESC LIMIT 1;
    IF due IS NULL THEN
        SELECT min(until) INTO due FROM public.holdfast_holder WHERE name = w.name;
    END IF;
    RETURN public.holdfast_span(due, now);
END $$;
