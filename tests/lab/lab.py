#!/usr/bin/env python3
"""The fault laboratory on real servers. Called by ./lab, which says how."""

import argparse
import fcntl
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

import cells
from cell import Cell
from environment import Environment
from faults import FAULTS
from stores import FLEET, STORES, TOP

RESULTS = os.path.join(TOP, "tests", "lab", "results.json")


def figures_of(cell, figures, seconds, verdict):
    keep = ("grants", "handovers", "places_lost", "failed", "unknown", "frozen_overlaps", "shown_overlaps", "refused", "unfenced",
            "lost_frozen", "lost", "in_time", "ghosts")
    result = {key: getattr(figures, key) for key in keep}
    result["closest_ms"] = None if figures.closest_ms is None else round(figures.closest_ms, 1)
    result["stall_ms"] = round(figures.stall_ms)
    return {"verdict": verdict, "expected": cells.outcome(*cell.name.split(".")), "seed": cell.seed, "seconds": round(seconds, 1),
            **result}


def run_cell(environment, store, fault, seed, kept):
    """Runs one, says how it went, and returns what is kept of it."""
    cell = Cell(environment, store, fault, FAULTS[fault], seed)
    figures, seconds = cell.run()
    fatal = [f for f in figures.findings if f.fatal]
    result = figures_of(cell, figures, seconds, "failed" if fatal else "passed")
    shown = len(figures.findings) - len(fatal)
    closest = "" if result["closest_ms"] is None else f", closest call {result['closest_ms']} ms"
    print(f"{'not ok' if fatal else 'ok'} - {cell.name}: {result['grants']} grants, {result['frozen_overlaps']} overlaps while frozen, "
          f"{result['refused']} stale writes refused, {result['in_time']} of {result['lost']} losses told in time{closest}"
          + (f", {shown} known weaknesses shown" if shown else ""), flush=True)
    if fatal or kept:
        where = os.path.join(kept or os.path.join(TOP, "build-lab", "failed"), f"{cell.name}-{seed}")
        cell.keep(where, figures.findings)
        if fatal:
            for finding in fatal[:12]:
                print(f"    {finding.rule} at {finding.t}: {finding.text}")
            print(f"    history, seed and the servers' logs: {os.path.relpath(where, TOP)}\n"
                  f"    again: ./lab {cell.name} --seed {seed}", flush=True)
    else:
        cell.forget()
    return cell.name, result


def run_inside(options):
    """Beside the servers of one store, which have been started: its cells, one after the other."""
    environment = Environment(options.inside, options.url, options.build)
    failed = 0
    done = {}
    try:
        for fault in options.cells:
            name, done[fault] = run_cell(environment, options.inside, fault, options.seed, options.keep)
            failed += done[fault]["verdict"] == "failed"
            if options.results:
                with open(options.results, "a", encoding="utf-8") as file:
                    file.write(json.dumps([name, done[fault]]) + "\n")
    finally:
        environment.end()
    return 1 if failed else 0


def fleet_of(store, fault):
    return dict(FAULTS[fault].fleet).get(store, STORES[store].fleet)


def command_inside(store, faults, seed, build, results, keep):
    """The command that starts the servers of a store and runs these cells beside them."""
    holdfast = os.path.join(build, "cli", "holdfast")
    words = [holdfast if word == "@HOLDFAST@" else word for word in fleet_of(store, faults[0])]
    words = [os.path.join(FLEET, word) if os.path.exists(os.path.join(FLEET, word)) else word for word in words]
    command = [*words, sys.executable, os.path.join(TOP, "tests", "lab", "lab.py"), "--inside", store, "--url", STORES[store].url,
               "--build", build, "--seed", str(seed), "--results", results]
    return command + (["--keep", keep] if keep else []) + faults


def environment_of(store, faults, build):
    more = {"HOLDFAST_MODULES": os.path.join(build, "src", "stores"), "HOLDFAST": os.path.join(build, "cli", "holdfast"),
            "HOLDFAST_LAB_DIRECTORY": tempfile.gettempdir(), **dict(STORES[store].environment)}
    if "clock-step" in faults:
        more["HOLDFAST_TEST_CLOCK_SHIM"] = os.path.join(build, "tests", "lib", "clock_shim.so")
    return {**os.environ, **more}


def batches(chosen):
    """Cells of one store and fleet, in order: the servers are started once for them. Those that step a clock have a fleet of their own."""
    groups = {}
    for store, fault in chosen:
        groups.setdefault((store, fleet_of(store, fault), fault == "clock-step"), []).append(fault)
    return [(store, faults) for (store, _, _), faults in groups.items()]


class Progress:
    """A line on standard error: cells done, and how long the rest may take."""

    def __init__(self, total):
        self.total, self.done, self.failed, self.began = total, 0, 0, time.monotonic()

    def step(self, line):
        if line.startswith(("ok - ", "not ok - ")):
            self.done += 1
            self.failed += line.startswith("not ok")
            spent = time.monotonic() - self.began
            left = spent / self.done * (self.total - self.done)
            print(f"[{self.done}/{self.total} cells, {self.failed} failed, {left / 60:.0f} min left]", file=sys.stderr, flush=True)


def run_batch(store, faults, options, progress):
    """Returns {cell: result}; what did not come to an end has failed."""
    with tempfile.TemporaryDirectory(prefix="holdfast-lab.") as directory:
        results = os.path.join(directory, "results")
        command = command_inside(store, faults, options.seed, options.build, results, options.keep)
        child = subprocess.Popen(command, env=environment_of(store, faults, options.build), stdout=subprocess.PIPE, text=True)
        for line in child.stdout:
            print(line, end="", flush=True)
            progress.step(line)
        status = child.wait()
        found = {}
        if os.path.exists(results):
            with open(results, encoding="utf-8") as file:
                found = dict(json.loads(line) for line in file)
    if status == 77:
        print(f"skipped: lab {store}: its servers are not installed, or not allowed here")
    elif len(found) < len(faults):
        print(f"not ok - {store}: ended with {status} before all cells were run")
        found[f"{store}.{faults[len(found)]}"] = {"verdict": "failed", "seed": options.seed}
    return found


def choose(words):
    """Cells by name: STORE.FAULT, a store, or a fault."""
    every = cells.cells()
    if not words:
        return every
    chosen = []
    for word in words:
        some = [c for c in every if word in (".".join(c), *c)]
        if not some and word.count(".") == 1 and word.split(".")[0] in STORES and word.split(".")[1] in FAULTS:
            sys.exit(f"lab: {word} is not run: {cells.outcome(*word.split('.'))}")
        if not some:
            sys.exit(f"lab: there is no cell '{word}'; ./lab --list has them")
        chosen += [c for c in some if c not in chosen]
    return chosen


def show_list():
    for store in STORES:
        for fault in FAULTS:
            outcome = cells.outcome(store, fault)
            words = {"hold": "must hold", "shows": "shows its weakness, and is fenced", "open": "shows its weakness, and has no token"}
            print(f"{store}.{fault:16} {words.get(outcome, 'not applicable: ' + outcome)}")


def soak(options, minutes):
    """Random cells with random seeds, until the time is over. Store by store, so that servers are not always starting."""
    until = time.monotonic() + minutes * 60
    chance = random.Random(options.seed)
    done = failed = 0
    while time.monotonic() < until:
        store = chance.choice(list(STORES))
        faults = [fault for fault in FAULTS if cells.runs(store, fault) and fleet_of(store, fault) == STORES[store].fleet and fault != "clock-step"]
        options.seed = chance.randrange(1 << 31)
        progress = Progress(4)
        results = run_batch(store, chance.sample(faults, 4), options, progress)
        done += len(results)
        failed += sum(r["verdict"] == "failed" for r in results.values())
        print(f"[soak: {done} cells, {failed} failed, {max(0, until - time.monotonic()) / 60:.0f} min left]", file=sys.stderr, flush=True)
    print(f"{done - failed} passed, {failed} failed")
    return 1 if failed else 0


def keep_results(found):
    """Puts what was found in the place of what was known before of the same cells."""
    with open(RESULTS, "a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # another laboratory may do the same
        file.seek(0)
        merge_results(file, found)


def merge_results(file, found):
    text = file.read()
    known = {**(json.loads(text)["cells"] if text else {}), **found}
    order = {f"{store}.{fault}": i for i, (store, fault) in enumerate(cells.cells())}
    known = {name: known[name] for name in sorted((n for n in known if n in order), key=order.get)}
    file.truncate(0)
    file.write('{"cells": {\n' + ",\n".join(f'"{name}": {json.dumps(result)}' for name, result in known.items()) + "\n}}\n")


def duration(text):
    units = {"s": 1 / 60, "m": 1, "h": 60}
    if text[-1:] not in units or not text[:-1].isdigit():
        raise argparse.ArgumentTypeError("such as 60m")
    return int(text[:-1]) * units[text[-1]]


def main():
    parser = argparse.ArgumentParser(prog="./lab", add_help=False)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31))
    parser.add_argument("--soak", type=duration)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--keep")
    parser.add_argument("--store", help="the cells are faults of this store")
    parser.add_argument("--build", default=os.path.join(TOP, "build-lab"))
    parser.add_argument("--inside")
    parser.add_argument("--url")
    parser.add_argument("--results")
    parser.add_argument("cells", nargs="*")
    options = parser.parse_args()
    if options.inside:
        return run_inside(options)
    if options.list:
        return show_list()
    if options.soak:
        return soak(options, options.soak)
    chosen = choose([f"{options.store}.{fault}" for fault in options.cells] if options.store else options.cells)
    progress = Progress(len(chosen))
    found = {}
    for store, faults in batches(chosen):
        found.update(run_batch(store, faults, options, progress))
        if options.record:
            keep_results(found)
    failed = sum(result["verdict"] == "failed" for result in found.values())
    print(f"{len(found) - failed} passed, {failed} failed")
    return 1 if failed else 0 if found else 77


if __name__ == "__main__":
    sys.exit(main())
