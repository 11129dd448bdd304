#!/usr/bin/env python3
"""Makes the tables of docs/FAULTS.md from tests/lab/results.json.

    report.py            writes them
    report.py --check    says whether what is there is what would be written"""

import json
import os
import sys

import cells
from faults import FAULTS
from stores import STORES, TOP

RESULTS = os.path.join(TOP, "tests", "lab", "results.json")
PAGE = os.path.join(TOP, "docs", "FAULTS.md")
BEGIN, END = "<!-- made by tests/lab/report.py -->\n", "<!-- end of what report.py makes -->\n"
WORDS = {"hold": "held", "shows": "fenced", "open": "open"}


def word(results, store, fault):
    name, outcome = f"{store}.{fault}", cells.outcome(store, fault)
    if outcome not in WORDS:
        return "–"
    if name not in results:
        return "not run"
    r = results[name]
    if r["verdict"] != "passed":
        return "**failed**"
    seen = outcome == "hold" or r["shown_overlaps"] or r["lost"] or (outcome == "open" and r["frozen_overlaps"])
    return WORDS[outcome] if seen else "not seen"


def matrix(results):
    yield "| fault | " + " | ".join(STORES) + " |\n"
    yield "|---|" + "---|" * len(STORES) + "\n"
    for fault in FAULTS:
        yield f"| {fault} | " + " | ".join(word(results, store, fault) for store in STORES) + " |\n"


HEAD = ("| {} | grants | hand-overs | overlaps while frozen | overlaps shown | stale writes refused | losses told in time | closest call |"
        " ghosts | longest stall |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n")


def sums(rows):
    total = {key: sum(r[key] for r in rows) for key in
             ("grants", "handovers", "frozen_overlaps", "shown_overlaps", "refused", "lost", "in_time", "ghosts")}
    total["closest_ms"] = min((r["closest_ms"] for r in rows if r["closest_ms"] is not None), default=None)
    total["stall_ms"] = max((r["stall_ms"] for r in rows), default=0)
    return total


def line(name, r):
    closest = "" if r["closest_ms"] is None else f"{r['closest_ms']:.0f} ms"
    told = f"{r['in_time']} of {r['lost']}" if r["lost"] else ""
    return (f"| {name} | {r['grants']:,} | {r['handovers']:,} | {r['frozen_overlaps'] or ''} | {r['shown_overlaps'] or ''} | {r['refused'] or ''} | {told} | "
            f"{closest} | {r['ghosts']} | {r['stall_ms'] / 1000:.1f} s |\n")


def tables(results):
    done = [r for r in results.values() if "grants" in r]
    passed = sum(r["verdict"] == "passed" for r in done)
    yield (f"{passed} of {len(done)} cells passed, in {sum(r['seconds'] for r in done) / 60:.0f} minutes: {sums(done)['grants']:,} grants, "
           f"{sums(done)['refused']:,} stale writes refused, {sums(done)['ghosts']} ghosts.\n\n")
    yield from matrix(results)
    yield "\n" + HEAD.format("store, all faults")
    for store in STORES:
        rows = [r for name, r in results.items() if name.startswith(store + ".") and "grants" in r]
        if rows:
            yield line(store, sums(rows))
    yield "\n" + HEAD.format("fault, all stores")
    for fault, about in FAULTS.items():
        rows = [r for name, r in results.items() if name.endswith("." + fault) and "grants" in r]
        if rows:
            yield line(f"{fault}: {about.says}", sums(rows))
    yield "\n<details><summary>Every cell</summary>\n\n"
    yield HEAD.format("cell, seed")
    for name, r in results.items():
        if "grants" in r:
            yield line(f"{name} {r['seed']}" + ("" if r["verdict"] == "passed" else " **failed**"), r)
    yield "\n</details>\n\n<details><summary>What is not done, and why</summary>\n\n"
    reasons = {}
    for store in STORES:
        for fault in FAULTS:
            if not cells.runs(store, fault):
                reasons.setdefault(cells.outcome(store, fault), []).append(f"{store}.{fault}")
    for reason, names in reasons.items():
        yield f"- {reason}: {', '.join(names)}\n"
    yield "\n</details>\n"


def main():
    with open(RESULTS, encoding="utf-8") as file:
        results = json.load(file)["cells"]
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    made = before + BEGIN + "\n" + "".join(tables(results)) + "\n" + END + after
    if "--check" in sys.argv[1:]:
        failed = [name for name, r in results.items() if r["verdict"] != "passed"]
        print(f"{'ok' if made == page else 'not ok'} - the tables of docs/FAULTS.md are those of tests/lab/results.json")
        print(f"{'not ok' if failed else 'ok'} - every recorded cell has passed" + "".join(f" {n}" for n in failed))
        return made != page or bool(failed)
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
