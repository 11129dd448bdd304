#!/usr/bin/python3
"""Crowds of holdfast and of another client for one lock, both at once: nobody overlaps whom it excludes.

    storm.py HOLDFAST KIND [SECONDS]

KIND is one of peers.KINDS. Whoever enters is noted when it says that it holds the lock, whoever leaves before it is told to
release it. Beside the server of tests/fleet/with-zookeeper. Exit status 77: the other client is not installed."""

import random
import shutil
import subprocess
import sys
import threading
import time

import peers
from peers import PATIENCE

OURS = 4
THEIRS = 3


class Ledger:
    """Who is inside now."""

    def __init__(self):
        self.mutex = threading.Lock()
        self.writers, self.readers = [], []
        self.turns = {"ours": 0, "theirs": 0}
        self.overlaps = []

    def enter(self, who, shared):
        with self.mutex:
            if self.writers or (self.readers and not shared):
                self.overlaps.append("%s (%s) beside %s" % (who, "reader" if shared else "writer", self.writers + self.readers))
            (self.readers if shared else self.writers).append(who)
            self.turns[who.split()[0]] += 1

    def leave(self, who, shared):
        with self.mutex:
            (self.readers if shared else self.writers).remove(who)


def our_turns(command, url, who, shares, ledger, end):
    while time.monotonic() < end:
        shared = shares and random.random() < 0.5
        run = subprocess.Popen([command, "--url", url, "run", "--ttl", "10s"] + ["-s"] * shared +
                               ["storm", "--", "sh", "-c", "echo held; cat >/dev/null"],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert run.stdout.readline() == "held\n", who
        ledger.enter(who, shared)
        time.sleep(random.random() / 100)
        ledger.leave(who, shared)
        run.stdin.close()
        assert run.wait(PATIENCE) == 0, who


def their_turns(peer, who, shares, ledger, end):
    while time.monotonic() < end:
        shared = shares and random.random() < 0.5
        peer.ask("share" if shared else "take", "yes")
        ledger.enter(who, shared)
        time.sleep(random.random() / 100)
        ledger.leave(who, shared)
        peer.ask("release", "done")
    peer.end()


def main():
    kind = sys.argv[2]
    start, _, _, shares = peers.KINDS[kind]
    folder, peer = start()
    ledger, failed, threads = Ledger(), [], []

    def guard(turns, *args):
        try:
            turns(*args)
        except Exception as problem: # a thread's
            failed.append(problem)

    try:
        strangers = [peer("storm", 10000) for _ in range(THEIRS)]
        end = time.monotonic() + float(sys.argv[3] if len(sys.argv) > 3 else 10)
        for i in range(OURS):
            threads.append(threading.Thread(target=guard, args=(our_turns, sys.argv[1], peers.url(kind), "ours %d" % i, shares,
                                                                ledger, end)))
        for i, one in enumerate(strangers):
            threads.append(threading.Thread(target=guard, args=(their_turns, one, "theirs %d" % i, shares, ledger, end)))
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    finally:
        if folder is not None:
            shutil.rmtree(folder)
    print("%s: %d turns of ours, %d of theirs, %d overlaps" % (kind, ledger.turns["ours"], ledger.turns["theirs"],
                                                              len(ledger.overlaps)), flush=True)
    assert not failed, failed
    assert not ledger.overlaps, ledger.overlaps[:5]
    assert ledger.turns["ours"] > 5 and ledger.turns["theirs"] > 5, "one side never had its turn"


main()
