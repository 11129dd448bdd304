/**
 * holdfast: a distributed lock for programs, kept in a store that you already run.
 *
 * Open a {@link Holdfast} by {@link open}, and take a lock by {@link Holdfast.acquire} or {@link Holdfast.using}.
 * All durations are in milliseconds.
 *
 * @packageDocumentation
 */
export { open, stores, Holdfast, Lock } from "./client.js";
export type { AcquireOptions, CapabilityName, Entry, Finding, OpenOptions, Query, Store } from "./client.js";
export { Held } from "./held.js";
export type { CauseName, HeldState } from "./held.js";
export { Gate } from "./gate.js";
export type { Levels } from "./gate.js";
export type { LockOptions, Name } from "./options.js";
export { HoldfastError } from "./error.js";
export type { FailureDetails } from "./error.js";
export * from "./codes.js";
export { version } from "./client.js";
