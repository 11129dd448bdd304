// As bench/cycle.c: URL COUNT.
import { createInterface } from "node:readline";
import { open } from "holdfast";

async function main(): Promise<void> {
  const locks = await open(process.argv[2]);
  const lock = locks.lock("cycle");
  const count = Number(process.argv[3]);
  for await (const _line of createInterface({ input: process.stdin })) {
    const start = performance.now();
    for (let i = 0; i < count; i++) await (await lock.acquire()).release();
    console.log((((performance.now() - start) * 1000) / count).toFixed(3));
  }
  await locks.close();
}

void main();
