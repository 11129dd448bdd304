// What a user of the npm packages does: use.cjs DIRECTORY.
const { open } = require("holdfast");
(async () => {
  const locks = await open(`sqlite:${process.argv[2]}/locks.db`);
  const held = await locks.acquire("a");
  const refused = await locks.acquire("a", { timeout: 0 }).then(() => "", (error) => error.name);
  if (refused !== "BusyError") throw new Error(`not refused: ${refused}`);
  await held.release();
  await locks.close();
  console.log(`# Node.js ${process.version}`);
})();
