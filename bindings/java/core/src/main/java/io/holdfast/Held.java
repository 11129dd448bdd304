package io.holdfast;

import java.lang.ref.Cleaner;
import java.lang.ref.Reference;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ForkJoinPool;
import java.util.function.LongToIntFunction;

/**
 * A lock that was obtained. Any thread may use it and give it back. After it was given back, every call but {@link #state},
 * {@link #remaining}, {@link #cause}, {@link #name} and {@link #close} is refused with {@link Codes.StaleException}; after the
 * client was closed, with {@link Codes.ClosedException}.
 */
public final class Held implements AutoCloseable {
    static final Cleaner CLEANER = Cleaner.create(work -> Threads.daemon(work, "holdfast-cleaner"));
    private static final System.Logger LOGGER = System.getLogger("io.holdfast");

    private final State state;
    private final Cleaner.Cleanable cleanable;

    /** What outlives a handle that nobody gave back. It must not lead to the handle. */
    static final class State implements Runnable {
        final Holdfast client;
        final byte[] name;
        private final Guard guard = new Guard();
        private final long lock;
        private volatile Codes.Code refusal; // what calls are refused with after the end
        private volatile Codes.Cause cause = Codes.Cause.NONE;
        private CompletableFuture<Codes.Cause> lost; // under this
        private Events events;
        private long watch;
        private int fd = -1;

        State(Holdfast client, byte[] name, long lock) {
            this.client = client;
            this.name = name;
            this.lock = lock;
            client.live.add(this);
        }

        /** The handle was collected: unless it was given back, somebody forgot to. */
        @Override
        public void run() {
            if (refusal != null || !client.guard.enter()) {
                return;
            }
            try {
                if (end(Codes.Code.STALE)) {
                    C.hf_release_start(lock, 0, 0);
                    LOGGER.log(System.Logger.Level.WARNING, "the lock ''{0}'' was dropped without close(); it is released now",
                            new String(name, StandardCharsets.UTF_8));
                }
            } finally {
                client.guard.leave();
            }
        }

        /** After it nobody uses the handle; false: somebody else has ended it. */
        boolean end(Codes.Code refuseWith) {
            if (!guard.end()) {
                return false;
            }
            refusal = refuseWith;
            unwatch();
            client.live.remove(this);
            return true;
        }

        private synchronized void unwatch() {
            if (events != null && fd >= 0) {
                events.unwatch(fd, watch);
            }
            fd = -1;
        }

        /** The client is closed, and has given the lock back: only memory is left. */
        void endWithClient() {
            if (!end(Codes.Code.CLOSED)) {
                return;
            }
            C.hf_lock_release(lock, 0);
            finish(Codes.Cause.CLOSED);
        }

        /** Its descriptor says that it is lost; on the event thread. */
        void tellLoss() {
            if (!guard.enter()) {
                return;
            }
            Codes.Cause why;
            try {
                why = Codes.Cause.values()[C.hf_lock_cause(lock)];
            } finally {
                guard.leave();
            }
            unwatch();
            finish(why);
        }

        private void finish(Codes.Cause why) {
            cause = why;
            CompletableFuture<Codes.Cause> future;
            synchronized (this) {
                future = lost;
            }
            if (future != null) { // what depends on it is users' code, which is not for this thread
                ForkJoinPool.commonPool().execute(() -> future.complete(why));
            }
        }

        CompletableFuture<Codes.Cause> lost() {
            Events thread = client.events(); // may be made, so not under this
            synchronized (this) {
                if (lost == null) {
                    lost = new CompletableFuture<>();
                    events = thread;
                    watchFd();
                }
                return lost.copy();
            }
        }

        /** Watches the descriptor, if somebody wants to know of the loss. */
        private synchronized void watchFd() {
            if (lost == null || !guard.enter()) {
                return;
            }
            try (Holdfast.Use use = client.use()) { // the event thread's descriptors go with the client
                fd = C.hf_lock_fd(lock);
                if (fd < 0) {
                    throw HoldfastException.of(Codes.Code.of(fd));
                }
                watch = events.watch(fd, this);
            } finally {
                guard.leave();
            }
        }
    }

    Held(Holdfast client, byte[] name, long lock) {
        state = new State(client, name, lock);
        cleanable = CLEANER.register(this, state);
    }

    /** Asks C about the lock. */
    private int ask(LongToIntFunction question) {
        if (!state.guard.enter()) {
            throw refused();
        }
        try {
            return question.applyAsInt(state.lock);
        } finally {
            state.guard.leave();
            Reference.reachabilityFence(this);
        }
    }

    private HoldfastException refused() {
        Codes.Code code = state.refusal != null ? state.refusal
                : state.client.guard.ended() ? Codes.Code.CLOSED : Codes.Code.STALE;
        return code == Codes.Code.STALE
                ? HoldfastException.of(code, "this handle has already given its lock back") : HoldfastException.of(code);
    }

    /** The same, with an exception if the lock is lost. */
    private int askHeld(LongToIntFunction question) {
        return ask(lock -> {
            if (C.hf_lock_state(lock) == Codes.State.LOST.ordinal()) {
                Codes.Cause cause = Codes.Cause.values()[C.hf_lock_cause(lock)];
                throw cause == Codes.Cause.CLOSED ? HoldfastException.of(Codes.Code.CLOSED)
                        : HoldfastException.of(Codes.Code.LOST, "the lock was lost: " + cause.text);
            }
            return question.applyAsInt(lock);
        });
    }

    /**
     * The name as text.
     *
     * @return what is no UTF-8 in it is replaced
     */
    public String name() {
        return new String(state.name, StandardCharsets.UTF_8);
    }

    /**
     * The name as it is.
     *
     * @return a copy
     */
    public byte[] nameBytes() {
        return state.name.clone();
    }

    /**
     * Identifies this grant, for people and for {@link Holdfast#adopt}.
     *
     * @return 32 hex digits
     */
    public String ticket() {
        String[] ticket = new String[1];
        ask(lock -> {
            ticket[0] = C.hf_lock_ticket(lock).getString(0);
            return 0;
        });
        return ticket[0];
    }

    /**
     * The fencing token: larger than that of every earlier grant of this name. Pass it to what you write to.
     *
     * @return the token; compare by {@link Long#compareUnsigned}
     * @throws Codes.LostException        the lock is lost
     * @throws Codes.UnsupportedException the store cannot make one
     */
    public long token() {
        try (Scratch scratch = Scratch.take()) {
            int code = askHeld(lock -> C.hf_lock_generation(lock, scratch.address(Scratch.OUT)));
            if (code != 0) {
                throw HoldfastException.of(Codes.Code.of(code));
            }
            return scratch.out();
        }
    }

    /**
     * A proof to show to a resource, for {@link Gate#pass} and {@link Holdfast#check}.
     *
     * @return printable ASCII without blanks
     */
    public String sequencer() {
        try (Scratch scratch = Scratch.take()) {
            int code = askHeld(
                    lock -> C.hf_lock_sequencer(lock, scratch.address(Scratch.BUFFER), Codes.SEQUENCER_MAX));
            if (code != 0) {
                throw HoldfastException.of(Codes.Code.of(code));
            }
            return scratch.string(Scratch.BUFFER, (int) Codes.SEQUENCER_MAX);
        }
    }

    /**
     * Whether it is still held, by the local clock.
     *
     * @return LOST also after it was given back
     */
    public Codes.State state() {
        return state.guard.ended() ? Codes.State.LOST : Codes.State.values()[askOr(C::hf_lock_state, Codes.State.LOST.ordinal())];
    }

    private int askOr(LongToIntFunction question, int otherwise) {
        try {
            return ask(question);
        } catch (Codes.StaleException | Codes.ClosedException e) {
            return otherwise;
        }
    }

    /**
     * Why it was lost.
     *
     * @return NONE if it was not
     */
    public Codes.Cause cause() {
        return state.guard.ended() ? state.cause : Codes.Cause.values()[askOr(C::hf_lock_cause, state.cause.ordinal())];
    }

    /**
     * How long it stays ours without another renewal.
     *
     * @return zero if it is lost or was given back; empty if it never expires
     */
    public Optional<Duration> remaining() {
        long[] ms = new long[1];
        askOr(lock -> {
            ms[0] = C.hf_lock_remaining_ms(lock);
            return 0;
        }, 0);
        return ms[0] == Long.MAX_VALUE ? Optional.empty() : Optional.of(Duration.ofMillis(ms[0]));
    }

    /**
     * Why the last renewal failed: the reason behind {@link Codes.State#AT_RISK}.
     *
     * @return empty: it did not fail
     */
    public Optional<HoldfastException> lastError() {
        try (Scratch scratch = Scratch.take()) {
            int code = ask(lock -> C.hf_lock_error(lock, scratch.address(Scratch.ERR)));
            return code == 0 ? Optional.empty() : Optional.of(scratch.failure(code, Scratch.ERR));
        }
    }

    /**
     * Is completed when the lock is lost, with the cause. It completes on a thread of the common pool; after a release it never does.
     * Keep this handle as long as you want to know.
     *
     * @return a future of your own
     */
    public CompletableFuture<Codes.Cause> lost() {
        if (state.guard.ended()) {
            throw refused();
        }
        CompletableFuture<Codes.Cause> future = state.lost();
        Reference.reachabilityFence(this);
        return future;
    }

    /** Throws if the lock is lost: ask before a step that you cannot undo. */
    public void ensureHeld() {
        askHeld(lock -> 0);
    }

    /**
     * Renews the lease now. You need it only with {@link NamedLock#byHand}.
     *
     * @throws Codes.LostException it is no longer ours
     */
    public void renew() {
        Threads.call(() -> {
            try (Scratch scratch = Scratch.take(); Holdfast.Use use = state.client.use()) {
                scratch.must(askHeld(lock -> C.hf_lock_renew(lock, scratch.address(Scratch.ERR))));
                return null;
            }
        });
    }

    /**
     * Ends this handle and leaves the lock in the store, where {@link Holdfast#adopt} finds it.
     *
     * @return the ticket for that
     */
    public String detach() {
        return Threads.call(() -> {
            try (Scratch scratch = Scratch.take(); Holdfast.Use use = state.client.use()) {
                ensureHeld();
                String ticket = ticket();
                if (!state.guard.end()) {
                    throw refused();
                }
                state.unwatch(); // the descriptor goes with the handle
                int code = C.hf_lock_detach(state.lock, scratch.address(Scratch.ERR));
                state.guard.reopen();
                if (code != 0) {
                    state.watchFd();
                    throw scratch.failure(code, Scratch.ERR);
                }
                state.end(Codes.Code.STALE);
                cleanable.clean();
                return ticket;
            }
        });
    }

    /**
     * Gives the lock back.
     *
     * @throws Codes.StaleException it was no longer ours, or was already given back
     */
    public void release() {
        if (state.guard.ended()) {
            throw refused();
        }
        if (Threads.isVirtual()) {
            releaseParked();
            return;
        }
        try (Scratch scratch = Scratch.take(); Holdfast.Use use = state.client.use()) {
            if (!state.end(Codes.Code.STALE)) {
                throw refused();
            }
            int code = C.hf_lock_release(state.lock, scratch.address(Scratch.ERR));
            cleanable.clean();
            scratch.must(code);
        }
    }

    /** Without a native call that lasts. */
    private void releaseParked() {
        Wait wait = new Wait();
        Events events = state.client.events();
        try (Scratch scratch = Scratch.take(); Holdfast.Use use = state.client.use()) {
            if (!state.end(Codes.Code.STALE)) {
                throw refused();
            }
            long tag = events.newTag();
            events.add(tag, wait);
            int code = C.hf_release_start(state.lock, tag, scratch.address(Scratch.ERR));
            if (code != 0) {
                events.remove(tag);
            }
            cleanable.clean();
            scratch.must(code);
        }
        if (wait.uninterruptibly()) {
            Thread.currentThread().interrupt();
        }
        if (wait.failure != null) {
            throw wait.failure;
        }
    }

    /** Releases it, if that has not been done. {@link Codes.StaleException}: it was no longer ours. */
    @Override
    public void close() {
        if (state.refusal == null) {
            release();
        }
    }
}
