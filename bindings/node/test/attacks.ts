// What only Node.js can do to a lock.
import assert from "node:assert/strict";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { type Held, HoldfastError, open, stores } from "holdfast";
import { isFree, needs, refused, type Scene, Skipped, until, untilWaiting } from "./harness.js";
import { child } from "./scenarios.js";

type Attack = (scene: Scene) => Promise<void>;

/** Lets pass: nothing, some microtasks, some turns of the loop. */
async function moments(number: number): Promise<void> {
  for (let i = 0; i < number % 10; i++) await null;
  for (let i = 0; i < number / 10; i++) await turn();
}

const an_abort_at_any_moment_leaves_nothing: Attack = async (scene) => {
  const locks = await scene.client();
  let got = 0;
  for (let moment = 0; moment < 200; moment++) {
    const abort = new AbortController();
    const ends = [0, 1, 2].map(async () => {
      try {
        const held = await locks.acquire(scene.name, { signal: abort.signal });
        got++;
        await held.release();
      } catch (error) {
        assert.equal((error as HoldfastError).code, "HF_CANCELLED");
      }
    });
    await moments(moment);
    abort.abort();
    await Promise.all(ends);
    await isFree(locks, scene.name);
  }
  assert(got > 0);
};

const waits_take_no_thread_of_the_pool: Attack = async (scene) => {
  const locks = await scene.client();
  const held = await locks.acquire(scene.name);
  const waits = Array.from({ length: 50 }, () => locks.using(scene.name, () => {}));
  await untilWaiting(locks, scene.name, 50);
  await stat("/");
  await held.release();
  await Promise.all(waits);
};

const exit_while_waiting_gives_back_what_is_held: Attack = async (scene) => {
  const locks = await scene.client();
  needs(locks, "process");
  await locks.acquire(scene.name);
  for (const [role, said, status, names] of [
    ["exit-waiting", "waiting", 0, ["/own", "/kept"]], ["throw", "held", 1, ["/thrown"]],
  ] as const) {
    const other = child(role, scene.url, scene.name + (role === "throw" ? names[0] : ""));
    assert.equal(await other.line(), said);
    assert.equal(await other.ended(), status);
    for (const name of names) await (await locks.acquire(scene.name + name, { timeout: 5000 })).release();
  }
  assert.equal((await locks.inspect({ name: scene.name })).filter((entry) => entry.place === "inside").length, 1);
};

const a_terminated_worker_gives_locks_back: Attack = async (scene) => {
  const locks = await scene.client();
  const guard = await locks.acquire(scene.name);
  for (let round = 0; round < 5; round++) {
    const workers = Array.from({ length: 4 }, (_, i) =>
      new Worker(join(__dirname, "worker.js"), { argv: [scene.url, scene.name, `${scene.name}/${i}`, String(round)] }));
    await Promise.all(workers.map((worker) => new Promise((resolve) => worker.once("message", resolve))));
    await Promise.all(workers.map((worker) => worker.terminate()));
    for (let i = 0; i < 4; i++) await (await locks.acquire(`${scene.name}/${i}`, { timeout: 5000 })).release();
  }
  await until("the workers' waits to end", async () => (await locks.inspect({ name: scene.name })).length === 1);
  await guard.release();
};

const a_dropped_handle_is_released_with_a_warning: Attack = async (scene) => {
  if (global.gc === undefined) throw new Skipped("node runs without --expose-gc");
  const locks = await scene.client();
  const warnings: string[] = [];
  const onWarning = (warning: Error & { code?: string }) => void warnings.push(warning.code ?? warning.name);
  process.on("warning", onWarning);
  let watched: AbortSignal | undefined;
  await (async () => {
    await locks.acquire(scene.name);
    watched = (await locks.acquire(scene.name + "/watched")).lost; // who watches it keeps it
  })();
  await until("the collection", async () => {
    global.gc!();
    await turn();
    return warnings.length > 0;
  });
  process.off("warning", onWarning);
  assert.deepEqual(warnings, ["HF_DROPPED"]);
  await locks.acquire(scene.name, { timeout: 5000 });
  await refused("HF_BUSY", () => locks.acquire(scene.name + "/watched", { timeout: 0 }));
  assert.equal(watched!.aborted, false);
};

const close_amid_everything: Attack = async (scene) => {
  const outside = await scene.client();
  for (let round = 0; round < 30; round++) {
    const locks = await open(scene.url);
    const held: Held[] = [];
    const name = `${scene.name}/${round}`;
    for (let i = 0; i < 5; i++) held.push(await locks.acquire(`${name}/${i}`));
    const calls: Promise<unknown>[] = [];
    for (let i = 0; i < 20; i++) {
      calls.push(locks.acquire(`${name}/0`), locks.inspect(), held[1]!.renew(), held[2]!.release(),
        locks.check(held[3]!.sequencer), locks.purge());
    }
    await moments(round);
    const late = held[4]!.release();
    const close = locks.close();
    calls.push(late, held[3]!.release(), locks.inspect());
    const codes = (await Promise.allSettled(calls)).map((end) =>
      end.status === "fulfilled" ? "HF_OK" : (end.reason as HoldfastError).code);
    await close;
    for (const code of codes) assert(["HF_OK", "HF_CLOSED", "HF_STALE", "HF_LOST"].includes(code), code);
    assert.deepEqual(await outside.inspect({ prefix: name }), []);
  }
};

const renew_release_and_detach_do_not_meet: Attack = async (scene) => {
  const locks = await scene.client();
  needs(locks, "detach");
  for (let round = 0; round < 20; round++) {
    const held = await locks.acquire(scene.name);
    const [, detached, released] = await Promise.allSettled([held.renew(), held.detach(), held.release(), held.renew()]);
    assert.equal(detached.status, "fulfilled");
    assert.equal(released.status, "rejected");
    await (await locks.adopt(scene.name, (detached as PromiseFulfilledResult<string>).value)).release();
  }
};

const the_loss_of_an_adopted_lock_is_told: Attack = async (scene) => {
  const locks = await scene.client();
  needs(locks, "detach", "lease");
  const ticket = await (await locks.acquire(scene.name, { ttl: 1000 })).detach();
  const adopted = await locks.adopt(scene.name, ticket, { byHand: true });
  await new Promise((resolve) => adopted.lost.addEventListener("abort", resolve));
  assert.equal(adopted.cause, "EXPIRED");
  const again = await (await locks.acquire(scene.name)).detach();
  const kept = await locks.adopt(scene.name, again);
  assert.equal(kept.lost.aborted, false); // and it is closed with the client, while it is watched
};

const bad_input_is_refused_in_a_sentence: Attack = async (scene) => {
  const locks = await scene.client();
  const bad: [call: () => unknown, text: RegExp][] = [
    [() => open("no-such-store:x"), /no-such-store/],
    [() => open("memory://a\0b"), /NUL/],
    [() => open(7 as never), /string/],
    [() => locks.acquire(undefined as never), /string or a Uint8Array/],
    [() => locks.acquire("\ud800"), /Unicode/],
    [() => locks.acquire(scene.name, { timeout: NaN }), /timeout/],
    [() => locks.acquire(scene.name, { timeout: -1 }), /timeout/],
    [() => locks.acquire(scene.name, { timeout: 1.5 }), /timeout/],
    [() => locks.acquire(scene.name, { timeout: "5" as never }), /timeout/],
    [() => locks.acquire(scene.name, { ttl: 1 }), /ttl|lease/],
    [() => locks.acquire(scene.name, { ttl: 2 ** 52 }), /ttl|lease/],
    [() => locks.acquire(scene.name, { limit: 2 ** 33, mode: "shared" }), /limit/],
    [() => locks.acquire(scene.name, { mode: "both" as never }), /mode/],
    [() => locks.acquire(scene.name, { note: "x".repeat(300) }), /note/],
    [() => locks.acquire(scene.name, { note: "a\0b" }), /NUL/],
    [() => locks.inspect({ name: "a", prefix: "b" }), /not for both/],
    [() => locks.check(undefined as never), /sequencer/],
    [() => locks.adopt(scene.name, "x"), /ticket/],
  ];
  for (const [call, text] of bad) {
    try {
      await call();
    } catch (error) {
      assert(error instanceof HoldfastError, `${String(call)}: ${String(error)}`);
      assert.match(error.message, text);
      continue;
    }
    assert.fail(String(call));
  }
  await isFree(locks, scene.name);
};

const a_second_bid_of_an_owner_is_a_deadlock: Attack = async (scene) => {
  const locks = await scene.client();
  await locks.acquire(scene.name, { owner: 7 });
  await refused("HF_DEADLOCK", () => locks.acquire(scene.name, { owner: 7 }));
};

const operators_calls_answer: Attack = async (scene) => {
  const locks = await scene.client();
  await locks.setup();
  assert(Number.isInteger(await locks.purge(1)));
  const findings = await locks.diagnose();
  assert(findings.length > 0 && findings.every(({ level, text }) => level && text));
  const known = (await stores()).find(({ schemes }) => schemes.includes(scene.url.split(":")[0]!));
  assert.equal(known?.missing, undefined);
  assert.deepEqual([...known!.capabilities].length > 5, true);
};

export const attacks: Record<string, Attack> = {
  an_abort_at_any_moment_leaves_nothing, waits_take_no_thread_of_the_pool, exit_while_waiting_gives_back_what_is_held,
  a_terminated_worker_gives_locks_back, a_dropped_handle_is_released_with_a_warning, close_amid_everything,
  renew_release_and_detach_do_not_meet, the_loss_of_an_adopted_lock_is_told, bad_input_is_refused_in_a_sentence,
  a_second_bid_of_an_owner_is_a_deadlock, operators_calls_answer,
};
