// For everybody: keyboard, screen reader, phone, darkness, Chinese.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { Server, assert, closePage, equal, eventually, openPage, row, settled } from "./served.mjs";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const PHONE = { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true };
const HASHES = ["#/", "#/look", "#/stores", "#/lock/main/nightly"];

async function busyServer() {
  const server = await Server.start({ options: ["--allow-break"] });
  server.command("lock", "--never-expires", "reindex");
  server.command("lock", "--ttl", "10m", "--note", "a note that is long enough to need more than its room", "import/customers");
  server.leave("run", "nightly", "--", "sleep", "60");
  await eventually(() => server.locks().has("nightly"));
  server.leave("run", "nightly", "--", "sleep", "60");
  await eventually(() => server.locks().get("nightly").queue.length > 0);
  return server;
}

async function withServer(run) {
  const server = await busyServer();
  try {
    await run(server);
  } finally {
    await server.close();
  }
}

async function loaded(page, hash) {
  await settled(page);
  if (hash === "#/stores") await page.locator(".findings").waitFor();
  else if (hash.startsWith("#/lock")) await page.locator(".picture .held").first().waitFor();
  else await row(page, "reindex").waitFor();
}

// Evaluated outside of the page's policy, which refuses scripts of others.
async function violations(page) {
  const client = await page.context().newCDPSession(page);
  const run = (expression) => client.send("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
  await run(AXE);
  const { result } = await run("axe.run(document, {resultTypes: ['violations']}).then((found) => found.violations.map((v) => " +
    "`${v.id}: ${v.help}: ${v.nodes.map((n) => n.html.slice(0, 200)).join(' | ')}`))");
  return result.value;
}

export async function axe_finds_nothing({ browser }) {
  await withServer(async (server) => {
    for (const options of [{}, { colorScheme: "dark" }, PHONE, { locale: "zh-CN" }]) {
      for (const hash of HASHES) {
        const page = await openPage(browser, server, { hash, ...options });
        await loaded(page, hash);
        const found = await violations(page);
        assert(found.length === 0, `${hash} ${JSON.stringify(options)}:\n${found.join("\n")}`);
        await closePage(page);
      }
    }
    const page = await openPage(browser, server, { hash: "#/lock/main/nightly" });
    await page.getByRole("button", { name: /^Break the lock of/ }).first().click();
    const found = await violations(page);
    assert(found.length === 0, `the dialog:\n${found.join("\n")}`);
    await closePage(page);
  });
}

export async function the_keyboard_is_enough({ browser }) {
  await withServer(async (server) => {
    const page = await openPage(browser, server);
    await loaded(page, "#/");
    const focus = () => page.evaluate(() => document.activeElement.textContent);
    await page.keyboard.press("Tab");
    equal(await focus(), "Skip to the content", "the first stop");
    for (let i = 0; i < 30 && (await focus()) !== "import/customers"; i++) await page.keyboard.press("Tab");
    equal(await focus(), "import/customers", "the first row");
    await page.keyboard.press("ArrowDown");
    equal(await focus(), "nightly", "the row below");
    await page.waitForTimeout(2500); // the clock ticks meanwhile
    equal(await focus(), "nightly", "the focus after the page was drawn again");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "nightly", level: 1 }).waitFor();
    for (let i = 0; i < 30 && (await focus()) !== "Break …"; i++) await page.keyboard.press("Tab");
    equal(await focus(), "Break …", "the way to break it");
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor();
    for (let i = 0; i < 12; i++) {
      await page.keyboard.press("Tab");
      assert(await page.evaluate(() => document.activeElement === document.body || document.activeElement.closest("dialog") !== null),
        "the focus left the dialog");
    }
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "hidden" });
    equal(await focus(), "Break …", "the focus after the dialog");
    await closePage(page);
  });
}

export async function a_phone_shows_all_of_it({ browser, shot }) {
  await withServer(async (server) => {
    for (const hash of HASHES) {
      const page = await openPage(browser, server, { hash, ...PHONE });
      await loaded(page, hash);
      const [wide, room] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      assert(wide <= room, `${hash} is ${wide} pixels wide on a phone of ${room}`);
      await shot(page, `phone-${hash.split("/")[1] || "locks"}`, { fullPage: true });
      await closePage(page);
    }
  });
}

export async function dark_is_dark({ browser, shot }) {
  await withServer(async (server) => {
    for (const hash of ["#/", "#/lock/main/nightly"]) {
      const page = await openPage(browser, server, { hash, colorScheme: "dark" });
      await loaded(page, hash);
      const paper = await page.evaluate(() => getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number));
      assert(paper.every((part) => part < 64), `the paper is ${paper}`);
      await shot(page, `dark-${hash.split("/")[1] || "locks"}`);
      await closePage(page);
    }
  });
}

export async function chinese_is_spoken({ browser, shot }) {
  const source = readFileSync(join(process.env.DASHBOARD, "words.js"), "utf8");
  const { WORDS } = await import(`data:text/javascript,${encodeURIComponent(source)}`);
  const fields = (text) => [...new Set(text.match(/\{\w+\}/g))].sort().join();
  for (const [key, [english, chinese]] of Object.entries(WORDS)) {
    assert(english && chinese, `${key} is not there in both languages`);
    equal(fields(chinese), fields(english), `what ${key} fills in`);
  }
  await withServer(async (server) => {
    const page = await openPage(browser, server, { locale: "zh-CN" });
    await loaded(page, "#/");
    equal(await page.evaluate(() => document.documentElement.lang), "zh-CN", "the language");
    await page.getByRole("link", { name: "存储" }).waitFor();
    await row(page, "reindex").getByText("永不过期").first().waitFor();
    await shot(page, "chinese");
    await page.getByRole("button", { name: /English/ }).click();
    await page.getByRole("link", { name: "Stores" }).waitFor();
    await page.reload();
    await page.getByRole("link", { name: "Stores" }).waitFor();
    await closePage(page);
  });
}
