package io.holdfast;

import com.sun.jna.Memory;
import com.sun.jna.Pointer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ConcurrentLinkedQueue;

/**
 * Memory for the arguments and results of one call, used again and again. The numbers are offsets in the structures
 * of holdfast.h on 64-bit machines; a test compares them with a C compiler's.
 */
final class Scratch implements AutoCloseable {
    static final int ERROR_CODE = 0;
    static final int ERROR_RETRIABLE = 4;
    static final int ERROR_STORE_CODE = 8;
    static final int ERROR_MAY_HOLD = 16;
    static final int ERROR_TEXT = 24;
    static final int ERROR_TEXT_SIZE = 376;
    static final int ERROR_SIZE = 424;

    static final int OPTIONS_MODE = 8;
    static final int OPTIONS_LIMIT = 12;
    static final int OPTIONS_TTL = 16;
    static final int OPTIONS_WAIT = 24;
    static final int OPTIONS_LOCK_DELAY = 32;
    static final int OPTIONS_MAX_HOLD = 40;
    static final int OPTIONS_OWNER = 56;
    static final int OPTIONS_BY_HAND = 64;
    static final int OPTIONS_CONFIRMED = 68;
    static final int OPTIONS_NOTE = 72;
    static final int OPTIONS_PATIENCE = 120;
    static final int OPTIONS_SIZE = 128;

    static final int EVENT_KIND = 8;
    static final int EVENT_TAG = 16;
    static final int EVENT_LOCK = 24;
    static final int EVENT_ERR = 32;
    static final int EVENT_SIZE = 456;

    static final int CLIENT_OPTIONS_PROGRAM = 8;
    static final int CLIENT_OPTIONS_MODULES = 16;
    static final int CLIENT_OPTIONS_SIZE = 24;

    static final int QUERY_NAME = 8;
    static final int QUERY_PREFIX = 24;
    static final int QUERY_OLDER_THAN = 40;
    static final int QUERY_SIZE = 48;

    private static final int NAME_ROOM = 1024; // more than any name, so that one too long is refused by the library

    // Where each kind of argument lies.
    static final int ERR = 0;
    static final int OUT = 432;
    static final int STRUCT = 512;
    static final int NAME = 1024;
    static final int BUFFER = NAME + NAME_ROOM;
    private static final int SIZE = BUFFER + (int) Codes.SEQUENCER_MAX;

    private static final ConcurrentLinkedQueue<Scratch> FREE = new ConcurrentLinkedQueue<>();

    private final Memory memory = new Memory(SIZE);
    private final long at = Pointer.nativeValue(memory);
    final ByteBuffer bytes = memory.getByteBuffer(0, SIZE).order(ByteOrder.nativeOrder());

    private Scratch() {}

    static Scratch take() {
        Scratch free = FREE.poll();
        return free != null ? free : new Scratch();
    }

    @Override
    public void close() {
        FREE.offer(this);
    }

    long address(int offset) {
        return at + offset;
    }

    /** Puts a structure with its size, and zeros in all other fields. */
    void structure(int size) {
        for (int i = 0; i < size; i += 8) {
            bytes.putLong(STRUCT + i, 0);
        }
        bytes.putLong(STRUCT, size);
    }

    /** Puts a name and returns how long it is for the library. */
    long name(byte[] name) {
        int length = Math.min(name.length, NAME_ROOM);
        bytes.put(NAME, name, 0, length);
        return length;
    }

    long out() {
        return bytes.getLong(OUT);
    }

    /** A string of at most that size in this memory. */
    String string(int offset, int size) {
        int length = 0;
        while (length < size && bytes.get(offset + length) != 0) {
            length++;
        }
        byte[] copy = new byte[length];
        bytes.get(offset, copy);
        return new String(copy, StandardCharsets.UTF_8);
    }

    /** The exception for what the library has written at an hf_error. */
    HoldfastException failure(int code, int err) {
        return Codes.exception(code, new HoldfastException.Details(
                string(err + ERROR_TEXT, ERROR_TEXT_SIZE), bytes.getInt(err + ERROR_RETRIABLE) != 0,
                bytes.getLong(err + ERROR_STORE_CODE), bytes.getLong(err + ERROR_MAY_HOLD)));
    }

    /** Throws unless the call went well. */
    void must(int code) {
        if (code != 0) {
            throw failure(code, ERR);
        }
    }

    /** A string for C; what is null becomes a null pointer. It lives as long as the returned object. */
    static Memory text(String text, String what) {
        if (text == null) {
            return null;
        }
        if (text.indexOf('\0') >= 0) {
            throw HoldfastException.of(Codes.Code.INVALID, what + " must not contain a NUL");
        }
        byte[] encoded = text.getBytes(StandardCharsets.UTF_8);
        Memory memory = new Memory(encoded.length + 1L);
        memory.write(0, encoded, 0, encoded.length);
        memory.setByte(encoded.length, (byte) 0);
        return memory;
    }

    static long address(Memory text) {
        return text == null ? 0 : Pointer.nativeValue(text);
    }
}
