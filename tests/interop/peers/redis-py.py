#!/usr/bin/env python3
"""redis-py's Lock. See README.md."""

import sys
import time

import redis
from redis.exceptions import LockError

server = redis.Redis(host=sys.argv[1], port=int(sys.argv[2]))
locks = {}


def now():
    return time.monotonic_ns() // 1000


def attempt(name, ttl, patient):
    lock = server.lock(name, timeout=int(ttl) / 1000 or None)
    held = lock.acquire(blocking=patient)
    if held:
        locks[name] = lock
    return f"{'held' if held else 'busy'} {now()}"


def release(name):
    start = now()
    try:
        locks.pop(name).release()
    except LockError:
        return f"gone {start}"
    return f"released {start}"


def pairs(count):
    start = now()
    for _ in range(int(count)):
        lock = server.lock("bench", timeout=30)
        lock.acquire()
        lock.release()
    return f"pairs {now() - start}"


VERBS = {
    "try": lambda name, ttl: attempt(name, ttl, False),
    "wait": lambda name, ttl: attempt(name, ttl, True),
    "release": release,
    "pairs": pairs,
}

print("ready", flush=True)
for line in sys.stdin:
    verb, *words = line.split()
    print(VERBS[verb](*words), flush=True)
