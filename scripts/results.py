"""Counts what a test run has shown.

A test program that prints its own sum ("12 passed, 0 failed") counts for that many; one that prints
cmocka's or TAP's lines counts for as many cases as it names; any other counts as one. Whatever it
printed, a program that failed has at least one failure."""

import json
import re

SUM = re.compile(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?\.?$", re.M)
CMOCKA = re.compile(r"^\[ +(OK|FAILED|SKIPPED) +\] (?!tests: |\d+ )([^:\n]+?)(?: \(\d+ ms\))?$", re.M)
TAP = re.compile(r"^(ok|not ok)\b(?: \d+)?(?: - ([^#\n]*))?(# SKIP.*)?$", re.M)
SKIP = re.compile(r"^(?:skip|skipped|SKIP|SKIPPED)[: ]+(.+)$", re.M)
DECLARED = re.compile(r"^C\d+ \S+ (this store does not have: .*)$")


class Tally:
    """Cases of one leg: numbers, the names of those skipped, and the failures with their output."""

    def __init__(self):
        self.passed = 0
        self.failed = 0
        self.skipped = 0
        self.skips = []
        self.failures = []  # (name, output)
        self.unsteady = []  # the same, of what failed once and passed alone

    def add(self, name, passed, failed, skipped, output=""):
        self.passed += passed
        self.failed += failed
        self.skipped += skipped
        if failed:
            self.failures.append((name, output))

    def fail(self, name, output=""):
        self.add(name, 0, 1, 0, output)

    def text(self):
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        return f"{self.passed} passed, {self.failed} failed{skipped}"


def _by_name(pairs):
    """Cases by name: the summary of a failed run names its failures a second time."""
    verdicts = {}
    for verdict, name in pairs:
        if verdicts.get(name) != "failed":
            verdicts[name] = verdict
    return verdicts


def _cases(output):
    """What the output itself says: (passed, failed, skipped, names of the skipped), or None."""
    sums = SUM.findall(output)
    if sums:
        numbers = [sum(int(n or 0) for n in column) for column in zip(*sums)]
        return (*numbers, SKIP.findall(output))
    pairs = [({"OK": "passed", "FAILED": "failed", "SKIPPED": "skipped"}[v], n)
             for v, n in CMOCKA.findall(output)]
    if not pairs:
        pairs = [("skipped" if skip else "passed" if v == "ok" else "failed", n or str(i))
                 for i, (v, n, skip) in enumerate(TAP.findall(output))]
    if not pairs:
        return None
    verdicts = _by_name(pairs)
    count = list(verdicts.values()).count
    skips = [n for n, v in verdicts.items() if v == "skipped"]
    return count("passed"), count("failed"), count("skipped"), skips


def _gather(names):
    """One line for all cases that a store skips for the same declared reason."""
    lines = {}
    for name in (" ".join(n.split()) for n in names):
        declared = DECLARED.match(name)
        key = declared.group(1) if declared else name
        lines[key] = lines.get(key, 0) + 1
    return [line if count == 1 else f"{count} cases: {line}" for line, count in lines.items()]


def add_program(tally, name, output, status):
    """One program: `status` is "passed", "failed" or "skipped", as its exit status says."""
    cases = _cases(output) if status != "skipped" else None
    if cases is None:
        passed, failed, skipped = (int(status == s) for s in ("passed", "failed", "skipped"))
        names = (SKIP.findall(output)[:1] or [""]) if skipped else []  # with the reason, if it says so
    else:
        passed, failed, skipped, names = cases
        if status == "failed" and failed == 0:
            failed = 1
        if skipped and not names:
            names = [f"({skipped} cases)"]
    tally.skips += [f"{name}: {line}" if line else name for line in _gather(names)]
    tally.add(name, passed, failed, skipped, output)


class MesonTest:
    """One test of a `meson test` run, by its line of testlog.json."""

    def __init__(self, line):
        test = json.loads(line)
        self.line = line
        self.name = test["name"].split(" / ")[-1]
        self.status = {"OK": "passed", "EXPECTEDFAIL": "passed", "SKIP": "skipped"}.get(test["result"], "failed")
        self.output = (test.get("stdout") or "") + (test.get("stderr") or "")
        if test["result"] == "TIMEOUT":
            self.output += f"\n(ran out of time after {test['duration']:.0f} s)"


def read_meson_log(path):
    with open(path, encoding="utf-8", errors="replace") as log:
        return [MesonTest(line) for line in log]
