package io.holdfast;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.Callable;

/** What a scenario works with: a name of its own, and clients that are closed at its end. */
final class Scene implements AutoCloseable {
    /** Thrown by a scenario that this store cannot do. */
    static final class Skipped extends RuntimeException {
        private static final long serialVersionUID = 1;

        Skipped(String why) {
            super(why);
        }
    }

    private final List<Holdfast> clients = new ArrayList<>();
    final String url;
    final String name;

    Scene(String url, String scenario) {
        this.url = url;
        this.name = scenario + "/" + UUID.randomUUID();
    }

    Holdfast client(Codes.Capability... needed) {
        Holdfast client = Holdfast.open(url, "scenarios", List.of());
        clients.add(client);
        for (Codes.Capability one : needed) {
            if (!client.capabilities().contains(one)) {
                throw new Skipped("this store lacks '" + one.label + "'");
            }
        }
        return client;
    }

    @Override
    public void close() {
        clients.forEach(Holdfast::close);
    }

    static void check(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    static void same(Object expected, Object seen) {
        check(expected.equals(seen), "expected " + expected + ", but it is " + seen);
    }

    /** The call is refused with this type, and says why. */
    static <E extends Exception> E refused(Class<E> type, Callable<?> call) {
        try {
            call.call();
        } catch (Exception e) {
            check(type == e.getClass(), "expected " + type + ", but it is " + e);
            check(e instanceof InterruptedException || !e.getMessage().isEmpty(), "no text");
            return type.cast(e);
        }
        throw new AssertionError("this should have been refused: " + type);
    }

    static <E extends Exception> E refused(Class<E> type, Runnable call) {
        return refused(type, () -> {
            call.run();
            return null;
        });
    }

    /** Waits for what must come; the limit is only for what never comes. */
    static void until(String what, Callable<Boolean> holds) throws Exception {
        long limit = System.nanoTime() + 60_000_000_000L;
        while (!holds.call()) {
            check(System.nanoTime() < limit, "this never came: " + what);
            Thread.sleep(5);
        }
    }

    static List<Entry> entries(Holdfast locks, String name) {
        return locks.inspect(Query.name(name));
    }

    static void untilWaiting(Holdfast locks, String name, int count) throws Exception {
        until(count + " waiting", () -> entries(locks, name).stream().filter(e -> e.place() == Codes.Place.WAITING).count() == count);
    }

    static void holdsAlone(Holdfast locks, Held held) {
        same(List.of(held.ticket()), entries(locks, held.name()).stream().map(Entry::ticket).toList());
    }

    static void isFree(Holdfast locks, String name) {
        same(Set.of(), Set.copyOf(entries(locks, name)));
    }

    /** Without waiting for others. */
    static Held atOnce(NamedLock lock) throws InterruptedException {
        return lock.acquire(Duration.ZERO);
    }

    static byte[] bytes(String text, int... more) {
        byte[] start = text.getBytes(StandardCharsets.UTF_8);
        byte[] all = java.util.Arrays.copyOf(start, start.length + more.length);
        for (int i = 0; i < more.length; i++) {
            all[start.length + i] = (byte) more[i];
        }
        return all;
    }
}
