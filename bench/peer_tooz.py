#!/usr/bin/python3
"""A peer on SQL servers: OpenStack's tooz (Debian: python3-tooz), whose locks are the server's own.

    peer_tooz.py postgres|mysql ROUNDS PAIRS LABEL

beside a server started by tests/fleet/with-postgres or with-mariadb. Prints figures as the benchmarks do; says
so and ends well where tooz is not installed."""

import json
import os
import sys
import time

try:
    from tooz import coordination
except ImportError:
    print("tooz is not installed (python3-tooz): left out", file=sys.stderr)
    sys.exit(0)

URLS = {
    "postgres": ("HOLDFAST_TEST_POSTGRES", "postgresql://postgres@{}?dbname=postgres"),
    "mysql": ("HOLDFAST_TEST_MARIADB", "mysql://app:secret@{}/locks"),
}


def main():
    store, rounds, pairs, label = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    variable, url = URLS[store]
    coordinator = coordination.get_coordinator(url.format(os.environ[variable]), b"bench")
    coordinator.start()
    lock = coordinator.get_lock(b"bench")
    for _ in range(rounds):
        begin = time.monotonic()
        for _ in range(pairs):
            lock.acquire()
            lock.release()
        each = (time.monotonic() - begin) / pairs * 1e6
        print(json.dumps({"figure": f"{store} {label}: pair, tooz", "value": round(each, 3), "unit": "us"}))
    coordinator.stop()


main()
