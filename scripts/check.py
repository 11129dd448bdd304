#!/usr/bin/env python3
"""Builds holdfast in several ways, runs the tests of each and sums up. Called by ./check.

A leg is one build with its tests, or one group of checks. Legs run two at a time: their tests wait for
leases to end much more than they compute; the leg with the servers runs alone, after the others. A test that
failed is tried again once these two are through, when it has the machine for itself. Everything a leg says goes
to build-check/LEG.log, what its tests said at last to build-check/LEG.tests.json."""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor

import results

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OUT = os.path.join(TOP, "build-check")
BINDINGS = os.path.join(TOP, "bindings")
CPUS = os.cpu_count() or 2
GCC = {"CC": "gcc", "CXX": "g++"}
TRIES_AGAIN = 2
ACCIDENTS = 20  # more failures than this in one run are none
NO_MORE_TRIES = 65 * 60  # seconds after the start: who waits for us has a limit, too
TELLING = re.compile(r"FAIL|not ok|error:|ERROR|Sanitizer|Assert|Traceback")


class StepFailed(Exception):
    pass


Way = namedtuple("Way", "build slower environment")  # to run `meson test`


class Leg:
    children = set()  # process groups to end when we are interrupted
    screen = threading.Lock()
    first = time.monotonic()

    def __init__(self, name):
        self.name = name
        self.log_path = os.path.join(OUT, name + ".log")
        self.tests_path = os.path.join(OUT, name + ".tests.json")
        self.use(name)
        self.tally = results.Tally()
        self.runs = []  # (way, tests) whose failures may yet be tried again
        self.started = time.monotonic()

    def use(self, build):
        """Goes on in the build of that leg."""
        self.dir = os.path.join(OUT, build)

    def say(self, text):
        with Leg.screen:
            print(f"{self.name:9}{text}", flush=True)

    def run(self, command, **environment):
        """Runs a step; its output goes to the log and is returned with the exit status."""
        with open(self.log_path, "a", encoding="utf-8", errors="replace") as log:
            log.write(f"\n$ {' '.join(command)}\n")
            child = subprocess.Popen(
                command, cwd=TOP, env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
                encoding="utf-8", errors="replace")
            Leg.children.add(child.pid)
            output = child.stdout.read()
            status = child.wait()
            Leg.children.discard(child.pid)
            log.write(output)
        return status, output

    def must(self, what, command, **environment):
        """A step without which the leg cannot go on."""
        status, output = self.run(command, **environment)
        if status != 0:
            self.tally.fail(what, output)
            raise StepFailed

    def checks(self, what, command, **environment):
        """A program that prints "ok - NAME" and "not ok - NAME", or just succeeds."""
        status, output = self.run(command, **environment)
        results.add_program(self.tally, what, output, "failed" if status else "passed")

    def build(self, *options, **environment):
        if not os.path.exists(os.path.join(self.dir, "build.ninja")):
            self.must("configure", ["meson", "setup", "--werror", *options, self.dir, TOP], **environment)
        self.must("build", ["ninja", "-k0", "-C", self.dir, f"-j{max(1, CPUS // 2)}"])
        self.say(f"built ({time.monotonic() - self.started:.0f} s)")

    def test(self, *suites, without=(), slower=3, at_once=CPUS, **environment):
        chosen = [word for suite in suites for word in ("--suite", suite)]
        chosen += [word for suite in without for word in ("--no-suite", suite)]
        way = Way(self.dir, slower, environment)
        status, output, tests = self.meson_test(way, chosen, at_once)
        self.runs.append((way, tests))
        if not tests or (status != 0 and all(test.status != "failed" for test in tests)):
            self.tally.fail("meson test", output)

    def meson_test(self, way, chosen, at_once):
        """One run: its exit status, its output and its tests."""
        log = os.path.join(way.build, "meson-logs", "testlog.json")
        if os.path.exists(log):
            os.unlink(log)
        status, output = self.run(
            ["meson", "test", "-C", way.build, "--no-rebuild", "--num-processes", str(at_once),
             "--timeout-multiplier", str(way.slower), "--print-errorlogs", *chosen], **way.environment)
        return status, output, results.read_meson_log(log) if os.path.exists(log) else []

    def settle(self):
        """What failed is tried again, and all of it is counted."""
        for way, tests in self.runs:
            tests = self.tried_again(way, tests)
            for test in tests:
                results.add_program(self.tally, test.name, test.output, test.status)
            with open(self.tests_path, "a", encoding="utf-8") as log:
                log.writelines(test.line for test in tests)
        self.runs = []

    def tried_again(self, way, tests):
        """The tests; each that failed once more, or twice, one by one. What passes now is named as unsteady:
        a fault of the test or of the code that wants to be found, but not one of this change."""
        for _ in range(TRIES_AGAIN):
            failed = [test.name for test in tests if test.status == "failed"]
            if not 0 < len(failed) <= ACCIDENTS or time.monotonic() - Leg.first > NO_MORE_TRIES:
                break
            self.say(f"tries again: {', '.join(failed)}")
            again = self.meson_test(way, failed, at_once=1)[2]
            passed = {test.name: test for test in again if test.status != "failed"}
            self.tally.unsteady += [(test.name, test.output) for test in tests
                                    if test.status == "failed" and test.name in passed]
            tests = [passed.get(test.name, test) if test.status == "failed" else test for test in tests]
        return tests


LOCAL = ("unit", "doorman", "sim", "conformance", "fault", "cli", "examples", "fuzz", "serve", "dashboard")


def other_versions(leg):
    """The suites of servers that are fetched: servers-NAME."""
    listed = subprocess.run(["meson", "introspect", "--tests", leg.dir], stdout=subprocess.PIPE, check=True).stdout
    names = {suite.split(":")[-1] for test in json.loads(listed) for suite in test["suite"]}
    return sorted(name for name in names if name.startswith("servers-"))


def leg_gcc(leg):
    """The build that people use, and every test that needs no server but one Redis."""
    leg.build(**GCC)
    leg.checks("vendor-c", ["scripts/vendor-c", "--check", leg.dir])
    leg.checks("abi", ["scripts/check-abi", leg.dir])
    leg.test(*LOCAL)


def leg_stores(leg):
    """The same build against real servers of every kind; it has the machine for itself."""
    leg.use("gcc")
    leg.build(**GCC)
    leg.test(without=(*LOCAL, *other_versions(leg)), at_once=CPUS + 1)  # servers start, and leases end, while others compute
    leg.settle()
    logs = [os.path.join(OUT, name + ".tests.json") for name in ("gcc", "stores")]
    leg.checks("capabilities", [sys.executable, "scripts/capabilities.py", *filter(os.path.exists, logs)])


def leg_clang(leg):
    """The other compiler, and the fuzz targets over their kept corpus."""
    leg.build(CC="clang", CXX="clang++")
    leg.test("unit", "fuzz")


ASAN = {"ASAN_OPTIONS": "detect_stack_use_after_return=1", "UBSAN_OPTIONS": "print_stacktrace=1"}


def build_asan(leg):
    leg.build("-Db_sanitize=address,undefined", "-Db_lundef=false",
              "-Dc_args=-fno-sanitize-recover=undefined", **GCC)


def leg_asan(leg):
    """Memory errors, leaks and undefined behaviour."""
    build_asan(leg)
    leg.test("unit", "doorman", "sim", "conformance", "fault", "cli", "examples", "serve", slower=6, **ASAN)


# A thread costs ten times as much here, so crowds are smaller: 300 would test the machine.
TSAN = {"TSAN_OPTIONS": "halt_on_error=1 second_deadlock_stack=1", "HOLDFAST_TEST_CROWD": "60"}


def build_tsan(leg):
    leg.build("-Db_sanitize=thread", "-Db_lundef=false", **GCC)


def leg_tsan(leg):
    """Data races and lock order."""
    build_tsan(leg)
    leg.test("unit", "doorman", "conformance", "examples", slower=10, **TSAN)


def leg_deep(leg):
    """The servers' tests once more, for memory errors and races: too long for every day, so only if it is named."""
    leg.use("asan")
    build_asan(leg)
    leg.test(without=(*LOCAL, *other_versions(leg)), slower=6, at_once=CPUS + 1, **ASAN)
    leg.use("tsan")
    build_tsan(leg)
    suppressed = {"TSAN_OPTIONS": TSAN["TSAN_OPTIONS"] + " suppressions=" + os.path.join(TOP, "tests", "tsan.supp")}
    leg.test("etcd", "mysql", "postgres", "redis", "zookeeper", slower=10, at_once=CPUS + 1, **suppressed)


def leg_servers(leg):
    """Servers of other versions than the installed ones, fetched once: too long for every day, so only if it is named."""
    leg.use("gcc")
    leg.build(**GCC)
    leg.test(*other_versions(leg), slower=3)


def leg_install(leg):
    """What `meson install` gives, used from outside the tree."""
    leg.build("--buildtype=release", "-Dtests=false", "-Ddefault_library=both", "--prefix=/usr", **GCC)
    leg.checks("install", ["sh", "scripts/check-install.sh", leg.dir])


def languages():
    """Those that have tests."""
    return sorted(name for name in os.listdir(BINDINGS) if os.path.exists(os.path.join(BINDINGS, name, "run-tests")))


def leg_bindings(leg):
    """Other languages: the scenarios of bindings/scenarios.md in each, on memory://, sqlite: and a Redis."""
    leg.use("gcc")
    leg.build(**GCC)
    for script in ("bindings-spec.py", "bindings-codes.py"):
        leg.checks(script, [sys.executable, os.path.join("scripts", script), "--check"])
    with_redis = [os.path.join("tests", "fleet", "with-redis")] if shutil.which("redis-server") else []
    for name in languages():
        with tempfile.TemporaryDirectory(prefix="holdfast-") as folder:
            started = time.monotonic()
            status, output = leg.run(
                [*with_redis, os.path.join(BINDINGS, name, "run-tests"), leg.dir, "memory://" + name,
                 f"sqlite:{folder}/locks.db", *(["@URL@"] if with_redis else [])])
        output = re.sub(r"^skipped - (.*)$", r"ok - \1 # SKIP", output, flags=re.M)
        results.add_program(leg.tally, name, output, "failed" if status else "passed")
        leg.say(f"{name} ({time.monotonic() - started:.0f} s)")


def leg_packages(leg):
    """Debian's packages in a bare system, which is fetched; and what a release publishes for other languages and systems."""
    leg.checks("packages", [sys.executable, "scripts/check-packages.py", os.path.join(OUT, "packages")])
    leg.checks("release", [sys.executable, "scripts/check-release.py", os.path.join(OUT, "release")])


def leg_style(leg):
    """Formatting, scripts and documents."""
    leg.checks("style", ["sh", "scripts/check-style.sh"])
    leg.checks("layers", [sys.executable, "scripts/layers.py"])
    leg.checks("docs", [sys.executable, "scripts/check-docs.py"])
    leg.checks("version", [sys.executable, "scripts/version", "--check"])


LEGS = {name[4:]: function for name, function in list(globals().items()) if name.startswith("leg_")}


def excerpt(output, limit=30):
    """What somebody wants to see of a failure: all of it if it is short, else what tells and the end."""
    lines = output.strip().splitlines()
    if len(lines) > limit:
        head = [line for line in lines[:-limit // 2] if TELLING.search(line)]
        lines = head[:limit // 2] + ["..."] + lines[-limit // 2:]
    return "\n".join("    " + line[:200] for line in lines)


def run_leg(name):
    leg = Leg(name)
    for path in (leg.log_path, leg.tests_path):
        if os.path.exists(path):
            os.unlink(path)
    leg.say(LEGS[name].__doc__)
    try:
        LEGS[name](leg)
    except StepFailed:
        pass
    return leg


def finish(leg):
    """Its failures are tried again; call it when nothing else runs."""
    leg.settle()
    for case, output in leg.tally.failures:
        leg.say(f"FAILED: {case}\n{excerpt(output)}")
    leg.say(f"{leg.tally.text()} ({time.monotonic() - leg.started:.0f} s)")
    return leg


def interrupted(number, _frame):
    for pid in list(Leg.children):
        try:
            os.killpg(pid, signal.SIGTERM)
        except ProcessLookupError:
            pass
    os._exit(128 + number)


def sum_up(legs):
    total = results.Tally()
    for leg in legs:
        total.add(leg.name, leg.tally.passed, leg.tally.failed, leg.tally.skipped)
        for case in leg.tally.skips:
            print(f"skipped: {leg.name}: {case}")
    for leg in legs:
        for case, output in leg.tally.unsteady:
            print(f"unsteady: {leg.name}: {case} failed, and passed when it was run alone\n{excerpt(output)}")
    for leg in legs:  # last, where nobody can miss it
        for case, output in leg.tally.failures:
            print(f"failed:  {leg.name}: {case} (build-check/{leg.name}.log)\n{excerpt(output)}")
    print(total.text())
    return 1 if total.failed else 0


def main():
    parser = argparse.ArgumentParser(prog="./check", description="Builds holdfast and runs its tests.")
    parser.add_argument("--quick", action="store_true", help="only the leg gcc")
    parser.add_argument("legs", metavar="LEG", nargs="*", help=f"some of: {' '.join(LEGS)}")
    chosen = parser.parse_args()
    for name in chosen.legs:
        if name not in LEGS:
            parser.error(f"there is no leg '{name}'; there are: {' '.join(LEGS)}")
    names = ["gcc"] if chosen.quick else chosen.legs or [name for name in LEGS if name not in ("deep", "servers", "bindings", "packages")]

    os.makedirs(OUT, exist_ok=True)
    signal.signal(signal.SIGINT, interrupted)
    signal.signal(signal.SIGTERM, interrupted)
    alone = ("stores", "bindings", "packages", "deep", "servers")
    with ThreadPoolExecutor(max_workers=2) as pool:
        side_by_side = list(pool.map(run_leg, [name for name in names if name not in alone]))
    legs = [finish(leg) for leg in side_by_side]
    return sum_up(legs + [finish(run_leg(name)) for name in names if name in alone])


if __name__ == "__main__":
    sys.exit(main())
