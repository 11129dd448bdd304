import { Code, EventKind } from "./codes.js";
import { errorOf, errorWith } from "./failure.js";
import { native, type NativeFailure, type NativeHandle } from "./native.js";

export type Listener = (
  kind: number, handle: NativeHandle | undefined, failure: NativeFailure | undefined, cause: number,
) => void;

/** Who is told of an event, by its tag. Tags are unique in this environment. */
export const listeners = new Map<number, Listener>();

let lastTag = 0;
export const nextTag = () => ++lastTag;

native.onEvent((kind, tag, handle, failure, cause) => listeners.get(tag)?.(kind, handle, failure, cause));

/** Promises that an event is to settle; a client that is closed rejects those of its own that are left. */
export class Expected {
  readonly #rejects = new Map<number, (error: Error) => void>();
  readonly #releases = new Set<Promise<unknown>>();

  add(tag: number, reject: (error: Error) => void): void {
    this.#rejects.set(tag, reject);
  }

  delete(tag: number): void {
    this.#rejects.delete(tag);
  }

  /** Gives a lock back and waits until the store has answered. */
  release(handle: NativeHandle): Promise<void> {
    const promise = new Promise<void>((resolve, reject) => {
      const tag = nextTag();
      listeners.set(tag, (kind, _handle, failure) => {
        if (kind !== EventKind.RELEASED) return;
        listeners.delete(tag);
        this.delete(tag);
        if (failure === undefined) resolve();
        else reject(errorOf(failure));
      });
      this.add(tag, reject);
      const failure = native.releaseStart(handle, tag);
      if (failure === undefined) return;
      listeners.delete(tag);
      this.delete(tag);
      reject(errorOf(failure));
    });
    const over = promise.catch(() => {}).finally(() => this.#releases.delete(over));
    this.#releases.add(over);
    return promise;
  }

  /** All releases that are under way have their answer. */
  async releases(): Promise<void> {
    await Promise.all(this.#releases);
  }

  /** The client is closed: no event comes any more. */
  end(): void {
    for (const [tag, reject] of this.#rejects) {
      listeners.delete(tag);
      reject(errorWith(Code.CLOSED));
    }
    this.#rejects.clear();
  }
}
