#!/usr/bin/env python3
"""Draws recorded histories as SVGs, which read well on light and dark paper.

    timeline.py                                     docs/img/*.svg from tests/lab/histories, see DRAWINGS
    timeline.py --check                             says whether they are what would be drawn
    timeline.py --cut HISTORY NAME FROM TO          makes one of those histories: what a drawing of these seconds needs

A lane is a worker: a dotted line while it waits, a bar while it believes that it holds the lock, covered where it was
stopped. What the nemesis did to servers and network is a band behind all lanes. Events with a "says" (story.py) are marks
with these words."""

import html
import json
import os
import sys

from history import NEVER, History
from stores import TOP as TREE

HISTORIES = os.path.join(TREE, "tests", "lab", "histories")
# name: (title, lanes; None: all that wanted the lock)
DRAWINGS = {
    "lost-lock": ("How a lock is lost: redis, a lease of 2 s", ["h", "c", "w1", "r"]),
    "failover": ("A failover that forgets a lock: redis+sentinel, leases of 6 s", None),
    "partition": ("Machines cut off, one after the other: three ZooKeeper servers, leases of 1 s", None),
}

WIDTH, LEFT, RIGHT, TOP, LANE, BAR = 960, 96, 20, 70, 54, 16
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #1f2328; } .small { font-size: 11px; } .title { font-size: 15px; font-weight: 600; }
.muted { fill: #59636e; } .axis { stroke: #c8ced6; } .wait { stroke: #8c959f; stroke-width: 2; stroke-dasharray: 2 3; }
.held { fill: #2f81c7; } .shared { fill: #2f9e77; } .doubt { fill: #d29922; } .band { fill: #cf222e; fill-opacity: .10; }
.stop { fill: #8250df; fill-opacity: .25; } .bad { stroke: #cf222e; stroke-width: 2; fill: none; } .badtext { fill: #cf222e; }
.tick { stroke: #59636e; stroke-width: 1; } .paper { fill: #ffffff; } .mark { fill: #1f2328; }
@media (prefers-color-scheme: dark) { text, .mark { fill: #e6edf3; } .muted { fill: #9198a1; } .axis { stroke: #3d444d; }
.held { fill: #4493d8; } .shared { fill: #3fb68b; } .wait { stroke: #7d8590; } .badtext { fill: #ff7b72; } .bad { stroke: #ff7b72; }
.band { fill: #ff7b72; fill-opacity: .16; } .paper { fill: #0d1117; } .doubt { fill: #e3b341; } .tick { stroke: #9198a1; } }
"""


class Drawing:
    def __init__(self, history, start, end, lanes):
        self.history, self.start, self.end, self.lanes = history, start, end, lanes
        self.height = TOP + LANE * len(lanes) + 40
        self.parts = []
        self.words = []

    def x(self, t):
        t = min(max(t, self.start), self.end)
        return LEFT + (WIDTH - LEFT - RIGHT) * (t - self.start) / (self.end - self.start)

    def y(self, lane):
        return TOP + LANE * self.lanes.index(lane) + 24

    def add(self, tag, text=None, **attributes):
        words = " ".join(f'{k.replace("_", "-")}="{v:.1f}"' if isinstance(v, float) else f'{k.replace("_", "-")}="{v}"'
                         for k, v in attributes.items())
        self.parts.append(f"<{tag} {words}/>" if text is None else f"<{tag} {words}>{html.escape(text)}</{tag}>")

    def put(self, lane, t, text, style="small"):
        self.words.append((self.x(t), lane, text, style))

    def place_words(self):
        """Above the lane or below it, wherever nothing is yet; a little to the right if both are taken."""
        taken = {}
        for x, lane, text, style in sorted(self.words):
            wide = 5.9 * len(text)
            x = min(x - 2, WIDTH - 4 - wide)
            while True:
                row = next((r for r in (0, 1) if all(x >= b or x + wide <= a for a, b in taken.get((lane, r), ()))), None)
                if row is not None:
                    break
                x += 6
            taken.setdefault((lane, row), []).append((x, x + wide + 6))
            self.add("text", text, x=x, y=float(self.y(lane) + (BAR + 12 if row else -5)), **{"class": style})

    def axis(self):
        span = (self.end - self.start) / 1e9
        step = next(s for s in (0.1, 0.2, 0.5, 1, 2, 5, 10) if span / s <= 12)
        bottom = TOP + LANE * len(self.lanes) + 8
        for i in range(int(span / step) + 1):
            x = self.x(self.start + int(i * step * 1e9))
            self.add("line", x1=x, x2=x, y1=float(TOP - 4), y2=float(bottom), **{"class": "axis"})
            self.add("text", f"{i * step:g} s", x=x, y=float(bottom + 14), text_anchor="middle", **{"class": "small muted"})

    def bands(self):
        """What was done, with its words in the first of two rows that has room."""
        ends = [0.0, 0.0]
        for a, b, what in sorted(self.history.faults):
            if a >= self.end or b <= self.start:
                continue
            self.add("rect", x=self.x(a), y=float(TOP - 6), width=max(2.0, self.x(b) - self.x(a) - 1),
                     height=float(LANE * len(self.lanes) + 12), **{"class": "band"})
            wide = 5.9 * len(what)
            x = min(self.x(a) + 2, WIDTH - 4 - wide)
            row = 0 if x > ends[0] else 1
            ends[row] = x + wide + 8
            self.add("text", what, x=x, y=float(TOP - 11 - 14 * row), **{"class": "small badtext"})

    def bid(self, bid):
        lane = bid.who.split("_")[0]
        if lane not in self.lanes:
            return
        y = self.y(lane)
        over = min(t for t in (bid.held, bid.failed and bid.failed[0], bid.died, NEVER) if t is not None)
        if over > self.start and bid.asked < self.end:
            self.add("line", x1=self.x(bid.asked), x2=self.x(over), y1=float(y + BAR / 2), y2=float(y + BAR / 2), **{"class": "wait"})
        if bid.held is None or bid.held > self.end or bid.ended < self.start:
            return
        style = "shared" if bid.mode == "s" else "held"
        ends = min(bid.ended, self.end)
        self.add("rect", x=self.x(bid.held), y=float(y), width=max(1.5, self.x(ends) - self.x(bid.held)), height=float(BAR), rx=2,
                 **{"class": style})
        if bid.risk and bid.risk < ends:
            self.add("rect", x=self.x(bid.risk), y=float(y), width=self.x(ends) - self.x(bid.risk), height=float(BAR), **{"class": "doubt"})
            self.put(lane, bid.risk, "at risk")
        if bid.ended in (bid.lost, bid.died) and bid.ended <= self.end:
            x = self.x(bid.ended)
            for dx in (-5, 5):
                self.add("line", x1=x - dx, x2=x + dx, y1=float(y + 3), y2=float(y + 13), **{"class": "bad"})
            self.put(lane, bid.ended, "killed" if bid.ended == bid.died else "told: lost", "small badtext")

    def writes(self):
        """What the resource has accepted, if it has a lane; and what it refused, once for each grant."""
        refused = set()
        for write in self.history.writes:
            lane = "r" if "r" in self.lanes else write["w"].split("_")[0]
            if lane not in self.lanes or not self.start < write["t"] < self.end:
                continue
            x, y = self.x(write["t"]), self.y(lane)
            if write["answer"] == "stale":
                for dx in (-4, 4):
                    self.add("line", x1=x - dx, x2=x + dx, y1=float(y + 4), y2=float(y + 12), **{"class": "bad"})
                if write["k"] not in refused:
                    self.put(lane, write["t"], "a stale write is refused", "small badtext")
                refused.add(write["k"])
            elif lane == "r":
                self.add("line", x1=x, x2=x, y1=float(y + 3), y2=float(y + 13), **{"class": "tick"})

    def draw(self, title):
        for lane in self.lanes:
            self.add("text", {"h": "holdfast run", "c": "its command", "r": "the resource"}.get(lane, f"program {lane[1:]}"),
                     x=8.0, y=float(self.y(lane) + 12), **{"class": "small"})
        self.axis()
        self.bands()
        for bid in sorted(self.history.bids.values(), key=lambda b: b.asked):
            self.bid(bid)
        for before, after in zip(self.history.grants, self.history.grants[1:]):
            lane = after.who.split("_")[0]
            if after.token and before.ended in (before.lost, before.died) and lane in self.lanes and self.start < after.held < self.end:
                self.put(lane, after.held, "takes over")
        for pid, spans in self.history.stops.items():
            lane = next((b.who.split("_")[0] for b in self.history.bids.values() if b.pid == pid), None)
            for a, b in spans:
                if lane in self.lanes and a < self.end and self.start < b:
                    self.add("rect", x=self.x(a), y=float(self.y(lane) - 3), width=self.x(b) - self.x(a), height=BAR + 6.0, **{"class": "stop"})
                    self.put(lane, a, "stopped")
        self.writes()
        for event in self.history.events:
            if "says" in event and self.start <= event["t"] <= self.end and event["w"] in self.lanes:
                x, y = self.x(event["t"]), self.y(event["w"])
                self.add("circle", cx=x, cy=float(y + BAR / 2), r=3.5, **{"class": "mark"})
                self.put(event["w"], event["t"], event["says"])
        self.place_words()
        body = "\n".join(self.parts)
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height}" role="img" aria-label="{html.escape(title)}">\n'
                f"<style>{STYLE}</style>\n<rect class=\"paper\" width=\"{WIDTH}\" height=\"{self.height}\"/>\n"
                f'<text class="title" x="8" y="22">{html.escape(title)}</text>\n{body}\n</svg>\n')


def draw(name):
    title, lanes = DRAWINGS[name]
    history = History.read(os.path.join(HISTORIES, name + ".jsonl"))
    start, end = history.events[0]["t"], history.events[-1]["t"]
    history.bids = {k: b for k, b in history.bids.items() if b.name.endswith("_a")}
    history.grants = [g for g in history.grants if g.key in history.bids]
    lanes = lanes or sorted({b.who.split("_")[0] for b in history.bids.values()}, key=lambda w: int(w[1:]))
    return Drawing(history, start, end, lanes).draw(title)


def cut(path, name, first, last):
    """The events of these seconds, and the whole of each bid, fault and stop that reaches into them."""
    whole = History.read(path)
    zero = whole.events[0]["t"]
    first, last = (zero + int(float(t) * 1e9) for t in (first, last))
    bids = {k for k, b in whole.bids.items() if b.name.endswith("_a") and b.asked < last and
            min(t for t in (b.ended if b.held else None, b.failed and b.failed[0], b.died, NEVER) if t is not None) > first}
    kept = []
    for event in whole.events:
        if event["e"] in ("seen", "gap", "unseen") or (event["e"] == "write" and event["answer"] != "stale" and name != "lost-lock"):
            continue
        if event.get("k") in bids or (event["e"] in ("fault", "stop", "cont", "died", "note", "write") and event["t"] > first):
            kept.append({**event, "t": max(event["t"], first)})
    kept = [{**e, "t": min(e["t"], last)} if e["e"] == "fault" else e for e in kept if e["t"] <= last or e["e"] == "fault"]
    kept = [{"t": first, "e": "from"}, *kept, {"t": last, "e": "to"}]
    for event in kept:
        event["t"] -= first
        if "from" in event:
            event["from"] = max(0, event["from"] - first)
        if "until" in event:
            event["until"] -= first
        event.pop("ticket", None)
    with open(os.path.join(HISTORIES, name + ".jsonl"), "w", encoding="utf-8") as file:
        file.writelines(json.dumps(event) + "\n" for event in kept)


def main():
    if sys.argv[1:2] == ["--cut"]:
        return cut(*sys.argv[2:])
    status = 0
    for name in DRAWINGS:
        path = os.path.join(TREE, "docs", "img", name + ".svg")
        if "--check" not in sys.argv:
            with open(path, "w", encoding="utf-8") as file:
                file.write(draw(name))
            continue
        with open(path, encoding="utf-8") as file:
            same = file.read() == draw(name)
        print(f"{'ok' if same else 'not ok'} - docs/img/{name}.svg is drawn from its history")
        status |= not same
    return status


if __name__ == "__main__":
    sys.exit(main())
