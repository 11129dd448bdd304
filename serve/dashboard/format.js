// How durations, moments, names and people are written.

import { language, t } from "./words.js";

const UNITS = [["d", 86400000], ["h", 3600000], ["min", 60000], ["s", 1000]];

// The two largest units are enough for people: "3 h 12 min", "12 s". Below a second it is "0 s".
export function duration(ms) {
  const first = UNITS.findIndex(([, size]) => ms >= size);
  if (first < 0) return `0 ${t("unit.s")}`;
  const parts = [];
  let rest = ms;
  for (const [unit, size] of UNITS.slice(first, first + 2)) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count > 0) parts.push(`${count} ${t("unit." + unit)}`);
  }
  return parts.join(" ");
}

export function clock(ms) {
  return new Date(ms).toLocaleTimeString(language(), { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
}

// With the day if it is not today's.
export function moment(ms) {
  const at = new Date(ms);
  if (at.toDateString() === new Date().toDateString()) return clock(ms);
  return `${at.toLocaleDateString(language(), { month: "short", day: "numeric" })}, ${clock(ms)}`;
}

export function number(n) {
  return n.toLocaleString(language());
}

// Characters that show nothing, or turn the order of others around, are written as their code: two names that
// differ must not look the same. So is a blank at an end, which nobody would see.
export function visible(text) {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}]|^ | $/gu,
    (c) => `\\u{${c.codePointAt(0).toString(16)}}`);
}

// The server spells bytes that are not UTF-8 as %XX and '%' as %25. In prose '%' is shown as it is.
export function prose(text) {
  return visible((text ?? "").replace(/%25/g, "%"));
}

// That spelling as part of a URL: what is spelled %XX stays, the rest is encoded.
export function inPath(name) {
  return name.replace(/[^%]+/g, encodeURIComponent);
}

// "ann@host, pid 12, backup", as the command writes it.
export function who(entry) {
  if (!entry.user && !entry.host && !entry.pid) return prose(entry.program) || t("who.other");
  const place = `${prose(entry.user) || "?"}@${prose(entry.host) || "?"}`;
  return [place, entry.pid ? `pid ${entry.pid}` : "", prose(entry.program)].filter(Boolean).join(", ");
}

export function mode(entry) {
  if (entry.mode !== "shared") return t("mode.exclusive");
  return entry.limit ? t("mode.limit", { n: entry.limit }) : t("mode.shared");
}
