package io.holdfast;

import java.time.Duration;
import java.util.Optional;

/** What a call ended with. There is one subclass for each code in {@link Codes}, for example {@link Codes.BusyException}. */
public class HoldfastException extends RuntimeException {
    private static final long serialVersionUID = 1;

    /** What the library says beside the code. */
    static final class Details {
        final String text;
        final boolean retriable;
        final long storeCode;
        final long mayHoldMs;

        Details(String text, boolean retriable, long storeCode, long mayHoldMs) {
            this.text = text;
            this.retriable = retriable;
            this.storeCode = storeCode;
            this.mayHoldMs = mayHoldMs;
        }
    }

    /** The code; null if this version knows none for what the library returned. */
    private final Codes.Code code;

    /** See {@link #retriable()}. */
    private final boolean retriable;

    /** See {@link #storeCode()}. */
    private final long storeCode;

    /** See {@link #mayHold()}; negative: for ever. */
    private final long mayHoldMs;

    HoldfastException(Codes.Code code, Details details) {
        super(details.text);
        this.code = code;
        this.retriable = details.retriable;
        this.storeCode = details.storeCode;
        this.mayHoldMs = details.mayHoldMs;
    }

    /** What is found on this side. */
    static HoldfastException of(Codes.Code code, String text) {
        return Codes.exception(code.value, new Details(text, false, 0, 0));
    }

    static HoldfastException of(Codes.Code code) {
        return of(code, code.text);
    }

    /**
     * The code.
     *
     * @return null if this version knows none for what the library returned
     */
    public Codes.Code code() {
        return code;
    }

    /**
     * Whether the same call may succeed later.
     *
     * @return true if it may
     */
    public boolean retriable() {
        return retriable;
    }

    /**
     * The store's own number (an SQLite result code, an errno, …).
     *
     * @return 0 if there is none
     */
    public long storeCode() {
        return storeCode;
    }

    /**
     * After {@link Codes.UnknownException}: how long the store may hold the lock for us.
     *
     * @return empty: for ever
     */
    public Optional<Duration> mayHold() {
        return mayHoldMs < 0 ? Optional.empty() : Optional.of(Duration.ofMillis(mayHoldMs));
    }
}
