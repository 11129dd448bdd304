package io.holdfast;

import static io.holdfast.Codes.Capability;
import static io.holdfast.Scene.atOnce;
import static io.holdfast.Scene.check;
import static io.holdfast.Scene.entries;
import static io.holdfast.Scene.holdsAlone;
import static io.holdfast.Scene.isFree;
import static io.holdfast.Scene.refused;
import static io.holdfast.Scene.same;
import static io.holdfast.Scene.until;
import static io.holdfast.Scene.untilWaiting;

import io.holdfast.Codes.BusyException;
import io.holdfast.Codes.ClosedException;
import io.holdfast.Codes.InvalidException;
import io.holdfast.Codes.LostException;
import io.holdfast.Codes.NotFoundException;
import io.holdfast.Codes.StaleException;
import java.io.BufferedReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The twenty of ../scenarios.md, in its order. */
final class Scenarios {
    private Scenarios() {}

    /** Runs a Child; its output can be read. */
    static Process child(String role, String url, String name) throws Exception {
        return new ProcessBuilder(System.getProperty("java.home") + "/bin/java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp",
                System.getProperty("java.class.path"), "io.holdfast.Child", role, url, name)
                .redirectError(role.equals("throw") ? ProcessBuilder.Redirect.DISCARD : ProcessBuilder.Redirect.INHERIT).start();
    }

    /** A thread that takes a lock; what it ended with. */
    static CompletableFuture<Held> waiter(NamedLock lock, AtomicReference<Thread> thread) {
        CompletableFuture<Held> end = new CompletableFuture<>();
        Thread started = new Thread(() -> {
            try {
                end.complete(lock.acquire());
            } catch (Exception e) {
                end.completeExceptionally(e);
            }
        });
        started.setDaemon(true);
        thread.set(started);
        started.start();
        return end;
    }

    /** The future's own exception. */
    static Held get(CompletableFuture<Held> end) throws Exception {
        try {
            return end.get(60, TimeUnit.SECONDS);
        } catch (java.util.concurrent.ExecutionException e) {
            throw (Exception) e.getCause();
        }
    }

    static void exclusion_between_processes(Scene scene) throws Exception {
        Holdfast locks = scene.client(Capability.PROCESS);
        Held held = locks.lock(scene.name).acquire();
        Process other = child("exclusion", scene.url, scene.name);
        BufferedReader lines = other.inputReader();
        same("BUSY", lines.readLine());
        untilWaiting(locks, scene.name, 1);
        held.release();
        same("held", lines.readLine());
        same(0, other.waitFor());
    }

    static void busy_without_waiting(Scene scene) throws Exception {
        Holdfast a = scene.client();
        Holdfast b = scene.client();
        Held held = a.lock(scene.name).acquire();
        refused(BusyException.class, () -> atOnce(b.lock(scene.name)));
        holdsAlone(b, held);
    }

    static void timeout_leaves_nothing(Scene scene) throws Exception {
        Holdfast a = scene.client();
        Holdfast b = scene.client();
        Held held = a.lock(scene.name).acquire();
        refused(Codes.TimeoutException.class, () -> b.lock(scene.name).acquire(Duration.ofMillis(200)));
        holdsAlone(b, held);
        held.release();
        atOnce(b.lock(scene.name));
    }

    static void cancelled_wait_leaves_nothing(Scene scene) throws Exception {
        Holdfast a = scene.client();
        Holdfast b = scene.client();
        Held held = a.lock(scene.name).acquire();
        AtomicReference<Thread> thread = new AtomicReference<>();
        CompletableFuture<Held> wait = waiter(b.lock(scene.name), thread);
        CompletableFuture<Held> future = b.lock(scene.name).acquireAsync();
        untilWaiting(a, scene.name, 2);
        thread.get().interrupt();
        refused(InterruptedException.class, () -> get(wait));
        check(future.cancel(true), "cancelled");
        untilWaiting(a, scene.name, 0); // a future does not wait for the end of its withdrawal
        holdsAlone(a, held);
        held.release();
        atOnce(scene.client().lock(scene.name));
    }

    static void waiters_come_in_order(Scene scene) throws Exception {
        Holdfast locks = scene.client(Capability.QUEUE);
        Held held = locks.lock(scene.name).acquire();
        List<Integer> order = Collections.synchronizedList(new ArrayList<>());
        List<Thread> turns = new ArrayList<>();
        for (int i = 1; i <= 5; i++) {
            int number = i;
            Thread turn = new Thread(() -> {
                try (Held mine = locks.lock(scene.name).acquire()) {
                    order.add(number);
                } catch (InterruptedException e) {
                    throw new AssertionError(e);
                }
            });
            turn.start();
            turns.add(turn);
            untilWaiting(locks, scene.name, i);
        }
        held.release();
        for (Thread turn : turns) {
            turn.join();
        }
        same(List.of(1, 2, 3, 4, 5), order);
    }

    static void readers_share_and_a_writer_waits(Scene scene) throws Exception {
        Holdfast locks = scene.client(Capability.SHARE);
        NamedLock reader = locks.lock(scene.name).shared();
        List<Held> readers = List.of(reader.acquire(), reader.acquire());
        refused(BusyException.class, () -> atOnce(locks.lock(scene.name)));
        CompletableFuture<Held> writer = locks.lock(scene.name).acquireAsync();
        untilWaiting(locks, scene.name, 1);
        refused(BusyException.class, () -> atOnce(reader));
        readers.forEach(Held::release);
        holdsAlone(locks, get(writer));
    }

    static void limit_admits_no_more(Scene scene) throws Exception {
        Holdfast locks = scene.client(Capability.LIMIT);
        NamedLock two = locks.lock(scene.name).limit(2);
        Held first = atOnce(two);
        atOnce(two);
        refused(BusyException.class, () -> atOnce(two));
        first.release();
        atOnce(two);
    }

    static void loss_is_told(Scene scene) throws Exception {
        Holdfast locks = scene.client(Capability.LEASE);
        Held held = locks.lock(scene.name).ttl(Duration.ofMillis(300)).byHand().acquire();
        same(Codes.Cause.EXPIRED, held.lost().get(60, TimeUnit.SECONDS));
        same(Codes.Cause.EXPIRED, held.cause());
        same(Codes.State.LOST, held.state());
        same(Optional.of(Duration.ZERO), held.remaining());
        Held async = get(locks.lock(scene.name + "/async").ttl(Duration.ofMillis(300)).byHand().acquireAsync());
        same(Codes.Cause.EXPIRED, async.lost().get(60, TimeUnit.SECONDS));
        refused(LostException.class, async::ensureHeld);
    }

    static void token_rises(Scene scene) throws Exception {
        Holdfast locks = scene.client(Capability.TOKEN);
        long last = 0;
        for (int i = 0; i < 3; i++) {
            try (Held held = locks.lock(scene.name).acquire()) {
                check(Long.compareUnsigned(held.token(), last) > 0, "the token rises");
                last = held.token();
            }
        }
    }

    private static String sequencerOf(NamedLock lock) throws Exception {
        try (Held held = lock.acquire()) {
            return held.sequencer();
        }
    }

    static void gate_refuses_an_old_sequencer(Scene scene) throws Exception {
        Holdfast locks = scene.client(Capability.TOKEN);
        String first = sequencerOf(locks.lock(scene.name));
        String second = sequencerOf(locks.lock(scene.name));
        Gate gate = new Gate();
        same(Optional.empty(), gate.levels(scene.name));
        gate.pass(first);
        gate.pass(second);
        refused(StaleException.class, () -> gate.pass(first));
        Gate restored = new Gate();
        restored.restore(scene.name, gate.levels(scene.name).orElseThrow());
        refused(StaleException.class, () -> restored.pass(first));
        refused(InvalidException.class, () -> gate.pass("this is none"));
    }

    static void check_tells_a_stale_sequencer(Scene scene) throws Exception {
        Holdfast locks = scene.client(Capability.CHECK);
        Held held = locks.lock(scene.name).acquire();
        String sequencer = held.sequencer();
        locks.check(sequencer);
        held.release();
        refused(StaleException.class, () -> locks.check(sequencer));
    }

    static void inspect_shows_holder_and_waiter(Scene scene) throws Exception {
        Holdfast locks = scene.client();
        Held held = locks.lock(scene.name).note("a note").acquire();
        CompletableFuture<Held> wait = locks.lock(scene.name).acquireAsync();
        untilWaiting(locks, scene.name, 1);
        List<Entry> all = entries(locks, scene.name);
        same(2, all.size());
        Entry inside = all.get(0);
        same(Codes.Place.INSIDE, inside.place());
        same(List.of(held.ticket(), "a note", "scenarios"), List.of(inside.ticket(), inside.note(), inside.program()));
        same(ProcessHandle.current().pid(), inside.pid());
        if (locks.capabilities().contains(Capability.TOKEN)) {
            same(held.token(), inside.token());
        }
        same(Codes.Place.WAITING, all.get(1).place());
        if (locks.capabilities().contains(Capability.QUEUE)) {
            same(1L, all.get(1).position());
        }
        same(all.stream().map(Entry::ticket).toList(), locks.inspect(Query.prefix(scene.name)).stream().map(Entry::ticket).toList());
        wait.cancel(true);
    }

    static void break_takes_it_away(Scene scene) throws Exception {
        Holdfast a = scene.client(Capability.BREAK);
        Holdfast b = scene.client();
        Held held = a.lock(scene.name).ttl(Duration.ofSeconds(1)).acquire();
        String ticket = held.ticket();
        CompletableFuture<Codes.Cause> lost = held.lost();
        b.breakLock(scene.name, ticket, true);
        b.lock(scene.name).acquire(Duration.ofSeconds(10));
        Codes.Cause cause = lost.get(60, TimeUnit.SECONDS);
        check(cause == Codes.Cause.GONE || cause == Codes.Cause.EXPIRED, cause.toString());
        refused(NotFoundException.class, () -> b.breakLock(scene.name, ticket, true));
    }

    static void detach_and_adopt(Scene scene) throws Exception {
        Holdfast a = scene.client(Capability.DETACH);
        Holdfast b = scene.client();
        Held held = a.lock(scene.name).acquire();
        long token = held.token();
        held.lost();
        String ticket = held.detach();
        refused(StaleException.class, held::token);
        same(List.of(ticket), entries(b, scene.name).stream().map(Entry::ticket).toList());
        Held adopted = b.adopt(scene.name, ticket);
        same(token, adopted.token());
        adopted.release();
        isFree(b, scene.name);
        refused(StaleException.class, () -> b.adopt(scene.name, ticket));
    }

    static void never_expires_until_released(Scene scene) throws Exception {
        Holdfast locks = scene.client(Capability.NEVER);
        Held held = locks.lock(scene.name).neverExpires().acquire();
        same(Optional.empty(), held.remaining());
        same(Optional.empty(), entries(locks, scene.name).get(0).ttl());
        held.release();
        isFree(locks, scene.name);
    }

    static void close_wakes_waiters(Scene scene) throws Exception {
        Holdfast a = scene.client();
        Holdfast b = scene.client();
        Held held = a.lock(scene.name).acquire();
        CompletableFuture<Held> thread = waiter(b.lock(scene.name), new AtomicReference<>());
        CompletableFuture<Held> future = b.lock(scene.name).acquireAsync();
        untilWaiting(a, scene.name, 2);
        b.close();
        refused(ClosedException.class, () -> get(thread));
        refused(ClosedException.class, () -> get(future));
        holdsAlone(a, held);
        CompletableFuture<Codes.Cause> lost = held.lost();
        a.close();
        same(Codes.Cause.CLOSED, lost.get(60, TimeUnit.SECONDS));
        atOnce(scene.client().lock(scene.name));
    }

    static void exit_gives_locks_back(Scene scene) throws Exception {
        Holdfast locks = scene.client(Capability.PROCESS);
        for (String role : List.of("end", "exit")) {
            Process other = child(role, scene.url, scene.name);
            same("held", other.inputReader().readLine());
            same(0, other.waitFor());
            locks.lock(scene.name).acquire(Duration.ofSeconds(5)).release();
        }
    }

    static void ended_handles_are_refused(Scene scene) throws Exception {
        Holdfast locks = scene.client();
        Held released = locks.lock(scene.name).acquire();
        released.release();
        for (int twice = 0; twice < 2; twice++) {
            refusedAll(StaleException.class, released);
        }
        released.close(); // a block may have released it
        if (locks.capabilities().contains(Capability.LEASE)) {
            Held lost = locks.lock(scene.name).ttl(Duration.ofMillis(200)).byHand().acquire();
            until("the loss", () -> lost.state() == Codes.State.LOST);
            for (int twice = 0; twice < 2; twice++) {
                refused(LostException.class, lost::token);
                refused(LostException.class, lost::renew);
            }
            refused(StaleException.class, lost::release);
            refused(StaleException.class, lost::release);
        }
        Holdfast other = scene.client();
        Held orphan = other.lock(scene.name).acquire();
        other.close();
        for (int twice = 0; twice < 2; twice++) {
            refused(ClosedException.class, () -> other.lock(scene.name).acquire());
            refused(ClosedException.class, () -> get(other.lock(scene.name).acquireAsync()));
            refused(ClosedException.class, () -> other.inspect(Query.all()));
            refusedAll(ClosedException.class, orphan);
            orphan.close();
            other.close();
        }
        same(Codes.State.LOST, orphan.state());
        same(Optional.of(Duration.ZERO), orphan.remaining());
    }

    private static void refusedAll(Class<? extends Exception> type, Held held) {
        for (Runnable call : List.<Runnable>of(held::release, held::token, held::sequencer, held::renew, held::detach, held::lost,
                held::ensureHeld, held::lastError)) {
            refused(type, call);
        }
    }

    static void a_thousand_waiters_in_twenty_threads(Scene scene) throws Exception {
        Holdfast locks = scene.client(Capability.PUSH);
        Held held = locks.lock(scene.name).acquire();
        AtomicInteger turns = new AtomicInteger();
        List<CompletableFuture<?>> kept = new ArrayList<>();
        List<CompletableFuture<?>> cancelled = new ArrayList<>();
        for (int i = 0; i < 1000; i++) {
            CompletableFuture<Held> bid = locks.lock(scene.name).acquireAsync();
            if (i % 2 == 0) {
                cancelled.add(bid);
            } else {
                kept.add(bid.thenAccept(mine -> {
                    turns.incrementAndGet();
                    mine.release();
                }));
            }
        }
        untilWaiting(locks, scene.name, 1000);
        int threads = Run.threads() - Run.OWN_THREADS;
        check(threads <= 20, threads + " threads beside the JVM's own");
        cancelled.forEach(bid -> bid.cancel(true));
        held.release();
        CompletableFuture.allOf(kept.toArray(CompletableFuture[]::new)).get(60, TimeUnit.SECONDS);
        same(500, turns.get());
        untilWaiting(locks, scene.name, 0);
        isFree(locks, scene.name);
    }

    private static final Pattern ERROR = Pattern.compile(
            "\"id\": \"HF_(\\w+)\",\\s*\"value\": (-\\d+),\\s*\"exit_status\": (\\d+),\\s*\"text\": \"([^\"]*)\"");

    static void every_code_is_mapped_and_names_hold_any_byte(Scene scene) throws Exception {
        String spec = Files.readString(Path.of(System.getenv("HOLDFAST_SPEC")));
        Matcher rows = ERROR.matcher(spec);
        int count = 0;
        for (; rows.find(); count++) {
            int value = Integer.parseInt(rows.group(2));
            Object[] row = {"HF_" + rows.group(1), rows.group(4), Integer.valueOf(rows.group(3))};
            same(Arrays.asList(row), Arrays.asList(Holdfast.describe(value)));
            Codes.Code code = Codes.Code.of(value);
            same(rows.group(1), code.name());
            HoldfastException error = HoldfastException.of(code);
            check(error.getClass() != HoldfastException.class && error.code() == code, error.toString());
            same(Arrays.asList(row[1], row[2]), Arrays.asList(error.getMessage(), (Object) code.exitStatus));
        }
        same(Codes.Code.values().length, count);
        check(spec.contains("\"version\": \"" + Holdfast.version() + "\""), Holdfast.version());

        Holdfast locks = scene.client();
        byte[] name = Scene.bytes(scene.name, 0, 255, ' ');
        Held held = locks.lock(name).acquire();
        check(Arrays.equals(name, held.nameBytes()), "the name of the handle");
        List<Entry> found = locks.inspect(new Query(name, null, Duration.ZERO));
        check(found.size() == 1 && Arrays.equals(name, found.get(0).nameBytes()), found.toString());
        held.release();
        refused(InvalidException.class, () -> locks.lock("x".repeat(513)).acquire());
        refused(InvalidException.class, () -> locks.lock("x".repeat(5000)).acquire());
        refused(InvalidException.class, () -> locks.lock("").acquire());
    }
}
