#!/usr/bin/env python3
"""Runs the fuzz targets for a while: each gets its share of the time, as many at once as there are processors.

    fuzz.py --build DIR 10m [TARGET...]      90s, 10m, 2h; all targets unless some are named
    fuzz.py --build DIR --keep [TARGET...]   takes what past runs have reached into tests/fuzz/corpus/TARGET.hex

A line for each target says how many inputs were tried, and how many of the branches that it is made of they have
reached. What they have reached is kept in DIR/grown, so the next run goes on from there; what ends a target is kept in
DIR/crashes with the command that shows it again. The status is 1 if there is something.
"""
import argparse
import concurrent.futures
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
UNITS = {"s": 1, "m": 60, "h": 3600}
KEPT_MAX = 4096  # bytes of an input: the tests run every prefix of it


def seconds_of(text):
    match = re.fullmatch(r"(\d+)([smh])", text)
    if not match or int(match[1]) == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is no time; write 90s, 10m or 2h")
    return int(match[1]) * UNITS[match[2]]


def targets_in(build, wanted):
    there = sorted(name[5:] for name in os.listdir(os.path.join(build, "tests/fuzz"))
                   if name.startswith("fuzz_") and "." not in name)
    for name in wanted:
        if name not in there:
            sys.exit(f"there is no target '{name}'; there are: {' '.join(there)}")
    return wanted or there


class Target:
    def __init__(self, build, name):
        self.name = name
        self.program = os.path.join(build, "tests/fuzz/fuzz_" + name)
        self.corpus = os.path.join(HERE, "corpus", name)
        self.grown = os.path.join(build, "grown", name)
        self.crashes = os.path.join(build, "crashes")
        os.makedirs(self.grown, exist_ok=True)
        os.makedirs(self.crashes, exist_ok=True)
        with open(self.corpus + ".hex", encoding="ascii") as lines:
            for line in lines:
                data = bytes.fromhex(line)
                with open(os.path.join(self.grown, hashlib.sha1(data).hexdigest()), "wb") as file:
                    file.write(data)

    def run(self, *options):
        environment = dict(os.environ, ASAN_OPTIONS="detect_stack_use_after_return=1", UBSAN_OPTIONS="print_stacktrace=1")
        return subprocess.run([self.program, f"-artifact_prefix={self.crashes}/{self.name}-", "-timeout=20", *options],
                              env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, errors="replace", check=False)

    def fuzz(self, seconds):
        done = self.run(f"-max_total_time={seconds}", "-print_final_stats=1", self.grown, self.corpus)
        log = os.path.join(self.crashes, self.name + ".log")
        with open(log, "w", encoding="utf-8") as file:
            file.write(done.stdout)
        tried = re.search(r"number_of_executed_units: (\d+)", done.stdout)
        reached = re.findall(r"cov: (\d+)", done.stdout)
        of = re.search(r"\((\d+) inline 8-bit counters\)", done.stdout)
        found = re.search(r"Test unit written to (\S+)", done.stdout)
        line = (f"{self.name:15} {int(tried[1]) if tried else 0:>11,} tried {reached[-1] if reached else '?':>6} of "
                f"{of[1] if of else '?':>6} branches")
        if done.returncode != 0:
            again = f"{self.program} {found[1]}" if found else f"see {log}"
            line += f"\n    FOUND something ({log}); again: {again}"
        return done.returncode == 0, line

    def keep(self):
        """Those of the grown inputs that reach branches which the named ones do not, the smallest first."""
        with tempfile.TemporaryDirectory() as kept:
            for entry in os.scandir(self.corpus):
                shutil.copy(entry.path, kept)
            done = self.run("-merge=1", "-use_counters=0", f"-max_len={KEPT_MAX}", kept, self.grown)
            names = set(os.listdir(kept)) - set(os.listdir(self.corpus))
            found = []
            for name in names:
                with open(os.path.join(kept, name), "rb") as file:
                    found.append(file.read().hex())
        with open(self.corpus + ".hex", "w", encoding="ascii") as lines:
            lines.writelines(one + "\n" for one in sorted(found, key=lambda one: (len(one), one)) if one)
        return done.returncode == 0, f"{self.name:15} {len(found)} kept"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("what", nargs="*", metavar="TIME TARGET", help="how long altogether, and which")
    given = parser.parse_args()
    try:
        seconds = 0 if given.keep else seconds_of(given.what.pop(0) if given.what else "")
    except argparse.ArgumentTypeError as error:
        parser.error(str(error))
    jobs = os.cpu_count() or 1
    targets = [Target(given.build, name) for name in targets_in(given.build, given.what)]
    share = max(1, seconds * jobs // len(targets))
    all_well = True
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        runs = [pool.submit(target.keep) if given.keep else pool.submit(target.fuzz, share) for target in targets]
        for run in concurrent.futures.as_completed(runs):
            well, line = run.result()
            all_well = all_well and well
            print(line, flush=True)
    return 0 if all_well else 1


sys.exit(main())
