// Each store: whether it answers, what it can do, and what `holdfast doctor` finds.

import * as api from "./api.js";
import { h, setAttribute, setText } from "./dom.js";
import { visible } from "./format.js";
import { t } from "./words.js";

const PATIENCE_MS = 60000; // it asks a store that is ill, too
const LEVELS = { problem: 3, warning: 2, note: 1, fine: 0 };

class Card {
  constructor(fleet, store) {
    this.fleet = fleet;
    this.store = store;
    this.state = h("span", { class: "state" });
    this.error = h("p", { class: "bad" });
    this.verdict = h("p", { class: "sentence" });
    this.findings = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": t("store.findings", { store: visible(store.id) }) });
    this.button = h("button", { type: "button", onclick: () => this.examine() }, t("store.examine"));
    this.can = h("p", { class: "can" });
    this.element = h("section", { class: "store part" },
      h("h2", null, visible(store.id), " ", this.state), h("p", { class: "url name" }, visible(store.url ?? "")),
      this.error, this.verdict, this.findings, this.can, h("div", { class: "buttons" }, this.button));
    this.examine();
  }

  async examine() {
    this.button.disabled = true;
    setText(this.verdict, t("store.examining"));
    try {
      const { findings, verdict } = await api.get(this.store.path("/doctor"), PATIENCE_MS);
      setText(this.verdict, visible(verdict));
      this.show([...findings].sort((a, b) => LEVELS[b.level] - LEVELS[a.level]));
    } catch (error) {
      setText(this.verdict, visible(error.message));
    }
    this.button.disabled = false;
  }

  show(findings) {
    const rows = findings.map(({ level, clause, text }) => h("tr", { class: level },
      h("td", { class: "c-level" }, t("level." + level)), h("td", { class: "c-clause" }, clause ?? ""),
      h("td", { class: "c-finding" }, visible(text))));
    this.findings.replaceChildren(h("table", { class: "plain findings" },
      h("thead", null, h("tr", null, ["level", "clause", "finding"].map((id) => h("th", { scope: "col" }, t("column." + id))))),
      h("tbody", null, rows)));
  }

  update() {
    const { up, error, capabilities } = this.store;
    setText(this.state, t(up ? "store.up" : "store.down"));
    setAttribute(this.state, "class", up ? "state well" : "state bad");
    this.error.hidden = !error;
    setText(this.error, error ? visible(error.text) : "");
    setText(this.can, `${t("store.can")}: ${capabilities.join(", ")}`);
  }
}

export class StoresView {
  constructor(fleet) {
    this.fleet = fleet;
    this.cards = new Map();
    this.title = t("stores.title");
    this.h1 = h("h1", { tabindex: "-1" }, this.title);
    this.element = h("div", { class: "view stores" }, h("section", { class: "heading" }, this.h1));
  }

  get focusTarget() {
    return this.h1;
  }

  close() {}

  update() {
    for (const store of this.fleet.stores.values()) {
      if (!this.cards.has(store)) {
        const card = new Card(this.fleet, store);
        this.cards.set(store, card);
        this.element.append(card.element);
      }
    }
    for (const [store, card] of this.cards) {
      if (this.fleet.stores.get(store.id) === store) {
        card.update();
        continue;
      }
      card.element.remove();
      this.cards.delete(store);
    }
  }
}
