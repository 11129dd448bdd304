// The second process of a scenario: child.js ROLE URL NAME. It says each step on a line.
import { HoldfastError, open } from "holdfast";

const [role, url, name] = process.argv.slice(2) as [string, string, string];
const say = (line: string) => process.stdout.write(line + "\n");

async function main(): Promise<void> {
  const locks = await open(url);
  switch (role) {
    case "exclusion":
      await locks.acquire(name, { timeout: 0 }).catch((error: HoldfastError) => say(error.code));
      await using _held = await locks.acquire(name);
      say("held");
      await locks.close();
      return;
    case "exit": // by process.exit, with nothing given back
      await locks.acquire(name, { ttl: 600_000 });
      say("held");
      process.exit(0);
    case "end": // by having nothing more to do
      await locks.acquire(name, { ttl: 600_000 });
      say("held");
      return;
    case "throw":
      await locks.acquire(name, { ttl: 600_000 });
      say("held");
      setImmediate(() => {
        throw new Error("nobody catches this");
      });
      return;
    case "exit-waiting": // while bids wait, a job is under way and a release too
      for (let i = 0; i < 20; i++) locks.acquire(name).catch(() => {});
      for (let i = 0; i < 20; i++) locks.inspect().catch(() => {});
      (await locks.acquire(name + "/own", { ttl: 600_000 })).release().catch(() => {});
      await locks.acquire(name + "/kept", { ttl: 600_000 });
      while ((await locks.inspect({ name })).length < 21);
      say("waiting");
      process.exit(0);
  }
}

void main();
