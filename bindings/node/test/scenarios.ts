// The twenty of ../../scenarios.md, in its order.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import * as holdfast from "holdfast";
import { Gate, type Held, HoldfastError } from "holdfast";
import { holdsAlone, isFree, needs, refused, type Scene, Skipped, until, untilWaiting } from "./harness.js";

type Scenario = (scene: Scene) => Promise<void>;

/** Runs child.js and gives the lines that it says. */
export function child(role: string, url: string, name: string) {
  const process_ = spawn(process.execPath, [join(__dirname, "child.js"), role, url, name], {
    stdio: ["ignore", "pipe", role === "throw" ? "ignore" : "inherit"],
  });
  const lines = createInterface({ input: process_.stdout })[Symbol.asyncIterator]();
  const ended = once(process_, "close");
  return { line: async () => (await lines.next()).value as string, ended: async () => (await ended)[0] as number };
}

const exclusion_between_processes: Scenario = async (scene) => {
  const locks = await scene.client();
  needs(locks, "process");
  const held = await locks.acquire(scene.name);
  const other = child("exclusion", scene.url, scene.name);
  assert.equal(await other.line(), "HF_BUSY");
  await untilWaiting(locks, scene.name);
  await held.release();
  assert.equal(await other.line(), "held");
  assert.equal(await other.ended(), 0);
};

const busy_without_waiting: Scenario = async (scene) => {
  const [a, b] = [await scene.client(), await scene.client()];
  const held = await a.acquire(scene.name);
  await refused("HF_BUSY", () => b.acquire(scene.name, { timeout: 0 }));
  await holdsAlone(b, held);
};

const timeout_leaves_nothing: Scenario = async (scene) => {
  const [a, b] = [await scene.client(), await scene.client()];
  const held = await a.acquire(scene.name);
  await refused("HF_TIMEOUT", () => b.acquire(scene.name, { timeout: 200 }));
  await holdsAlone(b, held);
  await held.release();
  await b.acquire(scene.name, { timeout: 0 });
};

const cancelled_wait_leaves_nothing: Scenario = async (scene) => {
  const [a, b, c] = [await scene.client(), await scene.client(), await scene.client()];
  const held = await a.acquire(scene.name);
  const abort = new AbortController();
  const wait = b.acquire(scene.name, { signal: abort.signal });
  await untilWaiting(a, scene.name);
  const reason = new Error("enough");
  abort.abort(reason);
  const error = await refused("HF_CANCELLED", () => wait);
  assert.equal(error.name, "AbortError");
  assert.equal(error.cause, reason);
  await holdsAlone(a, held);
  await held.release();
  await c.acquire(scene.name, { timeout: 0 });
  await refused("HF_CANCELLED", () => b.acquire(scene.name, { signal: abort.signal })); // at once, with nothing sent
};

const waiters_come_in_order: Scenario = async (scene) => {
  const locks = await scene.client();
  needs(locks, "queue");
  const held = await locks.acquire(scene.name);
  const order: number[] = [];
  const turns: Promise<void>[] = [];
  for (let number = 1; number <= 5; number++) {
    turns.push(locks.using(scene.name, () => void order.push(number)));
    await untilWaiting(locks, scene.name, number);
  }
  await held.release();
  await Promise.all(turns);
  assert.deepEqual(order, [1, 2, 3, 4, 5]);
};

const readers_share_and_a_writer_waits: Scenario = async (scene) => {
  const locks = await scene.client();
  needs(locks, "shared");
  const reader = locks.lock(scene.name, { mode: "shared" });
  const readers = [await reader.acquire(), await reader.acquire()];
  await refused("HF_BUSY", () => locks.acquire(scene.name, { timeout: 0 }));
  const writer = locks.acquire(scene.name);
  await untilWaiting(locks, scene.name);
  await refused("HF_BUSY", () => reader.acquire({ timeout: 0 }));
  await Promise.all(readers.map((one) => one.release()));
  await holdsAlone(locks, await writer);
};

const limit_admits_no_more: Scenario = async (scene) => {
  const locks = await scene.client();
  needs(locks, "limit");
  const two = locks.lock(scene.name, { mode: "shared", limit: 2, timeout: 0 });
  const first = await two.acquire();
  await two.acquire();
  await refused("HF_BUSY", () => two.acquire());
  await first.release();
  await two.acquire();
};

const loss_is_told: Scenario = async (scene) => {
  const locks = await scene.client();
  needs(locks, "lease");
  const held = await locks.acquire(scene.name, { ttl: 300, byHand: true });
  const { lost } = held;
  assert.equal(lost.aborted, false);
  await until("the loss", () => lost.aborted);
  assert(lost.reason instanceof holdfast.LostError);
  assert.equal(held.cause, "EXPIRED");
  assert.equal(held.state, "lost");
  assert.equal(held.remaining, 0);
  const body = locks.using(scene.name + "/scope", { ttl: 300, byHand: true }, async (own) => {
    await once(own.lost, "abort"); // what runs in it is told
  });
  await refused("HF_STALE", () => body);
};

const token_rises: Scenario = async (scene) => {
  const locks = await scene.client();
  needs(locks, "token");
  let last = 0n;
  for (let i = 0; i < 3; i++) {
    await locks.using(scene.name, (held) => {
      assert(held.token > last);
      last = held.token;
    });
  }
};

const gate_refuses_an_old_sequencer: Scenario = async (scene) => {
  const locks = await scene.client();
  needs(locks, "token");
  const first = await locks.using(scene.name, (held) => held.sequencer);
  const second = await locks.using(scene.name, (held) => held.sequencer);
  const gate = new Gate();
  assert.equal(gate.levels(scene.name), undefined);
  gate.pass(first);
  gate.pass(second);
  await refused("HF_STALE", () => gate.pass(first));
  const restored = new Gate();
  restored.restore(scene.name, gate.levels(scene.name)!);
  await refused("HF_STALE", () => restored.pass(first));
  await refused("HF_INVALID", () => gate.pass("this is none"));
};

const check_tells_a_stale_sequencer: Scenario = async (scene) => {
  const locks = await scene.client();
  needs(locks, "check");
  const held = await locks.acquire(scene.name);
  const { sequencer } = held;
  await locks.check(sequencer);
  await held.release();
  await refused("HF_STALE", () => locks.check(sequencer));
};

const inspect_shows_holder_and_waiter: Scenario = async (scene) => {
  const locks = await scene.client();
  const held = await locks.acquire(scene.name, { note: "a note" });
  const abort = new AbortController();
  const wait = locks.acquire(scene.name, { signal: abort.signal });
  await untilWaiting(locks, scene.name);
  const [inside, queued, ...more] = await locks.inspect({ name: scene.name });
  assert.deepEqual(more, []);
  assert.equal(inside?.place, "inside");
  assert.equal(inside.ticket, held.ticket);
  assert.equal(inside.note, "a note");
  assert.equal(inside.program, "scenarios");
  assert.equal(inside.pid, process.pid);
  if (locks.capabilities.has("token")) assert.equal(inside.token, held.token);
  assert.equal(queued?.place, "waiting");
  if (locks.capabilities.has("queue")) assert.equal(queued.position, 1);
  const tickets = (await locks.inspect({ prefix: scene.name })).map((entry) => entry.ticket);
  assert.deepEqual(tickets, [inside.ticket, queued.ticket]);
  abort.abort();
  await refused("HF_CANCELLED", () => wait);
};

const break_takes_it_away: Scenario = async (scene) => {
  const [a, b] = [await scene.client(), await scene.client()];
  needs(a, "break");
  const held = await a.acquire(scene.name, { ttl: 1000 });
  const { ticket, lost } = held;
  await b.break(scene.name, ticket, { now: true });
  await b.acquire(scene.name, { timeout: 10_000 });
  await until("the loss", () => lost.aborted);
  assert(held.cause === "GONE" || held.cause === "EXPIRED", held.cause);
  await refused("HF_NOT_FOUND", () => b.break(scene.name, ticket));
};

const detach_and_adopt: Scenario = async (scene) => {
  const [a, b] = [await scene.client(), await scene.client()];
  needs(a, "detach");
  const held = await a.acquire(scene.name);
  const token = a.capabilities.has("token") ? held.token : 0n;
  const ticket = await held.detach();
  assert.equal(held.state, "ended");
  assert.deepEqual((await b.inspect({ name: scene.name })).map((entry) => entry.ticket), [ticket]);
  const adopted = await b.adopt(scene.name, ticket);
  if (b.capabilities.has("token")) assert.equal(adopted.token, token);
  await adopted.release();
  await isFree(b, scene.name);
  await refused("HF_STALE", () => b.adopt(scene.name, ticket));
};

const never_expires_until_released: Scenario = async (scene) => {
  const locks = await scene.client();
  needs(locks, "never");
  const held = await locks.acquire(scene.name, { ttl: Infinity });
  assert.equal(held.remaining, Infinity);
  assert.equal((await locks.inspect({ name: scene.name }))[0]?.ttl, Infinity);
  await held.release();
  await isFree(locks, scene.name);
};

const close_wakes_waiters: Scenario = async (scene) => {
  const [a, b, c] = [await scene.client(), await scene.client(), await scene.client()];
  const held = await a.acquire(scene.name);
  const wait = b.acquire(scene.name);
  await untilWaiting(a, scene.name);
  const [error] = await Promise.all([refused("HF_CLOSED", () => wait), b.close()]);
  assert(error instanceof holdfast.ClosedError);
  await holdsAlone(a, held);
  const { lost } = held;
  await a.close();
  assert(lost.aborted);
  await c.acquire(scene.name, { timeout: 0 });
};

const exit_gives_locks_back: Scenario = async (scene) => {
  const locks = await scene.client();
  needs(locks, "process");
  for (const role of ["end", "exit"]) {
    const other = child(role, scene.url, scene.name);
    assert.equal(await other.line(), "held");
    assert.equal(await other.ended(), 0);
    await (await locks.acquire(scene.name, { timeout: 5000 })).release();
  }
};

const ended_handles_are_refused: Scenario = async (scene) => {
  const locks = await scene.client();
  const calls = (held: Held) => ({
    release: () => held.release(), token: () => held.token, renew: () => held.renew(), detach: () => held.detach(),
  });
  const released = await locks.acquire(scene.name);
  await released.release();
  for (let twice = 0; twice < 2; twice++)
    for (const call of Object.values(calls(released))) await refused("HF_STALE", call);
  await released[Symbol.asyncDispose](); // a block may have released it

  if (locks.capabilities.has("lease")) {
    const lost = await locks.acquire(scene.name, { ttl: 200, byHand: true });
    await until("the loss", () => lost.state === "lost");
    for (let twice = 0; twice < 2; twice++) {
      await refused("HF_LOST", () => lost.token);
      await refused("HF_LOST", () => lost.renew());
    }
    await refused("HF_STALE", () => lost.release());
    await refused("HF_STALE", () => lost.release());
  }

  const other = await scene.client();
  const orphan = await other.acquire(scene.name);
  const closing = other.close();
  await refused("HF_CLOSED", () => other.acquire(scene.name));
  await closing;
  for (let twice = 0; twice < 2; twice++) {
    await refused("HF_CLOSED", () => other.acquire(scene.name));
    await refused("HF_CLOSED", () => other.inspect());
    for (const call of Object.values(calls(orphan))) await refused("HF_CLOSED", call);
    await other.close();
  }
  assert.equal(orphan.state, "ended");
  assert.equal(orphan.remaining, 0);
};

const a_thousand_waiters_in_twenty_threads: Scenario = async (scene) => {
  const locks = await scene.client();
  if (!locks.capabilities.has("push")) throw new Skipped("this store polls");
  const held = await locks.acquire(scene.name);
  const abort = new AbortController();
  let turns = 0;
  let cancelled = 0;
  const bids = Array.from({ length: 1000 }, (_, i) =>
    locks.using(scene.name, { signal: i % 2 === 0 ? abort.signal : undefined }, () => void turns++)
      .catch((error: HoldfastError) => void (cancelled += +(error.code === "HF_CANCELLED"))));
  await untilWaiting(locks, scene.name, 1000);
  const threads = Number(/Threads:\s*(\d+)/.exec(readFileSync("/proc/self/status", "utf8"))![1]);
  assert(threads <= 20, `${threads} threads`);
  abort.abort();
  await held.release();
  await Promise.all(bids);
  assert.deepEqual([turns, cancelled], [500, 500]);
  await isFree(locks, scene.name);
};

const every_code_is_mapped_and_names_hold_any_byte: Scenario = async (scene) => {
  const locks = await scene.client();
  const spec = JSON.parse(readFileSync(process.env.HOLDFAST_SPEC!, "utf8")) as {
    version: string;
    errors: { id: string; value: number; exit_status: number; text: string }[];
  };
  const { native } = require("../dist/native.js") as { native: { describe(code: number): unknown[] } };
  const { errorOf } = require("../dist/failure.js") as { errorOf(failure: object): HoldfastError };
  for (const { id, value, exit_status, text } of spec.errors) {
    assert.deepEqual(native.describe(value), [id, text, exit_status]);
    const error = errorOf({ code: value, text, retriable: 0, storeCode: 0, mayHold: 0 });
    assert.notEqual(error.constructor, HoldfastError);
    assert.equal(error.code, id);
    assert.equal(error.exitStatus, exit_status);
    assert.equal(error.message, text);
  }
  assert.equal(holdfast.version, spec.version);
  const name = Buffer.concat([Buffer.from(scene.name), Buffer.from([0, 255, 32])]);
  const held = await locks.acquire(name);
  assert.deepEqual(held.name, Uint8Array.from(name));
  assert.deepEqual((await locks.inspect({ name })).map((entry) => entry.name), [Uint8Array.from(name)]);
  await held.release();
  await refused("HF_INVALID", () => locks.acquire("x".repeat(513)));
  await refused("HF_INVALID", () => locks.acquire(""));
};

export const scenarios: Record<string, Scenario> = {
  exclusion_between_processes, busy_without_waiting, timeout_leaves_nothing, cancelled_wait_leaves_nothing,
  waiters_come_in_order, readers_share_and_a_writer_waits, limit_admits_no_more, loss_is_told, token_rises,
  gate_refuses_an_old_sequencer, check_tells_a_stale_sequencer, inspect_shows_holder_and_waiter, break_takes_it_away,
  detach_and_adopt, never_expires_until_released, close_wakes_waiters, exit_gives_locks_back, ended_handles_are_refused,
  a_thousand_waiters_in_twenty_threads, every_code_is_mapped_and_names_hold_any_byte,
};
