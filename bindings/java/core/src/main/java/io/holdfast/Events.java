package io.holdfast;

import com.sun.jna.Memory;
import com.sun.jna.Pointer;
import io.holdfast.C.Posix;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/**
 * The one thread of a client that sits in a native call for all that wait: for the library's events, and for the descriptors of
 * locks whose loss somebody wants to know. It starts with the first of them. No code of users runs on it.
 */
final class Events implements Runnable {
    private static final long EVENTS = 0;
    private static final long WAKE = -1;
    private static final int AT_ONCE = 16;

    private final Holdfast client;
    private final Map<Long, Wait> waits = new ConcurrentHashMap<>();
    private final Map<Long, Held.State> watched = new ConcurrentHashMap<>();
    private final AtomicLong lastTag = new AtomicLong();
    private final int epoll;
    private final int wake;
    private final Thread thread;
    private volatile boolean ends;

    Events(Holdfast client, int eventFd) {
        this.client = client;
        epoll = Posix.epoll_create1(Posix.EPOLL_CLOEXEC);
        wake = Posix.eventfd(0, Posix.EPOLL_CLOEXEC);
        if (eventFd < 0 || !control(Posix.ADD, eventFd, EVENTS) || !control(Posix.ADD, wake, WAKE)) {
            closeDescriptors();
            throw HoldfastException.of(Codes.Code.SYSTEM, "there are no descriptors left for the events");
        }
        thread = Threads.daemon(this, "holdfast-events");
        thread.start();
    }

    private boolean control(int operation, int fd, long data) {
        try (Scratch scratch = Scratch.take()) {
            scratch.bytes.putInt(Scratch.STRUCT, Posix.EPOLLIN);
            scratch.bytes.putLong(Scratch.STRUCT + Posix.DATA, data);
            return Posix.epoll_ctl(epoll, operation, fd, scratch.address(Scratch.STRUCT)) == 0;
        }
    }

    long newTag() {
        return lastTag.incrementAndGet();
    }

    void add(long tag, Wait wait) {
        waits.put(tag, wait);
    }

    void remove(long tag) {
        waits.remove(tag);
    }

    /** Watches the descriptor of a lock; the number ends it. */
    long watch(int lockFd, Held.State state) {
        long number = newTag();
        watched.put(number, state);
        if (!control(Posix.ADD, lockFd, number)) {
            watched.remove(number);
            throw HoldfastException.of(Codes.Code.SYSTEM, "the lock's descriptor cannot be watched");
        }
        return number;
    }

    /** Must come before the lock is given back, or after the stop, when there is nothing to do. */
    void unwatch(int lockFd, long number) {
        if (watched.remove(number) != null && !ends) {
            control(Posix.DEL, lockFd, number);
        }
    }

    @Override
    public void run() {
        Memory memory = new Memory((long) AT_ONCE * Posix.EVENT_SIZE);
        ByteBuffer ready = memory.getByteBuffer(0, memory.size()).order(ByteOrder.nativeOrder());
        while (!ends) {
            int count = Posix.epoll_wait(epoll, Pointer.nativeValue(memory), AT_ONCE, -1);
            for (int i = 0; i < count && !ends; i++) {
                long data = ready.getLong(i * Posix.EVENT_SIZE + Posix.DATA);
                if (data == EVENTS) {
                    takeEvents();
                } else if (data != WAKE) {
                    Held.State state = watched.get(data);
                    if (state != null) {
                        state.tellLoss();
                    }
                }
            }
        }
    }

    private void takeEvents() {
        try (Scratch scratch = Scratch.take()) {
            while (client.guard.enter()) {
                int code;
                try {
                    scratch.bytes.putLong(Scratch.STRUCT, Scratch.EVENT_SIZE);
                    code = C.hf_event_next(client.address, 0, scratch.address(Scratch.STRUCT));
                } finally {
                    client.guard.leave();
                }
                if (code != 0) {
                    return;
                }
                tell(scratch);
            }
        }
    }

    private void tell(Scratch scratch) {
        int kind = scratch.bytes.getInt(Scratch.STRUCT + Scratch.EVENT_KIND);
        if (kind != Codes.EVENT_ACQUIRED && kind != Codes.EVENT_FAILED && kind != Codes.EVENT_RELEASED) {
            return; // losses are told by the locks' descriptors
        }
        Wait wait = waits.remove(scratch.bytes.getLong(Scratch.STRUCT + Scratch.EVENT_TAG));
        if (wait == null) {
            return; // a release that nobody waits for
        }
        int err = Scratch.STRUCT + Scratch.EVENT_ERR;
        int code = scratch.bytes.getInt(err);
        wait.end(kind == Codes.EVENT_ACQUIRED ? scratch.bytes.getLong(Scratch.STRUCT + Scratch.EVENT_LOCK) : 0,
                code == 0 ? null : scratch.failure(code, err));
    }

    /** Stops the thread, before the client is closed: that closes the descriptors which it watches. */
    void stop() {
        ends = true;
        Posix.eventfd_write(wake, 1);
        boolean interrupted = false;
        while (thread.isAlive() && thread != Thread.currentThread()) {
            try {
                thread.join();
            } catch (InterruptedException e) {
                interrupted = true;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
        closeDescriptors();
    }

    /** After the close: no event comes any more. */
    void endWaits() {
        for (Long tag : waits.keySet()) {
            Wait wait = waits.remove(tag);
            if (wait != null) {
                wait.end(0, HoldfastException.of(Codes.Code.CLOSED));
            }
        }
    }

    private void closeDescriptors() {
        Posix.close(epoll);
        Posix.close(wake);
    }
}
