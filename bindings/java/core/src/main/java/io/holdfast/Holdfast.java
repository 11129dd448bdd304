package io.holdfast;

import com.sun.jna.Memory;
import java.lang.ref.Reference;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/**
 * A connection to one store, for any number of threads. It stays open, and its locks stay held, until {@link #close} or the
 * end of the program by {@link System#exit} or its last thread.
 */
public final class Holdfast implements AutoCloseable {
    /** Owners of acquires that name none; far from those that people choose. */
    static final long FIRST_OWNER = 1L << 62;

    private static final Set<Holdfast> OPEN = ConcurrentHashMap.newKeySet();
    private static final AtomicLong LAST_OWNER = new AtomicLong(FIRST_OWNER);

    static {
        Runtime.getRuntime().addShutdownHook(new Thread(() -> OPEN.forEach(Holdfast::close), "holdfast-exit"));
    }

    final long address;
    final Guard guard = new Guard();
    final Set<Held.State> live = ConcurrentHashMap.newKeySet();
    final Map<ThreadLock.Key, ThreadLock.Hold> holds = new ConcurrentHashMap<>();
    private final Set<Codes.Capability> capabilities;
    private final CountDownLatch closed = new CountDownLatch(1);
    private final ReentrantLock starting = new ReentrantLock();
    private volatile Events events;

    /** A call that uses the client; {@link #close} waits for its end. */
    final class Use implements AutoCloseable {
        @Override
        public void close() {
            guard.leave();
        }
    }

    private final Use use = new Use();

    private Holdfast(long address) {
        this.address = address;
        capabilities = capabilitySet(C.hf_capabilities(address));
    }

    Use use() {
        if (!guard.enter()) {
            throw HoldfastException.of(Codes.Code.CLOSED);
        }
        return use;
    }

    private static Set<Codes.Capability> capabilitySet(int bits) {
        EnumSet<Codes.Capability> set = EnumSet.noneOf(Codes.Capability.class);
        for (Codes.Capability capability : Codes.Capability.values()) {
            if ((bits >> capability.bit & 1) != 0) {
                set.add(capability);
            }
        }
        return Collections.unmodifiableSet(set);
    }

    /**
     * The version of the library in use.
     *
     * @return for example 1.2.3
     */
    public static String version() {
        return C.VERSION;
    }

    /**
     * Opens the store that {@code HOLDFAST_URL} names, or else the default store.
     *
     * @return the client, to be closed
     */
    public static Holdfast open() {
        return open(null);
    }

    /**
     * Opens the store that a URL names: {@code memory://name}, {@code sqlite:/path/locks.db}, {@code redis://host:6379/0}, … You can
     * open a network store before it can be reached.
     *
     * @param url null: the same as {@link #open()}
     * @return the client, to be closed
     */
    public static Holdfast open(String url) {
        return open(url, defaultProgram(), List.of());
    }

    /**
     * The same with more to say.
     *
     * @param url     null: the same as {@link #open()}
     * @param program shown to people who look at a lock
     * @param modules directories of store modules, to look into before the installed one
     * @return the client, to be closed
     */
    public static Holdfast open(String url, String program, List<Path> modules) {
        Memory place = Scratch.text(url, "a URL");
        Memory name = Scratch.text(program, "a program");
        Memory directories = modules.isEmpty() ? null
                : Scratch.text(String.join(":", modules.stream().map(Path::toString).toList()), "modules");
        long opened = Threads.call(() -> {
            try (Scratch scratch = Scratch.take()) {
                scratch.structure(Scratch.CLIENT_OPTIONS_SIZE);
                scratch.bytes.putLong(Scratch.STRUCT + Scratch.CLIENT_OPTIONS_PROGRAM, Scratch.address(name))
                        .putLong(Scratch.STRUCT + Scratch.CLIENT_OPTIONS_MODULES, Scratch.address(directories));
                scratch.must(C.hf_open(Scratch.address(place), scratch.address(Scratch.STRUCT), scratch.address(Scratch.OUT),
                        scratch.address(Scratch.ERR)));
                return scratch.out();
            }
        });
        Reference.reachabilityFence(place);
        Reference.reachabilityFence(name);
        Reference.reachabilityFence(directories);
        Holdfast client = new Holdfast(opened);
        OPEN.add(client);
        return client;
    }

    /** The main class or jar, without its arguments. */
    private static String defaultProgram() {
        String command = System.getProperty("sun.java.command", "java").split(" ")[0];
        return command.isEmpty() ? "java" : command.substring(command.lastIndexOf('/') + 1);
    }

    /**
     * Describes a lock; nothing is sent.
     *
     * @param name 1 to 512 bytes as UTF-8
     * @return a description
     */
    public NamedLock lock(String name) {
        return lock(name.getBytes(StandardCharsets.UTF_8));
    }

    /**
     * The same with any bytes.
     *
     * @param name 1 to 512 bytes
     * @return a description
     */
    public NamedLock lock(byte[] name) {
        return new NamedLock(this, name.clone(), new NamedLock.Settings());
    }

    /**
     * What the store can do.
     *
     * @return cannot be changed
     */
    public Set<Codes.Capability> capabilities() {
        return capabilities;
    }

    /** The thread for what waits; made by the first. */
    Events events() {
        Events there = events;
        if (there != null) {
            return there;
        }
        starting.lock();
        try (Use inside = use()) {
            if (events == null) {
                events = new Events(this, C.hf_event_fd(address));
            }
            return events;
        } finally {
            starting.unlock();
        }
    }

    /**
     * Takes a lock. A platform thread first asks by itself, which is the fastest way to a lock that is free. If it has to wait, or is virtual,
     * the library waits for it, and the thread is parked.
     */
    Held acquire(NamedLock lock, long waitMs, long owner, boolean interruptible) throws InterruptedException {
        if (interruptible && Thread.interrupted()) {
            throw new InterruptedException();
        }
        long started = System.nanoTime();
        if (!Threads.isVirtual()) {
            long got = ask(lock, waitMs, owner);
            if (got != 0) {
                return new Held(this, lock.name, got);
            }
            if (waitMs > 0) {
                waitMs = Math.max(1, waitMs - (System.nanoTime() - started) / 1_000_000);
            }
        }
        return acquireParked(lock, waitMs, owner, interruptible);
    }

    /** One request without waiting; 0: wait. */
    private long ask(NamedLock lock, long waitMs, long owner) {
        try (Scratch scratch = Scratch.take(); Use inside = use()) {
            lock.settings.put(scratch, 0, owner != 0 ? owner : LAST_OWNER.incrementAndGet());
            int code = C.hf_acquire(address, scratch.address(Scratch.NAME), scratch.name(lock.name),
                    scratch.address(Scratch.STRUCT), scratch.address(Scratch.OUT), scratch.address(Scratch.ERR));
            Reference.reachabilityFence(lock);
            if (code == 0) {
                return scratch.out();
            }
            boolean mayWait = code == Codes.Code.BUSY.value || code == Codes.Code.UNAVAILABLE.value
                    || code == Codes.Code.UNKNOWN.value;
            if (waitMs == 0 || !mayWait) {
                throw scratch.failure(code, Scratch.ERR);
            }
            return 0;
        }
    }

    private void start(NamedLock lock, long waitMs, long owner, long tag, Events thread, Wait wait) {
        try (Scratch scratch = Scratch.take(); Use inside = use()) {
            thread.add(tag, wait);
            lock.settings.put(scratch, waitMs, owner);
            int code = C.hf_acquire_start(address, scratch.address(Scratch.NAME), scratch.name(lock.name),
                    scratch.address(Scratch.STRUCT), tag, scratch.address(Scratch.ERR));
            Reference.reachabilityFence(lock);
            if (code != 0) {
                thread.remove(tag);
                throw scratch.failure(code, Scratch.ERR);
            }
        }
    }

    private void stop(long tag) {
        if (guard.enter()) {
            try {
                C.hf_acquire_stop(address, tag); // its event follows in any case
            } finally {
                guard.leave();
            }
        }
    }

    private Held acquireParked(NamedLock lock, long waitMs, long owner, boolean interruptible) throws InterruptedException {
        Events thread = events();
        Wait wait = new Wait();
        long tag = thread.newTag();
        start(lock, waitMs, owner, tag, thread, wait);
        boolean interrupted = false;
        while (!wait.over()) {
            LockSupport.park(wait);
            if (Thread.interrupted()) {
                if (interruptible && !interrupted) {
                    stop(tag);
                }
                interrupted = true;
            }
        }
        Held held = wait.lock == 0 ? null : new Held(this, lock.name, wait.lock);
        if (interrupted && interruptible) {
            if (held != null) { // the interrupt came too late to stop it
                held.close();
                throw new InterruptedException();
            }
            if (wait.failure instanceof Codes.CancelledException) {
                throw new InterruptedException();
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
        if (held == null) {
            throw wait.failure;
        }
        return held;
    }

    /** A future that withdraws its bid when it is cancelled. */
    private static final class Bid extends CompletableFuture<Held> {
        private final Runnable stop;

        Bid(Runnable stop) {
            this.stop = stop;
        }

        @Override
        public boolean cancel(boolean mayInterrupt) {
            boolean cancelled = super.cancel(mayInterrupt);
            if (cancelled) {
                stop.run();
            }
            return cancelled;
        }

        @Override
        public <U> CompletableFuture<U> newIncompleteFuture() {
            return new CompletableFuture<>();
        }
    }

    CompletableFuture<Held> acquireAsync(NamedLock lock, long waitMs) {
        Events thread;
        try {
            thread = events();
        } catch (HoldfastException e) {
            return CompletableFuture.failedFuture(e);
        }
        long tag = thread.newTag();
        byte[] name = lock.name;
        Bid bid = new Bid(() -> stop(tag));
        Wait wait = new Wait() {
            @Override
            void end(long acquired, HoldfastException failed) {
                // What depends on the future is users' code, which is not for the event thread.
                Held held = acquired == 0 ? null : new Held(Holdfast.this, name, acquired);
                ForkJoinPool.commonPool().execute(() -> finish(bid, held, failed));
            }
        };
        try {
            start(lock, waitMs, lock.settings.owner, tag, thread, wait);
        } catch (HoldfastException e) {
            bid.completeExceptionally(e);
        }
        return bid;
    }

    private static void finish(Bid bid, Held held, HoldfastException failed) {
        if (held == null) {
            bid.completeExceptionally(failed);
        } else if (!bid.complete(held)) { // cancelled too late to stop it
            try {
                held.close();
            } catch (HoldfastException e) {
                // lost, closed or unknown: in each case the library goes on with it
            }
        }
    }

    /**
     * Takes over a lock by its ticket, after {@link Held#detach}. Adopt only what its holder has detached, or a dead one's.
     *
     * @param name   of the lock
     * @param ticket of the grant
     * @return the lock, to be closed
     */
    public Held adopt(String name, String ticket) {
        return adopt(lock(name), ticket);
    }

    /**
     * The same with a description, of which the owner, byHand and maxHold are used.
     *
     * @param lock   describes it
     * @param ticket of the grant
     * @return the lock, to be closed
     */
    public Held adopt(NamedLock lock, String ticket) {
        Memory text = Scratch.text(java.util.Objects.requireNonNull(ticket, "ticket"), "a ticket");
        return Threads.call(() -> {
            try (Scratch scratch = Scratch.take(); Use inside = use()) {
                long owner = lock.settings.owner != 0 ? lock.settings.owner : LAST_OWNER.incrementAndGet();
                lock.settings.put(scratch, 0, owner);
                scratch.must(C.hf_adopt(address, scratch.address(Scratch.NAME), scratch.name(lock.name), Scratch.address(text),
                        scratch.address(Scratch.STRUCT), scratch.address(Scratch.OUT), scratch.address(Scratch.ERR)));
                Reference.reachabilityFence(text);
                Reference.reachabilityFence(lock);
                return new Held(this, lock.name, scratch.out());
            }
        });
    }

    /**
     * Asks the store whether the grant behind this sequencer is live now.
     *
     * @param sequencer of the grant
     * @throws Codes.StaleException it is not
     */
    public void check(String sequencer) {
        Memory text = Scratch.text(java.util.Objects.requireNonNull(sequencer, "sequencer"), "a sequencer");
        Threads.call(() -> {
            try (Scratch scratch = Scratch.take(); Use inside = use()) {
                scratch.must(C.hf_check(address, Scratch.address(text), scratch.address(Scratch.ERR)));
                Reference.reachabilityFence(text);
                return null;
            }
        });
    }

    /**
     * Takes a lock away from a ticket. It stays closed until the lease ends, unless {@code now}.
     *
     * @param name   of the lock
     * @param ticket of the holder or waiter
     * @param now    do not wait for the end of the lease
     * @throws Codes.NotFoundException there is no such ticket
     */
    public void breakLock(String name, String ticket, boolean now) {
        breakLock(name.getBytes(StandardCharsets.UTF_8), ticket, now);
    }

    /**
     * The same with any bytes.
     *
     * @param name   of the lock
     * @param ticket of the holder or waiter
     * @param now    do not wait for the end of the lease
     */
    public void breakLock(byte[] name, String ticket, boolean now) {
        Memory text = Scratch.text(java.util.Objects.requireNonNull(ticket, "ticket"), "a ticket");
        Threads.call(() -> {
            try (Scratch scratch = Scratch.take(); Use inside = use()) {
                scratch.must(C.hf_break(address, scratch.address(Scratch.NAME), scratch.name(name), Scratch.address(text),
                        now ? 1 : 0, scratch.address(Scratch.ERR)));
                Reference.reachabilityFence(text);
                return null;
            }
        });
    }

    /** Creates what the store needs (tables, directories), and leaves alone what exists. */
    public void setup() {
        Threads.call(() -> {
            try (Scratch scratch = Scratch.take(); Use inside = use()) {
                scratch.must(C.hf_setup(address, scratch.address(Scratch.ERR)));
                return null;
            }
        });
    }

    /**
     * Removes the records of free locks that nobody has touched for so long.
     *
     * @param retain zero: the store's own time
     * @return how many; very many need several calls, until it is 0
     */
    public long purge(Duration retain) {
        long retainMs = NamedLock.ms(retain, "retain");
        return Threads.call(() -> {
            try (Scratch scratch = Scratch.take(); Use inside = use()) {
                scratch.must(C.hf_purge(address, retainMs, scratch.address(Scratch.OUT), scratch.address(Scratch.ERR)));
                return scratch.out();
            }
        });
    }

    /**
     * Finds holders and waiters.
     *
     * @param query which
     * @return by name, holders before waiters, waiters in the order of the queue
     */
    public List<Entry> inspect(Query query) {
        long olderThanMs = NamedLock.ms(query.olderThan(), "an age");
        return Threads.call(() -> {
            try (Scratch scratch = Scratch.take(); Use inside = use()) {
                scratch.structure(Scratch.QUERY_SIZE);
                byte[] name = query.name() != null ? query.name() : query.prefix();
                if (name != null) {
                    int field = Scratch.STRUCT + (query.name() != null ? Scratch.QUERY_NAME : Scratch.QUERY_PREFIX);
                    scratch.bytes.putLong(field, scratch.address(Scratch.NAME)).putLong(field + 8, scratch.name(name));
                }
                scratch.bytes.putLong(Scratch.STRUCT + Scratch.QUERY_OLDER_THAN, olderThanMs);
                scratch.must(C.hf_inspect(address, scratch.address(Scratch.STRUCT), scratch.address(Scratch.OUT),
                        scratch.address(Scratch.ERR)));
                return Views.entries(scratch.out());
            }
        });
    }

    /**
     * Examines a live store, as {@code holdfast doctor} does.
     *
     * @return one for each thing that was looked at
     */
    public List<Finding> diagnose() {
        return Threads.call(() -> {
            List<Finding> found = new ArrayList<>();
            C.FindingCallback callback = (level, clause, text, arg) -> found.add(new Finding(
                    Finding.Level.values()[level], Views.text(clause).orElse(""), Views.text(text).orElse("")));
            try (Scratch scratch = Scratch.take(); Use inside = use()) {
                scratch.must(C.hf_diagnose(address, callback, 0, scratch.address(Scratch.ERR)));
            }
            Reference.reachabilityFence(callback);
            return found;
        });
    }

    /**
     * The stores that this installation knows.
     *
     * @return with those that cannot be used, and why
     */
    public static List<Store> stores() {
        return Threads.call(() -> {
            List<Store> found = new ArrayList<>();
            C.StoreCallback callback = (info, arg) -> found.add(Views.store(info, Holdfast::capabilitySet));
            int code = C.hf_stores(callback, 0);
            Reference.reachabilityFence(callback);
            if (code != 0) {
                throw HoldfastException.of(Codes.Code.of(code));
            }
            return found;
        });
    }

    /** The name, text and exit status that the library itself has for a code. */
    static Object[] describe(int code) {
        return new Object[] {C.hf_code_name(code).getString(0), C.hf_code_text(code).getString(0, "UTF-8"),
            C.hf_code_exit_status(code)};
    }

    /**
     * Gives back every lock that is still held, and ends every wait with {@link Codes.ClosedException}. It may be called again.
     */
    @Override
    public void close() {
        Threads.call(() -> {
            closeHere();
            return null;
        });
    }

    private void closeHere() {
        if (!guard.end()) {
            awaitClosed();
            return;
        }
        starting.lock(); // an event thread that is being made
        starting.unlock();
        if (events != null) {
            events.stop();
        }
        C.hf_close(address);
        OPEN.remove(this);
        live.forEach(Held.State::endWithClient);
        holds.clear();
        if (events != null) {
            events.endWaits();
        }
        closed.countDown();
    }

    private void awaitClosed() {
        boolean interrupted = false;
        while (true) {
            try {
                closed.await();
                break;
            } catch (InterruptedException e) {
                interrupted = true;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
