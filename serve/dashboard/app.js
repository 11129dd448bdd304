// The page: which view is shown, in which language, and the clock that keeps it current. What it shows of the stores comes
// from fleet.js; every view has an element, update(now), close() and a place for the focus.

import * as api from "./api.js";
import { askToken } from "./dialogs.js";
import { h, onceAFrame, setAttribute, setText } from "./dom.js";
import { Fleet } from "./fleet.js";
import { LockView } from "./view_lock.js";
import { LocksView } from "./view_locks.js";
import { StoresView } from "./view_stores.js";
import { findings } from "./verdict.js";
import { setLanguage, language, t } from "./words.js";

const LANGUAGE_KEY = "holdfast-language";
const wishes = { locks: {}, look: {}, lock: {} }; // what was chosen in each view, for as long as the page is open
let view = null;

const fleet = new Fleet({ changed: onceAFrame(() => refresh()), askToken: oneAtATime(askToken) });

// Several requests may be refused at once; one question is enough.
function oneAtATime(ask) {
  let asking = null;
  return (wrong) => (asking ??= ask(wrong).finally(() => { asking = null; }));
}

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

// "#/lock/STORE/NAME" and the like; what is not known leads to the locks.
function route() {
  const [, name = "", ...rest] = location.hash.split("/");
  if (name === "lock" && rest.length === 2) return { name, store: decode(rest[0]), lock: decode(rest[1]) };
  return { name: name === "look" || name === "stores" ? name : "locks" };
}

function makeView(to) {
  if (to.name === "lock") return new LockView(fleet, { store: to.store, name: to.lock, wish: wishes.lock });
  if (to.name === "stores") return new StoresView(fleet);
  return new LocksView(fleet, { look: to.name === "look", wish: wishes[to.name] });
}

function show(takeFocus) {
  const to = route();
  view?.close();
  view = makeView(to);
  view.several = fleet.stores.size > 1;
  document.getElementById("main").replaceChildren(view.element);
  for (const link of document.querySelectorAll("#nav a"))
    setAttribute(link, "aria-current", link.dataset.route === to.name ? "page" : null);
  document.title = `${view.title} · holdfast`;
  refresh();
  if (takeFocus) {
    scrollTo(0, 0);
    view.focusTarget?.focus({ preventScroll: true });
  }
}

// A second store brings columns and filters with it.
function severalNow() {
  return view instanceof LocksView && view.several !== (fleet.stores.size > 1);
}

function refresh() {
  if (severalNow()) show(false);
  const now = performance.now();
  view.update(now);
  const live = fleet.loaded && !fleet.blind && [...fleet.stores.values()].every((store) => store.live || !store.up);
  const mark = document.getElementById("live");
  setText(mark, t(live ? "live.on" : fleet.loaded || fleet.blind ? "live.off" : "live.loading"));
  setAttribute(mark, "class", live ? "live on" : "live");
  document.body.classList.toggle("blind", fleet.blind);
  const count = findings(fleet, now).length, link = document.querySelector('[data-route="look"]');
  setText(link, count > 0 ? `${t("nav.look")} (${count})` : t("nav.look"));
}

function applyLanguage(tag) {
  setLanguage(tag);
  setText(document.getElementById("skip"), t("skip"));
  setAttribute(document.getElementById("nav"), "aria-label", t("nav.label"));
  for (const link of document.querySelectorAll("#nav a")) setText(link, t("nav." + link.dataset.route));
  const other = document.getElementById("language");
  setText(other, t("other.language"));
  setAttribute(other, "aria-label", t("other.language.label"));
  setAttribute(other, "lang", language() === "zh-CN" ? "en" : "zh-CN");
}

function switchLanguage() {
  const tag = language() === "zh-CN" ? "en" : "zh-CN";
  localStorage.setItem(LANGUAGE_KEY, tag);
  applyLanguage(tag);
  show(false);
}

function onKey(event) {
  if (event.key !== "/" || event.target.closest("input, select, textarea, dialog")) return;
  const search = document.getElementById("search");
  if (!search) return;
  event.preventDefault();
  search.focus();
}

applyLanguage(localStorage.getItem(LANGUAGE_KEY) ?? navigator.language);
document.getElementById("language").addEventListener("click", switchLanguage);
document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault(); // the hash names the view
  document.getElementById("main").focus();
});
addEventListener("hashchange", () => show(true));
addEventListener("keydown", onKey);
setInterval(() => document.visibilityState !== "hidden" && refresh(), 1000);
show(false);
if (api.token()) document.querySelector(".aside").append(
  h("button", { type: "button", class: "plain", onclick: () => { api.setToken(null); location.reload(); } }, t("token.forget")));
fleet.start();
