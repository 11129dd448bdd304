#!/usr/bin/env python3
"""Who includes whom, directory by directory. Fails on an arrow that points up.

    scripts/layers.py           prints "ok - ..." or "not ok - ...", as the tests do
    scripts/layers.py --draw    prints the graph as docs/DESIGN.md shows it

An arrow may only go to a lower layer. Inside one layer nobody includes his neighbour, but for what
`NEIGHBOURS` names with its reason."""

import collections
import os
import re
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# From the bottom up. A store is "stores/NAME"; "stores" is the interface they share.
LAYERS = [
    ["include"],
    ["base"],
    ["doorman", "net"],
    ["stores"],
    ["cql", "grpc", "sql"],
    ["stores/*"],
    ["core"],
    ["cli"],
    ["serve"],
]
NEIGHBOURS = {
    ("stores/redlock", "stores/redis"): "Redlock asks several Redis servers, each by the same connection",
}
# What the command may know of the core: see the top of that header.
DOORS = {("cli", "core"): {"core/registry.h"}, ("serve", "core"): {"core/registry.h"},
         ("serve", "cli"): {"cli/" + name for name in ("capability.h", "cli.h", "entry.h", "findings.h", "json.h", "serve_options.h", "trail.h")},
         ("core", "stores"): {"stores/store.h", "stores/builtin.h", "stores/wrap.h"}}


def directory(path):
    parts = [part for part in path.split("/") if part != "src"]
    return "/".join(parts[:2]) if parts[0] == "stores" and len(parts) > 2 else parts[0]


def layer(name):
    for height, names in enumerate(LAYERS):
        if name in names or (name.startswith("stores/") and "stores/*" in names):
            return height
    raise SystemExit(f"not ok - {name} has no layer: name it in scripts/layers.py")


def included(path):
    """The files that this one names, as paths from the top."""
    with open(os.path.join(TOP, path), encoding="utf-8") as file:
        for name in re.findall(r'^#include "([^"]+)"', file.read(), re.M):
            for place in (os.path.dirname(path), "src", "include", "."):
                target = os.path.normpath(os.path.join(place, name))
                if os.path.exists(os.path.join(TOP, target)):
                    yield target
                    break


def arrows():
    """{(from, to): {headers}} between directories."""
    graph = collections.defaultdict(set)
    for root in ("src", "cli", "serve"):
        for folder, _, files in os.walk(os.path.join(TOP, root)):
            for file in files:
                if not file.endswith((".c", ".h")):
                    continue
                path = os.path.relpath(os.path.join(folder, file), TOP)
                for target in included(path):
                    ends = directory(path), directory(target)
                    if ends[0] != ends[1]:
                        graph[ends].add(target.removeprefix("src/"))
    return graph


def wrong(graph):
    for (source, target), headers in sorted(graph.items()):
        if layer(target) > layer(source):
            yield f"{source} includes {', '.join(sorted(headers))}, which is above it"
        elif layer(target) == layer(source) and (source, target) not in NEIGHBOURS:
            yield f"{source} includes {', '.join(sorted(headers))}, its neighbour"
        elif (source, target) in DOORS and headers - DOORS[source, target]:
            yield f"{source} includes {', '.join(sorted(headers - DOORS[source, target]))}"


def draw(graph):
    """One line for each directory, the highest first: what it includes of the others."""
    uses = collections.defaultdict(set)
    for source, target in graph:
        if target != "include":
            uses[source].add(target)
    for names in reversed(LAYERS[1:]):
        if names == ["stores/*"]:
            names = sorted(name for name in uses if name.startswith("stores/"))
        for name in names:
            below = sorted(uses[name], key=lambda n: (-layer(n), n))
            yield f"{name:17} -> {', '.join(below)}" if below else name


def main():
    graph = arrows()
    if "--draw" in sys.argv:
        print("\n".join(draw(graph)))
        return 0
    faults = list(wrong(graph))
    for fault in faults:
        print(f"not ok - layers: {fault}")
    with open(os.path.join(TOP, "docs/DESIGN.md"), encoding="utf-8") as file:
        shown = "\n".join(draw(graph)) in file.read()
    print(f"{'ok' if shown else 'not ok'} - layers: docs/DESIGN.md shows the graph (scripts/layers.py --draw)")
    if not faults:
        print("ok - layers: no arrow points up")
    return 1 if faults or not shown else 0


if __name__ == "__main__":
    sys.exit(main())
