package io.holdfast;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.Supplier;

/** Native calls pin the carrier of a virtual thread, so such a thread lets a platform thread make them. */
final class Threads {
    private Threads() {}

    private static final MethodHandle IS_VIRTUAL = isVirtualHandle();

    /** Runs the short calls of virtual threads; it has none while there are none. */
    private static final ExecutorService CARRIERS = Executors.newCachedThreadPool(work -> daemon(work, "holdfast-call"));

    private static MethodHandle isVirtualHandle() {
        try { // since Java 21
            return MethodHandles.publicLookup().findVirtual(Thread.class, "isVirtual", MethodType.methodType(boolean.class));
        } catch (ReflectiveOperationException e) {
            return null;
        }
    }

    static boolean isVirtual() {
        if (IS_VIRTUAL == null) {
            return false;
        }
        try {
            return (boolean) IS_VIRTUAL.invokeExact(Thread.currentThread());
        } catch (Throwable e) {
            throw new AssertionError(e);
        }
    }

    static Thread daemon(Runnable work, String name) {
        Thread thread = new Thread(null, work, name, 256 * 1024);
        thread.setDaemon(true);
        return thread;
    }

    /** A call that ends by the store's time-out. */
    static <T> T call(Supplier<T> call) {
        if (!isVirtual()) {
            return call.get();
        }
        try {
            return CompletableFuture.supplyAsync(call, CARRIERS).join();
        } catch (CompletionException e) {
            if (e.getCause() instanceof RuntimeException cause) {
                cause.setStackTrace(Thread.currentThread().getStackTrace());
                throw cause;
            }
            throw e;
        }
    }
}
