package io.holdfast;

/**
 * What {@link Holdfast#diagnose} found.
 *
 * @param level  how grave it is
 * @param clause of the contract, for example C3; empty if it is about none
 * @param text   one sentence
 */
public record Finding(Level level, String clause, String text) {
    /** How grave a finding is. */
    public enum Level {
        /** As it should be. */
        FINE,
        /** Good to know. */
        NOTE,
        /** May become a problem. */
        WARNING,
        /** Has to be mended. */
        PROBLEM
    }
}
