#!/usr/bin/python3
"""How many connections a process takes, on a server that gives one machine only 16 (maxClientCnxns).

    connections.py HOLDFAST URL

Beside the server of tests/fleet/with-zookeeper."""

import os
import socket
import subprocess
import sys
import time

HOLDFAST, URL = sys.argv[1:]
os.environ["HOLDFAST_URL"] = URL + "?op_timeout=4s"
HOST, PORT = os.environ["HOLDFAST_TEST_ZOOKEEPER"].split(":")
MOST = int(os.environ["HOLDFAST_TEST_ZOOKEEPER_CONNECTIONS"])
WAITERS = 11
PATIENCE = 60


def connections():
    """As the server counts them, without the one that asks."""
    with socket.create_connection((HOST, int(PORT)), 5) as s:
        s.sendall(b"mntr")
        text = b""
        while part := s.recv(65536):
            text += part
    for line in text.decode().splitlines():
        if line.startswith("zk_num_alive_connections"):
            return int(line.split()[1]) - 1
    return MOST # it was not let in


def run(*words):
    return subprocess.Popen([HOLDFAST, "run", "--ttl", "30s", *words, "crowd", "--", "sh", "-c",
                             "echo held; cat >/dev/null"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def wait_until(what, is_true):
    end = time.monotonic() + PATIENCE
    while not is_true():
        assert time.monotonic() < end, "waited in vain for " + what
        time.sleep(0.05)


def entries():
    out = subprocess.run([HOLDFAST, "--json", "show", "crowd"], capture_output=True, text=True).stdout
    return out.count('"ticket"')


def waiting_processes_have_one_connection():
    crowd = [run()]
    assert crowd[0].stdout.readline() == "held\n"
    for i in range(WAITERS):
        crowd.append(run("-w", "10m"))
        wait_until("waiter %d to be queued" % (i + 1), lambda: entries() == i + 2)
    # The next in line keeps the session in which it will hold the lock: one more.
    wait_until("all to have one", lambda: connections() <= 1 + WAITERS + 1)
    for i, one in enumerate(crowd):
        if i > 0:
            assert one.stdout.readline() == "held\n", "waiter %d" % i
        one.stdin.close()
        assert one.wait(PATIENCE) == 0, "waiter %d" % i


def refusal_is_told():
    wait_until("the others to be gone", lambda: connections() == 0)
    taken = [socket.create_connection((HOST, int(PORT)), 5) for _ in range(MOST)]
    done = subprocess.run([HOLDFAST, "run", "-n", "crowd", "--", "true"], capture_output=True, text=True)
    assert done.returncode == 69 and "maxClientCnxns" in done.stderr, (done.returncode, done.stderr)
    done = subprocess.run([HOLDFAST, "doctor"], capture_output=True, text=True)
    assert "maxClientCnxns" in done.stdout, done.stdout
    for one in taken:
        one.close()


for test in [waiting_processes_have_one_connection, refusal_is_told]:
    test()
    print("ok  " + test.__name__, flush=True)
