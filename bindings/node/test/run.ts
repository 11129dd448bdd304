// run.js [URL...]: the scenarios on each URL, then what only Node.js has.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { attacks } from "./attacks.js";
import { Scene, Skipped } from "./harness.js";
import { scenarios } from "./scenarios.js";

async function one(url: string, name: string, scenario: (scene: Scene) => Promise<void>): Promise<boolean> {
  const title = `node ${url.split(":")[0]}: ${name}`;
  const scene = new Scene(url, name);
  try {
    await scenario(scene);
    await scene.end();
    console.log(`ok - ${title}`);
  } catch (error) {
    await scene.end();
    if (error instanceof Skipped) {
      console.log(`skipped - ${title}: ${error.message}`);
      return true;
    }
    console.log((error as Error).stack?.replace(/^(ok|not ok|skipped) /gm, " $1"));
    console.log(`not ok - ${title}`);
    return false;
  }
  return true;
}

async function main(): Promise<void> {
  const scratch = mkdtempSync(join(tmpdir(), "holdfast-node-"));
  const given = process.argv.slice(2);
  const urls = given.length > 0 ? given : ["memory://", "sqlite:"];
  try {
    for (const given of urls) {
      const url = given === "sqlite:" ? `sqlite:${scratch}/locks.db` : given === "memory://" ? "memory://scenarios" : given;
      for (const [name, scenario] of Object.entries({ ...scenarios, ...attacks }))
        if (!(await one(url, name, scenario))) process.exitCode = 1;
    }
  } finally {
    rmSync(scratch, { recursive: true });
  }
}

void main();
