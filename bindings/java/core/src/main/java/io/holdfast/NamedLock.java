package io.holdfast;

import com.sun.jna.Memory;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.locks.Lock;

/**
 * A description of a lock, made by {@link Holdfast#lock(String)}: it holds nothing, cannot change, and can be used by any number of
 * threads. Each acquire makes a {@link Held} of its own. Exclusive, with a lease of 30 s that is renewed in the background, unless said otherwise.
 */
public final class NamedLock {
    final Holdfast client;
    final byte[] name;
    final Settings settings;

    /** What is said of a lock; copied with each change. */
    static final class Settings implements Cloneable {
        Codes.Mode mode = Codes.Mode.EXCLUSIVE;
        int limit;
        long ttlMs = Codes.TTL_DEFAULT_MS;
        long lockDelayMs;
        long maxHoldMs;
        long owner;
        boolean byHand;
        boolean confirmed;
        long patienceMs;
        Memory note;

        @Override
        protected Settings clone() {
            try {
                return (Settings) super.clone();
            } catch (CloneNotSupportedException e) {
                throw new AssertionError(e);
            }
        }

        void put(Scratch scratch, long waitMs, long thisOwner) {
            scratch.structure(Scratch.OPTIONS_SIZE);
            int at = Scratch.STRUCT;
            scratch.bytes.putInt(at + Scratch.OPTIONS_MODE, mode.ordinal())
                    .putInt(at + Scratch.OPTIONS_LIMIT, limit)
                    .putLong(at + Scratch.OPTIONS_TTL, ttlMs)
                    .putLong(at + Scratch.OPTIONS_WAIT, waitMs)
                    .putLong(at + Scratch.OPTIONS_LOCK_DELAY, lockDelayMs)
                    .putLong(at + Scratch.OPTIONS_MAX_HOLD, maxHoldMs)
                    .putLong(at + Scratch.OPTIONS_OWNER, thisOwner)
                    .putInt(at + Scratch.OPTIONS_BY_HAND, byHand ? 1 : 0)
                    .putInt(at + Scratch.OPTIONS_CONFIRMED, confirmed ? 1 : 0)
                    .putLong(at + Scratch.OPTIONS_NOTE, Scratch.address(note))
                    .putLong(at + Scratch.OPTIONS_PATIENCE, patienceMs);
        }
    }

    /** A change of what is said. */
    private interface Change {
        void of(Settings settings);
    }

    NamedLock(Holdfast client, byte[] name, Settings settings) {
        this.client = client;
        this.name = name;
        this.settings = settings;
    }

    private NamedLock with(Change change) {
        Settings copy = settings.clone();
        change.of(copy);
        return new NamedLock(client, name, copy);
    }

    /** Milliseconds, rounded up, so that a short time does not become none. */
    static long ms(Duration duration, String what) {
        if (duration.isNegative()) {
            throw HoldfastException.of(Codes.Code.INVALID, what + " must not be negative");
        }
        return duration.getSeconds() > Long.MAX_VALUE / 2000 ? Long.MAX_VALUE / 2 : duration.plusNanos(999_999).toMillis();
    }

    /**
     * For readers: others that are shared may hold it too.
     *
     * @return a new description
     */
    public NamedLock shared() {
        return with(settings -> settings.mode = Codes.Mode.SHARED);
    }

    /**
     * Shared by so many holders at most, as a semaphore.
     *
     * @param limit at least 1
     * @return a new description
     */
    public NamedLock limit(int limit) {
        if (limit < 1) {
            throw HoldfastException.of(Codes.Code.INVALID, "a limit must be at least 1");
        }
        return with(settings -> {
            settings.mode = Codes.Mode.SHARED;
            settings.limit = limit;
        });
    }

    /**
     * The lease: the lock is free this long after its holder has vanished.
     *
     * @param ttl 100 ms to a week
     * @return a new description
     */
    public NamedLock ttl(Duration ttl) {
        long ttlMs = ms(ttl, "a ttl");
        if (ttlMs == 0) {
            throw HoldfastException.of(Codes.Code.INVALID, "a ttl must not be zero");
        }
        return with(settings -> settings.ttlMs = ttlMs);
    }

    /**
     * No lease: it stays until it is released or broken.
     *
     * @return a new description
     */
    public NamedLock neverExpires() {
        return with(settings -> settings.ttlMs = Codes.NEVER);
    }

    /**
     * The lock stays closed this long if its holder vanishes without releasing it.
     *
     * @param delay up to an hour
     * @return a new description
     */
    public NamedLock lockDelay(Duration delay) {
        long delayMs = ms(delay, "a lock-delay");
        return with(settings -> settings.lockDelayMs = delayMs);
    }

    /**
     * Renewals stop after this time, and the lock is lost.
     *
     * @param time zero: no maximum
     * @return a new description
     */
    public NamedLock maxHold(Duration time) {
        long timeMs = ms(time, "max_hold");
        return with(settings -> settings.maxHoldMs = timeMs);
    }

    /**
     * Who asks: a second bid of one owner for a lock that it holds is a {@link Codes.DeadlockException}, not a wait. Without it
     * every acquire is somebody of its own.
     *
     * @param number 1 to 2^62 - 1
     * @return a new description
     */
    public NamedLock owner(long number) {
        if (number < 1 || number >= Holdfast.FIRST_OWNER) {
            throw HoldfastException.of(Codes.Code.INVALID, "an owner must be a number from 1 to 2^62 - 1");
        }
        return with(settings -> settings.owner = number);
    }

    /**
     * No renewal in the background: you call {@link Held#renew}.
     *
     * @return a new description
     */
    public NamedLock byHand() {
        return with(settings -> settings.byHand = true);
    }

    /**
     * An acquire returns only after the store has recorded that we know of the grant.
     *
     * @return a new description
     */
    public NamedLock confirmed() {
        return with(settings -> settings.confirmed = true);
    }

    /**
     * How long to keep trying while the store does not answer, within the wait.
     *
     * @param time more than zero
     * @return a new description
     */
    public NamedLock patience(Duration time) {
        long timeMs = Math.max(1, ms(time, "patience"));
        return with(settings -> settings.patienceMs = timeMs);
    }

    /**
     * Shown to people who look at the lock.
     *
     * @param note at most 256 bytes
     * @return a new description
     */
    public NamedLock note(String note) {
        Memory text = Scratch.text(note, "a note");
        return with(settings -> settings.note = text);
    }

    /**
     * Takes it, however long that takes.
     *
     * @return the lock, to be closed
     * @throws InterruptedException the thread was interrupted; nothing is left in the store
     */
    public Held acquire() throws InterruptedException {
        return client.acquire(this, Codes.FOREVER, settings.owner, true);
    }

    /**
     * Takes it within this time.
     *
     * @param timeout zero: without waiting for others
     * @return the lock, to be closed
     * @throws InterruptedException   the thread was interrupted; nothing is left in the store
     * @throws Codes.BusyException    the timeout is zero, and somebody holds it or waits for it
     * @throws Codes.TimeoutException not obtained in time; nothing is left in the store
     */
    public Held acquire(Duration timeout) throws InterruptedException {
        return client.acquire(this, ms(timeout, "a timeout"), settings.owner, true);
    }

    /**
     * Takes it without a thread that waits. To cancel the future withdraws the bid in the background.
     *
     * @return completed on a thread of the common pool
     */
    public CompletableFuture<Held> acquireAsync() {
        return client.acquireAsync(this, Codes.FOREVER);
    }

    /**
     * The same within this time.
     *
     * @param timeout zero: without waiting for others
     * @return completed on a thread of the common pool
     */
    public CompletableFuture<Held> acquireAsync(Duration timeout) {
        return client.acquireAsync(this, ms(timeout, "a timeout"));
    }

    /**
     * As a lock of java.util.concurrent: owned by threads, reentrant, interruptible, without conditions. Two of these for the same
     * name and mode of one client are the same lock. {@code unlock} throws {@link Codes.StaleException} if the lock was lost meanwhile.
     *
     * @return it has no state of its own
     */
    public Lock asLock() {
        return new ThreadLock(this);
    }
}
