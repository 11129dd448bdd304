// The table of locks: all of them, or those that need a look.

import { h, onceAFrame, say, setAttribute, setText } from "./dom.js";
import { duration, mode, number, prose, visible, who } from "./format.js";
import { Table } from "./table.js";
import { t } from "./words.js";
import { Verdict, lockLink, reasonText } from "./verdict.js";

const AGES = [0, 60000, 600000, 3600000, 86400000];
const KINDS = ["all", "overdue", "gone", "never", "long", "waits"];

// How rows are ordered; what is equal goes by name.
const ORDERS = {
  name: () => 0,
  state: (a, b) => b.weight - a.weight || b.age - a.age,
  age: (a, b) => b.age - a.age,
  left: (a, b) => (a.left ?? Infinity) - (b.left ?? Infinity) || 0,
  queue: (a, b) => b.lock.queue.length - a.lock.queue.length,
  holder: (a, b) => compareText(a.lock.shown.host ?? "", b.lock.shown.host ?? ""),
};

function compareText(a, b) {
  return a < b ? -1 : a > b ? 1 : 0;
}

function select(label, options, chosen, onchange) {
  const box = h("select", { onchange: () => onchange(box.value) },
    options.map(([value, text]) => h("option", { value, selected: value === chosen }, text)));
  return h("label", null, h("span", null, label), box);
}

export class LocksView {
  // What was searched and chosen is kept in `wish`, so that a visit to a lock and back loses nothing.
  constructor(fleet, { look, wish }) {
    this.fleet = fleet;
    this.look = look;
    this.wish = wish;
    wish.sort ??= look ? "state" : "name";
    this.several = fleet.stores.size > 1;
    this.table = new Table({
      label: t("table.locks"), columns: this.columns(),
      make: (row) => this.make(row), fill: (tr, row) => this.fill(tr, row), onSort: (id) => this.sortBy(id),
    });
    this.table.showSort(wish.sort, wish.descending);
    this.verdict = look ? null : new Verdict(fleet);
    this.shown = h("p", { class: "shown", "aria-live": "off" });
    this.none = h("p", { class: "none" });
    this.filter = onceAFrame(() => this.update(performance.now()));
    this.element = h("div", { class: look ? "view look" : "view" }, this.heading(), this.tools(), this.table.element, this.none);
    this.title = t(look ? "look.title" : "locks.title");
  }

  get focusTarget() {
    return this.element.querySelector("h1");
  }

  close() {
    this.table.close();
  }

  heading() {
    if (this.verdict) return this.verdict.element;
    return h("section", { class: "heading" }, h("h1", { tabindex: "-1" }, t("look.title")), h("p", null, t("look.text")));
  }

  tools() {
    const { wish } = this;
    this.search = h("input", {
      type: "search", id: "search", placeholder: t("search.hint"), value: wish.text ?? "", autocomplete: "off",
      spellcheck: "false", oninput: () => this.change("text", this.search.value),
    });
    const ages = AGES.map((ms) => [String(ms), ms ? t("filter.least", { age: duration(ms) }) : t("filter.any")]);
    const kinds = KINDS.map((kind) => [kind, t("filter.kind." + kind)]);
    const stores = [["", t("filter.store.all")], ...[...this.fleet.stores.keys()].map((id) => [id, visible(id)])];
    return h("form", { class: "tools", role: "search", onsubmit: (event) => event.preventDefault() },
      h("label", { class: "wide" }, h("span", null, t("search")), this.search),
      select(t("filter.age"), ages, String(wish.age ?? 0), (value) => this.change("age", Number(value))),
      this.look ? select(t("filter.kind"), kinds, wish.kind ?? "all", (value) => this.change("kind", value)) : null,
      this.several ? select(t("filter.store"), stores, wish.store ?? "", (value) => this.change("store", value)) : null,
      this.shown);
  }

  change(key, value) {
    this.wish[key] = value;
    this.filter();
    clearTimeout(this.told);
    this.told = setTimeout(() => say(this.shown.textContent), 800); // once, after the last letter
  }

  columns() {
    const all = [
      { id: "name", sorts: true }, { id: "state", sorts: true }, { id: "mode" }, { id: "holder", sorts: true },
      { id: "age", sorts: true }, { id: "left", sorts: true }, { id: "queue", sorts: true }, { id: "token" }, { id: "note" },
    ];
    if (this.several) all.push({ id: "store" });
    return all.map((column) => ({ ...column, class: "c-" + column.id }));
  }

  sortBy(id) {
    this.wish.descending = this.wish.sort === id && !this.wish.descending;
    this.wish.sort = id;
    this.table.showSort(id, this.wish.descending);
    this.filter();
  }

  rows(now) {
    const { text = "", age = 0, kind = "all", store = "", sort, descending } = this.wish;
    const words = text.toLowerCase();
    const rows = [];
    for (const lock of this.fleet.locks()) {
      if (store && lock.store !== store) continue;
      if (words && !lock.words.includes(words)) continue;
      const held = lock.age(now);
      if (age && held < age) continue;
      const reasons = lock.reasons(now);
      if (this.look && (reasons.length === 0 || (kind !== "all" && !reasons.includes(kind)))) continue;
      rows.push({ key: lock.key, lock, age: held, left: lock.left(now), reasons, weight: lock.weight(reasons) });
    }
    const order = ORDERS[sort], sign = descending ? -1 : 1;
    return rows.sort((a, b) => sign * (order(a, b) || compareText(a.lock.name, b.lock.name)));
  }

  update(now) {
    this.now = now;
    this.verdict?.update(now);
    const rows = this.rows(now);
    let all = 0;
    for (const store of this.fleet.stores.values()) all += store.locks.size;
    setText(this.shown, rows.length === all ? t("shown", { n: number(all) })
      : t("shown.of", { n: number(rows.length), all: number(all) }));
    const loaded = this.fleet.loaded && [...this.fleet.stores.values()].every((store) => store.loaded || !store.up);
    this.table.element.hidden = rows.length === 0;
    this.none.hidden = rows.length > 0 || !loaded;
    const filtered = this.wish.text || this.wish.age || (this.look && (this.wish.kind ?? "all") !== "all");
    setText(this.none, t(filtered || this.wish.store ? "none.match" : this.look ? "none.look" : "none.locks"));
    this.table.set(rows);
  }

  make({ lock }) {
    const cell = (id, ...children) => h(id === "name" ? "th" : "td",
      { role: id === "name" ? "rowheader" : "cell", scope: id === "name" ? "row" : null, class: "c-" + id }, children);
    return h("tr", { role: "row" },
      this.table.columns.map(({ id }) => (id === "name"
        ? cell(id, h("a", { href: lockLink(lock.store, lock.name) }, h("bdi", null, visible(lock.name))))
        : cell(id))));
  }

  fill(tr, { lock, reasons, weight, age, left }) {
    const cells = this.texts(lock, reasons, age, left);
    setAttribute(tr, "class", ["quiet", "note", "warn"][weight]);
    this.table.columns.forEach(({ id }, i) => {
      if (id === "name") return;
      setText(tr.cells[i], cells[id]);
      if (id === "note" || id === "holder" || id === "state") setAttribute(tr.cells[i], "title", cells[id] || null);
    });
  }

  texts(lock, reasons, age, left) {
    const { first, shown } = lock, more = lock.holders.length - 1;
    return {
      state: this.state(lock, reasons),
      mode: mode(shown),
      holder: !first ? t("who.nobody") : more > 0 ? t("who.more", { who: who(first), n: number(more) }) : who(first),
      age: first ? duration(age) : "",
      left: !first ? "" : left !== null ? duration(left) : t(first.ttl_ms === null ? "left.never" : "left.connection"),
      queue: lock.queue.length > 0 ? number(lock.queue.length) : "",
      token: first?.generation ?? "",
      note: prose(shown.note),
      store: visible(lock.store),
    };
  }

  state(lock, reasons) {
    if (reasons.length > 0) return reasons.map((reason) => reasonText(lock, reason, this.now, "short")).join(" · ");
    if (lock.queue.length > 0) return t("state.waited");
    if (lock.first && !lock.first.claimed) return t("state.handed");
    return t("state.held");
  }
}
