#!/usr/bin/env python3
"""Records how a lock is lost: the command `holdfast run` is cut off from its store, and another program takes over.

    tests/fleet/with-redis tests/lab/story.py BUILD HISTORY

Draw it by timeline.py. What the command says, and what becomes of its child, is written down as it is seen."""

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time

from cell import Proxies
from history import Writer

CHILD = r"""
import os, socket, time
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect(os.environ["RESOURCE"])
words = f"c c_0_1 story_a x {os.environ['HOLDFAST_TOKEN']} {os.environ['HOLDFAST_SEQUENCER']}"
print(words, flush=True)
while True:
    s.send(words.encode())
    s.recv(16)
    time.sleep(0.1)
"""


class Story:
    def __init__(self, build, path):
        self.build, self.path = build, path
        self.history = Writer(path)
        self.server = os.environ["HOLDFAST_TEST_REDIS"]
        self.url = f"redis://{self.server}/0?op_timeout=1s"
        self.directory = tempfile.mkdtemp(prefix="holdfast-story.")
        self.socket = os.path.join(self.directory, "s")

    def program(self, name):
        return os.path.join(self.build, "tests", "lab", name)

    def say(self, lane, words):
        self.history.add("note", w=lane, says=words)

    def listen(self, command):
        """What `holdfast run` says on standard error."""
        for line in command.stderr:
            if "could not be renewed yet" in line:
                self.history.add("risk", w="h", k="h_0_1", pid=0)
            elif "is given up" in line:
                self.history.add("lost", w="h", k="h_0_1", pid=0)
                self.say("c", "sent SIGTERM")

    def tell(self):
        resource = subprocess.Popen([self.program("resource"), self.socket, self.path])
        proxies = Proxies(self.program("fault_proxy"), [self.server])
        while not os.path.exists(self.socket):
            time.sleep(0.01)
        self.history.add("bid", w="h", k="h_0_1", n="story_a", m="x", limit=0, ttl=2000, delay=0, wait=-1, pid=0)
        command = subprocess.Popen(
            [os.path.join(self.build, "cli", "holdfast"), "run", "-u", proxies.url(self.url), "--ttl", "2s", "--on-lost", "kill",
             "story_a", "--", sys.executable, "-c", CHILD], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "RESOURCE": self.socket})
        words = command.stdout.readline().strip()
        self.history.add("held", w="h", k="h_0_1", n="story_a", token=int(words.split()[4]), ticket="", until=0, pid=0)
        self.say("h", "has the lock, and renews it")
        self.history.add("bid", w="c", k="c_0_0", n="story_a", m="s", limit=0, ttl=0, delay=0, wait=0, pid=1)
        self.history.add("held", w="c", k="c_0_0", n="story_a", token=0, ticket="", until=0, pid=1)
        self.say("c", "runs, and writes ten times a second")
        threading.Thread(target=self.listen, args=(command,), daemon=True).start()
        other = subprocess.Popen([self.program("worker"), "--url", self.url, "--id", "w1", "--history", self.path, "--resource",
                                  self.socket, "--prefix", "story", "--ttl", "2000", "--turns", "1", "--hold", "900", "--hold-max", "1000"])
        time.sleep(1.2)
        since = time.monotonic_ns()
        proxies.set("hole")
        command.wait()
        self.history.add("died", pid=1)
        self.say("h", f"ends with status {command.returncode}")
        self.late_write(words, other)
        self.history.add("fault", what="holdfast run is cut off from its store", **{"from": since})
        other.wait()
        resource.kill()
        proxies.end()

    def late_write(self, words, other):
        """A write of the first holder that was on its way when it ended: it arrives when the next one holds the lock, and has written."""
        def written():
            with open(self.path, encoding="utf-8") as file:
                return any(e["e"] == "write" and e["w"] == "w1_0" for e in map(json.loads, file))

        while not written() and other.poll() is None:
            time.sleep(0.01)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as late:
            late.connect(self.socket)
            late.send(words.encode())
            late.recv(16)


if __name__ == "__main__":
    Story(*sys.argv[1:]).tell()
