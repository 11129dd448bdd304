// A worker that holds a lock, waits for another one and calls, until somebody terminates it: URL NAME OWN ROUND.
import { parentPort } from "node:worker_threads";
import { open } from "holdfast";

const [url, name, own, round] = process.argv.slice(2) as [string, string, string, string];

async function main(): Promise<void> {
  const locks = await open(url);
  const held = await locks.acquire(own, { ttl: 600_000 });
  held.lost.addEventListener("abort", () => {});
  for (let i = 0; i < 10; i++) locks.acquire(name).catch(() => {});
  if (Number(round) % 2 === 1) for (let i = 0; i < 10; i++) locks.inspect().catch(() => {});
  if (Number(round) % 3 === 1) void open(url);
  if (Number(round) % 3 === 2) void locks.close();
  parentPort!.postMessage("ready");
  setInterval(() => locks.acquire(own + "/more").then((more) => more.release()).catch(() => {}), 1);
}

void main();
