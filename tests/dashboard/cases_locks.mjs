// The table and the page of a lock.

import { Server, assert, closePage, equal, eventually, openPage, row, settled } from "./served.mjs";

// Each case has a server, and a page of it.
async function visit(browser, options, run) {
  const server = await Server.start(options.server);
  try {
    for (const words of options.locks ?? []) server.command("lock", ...words);
    const page = await openPage(browser, server, options.page);
    await settled(page);
    await run(page, server);
    await closePage(page);
  } finally {
    await server.close();
  }
}

export async function locks_come_and_go_by_themselves({ browser, shot }) {
  await visit(browser, {}, async (page, server) => {
    await page.getByText("Nobody holds or waits for a lock.").waitFor();
    await page.getByRole("heading", { name: "All is well." }).waitFor();
    server.command("lock", "--note", "moves to db2", "--ttl", "10m", "maintenance");
    const line = row(page, "maintenance");
    await line.getByText("moves to db2").waitFor();
    const cells = await line.getByRole("cell").allTextContents();
    equal(cells[0], "held", "its state");
    equal(cells[1], "exclusive", "its mode");
    assert(/@.*, pid \d+/.test(cells[2]), `its holder: ${cells[2]}`);
    assert(/^\d+ s$/.test(cells[3]), `its age: ${cells[3]}`);
    assert(/^9 min/.test(cells[4]), `what is left: ${cells[4]}`);
    assert(/^\d+$/.test(cells[6]), `its token: ${cells[6]}`);
    await shot(page, "one-lock");
    const { ticket } = server.locks().get("maintenance").holders[0];
    server.command("break", "--now", "--ticket", ticket, "maintenance");
    await line.waitFor({ state: "detached" });
  });
}

export async function search_and_age_narrow_the_table({ browser }) {
  const locks = [["--ttl", "10m", "nightly"], ["--ttl", "10m", "--note", "for the audit", "invoice/1"], ["--ttl", "10m", "invoice/2"]];
  await visit(browser, { locks }, async (page) => {
    await page.getByText("3 locks", { exact: true }).waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("INVOICE");
    await page.getByText("2 of 3 locks").waitFor();
    await page.getByRole("searchbox").fill("audit");
    await page.getByText("1 of 3 locks").waitFor();
    await row(page, "invoice/1").waitFor();
    await page.getByRole("searchbox").fill("");
    await page.getByLabel("Held for").selectOption({ label: "at least 1 h" });
    await page.getByText("No lock matches.").waitFor();
    await page.getByLabel("Held for").selectOption({ label: "any time" });
    await page.getByRole("button", { name: "Name" }).click();
    await eventually(async () => (await page.locator("tbody .c-name").allTextContents()).join() === "nightly,invoice/2,invoice/1",
      "the names go down");
    equal(await page.getByRole("columnheader", { name: "Name" }).getAttribute("aria-sort"), "descending", "the order that is told");
  });
}

export async function a_lock_has_holders_a_queue_and_a_time_line({ browser, shot }) {
  await visit(browser, {}, async (page, server) => {
    const holder = server.leave("run", "--ttl", "5s", "report", "--", "sleep", "60");
    await eventually(() => server.locks().has("report"));
    await row(page, "report").getByRole("link").click();
    await page.getByRole("heading", { name: "report", level: 1 }).waitFor();
    equal(await page.evaluate(() => document.activeElement.tagName), "H1", "what has the focus");
    await page.getByText("Nobody waits.").waitFor();
    await page.getByText("This store keeps no trail").waitFor();
    server.leave("run", "--ttl", "5s", "report", "--", "sleep", "60");
    await page.locator(".picture rect.wait").waitFor();
    await page.locator(".picture rect.held").waitFor();
    await page.getByRole("cell", { name: "began to wait" }).waitFor();
    holder.kill("SIGTERM");
    await page.locator(".picture .end.released").waitFor();
    await eventually(async () => (await page.locator(".picture rect.held").count()) === 2, "the next one holds it");
    await page.getByText("Nobody waits.").waitFor();
    await page.locator(".picture .handover").waitFor({ state: "attached" });
    await shot(page, "lock", { fullPage: true });
  });
}

// The holder is stopped, so that its lease runs out.
export async function a_lease_that_runs_out_is_at_risk_and_then_lost({ browser, shot }) {
  await visit(browser, { page: { hash: "#/lock/main/frozen" } }, async (page, server) => {
    server.command("lock", "--ttl", "5s", "frozen");
    await page.getByText(/not renewed for \d+ s, runs out in/).waitFor();
    await page.locator(".picture rect.risk").waitFor();
    await page.locator(".picture .end.lost").waitFor();
    await page.getByRole("cell", { name: "lost" }).waitFor();
    await shot(page, "lost", { fullPage: true });
    await page.getByRole("link", { name: "Locks", exact: true }).click();
    await page.getByRole("heading", { name: "1 lock was lost in the last hour." }).waitFor();
    await shot(page, "lost-verdict");
  });
}

export async function what_needs_a_look_is_gathered({ browser, shot }) {
  const locks = [["--never-expires", "reindex"], ["--ttl", "10m", "fine"]];
  await visit(browser, { locks }, async (page) => {
    await page.getByRole("heading", { name: "1 lock needs a look." }).waitFor();
    await page.getByRole("link", { name: "Needs a look (1)" }).click();
    await row(page, "reindex").getByText("never expires").first().waitFor();
    equal(await page.locator("tbody tr:not(.space)").count(), 1, "how many rows");
    await page.getByLabel("Reason").selectOption({ label: "holder gone" });
    await page.getByText("No lock matches.").waitFor();
    await shot(page, "look");
  });
}

export async function stores_show_what_doctor_finds({ browser, shot }) {
  await visit(browser, { page: { hash: "#/stores" } }, async (page, server) => {
    await page.getByText("answers").waitFor();
    await page.getByRole("heading", { name: /^main/ }).waitFor();
    await page.getByRole("cell", { name: "fine" }).first().waitFor();
    await page.getByText(/^the store works/).waitFor();
    assert((await page.content()).includes(server.url.replace("sqlite:", "")), "its URL is there");
    await shot(page, "stores", { fullPage: true });
  });
}

// What was before the page was opened, only the store can tell.
export async function a_trail_tells_what_was_before({ browser, shot }) {
  const server = await Server.start();
  try {
    const trail = ["-u", `${server.url}?history=100`];
    server.command(...trail, "run", "report", "--", "sleep", "0.2");
    server.command(...trail, "lock", "--ttl", "100ms", "--note", "frozen", "report");
    await eventually(() => !server.locks().has("report"));
    server.command(...trail, "run", "report", "--", "true");
    const page = await openPage(browser, server);
    await page.getByRole("heading", { name: "1 lock was lost in the last hour." }).waitFor();
    await page.getByRole("link", { name: "report" }).click();
    await page.getByText("From the trail that the store keeps.").waitFor();
    await page.locator(".picture .end.lost").waitFor();
    equal(await page.locator(".picture .end.released").count(), 2, "releases that are drawn");
    const told = await page.locator(".c-what").allTextContents();
    equal(told.join(), "released,granted,lost (expired),granted,released,granted", "what happened, the newest first");
    await shot(page, "trail", { fullPage: true });
    await closePage(page);
  } finally {
    await server.close();
  }
}
