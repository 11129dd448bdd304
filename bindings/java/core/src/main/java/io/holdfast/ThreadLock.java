package io.holdfast;

import java.nio.ByteBuffer;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.Lock;

/** A {@link NamedLock} that threads own. Who holds what is kept by the client, only while it is held. */
final class ThreadLock implements Lock {
    /** What a thread holds. */
    record Key(Thread thread, ByteBuffer name, Codes.Mode mode) {}

    /** How often; only its thread looks at it. */
    static final class Hold {
        private final Held held;
        private int times = 1;

        Hold(Held held) {
            this.held = held;
        }
    }

    private static final long FIRST_OWNER = 1L << 61; // far from those that people choose

    private final NamedLock lock;

    ThreadLock(NamedLock lock) {
        this.lock = lock;
    }

    private Key key() {
        return new Key(Thread.currentThread(), ByteBuffer.wrap(lock.name), lock.settings.mode);
    }

    /** True: this thread has it already. */
    private boolean again(Key key) {
        Hold hold = lock.client.holds.get(key);
        if (hold == null) {
            return false;
        }
        hold.held.ensureHeld();
        hold.times++;
        return true;
    }

    private void take(long waitMs, boolean interruptible) throws InterruptedException {
        Key key = key();
        if (interruptible && Thread.interrupted()) {
            throw new InterruptedException();
        }
        if (!again(key)) {
            long owner = lock.settings.owner != 0 ? lock.settings.owner : FIRST_OWNER + Thread.currentThread().getId();
            lock.client.holds.put(key, new Hold(lock.client.acquire(lock, waitMs, owner, interruptible)));
        }
    }

    @Override
    public void lock() {
        try {
            take(Codes.FOREVER, false);
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    @Override
    public void lockInterruptibly() throws InterruptedException {
        take(Codes.FOREVER, true);
    }

    @Override
    public boolean tryLock() {
        try {
            take(0, false);
            return true;
        } catch (Codes.BusyException e) {
            return false;
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    @Override
    public boolean tryLock(long time, TimeUnit unit) throws InterruptedException {
        try {
            take(time <= 0 ? 0 : Math.max(1, unit.toMillis(time)), true);
            return true;
        } catch (Codes.BusyException | Codes.TimeoutException e) {
            return false;
        }
    }

    @Override
    public void unlock() {
        Key key = key();
        Hold hold = lock.client.holds.get(key);
        if (hold == null) {
            throw new IllegalMonitorStateException("this thread does not hold the lock");
        }
        if (--hold.times == 0) {
            lock.client.holds.remove(key);
            hold.held.release();
        }
    }

    @Override
    public Condition newCondition() {
        throw new UnsupportedOperationException("a lock in a store has no conditions");
    }

    @Override
    public String toString() {
        return "holdfast lock '" + new String(lock.name, java.nio.charset.StandardCharsets.UTF_8) + "'";
    }
}
