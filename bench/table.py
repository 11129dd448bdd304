"""What bench/run and bench/run-redis share: the build, and figures as a table."""

import json
import os
import statistics
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.join(TOP, "build-bench")


def build():
    if not os.path.exists(os.path.join(BUILD, "build.ninja")):
        subprocess.run(["meson", "setup", "--buildtype=release", BUILD, TOP], check=True, stdout=sys.stderr)
    subprocess.run(["ninja", "-C", BUILD], check=True, stdout=sys.stderr)


def program(name):
    return os.path.join(BUILD, "bench", "bench_" + name)


class Figures:
    """Figures by name, one value a round."""

    def __init__(self):
        self.found = {}

    def add(self, name, value, unit):
        self.found.setdefault(name, {"unit": unit, "values": []})["values"].append(value)

    def measure(self, command, on_figure=None, **how):
        """Runs a benchmark and adds what it prints; `on_figure` is told of each figure as it comes."""
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **how) as child:
            for line in child.stdout:
                entry = json.loads(line)
                self.add(entry["figure"], entry["value"], entry["unit"])
                if on_figure:
                    on_figure(entry["figure"])
        if child.returncode != 0:
            sys.exit(f"{command[0]} failed")

    def median(self, name):
        return statistics.median(self.found[name]["values"])

    def ratios(self, wanted):
        """`wanted`: (what, figure, figure, bound), as in "at most 1.3". Those that were measured."""
        return [(what, self.median(a) / self.median(b), bound)
                for what, a, b, bound in wanted if a in self.found and b in self.found]

    def markdown(self, ratios):
        lines = ["| ratio of medians | is | should be |", "|---|---:|---:|"]
        lines += [f"| {what} | {value:.2f} | {bound} |" for what, value, bound in ratios]
        lines += ["", "| figure | median | smallest | largest | unit |", "|---|---:|---:|---:|---|"]
        for name, figure in self.found.items():
            values = figure["values"]
            numbers = " | ".join(f"{f(values):,.1f}" for f in (statistics.median, min, max))
            lines.append(f"| {name} | {numbers} | {figure['unit']} |")
        return "\n".join(lines)

    def json(self, ratios):
        return json.dumps({"figures": self.found, "ratios": [
            {"what": w, "is": v, "should_be": b} for w, v, b in ratios]}, indent=2)
