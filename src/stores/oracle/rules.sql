-- The doorman's rules (src/doorman/doorman.c) in PL/SQL: one procedure per operation, one transaction each.
--
-- Every operation locks the row of its name first, which keeps all others off the same name until the COMMIT;
-- the clock is read after that. In READ COMMITTED each later statement sees what the one before us has
-- committed. FOR UPDATE NOWAIT: whoever finds the row locked (ORA-00054) is told at once and tries again a
-- moment later, so nobody waits inside the server.
--
-- Names and tickets come as hex digits. An answer is a text of items "verdict generation lease claimed ask_again
-- place;", with -1 for what there is not:
--   verdict     granted, queued, busy, withdrawn, full, done, stale, lost
--   generation  granted: its own; queued: the last one given
--   lease       granted: in force, -1: never; queued: what a hand-over would give
--   claimed     granted: the store knows that the holder knows
--   ask_again   queued: after so many milliseconds, -1: never
--   place       queued: from 1; 0: not counted
--
-- Written in what Oracle and MariaDB (sql_mode=ORACLE) have in common.

CREATE OR REPLACE PACKAGE holdfast_rules AS
    -- Of this package: HF__ORA_RULES. A client uses it only if it is its own.
    PROCEDURE version(o_answer OUT VARCHAR2);

    -- A bid, or the same bid again.
    PROCEDURE attempt(
        a_name IN VARCHAR2, a_ticket IN VARCHAR2, a_shared IN holdfast_holder.shared%TYPE,
        a_room IN holdfast_holder.room%TYPE, a_ttl IN holdfast_holder.ttl%TYPE,
        a_delay IN holdfast_holder.delay%TYPE, a_retire IN holdfast_holder.retire%TYPE,
        a_queue IN holdfast_holder.shared%TYPE, a_host IN VARCHAR2, a_user IN VARCHAR2, a_program IN VARCHAR2,
        a_pid IN holdfast_holder.pid%TYPE, a_note IN VARCHAR2, o_answer OUT VARCHAR2);

    -- The bidder is done with its ticket: release (a_withdraws = 0) or withdraw.
    PROCEDURE finish(
        a_name IN VARCHAR2, a_ticket IN VARCHAR2, a_retire IN holdfast_holder.retire%TYPE,
        a_withdraws IN holdfast_holder.shared%TYPE, o_answer OUT VARCHAR2);

    -- Signs of life, "name ticket generation;" each. A generation claims the grant; 0: it is not known.
    PROCEDURE renew(a_list IN VARCHAR2, o_answer OUT VARCHAR2);

    -- Takes the lock away from a ticket.
    PROCEDURE take_away(
        a_name IN VARCHAR2, a_ticket IN VARCHAR2, a_at_once IN holdfast_holder.shared%TYPE,
        o_answer OUT VARCHAR2);
END;
/

CREATE OR REPLACE PACKAGE BODY holdfast_rules AS
    PROCEDURE version(o_answer OUT VARCHAR2) AS
    BEGIN
        o_answer := '2';
    END;

    -- From here on it is our turn. A row that is new has nothing in it.
    PROCEDURE take_row(
        v_name IN holdfast_lock.name%TYPE, o_generation OUT holdfast_lock.generation%TYPE,
        o_line OUT holdfast_lock.line%TYPE, o_touched_us OUT holdfast_lock.touched_us%TYPE) AS
    BEGIN
        SELECT generation, line, touched_us INTO o_generation, o_line, o_touched_us
            FROM holdfast_lock WHERE name = v_name FOR UPDATE NOWAIT;
    EXCEPTION
        WHEN NO_DATA_FOUND THEN
            BEGIN
                o_generation := 0;
                o_line := 0;
                o_touched_us := 0;
                INSERT INTO holdfast_lock (name, generation, line, touched_us) VALUES (v_name, 0, 0, 0);
            EXCEPTION
                WHEN DUP_VAL_ON_INDEX THEN
                    SELECT generation, line, touched_us INTO o_generation, o_line, o_touched_us
                        FROM holdfast_lock WHERE name = v_name FOR UPDATE NOWAIT;
            END;
    END;

    -- Remembers a ticket, and forgets those whose time has come.
    PROCEDURE retire_ticket(
        v_name IN holdfast_lock.name%TYPE, v_ticket IN holdfast_holder.ticket%TYPE,
        v_from IN holdfast_holder.until_ms%TYPE, v_span IN holdfast_holder.retire%TYPE,
        v_now IN holdfast_holder.until_ms%TYPE) AS
    BEGIN
        IF v_span > 0 AND v_from + v_span > v_now THEN
            DELETE FROM holdfast_retired WHERE name = v_name AND (until_ms <= v_now OR ticket = v_ticket);
            INSERT INTO holdfast_retired (name, ticket, until_ms, lease)
                VALUES (v_name, v_ticket, v_from + v_span, v_span);
        END IF;
    END;

    -- The clock went back: what lies further ahead than the span last given is cut to that span.
    PROCEDURE cut_spans(
        v_name IN holdfast_lock.name%TYPE, v_before_us IN holdfast_lock.touched_us%TYPE,
        v_now IN holdfast_holder.until_ms%TYPE) AS
    BEGIN
        DELETE FROM holdfast_retired WHERE name = v_name AND until_ms * 1000 <= v_before_us;
        UPDATE holdfast_retired SET until_ms = v_now + lease WHERE name = v_name AND until_ms > v_now + lease;
        UPDATE holdfast_holder SET until_ms = v_now + lease
            WHERE name = v_name AND lease IS NOT NULL AND until_ms > v_now + lease;
        UPDATE holdfast_waiter SET until_ms = v_now + lease WHERE name = v_name AND until_ms > v_now + lease;
    END;

    -- A lease ran out: the lock stays closed for the lock-delay, or the holder leaves. A dead waiter leaves.
    PROCEDURE sweep(v_name IN holdfast_lock.name%TYPE, v_now IN holdfast_holder.until_ms%TYPE) AS
        v_end holdfast_holder.until_ms%TYPE;
    BEGIN
        FOR h IN (SELECT ticket, until_ms, delay, retire, claimed, lingering FROM holdfast_holder
                  WHERE name = v_name AND until_ms <= v_now ORDER BY seq) LOOP
            v_end := h.until_ms;
            IF h.claimed = 1 AND h.lingering = 0 THEN
                v_end := v_end + h.delay;
            END IF;
            IF v_end > v_now THEN
                UPDATE holdfast_holder SET lingering = 1, lease = h.delay, until_ms = v_end
                    WHERE name = v_name AND ticket = h.ticket;
            ELSE
                DELETE FROM holdfast_holder WHERE name = v_name AND ticket = h.ticket;
                retire_ticket(v_name, h.ticket, v_end, h.retire, v_now);
            END IF;
        END LOOP;
        DELETE FROM holdfast_waiter WHERE name = v_name AND until_ms <= v_now;
    END;

    -- When the first of those inside, and of those who wait, is due; NULL: there is nobody.
    PROCEDURE look(
        v_name IN holdfast_lock.name%TYPE, o_inside OUT holdfast_holder.until_ms%TYPE,
        o_waiting OUT holdfast_holder.until_ms%TYPE) AS
    BEGIN
        SELECT (SELECT MIN(until_ms) FROM holdfast_holder WHERE name = v_name),
               (SELECT MIN(until_ms) FROM holdfast_waiter WHERE name = v_name)
            INTO o_inside, o_waiting FROM DUAL;
    END;

    -- Locks the row, reads the clock, sweeps, looks. o_now_us: the time; o_line: our place in the line.
    PROCEDURE enter(
        v_name IN holdfast_lock.name%TYPE, o_generation OUT holdfast_lock.generation%TYPE,
        o_line OUT holdfast_lock.line%TYPE, o_now_us OUT holdfast_lock.touched_us%TYPE,
        o_now OUT holdfast_holder.until_ms%TYPE, o_inside OUT holdfast_holder.until_ms%TYPE,
        o_waiting OUT holdfast_holder.until_ms%TYPE) AS
        v_before_us holdfast_lock.touched_us%TYPE;
    BEGIN
        take_row(v_name, o_generation, o_line, v_before_us);
        SELECT (SELECT EXTRACT(DAY FROM d) * 86400000000 + EXTRACT(HOUR FROM d) * 3600000000
                    + EXTRACT(MINUTE FROM d) * 60000000 + TRUNC(EXTRACT(SECOND FROM d) * 1000000)
                    FROM (SELECT SYSTIMESTAMP - TIMESTAMP '1970-01-01 00:00:00 +00:00' AS d FROM DUAL) t)
            INTO o_now_us FROM DUAL;
        o_now := FLOOR(o_now_us / 1000);
        o_line := o_line + 1;
        UPDATE holdfast_lock SET line = o_line, touched_us = o_now_us WHERE name = v_name;
        IF v_before_us > o_now_us THEN
            cut_spans(v_name, v_before_us, o_now);
        END IF;
        look(v_name, o_inside, o_waiting);
        IF o_inside <= o_now OR o_waiting <= o_now THEN
            sweep(v_name, o_now);
            look(v_name, o_inside, o_waiting);
        END IF;
    END;

    -- Lets in the head of the queue while it fits. Whoever `knows` is told by the answer: its lease is the one
    -- it asked for. io_generation: the last one given.
    PROCEDURE let_in(
        v_name IN holdfast_lock.name%TYPE, v_now_us IN holdfast_lock.touched_us%TYPE,
        v_now IN holdfast_holder.until_ms%TYPE, v_knows IN holdfast_holder.ticket%TYPE,
        io_generation IN OUT holdfast_lock.generation%TYPE) AS
        v_inside holdfast_holder.seq%TYPE;
        v_closed holdfast_holder.shared%TYPE;
        v_smallest holdfast_holder.room%TYPE;
        v_seq holdfast_waiter.seq%TYPE;
        v_ticket holdfast_waiter.ticket%TYPE;
        v_shared holdfast_waiter.shared%TYPE;
        v_room holdfast_waiter.room%TYPE;
        v_ttl holdfast_waiter.ttl%TYPE;
        v_lease holdfast_holder.lease%TYPE;
        v_claimed holdfast_holder.claimed%TYPE;
    BEGIN
        SELECT COUNT(*), NVL(MAX(1 - shared), 0), MIN(room) INTO v_inside, v_closed, v_smallest
            FROM holdfast_holder WHERE name = v_name;
        LOOP
            SELECT MIN(seq) INTO v_seq FROM holdfast_waiter WHERE name = v_name;
            EXIT WHEN v_seq IS NULL;
            SELECT ticket, shared, room, ttl INTO v_ticket, v_shared, v_room, v_ttl
                FROM holdfast_waiter WHERE name = v_name AND seq = v_seq;
            EXIT WHEN v_inside > 0 AND (v_closed = 1 OR v_shared = 0
                OR v_inside >= NVL(v_smallest, v_inside + 1) OR v_inside >= NVL(v_room, v_inside + 1));
            io_generation := GREATEST(io_generation + 1, v_now_us);
            v_claimed := 0;
            v_lease := LEAST(v_ttl, 10000);
            IF v_ttl = 0 THEN
                v_lease := 5000;
            ELSIF v_ticket = v_knows THEN
                v_lease := v_ttl;
                v_claimed := 1;
            END IF;
            INSERT INTO holdfast_holder (name, ticket, seq, lingering, shared, room, generation, ttl, delay,
                                         retire, since_ms, until_ms, lease, claimed, host, username, program,
                                         pid, note)
                SELECT name, ticket, seq, 0, shared, room, io_generation, ttl, delay, retire, v_now,
                       v_now + v_lease, v_lease, v_claimed, host, username, program, pid, note
                FROM holdfast_waiter WHERE name = v_name AND seq = v_seq;
            DELETE FROM holdfast_waiter WHERE name = v_name AND seq = v_seq;
            UPDATE holdfast_lock SET generation = io_generation WHERE name = v_name;
            v_inside := v_inside + 1;
            v_closed := 1 - v_shared;
            v_smallest := LEAST(NVL(v_smallest, v_room), NVL(v_room, v_smallest));
        END LOOP;
    END;

    -- When it is worth asking although nobody calls: the one before may have died, or a holder vanish. -1: never.
    PROCEDURE next_question(
        v_name IN holdfast_lock.name%TYPE, v_seq IN holdfast_waiter.seq%TYPE,
        v_now IN holdfast_holder.until_ms%TYPE, o_ask_again OUT holdfast_holder.until_ms%TYPE) AS
        v_ahead holdfast_waiter.seq%TYPE;
        v_due holdfast_holder.until_ms%TYPE;
    BEGIN
        SELECT MAX(seq) INTO v_ahead FROM holdfast_waiter WHERE name = v_name AND seq < v_seq;
        IF v_ahead IS NULL THEN
            SELECT MIN(until_ms) INTO v_due FROM holdfast_holder WHERE name = v_name;
        ELSE
            SELECT until_ms INTO v_due FROM holdfast_waiter WHERE name = v_name AND seq = v_ahead;
        END IF;
        o_ask_again := -1;
        IF v_due < 9223372036854775807 THEN
            o_ask_again := v_due - v_now;
        END IF;
    END;

    PROCEDURE attempt(
        a_name IN VARCHAR2, a_ticket IN VARCHAR2, a_shared IN holdfast_holder.shared%TYPE,
        a_room IN holdfast_holder.room%TYPE, a_ttl IN holdfast_holder.ttl%TYPE,
        a_delay IN holdfast_holder.delay%TYPE, a_retire IN holdfast_holder.retire%TYPE,
        a_queue IN holdfast_holder.shared%TYPE, a_host IN VARCHAR2, a_user IN VARCHAR2, a_program IN VARCHAR2,
        a_pid IN holdfast_holder.pid%TYPE, a_note IN VARCHAR2, o_answer OUT VARCHAR2) AS
        v_name holdfast_lock.name%TYPE;
        v_ticket holdfast_holder.ticket%TYPE;
        v_verdict VARCHAR2(9);
        v_generation holdfast_lock.generation%TYPE;
        v_lease holdfast_holder.lease%TYPE;
        v_claimed holdfast_holder.claimed%TYPE;
        v_place holdfast_holder.seq%TYPE;
        v_ask_again holdfast_holder.until_ms%TYPE;
        k_generation holdfast_lock.generation%TYPE;
        k_line holdfast_lock.line%TYPE;
        k_now_us holdfast_lock.touched_us%TYPE;
        k_now holdfast_holder.until_ms%TYPE;
        k_inside holdfast_holder.until_ms%TYPE;
        k_waiting holdfast_holder.until_ms%TYPE;
        v_lingering holdfast_holder.lingering%TYPE;
        v_retired holdfast_holder.seq%TYPE;
        v_mine holdfast_holder.seq%TYPE;
        v_waiting holdfast_holder.seq%TYPE;
        v_seq holdfast_waiter.seq%TYPE;
        v_ttl holdfast_waiter.ttl%TYPE;
        v_span holdfast_waiter.lease%TYPE;
    BEGIN
        v_name := HEXTORAW(a_name);
        v_ticket := HEXTORAW(a_ticket);
        v_place := 0;
        v_ask_again := -1;
        enter(v_name, k_generation, k_line, k_now_us, k_now, k_inside, k_waiting);
        SELECT COUNT(*), SUM(CASE WHEN ticket = v_ticket THEN 1 ELSE 0 END) INTO v_retired, v_mine
            FROM holdfast_retired WHERE name = v_name AND until_ms > k_now;
        v_waiting := 0;
        IF k_inside IS NOT NULL THEN
            SELECT MAX(generation), MAX(lease), MAX(claimed), MAX(lingering)
                INTO v_generation, v_lease, v_claimed, v_lingering
                FROM holdfast_holder WHERE name = v_name AND ticket = v_ticket;
        END IF;
        IF k_waiting IS NOT NULL THEN
            SELECT COUNT(*), MAX(CASE WHEN ticket = v_ticket THEN seq END) INTO v_waiting, v_seq
                FROM holdfast_waiter WHERE name = v_name;
        END IF;
        IF v_mine > 0 OR v_lingering = 1 THEN
            v_verdict := 'withdrawn';
            let_in(v_name, k_now_us, k_now, NULL, k_generation);
        ELSIF v_lingering = 0 THEN
            v_verdict := 'granted';
            IF v_lease IS NOT NULL THEN
                UPDATE holdfast_holder SET until_ms = k_now + v_lease WHERE name = v_name AND ticket = v_ticket;
            END IF;
            let_in(v_name, k_now_us, k_now, NULL, k_generation);
        ELSIF v_seq IS NULL AND (v_retired >= 10000 OR v_waiting >= 10000) THEN
            v_verdict := 'full';
            let_in(v_name, k_now_us, k_now, NULL, k_generation);
        ELSIF k_inside IS NULL AND k_waiting IS NULL THEN
            -- Nobody there: the common case goes in without passing through the queue.
            v_verdict := 'granted';
            v_generation := GREATEST(k_generation + 1, k_now_us);
            v_claimed := 1;
            v_lease := a_ttl;
            IF a_ttl = 0 THEN
                v_claimed := 0;
                v_lease := 5000;
            END IF;
            INSERT INTO holdfast_holder (name, ticket, seq, lingering, shared, room, generation, ttl, delay,
                                         retire, since_ms, until_ms, lease, claimed, host, username, program,
                                         pid, note)
                VALUES (v_name, v_ticket, k_line, 0, a_shared, a_room, v_generation, a_ttl, a_delay, a_retire,
                        k_now, k_now + v_lease, v_lease, v_claimed, a_host, a_user, a_program, a_pid,
                        HEXTORAW(a_note));
            UPDATE holdfast_lock SET generation = v_generation WHERE name = v_name;
        ELSE
            IF v_seq IS NULL THEN
                v_seq := k_line;
                v_span := LEAST(GREATEST(a_ttl, 1000), 10000);
                IF a_ttl = 0 THEN
                    v_span := 5000;
                END IF;
                INSERT INTO holdfast_waiter (name, seq, ticket, shared, room, ttl, delay, retire, since_ms,
                                             until_ms, lease, host, username, program, pid, note)
                    VALUES (v_name, k_line, v_ticket, a_shared, a_room, a_ttl, a_delay, a_retire, k_now,
                            k_now + v_span, v_span, a_host, a_user, a_program, a_pid, HEXTORAW(a_note));
            ELSE
                UPDATE holdfast_waiter SET until_ms = k_now + lease WHERE name = v_name AND seq = v_seq;
            END IF;
            let_in(v_name, k_now_us, k_now, v_ticket, k_generation);
            SELECT MAX(ttl) INTO v_ttl FROM holdfast_waiter WHERE name = v_name AND seq = v_seq;
            IF v_ttl IS NULL THEN
                v_verdict := 'granted';
                SELECT generation, lease, claimed INTO v_generation, v_lease, v_claimed
                    FROM holdfast_holder WHERE name = v_name AND ticket = v_ticket;
            ELSIF a_queue = 1 THEN
                v_verdict := 'queued';
                v_generation := k_generation;
                v_lease := LEAST(v_ttl, 10000);
                IF v_ttl = 0 THEN
                    v_lease := 5000;
                END IF;
                SELECT COUNT(*) + 1 INTO v_place FROM holdfast_waiter WHERE name = v_name AND seq < v_seq;
                next_question(v_name, v_seq, k_now, v_ask_again);
            ELSE
                v_verdict := 'busy';
                DELETE FROM holdfast_waiter WHERE name = v_name AND seq = v_seq;
            END IF;
        END IF;
        COMMIT;
        o_answer := v_verdict || ' ' || NVL(v_generation, -1) || ' ' || NVL(v_lease, -1) || ' '
            || NVL(v_claimed, 0) || ' ' || v_ask_again || ' ' || v_place || ';';
    EXCEPTION
        WHEN OTHERS THEN
            ROLLBACK;
            RAISE;
    END;

    PROCEDURE finish(
        a_name IN VARCHAR2, a_ticket IN VARCHAR2, a_retire IN holdfast_holder.retire%TYPE,
        a_withdraws IN holdfast_holder.shared%TYPE, o_answer OUT VARCHAR2) AS
        v_name holdfast_lock.name%TYPE;
        v_ticket holdfast_holder.ticket%TYPE;
        v_was VARCHAR2(9);
        k_generation holdfast_lock.generation%TYPE;
        k_line holdfast_lock.line%TYPE;
        k_now_us holdfast_lock.touched_us%TYPE;
        k_now holdfast_holder.until_ms%TYPE;
        k_inside holdfast_holder.until_ms%TYPE;
        k_waiting holdfast_holder.until_ms%TYPE;
        v_remembered holdfast_holder.seq%TYPE;
        v_lingers holdfast_holder.seq%TYPE;
    BEGIN
        v_name := HEXTORAW(a_name);
        v_ticket := HEXTORAW(a_ticket);
        v_was := 'gone';
        enter(v_name, k_generation, k_line, k_now_us, k_now, k_inside, k_waiting);
        -- A lock-delay stays, unless nobody has worked under the grant: then it is as good as inside.
        DELETE FROM holdfast_holder
            WHERE name = v_name AND ticket = v_ticket AND (lingering = 0 OR a_withdraws = 1);
        IF SQL%ROWCOUNT > 0 THEN
            v_was := 'inside';
        ELSE
            DELETE FROM holdfast_waiter WHERE name = v_name AND ticket = v_ticket;
            IF SQL%ROWCOUNT > 0 THEN
                v_was := 'waiting';
            END IF;
        END IF;
        -- A lingering one is remembered anyway. An older tombstone is renewed, never shortened: the last
        -- attempt may be younger.
        IF a_retire > 0 THEN
            SELECT COUNT(*) INTO v_lingers FROM holdfast_holder WHERE name = v_name AND ticket = v_ticket;
            SELECT COUNT(*) INTO v_remembered FROM holdfast_retired
                WHERE name = v_name AND ticket = v_ticket AND until_ms >= k_now + a_retire;
            IF v_was <> 'gone' OR v_lingers + v_remembered = 0 THEN
                retire_ticket(v_name, v_ticket, k_now, a_retire, k_now);
            END IF;
        END IF;
        IF k_waiting IS NOT NULL THEN
            let_in(v_name, k_now_us, k_now, NULL, k_generation);
        END IF;
        COMMIT;
        o_answer := 'stale -1 -1 0 -1 0;';
        IF v_was = 'inside' OR (v_was = 'waiting' AND a_withdraws = 1) THEN
            o_answer := 'done -1 -1 0 -1 0;';
        END IF;
    EXCEPTION
        WHEN OTHERS THEN
            ROLLBACK;
            RAISE;
    END;

    -- One sign of life, inside the caller's transaction; its answer is added to io_answer.
    PROCEDURE renew_one(
        v_name IN holdfast_lock.name%TYPE, v_ticket IN holdfast_holder.ticket%TYPE,
        a_generation IN holdfast_lock.generation%TYPE, io_answer IN OUT VARCHAR2) AS
        v_verdict VARCHAR2(9);
        v_generation holdfast_lock.generation%TYPE;
        v_lease holdfast_holder.lease%TYPE;
        v_claimed holdfast_holder.claimed%TYPE;
        v_ttl holdfast_holder.ttl%TYPE;
        v_ask_again holdfast_holder.until_ms%TYPE;
        k_generation holdfast_lock.generation%TYPE;
        k_line holdfast_lock.line%TYPE;
        k_now_us holdfast_lock.touched_us%TYPE;
        k_now holdfast_holder.until_ms%TYPE;
        k_inside holdfast_holder.until_ms%TYPE;
        k_waiting holdfast_holder.until_ms%TYPE;
        v_seq holdfast_waiter.seq%TYPE;
    BEGIN
        v_verdict := 'lost';
        v_ask_again := -1;
        enter(v_name, k_generation, k_line, k_now_us, k_now, k_inside, k_waiting);
        SELECT MAX(generation), MAX(ttl), MAX(lease), MAX(claimed) INTO v_generation, v_ttl, v_lease, v_claimed
            FROM holdfast_holder WHERE name = v_name AND ticket = v_ticket AND lingering = 0;
        IF v_generation IS NOT NULL THEN
            IF a_generation = v_generation AND (v_claimed = 0 OR v_lease IS NOT NULL) THEN
                v_claimed := 1;
                v_lease := NULL;
                IF v_ttl > 0 THEN
                    v_lease := v_ttl;
                END IF;
                UPDATE holdfast_holder SET claimed = 1, lease = v_lease,
                       until_ms = NVL(k_now + v_lease, 9223372036854775807)
                    WHERE name = v_name AND ticket = v_ticket;
            ELSIF a_generation = 0 AND v_lease IS NOT NULL THEN
                UPDATE holdfast_holder SET until_ms = k_now + v_lease WHERE name = v_name AND ticket = v_ticket;
            END IF;
            IF a_generation = 0 OR a_generation = v_generation THEN
                v_verdict := 'granted';
            END IF;
            IF k_waiting IS NOT NULL THEN
                let_in(v_name, k_now_us, k_now, NULL, k_generation);
            END IF;
        ELSIF k_waiting IS NOT NULL THEN
            UPDATE holdfast_waiter SET until_ms = k_now + lease WHERE name = v_name AND ticket = v_ticket;
            let_in(v_name, k_now_us, k_now, NULL, k_generation);
            SELECT MAX(seq), MAX(ttl) INTO v_seq, v_ttl
                FROM holdfast_waiter WHERE name = v_name AND ticket = v_ticket;
            IF v_seq IS NOT NULL THEN
                v_verdict := 'queued';
                v_generation := k_generation;
                v_lease := LEAST(v_ttl, 10000);
                IF v_ttl = 0 THEN
                    v_lease := 5000;
                END IF;
                next_question(v_name, v_seq, k_now, v_ask_again);
            ELSIF a_generation = 0 THEN -- it may have been let in just now
                SELECT MAX(generation), MAX(lease), MAX(claimed) INTO v_generation, v_lease, v_claimed
                    FROM holdfast_holder WHERE name = v_name AND ticket = v_ticket AND lingering = 0;
                IF v_generation IS NOT NULL THEN
                    v_verdict := 'granted';
                END IF;
            END IF;
        END IF;
        io_answer := io_answer || v_verdict || ' ' || NVL(v_generation, -1) || ' ' || NVL(v_lease, -1) || ' '
            || NVL(v_claimed, 0) || ' ' || v_ask_again || ' 0;';
    END;

    -- The caller puts them in the order of their names, so that two such calls cannot wait for each other.
    PROCEDURE renew(a_list IN VARCHAR2, o_answer OUT VARCHAR2) AS
        v_rest VARCHAR2(4000);
        v_one VARCHAR2(1200);
        v_answer VARCHAR2(4000);
        v_blank holdfast_holder.seq%TYPE;
        v_generation holdfast_lock.generation%TYPE;
    BEGIN
        v_rest := a_list;
        v_answer := '';
        WHILE LENGTH(v_rest) > 0 LOOP
            v_one := SUBSTR(v_rest, 1, INSTR(v_rest, ';') - 1);
            v_rest := SUBSTR(v_rest, INSTR(v_rest, ';') + 1);
            v_blank := INSTR(v_one, ' ');
            v_generation := SUBSTR(v_one, v_blank + 34);
            renew_one(HEXTORAW(SUBSTR(v_one, 1, v_blank - 1)), HEXTORAW(SUBSTR(v_one, v_blank + 1, 32)),
                      v_generation, v_answer);
        END LOOP;
        COMMIT;
        o_answer := v_answer;
    EXCEPTION
        WHEN OTHERS THEN
            ROLLBACK;
            RAISE;
    END;

    -- A holder keeps the door closed as long as it may believe that it holds.
    PROCEDURE take_away(
        a_name IN VARCHAR2, a_ticket IN VARCHAR2, a_at_once IN holdfast_holder.shared%TYPE,
        o_answer OUT VARCHAR2) AS
        v_name holdfast_lock.name%TYPE;
        v_ticket holdfast_holder.ticket%TYPE;
        v_verdict VARCHAR2(9);
        k_generation holdfast_lock.generation%TYPE;
        k_line holdfast_lock.line%TYPE;
        k_now_us holdfast_lock.touched_us%TYPE;
        k_now holdfast_holder.until_ms%TYPE;
        k_inside holdfast_holder.until_ms%TYPE;
        k_waiting holdfast_holder.until_ms%TYPE;
        v_lingering holdfast_holder.lingering%TYPE;
        v_retire holdfast_holder.retire%TYPE;
        v_span holdfast_holder.until_ms%TYPE;
    BEGIN
        v_name := HEXTORAW(a_name);
        v_ticket := HEXTORAW(a_ticket);
        v_verdict := 'done';
        enter(v_name, k_generation, k_line, k_now_us, k_now, k_inside, k_waiting);
        SELECT MAX(lingering), MAX(retire),
               MAX(CASE WHEN a_at_once = 1 OR lease IS NULL THEN 0 ELSE until_ms - k_now END
                   + CASE WHEN claimed = 1 THEN delay ELSE 0 END)
            INTO v_lingering, v_retire, v_span FROM holdfast_holder WHERE name = v_name AND ticket = v_ticket;
        IF v_lingering = 0 AND v_span > 0 THEN
            UPDATE holdfast_holder SET lingering = 1, lease = v_span, until_ms = k_now + v_span
                WHERE name = v_name AND ticket = v_ticket;
        ELSIF v_lingering = 0 OR (v_lingering = 1 AND a_at_once = 1) THEN
            DELETE FROM holdfast_holder WHERE name = v_name AND ticket = v_ticket;
            retire_ticket(v_name, v_ticket, k_now, v_retire, k_now);
        ELSIF v_lingering IS NULL THEN
            SELECT MAX(retire) INTO v_retire FROM holdfast_waiter WHERE name = v_name AND ticket = v_ticket;
            IF v_retire IS NULL THEN
                v_verdict := 'stale';
            ELSE
                DELETE FROM holdfast_waiter WHERE name = v_name AND ticket = v_ticket;
                retire_ticket(v_name, v_ticket, k_now, v_retire, k_now);
            END IF;
        END IF;
        let_in(v_name, k_now_us, k_now, NULL, k_generation);
        COMMIT;
        o_answer := v_verdict || ' -1 -1 0 -1 0;';
    EXCEPTION
        WHEN OTHERS THEN
            ROLLBACK;
            RAISE;
    END;
END;
/
