#!/usr/bin/python3
"""The same lock in the hands of holdfast and of another client, both ways, with crash and expiry.

    interop.py HOLDFAST curator|kazoo

Beside the server of tests/fleet/with-zookeeper. Exit status 77: the other client is not installed."""

import glob
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
HOSTS = os.environ["HOLDFAST_TEST_ZOOKEEPER"]
URL = "zookeeper://" + HOSTS + "/interop"
PATIENCE = 20
JARS = "/usr/share/java/"


class Peer:
    """The other client, or holdfast, behind two pipes."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self.hear("ready")

    def hear(self, word):
        line = self.process.stdout.readline().strip()
        assert line == word, "expected %r, heard %r" % (word, line)

    def say(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def ask(self, word, answer):
        self.say(word)
        self.hear(answer)

    def end(self):
        self.process.stdin.close()
        self.process.wait(PATIENCE)

    def kill(self):
        self.process.kill()
        self.process.wait()


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

    def waits(self, name, count):
        """Until so many wait for it."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            out = subprocess.run([self.command, "--url", URL, "--json", "show", name], capture_output=True, text=True).stdout
            if out.count('"waiting"') >= count:
                return
        raise AssertionError("nobody waits for " + name)


def curator():
    names = ["curator-recipes", "curator-framework", "curator-client", "zookeeper", "zookeeper-jute", "guava", "failureaccess",
             "slf4j-api", "slf4j-nop"]
    names += [os.path.basename(p)[:-4] for p in glob.glob(JARS + "netty*.jar")]
    path = ":".join(JARS + n + ".jar" for n in names if os.path.exists(JARS + n + ".jar"))
    if not os.path.exists(JARS + "curator-recipes.jar") or shutil.which("javac") is None:
        print("SKIPPED: libcurator-recipes-java or a JDK is not installed")
        sys.exit(77)
    folder = tempfile.mkdtemp(prefix="holdfast-curator-")
    subprocess.run(["javac", "-cp", path, "-d", folder, HERE + "/Peer.java"], check=True)
    return folder, lambda name, ms: Peer(["java", "-XX:TieredStopAtLevel=1", "-Xmx96m", "-cp", folder + ":" + path, "Peer", HOSTS,
                                          "/interop/" + name, str(ms)])


def kazoo():
    if subprocess.run([sys.executable, "-c", "import kazoo"], stderr=subprocess.DEVNULL).returncode != 0:
        print("SKIPPED: python3-kazoo is not installed")
        sys.exit(77)
    return None, lambda name, ms: Peer([sys.executable, HERE + "/peer_kazoo.py", HOSTS, "/interop/" + name, str(ms)])


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
    held = ours.take("crash", "--ttl", "1s")
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


def main():
    ours = Holdfast(sys.argv[1])
    folder, peer = {"curator": curator, "kazoo": kazoo}[sys.argv[2]]()
    try:
        for test in [we_hold, they_hold, we_crash, they_crash, we_expire]:
            began = time.monotonic()
            test(ours, peer)
            print("ok  %s: %s (%.1f s)" % (sys.argv[2], test.__name__, time.monotonic() - began), flush=True)
    finally:
        if folder is not None:
            shutil.rmtree(folder)


main()
