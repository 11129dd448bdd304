// A table of any number of rows of which only those in sight are in the page. Rows have one height, so the place of each is
// known; two empty rows stand for those above and below. The page itself scrolls, and the keys of a page work.
//
// A row keeps its element while it is in sight: a clock that ticks in a cell takes neither the focus nor a selection away.

import { h, onceAFrame, setAttribute } from "./dom.js";
import { t } from "./words.js";

const SPARE = 8; // rows above and below

export class Table {
  // columns: [{id, title, sorts, class}]; `make(row)` gives a <tr>, `fill(tr, row)` writes what may have changed.
  constructor({ label, columns, make, fill, onSort }) {
    Object.assign(this, { columns, make, fill, onSort });
    this.rows = [];
    this.elements = new Map(); // row.key -> <tr>
    this.above = h("tr", { "aria-hidden": "true", class: "space" }, h("td", { colspan: columns.length }));
    this.below = this.above.cloneNode(true);
    this.body = h("tbody", { role: "rowgroup" }, this.above, this.below);
    this.heads = columns.map((column) => this.head(column));
    this.element = h("table", { role: "table", class: "locks", "aria-label": label },
      h("thead", { role: "rowgroup" }, h("tr", { role: "row", "aria-rowindex": 1 }, this.heads)), this.body);
    this.element.addEventListener("keydown", (event) => this.onKey(event));
    this.later = onceAFrame(() => this.draw());
    addEventListener("scroll", this.later, { passive: true });
    addEventListener("resize", this.later, { passive: true });
  }

  close() {
    removeEventListener("scroll", this.later);
    removeEventListener("resize", this.later);
  }

  head(column) {
    const text = t("column." + column.id);
    const inner = column.sorts ? h("button", { type: "button", onclick: () => this.onSort(column.id) }, text) : text;
    return h("th", { role: "columnheader", scope: "col", class: column.class }, inner);
  }

  showSort(id, descending) {
    this.columns.forEach((column, i) =>
      setAttribute(this.heads[i], "aria-sort", column.id === id && (descending ? "descending" : "ascending")));
  }

  set(rows) {
    this.rows = rows;
    setAttribute(this.element, "aria-rowcount", rows.length + 1);
    this.draw();
  }

  height() {
    return parseFloat(getComputedStyle(this.element).getPropertyValue("--row")) || 40;
  }

  // The rows in sight, with some to spare.
  range(height) {
    const top = this.body.getBoundingClientRect().top;
    const first = Math.max(0, Math.floor(-top / height) - SPARE);
    const count = Math.ceil(innerHeight / height) + 2 * SPARE;
    return [Math.min(first, Math.max(0, this.rows.length - 1)), Math.min(this.rows.length, first + count)];
  }

  draw() {
    if (!this.element.isConnected) return;
    const height = this.height();
    const [first, end] = this.range(height);
    const wanted = this.rows.slice(first, end);
    const keys = new Set(wanted.map((row) => row.key));
    const focused = document.activeElement;
    for (const [key, tr] of this.elements) {
      if (keys.has(key)) continue;
      tr.remove();
      this.elements.delete(key);
    }
    this.above.firstChild.style.height = `${first * height}px`;
    this.below.firstChild.style.height = `${(this.rows.length - end) * height}px`;
    this.above.hidden = first === 0;
    this.below.hidden = end >= this.rows.length;
    this.place(wanted, first);
    if (focused !== document.activeElement && this.element.contains(focused)) focused.focus({ preventScroll: true });
  }

  place(wanted, first) {
    let next = this.above.nextSibling;
    wanted.forEach((row, i) => {
      let tr = this.elements.get(row.key);
      if (!tr) {
        tr = this.make(row);
        this.elements.set(row.key, tr);
      }
      setAttribute(tr, "aria-rowindex", first + i + 2);
      this.fill(tr, row);
      if (tr === next) next = next.nextSibling;
      else this.body.insertBefore(tr, next);
    });
  }

  // Up and down go from row to row, also beyond those in the page.
  onKey(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const tr = event.target.closest("tbody tr");
    if (!step || !tr || event.altKey || event.ctrlKey || event.metaKey) return;
    const index = Number(tr.getAttribute("aria-rowindex")) - 2 + step;
    if (index < 0 || index >= this.rows.length) return;
    event.preventDefault();
    this.show(index);
    this.elements.get(this.rows[index].key)?.querySelector("a")?.focus({ preventScroll: true });
  }

  show(index) {
    const height = this.height();
    const body = this.body.getBoundingClientRect().top + scrollY;
    const top = body + index * height, under = 2 * height; // the head of the table stays on top
    if (top - under < scrollY) scrollTo({ top: top - under, behavior: "instant" });
    else if (top + 2 * height > scrollY + innerHeight) scrollTo({ top: top + 2 * height - innerHeight, behavior: "instant" });
    this.draw();
  }
}
