#!/usr/bin/env python3
"""Hostile names, notes, tickets and records, given to the command: they do what they should and nothing else, and whatever
is printed or logged is lines of visible text, or valid JSON.

    attacks.py HOLDFAST ATTACKS.TXT
"""
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile

HOLDFAST, LIST = sys.argv[1:3]


def attacks():
    """Those that can be an argument of a program."""
    found = []
    with open(LIST, encoding="ascii") as lines:
        for line in lines.read().splitlines():
            if not line.startswith("#"):
                one = re.sub(rb"\\(0[0-7]{0,3}|.)", lambda m: bytes([int(m[1], 8)]) if m[1][:1] == b"0" else
                             {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"\\": b"\\"}[m[1]], line.encode())
                found.append(one)
    return [one for one in found if b"\0" not in one]


def visible(output, lines=None):
    """As text, of which a terminal shows every character as it is."""
    text = output.decode("utf-8")
    hidden = [c for c in text if c != "\n" and not c.isprintable()]
    assert not hidden, (text, hidden)
    assert lines is None or text.count("\n") == lines, (lines, text)
    return text


class Store:
    """An empty one, and the command on it."""

    def __init__(self, directory, name):
        os.mkdir(f"{directory}/{name}", 0o700)
        self.path = f"{directory}/{name}/locks.db"
        self.url = f"sqlite:{self.path}"
        self.environment = dict(os.environ, HOME=directory, LC_ALL="C.UTF-8", HOLDFAST_URL=self.url)

    def run(self, wanted, *arguments, lines=None):
        """Its standard output. What it prints is visible; what it refuses, it refuses in one line."""
        done = subprocess.run([HOLDFAST, *arguments], env=self.environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        assert done.returncode in wanted, (arguments, done.returncode, done.stderr)
        if done.returncode != 0:
            assert visible(done.stderr).count("\n") <= 1, (arguments, done.stderr)
        visible(done.stderr)
        return visible(done.stdout, lines)

    def locks(self):
        return [json.loads(line) for line in self.run([0], "ls", "--json").splitlines()]


def names_and_notes_are_like_any(store):
    hostile = attacks()
    assert len(hostile) > 80
    store.run([0], "lock", "-q", "--ttl", "5m", "bystander")
    for one in hostile:
        store.run([0], "lock", "-q", "--ttl", "5m", "--note", one, "--", one)
        store.run([1], "lock", "-n", "--ttl", "5m", "--", one)
        store.run([0], "show", "--", one)
    store.run([0], "ls", lines=len(hostile) + 2)  # a heading, and the bystander
    before = store.locks()
    assert len({lock["name"] for lock in before}) == len(hostile) + 1
    for one in hostile:
        ticket = json.loads(store.run([0], "show", "--json", "--", one, lines=1))["holders"][0]["ticket"]
        store.run([0], "break", "--now", "--ticket", ticket, "--", one)
    assert [lock["name"] for lock in store.locks()] == ["bystander"]


def names_are_one_line_of_a_trace(store):
    hostile = attacks()
    trace = store.path + ".trace"
    store.environment["HOLDFAST_URL"] = f"trace+{store.url}?trace={trace}"
    for one in hostile:
        store.run([0], "run", "-n", "--note", one, "--", one, "true")
    with open(trace, "rb") as file:
        lines = visible(file.read()).splitlines()
    assert all(re.match(r"\d+ \+[\d.]+ \w+", line) for line in lines), lines
    assert sum(" attempt " in line for line in lines) == len(hostile)


def tickets_and_sequencers_do_nothing(store):
    store.run([0], "lock", "-q", "--ttl", "5m", "x")
    foreign = json.loads(store.run([0], "lock", "--json", "--ttl", "5m", "y"))["ticket"]
    for one in [foreign, "0" * 32, "f" * 32, *attacks()]:
        store.run([1, 64], "unlock", "x", "--ticket", one)
        store.run([1, 64], "break", "--now", "x", "--ticket", one)
    for one in attacks():
        store.run([64], "check", "--", one)
    assert [(lock["name"], len(lock["holders"])) for lock in store.locks()] == [("x", 1), ("y", 1)]


def records_of_others_are_shown_as_text(store):
    """Another client wrote them, or somebody with an editor."""
    evil = "\x1b]0;owned\x07\x1b[2J\nholdfast: forged\r\u202e\u2028\x9b31m%n%s\"},{\"a"
    store.run([0], "lock", "-q", "--ttl", "5m", "x")
    db = sqlite3.connect(store.path)
    db.execute("UPDATE holdfast_entry SET host = ?, user = ?, program = ?, note = ?", [evil] * 4)
    db.execute("UPDATE holdfast_lock SET name = ?", [b"x\x1b[31m\n\xff\0\x9b"])
    db.commit()
    db.close()
    assert "forged" in store.run([0], "ls", lines=2)
    lock, = store.locks()
    assert "forged" in lock["holders"][0]["note"] and "x" in lock["name"]


def main():
    failed = 0
    cases = [names_and_notes_are_like_any, names_are_one_line_of_a_trace, tickets_and_sequencers_do_nothing,
             records_of_others_are_shown_as_text]
    os.umask(0o077)
    with tempfile.TemporaryDirectory() as directory:
        for case in cases:
            try:
                case(Store(directory, case.__name__))
            except (AssertionError, UnicodeDecodeError, ValueError, OSError) as error:
                failed += 1
                print(f"FAILED {case.__name__}: {str(error)[:600]}", flush=True)
    print(f"{len(cases) - failed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
