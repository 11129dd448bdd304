"""A recorded history, as the checker and the drawings read it.

Times are ns of CLOCK_MONOTONIC: of one machine, so their order is exact. A history is a list of events; from it come
bids, grants (a bid that was granted) and the times at which processes did not run."""

import json
import time

NEVER = float("inf")
MS = 1_000_000


class Writer:
    """Appends events, as history.c does."""

    def __init__(self, path):
        self.file = open(path, "ab", buffering=0)

    def add(self, event, **more):
        line = json.dumps({"t": time.monotonic_ns(), "e": event, **more}, separators=(",", ":"))
        self.file.write(line.encode() + b"\n")


class Bid:
    """One call of hf_acquire() and what became of it. `believed` to `ended` is the time in which its caller had reason to
    think that it held the lock: to the release, to the moment it was told of a loss, or to its death."""

    def __init__(self, event):
        self.key, self.name, self.who, self.pid = event["k"], event["n"], event["w"], event["pid"]
        self.mode, self.limit = event["m"], event["limit"]
        self.ttl, self.delay = event["ttl"] * MS, event["delay"] * MS
        self.asked = event["t"]
        self.wait = event["wait"] * MS
        self.queued = None  # when it was told that it waits, in the place that it has kept since
        self.places_lost = 0
        self.failed = None  # (time, code, may_hold in ns)
        self.held = None
        self.token = 0
        self.until = 0  # the last word on how long the lease lasts, on the safe side
        self.lost = None
        self.risk = None
        self.release = None  # called
        self.released = None  # (time, code)
        self.died = None
        self.away = []  # let go of and adopted again: (from, to)

    @property
    def ended(self):
        return min(t for t in (self.lost, self.release, self.died, NEVER) if t is not None)

    @property
    def waits_until(self):
        """It surely stood in line until then: one that gives up has left when it returns, at a time that nobody has noted."""
        if self.held is None and self.failed:
            return self.asked + self.wait if self.failed[1] == "HF_TIMEOUT" else self.queued
        return min(t for t in (self.held, self.died, NEVER) if t is not None)

    def excludes(self, other):
        """Whether the two may not be inside at one time, limits apart."""
        return self.name == other.name and self is not other and "x" in (self.mode, other.mode)

    def believes(self, t):
        return self.held is not None and self.held <= t < self.ended and not any(a <= t < b for a, b in self.away)


class History:
    def __init__(self, events):
        self.events = sorted(events, key=lambda e: e["t"])
        self.bids = {}
        self.pauses = {}  # pid: [(from, to)]: stopped, or without a processor
        self.stops = {}  # the same, by the nemesis alone
        self.faults = []  # (from, to, what): what the nemesis did to servers and network
        self.seen = []  # what the observer saw: (from, to, {name: [(place, key)]})
        self.writes = []
        self._stopped = {}
        for event in self.events:
            self._take(event)
        for pid, since in self._stopped.items():
            self._pause(pid, since, NEVER)
        self.grants = sorted((b for b in self.bids.values() if b.held is not None), key=lambda b: b.held)

    @classmethod
    def read(cls, path):
        with open(path, encoding="utf-8") as file:
            return cls([json.loads(line) for line in file])

    def paused(self, pid, start, end):
        """Whether the process did not run for some of this time."""
        return any(a < end and start < b for a, b in self.pauses.get(pid, ()))

    def excused(self, pid, start, end, grace=100 * MS):
        """Whether a process that should have acted at `start` and did so at `end` could not: it did not run at first, and then
        took no longer than `grace` to notice."""
        reach = start
        for a, b in sorted(self.pauses.get(pid, ())):
            if a <= reach <= b + grace:
                reach = b + grace
        return reach > start and end <= reach

    def stopped(self, pid, start, end):
        """Whether the nemesis had stopped the process in this time."""
        return any(a < end and start < b for a, b in self.stops.get(pid, ()))

    def disturbed(self, start, end):
        """Whether the nemesis was at servers or network in this time."""
        return any(a < end and start < b for a, b, _ in self.faults)

    def times(self, event):
        return [e["t"] for e in self.events if e["e"] == event]

    def _take(self, event):
        kind, t = event["e"], event["t"]
        if kind == "bid":
            self.bids[event["k"]] = Bid(event)
        elif kind == "write":
            self.writes.append(event)
        elif kind == "seen":
            self.seen.append((event["from"], t, event["locks"]))
        elif kind == "gap":
            self.pauses.setdefault(event["pid"], []).append((event["from"], t))
        elif kind == "stop":
            self._stopped[event["pid"]] = t
        elif kind == "cont":
            self._pause(event["pid"], self._stopped.pop(event["pid"], t), t)
        elif kind == "fault":
            self.faults.append((event["from"], t, event["what"]))
        elif kind == "died":
            for bid in self.bids.values():
                if bid.pid == event["pid"] and bid.died is None:
                    bid.died = t
        elif event.get("k") in self.bids:
            self._take_of_bid(self.bids[event["k"]], kind, t, event)

    def _pause(self, pid, start, end):
        self.pauses.setdefault(pid, []).append((start, end))
        self.stops.setdefault(pid, []).append((start, end))

    @staticmethod
    def _take_of_bid(bid, kind, t, event):
        if kind == "queued":
            bid.places_lost += bid.queued is not None
            bid.queued = t
        elif kind == "fail":
            hold = event["may_hold"]
            bid.failed = (t, event["code"], hold * MS if hold >= 0 else NEVER)
        elif kind == "held":
            bid.held, bid.token, bid.until = t, event["token"], event["until"]
        elif kind == "renewed":
            bid.until = max(bid.until, event["until"])
        elif kind == "detach":
            bid.away.append((t, NEVER))
        elif kind in ("adopted", "kept"):
            bid.away[-1] = (bid.away[-1][0], t)
            bid.until = max(bid.until, event.get("until", 0))
        elif kind == "left":  # let go of, and not had again
            bid.release = bid.away[-1][0]
        elif kind == "risk":
            bid.risk = bid.risk or t
        elif kind == "lost":
            bid.lost = bid.lost or t
        elif kind == "release":
            bid.release = t
        elif kind == "released":
            bid.released = (t, event["code"])
