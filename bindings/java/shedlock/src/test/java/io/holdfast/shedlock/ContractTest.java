package io.holdfast.shedlock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.holdfast.Holdfast;
import io.holdfast.Query;
import java.util.UUID;
import net.javacrumbs.shedlock.core.LockProvider;
import net.javacrumbs.shedlock.test.support.AbstractLockProviderIntegrationTest;
import org.junit.jupiter.api.AfterEach;

/** ShedLock's own contract. */
class ContractTest extends AbstractLockProviderIntegrationTest {
    private final String url = System.getProperty("holdfast.url", "memory://shedlock");
    private final Holdfast client = Holdfast.open(url);
    private final String prefix = UUID.randomUUID() + "/";
    private final HoldfastLockProvider provider = new HoldfastLockProvider(client, prefix);

    @AfterEach
    void close() {
        client.close();
    }

    @Override
    protected LockProvider getLockProvider() {
        return provider;
    }

    @Override
    protected void assertUnlocked(String lockName) {
        assertTrue(client.inspect(Query.name(prefix + lockName)).isEmpty());
    }

    @Override
    protected void assertLocked(String lockName) {
        assertFalse(client.inspect(Query.name(prefix + lockName)).isEmpty());
        assertEquals(1, client.inspect(Query.name(prefix + lockName)).size());
    }
}
