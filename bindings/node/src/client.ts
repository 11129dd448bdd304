import { basename } from "node:path";

import { forgetAbort, onAbort } from "./abort.js";
import { Capability, capabilityNames, Code, Place } from "./codes.js";
import { Expected, listeners, nextTag } from "./events.js";
import { errorOf, errorWith, fromMs, invalid, settled } from "./failure.js";
import { Held, tellWeakly } from "./held.js";
import { native, type NativeClient, type NativeHandle } from "./native.js";
import { cancelled, type LockOptions, type Name, nameBytes, nameOf, optionNumbers, text, whole } from "./options.js";

/** Of the library that is in use. */
export const version: string = native.version;

/** See {@link open}. */
export interface OpenOptions {
  /** Shown to people who look at a lock; the script's name if you say nothing. */
  program?: string;
}

/** What can differ from one acquire to the next. */
export interface AcquireOptions extends LockOptions {
  /** Ends the wait: nothing is left in the store, and the promise is rejected with a {@link CancelledError}. */
  signal?: AbortSignal;
  /** A renewal is overdue; the lock is still ours. */
  onAtRisk?: (held: Held) => void;
}

/** Which holders and waiters to find; all, if you say nothing. */
export interface Query {
  /** Exactly this lock. */
  name?: Name;
  /** Locks whose names begin like this. */
  prefix?: Name;
  /** Only holders of at least this age in milliseconds. */
  olderThan?: number;
}

/** One holder or waiter. Durations are in milliseconds. */
export interface Entry {
  name: Name;
  place: "inside" | "lingering" | "waiting";
  /** In the queue, from 1; 0 for holders. */
  position: number;
  mode: "exclusive" | "shared";
  limit: number;
  ticket: string;
  /** The fencing token; 0 while waiting. */
  token: bigint;
  /** `Infinity`: until released or broken. */
  ttl: number;
  lockDelay: number;
  /** How long it has held or waited. */
  age: number;
  /** Of the lease or lock-delay, or until a waiter must report again. */
  remaining: number;
  /** The holder knows that it holds. */
  claimed: boolean;
  host: string;
  user: string;
  program: string;
  note: string;
  pid: number;
}

/** What {@link Holdfast.diagnose} found. */
export interface Finding {
  level: "fine" | "note" | "warning" | "problem";
  /** A clause of the contract, for example `C3`. */
  clause: string | undefined;
  text: string;
}

/** A kind of store that this installation knows. */
export interface Store {
  name: string;
  schemes: string;
  summary: string;
  capabilities: ReadonlySet<CapabilityName>;
  /** Its URL options, one a line. */
  options: string;
  /** What {@link Holdfast.setup} would create. */
  ddl: string | undefined;
  /** Why it cannot be used; undefined if it can. */
  missing: string | undefined;
}

/** For example `"token"`: fencing tokens that only rise. */
export type CapabilityName = (typeof capabilityNames)[number];

const places = ["inside", "lingering", "waiting"] as const satisfies readonly Lowercase<keyof typeof Place>[];
const levels = ["fine", "note", "warning", "problem"] as const;

const open_clients = new Set<Holdfast>(); // until they are closed: their locks are given back at exit
let watchesExit = false;

function capabilitySet(bits: number): ReadonlySet<CapabilityName> {
  const all = Object.values(Capability);
  return new Set(capabilityNames.filter((_, i) => (bits & (all[i] ?? 0)) !== 0));
}

/**
 * Opens the store that a URL names: `memory://name`, `sqlite:/path/locks.db`, `redis://host:6379/0`, … Without one it
 * takes `HOLDFAST_URL`, or else the default store. You can open a network store before it can be reached.
 */
export async function open(url?: string, options: OpenOptions = {}): Promise<Holdfast> {
  const program = text(options.program ?? basename(process.argv[1] ?? "node"), "program");
  const place = url === undefined ? undefined : Buffer.from(text(url, "a URL"));
  const client = await settled<NativeClient | undefined>(
    native.job("open", undefined, undefined, place, program));
  if (client === undefined) throw errorWith(Code.NO_MEMORY);
  if (!watchesExit) {
    watchesExit = true;
    process.on("exit", () => open_clients.forEach((one) => one.closeNow()));
  }
  return new Holdfast(client);
}

/** The stores that this installation knows. */
export async function stores(): Promise<Store[]> {
  const rows = await settled<[number, ...string[]][]>(native.job("stores"));
  return rows.map(([bits, name = "", schemes = "", summary = "", options = "", ddl, missing]) =>
    ({ name, schemes, summary, capabilities: capabilitySet(bits), options, ddl, missing }));
}

/** A connection to one store. It stays open, and its locks stay held, until {@link Holdfast.close} or the end of the program. */
export class Holdfast {
  /** What the store can do. */
  readonly capabilities: ReadonlySet<CapabilityName>;
  readonly #native: NativeClient;
  readonly #expected = new Expected();
  readonly #held = new Map<number, WeakRef<Held>>();
  #closed: Promise<void> | undefined;

  /** @internal */
  constructor(client: NativeClient) {
    this.#native = client;
    this.capabilities = capabilitySet(native.capabilities(client));
    open_clients.add(this);
  }

  /** Describes a lock; nothing is sent. Each acquire makes a {@link Held} of its own. */
  lock(name: Name, options: LockOptions = {}): Lock {
    return new Lock(this, name, options);
  }

  /** Takes a lock. {@link BusyError} with a timeout of 0, {@link TimeoutError} with another; see {@link HoldfastError}. */
  async acquire(name: Name, options: AcquireOptions = {}): Promise<Held> {
    return await this.lock(name, options).acquire(options);
  }

  /** Takes a lock, calls the function and gives the lock back. If it was lost meanwhile: a {@link StaleError}. */
  using<T>(name: Name, body: (held: Held) => T | PromiseLike<T>): Promise<T>;
  using<T>(name: Name, options: AcquireOptions, body: (held: Held) => T | PromiseLike<T>): Promise<T>;
  async using<T>(
    name: Name, options: AcquireOptions | ((held: Held) => T | PromiseLike<T>),
    body?: (held: Held) => T | PromiseLike<T>,
  ): Promise<T> {
    if (typeof options === "function") return await this.lock(name).using(options);
    return await this.lock(name, options).using(body as (held: Held) => T | PromiseLike<T>, options);
  }

  /** Takes over a lock by its ticket, after {@link Held.detach}. Adopt only what its holder has detached, or a dead one's. */
  async adopt(
    name: Name, ticket: string, options: Pick<LockOptions, "byHand" | "maxHold" | "owner"> = {},
  ): Promise<Held> {
    const bytes = nameBytes(name);
    const numbers = optionNumbers({ ...options, owner: options.owner ?? nextOwner() });
    const tag = nextTag();
    const handle = await this.#job<NativeHandle | undefined>("adopt", bytes, text(ticket, "a ticket"), tag, numbers);
    if (handle === undefined) throw errorWith(Code.NO_MEMORY);
    return this.#hold(handle, bytes, tag);
  }

  /** Asks the store whether the grant behind this sequencer is live now. {@link StaleError}: it is not. */
  async check(sequencer: string): Promise<void> {
    await this.#job("check", undefined, text(sequencer, "a sequencer"));
  }

  /** Finds holders and waiters: by name, holders first, waiters in the order of the queue. */
  async inspect(query: Query = {}): Promise<Entry[]> {
    const { name, prefix, olderThan = 0 } = query;
    if (name !== undefined && prefix !== undefined) throw invalid("ask for a name or for a prefix, not for both");
    const by = name !== undefined ? "name" : prefix !== undefined ? "prefix" : undefined;
    const bytes = by === undefined ? undefined : nameBytes(name ?? prefix);
    return (await this.#job<EntryRow[]>("inspect", bytes, by, whole(olderThan, "olderThan"))).map(entryOf);
  }

  /** Takes a lock away from a ticket. It stays closed until the lease ends; `now` skips that wait. */
  async break(name: Name, ticket: string, options: { now?: boolean } = {}): Promise<void> {
    await this.#job("break", nameBytes(name), text(ticket, "a ticket"), options.now ? 1 : 0);
  }

  /** Creates what the store needs (tables, directories), and leaves alone what exists. */
  async setup(): Promise<void> {
    await this.#job("setup");
  }

  /** Removes the records of free locks that nobody has touched for so long; how many it removed. */
  async purge(retain = 0): Promise<number> {
    return await this.#job<number>("purge", undefined, undefined, whole(retain, "retain"));
  }

  /** Examines a live store, as `holdfast doctor` does. */
  async diagnose(): Promise<Finding[]> {
    const rows = await this.#job<[number, string | undefined, string][]>("diagnose");
    return rows.map(([level, clause, text]) => ({ level: levels[level] ?? "problem", clause, text }));
  }

  /** Gives back every lock that is still held and ends every wait with a {@link ClosedError}. May be called again. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  /** The same as {@link Holdfast.close}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    await this.#expected.releases();
    await settled(native.job("close", this.#native));
    open_clients.delete(this);
    this.#expected.end();
    for (const held of [...this.#held.values()]) held.deref()?.endWithClient();
  }

  /** @internal At the exit of the process, where nothing can be awaited. */
  closeNow(): void {
    native.closeNow(this.#native);
  }

  /** @internal */
  start(bytes: Uint8Array, note: string | undefined, numbers: Float64Array, options: AcquireOptions): Promise<Held> {
    const { signal, onAtRisk } = options;
    return new Promise((resolve, reject) => {
      if (this.#closed !== undefined) throw errorWith(Code.CLOSED);
      if (signal?.aborted) throw cancelled(signal);
      const tag = nextTag();
      const stop = () => native.acquireStop(this.#native, tag);
      const over = () => {
        listeners.delete(tag);
        this.#expected.delete(tag);
        if (signal) forgetAbort(signal, stop);
      };
      const refuse = (error: Error) => {
        over();
        reject(error);
      };
      listeners.set(tag, (_kind, handle, failure) => {
        over();
        if (handle !== undefined && !signal?.aborted) {
          resolve(this.#hold(handle, bytes, tag, onAtRisk));
        } else if (handle !== undefined) { // the abort came too late to stop it
          this.#expected.release(handle).then(() => reject(cancelled(signal!)), reject);
        } else if (failure === undefined) {
          reject(errorWith(Code.NO_MEMORY));
        } else {
          reject(failure.code === Code.CANCELLED && signal?.aborted ? cancelled(signal) : errorOf(failure));
        }
      });
      this.#expected.add(tag, refuse);
      if (signal) onAbort(signal, stop);
      const failure = native.acquireStart(this.#native, bytes, note, numbers, tag);
      if (failure !== undefined) refuse(errorOf(failure));
    });
  }

  #hold(handle: NativeHandle, name: Uint8Array, tag: number, onAtRisk?: (held: Held) => void): Held {
    const forget = () => {
      listeners.delete(tag);
      this.#held.delete(tag);
    };
    const held = new Held({ native: handle, name, expected: this.#expected, forget }, onAtRisk);
    this.#held.set(tag, tellWeakly(held, tag));
    return held;
  }

  #job<T>(
    kind: Parameters<typeof native.job>[0], name?: Uint8Array, text?: string, number?: number, options?: Float64Array,
  ): Promise<T> {
    if (this.#closed !== undefined) throw errorWith(Code.CLOSED);
    return settled<T>(native.job(kind, this.#native, undefined, name, text, number, options));
  }
}

/** A description of a lock, made by {@link Holdfast.lock}. It holds nothing and can be used at the same time as often as you like. */
export class Lock {
  readonly #client: Holdfast;
  readonly #bytes: Uint8Array;
  readonly #options: LockOptions;
  readonly #numbers: Float64Array;
  readonly #note: string | undefined;

  /** @internal */
  constructor(client: Holdfast, name: Name, options: LockOptions) {
    this.#client = client;
    this.#bytes = nameBytes(name);
    this.#options = options;
    this.#numbers = optionNumbers(options);
    this.#note = options.note === undefined ? undefined : text(options.note, "a note");
  }

  /** As it was given; bytes if they are no UTF-8. */
  get name(): Name {
    return nameOf(this.#bytes);
  }

  /** Takes it; what is said here counts more than what the lock was described with. */
  async acquire(options: AcquireOptions = this.#options): Promise<Held> {
    const numbers = options === this.#options ? this.#numbers : optionNumbers(merged(this.#options, options));
    const note = options.note === undefined ? this.#note : text(options.note, "a note");
    return await this.#client.start(this.#bytes, note, numbers, options);
  }

  /** Takes it, calls the function and gives it back. If it was lost meanwhile: a {@link StaleError}. */
  async using<T>(body: (held: Held) => T | PromiseLike<T>, options?: AcquireOptions): Promise<T> {
    const held = await this.acquire(options);
    let result: T;
    try {
      result = await body(held);
    } catch (error) {
      await held[Symbol.asyncDispose]().catch(() => {}); // what the function threw says more
      throw error;
    }
    await held[Symbol.asyncDispose]();
    return result;
  }
}

/** What is undefined says nothing. */
function merged(described: LockOptions, said: LockOptions): LockOptions {
  return { ...described, ...Object.fromEntries(Object.entries(said).filter(([, value]) => value !== undefined)) };
}

let lastOwner = 2 ** 52; // far from those that people choose
const nextOwner = () => ++lastOwner;

/** The order of jobs.c. */
type EntryRow = [
  name: Uint8Array, token: bigint, place: number, position: number, mode: number, limit: number, ttl: number,
  lockDelay: number, age: number, remaining: number, claimed: number, pid: number, ticket: string, host: string,
  user: string, program: string, note: string,
];

function entryOf(row: EntryRow): Entry {
  const [name, token, place, position, mode, limit, ttl, lockDelay, age, remaining, claimed, pid, ticket, host, user,
    program, note] = row;
  return {
    name: nameOf(name), place: places[place] ?? "waiting", position, mode: mode === 1 ? "shared" : "exclusive", limit,
    ticket, token, ttl: fromMs(ttl), lockDelay, age, remaining: fromMs(remaining), claimed: claimed !== 0, host, user,
    program, note, pid,
  };
}
