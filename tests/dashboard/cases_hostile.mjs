// Strangers: names that look like something else, and pages of another origin.

import { createServer } from "node:http";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { Server, assert, closePage, equal, openPage, settled } from "./served.mjs";

// What is sent, and what is to be read.
const NAMES = [
  ["<img src=x onerror=alert(1)>"], ["\"><script>alert(1)</script>"], ["';alert(1)//"], ["{{7*7}}${7*7}"], ["javascript:alert(1)"],
  ["../../v1/stores"], ["a/b/../c?x=1#y"], ["__proto__"], ["constructor"], ["50% off", "50%25 off"], ["%2e%2e%2f", "%252e%252e%252f"],
  ["a b  c"], [" ", "\\u{20}"], ["b ", "b\\u{20}"], ["锁/库存 🔒"], ["a\u202eb", "a\\u{202e}b"], ["zero\u200bwidth", "zero\\u{200b}width"],
  ["line\nbreak", "line\\u{a}break"], ["\u001b[31mred", "\\u{1b}[31mred"], ["x".repeat(512)], ["&lt;b&gt;"],
];

export async function names_are_text({ browser, shot }) {
  const server = await Server.start({ options: ["--allow-break"] });
  try {
    for (const [name] of NAMES) server.command("lock", "--ttl", "10m", "--note", name.slice(0, 64), name);
    const page = await openPage(browser, server);
    await page.getByText(`${NAMES.length} locks`, { exact: true }).waitFor();
    await shot(page, "names", { fullPage: true });
    const shown = new Set(await page.locator("tbody .c-name").allTextContents());
    for (const [name, text = name] of NAMES) assert(shown.has(text), `${JSON.stringify(name)} is not shown as ${JSON.stringify(text)}`);
    equal(await page.locator("main :is(img, script, iframe, object, b)").count(), 0, "elements that a name made");
    for (const [name, text = name] of NAMES) {
      await page.locator("tbody .c-name a").filter({ hasText: text }).evaluateAll((links, wanted) =>
        links.find((link) => link.textContent === wanted).click(), text);
      await page.locator("h1.name").waitFor();
      equal(await page.locator("h1.name").textContent(), text, "the heading");
      await page.getByText("holds", { exact: true }).waitFor();
      await page.evaluate(() => history.back());
      await page.locator("table.locks").waitFor();
    }
    await closePage(page);
  } finally {
    await server.close();
  }
}

// Everything that a page can try without asking the person in front of it.
async function attack(target) {
  const tried = {};
  const attempt = async (what, run) => {
    tried[what] = await run().then((found) => found ?? "done", (error) => `refused: ${error.name}`);
  };
  const lock = `${target}/v1/stores/main/locks/kept`;
  await attempt("read", () => fetch(`${target}/v1/stores/main/locks`).then((reply) => reply.text()));
  await attempt("read blindly", () => fetch(`${target}/v1/stores/main/locks`, { mode: "no-cors" }).then((reply) => reply.text() || "nothing"));
  await attempt("break", () => fetch(`${lock}/break`, { method: "POST", headers: { "Content-Type": "application/json" }, body: document.title })
    .then((reply) => reply.status));
  for (const type of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]) {
    await attempt(`break as ${type}`, () => fetch(`${lock}/break`, { method: "POST", mode: "no-cors", headers: { "Content-Type": type }, body: document.title })
      .then((reply) => reply.type));
  }
  navigator.sendBeacon(`${lock}/break`, new Blob([document.title], { type: "text/plain" }));
  await attempt("acquire", () => fetch(`${target}/v1/stores/main/locks/taken/acquire`, { method: "POST", mode: "no-cors", body: '{"lives":"lease","ttl_ms":60000}' })
    .then((reply) => reply.type));
  await attempt("events", () => new Promise((resolve, reject) => {
    const source = new EventSource(`${target}/v1/stores/main/events`);
    source.onmessage = (event) => resolve(event.data);
    source.addEventListener("locks", (event) => resolve(event.data));
    source.onerror = () => reject(new Error("no events"));
  }));
  const framed = (name, go) => new Promise((resolve) => {
    const frame = document.createElement("iframe");
    frame.name = name;
    document.body.append(frame);
    frame.onload = resolve;
    go(frame);
  });
  await framed("page", (frame) => { frame.src = target; });
  const form = document.body.appendChild(document.createElement("form"));
  Object.assign(form, { action: `${lock}/break`, method: "post", enctype: "text/plain", target: "answer" });
  const field = form.appendChild(document.createElement("input"));
  field.name = document.title.slice(0, -1) + ',"x":"';
  field.value = '"}';
  await framed("answer", () => form.submit());
  for (const tag of ["script", "img"]) {
    await attempt(tag, () => new Promise((resolve, reject) => {
      const element = document.createElement(tag);
      element.onload = () => resolve("loaded");
      element.onerror = () => reject(new Error("no"));
      element.src = `${target}/v1/stores`;
      document.body.append(element);
    }));
  }
  return tried;
}

export async function a_page_of_another_origin_can_do_nothing({ browser }) {
  const server = await Server.start({ options: ["--allow-break"] });
  server.command("lock", "--ttl", "10m", "--note", "secret note", "kept");
  const { ticket } = server.locks().get("kept").holders[0];
  const elsewhere = createServer((_, reply) => {
    reply.setHeader("Content-Type", "text/html");
    reply.end(`<!doctype html><title>${JSON.stringify({ ticket, now: true })}</title><body>hostile</body>`);
  });
  await new Promise((resolve) => elsewhere.listen(0, "127.0.0.1", resolve));
  try {
    for (const host of ["127.0.0.1", "localhost"]) {
      const page = await (await browser.newContext()).newPage();
      await page.goto(`http://${host}:${elsewhere.address().port}/`);
      const tried = await page.evaluate(attack, server.origin);
      for (const [what, outcome] of Object.entries(tried)) {
        const blind = what !== "read" && ["opaque", "nothing"].includes(outcome);
        assert(blind || String(outcome).startsWith("refused:"), `${what} from ${host}: ${outcome}`);
      }
      for (const frame of page.frames().slice(1)) {
        const text = await frame.evaluate(() => document.documentElement.outerHTML).catch(() => "");
        assert(!text.includes("holdfast</title>") && !text.includes("secret note"), `a frame shows the page: ${text}`);
      }
      await page.context().close();
      equal(server.locks().get("kept")?.holders[0].ticket, ticket, `the lock, after ${host}`);
      assert(!server.locks().has("taken"), "a lock was taken");
    }
  } finally {
    elsewhere.close();
    await server.close();
  }
}

// A policy that allows nothing inline, and a page that needs nothing of that kind.
export async function the_page_needs_nothing_that_the_policy_forbids({ browser }) {
  const server = await Server.start();
  try {
    const page = await openPage(browser, server);
    await settled(page);
    const headers = (await page.request.get(server.origin)).headers();
    const policy = headers["content-security-policy"];
    assert(/default-src 'none'/.test(policy) && /frame-ancestors 'none'/.test(policy), `the policy: ${policy}`);
    assert(!/unsafe|\*|https?:/.test(policy), `the policy: ${policy}`);
    equal(headers["x-content-type-options"], "nosniff", "X-Content-Type-Options");
    assert(!("access-control-allow-origin" in headers), "nobody else may read");
    await closePage(page);
  } finally {
    await server.close();
  }
  const folder = process.env.DASHBOARD;
  for (const name of readdirSync(folder)) {
    const text = readFileSync(join(folder, name), "utf8");
    const found = text.match(/innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|localStorage\.setItem\(KEY|https?:\/\/(?!www\.w3\.org)/);
    assert(!found, `${name}: ${found?.[0]}`);
  }
}
