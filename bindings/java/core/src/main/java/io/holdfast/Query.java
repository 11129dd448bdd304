package io.holdfast;

import java.nio.charset.StandardCharsets;
import java.time.Duration;

/**
 * Which holders and waiters to find.
 *
 * @param name      exactly this lock; null: any
 * @param prefix    names that begin like this; null: any
 * @param olderThan only holders of at least this age; zero: all, and waiters
 */
public record Query(byte[] name, byte[] prefix, Duration olderThan) {
    /**
     * All of one lock.
     *
     * @param name of it
     * @return the query
     */
    public static Query name(String name) {
        return new Query(name.getBytes(StandardCharsets.UTF_8), null, Duration.ZERO);
    }

    /**
     * All locks whose names begin like this.
     *
     * @param prefix of the names
     * @return the query
     */
    public static Query prefix(String prefix) {
        return new Query(null, prefix.getBytes(StandardCharsets.UTF_8), Duration.ZERO);
    }

    /**
     * All.
     *
     * @return the query
     */
    public static Query all() {
        return new Query(null, null, Duration.ZERO);
    }
}
