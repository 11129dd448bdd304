// The two questions of the page: a token, and whether a lock may be broken.

import * as api from "./api.js";
import { h, say } from "./dom.js";
import { duration, inPath, visible, who } from "./format.js";
import { t } from "./words.js";

function show(dialog, title, form) {
  dialog.replaceChildren(h("h2", { id: dialog.getAttribute("aria-labelledby") }, title), form);
  if (!dialog.open) dialog.showModal();
}

// Resolves with true when a token was given, false when not.
export function askToken(wrong) {
  const dialog = document.getElementById("ask-token");
  const input = h("input", { type: "password", id: "token", required: true, autocomplete: "off", spellcheck: "false" });
  return new Promise((resolve) => {
    const form = h("form", { method: "dialog" },
      h("p", null, t("token.text")),
      wrong ? h("p", { class: "bad", role: "alert" }, t("token.wrong")) : null,
      h("label", { for: "token" }, h("span", null, t("token.label"))), input,
      h("div", { class: "buttons" }, h("button", { type: "submit", class: "strong" }, t("token.ok"))));
    form.addEventListener("submit", () => api.setToken(input.value.trim()));
    dialog.addEventListener("close", () => resolve(Boolean(input.value)), { once: true });
    show(dialog, t("token.title"), form);
    input.focus();
  });
}

function choice(value, text, why, checked) {
  return h("label", { class: "choice" }, h("input", { type: "radio", name: "now", value, checked }),
    h("span", null, h("strong", null, text), h("small", null, why)));
}

function choices(entry, left) {
  if (entry.place === "waiting") return null;
  if (left === null) return h("p", null, t("break.never.why"));
  return h("fieldset", null,
    choice("no", t("break.lease", { left: duration(left) }), t("break.lease.why"), true),
    choice("yes", t("break.now"), t("break.now.why"), false));
}

// Asks, and breaks: begin() is called before that is sent, done() or failed() after. Cancel has the focus: Enter alone breaks nothing.
export function askBreak({ store, name, entry, age, left, begin, done, failed }) {
  const dialog = document.getElementById("ask-break");
  const refused = h("p", { class: "bad", role: "alert", hidden: true });
  const cancel = h("button", { type: "button", onclick: () => dialog.close() }, t("cancel"));
  const submit = h("button", { type: "submit", class: "danger" }, t("break.confirm"));
  const text = t(entry.place === "waiting" ? "break.waiter" : "break.who", { who: who(entry), age: duration(age) });
  const form = h("form", null, h("p", null, text), choices(entry, left), refused, h("div", { class: "buttons" }, cancel, submit));

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    submit.disabled = true;
    begin();
    try {
      const now = new FormData(form).get("now") === "yes";
      await api.post(`${store.path("/locks/")}${inPath(name)}/break`, { ticket: entry.ticket, now });
      dialog.close();
      say(t("break.done"));
      done();
    } catch (error) {
      failed();
      refused.textContent = visible(error.message);
      refused.hidden = false;
      submit.disabled = false;
    }
  });
  show(dialog, t("break.title", { name: visible(name) }), form);
  cancel.focus();
}
