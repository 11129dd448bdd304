// Breaking, and tokens.

import { Server, assert, closePage, equal, openPage, row } from "./served.mjs";

const TOKENS = "read reader-reader-reader\nbreak breaker-breaker-breaker\n";

export async function break_is_hidden_unless_the_server_allows_it({ browser }) {
  const server = await Server.start();
  try {
    server.command("lock", "--ttl", "10m", "stuck");
    const page = await openPage(browser, server, { hash: "#/lock/main/stuck" });
    await page.getByText("holds", { exact: true }).waitFor();
    equal(await page.getByRole("button", { name: /Break/ }).count(), 0, "buttons that break");
    await closePage(page);
  } finally {
    await server.close();
  }
}

export async function break_asks_first_and_then_breaks({ browser, shot }) {
  const server = await Server.start({ options: ["--allow-break"] });
  try {
    server.command("lock", "--ttl", "10m", "stuck");
    const page = await openPage(browser, server, { hash: "#/lock/main/stuck" });
    const button = page.getByRole("button", { name: /^Break the lock of/ });
    await button.click();
    const dialog = page.getByRole("dialog", { name: "Break “stuck”?" });
    await dialog.waitFor();
    await shot(page, "break");
    equal(await page.evaluate(() => document.activeElement.textContent), "Cancel", "what has the focus");
    await page.keyboard.press("Enter");
    await dialog.waitFor({ state: "hidden" });
    assert(server.locks().has("stuck"), "Cancel broke the lock");
    await button.click();
    await dialog.getByText("At once").click();
    await dialog.getByRole("button", { name: "Break it" }).click();
    await page.getByText("Nobody holds it, nobody waits.").waitFor();
    assert(!server.locks().has("stuck"), "it is broken");
    await page.getByRole("cell", { name: "broken" }).waitFor();
    await closePage(page);
  } finally {
    await server.close();
  }
}

export async function a_break_that_is_refused_says_why({ browser }) {
  const server = await Server.start({ options: ["--allow-break"] });
  try {
    server.command("lock", "--never-expires", "gone");
    const page = await openPage(browser, server, { hash: "#/lock/main/gone" });
    await page.getByRole("button", { name: /^Break the lock of/ }).click();
    await page.getByText("It has no lease to wait for").waitFor();
    const { ticket } = server.locks().get("gone").holders[0];
    server.command("break", "--now", "--ticket", ticket, "gone");
    await page.getByRole("button", { name: "Break it" }).click();
    await page.getByRole("alert").filter({ hasText: /\w/ }).waitFor();
    await closePage(page);
  } finally {
    await server.close();
  }
}

export async function a_token_is_asked_for_and_kept_in_the_tab_only({ browser, shot }) {
  const server = await Server.start({ options: ["--allow-break"], tokens: TOKENS });
  try {
    server.command("lock", "--ttl", "10m", "guarded");
    const page = await openPage(browser, server);
    const dialog = page.getByRole("dialog", { name: "This server asks for a token" });
    await dialog.waitFor();
    await shot(page, "token");
    await page.getByRole("textbox", { name: "Token" }).fill("not-the-right-one-at-all");
    await page.keyboard.press("Enter");
    await page.getByText("The server refused this token.").waitFor();
    equal(await page.getByText("guarded").count(), 0, "what is shown without a token");
    await page.getByRole("textbox", { name: "Token" }).fill("reader-reader-reader");
    await page.keyboard.press("Enter");
    await row(page, "guarded").waitFor();
    const kept = await page.evaluate(() => [JSON.stringify(localStorage), document.cookie, location.href, document.documentElement.outerHTML].join());
    assert(!kept.includes("reader-reader"), "the token is only in sessionStorage");
    await page.reload();
    await row(page, "guarded").waitFor();
    const other = await page.context().newPage();
    await other.goto(server.origin);
    await other.getByRole("dialog", { name: "This server asks for a token" }).waitFor();
    await other.close();
    await page.getByRole("button", { name: "Forget the token" }).click();
    await dialog.waitFor();
    await closePage(page);
  } finally {
    await server.close();
  }
}
