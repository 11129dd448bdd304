// What the tests of the dashboard share: a server of their own, the command on its stores, and pages of a browser.

import { spawn, execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const COMMAND = process.env.HOLDFAST;
export const PATIENCE = 30000;

export class Skip extends Error {}

export function assert(truth, what) {
  if (!truth) throw new Error(what);
}

export function equal(found, wanted, what) {
  assert(found === wanted, `${what}: ${JSON.stringify(found)}, not ${JSON.stringify(wanted)}`);
}

// Waits until it is true, and gives what it was.
export async function eventually(what, why) {
  const end = Date.now() + PATIENCE;
  for (;;) {
    const found = await what();
    if (found) return found;
    assert(Date.now() < end, `did not come true: ${why ?? what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

export class Server {
  constructor() {
    this.dir = mkdtempSync(join(tmpdir(), "holdfast-dashboard-"));
    this.url = `sqlite:${this.dir}/locks.db`;
    this.children = new Set();
  }

  // Options as of `holdfast serve`; `tokens` is the text of a token file.
  static async start({ options = [], tokens, listen = "127.0.0.1:0", url } = {}) {
    const server = new Server();
    if (url) server.url = url;
    server.options = [...options];
    if (tokens) {
      writeFileSync(join(server.dir, "tokens"), tokens, { mode: 0o600 });
      server.options.push("--token-file", join(server.dir, "tokens"));
    }
    await server.listen(listen);
    return server;
  }

  async listen(address) {
    this.process = spawn(COMMAND, ["serve", "-u", `main=${this.url}`, "--listen", address, ...this.options],
      { env: this.environment(), stdio: ["ignore", "pipe", "inherit"] });
    const lines = createInterface({ input: this.process.stdout });
    const [line] = await Promise.race([
      new Promise((resolve) => lines.once("line", (text) => resolve([text]))),
      new Promise((_, reject) => this.process.once("exit", (status) => reject(new Error(`the server ended with ${status}`)))),
    ]);
    this.origin = line.match(/http:\/\/\S+/)[0];
  }

  environment() {
    return { ...process.env, HOME: this.dir };
  }

  async stop() {
    const gone = new Promise((resolve) => this.process.once("exit", resolve));
    this.process.kill("SIGTERM");
    return gone;
  }

  async close() {
    for (const child of this.children) child.kill("SIGKILL");
    if (this.process.exitCode === null) await this.stop();
    rmSync(this.dir, { recursive: true, force: true });
  }

  // The command on the same store: what it prints.
  command(...words) {
    return execFileSync(COMMAND, ["-u", this.url, ...words], { env: this.environment(), encoding: "utf8" });
  }

  // The same, left running; ended with the server. `kill` of its process group takes what it runs along.
  leave(...words) {
    const child = spawn(COMMAND, ["-u", this.url, ...words], { env: this.environment(), stdio: "ignore" });
    this.children.add(child);
    child.once("exit", () => this.children.delete(child));
    return child;
  }

  locks() {
    const lines = this.command("ls", "--json").split("\n").filter(Boolean);
    return new Map(lines.map((line) => JSON.parse(line)).map((lock) => [lock.name, lock]));
  }

  async ask(method, path, body) {
    const reply = await fetch(this.origin + path, {
      method, headers: { "Content-Type": "application/json" }, body: body && JSON.stringify(body),
    });
    assert(reply.ok, `${method} ${path}: ${reply.status} ${await reply.clone().text()}`);
    return reply.json();
  }
}

// A page that remembers what it must never have: errors, dialogs, refused contents, requests to elsewhere.
export async function openPage(browser, server, { hash = "#/", ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, locale: "en-GB", ...options });
  const page = await context.newPage();
  page.wrong = [];
  page.setDefaultTimeout(PATIENCE);
  page.on("pageerror", (error) => page.wrong.push(error.stack));
  page.on("dialog", (dialog) => { page.wrong.push(`a dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on("request", (request) => {
    if (new URL(request.url()).origin !== server.origin) page.wrong.push(`a request to ${request.url()}`);
  });
  await page.addInitScript(() => {
    addEventListener("securitypolicyviolation", (event) => console.error(`refused: ${event.violatedDirective} ${event.blockedURI}`));
  });
  page.on("console", (message) => {
    if (message.text().startsWith("refused:")) page.wrong.push(message.text());
  });
  await page.goto(`${server.origin}/${hash}`);
  return page;
}

export async function closePage(page) {
  await page.context().close();
  assert(page.wrong.length === 0, page.wrong.join("\n"));
}

// The row of a lock, by what it shows of the name.
export function row(page, name) {
  return page.getByRole("row").filter({ has: page.getByRole("link", { name, exact: true }) });
}

export async function settled(page) {
  await page.waitForFunction(() => document.querySelector(".verdict:not(.wait), .view:not(:has(.verdict))") !== null);
}
