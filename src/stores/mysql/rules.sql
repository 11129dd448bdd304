-- The doorman's rules (src/doorman/doorman.c) as procedures: what the operations share.
--
-- Every operation locks the row of its name first, in one upsert, which makes all others that want the
-- same name wait until the commit; the clock is read after that. In READ COMMITTED each later statement
-- sees what the one before us has committed, and nobody locks a gap.

DELIMITER $$

-- The version of these procedures, and of those of operations.sql: HF__MY_RULES. A client uses none of a lower one. What
-- a client of an older one calls stays as it was: so it goes on. The versions go first and come last.
DROP PROCEDURE IF EXISTS holdfast_routines $$
DROP PROCEDURE IF EXISTS holdfast_version $$

-- Begins the transaction of an operation, whatever autocommit and completion_type say. SYSDATE() follows the time zone.
DROP PROCEDURE IF EXISTS holdfast_begin $$
CREATE PROCEDURE holdfast_begin()
SQL SECURITY INVOKER
BEGIN
    IF @@session.time_zone <> '+00:00' THEN
        SET time_zone = '+00:00';
    END IF;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    START TRANSACTION READ WRITE;
END $$

-- Whoever stands in the lock's row alone moves to holdfast_holder, where the rules look.
DROP PROCEDURE IF EXISTS holdfast_move $$
CREATE PROCEDURE holdfast_move(IN a_name VARBINARY(512))
SQL SECURITY INVOKER
BEGIN
    INSERT INTO holdfast_holder
        SELECT name, inside, 0, FALSE, FALSE, NULL, token, ttl, 0, retire,
               since - INTERVAL MICROSECOND(since) MOD 1000 MICROSECOND,
               since + INTERVAL ttl * 1000 - MICROSECOND(since) MOD 1000 MICROSECOND,
               ttl, TRUE, wake, host, username, program, pid, note, 0
        FROM holdfast_lock WHERE name = a_name;
    UPDATE holdfast_lock SET inside = NULL WHERE name = a_name;
END $$

-- Nobody waits for the answer after a_latest (microseconds since 1970; NULL: no matter when), and has said that the store
-- holds nothing more. A request may have been late before it was read, or wait for others: then nothing is done.
DROP PROCEDURE IF EXISTS holdfast_check_time $$
CREATE PROCEDURE holdfast_check_time(IN at_time DATETIME(6), IN a_latest BIGINT)
SQL SECURITY INVOKER
BEGIN
    IF TIMESTAMPDIFF(MICROSECOND, '1970-01-01', at_time) > a_latest THEN
        SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'the request came too late';
    END IF;
END $$

-- The serialization point of every operation, then what all of them have to know, and the sweep. o_inside and
-- o_waiting: when the first of them is due; NULL: nobody. From here on the lock's row says nothing of holders.
DROP PROCEDURE IF EXISTS holdfast_enter $$
CREATE PROCEDURE holdfast_enter(
    IN a_name VARBINARY(512), IN a_ticket BINARY(16), OUT o_generation BIGINT, OUT o_line BIGINT,
    OUT o_touched DATETIME(6), OUT o_now DATETIME(3), OUT o_inside DATETIME(3), OUT o_waiting DATETIME(3),
    OUT o_retired BOOLEAN)
SQL SECURITY INVOKER
BEGIN
    DECLARE before_that DATETIME(6);
    DECLARE alone BOOLEAN;

    INSERT INTO holdfast_lock (name, generation, line, touched, `before`)
        VALUES (a_name, 0, 1, '1970-01-01', '1970-01-01')
        ON DUPLICATE KEY UPDATE line = line + 1, `before` = touched, touched = SYSDATE(6),
            inside = NULLIF(inside, x'00000000000000000000000000000000');
    SELECT k.generation, k.line, k.touched, k.`before`, k.inside IS NOT NULL,
           (SELECT MIN(IF(lingering AND until > k.touched + INTERVAL lease * 1000 MICROSECOND,
                          TIMESTAMP '1970-01-01 00:00:00', until))
                FROM holdfast_holder WHERE name = a_name), -- one that is too far ahead is to be cut, too
           (SELECT MIN(until) FROM holdfast_waiter WHERE name = a_name),
           EXISTS (SELECT 1 FROM holdfast_retired WHERE name = a_name AND ticket = a_ticket
                   AND until > k.touched)
        INTO o_generation, o_line, o_touched, before_that, alone, o_inside, o_waiting, o_retired
        FROM holdfast_lock k WHERE k.name = a_name;
    IF o_touched = '1970-01-01' THEN -- a new row: whoever inserts may have waited as well
        SET o_touched = SYSDATE(6);
        UPDATE holdfast_lock SET touched = o_touched WHERE name = a_name;
    END IF;
    SET o_now = o_touched - INTERVAL MICROSECOND(o_touched) MOD 1000 MICROSECOND;
    IF alone THEN
        CALL holdfast_move(a_name);
        SELECT MIN(until) INTO o_inside FROM holdfast_holder WHERE name = a_name;
    END IF;
    IF before_that > o_touched OR o_inside <= o_now OR o_waiting <= o_now THEN
        CALL holdfast_sweep(a_name, o_touched, before_that, o_now, o_generation);
        SELECT MIN(until) INTO o_inside FROM holdfast_holder WHERE name = a_name;
        SELECT MIN(until) INTO o_waiting FROM holdfast_waiter WHERE name = a_name;
        SET o_retired = EXISTS (SELECT 1 FROM holdfast_retired WHERE name = a_name AND ticket = a_ticket
                                AND until > o_now);
    END IF;
END $$

-- Remembers a ticket, and forgets those whose time has come.
DROP PROCEDURE IF EXISTS holdfast_retire $$
CREATE PROCEDURE holdfast_retire(
    IN a_name VARBINARY(512), IN a_ticket BINARY(16), IN from_when DATETIME(3), IN span BIGINT,
    IN at_now DATETIME(3))
SQL SECURITY INVOKER
BEGIN
    IF span > 0 AND from_when + INTERVAL span * 1000 MICROSECOND > at_now THEN
        DELETE FROM holdfast_retired WHERE name = a_name AND until <= at_now;
        INSERT INTO holdfast_retired (name, ticket, until, lease)
            VALUES (a_name, a_ticket, from_when + INTERVAL span * 1000 MICROSECOND, span)
            ON DUPLICATE KEY UPDATE until = VALUES(until), lease = VALUES(lease);
    END IF;
END $$

-- The clock went back: what lies further ahead than the span last given is cut to that span.
DROP PROCEDURE IF EXISTS holdfast_cut $$
CREATE PROCEDURE holdfast_cut(IN a_name VARBINARY(512), IN a_before DATETIME(6), IN at_now DATETIME(3))
SQL SECURITY INVOKER
BEGIN
    DELETE FROM holdfast_retired WHERE name = a_name AND until <= a_before;
    UPDATE holdfast_retired SET until = at_now + INTERVAL lease * 1000 MICROSECOND
        WHERE name = a_name AND until > at_now + INTERVAL lease * 1000 MICROSECOND;
    UPDATE holdfast_holder SET until = at_now + INTERVAL lease * 1000 MICROSECOND
        WHERE name = a_name AND lease IS NOT NULL AND until > at_now + INTERVAL lease * 1000 MICROSECOND;
    UPDATE holdfast_waiter SET until = at_now + INTERVAL lease * 1000 MICROSECOND
        WHERE name = a_name AND until > at_now + INTERVAL lease * 1000 MICROSECOND;
END $$

-- A holder that had opened the value has ended without a word.
DROP PROCEDURE IF EXISTS holdfast_doubt $$
CREATE PROCEDURE holdfast_doubt(IN a_name VARBINARY(512))
SQL SECURITY INVOKER
BEGIN
    INSERT INTO holdfast_value (name, generation, nth, doubt, bytes) VALUES (a_name, 0, 0, TRUE, '')
        ON DUPLICATE KEY UPDATE doubt = TRUE;
END $$

-- Numbers up to this one belong to somebody; 0: none.
DROP PROCEDURE IF EXISTS holdfast_give_numbers $$
CREATE PROCEDURE holdfast_give_numbers(IN a_name VARBINARY(512), IN a_last BIGINT, INOUT io_generation BIGINT)
SQL SECURITY INVOKER
BEGIN
    IF a_last > io_generation THEN
        SET io_generation = a_last;
        UPDATE holdfast_lock SET generation = a_last WHERE name = a_name;
    END IF;
END $$

-- A lease ran out: the lock stays closed for the lock-delay, or the holder leaves. A dead waiter leaves. A cached holder may
-- have used each number that belonged to it.
DROP PROCEDURE IF EXISTS holdfast_sweep $$
CREATE PROCEDURE holdfast_sweep(
    IN a_name VARBINARY(512), IN a_touched DATETIME(6), IN a_before DATETIME(6), IN at_now DATETIME(3),
    INOUT io_generation BIGINT)
SQL SECURITY INVOKER
BEGIN
    DECLARE h_ticket BINARY(16);
    DECLARE h_until DATETIME(3);
    DECLARE h_delay, h_retire, h_last BIGINT;
    DECLARE h_stays, h_opened, found BOOLEAN DEFAULT TRUE;
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET found = FALSE;

    IF a_before > a_touched THEN
        CALL holdfast_cut(a_name, a_before, at_now);
    END IF;
    -- A time that a release asked for counts from the grant, which may be ahead of a clock that has gone back since.
    UPDATE holdfast_holder SET until = at_now + INTERVAL lease * 1000 MICROSECOND
        WHERE name = a_name AND lingering AND until > at_now + INTERVAL lease * 1000 MICROSECOND;
    expired: LOOP
        SET found = TRUE;
        SELECT ticket, until, delay, retire, claimed AND NOT lingering AND delay > 0, NOT lingering AND flags & 4,
               IF(NOT lingering AND flags & 8, generation + 1048576, 0)
            INTO h_ticket, h_until, h_delay, h_retire, h_stays, h_opened, h_last
            FROM holdfast_holder WHERE name = a_name AND until <= at_now ORDER BY seq LIMIT 1;
        IF NOT found THEN
            LEAVE expired;
        END IF;
        IF h_opened THEN
            CALL holdfast_doubt(a_name);
        END IF;
        CALL holdfast_give_numbers(a_name, h_last, io_generation);
        IF h_stays THEN
            UPDATE holdfast_holder SET lingering = TRUE, lease = delay,
                   until = until + INTERVAL delay * 1000 MICROSECOND
                WHERE name = a_name AND ticket = h_ticket;
        ELSE
            DELETE FROM holdfast_holder WHERE name = a_name AND ticket = h_ticket;
            CALL holdfast_retire(a_name, h_ticket, h_until, h_retire, at_now);
        END IF;
    END LOOP;
    DELETE FROM holdfast_waiter WHERE name = a_name AND until <= at_now;
END $$

-- Lets in the head of the queue while it fits. Whoever `knows` is told by the answer; the listeners of the
-- others are added to io_calls, for holdfast_call() after the commit. io_generation: the last one given.
DROP PROCEDURE IF EXISTS holdfast_let_in $$
CREATE PROCEDURE holdfast_let_in(
    IN a_name VARBINARY(512), IN a_touched DATETIME(6), IN at_now DATETIME(3), IN knows BINARY(16),
    INOUT io_generation BIGINT, INOUT io_calls TEXT CHARACTER SET ascii)
SQL SECURITY INVOKER
BEGIN
    DECLARE w_seq, w_room, w_ttl, w_lease, inside, smallest BIGINT;
    DECLARE w_ticket BINARY(16);
    DECLARE w_shared, closed, own, entered BOOLEAN DEFAULT FALSE;
    DECLARE w_wake VARCHAR(60) CHARACTER SET ascii;
    DECLARE found BOOLEAN DEFAULT TRUE;
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET found = FALSE;

    queue: LOOP
        SET found = TRUE;
        SELECT seq, ticket, shared, room, ttl, wake INTO w_seq, w_ticket, w_shared, w_room, w_ttl, w_wake
            FROM holdfast_waiter WHERE name = a_name ORDER BY seq LIMIT 1;
        IF NOT found THEN
            LEAVE queue;
        END IF;
        IF inside IS NULL THEN
            SELECT COUNT(*), COALESCE(MAX(NOT shared), FALSE), MIN(room) INTO inside, closed, smallest
                FROM holdfast_holder WHERE name = a_name;
        END IF;
        IF inside > 0 AND (closed OR NOT w_shared
                           OR inside >= COALESCE(LEAST(smallest, w_room), smallest, w_room, inside + 1)) THEN
            LEAVE queue;
        END IF;
        SET io_generation = GREATEST(io_generation + 1,
                                     TIMESTAMPDIFF(MICROSECOND, '1970-01-01', a_touched)),
            own = COALESCE(w_ticket = knows, FALSE),
            entered = TRUE,
            w_lease = IF(own AND w_ttl <> 0, w_ttl, IF(w_ttl = 0, 5000, LEAST(w_ttl, 10000)));
        INSERT INTO holdfast_holder
            SELECT name, ticket, seq, FALSE, shared, room, io_generation, ttl, delay, retire, at_now,
                   at_now + INTERVAL w_lease * 1000 MICROSECOND, w_lease, own AND w_ttl <> 0, wake, host,
                   username, program, pid, note, flags
            FROM holdfast_waiter WHERE name = a_name AND seq = w_seq;
        DELETE FROM holdfast_waiter WHERE name = a_name AND seq = w_seq;
        IF w_wake IS NOT NULL AND NOT own THEN
            SET io_calls = CONCAT(io_calls, w_wake, ',');
        END IF;
        SET inside = inside + 1, closed = closed OR NOT w_shared,
            smallest = COALESCE(LEAST(smallest, w_room), smallest, w_room);
    END LOOP;
    IF entered THEN
        UPDATE holdfast_lock SET generation = io_generation WHERE name = a_name;
    END IF;
END $$

-- Somebody has come to wait: each holder that asked for it is called, once.
DROP PROCEDURE IF EXISTS holdfast_call_holders $$
CREATE PROCEDURE holdfast_call_holders(IN a_name VARBINARY(512), INOUT io_calls TEXT CHARACTER SET ascii)
SQL SECURITY INVOKER
BEGIN
    SET io_calls = CONCAT(io_calls, COALESCE((SELECT GROUP_CONCAT(DISTINCT wake, ',' SEPARATOR '') FROM holdfast_holder
        WHERE name = a_name AND NOT lingering AND flags & 3 = 1 AND wake IS NOT NULL), ''));
    UPDATE holdfast_holder SET flags = flags | 2 WHERE name = a_name AND NOT lingering AND flags & 3 = 1;
END $$

-- The same for somebody who does not wait: those only that may keep the lock without using it. Whether there is one.
DROP PROCEDURE IF EXISTS holdfast_call_cached $$
CREATE PROCEDURE holdfast_call_cached(
    IN a_name VARBINARY(512), INOUT io_calls TEXT CHARACTER SET ascii, OUT o_wanted BOOLEAN)
SQL SECURITY INVOKER
BEGIN
    DECLARE h_ticket BINARY(16);
    DECLARE h_wake VARCHAR(60) CHARACTER SET ascii;
    DECLARE h_told BOOLEAN;
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET h_ticket = NULL;

    SELECT ticket, wake, flags & 2 INTO h_ticket, h_wake, h_told FROM holdfast_holder
        WHERE name = a_name AND NOT lingering AND flags & 8;
    SET o_wanted = h_ticket IS NOT NULL;
    IF o_wanted AND NOT h_told THEN
        UPDATE holdfast_holder SET flags = flags | 2 WHERE name = a_name AND ticket = h_ticket;
        SET io_calls = CONCAT(io_calls, COALESCE(CONCAT(h_wake, ','), ''));
    END IF;
END $$

-- Whether a holder is to be told that somebody waits. One that hears that nobody does is called again for the next who
-- comes.
DROP PROCEDURE IF EXISTS holdfast_is_wanted $$
CREATE PROCEDURE holdfast_is_wanted(IN a_name VARBINARY(512), IN a_ticket BINARY(16), OUT o_wanted BOOLEAN)
SQL SECURITY INVOKER
BEGIN
    DECLARE asked INT DEFAULT (SELECT flags & 3 FROM holdfast_holder WHERE name = a_name AND ticket = a_ticket);
    SET o_wanted = asked > 0 AND EXISTS (SELECT 1 FROM holdfast_waiter WHERE name = a_name);
    IF asked = 3 AND NOT o_wanted THEN
        UPDATE holdfast_holder SET flags = flags & ~2 WHERE name = a_name AND ticket = a_ticket;
    END IF;
END $$

-- When it is worth asking although nobody calls: the one before may have died, or a holder vanish.
DROP PROCEDURE IF EXISTS holdfast_ask_again $$
CREATE PROCEDURE holdfast_ask_again(
    IN a_name VARBINARY(512), IN a_seq BIGINT, IN at_now DATETIME(3), OUT o_ask_again BIGINT)
SQL SECURITY INVOKER
BEGIN
    DECLARE due DATETIME(3);
    SET due = COALESCE((SELECT until FROM holdfast_waiter WHERE name = a_name AND seq < a_seq
                            ORDER BY seq DESC LIMIT 1),
                       (SELECT MIN(until) FROM holdfast_holder WHERE name = a_name));
    SET o_ask_again = IF(due >= '9999-01-01', NULL, TIMESTAMPDIFF(MICROSECOND, at_now, due) DIV 1000);
END $$

-- Wakes listeners, "connection word,connection word,": ends what they run, if the server still runs it under that
-- number. MariaDB's process list shows the values in a statement of a procedure, so the word is there; MySQL's shows the
-- names, so the statement must be one of ours, and the lock of that word taken. Only after the commit: whoever is woken
-- looks at once. It is a hint, so whatever goes wrong here is no error.
DROP PROCEDURE IF EXISTS holdfast_call $$
CREATE PROCEDURE holdfast_call(IN a_calls TEXT CHARACTER SET ascii)
SQL SECURITY INVOKER
BEGIN
    DECLARE one, word VARCHAR(60) CHARACTER SET ascii;
    DECLARE connection BIGINT;
    DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END;

    WHILE a_calls <> '' DO
        SET one = SUBSTRING_INDEX(a_calls, ',', 1),
            word = SUBSTRING_INDEX(one, ' ', -1),
            a_calls = SUBSTR(a_calls, LENGTH(one) + 2),
            connection = CAST(SUBSTRING_INDEX(one, ' ', 1) AS UNSIGNED);
        -- A row may hold anything; what is none of our words would match the statements of strangers.
        IF word REGEXP '^[0-9a-f]{32}$' AND EXISTS (
                   SELECT 1 FROM information_schema.processlist WHERE id = connection
                   AND (info LIKE CONCAT('%', word, '%')
                        OR (info LIKE 'SELECT GET_LOCK(SUBSTRING_INDEX(a_wake%' AND IS_USED_LOCK(word) IS NOT NULL))) THEN
            KILL QUERY connection;
        END IF;
    END WHILE;
END $$

-- Ends the transaction of an operation, whose answer is on its way already, and calls those who were let in. What is
-- committed stays so, so nothing that comes after that is an error.
DROP PROCEDURE IF EXISTS holdfast_finish $$
CREATE PROCEDURE holdfast_finish(IN a_calls TEXT CHARACTER SET ascii)
SQL SECURITY INVOKER
BEGIN
    COMMIT AND NO CHAIN NO RELEASE;
    IF a_calls <> '' THEN
        BEGIN
            DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END;
            CALL holdfast_call(a_calls);
        END;
    END IF;
END $$

-- What a listener runs, unless a grant that it was not told of is there: waits for a lock that its other
-- connection keeps, until it is called. (In SLEEP() all sleepers of a server share one mutex: a KILL QUERY
-- that meets another one there was seen to take more than a second.)
DROP PROCEDURE IF EXISTS holdfast_listen $$
CREATE PROCEDURE holdfast_listen(IN a_wake VARCHAR(60) CHARACTER SET ascii, IN told BIGINT UNSIGNED)
SQL SECURITY INVOKER
BEGIN
    DECLARE there BIGINT UNSIGNED;
    DECLARE got INT;
    SELECT COALESCE(BIT_XOR(generation), 0) INTO there FROM holdfast_holder
        WHERE wake = a_wake AND NOT claimed;
    IF there = told THEN
        SELECT GET_LOCK(SUBSTRING_INDEX(a_wake, ' ', -1), 10) INTO got; -- a_wake is in the process list
        IF got = 1 THEN
            SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'the other connection is gone';
        END IF;
    END IF;
END $$

DELIMITER ;
