-- One function per operation: sweep, apply, let in, answer. An answer is a row of
--   verdict     granted, queued, busy, withdrawn, full, done, stale, lost
--   generation  granted: its own; queued: the last one given
--   lease       granted: in force, NULL: never; queued: what a hand-over would give
--   claimed     granted: the store knows that the holder knows
--   ask_again   queued: after so many milliseconds, NULL: never
--   wanted      granted, and asked for: somebody waits; busy: it is worth asking again soon
--   place       queued: from 1; 0: not counted
--
-- Each takes the short way where nobody is in anybody's way (see public.holdfast_enter), and comes to the same. Each has
-- a search_path of its own, for all that it calls: whatever the caller's schemas hold, this finds the system's.

-- The tombstones, or the queue, have no room for another bid.
CREATE OR REPLACE FUNCTION public.holdfast_is_full(a_name bytea, now timestamptz) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM public.holdfast_retired WHERE name = a_name AND until > now OFFSET 9999 LIMIT 1;
    IF NOT FOUND THEN
        PERFORM 1 FROM public.holdfast_waiter WHERE name = a_name OFFSET 9999 LIMIT 1;
    END IF;
    RETURN FOUND;
END $$;

-- A bid, or the same bid again; not after a_latest: see public.holdfast_enter. a_flags are those of its holder.
CREATE OR REPLACE FUNCTION public.holdfast_attempt(
    a_name bytea, a_ticket bytea, a_shared boolean, a_room bigint, a_ttl bigint, a_delay bigint,
    a_retire bigint, a_queue boolean, a_wake text, a_host text, a_user text, a_program text, a_pid bigint,
    a_note text, a_latest bigint, a_flags bigint, OUT verdict text, OUT generation bigint, OUT lease bigint,
    OUT claimed boolean, OUT ask_again bigint, OUT wanted boolean, OUT place bigint) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    l public.holdfast_lock := public.holdfast_enter(a_name, 1, 2, a_latest);
    now timestamptz := date_trunc('milliseconds', l.touched);
    h public.holdfast_holder;
    w public.holdfast_waiter;
    flags integer := a_flags::integer;
    is_new boolean := false;
BEGIN
    -- Those who come later have a higher seq.
    IF l.state = 2 THEN
        verdict := 'granted';
        generation := l.generation;
        claimed := a_ttl <> 0;
        lease := CASE WHEN claimed THEN a_ttl ELSE public.holdfast_provisional_lease(a_ttl) END;
        INSERT INTO public.holdfast_holder VALUES (a_name, a_ticket, 0, false, a_shared, a_room, generation, a_ttl,
            a_delay, a_retire, now, public.holdfast_after(now, lease), lease, claimed, a_wake, a_host, a_user,
            a_program, a_pid, a_note, flags);
        RETURN; -- the short way
    END IF;
    l := public.holdfast_tidy(l, now);
    SELECT * INTO h FROM public.holdfast_holder k WHERE k.name = a_name AND k.ticket = a_ticket;
    IF FOUND THEN
        IF NOT h.lingering AND h.lease IS NOT NULL THEN
            UPDATE public.holdfast_holder k SET until = public.holdfast_after(now, h.lease)
                WHERE k.name = a_name AND k.ticket = a_ticket;
        END IF;
        PERFORM public.holdfast_let_in(l, now, NULL);
        IF h.lingering THEN
            verdict := 'withdrawn';
        ELSE
            verdict := 'granted'; generation := h.generation; lease := h.lease; claimed := h.claimed;
            wanted := public.holdfast_is_wanted(a_name, a_ticket);
        END IF;
        RETURN;
    END IF;

    PERFORM 1 FROM public.holdfast_retired k WHERE k.name = a_name AND k.ticket = a_ticket AND k.until > now;
    IF FOUND THEN
        PERFORM public.holdfast_let_in(l, now, NULL);
        verdict := 'withdrawn';
        RETURN;
    END IF;

    UPDATE public.holdfast_waiter k SET until = public.holdfast_after(now, k.lease), wake = a_wake
        WHERE k.name = a_name AND k.ticket = a_ticket;
    IF NOT FOUND THEN
        IF public.holdfast_is_full(a_name, now) THEN
            PERFORM public.holdfast_let_in(l, now, NULL);
            verdict := 'full';
            RETURN;
        END IF;
        -- Nobody there: the common case goes in without passing through the queue.
        IF NOT EXISTS (SELECT FROM public.holdfast_holder k WHERE k.name = a_name)
           AND NOT EXISTS (SELECT FROM public.holdfast_waiter k WHERE k.name = a_name) THEN
            verdict := 'granted';
            generation := public.holdfast_next_generation(l.generation, l.touched);
            claimed := a_ttl <> 0;
            lease := CASE WHEN claimed THEN a_ttl ELSE public.holdfast_provisional_lease(a_ttl) END;
            INSERT INTO public.holdfast_holder VALUES (a_name, a_ticket, nextval('public.holdfast_line'::regclass), false, a_shared,
                a_room, generation, a_ttl, a_delay, a_retire, now, public.holdfast_after(now, lease), lease, claimed,
                a_wake, a_host, a_user, a_program, a_pid, a_note, flags);
            UPDATE public.holdfast_lock k SET generation = holdfast_attempt.generation, state = CASE WHEN EXISTS (SELECT
                FROM public.holdfast_retired r WHERE r.name = a_name AND r.until > now) THEN 0 ELSE 2 END
                WHERE k.name = a_name;
            RETURN;
        END IF;
        INSERT INTO public.holdfast_waiter VALUES (a_name, nextval('public.holdfast_line'::regclass), a_ticket, a_shared, a_room,
            a_ttl, a_delay, a_retire, now, public.holdfast_after(now, public.holdfast_own_lease(a_ttl)),
            public.holdfast_own_lease(a_ttl), a_wake, a_host, a_user, a_program, a_pid, a_note, flags);
        is_new := true;
    END IF;

    generation := public.holdfast_let_in(l, now, a_ticket);
    SELECT * INTO w FROM public.holdfast_waiter k WHERE k.name = a_name AND k.ticket = a_ticket;
    IF NOT FOUND THEN
        SELECT 'granted', k.generation, k.lease, k.claimed INTO verdict, generation, lease, claimed
            FROM public.holdfast_holder k WHERE k.name = a_name AND k.ticket = a_ticket;
        wanted := public.holdfast_is_wanted(a_name, a_ticket);
    ELSIF a_queue THEN
        IF is_new THEN
            PERFORM public.holdfast_call_holders(a_name);
        END IF;
        verdict := 'queued';
        lease := public.holdfast_provisional_lease(w.ttl);
        SELECT count(*) + 1 INTO place FROM public.holdfast_waiter k WHERE k.name = a_name AND k.seq < w.seq;
        ask_again := public.holdfast_ask_again(w, now);
    ELSE
        DELETE FROM public.holdfast_waiter k WHERE k.name = a_name AND k.seq = w.seq;
        IF NOT is_new AND public.holdfast_tells() THEN
            PERFORM public.holdfast_note_waiter(5, w, 0, now, '');
        END IF;
        verdict := 'busy';
        generation := NULL;
        wanted := public.holdfast_call_cached(a_name);
    END IF;
END $$;

-- What clients of before call.
CREATE OR REPLACE FUNCTION public.holdfast_attempt(
    a_name bytea, a_ticket bytea, a_shared boolean, a_room bigint, a_ttl bigint, a_delay bigint,
    a_retire bigint, a_queue boolean, a_wake text, a_host text, a_user text, a_program text, a_pid bigint,
    a_note text, a_latest bigint, a_tell boolean, OUT verdict text, OUT generation bigint, OUT lease bigint,
    OUT claimed boolean, OUT ask_again bigint, OUT wanted boolean, OUT place bigint) LANGUAGE sql AS $$
    SELECT * FROM public.holdfast_attempt(a_name, a_ticket, a_shared, a_room, a_ttl, a_delay, a_retire, a_queue, a_wake,
                                          a_host, a_user, a_program, a_pid, a_note, a_latest, a_tell::integer::bigint)
$$;

CREATE OR REPLACE FUNCTION public.holdfast_attempt(
    a_name bytea, a_ticket bytea, a_shared boolean, a_room bigint, a_ttl bigint, a_delay bigint,
    a_retire bigint, a_queue boolean, a_wake text, a_host text, a_user text, a_program text, a_pid bigint,
    a_note text, OUT verdict text, OUT generation bigint, OUT lease bigint, OUT claimed boolean,
    OUT ask_again bigint, OUT place bigint) LANGUAGE sql AS $$
    SELECT verdict, generation, lease, claimed, ask_again, place
      FROM public.holdfast_attempt(a_name, a_ticket, a_shared, a_room, a_ttl, a_delay, a_retire, a_queue, a_wake,
                                   a_host, a_user, a_program, a_pid, a_note, NULL, 0)
$$;

-- The bidder is done with its ticket. A lock-delay stays, unless the grant was unused. Says where it was: inside
-- (also an unused lock-delay), waiting, lingering, retired or gone.
CREATE OR REPLACE FUNCTION public.holdfast_end(l public.holdfast_lock, now timestamptz, a_ticket bytea, span bigint,
                                               unused boolean)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    was text := 'inside';
    h public.holdfast_holder;
    w public.holdfast_waiter;
BEGIN
    DELETE FROM public.holdfast_holder WHERE name = l.name AND ticket = a_ticket AND (unused OR NOT lingering)
        RETURNING * INTO h;
    IF NOT FOUND THEN
        was := 'waiting';
        DELETE FROM public.holdfast_waiter WHERE name = l.name AND ticket = a_ticket RETURNING * INTO w;
    END IF;
    IF FOUND THEN
        IF NOT public.holdfast_tells() THEN
            NULL;
        ELSIF w.ticket IS NOT NULL THEN
            PERFORM public.holdfast_note_waiter(5, w, 0, now, '');
        ELSIF NOT h.lingering THEN
            PERFORM public.holdfast_note_holder(CASE WHEN unused THEN 5 ELSE 2 END, h, now, '');
        END IF;
    ELSE
        PERFORM 1 FROM public.holdfast_holder WHERE name = l.name AND ticket = a_ticket;
        IF FOUND THEN
            RETURN 'lingering';
        END IF;
        was := 'gone';
        -- An older tombstone is renewed, never shortened: the last attempt may be younger.
        PERFORM 1 FROM public.holdfast_retired WHERE name = l.name AND ticket = a_ticket
            AND until >= public.holdfast_after(now, span) AND until > now;
        IF FOUND THEN
            RETURN 'retired';
        END IF;
    END IF;
    PERFORM public.holdfast_retire(l.name, a_ticket, now, span, now);
    RETURN was;
END $$;

-- The lock opens no earlier than a_at_least after it was taken: until then the holder lingers. a_used: the last token of
-- a cached grant that was used, or 0.
CREATE OR REPLACE FUNCTION public.holdfast_release_after(a_name bytea, a_ticket bytea, a_retire bigint, a_at_least bigint,
                                                         a_used bigint, OUT verdict text)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    l public.holdfast_lock := public.holdfast_enter(a_name, 0, 0, NULL);
    now timestamptz := date_trunc('milliseconds', l.touched);
    h public.holdfast_holder;
BEGIN
    l := public.holdfast_tidy(l, now);
    l := public.holdfast_give_numbers(l, (SELECT a_used FROM public.holdfast_holder WHERE name = a_name
        AND ticket = a_ticket AND NOT lingering AND flags & 8 <> 0 AND a_used - generation BETWEEN 1 AND 1048576));
    UPDATE public.holdfast_holder SET lingering = true, until = public.holdfast_after(since, a_at_least), lease = a_at_least
        WHERE name = a_name AND ticket = a_ticket AND NOT lingering AND a_at_least > 0
        AND public.holdfast_after(since, a_at_least) > now
        RETURNING * INTO h;
    IF FOUND THEN
        IF public.holdfast_tells() THEN
            PERFORM public.holdfast_note_holder(2, h, now, '');
        END IF;
        verdict := 'done';
    ELSE
        verdict := CASE public.holdfast_end(l, now, a_ticket, a_retire, false) WHEN 'inside' THEN 'done' ELSE 'stale' END;
    END IF;
    PERFORM public.holdfast_let_in(l, now, NULL);
END $$;

CREATE OR REPLACE FUNCTION public.holdfast_release_after(a_name bytea, a_ticket bytea, a_retire bigint, a_at_least bigint,
                                                         OUT verdict text) LANGUAGE sql AS $$
    SELECT verdict FROM public.holdfast_release_after(a_name, a_ticket, a_retire, a_at_least, 0)
$$;

CREATE OR REPLACE FUNCTION public.holdfast_release(a_name bytea, a_ticket bytea, a_retire bigint, OUT verdict text)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    l public.holdfast_lock := public.holdfast_enter(a_name, 2, 1, NULL);
    now timestamptz := date_trunc('milliseconds', l.touched);
    h public.holdfast_holder;
BEGIN
    IF l.state = 1 AND a_retire = 0 THEN
        DELETE FROM public.holdfast_holder WHERE name = a_name AND ticket = a_ticket AND until > now RETURNING * INTO h;
        IF FOUND THEN
            IF current_setting('holdfast.history', true) <> '' THEN
                PERFORM public.holdfast_note(2, h.name, h.ticket, h.shared, h.generation, h.since, now, h.host, h.username,
                                             h.program, h.pid, h.note, '');
            END IF;
            verdict := 'done';
            RETURN; -- the short way
        END IF;
    END IF;

    l := public.holdfast_look(l);
    l := public.holdfast_tidy(l, now);
    verdict := CASE public.holdfast_end(l, now, a_ticket, a_retire, false) WHEN 'inside' THEN 'done' ELSE 'stale' END;
    IF public.holdfast_let_in(l, now, NULL) = l.generation THEN
        PERFORM public.holdfast_settle(l, now);
    END IF;
END $$;

CREATE OR REPLACE FUNCTION public.holdfast_withdraw(a_name bytea, a_ticket bytea, a_retire bigint, OUT verdict text)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    l public.holdfast_lock := public.holdfast_enter(a_name, 0, 0, NULL);
    now timestamptz := date_trunc('milliseconds', l.touched);
    was text;
BEGIN
    l := public.holdfast_tidy(l, now);
    was := public.holdfast_end(l, now, a_ticket, a_retire, true);
    verdict := CASE WHEN was IN ('inside', 'waiting') THEN 'done' ELSE 'stale' END;
    PERFORM public.holdfast_let_in(l, now, NULL);
END $$;

-- A sign of life; with the generation it claims the grant.
CREATE OR REPLACE FUNCTION public.holdfast_renew_one(
    a_name bytea, a_ticket bytea, a_generation bigint, a_latest bigint, OUT verdict text, OUT generation bigint,
    OUT lease bigint, OUT claimed boolean, OUT ask_again bigint, OUT wanted boolean) LANGUAGE plpgsql AS $$
DECLARE
    l public.holdfast_lock := public.holdfast_enter(a_name, 2, 2, a_latest);
    now timestamptz := date_trunc('milliseconds', l.touched);
    h public.holdfast_holder;
    w public.holdfast_waiter;
    last bigint;
BEGIN
    IF l.state = 2 THEN
        UPDATE public.holdfast_holder k SET claimed = true, lease = k.ttl, until = public.holdfast_after(now, k.ttl)
            WHERE k.name = a_name AND k.ticket = a_ticket AND k.until > now AND k.generation = a_generation
            AND k.ttl <> 0 RETURNING 'granted', k.generation, k.lease, true
            INTO verdict, generation, lease, claimed;
        IF FOUND THEN
            RETURN; -- the short way
        END IF;
    END IF;

    l := public.holdfast_look(l);
    l := public.holdfast_tidy(l, now);
    SELECT * INTO h FROM public.holdfast_holder k WHERE k.name = a_name AND k.ticket = a_ticket AND NOT k.lingering;
    IF FOUND AND a_generation = h.generation AND (NOT h.claimed OR h.ttl <> 0) THEN
        h.claimed := true;
        h.lease := nullif(h.ttl, 0);
    END IF;
    IF h.ticket IS NOT NULL AND a_generation IN (0, h.generation) AND
       (h.lease IS NOT NULL OR h.until < 'infinity') THEN
        UPDATE public.holdfast_holder k SET claimed = h.claimed, lease = h.lease, until = public.holdfast_after(now, h.lease)
            WHERE k.name = a_name AND k.ticket = a_ticket;
    END IF;
    UPDATE public.holdfast_waiter k SET until = public.holdfast_after(now, k.lease)
        WHERE k.name = a_name AND k.ticket = a_ticket;
    last := public.holdfast_let_in(l, now, NULL);

    SELECT * INTO w FROM public.holdfast_waiter k WHERE k.name = a_name AND k.ticket = a_ticket;
    IF FOUND THEN
        verdict := 'queued';
        generation := last;
        lease := public.holdfast_provisional_lease(w.ttl);
        ask_again := public.holdfast_ask_again(w, now);
        RETURN;
    END IF;
    SELECT 'granted', k.generation, k.lease, k.claimed INTO verdict, generation, lease, claimed
        FROM public.holdfast_holder k WHERE k.name = a_name AND k.ticket = a_ticket AND NOT k.lingering
        AND a_generation IN (0, h.generation);
    IF FOUND THEN
        wanted := public.holdfast_is_wanted(a_name, a_ticket);
    END IF;
    verdict := coalesce(verdict, 'lost');
END $$;

-- Many at once, in the order of their names, so that two such calls cannot wait for each other.
CREATE OR REPLACE FUNCTION public.holdfast_renew(names bytea[], tickets bytea[], generations bigint[], latest bigint)
RETURNS TABLE (item bigint, verdict text, generation bigint, lease bigint, claimed boolean, ask_again bigint,
               wanted boolean)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    i bigint;
BEGIN
    FOR i IN SELECT k.at FROM pg_catalog.unnest(names) WITH ORDINALITY AS k(name, at) ORDER BY k.name, k.at LOOP
        RETURN QUERY SELECT i, r.* FROM public.holdfast_renew_one(names[i], tickets[i], generations[i], latest) r;
    END LOOP;
END $$;

CREATE OR REPLACE FUNCTION public.holdfast_renew(names bytea[], tickets bytea[], generations bigint[])
RETURNS TABLE (item bigint, verdict text, generation bigint, lease bigint, claimed boolean, ask_again bigint)
LANGUAGE sql AS $$
    SELECT item, verdict, generation, lease, claimed, ask_again
      FROM public.holdfast_renew(names, tickets, generations, NULL)
$$;

-- Takes the lock away from a ticket. A holder keeps the door closed as long as it may believe that it holds.
CREATE OR REPLACE FUNCTION public.holdfast_break(a_name bytea, a_ticket bytea, at_once boolean, OUT verdict text)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    l public.holdfast_lock := public.holdfast_enter(a_name, 0, 0, NULL);
    now timestamptz := date_trunc('milliseconds', l.touched);
    h public.holdfast_holder;
    w public.holdfast_waiter;
    span bigint;
BEGIN
    l := public.holdfast_tidy(l, now);
    verdict := 'done';
    SELECT * INTO h FROM public.holdfast_holder WHERE name = a_name AND ticket = a_ticket;
    IF FOUND THEN
        l := public.holdfast_note_end(l, h);
        span := CASE WHEN at_once OR h.until = 'infinity' THEN 0 ELSE public.holdfast_span(h.until, now) END
              + CASE WHEN h.claimed THEN h.delay ELSE 0 END;
        IF NOT h.lingering AND public.holdfast_tells() THEN
            PERFORM public.holdfast_note_holder(4, h, now, substr(current_setting('holdfast.history', true),
                strpos(current_setting('holdfast.history', true), ' ') + 1));
        END IF;
        IF NOT h.lingering AND span > 0 THEN
            UPDATE public.holdfast_holder SET lingering = true, until = public.holdfast_after(now, span), lease = span
                WHERE name = a_name AND ticket = a_ticket;
        ELSIF NOT h.lingering OR at_once THEN
            DELETE FROM public.holdfast_holder WHERE name = a_name AND ticket = a_ticket;
            PERFORM public.holdfast_retire(a_name, a_ticket, now, h.retire, now);
        END IF;
    ELSE
        DELETE FROM public.holdfast_waiter WHERE name = a_name AND ticket = a_ticket RETURNING * INTO w;
        IF FOUND THEN
            IF public.holdfast_tells() THEN
                PERFORM public.holdfast_note_waiter(4, w, 0, now, substr(current_setting('holdfast.history', true),
                    strpos(current_setting('holdfast.history', true), ' ') + 1));
            END IF;
            PERFORM public.holdfast_retire(a_name, a_ticket, now, w.retire, now);
        ELSE
            verdict := 'stale';
        END IF;
    END IF;
    PERFORM public.holdfast_call(coalesce(h.wake, w.wake), a_ticket, 0);
    PERFORM public.holdfast_let_in(l, now, NULL);
END $$;

-- The value, in hex: for the holder of this generation, who opens it by that if it is an exclusive one; with generation 0
-- for anybody. A lock that was never asked for gets no row by being looked at.
CREATE OR REPLACE FUNCTION public.holdfast_read(a_name bytea, a_ticket bytea, a_generation bigint, OUT verdict text,
                                                OUT generation bigint, OUT nth bigint, OUT doubt boolean, OUT bytes text)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    l public.holdfast_lock;
    now timestamptz;
BEGIN
    verdict := 'done';
    IF a_generation <> 0 OR EXISTS (SELECT FROM public.holdfast_lock k WHERE k.name = a_name) THEN
        l := public.holdfast_enter(a_name, 0, 0, NULL);
        now := date_trunc('milliseconds', l.touched);
        l := public.holdfast_tidy(l, now);
        UPDATE public.holdfast_holder k SET flags = CASE WHEN k.shared THEN k.flags ELSE k.flags | 4 END
            WHERE k.name = a_name AND k.ticket = a_ticket AND k.generation = a_generation AND NOT k.lingering;
        IF NOT FOUND AND a_generation <> 0 THEN
            verdict := 'lost';
        END IF;
        PERFORM public.holdfast_let_in(l, now, NULL);
    END IF;
    SELECT v.generation, v.nth, v.doubt, encode(v.bytes, 'hex') INTO generation, nth, doubt, bytes
        FROM public.holdfast_value v WHERE v.name = a_name;
END $$;

-- The exclusive holder of this generation writes the value, in the order of its own writes.
CREATE OR REPLACE FUNCTION public.holdfast_write(a_name bytea, a_ticket bytea, a_generation bigint, a_nth bigint,
                                                 a_bytes bytea, OUT verdict text)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    l public.holdfast_lock := public.holdfast_enter(a_name, 0, 0, NULL);
    now timestamptz := date_trunc('milliseconds', l.touched);
BEGIN
    l := public.holdfast_tidy(l, now);
    PERFORM 1 FROM public.holdfast_holder WHERE name = a_name AND ticket = a_ticket AND generation = a_generation
        AND NOT lingering AND NOT shared;
    IF NOT FOUND THEN
        verdict := 'lost';
    ELSE
        INSERT INTO public.holdfast_value AS v VALUES (a_name, a_generation, a_nth, false, a_bytes)
            ON CONFLICT (name) DO UPDATE SET generation = a_generation, nth = a_nth, doubt = false, bytes = a_bytes
            WHERE v.generation < a_generation OR (v.generation = a_generation AND v.nth <= a_nth);
        IF FOUND THEN
            UPDATE public.holdfast_holder SET flags = flags | 4 WHERE name = a_name AND ticket = a_ticket;
            verdict := 'done';
        ELSE
            verdict := 'stale';
        END IF;
    END IF;
    PERFORM public.holdfast_let_in(l, now, NULL);
END $$;
