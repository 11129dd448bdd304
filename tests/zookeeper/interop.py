#!/usr/bin/python3
"""The same lock in the hands of holdfast and of another client, both ways, with crash and expiry.

    interop.py HOLDFAST curator|curator-rw|recipe|kazoo|kazoo-plain|kazoo-rw|tooz

Beside the server of tests/fleet/with-zookeeper. Exit status 77: the other client is not installed."""

import os
import shutil
import signal
import subprocess
import sys
import time

import peers
from peers import PATIENCE

URL = peers.url(sys.argv[2])


class Holdfast:
    def __init__(self, command):
        self.command = command
        self.held = None

    def run(self, name, *options):
        return [self.command, "--url", URL, "run", *options, name, "--", "sh", "-c", "echo held; cat >/dev/null"]

    def take(self, name, *options):
        """Holds it until release(); returns when it is held."""
        self.held = subprocess.Popen(self.run(name, *options), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self.held

    def wait_held(self):
        assert self.held.stdout.readline() == "held\n"

    def release(self):
        self.held.stdin.close()
        assert self.held.wait(PATIENCE) == 0

    def is_busy(self, name):
        status = subprocess.run([self.command, "--url", URL, "run", "--wait", "0", name, "--", "true"],
                                stderr=subprocess.DEVNULL).returncode
        return status != 0

    def who(self, name):
        """What people are told of its holders."""
        return subprocess.run([self.command, "--url", URL, "show", name], capture_output=True, text=True).stdout

    def waits(self, name, count):
        """Until so many wait for it."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            out = subprocess.run([self.command, "--url", URL, "--json", "show", name], capture_output=True, text=True).stdout
            if out.count('"waiting"') >= count:
                return
        raise AssertionError("nobody waits for " + name)


def we_hold(ours, peer):
    """Ours is respected, and handed over by a release."""
    ours.take("ours")
    ours.wait_held()
    other = peer("ours", 4000)
    other.ask("try", "no")
    other.say("take")
    ours.waits("ours", 1)
    ours.release()
    other.hear("yes")
    other.ask("release", "done")
    other.end()


def they_hold(ours, peer):
    """Theirs is respected, and handed over by their release."""
    other = peer("theirs", 4000)
    other.ask("take", "yes")
    assert ours.is_busy("theirs")
    assert "(another client)" in ours.who("theirs"), ours.who("theirs")
    ours.take("theirs")
    ours.waits("theirs", 1)
    other.ask("release", "done")
    ours.wait_held()
    other.ask("try", "no")
    ours.release()
    other.ask("try", "yes")
    other.end()


def we_crash(ours, peer):
    """kill -9 of the holder: the other side has it when the session has ended."""
    held = ours.take("crash", "--ttl", "5s")
    ours.wait_held()
    other = peer("crash", 4000)
    other.say("take")
    ours.waits("crash", 1)
    began = time.monotonic()
    os.kill(held.pid, signal.SIGKILL)
    held.stdin.close()
    other.hear("yes")
    assert time.monotonic() - began < PATIENCE
    held.wait()
    other.ask("release", "done")
    other.end()


def they_crash(ours, peer):
    other = peer("halt", 1000)
    other.ask("take", "yes")
    ours.take("halt")
    ours.waits("halt", 1)
    other.kill()
    ours.wait_held()
    ours.release()


def we_expire(ours, peer):
    """A holder that stands still for longer than its session finds its lock lost, and its child ended."""
    held = ours.take("frozen", "--ttl", "3s")
    ours.wait_held()
    other = peer("frozen", 4000)
    assert held.poll() is None
    os.kill(held.pid, signal.SIGSTOP)
    stopped = time.monotonic()
    other.ask("take", "yes")
    assert time.monotonic() - stopped > 1, "the session of a holder lasts as long as its ttl"
    os.kill(held.pid, signal.SIGCONT)
    status = held.wait(PATIENCE)
    assert status != 0, "a lost lock must not look like success"
    other.ask("release", "done")
    other.end()


def readers(ours, peer):
    """Their readers keep our writers out and let our readers in; ours keep their writers out."""
    other = peer("readers", 4000)
    other.ask("share", "yes")
    assert ours.is_busy("readers")
    ours.take("readers", "-s")
    ours.wait_held()
    ours.release()
    other.ask("release", "done")
    ours.take("readers", "-s")
    ours.wait_held()
    other.ask("try", "no")
    other.say("take")
    ours.waits("readers", 1)
    ours.release()
    other.hear("yes")
    other.ask("release", "done")
    other.end()


def main():
    ours = Holdfast(sys.argv[1])
    start, _, _, shares = peers.KINDS[sys.argv[2]]
    folder, peer = start()
    try:
        for test in [we_hold, they_hold, we_crash, they_crash, we_expire] + ([readers] if shares else []):
            began = time.monotonic()
            test(ours, peer)
            print("ok  %s: %s (%.1f s)" % (sys.argv[2], test.__name__, time.monotonic() - began), flush=True)
    finally:
        if folder is not None:
            shutil.rmtree(folder)


main()
