package io.holdfast.spring;

import io.holdfast.Codes;
import io.holdfast.Holdfast;
import io.holdfast.NamedLock;
import java.util.ConcurrentModificationException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.Lock;
import java.util.function.UnaryOperator;
import org.springframework.integration.support.locks.LockRegistry;

/**
 * A registry of Spring Integration on holdfast, for example for {@code LockRegistryLeaderInitiator} or an aggregator. Nothing is kept
 * for a lock that nobody holds, so there is nothing to expire.
 */
public final class HoldfastLockRegistry implements LockRegistry {
    private final Holdfast client;
    private final String prefix;
    private final UnaryOperator<NamedLock> settings;

    /**
     * Locks named {@code spring/KEY}, with a lease of 30 s that is renewed in the background.
     *
     * @param client stays yours: close it when the program ends
     */
    public HoldfastLockRegistry(Holdfast client) {
        this(client, "spring/", UnaryOperator.identity());
    }

    /**
     * Locks with a prefix and settings of your own.
     *
     * @param client   stays yours
     * @param prefix   of the names in the store
     * @param settings for example {@code lock -> lock.ttl(Duration.ofSeconds(10))}
     */
    public HoldfastLockRegistry(Holdfast client, String prefix, UnaryOperator<NamedLock> settings) {
        this.client = client;
        this.prefix = prefix;
        this.settings = settings;
    }

    @Override
    public Lock obtain(Object lockKey) {
        if (!(lockKey instanceof String key)) {
            throw new IllegalArgumentException("the key of a lock must be a String");
        }
        return new Registered(settings.apply(client.lock(prefix + key)).asLock());
    }

    /** As Spring's own locks: a lock that was lost shows as a ConcurrentModificationException at unlock. */
    private record Registered(Lock inner) implements Lock {
        @Override
        public void lock() {
            inner.lock();
        }

        @Override
        public void lockInterruptibly() throws InterruptedException {
            inner.lockInterruptibly();
        }

        @Override
        public boolean tryLock() {
            return inner.tryLock();
        }

        @Override
        public boolean tryLock(long time, TimeUnit unit) throws InterruptedException {
            return inner.tryLock(time, unit);
        }

        @Override
        public void unlock() {
            try {
                inner.unlock();
            } catch (Codes.StaleException e) {
                ConcurrentModificationException lost = new ConcurrentModificationException("the lock was lost while it was held");
                lost.initCause(e);
                throw lost;
            }
        }

        @Override
        public Condition newCondition() {
            return inner.newCondition();
        }
    }
}
