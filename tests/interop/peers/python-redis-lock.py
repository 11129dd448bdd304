#!/usr/bin/env python3
"""python-redis-lock's Lock, whose waiters sleep until they are signalled. See README.md."""

import sys
import time

import redis
import redis_lock

server = redis.StrictRedis(host=sys.argv[1], port=int(sys.argv[2]))
locks = {}


def now():
    return time.monotonic_ns() // 1000


def attempt(name, ttl, patient):
    lock = redis_lock.Lock(server, name, expire=-(-int(ttl) // 1000) or None)
    held = lock.acquire(blocking=patient)
    if held:
        locks[name] = lock
    return f"{'held' if held else 'busy'} {now()}"


def release(name):
    start = now()
    try:
        locks.pop(name).release()
    except redis_lock.NotAcquired:
        return f"gone {start}"
    return f"released {start}"


VERBS = {
    "try": lambda name, ttl: attempt(name, ttl, False),
    "wait": lambda name, ttl: attempt(name, ttl, True),
    "release": release,
}

print("ready", flush=True)
for line in sys.stdin:
    verb, *words = line.split()
    print(VERBS[verb](*words), flush=True)
