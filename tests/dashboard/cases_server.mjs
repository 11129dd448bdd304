// A crowd of locks, and servers and stores that go away.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { Server, Skip, assert, closePage, equal, eventually, openPage, row, settled } from "./served.mjs";

// Only the rows in sight are in the page, wherever it is scrolled to. How long it takes is told, not asserted.
export async function ten_thousand_locks_are_a_few_rows({ browser, shot }) {
  const server = await Server.start({ url: "memory://crowd" });
  try {
    for (let i = 0; i < 10000; i += 100) {
      await Promise.all(Array.from({ length: 100 }, (_, k) => server.ask("POST",
        `/v1/stores/main/locks/job%2F${String(i + k).padStart(5, "0")}/acquire`, { ttl_ms: 600000, lives: "lease", note: `part ${i + k}` })));
    }
    const page = await openPage(browser, server, { hash: "#/stores" });
    await page.evaluate(() => {
      globalThis.long = [];
      new PerformanceObserver((list) => long.push(...list.getEntries().map((e) => Math.round(e.duration)))).observe({ type: "longtask" });
    });
    await page.getByRole("link", { name: "Locks", exact: true }).click();
    await page.getByText("10,000 locks", { exact: true }).waitFor();
    const inPage = () => page.locator("tbody tr").count();
    assert(await inPage() < 100, `${await inPage()} rows are in the page`);
    for (let i = 0; i < 20; i++) {
      await page.mouse.wheel(0, 20000);
      assert(await inPage() < 100, `${await inPage()} rows are in the page`);
    }
    await page.keyboard.press("End");
    await row(page, "job/09999").waitFor();
    equal(await row(page, "job/09999").getAttribute("aria-rowindex"), "10001", "the place of the last row");
    await shot(page, "crowd");
    await page.getByRole("searchbox").fill("job/0420");
    await page.getByText("10 of 10,000 locks").waitFor();
    console.log(`tasks over 50 ms: ${await page.evaluate(() => JSON.stringify(long))}`);
    await closePage(page);
  } finally {
    await server.close();
  }
}

export async function a_server_that_went_away_is_said_and_found_again({ browser, shot }) {
  const server = await Server.start();
  try {
    server.command("lock", "--ttl", "10m", "kept");
    const page = await openPage(browser, server);
    await row(page, "kept").waitFor();
    await page.getByText("Live", { exact: true }).waitFor();
    const address = new URL(server.origin).host;
    await server.stop();
    await page.getByRole("heading", { name: "This page is not live." }).waitFor();
    await page.getByText(/has not answered since \d\d:\d\d:\d\d/).waitFor();
    await row(page, "kept").waitFor();
    await shot(page, "not-live");
    await eventually(() => server.listen(address).then(() => true, () => false), "it listens again");
    await page.getByText("Live", { exact: true }).waitFor();
    await settled(page);
    equal(await page.getByRole("heading", { name: "This page is not live." }).count(), 0, "what it says then");
    await closePage(page);
  } finally {
    await server.close();
  }
}

// A server that takes connections and answers nothing looks alive to everything but a clock.
export async function a_frozen_server_is_not_believed({ browser }) {
  const server = await Server.start();
  try {
    server.command("lock", "--ttl", "10m", "kept");
    const page = await openPage(browser, server, { hash: "#/lock/main/kept" });
    await page.getByText(/^Held by/).waitFor();
    server.process.kill("SIGSTOP");
    await page.getByText(/holdfast-serve has not answered since/).waitFor();
    server.process.kill("SIGCONT");
    await page.getByText(/holdfast-serve has not answered since/).waitFor({ state: "detached" });
    await closePage(page);
  } finally {
    server.process.kill("SIGCONT");
    await server.close();
  }
}

export async function a_store_that_does_not_answer_comes_first({ browser, shot }) {
  if (!existsSync(join(process.env.HOLDFAST_MODULES, "holdfast-redis.so"))) throw new Skip("the store for Redis was not built");
  const server = await Server.start({ options: ["-u", "orders=redis://127.0.0.1:9/0?op_timeout=1s"] });
  try {
    server.command("lock", "--never-expires", "reindex");
    const page = await openPage(browser, server);
    await page.getByRole("heading", { name: "orders does not answer." }).waitFor();
    await row(page, "reindex").getByRole("cell", { name: "main" }).waitFor();
    await page.getByRole("combobox", { name: /^Store/ }).selectOption("orders");
    await page.getByText("No lock matches.").waitFor();
    await shot(page, "two-stores");
    await page.getByRole("link", { name: "orders" }).click();
    await page.getByText("does not answer").waitFor();
    await page.getByText("answers", { exact: true }).waitFor();
    await page.goto(`${server.origin}/#/lock/nowhere/x`);
    await page.getByText("This server has no store “nowhere”.").waitFor();
    await closePage(page);
  } finally {
    await server.close();
  }
}
