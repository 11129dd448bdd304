import { Cause, causeTexts, Code, EventKind, State } from "./codes.js";
import type { HoldfastError } from "./error.js";
import { type Expected, listeners } from "./events.js";
import { errorOf, errorWith, fromMs, must, settled } from "./failure.js";
import { native, type NativeHandle } from "./native.js";
import { nameOf, type Name } from "./options.js";

/** Whether a lock is held: `"at-risk"`: still, but a renewal is overdue; `"ended"`: given back, or its client is closed. */
export type HeldState = "held" | "at-risk" | "lost" | "ended";

/** For example `"EXPIRED"`: the lease could not be renewed in time. See {@link Cause}. */
export type CauseName = keyof typeof Cause;

/** What a handle leaves behind that nobody released. It must not lead to the handle. */
interface Remains {
  native: NativeHandle;
  name: Uint8Array;
  expected: Expected;
  forget: () => void;
  /** The loop lives for the sake of `lost`. */
  watched?: boolean;
}

function watch(remains: Remains, watched: boolean): void {
  if ((remains.watched ?? false) === watched) return;
  remains.watched = watched;
  native.keep(remains.native, watched ? 1 : -1);
}

const dropped = new FinalizationRegistry<Remains>((remains) => {
  const { native, name, expected, forget } = remains;
  watch(remains, false);
  forget();
  expected.release(native).catch(() => {}); // its client keeps trying, or has given it back
  process.emitWarning(
    `the lock '${Buffer.from(name).toString()}' was dropped without release(); it is released now`,
    { type: "HoldfastWarning", code: "HF_DROPPED" });
});

/** The error for a loss; the text says why. */
function lossOf(cause: number): HoldfastError {
  return errorWith(Code.LOST, `the lock was lost: ${causeTexts[cause] ?? "cause " + cause}`);
}

const alreadyBack = "this handle has already given its lock back";

const holders = new WeakMap<AbortSignal, Held>(); // who watches a lock keeps it

/** A lock that was obtained. Give it back by {@link Held.release}, or let `await using` do so. */
export class Held {
  /** @internal */
  readonly bytes: Uint8Array;
  readonly #remains: Remains;
  readonly #native: NativeHandle;
  readonly #onAtRisk: ((held: Held) => void) | undefined;
  #ended: number | undefined; // the code that calls are refused with
  #busy: Promise<unknown> = Promise.resolve(); // the last call that uses the handle on another thread
  #told: number = Cause.NONE;
  #lost: AbortController | undefined;

  /** @internal */
  constructor(remains: Remains, onAtRisk?: (held: Held) => void) {
    this.#remains = remains;
    this.#native = remains.native;
    this.#onAtRisk = onAtRisk;
    this.bytes = remains.name;
    dropped.register(this, remains, this);
  }

  /** As it was given; bytes if they are no UTF-8. */
  get name(): Name {
    return nameOf(this.bytes);
  }

  /** Identifies this grant, for people and for {@link Holdfast.adopt}. */
  get ticket(): string {
    this.#mustLive();
    return must(native.ticket(this.#native));
  }

  /** The fencing token: larger than that of every earlier grant of this name. Pass it to what you write to. */
  get token(): bigint {
    this.#mustHold();
    return must(native.token(this.#native));
  }

  /** A proof to show to a resource, for {@link Gate.pass} and {@link Holdfast.check}. */
  get sequencer(): string {
    this.#mustHold();
    return must(native.sequencer(this.#native));
  }

  /** Whether it is still held, by the local clock. */
  get state(): HeldState {
    const look = this.#ended === undefined ? native.look(this.#native) : undefined;
    if (look === undefined) return "ended";
    return look[0] === State.LOST ? "lost" : look[0] === State.AT_RISK ? "at-risk" : "held";
  }

  /** Milliseconds that it stays ours without another renewal; 0 if it is lost or ended; `Infinity` without a lease. */
  get remaining(): number {
    const look = this.#ended === undefined ? native.look(this.#native) : undefined;
    return look === undefined ? 0 : fromMs(look[2]);
  }

  /** Why it was lost; `"NONE"` if it was not. */
  get cause(): CauseName {
    const cause = this.#causeNow();
    return (Object.keys(Cause) as CauseName[]).find((name) => Cause[name] === cause) ?? "NONE";
  }

  /** Why the last renewal failed, if it did: the reason behind `"at-risk"`. */
  get lastError(): HoldfastError | undefined {
    const failure = this.#ended === undefined ? native.reason(this.#native) : undefined;
    return failure === undefined ? undefined : errorOf(failure);
  }

  /**
   * Is aborted when the lock is lost; the reason is a {@link LostError}. Give it to what you do under the lock. The
   * program does not end by itself between this question and the release.
   */
  get lost(): AbortSignal {
    if (this.#lost === undefined) {
      this.#lost = new AbortController();
      holders.set(this.#lost.signal, this);
      const cause = this.#causeNow();
      if (cause !== Cause.NONE) this.#lost.abort(lossOf(cause));
      else watch(this.#remains, true);
    }
    return this.#lost.signal;
  }

  /** Gives the lock back. {@link StaleError}: it was no longer ours. */
  release(): Promise<void> {
    return this.#alone(async () => {
      this.#mustLive();
      this.#end(Code.STALE);
      await this.#remains.expected.release(this.#native);
    });
  }

  /** Renews the lease now. You need it only with `byHand`. */
  renew(): Promise<void> {
    return this.#alone(async () => {
      this.#mustHold();
      await settled(native.job("renew", undefined, this.#native));
    });
  }

  /** Ends this handle and leaves the lock in the store, where {@link Holdfast.adopt} finds it by the returned ticket. */
  detach(): Promise<string> {
    return this.#alone(async () => {
      this.#mustHold();
      const ticket = this.ticket;
      await settled(native.job("detach", undefined, this.#native));
      this.#end(Code.STALE);
      return ticket;
    });
  }

  /** Releases it, if that has not been done. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#busy;
    if (this.#ended === undefined) await this.release();
  }

  /** @internal */
  tellLoss(cause: number): void {
    this.#told = cause;
    watch(this.#remains, false);
    this.#lost?.abort(lossOf(cause));
  }

  /** @internal */
  tellAtRisk(): void {
    this.#onAtRisk?.(this);
  }

  /** @internal The client is closed: the lock was given back. */
  endWithClient(): void {
    if (this.#ended !== undefined) return;
    this.#end(Code.CLOSED);
    this.tellLoss(Cause.CLOSED);
  }

  /** One call after the other: a handle must not be freed under another call. */
  #alone<T>(call: () => Promise<T>): Promise<T> {
    const mine = this.#busy.then(call);
    this.#busy = mine.catch(() => {});
    return mine;
  }

  #end(code: number): void {
    this.#ended = code;
    dropped.unregister(this);
    watch(this.#remains, false);
    this.#remains.forget();
  }

  #causeNow(): number {
    const look = this.#ended === undefined ? native.look(this.#native) : undefined;
    return look === undefined ? this.#told : look[1];
  }

  #mustLive(): void {
    if (this.#ended !== undefined)
      throw errorWith(this.#ended, this.#ended === Code.STALE ? alreadyBack : undefined);
  }

  #mustHold(): void {
    this.#mustLive();
    const look = native.look(this.#native);
    if (look === undefined || look[0] !== State.LOST) return;
    throw look[1] === Cause.CLOSED ? errorWith(Code.CLOSED) : lossOf(look[1]);
  }
}

/** Tells a handle of the loss of its lock, without keeping it. */
export function tellWeakly(held: Held, tag: number): WeakRef<Held> {
  const weak = new WeakRef(held);
  listeners.set(tag, (kind, _handle, _failure, cause) => {
    if (kind === EventKind.LOST) weak.deref()?.tellLoss(cause);
    else if (kind === EventKind.AT_RISK) weak.deref()?.tellAtRisk();
  });
  return weak;
}
