import { Code, Mode } from "./codes.js";
import { errorWith, invalid } from "./failure.js";

/** A name: text (as UTF-8), or any bytes; 1 to 512 of them. */
export type Name = string | Uint8Array;

/** How a lock is to be taken. All durations are in milliseconds; `Infinity` is allowed where it says so. */
export interface LockOptions {
  /** `"exclusive"` unless you say otherwise. */
  mode?: "exclusive" | "shared";
  /** Of shared holders: at most this many. 0: no limit. */
  limit?: number;
  /** The lease, renewed in the background: 100 to a week; 30,000 if you say nothing; `Infinity`: until released. */
  ttl?: number;
  /** How long to wait for others: 0: not at all; `Infinity`, if you say nothing. */
  timeout?: number;
  /** The lock stays closed this long if this process vanishes without releasing it. */
  lockDelay?: number;
  /** Renewals stop after this time, and the lock is lost. */
  maxHold?: number;
  /** Who asks: a second bid of one owner for a lock that it holds is a {@link DeadlockError}, not a wait. */
  owner?: number;
  /** No renewal in the background: you call {@link Held.renew}. */
  byHand?: boolean;
  /** Return only after the store has recorded that we know of the grant. */
  confirmed?: boolean;
  /** How long to keep trying while the store does not answer; `Infinity`: no limit. */
  patience?: number;
  /** Shown to people who look at the lock. */
  note?: string;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Text for a C string. */
export function text(value: unknown, what: string): string {
  if (typeof value !== "string") throw invalid(`${what} must be a string, not ${kindOf(value)}`);
  if (value.includes("\0")) throw invalid(`${what} must not contain a NUL`);
  return value;
}

/** The bytes of a name; what is wrong with their number the library says. */
export function nameBytes(name: unknown): Uint8Array {
  if (typeof name === "string") {
    if (/\p{Surrogate}/u.test(name)) throw invalid("a name must be well-formed Unicode, or bytes (Uint8Array)");
    return Buffer.from(encoder.encode(name));
  }
  if (name instanceof Uint8Array) return Buffer.from(name); // a copy: the caller may change its own
  throw invalid(`a name must be a string or a Uint8Array, not ${kindOf(name)}`);
}

/** The text of a name, or its bytes if they are none. */
export function nameOf(bytes: Uint8Array): Name {
  try {
    return decoder.decode(bytes);
  } catch {
    return Uint8Array.from(bytes);
  }
}

function kindOf(value: unknown): string {
  return value === null ? "null" : typeof value;
}

/** A whole number from `least` on; `endless` stands for Infinity, and undefined forbids it. */
export function whole(value: unknown, what: string, least = 0, endless?: number): number {
  if (value === Infinity && endless !== undefined) return endless;
  if (typeof value !== "number" || !Number.isSafeInteger(value) || value < least)
    throw invalid(`${what} must be a whole number of at least ${least}` + (endless === undefined ? "" : ", or Infinity") +
      `, not ${typeof value === "number" ? value : kindOf(value)}`);
  return value;
}

/** The numbers in the order of addon.c. */
export function optionNumbers(options: LockOptions): Float64Array {
  const { mode = "exclusive", limit = 0, ttl = 30_000, timeout = Infinity, lockDelay = 0, maxHold = 0, owner,
    byHand = false, confirmed = false, patience } = options;
  if (mode !== "exclusive" && mode !== "shared") throw invalid(`mode must be "exclusive" or "shared"`);
  if (limit > 0xffff_ffff) throw invalid("limit must be below 2^32");
  return Float64Array.of(
    mode === "shared" ? Mode.SHARED : Mode.EXCLUSIVE, whole(limit, "limit"), whole(ttl, "ttl", 1, -1),
    whole(timeout, "timeout", 0, -1), whole(lockDelay, "lockDelay"), whole(maxHold, "maxHold"),
    owner === undefined ? 0 : whole(owner, "owner", 1), byHand ? 1 : 0, confirmed ? 1 : 0,
    patience === undefined ? 0 : whole(patience, "patience", 1, -1));
}

/** What a wait ends with that its caller has aborted. */
export function cancelled(signal: AbortSignal) {
  return errorWith(Code.CANCELLED, undefined, { cause: signal.reason });
}
