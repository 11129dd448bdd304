package io.holdfast;

import com.sun.jna.Memory;
import java.lang.ref.Reference;
import java.nio.charset.StandardCharsets;
import java.util.Optional;

/**
 * Kept with a resource: lets the sequencer of a grant pass if it has seen no newer one, without asking the store. Save its levels
 * with the resource's data, and restore them before the first request.
 */
public final class Gate {
    private final long gate;

    /** One that has seen nothing yet. */
    public Gate() {
        try (Scratch scratch = Scratch.take()) {
            if (C.hf_gate_new(scratch.address(Scratch.OUT)) != 0) {
                throw HoldfastException.of(Codes.Code.NO_MEMORY);
            }
            gate = scratch.out();
        }
        long address = gate;
        Held.CLEANER.register(this, () -> C.hf_gate_free(address));
    }

    /**
     * The newest tokens that a gate has seen of a name.
     *
     * @param exclusive of exclusive grants
     * @param highest   of all grants
     */
    public record Levels(long exclusive, long highest) {}

    /**
     * Lets a grant pass.
     *
     * @param sequencer of the grant
     * @throws Codes.StaleException       a newer one has passed
     * @throws Codes.UnsupportedException grants with a limit have no order: use {@link Holdfast#check}
     */
    public void pass(String sequencer) {
        Memory text = Scratch.text(java.util.Objects.requireNonNull(sequencer, "sequencer"), "a sequencer");
        try (Scratch scratch = Scratch.take()) {
            scratch.must(C.hf_gate_pass(gate, Scratch.address(text), scratch.address(Scratch.ERR)));
        }
        Reference.reachabilityFence(text);
        Reference.reachabilityFence(this);
    }

    /**
     * What it has seen of a name.
     *
     * @param name of a lock
     * @return empty: nothing yet
     */
    public Optional<Levels> levels(String name) {
        return levels(name.getBytes(StandardCharsets.UTF_8));
    }

    /**
     * What it has seen of a name.
     *
     * @param name of a lock, any bytes
     * @return empty: nothing yet
     */
    public Optional<Levels> levels(byte[] name) {
        try (Scratch scratch = Scratch.take()) {
            int code = C.hf_gate_levels(gate, scratch.address(Scratch.NAME), scratch.name(name), scratch.address(Scratch.OUT),
                    scratch.address(Scratch.OUT + 8));
            Reference.reachabilityFence(this);
            return code != 0 ? Optional.empty()
                    : Optional.of(new Levels(scratch.out(), scratch.bytes.getLong(Scratch.OUT + 8)));
        }
    }

    /**
     * Raises the levels of a name to saved ones; it never lowers them.
     *
     * @param name   of a lock
     * @param levels as they were saved
     */
    public void restore(String name, Levels levels) {
        restore(name.getBytes(StandardCharsets.UTF_8), levels);
    }

    /**
     * Raises the levels of a name to saved ones; it never lowers them.
     *
     * @param name   of a lock, any bytes
     * @param levels as they were saved
     */
    public void restore(byte[] name, Levels levels) {
        try (Scratch scratch = Scratch.take()) {
            int code = C.hf_gate_restore(
                    gate, scratch.address(Scratch.NAME), scratch.name(name), levels.exclusive(), levels.highest());
            Reference.reachabilityFence(this);
            if (code != 0) {
                throw HoldfastException.of(Codes.Code.of(code));
            }
        }
    }
}
