// The time line of a lock as SVG: a lane for each ticket, time from left to right. How a span ended is told by a mark of its
// own shape, not by colour alone. What it shows is in the table below it too, so to a screen reader it is one picture.

import { svg } from "./dom.js";
import { clock, duration, moment, visible, who } from "./format.js";
import { end, start } from "./trail.js";
import { t } from "./words.js";

const LANE = 30, BAR = 12, TOP = 26, SIDE = 12, LABEL = 17, LETTER = 7; // pixels
const MOST_LANES = 40;
const STEPS_MS = [1000, 2000, 5000, 10000, 15000, 30000, 60000, 120000, 300000, 600000, 900000, 1800000, 3600000,
  7200000, 10800000, 21600000, 43200000, 86400000, 172800000, 604800000];

// Moments for the axis: round in local time, at most one each 90 pixels.
function ticks(from, to, width) {
  const least = (to - from) / Math.max(1, Math.floor(width / 90));
  const step = STEPS_MS.find((ms) => ms >= least) ?? STEPS_MS.at(-1);
  const zone = new Date(to).getTimezoneOffset() * 60000;
  const found = [];
  for (let at = Math.ceil((from - zone) / step) * step + zone; at <= to; at += step) found.push(at);
  return found;
}

const MARKS = {
  released: (x, y) => svg("circle", { class: "end released", cx: x, cy: y, r: 4.5 }),
  letgo: (x, y) => MARKS.released(x, y),
  ended: (x, y) => svg("circle", { class: "end ended", cx: x, cy: y, r: 4.5 }),
  withdrawn: (x, y) => svg("path", { class: "end withdrawn", d: `M${x} ${y - 6}v12` }),
  lost: (x, y) => svg("path", { class: "end lost", d: `M${x - 5} ${y - 5}l10 10m0 -10l-10 10` }),
  vanished: (x, y) => MARKS.lost(x, y),
  broken: (x, y) => svg("path", { class: "end broken", d: `M${x + 2} ${y - 8}l-5 8h6l-5 8` }),
};

export class TimeLine {
  constructor({ lanes, from, to, width, name }) {
    this.scale = (at) => SIDE + ((Math.min(Math.max(at, from), to) - from) / (to - from)) * (width - 2 * SIDE);
    Object.assign(this, { from, to, width, name });
    const inside = lanes.filter((lane) => end(lane, to) >= from);
    this.hidden = Math.max(0, inside.length - MOST_LANES);
    this.lanes = inside.slice(this.hidden);
  }

  draw() {
    const height = TOP + this.lanes.length * (LANE + LABEL) + 6;
    const label = t("time.label", {
      name: visible(this.name), from: moment(this.from), to: moment(this.to), n: this.lanes.length,
    });
    return svg("svg", {
      class: "timeline", role: "img", "aria-label": label, width: this.width, height, viewBox: `0 0 ${this.width} ${height}`,
    }, this.pattern(), this.axis(height), this.lanes.map((lane, i) => this.lane(lane, TOP + i * (LANE + LABEL))), this.handOvers());
  }

  pattern() {
    return svg("defs", null, svg("pattern", { id: "hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
      svg("path", { d: "M0 0v6", class: "hatch" })));
  }

  axis(height) {
    const seconds = this.to - this.from < 600000;
    return ticks(this.from, this.to, this.width).map((at) => {
      const x = this.scale(at), text = seconds ? clock(at) : clock(at).replace(/:\d\d$/, "");
      return svg("g", { class: "tick" }, svg("path", { d: `M${x} ${TOP - 6}V${height}` }),
        svg("text", { x, y: 12, "text-anchor": x < 40 ? "start" : x > this.width - 40 ? "end" : "middle" }, text));
    });
  }

  span(kind, span, y) {
    if (!span || (span.to ?? this.to) < this.from || span.from > this.to) return null;
    const x = this.scale(span.from), x2 = this.scale(span.to ?? this.to);
    const height = kind === "wait" ? 2 : BAR;
    return svg("rect", { class: kind, x, y: y - height / 2, width: Math.max(1.5, x2 - x), height, rx: kind === "wait" ? 0 : 2 },
      svg("title", null, `${t("legend." + kind)}: ${moment(span.from)}, ${duration((span.to ?? this.to) - span.from)}`));
  }

  lane(lane, top) {
    const y = top + LABEL + LANE / 2 - 4, x = this.scale(Math.max(start(lane), this.from));
    const label = this.label(lane), room = x + label.length * LETTER < this.width ? ["start", x] : ["end", this.width - SIDE];
    const done = lane.end && lane.end.at >= this.from ? MARKS[lane.end.what]?.(this.scale(lane.end.at), y) : null;
    return svg("g", { class: lane.over ? "lane over" : "lane" },
      svg("text", { class: "who", x: room[1], y: top + LABEL - 2, "text-anchor": room[0] }, label),
      this.span("wait", lane.wait, y), this.span("held", lane.held, y),
      lane.risks.map((risk) => this.span("risk", risk, y)), this.span("delay", lane.delay, y), done);
  }

  label({ who: entry, held }) {
    const text = entry.generation && held ? `${who(entry)} · ${entry.generation}` : who(entry);
    const most = Math.floor((this.width - 2 * SIDE) / LETTER);
    return text.length > most ? text.slice(0, most - 1) + "…" : text;
  }

  // Who took over: a thin line from the end of one hold to the beginning of the next.
  handOvers() {
    const lines = [];
    this.lanes.forEach((lane, i) => {
      const next = this.lanes.findIndex((other) => other !== lane && other.held && lane.end && lane.over && lane.held &&
        other.held.from >= lane.end.at - 50 && other.held.from - lane.end.at < 2000);
      if (next < 0 || lane.end.at < this.from) return;
      const row = (n) => TOP + n * (LANE + LABEL) + LABEL + LANE / 2 - 4;
      lines.push(svg("path", { class: "handover", d: `M${this.scale(lane.end.at)} ${row(i)}L${this.scale(this.lanes[next].held.from)} ${row(next)}` }));
    });
    return lines;
  }
}

// What each mark means; only what is drawn needs to be explained.
export function legend(lanes) {
  const used = new Set();
  for (const lane of lanes) {
    for (const kind of ["wait", "held", "delay"]) if (lane[kind]) used.add(kind);
    if (lane.risks.length > 0) used.add("risk");
    if (lane.end) used.add(lane.end.what);
  }
  return [...used].map((kind) => [kind, t("legend." + kind), sample(kind)]);
}

function sample(kind) {
  const picture = svg("svg", { width: 22, height: 16, "aria-hidden": "true", class: "timeline sample" });
  if (MARKS[kind]) picture.append(MARKS[kind](11, 8));
  else picture.append(svg("rect", { class: kind, x: 1, y: kind === "wait" ? 7 : 3, width: 20, height: kind === "wait" ? 2 : 10, rx: kind === "wait" ? 0 : 2 }));
  return picture;
}

