package io.holdfast;

import com.sun.jna.Native;
import com.sun.jna.NativeLibrary;
import com.sun.jna.Platform;
import com.sun.jna.Pointer;

/** The functions of libholdfast, and those of libc that the event thread needs. Pointers are longs: that is the fastest for JNA. */
final class C {
    private C() {}

    static final String VERSION;

    static {
        if (Native.POINTER_SIZE != 8) {
            throw new UnsatisfiedLinkError("holdfast needs a 64-bit Java");
        }
        NativeLibrary library;
        String path = System.getProperty("holdfast.lib", "holdfast");
        try {
            library = NativeLibrary.getInstance(path);
        } catch (UnsatisfiedLinkError e) {
            throw new UnsatisfiedLinkError("libholdfast.so.0 is not there: install it, or name the file by -Dholdfast.lib=PATH ("
                    + e.getMessage().lines().findFirst().orElse("") + ")");
        }
        VERSION = library.getFunction("hf_version").invokePointer(new Object[0]).getString(0);
        // Below 1.0 the minor version counts: 0.2.3 fits what was written for 0.2.1, and 0.3.0 does not.
        String series = Codes.HEADER_VERSION.substring(0, Codes.HEADER_VERSION.lastIndexOf('.') + 1);
        if (!VERSION.startsWith(series)) {
            throw new UnsatisfiedLinkError("this package needs libholdfast " + Codes.HEADER_VERSION + ", but the system's is "
                    + VERSION + ": install one that fits");
        }
        Native.register(C.class, library);
    }

    static native int hf_open(long url, long options, long ret_client, long err);

    static native void hf_close(long client);

    static native int hf_capabilities(long client);

    static native int hf_acquire(long client, long name, long len, long options, long ret_lock, long err);

    static native int hf_lock_release(long lock, long err);

    static native int hf_lock_renew(long lock, long err);

    static native int hf_lock_detach(long lock, long err);

    static native int hf_adopt(long client, long name, long len, long ticket, long options, long ret_lock, long err);

    static native int hf_acquire_start(long client, long name, long len, long options, long tag, long err);

    static native int hf_acquire_stop(long client, long tag);

    static native int hf_release_start(long lock, long tag, long err);

    static native int hf_event_fd(long client);

    static native int hf_event_next(long client, long wait_ms, long ret_event);

    static native int hf_lock_state(long lock);

    static native int hf_lock_cause(long lock);

    static native int hf_lock_error(long lock, long err);

    static native long hf_lock_remaining_ms(long lock);

    static native int hf_lock_fd(long lock);

    static native int hf_lock_generation(long lock, long ret_generation);

    static native int hf_lock_sequencer(long lock, long buf, long size);

    static native Pointer hf_lock_ticket(long lock);

    static native int hf_check(long client, long sequencer, long err);

    static native int hf_gate_new(long ret_gate);

    static native int hf_gate_pass(long gate, long sequencer, long err);

    static native int hf_gate_levels(long gate, long name, long len, long ret_exclusive, long ret_highest);

    static native int hf_gate_restore(long gate, long name, long len, long exclusive, long highest);

    static native void hf_gate_free(long gate);

    static native int hf_inspect(long client, long query, long ret_view, long err);

    static native long hf_view_count(long view);

    static native Pointer hf_view_entry(long view, long i);

    static native void hf_view_free(long view);

    static native int hf_break(long client, long name, long len, long ticket, int now, long err);

    static native int hf_setup(long client, long err);

    static native int hf_purge(long client, long retain_ms, long ret_count, long err);

    static native Pointer hf_code_name(int code);

    static native Pointer hf_code_text(int code);

    static native int hf_code_exit_status(int code);

    /** Calls back with what was found; these two are too rare for direct mapping. */
    interface FindingCallback extends com.sun.jna.Callback {
        void invoke(int level, Pointer clause, Pointer text, Pointer arg);
    }

    interface StoreCallback extends com.sun.jna.Callback {
        void invoke(Pointer info, Pointer arg);
    }

    static native int hf_diagnose(long client, FindingCallback found, long arg, long err);

    static native int hf_stores(StoreCallback found, long arg);

    /** libc, for the event thread. */
    static final class Posix {
        private Posix() {}

        static {
            Native.register(Posix.class, NativeLibrary.getInstance("c"));
        }

        static final int EPOLL_CLOEXEC = 02000000;
        static final int EPOLLIN = 1;
        static final int ADD = 1;
        static final int DEL = 2;

        /** An epoll_event is packed on x86-64 and nowhere else. */
        static final int DATA = Platform.isIntel() ? 4 : 8;

        static final int EVENT_SIZE = DATA + 8;

        static native int epoll_create1(int flags);

        static native int epoll_ctl(int epoll, int operation, int fd, long event);

        static native int epoll_wait(int epoll, long events, int max, int timeout_ms);

        static native int eventfd(int value, int flags);

        static native int eventfd_write(int fd, long value);

        static native int close(int fd);
    }
}
