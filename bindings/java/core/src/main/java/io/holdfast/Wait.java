package io.holdfast;

import java.util.concurrent.locks.LockSupport;

/** What an event of the library is to end: a thread that is parked, or a future. */
class Wait {
    private final Thread thread = Thread.currentThread();
    private volatile boolean over;
    long lock; // ACQUIRED
    HoldfastException failure;

    /** Tells how it ended; on the event thread, so it must be quick. */
    void end(long acquired, HoldfastException failed) {
        lock = acquired;
        failure = failed;
        over = true;
        LockSupport.unpark(thread);
    }

    boolean over() {
        return over;
    }

    /** Parks until it is over, whatever interrupts come: true if one came. */
    boolean uninterruptibly() {
        boolean interrupted = false;
        while (!over) {
            LockSupport.park(this);
            interrupted |= Thread.interrupted();
        }
        return interrupted;
    }
}
