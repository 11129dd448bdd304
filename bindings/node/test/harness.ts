import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { HoldfastError, open, type Entry, type Held, type Holdfast, type Name } from "holdfast";

/** Thrown by a scenario that this store cannot do. */
export class Skipped extends Error {}

/** What a scenario works with: a name of its own, and clients that are closed at its end. */
export class Scene {
  readonly #clients: Holdfast[] = [];
  readonly name: string;

  constructor(readonly url: string, scenario: string) {
    this.name = `${scenario}/${randomBytes(6).toString("hex")}`;
  }

  async client(): Promise<Holdfast> {
    const client = await open(this.url, { program: "scenarios" });
    this.#clients.push(client);
    return client;
  }

  async end(): Promise<void> {
    await Promise.all(this.#clients.map((client) => client.close()));
  }
}

export function needs(locks: Holdfast, ...wanted: ("queue" | "shared" | "limit" | "lease" | "token" | "check" | "break" |
  "detach" | "never" | "process" | "push")[]): void {
  for (const one of wanted) if (!locks.capabilities.has(one)) throw new Skipped(`this store lacks '${one}'`);
}

/** The call is refused with this code, and says why. */
export async function refused(code: string, call: () => unknown): Promise<HoldfastError> {
  try {
    await call();
  } catch (error) {
    assert(error instanceof HoldfastError, String(error));
    assert.equal(error.code, code, error.message);
    assert.notEqual(error.message, "");
    return error;
  }
  throw new assert.AssertionError({ message: `this should have been refused with ${code}` });
}

/** Waits for what must come; the limit is only for what never comes. */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const limit = performance.now() + 60_000;
  while (!(await holds())) {
    if (performance.now() > limit) throw new Error(`this never came: ${what}`);
    await pause(5);
  }
}

export async function waiting(locks: Holdfast, name: Name): Promise<Entry[]> {
  return (await locks.inspect({ name })).filter((entry) => entry.place === "waiting");
}

export async function untilWaiting(locks: Holdfast, name: Name, count = 1): Promise<void> {
  await until(`${count} waiting`, async () => (await waiting(locks, name)).length === count);
}

/** Exactly this handle stands in the store. */
export async function holdsAlone(locks: Holdfast, held: Held): Promise<void> {
  const entries = await locks.inspect({ name: held.name });
  assert.deepEqual(entries.map((entry) => entry.ticket), [held.ticket]);
  assert.equal(entries[0]?.place, "inside");
}

export async function isFree(locks: Holdfast, name: Name): Promise<void> {
  assert.deepEqual(await locks.inspect({ name }), []);
}
