package io.holdfast;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Optional;

/**
 * One holder or waiter, as {@link Holdfast#inspect} finds it.
 *
 * @param nameBytes the name as it is
 * @param place     inside, lingering (its lock-delay keeps the lock closed) or waiting
 * @param position  in the queue, from 1; 0 for holders
 * @param mode      exclusive or shared
 * @param limit     of shared holders; 0: none
 * @param ticket    identifies the bid
 * @param token     the fencing token; 0 while waiting
 * @param ttl       the lease; empty: until released or broken
 * @param lockDelay how long the lock stays closed if the holder vanishes
 * @param age       how long it has held or waited
 * @param remaining of the lease or lock-delay, or until a waiter must report again; empty: no lease
 * @param claimed   whether the holder knows that it holds
 * @param host      its machine
 * @param user      its user
 * @param program   its program
 * @param note      its note
 * @param pid       its process
 */
public record Entry(byte[] nameBytes, Codes.Place place, long position, Codes.Mode mode, int limit, String ticket, long token,
        Optional<Duration> ttl, Duration lockDelay, Duration age, Optional<Duration> remaining, boolean claimed, String host,
        String user, String program, String note, long pid) {
    /**
     * The name as text.
     *
     * @return what is no UTF-8 in it is replaced
     */
    public String name() {
        return new String(nameBytes, StandardCharsets.UTF_8);
    }
}
