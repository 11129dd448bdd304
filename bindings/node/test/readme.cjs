// Makes a program of the first example of the README: test/readme.mts, which is compiled and run as it stands but for the URL.
const fs = require("node:fs");
const path = require("node:path");

const text = fs.readFileSync(path.join(__dirname, "..", "README.md"), "utf8");
const code = /```ts\n([^]*?)```/.exec(text)[1];
if (code.split("\n").length > 11) throw new Error("the first example of the README has more than ten lines");
const before = `export {}; // made from README.md
async function writeInvoice(what: { fence: bigint; signal: AbortSignal }) {
  if (what.fence <= 0n || what.signal.aborted) throw new Error("no token, or lost");
  console.log("written");
}
`;
fs.writeFileSync(
  path.join(__dirname, "readme.mts"), before + code.replace('"redis://db/0"', "process.argv[2] as string"));
