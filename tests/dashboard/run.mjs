// Runs the cases of cases_*.mjs, or those that are named, in one browser: each is a function with a server and pages of its
// own. Prints "ok - NAME" or "not ok - NAME"; screenshots are left in screenshots/.

import { mkdirSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { dirname, join } from "node:path";
import { chromium } from "playwright-core";
import { Skip } from "./served.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync"];
const CASE_MS = 120000;

function limited(promise) {
  return Promise.race([promise, new Promise((_, reject) => {
    setTimeout(() => reject(new Error(`still running after ${CASE_MS / 1000} s`)), CASE_MS).unref();
  })]);
}

async function main(wanted) {
  mkdirSync(join(here, "screenshots"), { recursive: true });
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: FLAGS });
  let count = 0, failed = 0;
  for (const file of readdirSync(here).filter((name) => /^cases_.*\.mjs$/.test(name)).sort()) {
    for (const [name, run] of Object.entries(await import(join(here, file)))) {
      if (wanted.length > 0 && !wanted.includes(name)) continue;
      const shot = (page, what, options) => page.screenshot({ path: join(here, "screenshots", `${what}.png`), ...options });
      count++;
      try {
        await limited(run({ browser, shot }));
        console.log(`ok - ${name}`);
      } catch (error) {
        if (error instanceof Skip) {
          console.log(`skipped ${name}: ${error.message}`);
          continue;
        }
        failed++;
        console.log(`${error.stack}\nnot ok - ${name}`);
      }
    }
  }
  await browser.close();
  process.exit(failed > 0 || count === 0 ? 1 : 0);
}

main(process.argv.slice(2));
