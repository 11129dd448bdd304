package io.holdfast;

import static io.holdfast.Scene.atOnce;
import static io.holdfast.Scene.check;
import static io.holdfast.Scene.entries;
import static io.holdfast.Scene.isFree;
import static io.holdfast.Scene.refused;
import static io.holdfast.Scene.same;
import static io.holdfast.Scene.until;
import static io.holdfast.Scene.untilWaiting;

import io.holdfast.Codes.BusyException;
import io.holdfast.Codes.Capability;
import io.holdfast.Codes.ClosedException;
import io.holdfast.Codes.DeadlockException;
import io.holdfast.Codes.InvalidException;
import io.holdfast.Codes.StaleException;
import java.io.BufferedReader;
import java.lang.reflect.Method;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executor;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.LockSupport;

/** What only Java can do to a lock. */
final class Attacks {
    private Attacks() {}

    static void an_interrupt_at_any_moment_leaves_nothing(Scene scene) throws Exception {
        Holdfast locks = scene.client();
        AtomicInteger got = new AtomicInteger();
        for (int moment = 0; moment < 150; moment++) {
            List<Thread> threads = new ArrayList<>();
            List<Exception> wrong = Collections.synchronizedList(new ArrayList<>());
            for (int i = 0; i < 3; i++) {
                Thread thread = new Thread(() -> {
                    try (Held held = locks.lock(scene.name).acquire()) {
                        got.incrementAndGet();
                    } catch (InterruptedException e) {
                        // as it should be
                    } catch (Exception e) {
                        wrong.add(e);
                    }
                });
                thread.start();
                threads.add(thread);
            }
            LockSupport.parkNanos(moment * 10_000L);
            threads.forEach(Thread::interrupt);
            for (Thread thread : threads) {
                thread.join();
            }
            same(List.of(), wrong);
            isFree(locks, scene.name);
        }
        check(got.get() > 0, "some had it");
    }

    static void a_cancel_at_any_moment_leaves_nothing(Scene scene) throws Exception {
        Holdfast locks = scene.client();
        for (int moment = 0; moment < 150; moment++) {
            List<CompletableFuture<Held>> bids = new ArrayList<>();
            for (int i = 0; i < 3; i++) {
                bids.add(locks.lock(scene.name).acquireAsync());
            }
            LockSupport.parkNanos(moment * 10_000L);
            for (CompletableFuture<Held> bid : bids) {
                if (!bid.cancel(true)) {
                    bid.join().release();
                }
            }
            until("the end of all bids", () -> entries(locks, scene.name).isEmpty());
        }
    }

    static void exit_while_waiting_gives_back_what_is_held(Scene scene) throws Exception {
        Holdfast locks = scene.client(Capability.PROCESS);
        locks.lock(scene.name).acquire();
        Process other = Scenarios.child("exit-waiting", scene.url, scene.name);
        BufferedReader lines = other.inputReader();
        same("waiting", lines.readLine());
        same(0, other.waitFor());
        locks.lock(scene.name + "/kept").acquire(Duration.ofSeconds(5)).release();
        same(1, entries(locks, scene.name).size());
        other = Scenarios.child("throw", scene.url, scene.name + "/thrown");
        same("held", other.inputReader().readLine());
        same(1, other.waitFor());
        locks.lock(scene.name + "/thrown").acquire(Duration.ofSeconds(5)).release();
    }

    static void a_dropped_handle_is_released(Scene scene) throws Exception {
        Holdfast locks = scene.client();
        drop(locks, scene.name);
        until("the collection", () -> {
            System.gc();
            return entries(locks, scene.name).isEmpty();
        });
    }

    private static void drop(Holdfast locks, String name) throws Exception {
        locks.lock(name).acquire().lost();
    }

    static void close_amid_everything(Scene scene) throws Exception {
        Holdfast outside = scene.client();
        for (int round = 0; round < 30; round++) {
            Holdfast locks = Holdfast.open(scene.url);
            String name = scene.name + "/" + round;
            List<Held> held = new ArrayList<>();
            for (int i = 0; i < 3; i++) {
                held.add(locks.lock(name + "/" + i).acquire());
            }
            CountDownLatch started = new CountDownLatch(8);
            List<Throwable> wrong = Collections.synchronizedList(new ArrayList<>());
            List<Thread> threads = new ArrayList<>();
            for (int i = 0; i < 8; i++) {
                int number = i;
                threads.add(new Thread(() -> {
                    started.countDown();
                    try {
                        while (true) {
                            work(locks, held, name, number);
                        }
                    } catch (ClosedException e) {
                        // as it should be
                    } catch (Throwable e) {
                        wrong.add(e);
                    }
                }));
            }
            threads.forEach(Thread::start);
            started.await();
            LockSupport.parkNanos(round * 100_000L);
            Thread second = new Thread(locks::close);
            second.start();
            locks.close();
            second.join();
            for (Thread thread : threads) {
                thread.join();
            }
            same(List.of(), wrong);
            same(List.of(), outside.inspect(Query.prefix(name)));
        }
    }

    private static void work(Holdfast locks, List<Held> held, String name, int number) throws Exception {
        switch (number) {
            case 0, 1 -> locks.lock(name + "/0").acquire();
            case 2 -> locks.inspect(Query.all());
            case 3 -> held.get(1).renew();
            case 4 -> check(held.get(1).token() != 0, "token");
            case 5 -> locks.lock(name + "/own").acquire().close();
            case 6 -> Scenarios.get(locks.lock(name + "/own").acquireAsync()).release();
            default -> {
                Held own = locks.lock(name + "/watched").acquire();
                own.lost();
                own.release();
            }
        }
    }

    static void release_by_many_threads_happens_once(Scene scene) throws Exception {
        Holdfast locks = scene.client();
        for (int round = 0; round < 100; round++) {
            Held held = locks.lock(scene.name).acquire();
            held.lost();
            AtomicInteger released = new AtomicInteger();
            List<Thread> threads = new ArrayList<>();
            for (int i = 0; i < 4; i++) {
                int number = i;
                threads.add(new Thread(() -> {
                    try {
                        if (number == 0) {
                            held.renew();
                            held.token();
                            held.remaining();
                        }
                        held.release();
                        released.incrementAndGet();
                    } catch (StaleException e) {
                        // somebody else was faster
                    }
                }));
            }
            threads.forEach(Thread::start);
            for (Thread thread : threads) {
                thread.join();
            }
            same(1, released.get());
        }
    }

    static void a_lock_of_threads(Scene scene) throws Exception {
        Holdfast locks = scene.client();
        Lock lock = locks.lock(scene.name).asLock();
        lock.lock();
        check(locks.lock(scene.name).asLock().tryLock(), "reentrant, also by another object");
        CompletableFuture<Boolean> other = new CompletableFuture<>();
        new Thread(() -> other.complete(lock.tryLock())).start();
        check(!other.get(), "owned by the thread");
        lock.unlock();
        same(1, entries(locks, scene.name).size());
        AtomicReference<Object> end = new AtomicReference<>();
        Thread waits = new Thread(() -> {
            lock.lock(); // not ended by an interrupt, which is kept
            end.set(Thread.currentThread().isInterrupted());
            lock.unlock();
        });
        waits.start();
        untilWaiting(locks, scene.name, 1);
        waits.interrupt();
        Thread interruptible = new Thread(() -> end.set(refused(InterruptedException.class, () -> {
            lock.lockInterruptibly();
            return null;
        })));
        interruptible.start();
        untilWaiting(locks, scene.name, 2);
        interruptible.interrupt();
        interruptible.join();
        untilWaiting(locks, scene.name, 1);
        lock.unlock();
        waits.join();
        same(true, end.get());
        refused(IllegalMonitorStateException.class, lock::unlock);
        refused(UnsupportedOperationException.class, lock::newCondition);
        check(lock.tryLock(1, TimeUnit.SECONDS), "free again");
        if (locks.capabilities().contains(Capability.SHARE)) {
            Lock reader = locks.lock(scene.name).shared().asLock();
            refused(DeadlockException.class, reader::lock); // this thread would wait for itself
        }
        lock.unlock();
    }

    static void a_second_bid_of_an_owner_is_a_deadlock(Scene scene) throws Exception {
        Holdfast locks = scene.client();
        locks.lock(scene.name).owner(7).acquire();
        refused(DeadlockException.class, () -> locks.lock(scene.name).owner(7).acquire());
        refused(BusyException.class, () -> atOnce(locks.lock(scene.name)));
    }

    static void bad_input_is_refused_in_a_sentence(Scene scene) throws Exception {
        Holdfast locks = scene.client();
        refused(Codes.NoStoreException.class, () -> Holdfast.open("no-such-store:x"));
        refused(InvalidException.class, () -> Holdfast.open("memory://a\0b"));
        refused(InvalidException.class, () -> locks.lock(scene.name).acquire(Duration.ofMillis(-1)));
        refused(InvalidException.class, () -> locks.lock(scene.name).ttl(Duration.ofMillis(1)).acquire());
        refused(InvalidException.class, () -> locks.lock(scene.name).ttl(Duration.ofSeconds(Long.MAX_VALUE)).acquire());
        refused(InvalidException.class, () -> locks.lock(scene.name).ttl(Duration.ZERO));
        refused(InvalidException.class, () -> locks.lock(scene.name).limit(0));
        refused(InvalidException.class, () -> locks.lock(scene.name).owner(-1));
        refused(InvalidException.class, () -> locks.lock(scene.name).note("x".repeat(300)).acquire());
        refused(InvalidException.class, () -> locks.lock(scene.name).note("a\0b"));
        refused(InvalidException.class, () -> locks.adopt(scene.name, "no ticket"));
        refused(NullPointerException.class, () -> locks.check(null));
        isFree(locks, scene.name);
        locks.lock(scene.name).acquire(Duration.ofSeconds(Long.MAX_VALUE)).close(); // as good as for ever
    }

    static void operators_calls_answer(Scene scene) throws Exception {
        Holdfast locks = scene.client();
        locks.setup();
        check(locks.purge(Duration.ofMillis(1)) >= 0, "purge");
        check(!locks.diagnose().isEmpty(), "findings");
        Store store = Holdfast.stores().stream().filter(one -> one.schemes().contains(scene.url.split(":")[0])).findFirst().orElseThrow();
        check(store.missing().isEmpty() && store.capabilities().size() > 5, store.toString());
    }

    /** Needs Java 21: two carriers, many more virtual threads that wait, and the holder among them. */
    static void virtual_threads_do_not_pin(Scene scene) throws Exception {
        Method start;
        try {
            start = Thread.class.getMethod("startVirtualThread", Runnable.class);
        } catch (NoSuchMethodException e) {
            throw new Scene.Skipped("there are no virtual threads in Java " + Runtime.version().feature());
        }
        Executor virtual = work -> {
            try {
                start.invoke(null, work);
            } catch (ReflectiveOperationException e) {
                throw new AssertionError(e);
            }
        };
        Holdfast locks = scene.client();
        int crowd = 10 * ForkJoinPool.getCommonPoolParallelism() + 200;
        CompletableFuture<Void> go = new CompletableFuture<>();
        CompletableFuture<Void> holder = CompletableFuture.runAsync(() -> {
            try (Held held = locks.lock(scene.name).acquire()) {
                go.join(); // a virtual thread that waits, and must come back on a carrier to release
                held.renew();
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
        }, virtual);
        until("the holder", () -> entries(locks, scene.name).size() == 1);
        AtomicInteger turns = new AtomicInteger();
        List<CompletableFuture<Void>> waits = new ArrayList<>();
        for (int i = 0; i < crowd; i++) {
            boolean byThread = i % 2 == 0;
            waits.add(CompletableFuture.runAsync(() -> {
                Lock lock = locks.lock(scene.name).asLock();
                if (byThread) {
                    lock.lock();
                    turns.incrementAndGet();
                    lock.unlock();
                    return;
                }
                try (Held held = locks.lock(scene.name).acquire()) {
                    turns.incrementAndGet();
                } catch (InterruptedException e) {
                    throw new AssertionError(e);
                }
            }, virtual));
        }
        untilWaiting(locks, scene.name, crowd);
        CompletableFuture.runAsync(() -> go.complete(null), virtual);
        holder.get(60, TimeUnit.SECONDS);
        CompletableFuture.allOf(waits.toArray(CompletableFuture[]::new)).get(60, TimeUnit.SECONDS);
        same(crowd, turns.get());
    }
}
