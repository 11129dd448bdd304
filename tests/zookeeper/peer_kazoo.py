"""A lock of kazoo, or of tooz, that is told what to do by its standard input: one word a line.

    peer_kazoo.py HOSTS PATH SESSION_MS [pattern|plain|rw|tooz]

For bench/zookeeper-peers it tells the time, in ns of the monotonic clock: of a pair, when it got the lock, before it
let go of it."""

import logging
import os
import sys
import time

from kazoo.client import KazooClient

logging.disable(logging.CRITICAL)
kind = sys.argv[4] if len(sys.argv) > 4 else "pattern"
if kind == "tooz":
    sys.modules["eventlet"] = None # it would be loaded if it is there, and asks name servers
    from tooz import coordination
    client = coordination.get_coordinator("kazoo://%s?timeout=%d" % (sys.argv[1], int(sys.argv[3]) // 1000),
                                          b"peer%d" % os.getpid())
else:
    client = KazooClient(hosts=sys.argv[1], timeout=int(sys.argv[3]) / 1000)
client.start()
path = sys.argv[2]
readers = None
if kind == "pattern": # kazoo looks only for names of its own unless it is told of others.
    lock = client.Lock(path, extra_lock_patterns=["-lock-"])
elif kind == "plain":
    lock = client.Lock(path)
elif kind == "rw":
    lock, readers = client.WriteLock(path), client.ReadLock(path)
else:
    lock = client.get_lock(os.path.basename(path).encode())
held = lock
print("ready", flush=True)
for word in sys.stdin:
    word = word.strip()
    if word == "try":
        held = lock
        print("yes" if lock.acquire(blocking=False) else "no", flush=True)
    elif word in ("take", "share"):
        held = lock if word == "take" else readers
        held.acquire()
        print("yes", flush=True)
    elif word == "release":
        held.release()
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
