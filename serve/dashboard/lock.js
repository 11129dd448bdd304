// One lock as the server told it, and what follows from that by now. Times of the server are spans (age_ms,
// remaining_ms), so no two clocks are compared: each counts from when the reading came in.

export const LONG_HOLD_MS = 3600000;
export const LONG_WAIT_MS = 60000;
export const OVERDUE = 1 / 3; // a client renews after a third of its lease: below the last third it missed twice

// What a reason weighs: 2 wants somebody soon, 1 a look.
const WEIGHTS = { gone: 2, overdue: 2, never: 1, long: 1, waits: 1 };

export function age(entry, at, now) {
  return entry.age_ms + (now - at);
}

// null: it does not end by itself.
export function left(entry, at, now) {
  return entry.remaining_ms === null ? null : Math.max(0, entry.remaining_ms - (now - at));
}

export function isOverdue(entry) {
  return entry.place === "inside" && entry.remaining_ms !== null && entry.ttl_ms > 0 &&
    entry.remaining_ms < entry.ttl_ms * OVERDUE;
}

export class Lock {
  constructor(store, json, at) {
    this.store = store;
    this.name = json.name;
    this.key = `${store}\n${json.name}`;
    this.holders = json.holders ?? [];
    this.queue = json.queue ?? [];
    this.at = at; // performance.now() of the reading
    this.first = this.holders.reduce((a, b) => (a && a.age_ms >= b.age_ms ? a : b), null);
    const shown = this.first ?? this.queue[0] ?? {};
    this.shown = shown;
    this.words = [json.name, shown.host, shown.user, shown.program, shown.note, shown.generation, shown.ticket]
      .join("\n").toLowerCase();
  }

  get free() {
    return this.holders.length === 0 && this.queue.length === 0;
  }

  age(now) {
    return this.first ? age(this.first, this.at, now) : -1;
  }

  // Of the holder that ends first; null: none does by itself.
  left(now) {
    let least = null;
    for (const entry of this.holders) {
      const ms = left(entry, this.at, now);
      if (ms !== null && (least === null || ms < least)) least = ms;
    }
    return least;
  }

  longestWait(now) {
    return this.queue.reduce((most, entry) => Math.max(most, age(entry, this.at, now)), 0);
  }

  // The reasons to look at it, the weightiest first: "gone", "overdue", "never", "long", "waits".
  reasons(now) {
    const found = [];
    if (this.holders.some((entry) => entry.place === "lingering")) found.push("gone");
    if (this.holders.some(isOverdue)) found.push("overdue");
    if (this.holders.some((entry) => entry.ttl_ms === null)) found.push("never");
    else if (this.age(now) >= LONG_HOLD_MS) found.push("long");
    if (this.queue.length > 0 && this.longestWait(now) >= LONG_WAIT_MS) found.push("waits");
    return found;
  }

  weight(reasons) {
    return reasons.reduce((most, reason) => Math.max(most, WEIGHTS[reason]), 0);
  }
}
