/**
 * holdfast: a distributed lock for programs, kept in a store that you already run. Begin with {@link io.holdfast.Holdfast#open(String)}.
 */
package io.holdfast;
