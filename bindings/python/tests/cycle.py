"""cycle.py URL COUNT: for each line on standard input, COUNT times acquire and release; prints the microseconds of one. bench/bindings
runs it beside the same programs in other languages."""

import sys
import time

import holdfast

count = int(sys.argv[2])
with holdfast.open(sys.argv[1]) as locks:
    lock = locks.lock("cycle")
    for _ in sys.stdin:
        start = time.perf_counter()
        for _ in range(count):
            lock.acquire().release()
        print(f"{(time.perf_counter() - start) / count * 1e6:.3f}", flush=True)
