package io.holdfast;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;

/** Keeps what C must not free while a call uses it: many may be inside; the one that ends it waits until all have left. */
final class Guard {
    private static final int ENDED = 1;
    private static final int USER = 2;

    private final AtomicInteger state = new AtomicInteger();
    private volatile Thread ending;

    /** False: it has been ended, and nothing may be used. */
    boolean enter() {
        if ((state.getAndAdd(USER) & ENDED) == 0) {
            return true;
        }
        leave();
        return false;
    }

    void leave() {
        if (state.addAndGet(-USER) == ENDED) {
            Thread waits = ending;
            if (waits != null) {
                LockSupport.unpark(waits);
            }
        }
    }

    /** False: somebody else has ended it. The calls inside are short, so an interrupt can wait. */
    boolean end() {
        int seen;
        do {
            seen = state.get();
            if ((seen & ENDED) != 0) {
                return false;
            }
        } while (!state.compareAndSet(seen, seen | ENDED));
        ending = Thread.currentThread();
        boolean interrupted = false;
        while (state.get() >= USER) {
            LockSupport.park(this);
            interrupted |= Thread.interrupted();
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
        return true;
    }

    /** Takes an end back. */
    void reopen() {
        state.addAndGet(-ENDED);
    }

    boolean ended() {
        return (state.get() & ENDED) != 0;
    }
}
