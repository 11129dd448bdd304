"""A lock of kazoo that is told what to do by its standard input: one word a line.

    peer_kazoo.py HOSTS PATH SESSION_MS

For bench/zookeeper-peers it tells the time, in ns of the monotonic clock: of a pair, when it got the lock, before it
let go of it."""

import logging
import os
import sys
import time

from kazoo.client import KazooClient

logging.disable(logging.CRITICAL)
client = KazooClient(hosts=sys.argv[1], timeout=int(sys.argv[3]) / 1000)
client.start()
# kazoo looks only for names of its own unless it is told of others.
lock = client.Lock(sys.argv[2], extra_lock_patterns=["-lock-"])
print("ready", flush=True)
for word in sys.stdin:
    word = word.strip()
    if word == "try":
        print("yes" if lock.acquire(blocking=False) else "no", flush=True)
    elif word == "take":
        lock.acquire()
        print("yes", flush=True)
    elif word == "release":
        lock.release()
        print("done", flush=True)
    elif word.startswith("pairs "):
        count = int(word[6:])
        began = time.monotonic_ns()
        for _ in range(count):
            lock.acquire()
            lock.release()
        print((time.monotonic_ns() - began) // count, flush=True)
    elif word == "get":
        lock.acquire()
        print(time.monotonic_ns(), flush=True)
    elif word == "pass":
        began = time.monotonic_ns()
        lock.release()
        print(began, flush=True)
    elif word == "crash":
        os._exit(9)
client.stop()
