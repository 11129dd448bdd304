// Takes the pictures of docs/OPERATIONS.md from a real run, into the directory that is named: see scripts/record-dashboard.
// Each program runs under a host name of its own, in a UTS namespace; nothing outside is touched.

import { spawn } from "node:child_process";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { Server, eventually, openPage, row, settled } from "./served.mjs";

const [folder] = process.argv.slice(2);
const server = await Server.start({ options: ["--allow-break"] });

function on(host, ...words) {
  const child = spawn("unshare", ["--uts", "sh", "-c", 'hostname "$1"; shift; exec "$@"', "sh", host, process.env.HOLDFAST, "-u", server.url, ...words],
    { env: server.environment(), stdio: "ignore" });
  server.children.add(child);
  return child;
}

const entries = (name) => server.locks().get(name) ?? { holders: [], queue: [] };
const holds = (name, host) => eventually(() => entries(name).holders.some((entry) => entry.host === host));
const waits = (name, count) => eventually(() => entries(name).queue.length === count);
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox", "--disable-gpu"] });

try {
  const page = await openPage(browser, server, { hash: "#/lock/main/report", viewport: { width: 1100, height: 780 } });
  for (const [host, ...words] of [
    ["db1", "lock", "--never-expires", "--note", "until the new index is there", "reindex"],
    ["db1", "lock", "--ttl", "2h", "--note", "moves to db2", "maintenance"],
    ["web1", "run", "--note", "night of the 19th", "backup/srv", "--", "sleep", "600"],
    ["web2", "run", "--limit", "3", "licences/cad", "--", "sleep", "600"],
    ["web3", "run", "--limit", "3", "licences/cad", "--", "sleep", "600"],
    ["web3", "run", "import/customers", "--", "sleep", "600"],
  ]) on(host, ...words);
  const first = on("web1", "run", "--ttl", "6s", "report", "--", "sleep", "600");
  await holds("report", "web1");
  const second = on("web2", "run", "--ttl", "6s", "report", "--", "sleep", "600");
  await waits("report", 1);
  await page.getByText(/for [4-9] s\./).waitFor();
  first.kill("SIGTERM");
  await holds("report", "web2");
  on("web3", "run", "--ttl", "6s", "report", "--", "sleep", "600");
  await waits("report", 1);
  second.kill("SIGSTOP"); // frozen: its lease runs out
  await page.locator(".picture .end.lost").waitFor();
  await holds("report", "web3");
  on("web4", "run", "--ttl", "6s", "report", "--", "sleep", "600");
  await waits("report", 1);
  await page.getByText(/for [3-9] s\./).waitFor();
  await page.screenshot({ path: join(folder, "dashboard-lock.png") });

  await page.getByRole("link", { name: "Locks", exact: true }).click();
  await row(page, "reindex").waitFor();
  await settled(page);
  await page.screenshot({ path: join(folder, "dashboard.png") });
  await page.context().close();

  const phone = await openPage(browser, server, { viewport: { width: 390, height: 760 }, colorScheme: "dark" });
  await row(phone, "backup/srv").waitFor();
  await phone.screenshot({ path: join(folder, "dashboard-phone.png") });
} finally {
  for (const child of server.children) child.kill("SIGCONT");
  await browser.close();
  await server.close();
}
