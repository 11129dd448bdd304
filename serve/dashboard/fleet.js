// The stores and their locks as the server tells them: one list of stores, and for each of them its locks, which are read
// in pages and then follow the stream of events. Events tell who holds and who waits, not that a lease was renewed: so
// the pages are read again now and then, the less often the more there are, and never while nobody looks.

import * as api from "./api.js";
import { inPath } from "./format.js";
import { Lock } from "./lock.js";
import { Memory, compare } from "./trail.js";

const PAGE = 1000, PORTION = 500;
const STORES_EVERY_MS = 5000;
const LOCKS_EVERY_MS = 4000; // and 2 ms more for each lock
const RECENT_MS = 3600000;
const RETRY_MS = [500, 1000, 2000, 5000, 10000];
const SILENT_MS = 45000; // a stream without even a heartbeat is dead

const pause = (ms, signal) => new Promise((resolve) => {
  const timer = setTimeout(resolve, ms);
  signal?.addEventListener("abort", () => { clearTimeout(timer); resolve(); }, { once: true });
});

function seen() {
  return document.visibilityState === "hidden"
    ? new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }))
    : Promise.resolve();
}

export class Store {
  constructor(json) {
    this.locks = new Map(); // by name
    this.loaded = false;
    this.live = false;
    this.lastId = null; // of the last event
    this.keepsTrail = null; // not known
    this.recent = [];       // losses and breaks that its trail tells
    this.update(json);
  }

  update({ id, url, kind, capabilities, up, error }) {
    Object.assign(this, { id, url, kind, capabilities: capabilities ?? [], up, error });
  }

  path(rest) {
    return `/v1/stores/${encodeURIComponent(this.id)}${rest}`;
  }
}

export class Fleet {
  // `changed()` is called whenever anything here is another than before; `askToken(wrong)` resolves when there is one.
  constructor({ changed, askToken }) {
    this.changed = changed;
    this.askToken = askToken;
    this.stores = new Map();
    this.memory = new Memory();
    this.answered = 0;   // wall time of the last answer
    this.blind = false;  // the server itself does not answer
    this.loaded = false;
    this.mayBreak = false;
  }

  // Runs for as long as the page is open.
  async start() {
    for (;;) {
      const asked = Date.now();
      await this.attempt(() => this.readStores());
      this.blind = this.answered < asked;
      this.changed();
      await pause(STORES_EVERY_MS);
      await seen();
    }
  }

  // One question: its answer, or undefined. A refused token is asked for again.
  async attempt(question) {
    try {
      const answer = await question();
      this.answered = Date.now();
      return answer;
    } catch (error) {
      if (error instanceof api.Refused) this.answered = Date.now();
      if (error.status === 401) await this.askToken(api.token() !== null);
      return undefined;
    }
  }

  async readStores() {
    const { stores, allow_break: mayBreak } = await api.get("/v1/stores");
    this.mayBreak = mayBreak === true;
    const ids = new Set(stores.map((store) => store.id));
    for (const id of this.stores.keys()) {
      if (!ids.has(id)) this.stores.delete(id);
    }
    for (const json of stores) {
      const store = this.stores.get(json.id);
      if (store) {
        store.update(json);
        continue;
      }
      const fresh = new Store(json);
      this.stores.set(json.id, fresh);
      this.keepFollowing(fresh);
      this.keepReading(fresh);
    }
    this.loaded = true;
  }

  here(store) {
    return this.stores.get(store.id) === store;
  }

  // Reads the pages again and again.
  async keepReading(store) {
    while (this.here(store)) {
      await this.attempt(() => this.readLocks(store));
      await this.attempt(() => this.readRecent(store));
      this.changed();
      await pause(LOCKS_EVERY_MS + 2 * store.locks.size);
      await seen();
    }
  }

  async readLocks(store) {
    const began = performance.now(); // what is told was so at that time or later
    let after = null;
    do {
      const query = new URLSearchParams({ limit: PAGE });
      if (after !== null) query.set("after", after);
      const asked = performance.now();
      const page = await api.get(store.path(`/locks?${query}`));
      await this.takeAll(store, page.locks, asked);
      after = page.next ?? null;
      this.changed();
    } while (after !== null);
    this.forgetBefore(store, began);
    store.loaded = true;
    this.answered = Date.now();
  }

  // Losses and breaks of the last hour, where the store keeps a trail.
  async readRecent(store) {
    if (store.keepsTrail === false) return;
    const kept = await this.readTrail(store, null, RECENT_MS);
    store.recent = kept.filter((r) => r.what === "lost" || r.what === "broken");
  }

  // The records of one name, or of all (null), of the last `span_ms`; none if the store keeps no trail.
  async readTrail(store, name, span_ms) {
    const query = name === null ? "" : `name=${inPath(name)}&`;
    try {
      const { history } = await api.get(store.path(`/history?${query}since_ms=${Math.max(0, Date.now() - span_ms)}`));
      // Who holds now is told in any case: that alone is no trail.
      if (/[?&]history=/.test(store.url) || history.some((record) => record.what !== "granted")) store.keepsTrail = true;
      return history.map((record) => ({ ...record, at: record.at_ms }));
    } catch (error) {
      if (!(error instanceof api.Refused) || error.status === 401) throw error;
      store.keepsTrail = false;
      return [];
    }
  }

  async keepFollowing(store) {
    for (let failures = 0; this.here(store); failures++) {
      const stop = new AbortController();
      let silence = setTimeout(() => stop.abort(), SILENT_MS);
      let alive = false;
      await this.attempt(() => api.follow(store.path("/events"), {
        signal: stop.signal,
        lastId: store.lastId,
        onAlive: () => {
          clearTimeout(silence);
          silence = setTimeout(() => stop.abort(), SILENT_MS);
          alive = store.live = true;
        },
        onEvent: (event) => this.onEvent(store, event),
      }));
      clearTimeout(silence);
      store.live = false;
      this.changed();
      if (alive) failures = 0;
      await pause(RETRY_MS[Math.min(failures, RETRY_MS.length - 1)]);
    }
  }

  // "locks": all of them, or those that changed; "away" and "back": whether the store answers.
  async onEvent(store, { event, data, id }) {
    const told = JSON.parse(data);
    if (event === "away" || event === "back") {
      store.up = event === "back";
      store.error = told.error ?? null;
    } else if (event === "locks") {
      const at = performance.now() - told.as_of_ms;
      await this.takeAll(store, told.locks, at);
      if (told.full) this.forgetBefore(store, at);
      store.lastId = id;
    }
    this.changed();
  }

  // In portions, so that the page goes on while a crowd comes in.
  async takeAll(store, list, at) {
    for (let i = 0; i < list.length; i++) {
      if (i % PORTION === PORTION - 1) await pause(0);
      this.take(store, list[i], at);
    }
  }

  // What was not told since is not there any more.
  forgetBefore(store, at) {
    for (const lock of store.locks.values()) {
      if (lock.at < at) this.take(store, { name: lock.name }, at);
    }
  }

  // A reading of one lock, made at `at`: what led to it is remembered. An older one than the last changes nothing.
  take(store, json, at) {
    const before = store.locks.get(json.name) ?? null;
    if (before !== null && before.at > at) return;
    const lock = new Lock(store.id, json, at);
    if (before !== null || store.loaded)
      this.memory.add(lock.key, compare(before, lock, performance.now(), Date.now()));
    if (lock.free) store.locks.delete(lock.name);
    else store.locks.set(lock.name, lock);
  }

  *locks() {
    for (const store of this.stores.values()) yield* store.locks.values();
  }

  // Losses and breaks of the last hour: told by trails, or seen.
  recent() {
    const after = Date.now() - RECENT_MS;
    const found = [];
    for (const store of this.stores.values()) {
      for (const r of store.recent) found.push({ ...r, store: store.id });
    }
    for (const [key, records] of this.memory.locks) {
      const [store, name] = key.split("\n");
      for (const r of records) {
        if ((r.what === "lost" || r.what === "broken") && !this.stores.get(store)?.keepsTrail)
          found.push({ ...r, store, name });
      }
    }
    return found.filter((r) => r.at >= after).sort((a, b) => b.at - a.at);
  }
}
