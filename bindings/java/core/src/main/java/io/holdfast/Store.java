package io.holdfast;

import java.util.Optional;
import java.util.Set;

/**
 * A kind of store that this installation knows.
 *
 * @param name         for example sqlite
 * @param schemes      of its URLs
 * @param summary      one line
 * @param capabilities what it can do
 * @param options      of its URLs, one a line
 * @param ddl          what {@link Holdfast#setup} would create
 * @param missing      why it cannot be used; empty: it can
 */
public record Store(String name, String schemes, String summary, Set<Codes.Capability> capabilities, String options,
        Optional<String> ddl, Optional<String> missing) {}
