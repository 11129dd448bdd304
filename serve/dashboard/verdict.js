// The first thing to read: one sentence that says whether something is wrong, and the worst of it, each with a way to it.

import { h, say, setText } from "./dom.js";
import { clock, duration, moment, number, visible, who } from "./format.js";
import { isOverdue } from "./lock.js";
import { t } from "./words.js";

const SHOWN = 5;

// Locks with their reasons, the weightiest first, then the oldest.
export function findings(fleet, now) {
  const found = [];
  for (const lock of fleet.locks()) {
    const reasons = lock.reasons(now);
    if (reasons.length > 0) found.push({ lock, reasons, weight: lock.weight(reasons), age: lock.age(now) });
  }
  return found.sort((a, b) => b.weight - a.weight || b.age - a.age);
}

// `form` is "flag", or "short" where a table says the rest in its other columns.
export function reasonText(lock, reason, now, form = "flag") {
  const left = lock.left(now) ?? 0, late = lock.holders.find(isOverdue);
  if (reason === "overdue" && left === 0 && form === "flag") return t("flag.unsure");
  const since = reason === "waits" ? lock.longestWait(now) : reason === "overdue" ? Math.max(0, late.ttl_ms - left) : 0;
  return t(`${form}.${reason}`, {
    n: lock.queue.length, since: duration(since), left: duration(left), age: duration(lock.age(now)),
  });
}

export function blindText(fleet) {
  return fleet.answered ? t("blind.since", { at: clock(fleet.answered) }) : t("blind.never");
}

export function lockLink(store, name) {
  return `#/lock/${encodeURIComponent(store)}/${encodeURIComponent(name)}`;
}

// {level: "bad" | "warn" | "well" | "wait", text, items: [element]}
function judge(fleet, now) {
  const stores = [...fleet.stores.values()];
  const down = stores.filter((store) => !store.up);
  const recent = fleet.recent(), lost = recent.filter((r) => r.what === "lost");
  const found = findings(fleet, now);
  const items = [...down.map(downItem), ...recent.map(recentItem), ...found.map((f) => findingItem(f, now))];
  const verdict = (level, text) => ({ level, text, items });

  if (fleet.blind)
    return { level: "bad", text: t("verdict.blind"), items: [h("li", { class: "bad" }, blindText(fleet)), ...items] };
  if (!fleet.loaded) return verdict("wait", t("verdict.loading"));
  if (down.length === 1) return verdict("bad", t("verdict.down", { store: visible(down[0].id) }));
  if (down.length > 1) return verdict("bad", t("verdict.downs", { n: down.length }));
  if (lost.length > 0) return verdict("bad", t("verdict.lost", { n: lost.length }));
  if (stores.some((store) => !store.loaded)) return verdict("wait", t("verdict.loading"));
  if (found.length > 0) return verdict("warn", t("verdict.look", { n: found.length }));
  return verdict("well", t("verdict.well"));
}

function downItem(store) {
  return h("li", { class: "bad" }, h("a", { href: "#/stores" }, visible(store.id)), " ", visible(store.error?.text ?? t("store.down")));
}

function named(store, name) {
  return h("a", { href: lockLink(store, name), class: "name" }, h("bdi", null, visible(name)));
}

function recentItem(r) {
  const text = t(r.what === "lost" ? "recent.lost" : "recent.broken", { at: moment(r.at), who: who(r) });
  return h("li", { class: r.what === "lost" ? "bad" : "warn" }, named(r.store, r.name), " ", text);
}

function findingItem({ lock, reasons, weight }, now) {
  const text = reasons.map((reason) => reasonText(lock, reason, now)).join(" · ");
  return h("li", { class: weight > 1 ? "warn" : "note" }, named(lock.store, lock.name), " ", text);
}

function counts(fleet) {
  let held = 0, waiting = 0;
  for (const lock of fleet.locks()) {
    held += lock.holders.length > 0;
    waiting += lock.queue.length;
  }
  const stores = t("counts.stores", { n: fleet.stores.size });
  return t("counts", { held: number(held), waiting: number(waiting), stores });
}

export class Verdict {
  constructor(fleet) {
    this.fleet = fleet;
    this.title = h("h1", { tabindex: "-1" });
    this.counts = h("p", { class: "counts" });
    this.list = h("ul", { class: "problems", "aria-label": t("problem.list") });
    this.more = h("a", { href: "#/look", class: "more" });
    this.element = h("section", { class: "verdict" }, this.title, this.counts, this.list, this.more);
  }

  update(now) {
    const { level, text, items } = judge(this.fleet, now);
    if (this.level !== undefined && this.title.textContent !== text) say(text);
    this.level = level;
    this.element.className = `verdict ${level}`;
    setText(this.title, text);
    setText(this.counts, counts(this.fleet));
    const shown = items.slice(0, SHOWN);
    // A link that has the focus keeps it: the list is only touched if it says something else.
    shown.forEach((item, i) => {
      const old = this.list.children[i];
      if (!old) this.list.append(item);
      else if (old.querySelector("a")?.hash === item.querySelector("a")?.hash) sameLink(old, item);
      else old.replaceWith(item);
    });
    while (this.list.children.length > shown.length) this.list.lastChild.remove();
    this.list.hidden = shown.length === 0;
    this.more.hidden = items.length <= SHOWN;
    setText(this.more, t("more", { n: number(items.length - SHOWN) }));
  }
}

function sameLink(old, item) {
  old.className = item.className;
  if (old.lastChild.nodeType === Node.TEXT_NODE) setText(old.lastChild, item.lastChild.textContent);
}
