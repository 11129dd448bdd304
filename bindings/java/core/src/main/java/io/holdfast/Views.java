package io.holdfast;

import com.sun.jna.Pointer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.function.IntFunction;

/** Reads what the library shows: hf_entry and hf_store_info, at the offsets of 64-bit machines. */
final class Views {
    private Views() {}

    static final int ENTRY_NAME_LEN = 8;
    static final int ENTRY_PLACE = 16;
    static final int ENTRY_POSITION = 24;
    static final int ENTRY_MODE = 32;
    static final int ENTRY_LIMIT = 36;
    static final int ENTRY_TICKET = 40;
    static final int ENTRY_GENERATION = 80;
    static final int ENTRY_TTL = 88;
    static final int ENTRY_LOCK_DELAY = 96;
    static final int ENTRY_AGE = 104;
    static final int ENTRY_REMAINING = 112;
    static final int ENTRY_CLAIMED = 120;
    static final int ENTRY_HOST = 128;
    static final int ENTRY_USER = 136;
    static final int ENTRY_PROGRAM = 144;
    static final int ENTRY_NOTE = 152;
    static final int ENTRY_PID = 160;

    static final int STORE_CAPABILITIES = 24;
    static final int STORE_OPTIONS = 32;
    static final int STORE_DDL = 40;
    static final int STORE_MISSING = 48;

    static Optional<String> text(Pointer text) {
        return text == null ? Optional.empty() : Optional.of(text.getString(0, "UTF-8"));
    }

    private static String textAt(Pointer pointer, int offset) {
        return text(pointer.getPointer(offset)).orElse("");
    }

    private static Optional<Duration> duration(long ms) {
        return ms < 0 ? Optional.empty() : Optional.of(Duration.ofMillis(ms));
    }

    /** All of a view, which it frees. */
    static List<Entry> entries(long view) {
        try {
            long count = C.hf_view_count(view);
            List<Entry> entries = new ArrayList<>((int) count);
            for (long i = 0; i < count; i++) {
                entries.add(entry(C.hf_view_entry(view, i)));
            }
            return entries;
        } finally {
            C.hf_view_free(view);
        }
    }

    private static Entry entry(Pointer at) {
        return new Entry(
                at.getPointer(0).getByteArray(0, (int) at.getLong(ENTRY_NAME_LEN)), Codes.Place.values()[at.getInt(ENTRY_PLACE)],
                at.getLong(ENTRY_POSITION), Codes.Mode.values()[at.getInt(ENTRY_MODE)], at.getInt(ENTRY_LIMIT),
                at.getString(ENTRY_TICKET), at.getLong(ENTRY_GENERATION), duration(at.getLong(ENTRY_TTL)),
                Duration.ofMillis(at.getLong(ENTRY_LOCK_DELAY)), Duration.ofMillis(at.getLong(ENTRY_AGE)),
                duration(at.getLong(ENTRY_REMAINING)), at.getInt(ENTRY_CLAIMED) != 0, textAt(at, ENTRY_HOST),
                textAt(at, ENTRY_USER), textAt(at, ENTRY_PROGRAM), textAt(at, ENTRY_NOTE), at.getLong(ENTRY_PID));
    }

    static Store store(Pointer at, IntFunction<Set<Codes.Capability>> capabilities) {
        return new Store(textAt(at, 0), textAt(at, 8), textAt(at, 16), capabilities.apply(at.getInt(STORE_CAPABILITIES)),
                textAt(at, STORE_OPTIONS), text(at.getPointer(STORE_DDL)), text(at.getPointer(STORE_MISSING)));
    }
}
