package io.holdfast.spring;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.holdfast.Holdfast;
import io.holdfast.Query;
import java.util.ConcurrentModificationException;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Lock;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** What Spring's documentation says of its registries; it has no contract test to inherit. */
class RegistryTest {
    private final String url = System.getProperty("holdfast.url", "memory://spring");
    private final Holdfast client = Holdfast.open(url);
    private final Holdfast other = Holdfast.open(url);
    private final String key = UUID.randomUUID().toString();
    private final HoldfastLockRegistry registry = new HoldfastLockRegistry(client);
    private final HoldfastLockRegistry elsewhere = new HoldfastLockRegistry(other);

    @AfterEach
    void close() {
        client.close();
        other.close();
    }

    private static boolean tryInAnotherThread(Lock lock) {
        return CompletableFuture.supplyAsync(() -> {
            boolean got = lock.tryLock();
            if (got) {
                lock.unlock();
            }
            return got;
        }).join();
    }

    @Test
    void aLockIsReentrantAlsoWhenItIsObtainedAgain() {
        registry.obtain(key).lock();
        registry.obtain(key).lock();
        registry.obtain(key).unlock();
        assertFalse(tryInAnotherThread(registry.obtain(key)));
        registry.obtain(key).unlock();
        assertTrue(tryInAnotherThread(registry.obtain(key)));
        assertThrows(IllegalMonitorStateException.class, registry.obtain(key)::unlock);
    }

    @Test
    void twoRegistriesExcludeEachOther() throws InterruptedException {
        Lock lock = registry.obtain(key);
        assertTrue(lock.tryLock(1, TimeUnit.SECONDS));
        assertFalse(elsewhere.obtain(key).tryLock());
        assertFalse(elsewhere.obtain(key).tryLock(100, TimeUnit.MILLISECONDS));
        lock.unlock();
        assertTrue(elsewhere.obtain(key).tryLock());
        elsewhere.obtain(key).unlock();
    }

    @Test
    void anInterruptEndsAWait() throws InterruptedException {
        Lock lock = registry.obtain(key);
        lock.lock();
        Thread waiter = new Thread(() -> assertThrows(InterruptedException.class, elsewhere.obtain(key)::lockInterruptibly));
        waiter.start();
        while (client.inspect(Query.name("spring/" + key)).size() < 2) {
            Thread.onSpinWait();
        }
        waiter.interrupt();
        waiter.join();
        assertEquals(1, client.inspect(Query.name("spring/" + key)).size());
        lock.unlock();
    }

    @Test
    void aLostLockShowsAtUnlock() {
        Lock lock = registry.obtain(key);
        lock.lock();
        String ticket = client.inspect(Query.name("spring/" + key)).get(0).ticket();
        other.breakLock("spring/" + key, ticket, true);
        assertThrows(ConcurrentModificationException.class, lock::unlock);
        assertThrows(IllegalMonitorStateException.class, lock::unlock);
    }

    @Test
    void executeLockedGivesItBack() throws Exception {
        assertEquals("done", registry.<String, Exception>executeLocked(key, () -> {
            assertFalse(tryInAnotherThread(registry.obtain(key)));
            return "done";
        }));
        assertTrue(tryInAnotherThread(registry.obtain(key)));
    }

    @Test
    void aKeyIsAString() {
        assertThrows(IllegalArgumentException.class, () -> registry.obtain(7));
    }
}
