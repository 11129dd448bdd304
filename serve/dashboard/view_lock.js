// One lock: a sentence, its time line, who holds it, who waits, what happened.

import * as api from "./api.js";
import { askBreak } from "./dialogs.js";
import { h, setAttribute, setText } from "./dom.js";
import { clock, duration, inPath, mode, moment, prose, visible, who } from "./format.js";
import { age, left, Lock } from "./lock.js";
import { TimeLine, legend } from "./timeline.js";
import { end, lanes, merge, start } from "./trail.js";
import { blindText, reasonText } from "./verdict.js";
import { t } from "./words.js";

const LOOK_EVERY_MS = 1000;
const TRAIL_EVERY_MS = 4000;
const SPANS = [20000, 60000, 300000, 900000, 3600000, 21600000, 86400000, 604800000];
const FITS = 12; // so many lanes are shown where nobody chose a span
const MOST_EVENTS = 200, MOST_ENTRIES = 200;

export class LockView {
  constructor(fleet, { store, name, wish }) {
    Object.assign(this, { fleet, name, wish });
    this.store = fleet.stores.get(store) ?? null;
    this.storeId = store;
    this.key = `${store}\n${name}`;
    this.kept = [];
    this.open = true;
    this.title = visible(name);
    this.build();
    this.look();
  }

  get focusTarget() {
    return this.h1;
  }

  close() {
    this.open = false;
  }

  build() {
    this.h1 = h("h1", { tabindex: "-1", class: "name" }, h("bdi", null, visible(this.name)));
    this.sentence = h("p", { class: "sentence" });
    this.reasons = h("ul", { class: "problems" });
    this.picture = h("div", { class: "picture" });
    this.key_ = h("ul", { class: "legend" });
    this.source = h("p", { class: "source" });
    this.spans = h("select", { id: "span", onchange: () => this.chooseSpan() },
      h("option", { value: 0 }, t("time.fits")),
      SPANS.map((ms) => h("option", { value: ms, selected: ms === this.wish.span }, t("time.last", { age: duration(ms) }))));
    this.holders = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": t("lock.holders") });
    this.queue = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": t("lock.waiting") });
    this.events = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": t("events.title") });
    this.value = h("section", { class: "part", hidden: true });
    this.element = h("div", { class: "view lock" },
      h("section", { class: "heading" },
        h("p", { class: "crumb" }, h("a", { href: "#/" }, t("lock.back")), this.fleet.stores.size > 1 ? ` · ${visible(this.storeId)}` : ""),
        this.h1, this.sentence, this.reasons),
      this.part("time.title", h("label", { for: "span", class: "inline" }, h("span", null, t("time.span")), this.spans),
        this.picture, this.key_, this.source),
      this.part("lock.holders", this.holders), this.part("lock.waiting", this.queue), this.value,
      this.part("events.title", this.events));
  }

  part(title, ...children) {
    return h("section", { class: "part" }, h("h2", null, t(title)), children);
  }

  chooseSpan() {
    this.wish.span = Number(this.spans.value);
    this.askedTrail = 0;
    this.update(performance.now());
  }

  // One lock is cheap to ask for, so here a late renewal is seen within a second.
  async look() {
    while (this.open) {
      this.store ??= this.fleet.stores.get(this.storeId) ?? null;
      if (this.store && document.visibilityState !== "hidden") await this.ask();
      await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
    }
  }

  async ask() {
    const asked = performance.now();
    await this.fleet.attempt(async () => {
      const json = await api.get(`${this.store.path("/locks/")}${inPath(this.name)}?value=1`);
      this.fleet.take(this.store, json, asked);
      this.showValue(json.value);
    });
    if (performance.now() - (this.askedTrail ?? 0) > TRAIL_EVERY_MS || !this.askedTrail) {
      this.askedTrail = performance.now();
      if (this.store.keepsTrail !== false)
        this.kept = (await this.fleet.attempt(() => this.fleet.readTrail(this.store, this.name, this.wish.span || SPANS.at(-1)))) ?? this.kept;
    }
    if (this.open) this.update(performance.now());
  }

  showValue(value) {
    this.value.hidden = !value?.value;
    if (this.value.hidden) return;
    this.value.replaceChildren(h("h2", null, t("lock.value")), h("pre", { tabindex: "0" }, visible(value.value)),
      value.doubt ? h("p", { class: "warn" }, t("lock.doubt")) : "");
  }

  get lock() {
    return this.store?.locks.get(this.name) ?? new Lock(this.storeId, { name: this.name }, performance.now());
  }

  update(now) {
    const { lock } = this, wall = Date.now();
    setText(this.sentence, this.store ? this.describe(lock, now) : this.fleet.loaded ? t("lock.nostore", { store: visible(this.storeId) }) : "");
    this.showTrouble(lock, now);
    const records = merge(this.kept, this.fleet.memory.of(this.key));
    this.drawTime(lanes(records, lock, now, wall), wall);
    this.fillEntries(this.holders, lock.holders, "lock.nobody.holds", now);
    this.fillEntries(this.queue, lock.queue, "lock.nobody.waits", now);
    this.fillEvents(records);
  }

  // What is shown may be old, or wants a look.
  showTrouble(lock, now) {
    const items = lock.reasons(now).map((reason) => h("li", { class: "warn" }, reasonText(lock, reason, now)));
    if (this.fleet.blind) items.unshift(h("li", { class: "bad" }, blindText(this.fleet)));
    else if (this.store?.up === false)
      items.unshift(h("li", { class: "bad" }, t("verdict.down", { store: visible(this.storeId) }), " ", visible(this.store.error?.text ?? "")));
    this.reasons.replaceChildren(...items);
    this.reasons.hidden = items.length === 0;
  }

  describe(lock, now) {
    const { first } = lock;
    if (!first) return lock.queue.length > 0 ? t("lock.queue", { n: lock.queue.length }) : t("lock.free");
    if (first.place === "lingering") return t("lock.gone", { who: who(first), left: duration(lock.left(now) ?? 0) });
    const held = duration(lock.age(now));
    return lock.holders.length > 1 ? t("lock.many", { n: lock.holders.length, age: held }) : t("lock.held", { who: who(first), age: held });
  }

  // The smallest span in which the last lanes begin.
  fitting(all, wall) {
    const first = Math.min(wall, ...all.slice(-FITS).map(start));
    return SPANS.find((ms) => ms >= wall - first) ?? SPANS.at(-1);
  }

  drawTime(all, wall) {
    const from = wall - (this.wish.span || this.fitting(all, wall));
    const width = Math.max(280, Math.floor(this.picture.clientWidth || 800));
    const line = new TimeLine({ lanes: all, from, to: wall, width, name: this.name });
    const empty = line.lanes.length === 0;
    this.picture.replaceChildren(empty ? h("p", { class: "none" }, t("time.none")) : line.draw());
    const explained = empty ? [] : legend(all.filter((lane) => end(lane, wall) >= from));
    const signature = explained.map(([kind]) => kind).join();
    if (this.key_.dataset.shown !== signature) {
      this.key_.dataset.shown = signature;
      this.key_.replaceChildren(...explained.map(([, text, sample]) => h("li", null, sample, text)));
    }
    const told = this.store?.keepsTrail ? t("time.trail") : t("time.seen", { at: clock(this.fleet.memory.since) });
    setText(this.source, line.hidden ? `${told} ${t("time.before", { n: line.hidden })}` : told);
  }

  // Rows are kept while the tickets are the same, so that the focus stays on a button.
  fillEntries(place, all, none, now) {
    const entries = all.slice(0, MOST_ENTRIES);
    const signature = entries.map((entry) => `${entry.ticket}${entry.place}`).join() + all.length + this.fleet.mayBreak;
    if (place.dataset.shown !== signature) {
      place.dataset.shown = signature;
      place.replaceChildren(entries.length === 0 ? h("p", { class: "none" }, t(none)) : this.entryTable(entries),
        all.length > entries.length ? h("p", { class: "none" }, t("more", { n: all.length - entries.length })) : "");
    }
    const { at } = this.lock;
    [...place.querySelectorAll("tbody tr")].forEach((tr, i) => {
      const entry = entries[i], rest = left(entry, at, now);
      setText(tr.querySelector(".c-age"), duration(age(entry, at, now)));
      const lefts = rest !== null ? duration(rest) : t(entry.ttl_ms === null ? "left.never" : "left.connection");
      setText(tr.querySelector(".c-left"), lefts);
      setAttribute(tr, "class", entry.place === "lingering" ? "warn" : "quiet");
    });
  }

  entryTable(entries) {
    const waiting = entries[0].place === "waiting";
    const columns = ["place", "who", "mode", "age", "left", "token", "note", "ticket"].filter((id) => !(waiting && id === "token"));
    const title = (id) => (id === "age" ? "column.for" : "column." + id);
    return h("table", { class: "plain" },
      h("thead", null, h("tr", null, columns.map((id) => h("th", { scope: "col", class: "c-" + id }, t(title(id)))),
        this.fleet.mayBreak ? h("td", null) : null)),
      h("tbody", null, entries.map((entry) => h("tr", null,
        columns.map((id) => h("td", { class: "c-" + id }, this.entryText(id, entry))),
        this.fleet.mayBreak ? h("td", { class: "act" }, this.breakButton(entry)) : null))));
  }

  entryText(id, entry) {
    switch (id) {
      case "place": return entry.place === "waiting" ? String(entry.position) : t("place." + entry.place);
      case "who": return who(entry);
      case "mode": return mode(entry);
      case "token": return entry.generation ?? "";
      case "note": return prose(entry.note);
      case "ticket": return entry.ticket;
      default: return "";
    }
  }

  breakButton(entry) {
    const label = t(entry.place === "waiting" ? "break.remove.of" : "break.of", { who: who(entry) });
    return h("button", {
      type: "button", class: "danger", "aria-label": label, onclick: () => {
        const now = performance.now(), { at } = this.lock;
        askBreak({
          store: this.store, name: this.name, entry, age: age(entry, at, now), left: left(entry, at, now),
          begin: () => this.fleet.memory.broken.add(entry.ticket), // its end may be told before the answer is
          failed: () => this.fleet.memory.broken.delete(entry.ticket),
          done: () => {
            this.askedTrail = 0;
            this.ask();
          },
        });
      },
    }, t(entry.place === "waiting" ? "break.remove" : "break"));
  }

  fillEvents(records) {
    const signature = `${records.length} ${records.at(-1)?.at} ${records.at(-1)?.what}`;
    if (this.events.dataset.shown === signature) return;
    this.events.dataset.shown = signature;
    const rows = records.slice(-MOST_EVENTS).reverse().map((r) => h("tr", null,
      h("td", { class: "c-when" }, moment(r.at)), h("td", { class: `c-what ${r.what}` }, t("what." + r.what), r.cause ? ` (${visible(r.cause)})` : ""),
      h("td", { class: "c-who" }, who(r)), h("td", { class: "c-age" }, r.held_ms > 0 ? duration(r.held_ms) : ""),
      h("td", { class: "c-token" }, r.generation ?? ""), h("td", { class: "c-note" }, prose(r.note))));
    const heads = ["when", "what", "who", "for", "token", "note"];
    this.events.replaceChildren(rows.length === 0 ? h("p", { class: "none" }, t("time.none"))
      : h("table", { class: "plain" }, h("thead", null, h("tr", null, heads.map((id) => h("th", { scope: "col" }, t("column." + id))))),
        h("tbody", null, rows)));
  }
}
