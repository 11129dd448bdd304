package io.holdfast.shedlock;

import io.holdfast.Codes;
import io.holdfast.Held;
import io.holdfast.Holdfast;
import io.holdfast.HoldfastException;
import io.holdfast.NamedLock;
import java.time.Duration;
import java.time.Instant;
import java.util.Optional;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import net.javacrumbs.shedlock.core.AbstractSimpleLock;
import net.javacrumbs.shedlock.core.ClockProvider;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.LockProvider;
import net.javacrumbs.shedlock.core.SimpleLock;

/**
 * ShedLock on holdfast. {@code lockAtMostFor} is the lease, which is not renewed, as ShedLock has it. A job that ends before
 * {@code lockAtLeastFor} leaves its lock in the store; it is released in time, or if this program has ended by then, at the end of
 * {@code lockAtMostFor}. The store must be able to pass on locks ({@link io.holdfast.Codes.Capability#DETACH}).
 */
public final class HoldfastLockProvider implements LockProvider {
    private static final System.Logger LOGGER = System.getLogger("io.holdfast.shedlock");

    private final Holdfast client;
    private final String prefix;
    private final ScheduledExecutorService later = Executors.newSingleThreadScheduledExecutor(work -> {
        Thread thread = new Thread(work, "holdfast-shedlock");
        thread.setDaemon(true);
        return thread;
    });

    /**
     * Locks named {@code shedlock/NAME}.
     *
     * @param client stays yours: close it when the program ends
     */
    public HoldfastLockProvider(Holdfast client) {
        this(client, "shedlock/");
    }

    /**
     * Locks with another prefix.
     *
     * @param client stays yours
     * @param prefix of the names in the store
     */
    public HoldfastLockProvider(Holdfast client, String prefix) {
        this.client = client;
        this.prefix = prefix;
    }

    @Override
    public Optional<SimpleLock> lock(LockConfiguration configuration) {
        Duration lease = configuration.getLockAtMostFor();
        NamedLock lock = client.lock(prefix + configuration.getName()).ttl(lease.toMillis() < 100 ? Duration.ofMillis(100) : lease).byHand();
        try {
            return Optional.of(new Lock(configuration, lock.acquire(Duration.ZERO)));
        } catch (Codes.BusyException e) {
            return Optional.empty();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return Optional.empty();
        }
    }

    private final class Lock extends AbstractSimpleLock {
        private final Held held;

        Lock(LockConfiguration configuration, Held held) {
            super(configuration);
            this.held = held;
        }

        @Override
        protected void doUnlock() {
            Instant earliest = lockConfiguration.getLockAtLeastUntil();
            long remainingMs = Duration.between(ClockProvider.now(), earliest).toMillis();
            try {
                if (remainingMs <= 0) {
                    held.release();
                    return;
                }
                String name = held.name();
                String ticket = held.detach();
                later.schedule(() -> release(name, ticket), remainingMs, TimeUnit.MILLISECONDS);
            } catch (Codes.StaleException | Codes.LostException e) {
                LOGGER.log(System.Logger.Level.WARNING,
                        "the job of the lock ''{0}'' took longer than lockAtMostFor: another one may have run beside it", held.name());
            }
        }
    }

    private void release(String name, String ticket) {
        try {
            client.adopt(name, ticket).release();
        } catch (HoldfastException e) {
            // gone already, or it ends with its lease
            LOGGER.log(System.Logger.Level.DEBUG, e.getMessage());
        }
    }
}
