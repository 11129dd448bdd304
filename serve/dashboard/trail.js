// What happened to one lock, as records in the order of time, and as lanes to draw: one for each ticket.
//
// A record is {at, what, ticket, generation, mode, host, user, pid, program, note, held_ms, cause}, `at` in milliseconds of
// wall time. A store that keeps a trail gives some; the page adds what it sees itself:
//
//     waiting -> granted -> risk <-> safe -> released | lost | broken | delay -> ... | letgo | ended
//        `---> withdrawn | vanished
//
// "letgo" is said where the page saw a holder go before its lease can have run out: released or broken; "ended" where it
// cannot know.

import { isOverdue } from "./lock.js";

const MOST_RECORDS = 400;      // of one lock
const MOST_IN_ALL = 20000;     // then the lock that was quiet for longest is forgotten
const DOUBT_MS = 500;          // a lease of which more is left has not run out
export const ENDS = new Set(["released", "lost", "broken", "withdrawn", "vanished", "letgo", "ended"]);

function byTicket(lock) {
  const all = new Map();
  for (const entry of lock?.holders ?? []) all.set(entry.ticket, entry);
  for (const entry of lock?.queue ?? []) all.set(entry.ticket, entry);
  return all;
}

function record(what, entry, at, more) {
  const { ticket, generation, mode, host, user, pid, program, note } = entry;
  return { at, what, ticket, generation, mode, host, user, pid, program, note, ...more };
}

function howItEnded(entry, before, now) {
  if (entry.place === "waiting") return "withdrawn";
  if (entry.place === "lingering") return "lost";
  const left = entry.remaining_ms === null ? Infinity : entry.remaining_ms - (now - before.at);
  if (left > DOUBT_MS) return "letgo";
  return isOverdue(entry) ? "lost" : "ended";
}

// When the first of those got in that were not in before, or now: whoever held the lock alone had left by then.
function granted(old, current, wall) {
  const ages = [...current.values()].filter((e) => e.place === "inside" && old.get(e.ticket)?.place !== "inside").map((e) => e.age_ms);
  return wall - Math.max(0, ...ages);
}

// The records that lead from one reading of a lock to the next; `before` may be null. `now` is performance.now().
export function compare(before, after, now, wall) {
  const old = byTicket(before), current = byTicket(after), found = [];
  const next = granted(old, current, wall);
  for (const [ticket, entry] of old) {
    if (!current.has(ticket)) found.push(record(howItEnded(entry, before, now), entry, entry.place === "waiting" ? wall : next));
  }
  for (const [ticket, entry] of current) {
    const was = old.get(ticket);
    const began = wall - entry.age_ms;
    if (!was && entry.place === "waiting") found.push(record("waiting", entry, began));
    else if (entry.place === "inside" && was?.place !== "inside") found.push(record("granted", entry, began));
    else if (entry.place === "lingering" && was?.place === "inside") found.push(record("delay", entry, wall));
    if (entry.place === "inside" && isOverdue(entry) !== (was ? isOverdue(was) : false))
      found.push(record(isOverdue(entry) ? "risk" : "safe", entry, wall));
  }
  return found;
}

// What the page has seen, bounded.
export class Memory {
  constructor() {
    this.since = Date.now();
    this.locks = new Map();
    this.count = 0; // of all records
    this.broken = new Set(); // tickets that were broken from this page
  }

  add(key, records) {
    if (records.length === 0) return;
    const list = this.of(key);
    this.forget(key); // and put in again: the last one touched is the last to be forgotten
    for (const r of records) {
      if ((r.what === "letgo" || r.what === "ended") && this.broken.delete(r.ticket)) r.what = "broken";
      list.push(r);
    }
    list.splice(0, list.length - MOST_RECORDS);
    this.locks.set(key, list);
    this.count += list.length;
    while (this.count > MOST_IN_ALL) this.forget(this.locks.keys().next().value);
  }

  forget(key) {
    this.count -= this.of(key).length;
    this.locks.delete(key);
  }

  of(key) {
    return this.locks.get(key) ?? [];
  }
}

// The store's trail is believed; of what the page has seen, only what a trail does not tell is added.
export function merge(kept, seen) {
  const told = new Set(kept.map((r) => `${r.ticket} ${r.what}`));
  const over = new Set(kept.filter((r) => ENDS.has(r.what)).map((r) => r.ticket));
  const more = seen.filter((r) => !told.has(`${r.ticket} ${r.what}`) && !(ENDS.has(r.what) && over.has(r.ticket)));
  return [...kept, ...more].sort((a, b) => a.at - b.at);
}

function openLane(lanes, r) {
  let lane = lanes.get(r.ticket);
  if (!lane) {
    lane = { ticket: r.ticket, who: r, wait: null, held: null, risks: [], delay: null, end: null, over: false };
    lanes.set(r.ticket, lane);
  }
  return lane;
}

const STEPS = {
  waiting(lane, r) {
    lane.wait ??= { from: r.at };
  },
  granted(lane, r) {
    if (lane.wait && lane.wait.to === undefined) lane.wait.to = r.at;
    else if (!lane.wait && r.waited_ms > 0) lane.wait = { from: r.at - r.waited_ms, to: r.at };
    lane.held ??= { from: r.at };
    lane.who = r; // now with its token
  },
  risk(lane, r) {
    lane.risks.push({ from: r.at });
  },
  safe(lane, r) {
    const last = lane.risks.at(-1);
    if (last && last.to === undefined) last.to = r.at;
  },
  delay(lane, r) {
    if (lane.held) lane.held.to = r.at;
    lane.delay ??= { from: r.at };
    lane.end ??= { at: r.at, what: "lost" };
  },
};

function finish(lane, r) {
  if (!lane.held && !lane.wait && r.waited_ms > 0) lane.wait = { from: r.at - r.waited_ms };
  if (!lane.held && r.generation) lane.held = { from: r.at - (r.held_ms ?? 0) };
  for (const span of [lane.wait, lane.held, lane.risks.at(-1), lane.delay]) {
    if (span && span.to === undefined) span.to = r.at;
  }
  lane.end ??= { at: r.at, what: r.what };
  lane.over = true;
}

// Lanes in the order in which they begin; spans that go on have no `to`.
export function lanes(records, lock, now, wall) {
  const found = new Map();
  for (const r of records) {
    const lane = openLane(found, r);
    if (STEPS[r.what]) STEPS[r.what](lane, r);
    else finish(lane, r);
  }
  const present = byTicket(lock);
  for (const [ticket, entry] of present) {
    const at = wall - entry.age_ms - (now - lock.at);
    const lane = openLane(found, { ...entry, at });
    if (entry.place === "waiting") lane.wait ??= { from: at };
    else lane.held ??= { from: at };
    lane.who = entry;
  }
  for (const lane of found.values()) {
    if (!lane.over && !present.has(lane.ticket) && lock !== null) closeUnseen(lane, wall);
  }
  return [...found.values()].sort((a, b) => start(a) - start(b));
}

// A grant whose end is in no record: it is drawn as a moment, not as a hold that goes on.
function closeUnseen(lane, wall) {
  const last = lane.delay ?? lane.held ?? lane.wait;
  if (last && last.to === undefined) last.to = Math.min(wall, last.from + 1);
}

export function start(lane) {
  return lane.wait?.from ?? lane.held?.from ?? lane.end?.at ?? 0;
}

export function end(lane, wall) {
  return Math.max(...[lane.wait, lane.held, lane.delay].filter(Boolean).map((span) => span.to ?? wall), lane.end?.at ?? 0);
}
