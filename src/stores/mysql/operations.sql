-- One procedure per operation: sweep, apply, let in, answer, commit, call. An answer is a row of
--   verdict     granted, queued, busy, withdrawn, full, done, stale, lost
--   generation  granted: its own; queued: the last one given
--   lease       granted: in force, NULL: never; queued: what a hand-over would give
--   claimed     granted: the store knows that the holder knows
--   place       queued: from 1; 0: not counted
--   ask_again   queued: after so many milliseconds, NULL: never
--   wanted      granted, and asked for: somebody waits; busy: it is worth asking again soon (not to clients of before)
-- The transaction begins and ends here; an error rolls it back and is told. The answer is sent before the commit: so an
-- error without an answer means that nothing was applied, and one after it that this is not known. A client takes and frees a lock that
-- has no queue without these, by one UPDATE of the lock's row (quick.c); whatever that does not match comes here.

DELIMITER $$

-- A bid, or the same bid again; not after a_latest: see holdfast_check_time. a_flags are those of its holder.
DROP PROCEDURE IF EXISTS holdfast_bid $$
CREATE PROCEDURE holdfast_bid(
    IN a_name VARBINARY(512), IN a_ticket BINARY(16), IN a_shared BOOLEAN, IN a_room BIGINT, IN a_ttl BIGINT,
    IN a_delay BIGINT, IN a_retire BIGINT, IN a_queue BOOLEAN, IN a_wake VARCHAR(60) CHARACTER SET ascii,
    IN a_host VARCHAR(255) CHARACTER SET utf8mb4, IN a_user VARCHAR(255) CHARACTER SET utf8mb4,
    IN a_program VARCHAR(255) CHARACTER SET utf8mb4, IN a_pid BIGINT,
    IN a_note VARBINARY(256), IN a_latest BIGINT, IN a_flags INT)
SQL SECURITY INVOKER
BEGIN
    DECLARE o_verdict VARCHAR(9) CHARACTER SET ascii DEFAULT 'granted';
    DECLARE o_generation, o_lease, o_place, o_ask_again, k_generation, k_line, w_seq, w_ttl BIGINT;
    DECLARE at_touched DATETIME(6);
    DECLARE at_now, inside_until, waiting_until DATETIME(3);
    DECLARE o_claimed, is_retired, stays, found BOOLEAN DEFAULT TRUE;
    DECLARE o_wanted, is_new BOOLEAN DEFAULT FALSE;
    DECLARE calls TEXT CHARACTER SET ascii DEFAULT '';
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET found = FALSE;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        ROLLBACK AND NO CHAIN NO RELEASE;
        RESIGNAL;
    END;

    CALL holdfast_begin();
    CALL holdfast_enter(a_name, a_ticket, k_generation, k_line, at_touched, at_now, inside_until, waiting_until,
                        is_retired);
    CALL holdfast_check_time(at_touched, a_latest);

    attempt: BEGIN
        IF is_retired THEN
            SET o_verdict = 'withdrawn';
            CALL holdfast_let_in(a_name, at_touched, at_now, NULL, k_generation, calls);
            LEAVE attempt;
        END IF;
        IF inside_until IS NOT NULL THEN
            SET found = TRUE;
            SELECT generation, lease, claimed, lingering INTO o_generation, o_lease, o_claimed, stays
                FROM holdfast_holder WHERE name = a_name AND ticket = a_ticket;
            IF found THEN
                IF stays THEN
                    SET o_verdict = 'withdrawn';
                ELSEIF o_lease IS NOT NULL THEN
                    UPDATE holdfast_holder SET until = at_now + INTERVAL o_lease * 1000 MICROSECOND
                        WHERE name = a_name AND ticket = a_ticket;
                END IF;
                CALL holdfast_let_in(a_name, at_touched, at_now, NULL, k_generation, calls);
                IF NOT stays THEN
                    CALL holdfast_is_wanted(a_name, a_ticket, o_wanted);
                END IF;
                LEAVE attempt;
            END IF;
        END IF;
        SET w_seq = NULL;
        IF waiting_until IS NOT NULL THEN
            SELECT seq INTO w_seq FROM holdfast_waiter WHERE name = a_name AND ticket = a_ticket;
        END IF;
        IF w_seq IS NULL AND (
            (SELECT COUNT(*) FROM holdfast_retired WHERE name = a_name AND until > at_now) >= 10000
            OR (waiting_until IS NOT NULL
                AND (SELECT COUNT(*) FROM (SELECT 1 FROM holdfast_waiter WHERE name = a_name LIMIT 10000) q)
                    >= 10000)) THEN
            SET o_verdict = 'full';
            CALL holdfast_let_in(a_name, at_touched, at_now, NULL, k_generation, calls);
            LEAVE attempt;
        END IF;

        -- Nobody there: the common case goes in without passing through the queue.
        IF inside_until IS NULL AND waiting_until IS NULL THEN
            SET o_generation = GREATEST(k_generation + 1, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', at_touched)),
                o_claimed = a_ttl <> 0,
                o_lease = IF(a_ttl = 0, 5000, a_ttl);
            IF a_shared OR a_ttl = 0 OR a_delay > 0 OR a_flags <> 0
               OR EXISTS (SELECT 1 FROM holdfast_retired WHERE name = a_name AND until > at_now) THEN
                INSERT INTO holdfast_holder VALUES (a_name, a_ticket, k_line, FALSE, a_shared, a_room,
                    o_generation, a_ttl, a_delay, a_retire, at_now,
                    at_now + INTERVAL o_lease * 1000 MICROSECOND, o_lease, o_claimed, a_wake, a_host, a_user,
                    a_program, a_pid, a_note, a_flags);
                UPDATE holdfast_lock SET generation = o_generation WHERE name = a_name;
            ELSE
                UPDATE holdfast_lock SET generation = o_generation, inside = a_ticket, token = o_generation,
                       since = at_touched, ttl = a_ttl, retire = a_retire, wake = a_wake, host = a_host,
                       username = a_user, program = a_program, pid = a_pid, note = a_note
                    WHERE name = a_name;
            END IF;
            LEAVE attempt;
        END IF;

        IF w_seq IS NULL THEN
            SET is_new = TRUE, w_seq = k_line, w_ttl = IF(a_ttl = 0, 5000, LEAST(GREATEST(a_ttl, 1000), 10000));
            INSERT INTO holdfast_waiter VALUES (a_name, k_line, a_ticket, a_shared, a_room, a_ttl, a_delay,
                a_retire, at_now, at_now + INTERVAL w_ttl * 1000 MICROSECOND, w_ttl, a_wake, a_host, a_user,
                a_program, a_pid, a_note, a_flags);
        ELSE
            UPDATE holdfast_waiter SET until = at_now + INTERVAL lease * 1000 MICROSECOND, wake = a_wake
                WHERE name = a_name AND seq = w_seq;
        END IF;
        CALL holdfast_let_in(a_name, at_touched, at_now, a_ticket, k_generation, calls);
        SET found = TRUE;
        SELECT ttl INTO w_ttl FROM holdfast_waiter WHERE name = a_name AND seq = w_seq;
        IF NOT found THEN
            SELECT generation, lease, claimed INTO o_generation, o_lease, o_claimed
                FROM holdfast_holder WHERE name = a_name AND ticket = a_ticket;
            CALL holdfast_is_wanted(a_name, a_ticket, o_wanted);
        ELSEIF a_queue THEN
            IF is_new THEN
                CALL holdfast_call_holders(a_name, calls);
            END IF;
            SET o_verdict = 'queued', o_generation = k_generation,
                o_lease = IF(w_ttl = 0, 5000, LEAST(w_ttl, 10000)),
                o_place = 1 + (SELECT COUNT(*) FROM holdfast_waiter WHERE name = a_name AND seq < w_seq);
            CALL holdfast_ask_again(a_name, w_seq, at_now, o_ask_again);
        ELSE
            SET o_verdict = 'busy';
            DELETE FROM holdfast_waiter WHERE name = a_name AND seq = w_seq;
            CALL holdfast_call_cached(a_name, calls, o_wanted);
        END IF;
    END;

    IF a_latest IS NULL THEN -- a client of before
        SELECT o_verdict, o_generation, o_lease, o_claimed, o_place, o_ask_again;
    ELSE
        SELECT o_verdict, o_generation, o_lease, o_claimed, o_place, o_ask_again, o_wanted;
    END IF;
    CALL holdfast_finish(calls);
END $$

-- What clients of before call.
DROP PROCEDURE IF EXISTS holdfast_attempt $$
CREATE PROCEDURE holdfast_attempt(
    IN a_name VARBINARY(512), IN a_ticket BINARY(16), IN a_shared BOOLEAN, IN a_room BIGINT, IN a_ttl BIGINT,
    IN a_delay BIGINT, IN a_retire BIGINT, IN a_queue BOOLEAN, IN a_wake VARCHAR(60) CHARACTER SET ascii,
    IN a_host VARCHAR(255) CHARACTER SET utf8mb4, IN a_user VARCHAR(255) CHARACTER SET utf8mb4,
    IN a_program VARCHAR(255) CHARACTER SET utf8mb4, IN a_pid BIGINT,
    IN a_note VARBINARY(256))
SQL SECURITY INVOKER
BEGIN
    CALL holdfast_bid(a_name, a_ticket, a_shared, a_room, a_ttl, a_delay, a_retire, a_queue, a_wake, a_host, a_user,
                      a_program, a_pid, a_note, NULL, FALSE);
END $$

-- The bidder is done with its ticket: release (withdraws = 0) or withdraw. In a transaction that has entered; ends it.
DROP PROCEDURE IF EXISTS holdfast_leave $$
CREATE PROCEDURE holdfast_leave(
    IN a_name VARBINARY(512), IN a_ticket BINARY(16), IN a_retire BIGINT, IN withdraws BOOLEAN,
    IN at_touched DATETIME(6), IN at_now DATETIME(3), IN waiting_until DATETIME(3), IN k_generation BIGINT)
SQL SECURITY INVOKER
BEGIN
    DECLARE was VARCHAR(9) CHARACTER SET ascii DEFAULT 'gone';
    DECLARE calls TEXT CHARACTER SET ascii DEFAULT '';

    -- A lock-delay stays, unless nobody has worked under the grant: then it is as good as inside.
    DELETE FROM holdfast_holder WHERE name = a_name AND ticket = a_ticket AND (withdraws OR NOT lingering);
    IF ROW_COUNT() > 0 THEN
        SET was = 'inside';
    ELSEIF waiting_until IS NOT NULL THEN
        DELETE FROM holdfast_waiter WHERE name = a_name AND ticket = a_ticket;
        IF ROW_COUNT() > 0 THEN
            SET was = 'waiting';
        END IF;
    END IF;
    -- A lingering one is remembered anyway. An older tombstone is renewed, never shortened: the last attempt
    -- may be younger.
    IF a_retire > 0 AND (was <> 'gone' OR NOT (
        EXISTS (SELECT 1 FROM holdfast_holder WHERE name = a_name AND ticket = a_ticket)
        OR EXISTS (SELECT 1 FROM holdfast_retired WHERE name = a_name AND ticket = a_ticket
                   AND until >= at_now + INTERVAL a_retire * 1000 MICROSECOND))) THEN
        CALL holdfast_retire(a_name, a_ticket, at_now, a_retire, at_now);
    END IF;
    IF waiting_until IS NOT NULL THEN
        CALL holdfast_let_in(a_name, at_touched, at_now, NULL, k_generation, calls);
    ELSEIF NOT EXISTS (SELECT 1 FROM holdfast_holder WHERE name = a_name)
        AND NOT EXISTS (SELECT 1 FROM holdfast_retired WHERE name = a_name AND until > at_now) THEN
        UPDATE holdfast_lock SET inside = x'00000000000000000000000000000000' WHERE name = a_name;
    END IF;
    SELECT IF(was = 'inside' OR (was = 'waiting' AND withdraws), 'done', 'stale');
    CALL holdfast_finish(calls);
END $$

DROP PROCEDURE IF EXISTS holdfast_end $$
CREATE PROCEDURE holdfast_end(
    IN a_name VARBINARY(512), IN a_ticket BINARY(16), IN a_retire BIGINT, IN withdraws BOOLEAN)
SQL SECURITY INVOKER
BEGIN
    DECLARE k_generation, k_line BIGINT;
    DECLARE at_touched DATETIME(6);
    DECLARE at_now, inside_until, waiting_until DATETIME(3);
    DECLARE is_retired BOOLEAN;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        ROLLBACK AND NO CHAIN NO RELEASE;
        RESIGNAL;
    END;

    CALL holdfast_begin();
    CALL holdfast_enter(a_name, a_ticket, k_generation, k_line, at_touched, at_now, inside_until, waiting_until,
                        is_retired);
    CALL holdfast_leave(a_name, a_ticket, a_retire, withdraws, at_touched, at_now, waiting_until, k_generation);
END $$

-- A release after which the lock opens no earlier than a_at_least after it was taken: until then the holder lingers. a_used:
-- the last token of a cached grant that was used, or 0.
DROP PROCEDURE IF EXISTS holdfast_release_used $$
CREATE PROCEDURE holdfast_release_used(
    IN a_name VARBINARY(512), IN a_ticket BINARY(16), IN a_retire BIGINT, IN a_at_least BIGINT, IN a_used BIGINT)
SQL SECURITY INVOKER
BEGIN
    DECLARE k_generation, k_line BIGINT;
    DECLARE at_touched DATETIME(6);
    DECLARE at_now, inside_until, waiting_until DATETIME(3);
    DECLARE is_retired BOOLEAN;
    DECLARE calls TEXT CHARACTER SET ascii DEFAULT '';
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        ROLLBACK AND NO CHAIN NO RELEASE;
        RESIGNAL;
    END;

    CALL holdfast_begin();
    CALL holdfast_enter(a_name, a_ticket, k_generation, k_line, at_touched, at_now, inside_until, waiting_until,
                        is_retired);
    IF EXISTS (SELECT 1 FROM holdfast_holder WHERE name = a_name AND ticket = a_ticket AND NOT lingering AND flags & 8
               AND a_used - generation BETWEEN 1 AND 1048576) THEN
        CALL holdfast_give_numbers(a_name, a_used, k_generation);
    END IF;
    UPDATE holdfast_holder SET lingering = TRUE, lease = a_at_least, until = since + INTERVAL a_at_least * 1000 MICROSECOND
        WHERE name = a_name AND ticket = a_ticket AND NOT lingering AND a_at_least > 0
        AND since + INTERVAL a_at_least * 1000 MICROSECOND > at_now;
    IF ROW_COUNT() > 0 THEN
        CALL holdfast_let_in(a_name, at_touched, at_now, NULL, k_generation, calls);
        SELECT 'done';
        CALL holdfast_finish(calls);
    ELSE -- a plain release, in the same transaction: nobody comes between
        CALL holdfast_leave(a_name, a_ticket, a_retire, FALSE, at_touched, at_now, waiting_until, k_generation);
    END IF;
END $$

-- What clients of before call.
DROP PROCEDURE IF EXISTS holdfast_release_after $$
CREATE PROCEDURE holdfast_release_after(
    IN a_name VARBINARY(512), IN a_ticket BINARY(16), IN a_retire BIGINT, IN a_at_least BIGINT)
SQL SECURITY INVOKER
BEGIN
    CALL holdfast_release_used(a_name, a_ticket, a_retire, a_at_least, 0);
END $$

-- A sign of life; with the generation it claims the grant. Inside the caller's transaction; the answer is
-- added to io_answers as "verdict generation lease claimed ask_again wanted;" with - for NULL.
DROP PROCEDURE IF EXISTS holdfast_renew_one $$
CREATE PROCEDURE holdfast_renew_one(
    IN a_name VARBINARY(512), IN a_ticket BINARY(16), IN a_generation BIGINT, IN a_latest BIGINT,
    INOUT io_calls TEXT CHARACTER SET ascii, INOUT io_answers MEDIUMTEXT CHARACTER SET ascii)
SQL SECURITY INVOKER
BEGIN
    DECLARE o_verdict VARCHAR(9) CHARACTER SET ascii DEFAULT 'lost';
    DECLARE o_generation, o_lease, o_ask_again, k_generation, k_line, h_generation, h_ttl, w_seq, w_ttl BIGINT;
    DECLARE at_touched DATETIME(6);
    DECLARE at_now, inside_until, waiting_until DATETIME(3);
    DECLARE o_claimed, is_retired, found, inside BOOLEAN DEFAULT TRUE;
    DECLARE o_wanted BOOLEAN DEFAULT FALSE;
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET found = FALSE;

    CALL holdfast_enter(a_name, a_ticket, k_generation, k_line, at_touched, at_now, inside_until, waiting_until,
                        is_retired);
    CALL holdfast_check_time(at_touched, a_latest);
    SET found = TRUE;
    SELECT generation, ttl, lease, claimed INTO h_generation, h_ttl, o_lease, o_claimed
        FROM holdfast_holder WHERE name = a_name AND ticket = a_ticket AND NOT lingering;
    SET inside = found;
    IF inside AND a_generation IN (0, h_generation) THEN
        IF a_generation = h_generation AND (NOT o_claimed OR o_lease IS NOT NULL) THEN
            SET o_claimed = TRUE, o_lease = NULLIF(h_ttl, 0);
            UPDATE holdfast_holder SET claimed = TRUE, lease = o_lease,
                   until = COALESCE(at_now + INTERVAL o_lease * 1000 MICROSECOND, '9999-12-31')
                WHERE name = a_name AND ticket = a_ticket;
        ELSEIF a_generation = 0 AND o_lease IS NOT NULL THEN
            UPDATE holdfast_holder SET until = at_now + INTERVAL o_lease * 1000 MICROSECOND
                WHERE name = a_name AND ticket = a_ticket;
        END IF;
        SET o_verdict = 'granted', o_generation = h_generation;
    END IF;
    IF waiting_until IS NOT NULL THEN
        IF NOT inside THEN
            UPDATE holdfast_waiter SET until = at_now + INTERVAL lease * 1000 MICROSECOND
                WHERE name = a_name AND ticket = a_ticket;
        END IF;
        CALL holdfast_let_in(a_name, at_touched, at_now, NULL, k_generation, io_calls);
    END IF;
    IF waiting_until IS NOT NULL AND NOT inside THEN
        SET found = TRUE;
        SELECT seq, ttl INTO w_seq, w_ttl FROM holdfast_waiter WHERE name = a_name AND ticket = a_ticket;
        IF found THEN
            SET o_verdict = 'queued', o_generation = k_generation, o_claimed = FALSE,
                o_lease = IF(w_ttl = 0, 5000, LEAST(w_ttl, 10000));
            CALL holdfast_ask_again(a_name, w_seq, at_now, o_ask_again);
        ELSEIF a_generation = 0 THEN -- it may have been let in just now
            SET found = TRUE;
            SELECT generation, lease, claimed INTO o_generation, o_lease, o_claimed
                FROM holdfast_holder WHERE name = a_name AND ticket = a_ticket AND NOT lingering;
            SET o_verdict = IF(found, 'granted', 'lost');
        END IF;
    END IF;
    IF o_verdict = 'granted' THEN
        CALL holdfast_is_wanted(a_name, a_ticket, o_wanted);
    END IF;
    SET io_answers = CONCAT(io_answers, o_verdict, ' ', COALESCE(o_generation, '-'), ' ',
                            COALESCE(o_lease, '-'), ' ', COALESCE(o_claimed, '-'), ' ',
                            COALESCE(o_ask_again, '-'), ' ', COALESCE(o_wanted, '-'), ';');
END $$

-- Many at once: "name ticket generation;" each, the first two in hex. The caller puts them in the order of
-- their names, so that two such calls cannot wait for each other.
DROP PROCEDURE IF EXISTS holdfast_keep $$
CREATE PROCEDURE holdfast_keep(IN a_list MEDIUMTEXT CHARACTER SET ascii, IN a_latest BIGINT)
SQL SECURITY INVOKER
BEGIN
    DECLARE place INT DEFAULT 1;
    DECLARE one VARCHAR(1100) CHARACTER SET ascii;
    DECLARE calls TEXT CHARACTER SET ascii DEFAULT '';
    DECLARE answers MEDIUMTEXT CHARACTER SET ascii DEFAULT '';
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        ROLLBACK AND NO CHAIN NO RELEASE;
        RESIGNAL;
    END;

    CALL holdfast_begin();
    WHILE place <= LENGTH(a_list) DO
        SET one = SUBSTRING_INDEX(SUBSTR(a_list, place, 1100), ';', 1),
            place = place + LENGTH(one) + 1;
        CALL holdfast_renew_one(UNHEX(SUBSTRING_INDEX(one, ' ', 1)),
                                UNHEX(SUBSTRING_INDEX(SUBSTRING_INDEX(one, ' ', 2), ' ', -1)),
                                CAST(SUBSTRING_INDEX(one, ' ', -1) AS SIGNED), a_latest, calls, answers);
    END WHILE;
    SELECT answers;
    CALL holdfast_finish(calls);
END $$

-- What clients of before call.
DROP PROCEDURE IF EXISTS holdfast_renew $$
CREATE PROCEDURE holdfast_renew(IN a_list MEDIUMTEXT CHARACTER SET ascii)
SQL SECURITY INVOKER
BEGIN
    CALL holdfast_keep(a_list, NULL);
END $$

-- Takes the lock away from a ticket. A holder keeps the door closed as long as it may believe that it holds.
DROP PROCEDURE IF EXISTS holdfast_break $$
CREATE PROCEDURE holdfast_break(IN a_name VARBINARY(512), IN a_ticket BINARY(16), IN at_once BOOLEAN)
SQL SECURITY INVOKER
BEGIN
    DECLARE o_verdict VARCHAR(9) CHARACTER SET ascii DEFAULT 'done';
    DECLARE k_generation, k_line, k_retire, k_last, span BIGINT;
    DECLARE at_touched DATETIME(6);
    DECLARE at_now, inside_until, waiting_until DATETIME(3);
    DECLARE is_retired, stays, k_opened, found BOOLEAN DEFAULT TRUE;
    DECLARE k_wake VARCHAR(60) CHARACTER SET ascii;
    DECLARE calls TEXT CHARACTER SET ascii DEFAULT '';
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET found = FALSE;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        ROLLBACK AND NO CHAIN NO RELEASE;
        RESIGNAL;
    END;

    CALL holdfast_begin();
    CALL holdfast_enter(a_name, a_ticket, k_generation, k_line, at_touched, at_now, inside_until, waiting_until,
                        is_retired);
    SET found = TRUE;
    SELECT lingering, retire, wake, NOT lingering AND flags & 4, IF(NOT lingering AND flags & 8, generation + 1048576, 0),
           IF(at_once OR lease IS NULL, 0, TIMESTAMPDIFF(MICROSECOND, at_now, until) DIV 1000)
           + IF(claimed, delay, 0)
        INTO stays, k_retire, k_wake, k_opened, k_last, span FROM holdfast_holder WHERE name = a_name AND ticket = a_ticket;
    IF found THEN
        IF k_opened THEN
            CALL holdfast_doubt(a_name);
        END IF;
        CALL holdfast_give_numbers(a_name, k_last, k_generation);
        IF NOT stays AND span > 0 THEN
            UPDATE holdfast_holder SET lingering = TRUE, lease = span,
                   until = at_now + INTERVAL span * 1000 MICROSECOND
                WHERE name = a_name AND ticket = a_ticket;
        ELSEIF NOT stays OR at_once THEN
            DELETE FROM holdfast_holder WHERE name = a_name AND ticket = a_ticket;
            CALL holdfast_retire(a_name, a_ticket, at_now, k_retire, at_now);
        END IF;
    ELSE
        SET found = TRUE;
        SELECT retire, wake INTO k_retire, k_wake FROM holdfast_waiter
            WHERE name = a_name AND ticket = a_ticket;
        IF found THEN
            DELETE FROM holdfast_waiter WHERE name = a_name AND ticket = a_ticket;
            CALL holdfast_retire(a_name, a_ticket, at_now, k_retire, at_now);
        ELSE
            SET o_verdict = 'stale';
        END IF;
    END IF;
    IF k_wake IS NOT NULL THEN
        SET calls = CONCAT(k_wake, ',');
    END IF;
    CALL holdfast_let_in(a_name, at_touched, at_now, NULL, k_generation, calls);
    SELECT o_verdict;
    CALL holdfast_finish(calls);
END $$

-- The value, in hex: for the holder of this generation, who opens it by that if it is an exclusive one; with generation 0
-- for anybody. A lock that was never asked for gets no row by being looked at.
DROP PROCEDURE IF EXISTS holdfast_read $$
CREATE PROCEDURE holdfast_read(IN a_name VARBINARY(512), IN a_ticket BINARY(16), IN a_generation BIGINT)
SQL SECURITY INVOKER
BEGIN
    DECLARE o_verdict VARCHAR(9) CHARACTER SET ascii DEFAULT 'done';
    DECLARE k_generation, k_line BIGINT;
    DECLARE at_touched DATETIME(6);
    DECLARE at_now, inside_until, waiting_until DATETIME(3);
    DECLARE is_retired BOOLEAN;
    DECLARE calls TEXT CHARACTER SET ascii DEFAULT '';
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        ROLLBACK AND NO CHAIN NO RELEASE;
        RESIGNAL;
    END;

    CALL holdfast_begin();
    IF a_generation <> 0 OR EXISTS (SELECT 1 FROM holdfast_lock WHERE name = a_name) THEN
        CALL holdfast_enter(a_name, a_ticket, k_generation, k_line, at_touched, at_now, inside_until, waiting_until,
                            is_retired);
        IF a_generation <> 0 AND NOT EXISTS (SELECT 1 FROM holdfast_holder WHERE name = a_name AND ticket = a_ticket
                                             AND generation = a_generation AND NOT lingering) THEN
            SET o_verdict = 'lost';
        END IF;
        UPDATE holdfast_holder SET flags = flags | 4 WHERE name = a_name AND ticket = a_ticket
            AND generation = a_generation AND NOT lingering AND NOT shared;
        CALL holdfast_let_in(a_name, at_touched, at_now, NULL, k_generation, calls);
    END IF;
    SELECT o_verdict, v.generation, v.nth, v.doubt, LOWER(HEX(v.bytes))
        FROM (SELECT 1) one LEFT JOIN holdfast_value v ON v.name = a_name;
    CALL holdfast_finish(calls);
END $$

-- The exclusive holder of this generation writes the value, in the order of its own writes.
DROP PROCEDURE IF EXISTS holdfast_write $$
CREATE PROCEDURE holdfast_write(
    IN a_name VARBINARY(512), IN a_ticket BINARY(16), IN a_generation BIGINT, IN a_nth BIGINT, IN a_bytes VARBINARY(1024))
SQL SECURITY INVOKER
BEGIN
    DECLARE o_verdict VARCHAR(9) CHARACTER SET ascii DEFAULT 'done';
    DECLARE k_generation, k_line BIGINT;
    DECLARE at_touched DATETIME(6);
    DECLARE at_now, inside_until, waiting_until DATETIME(3);
    DECLARE is_retired BOOLEAN;
    DECLARE calls TEXT CHARACTER SET ascii DEFAULT '';
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        ROLLBACK AND NO CHAIN NO RELEASE;
        RESIGNAL;
    END;

    CALL holdfast_begin();
    CALL holdfast_enter(a_name, a_ticket, k_generation, k_line, at_touched, at_now, inside_until, waiting_until,
                        is_retired);
    IF NOT EXISTS (SELECT 1 FROM holdfast_holder WHERE name = a_name AND ticket = a_ticket
                   AND generation = a_generation AND NOT lingering AND NOT shared) THEN
        SET o_verdict = 'lost';
    ELSEIF EXISTS (SELECT 1 FROM holdfast_value WHERE name = a_name
                   AND (generation > a_generation OR (generation = a_generation AND nth > a_nth))) THEN
        SET o_verdict = 'stale';
    ELSE
        INSERT INTO holdfast_value (name, generation, nth, doubt, bytes) VALUES (a_name, a_generation, a_nth, FALSE, a_bytes)
            ON DUPLICATE KEY UPDATE generation = a_generation, nth = a_nth, doubt = FALSE, bytes = a_bytes;
        UPDATE holdfast_holder SET flags = flags | 4 WHERE name = a_name AND ticket = a_ticket;
    END IF;
    CALL holdfast_let_in(a_name, at_touched, at_now, NULL, k_generation, calls);
    SELECT o_verdict;
    CALL holdfast_finish(calls);
END $$

CREATE PROCEDURE holdfast_routines()
SQL SECURITY INVOKER
BEGIN
    SELECT 4, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6));
END $$

-- Clients of before ask for this, and want it to be 2.
CREATE PROCEDURE holdfast_version()
SQL SECURITY INVOKER
BEGIN
    SELECT 2;
END $$

DELIMITER ;
