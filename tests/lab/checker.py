"""What must be true of every history, whatever was done to the programs, the network and the servers: one function for
each invariant, which yields what breaks it. `fatal` says whether a finding may not be, or is the known weakness that the
cell is there to show.

The token is the order in which a lock was held, so nothing has to be searched: sort, and sweep."""

import bisect
from dataclasses import dataclass, field

from history import MS, NEVER


@dataclass
class Terms:
    """What may be asked of a store and a fault."""

    has_token: bool = True
    has_lease: bool = True  # the lock outlives its holder's connection for the rest of its lease
    has_queue: bool = True
    keeps_place: bool = True  # the fault leaves the queue alone, so that order can be asked for
    keeps_grants: bool = True  # the store keeps what it has granted, and its clock; otherwise overlap is shown, and fenced
    seen: bool = True  # the observer can read this store
    ttl: int = 1000 * MS
    late: int = 2_000 * MS  # for so long a server may still work at a request that its client has given up
    bound: int = 10_000 * MS  # somebody is let in within this, or ten leases, while nothing is done to the servers; the dead cost leases


@dataclass
class Finding:
    rule: str
    text: str
    t: int
    fatal: bool = True


@dataclass
class Figures:
    grants: int = 0
    handovers: int = 0  # grants of those who had to wait
    places_lost: int = 0  # by waiters that the store did not hear in time, and which then queued anew
    failed: int = 0
    unknown: int = 0
    frozen_overlaps: int = 0
    shown_overlaps: int = 0  # beside a holder that ran: only where the store may forget
    refused: int = 0  # stale writes that the resource did not take
    unfenced: int = 0  # writes of two holders mixed, without a token to tell
    lost_frozen: int = 0  # told when the program went on
    lost: int = 0  # of programs that ran
    in_time: int = 0  # of these
    closest_ms: float | None = None  # between a loss told and the next one's grant
    ghosts: int = 0
    stall_ms: float = 0.0  # how long a lock lay free that somebody waited for
    findings: list = field(default_factory=list)


def overlaps(history):
    """Pairs of grants that were both believed in at one time, older first, with the time at which it began."""
    inside = {}
    for grant in history.grants:
        beside = [g for g in inside.get(grant.name, ()) if g.ended > grant.held]
        for other in beside:
            if grant.excludes(other) and other.believes(grant.held):
                yield other, grant, grant.held
        beside.append(grant)
        inside[grant.name] = beside


def i0_resource_takes_nothing_old(history, terms, figures):
    """What the resource has accepted never goes back. It also counts what it refused."""
    highest = {}
    last = {}
    for write in history.writes:
        name, token = write["n"], write["token"]
        if write["answer"] == "stale":
            figures.refused += 1
        elif write["answer"] == "none":
            before = last.get(name)
            if before and before != write["k"] and before in history.bids and history.bids[before].ended > write["t"]:
                figures.unfenced += 1
            last[name] = write["k"]
        else:
            if token < highest.get(name, 0):
                yield Finding("I0", f"'{name}': a write with token {token} is accepted after {highest[name]}", write["t"])
            if write["m"] == "x":
                highest[name] = max(highest.get(name, 0), token)


def i1_tokens_rise(history, terms, figures):
    """Tokens are unique, and rise in the order in which exclusive locks were held: who asks after another was granted
    has a larger one."""
    if not terms.has_token:
        return
    for name in {g.name for g in history.grants}:
        grants = [g for g in history.grants if g.name == name and g.mode == "x"]
        best = None  # of those granted so far, by time
        done = iter(grants)
        ahead = next(done, None)
        for grant in sorted(grants, key=lambda g: g.asked):
            while ahead is not None and ahead.held < grant.asked:
                best = ahead if best is None or ahead.token > best.token else best
                ahead = next(done, None)
            if best is not None and best is not grant and grant.token <= best.token:
                yield Finding("I1", f"'{name}': token {grant.token} of {grant.key} comes after {best.token} of {best.key}",
                              grant.held)
        seen = {}
        for grant in grants:
            if grant.token in seen:
                yield Finding("I1", f"'{name}': token {grant.token} is given to {seen[grant.token]} and {grant.key}", grant.held)
            seen[grant.token] = grant.key


def i2_no_two_inside(history, terms, figures):
    """No two that exclude each other believe in their locks at one time while both run; nor more than a limit allows."""
    for older, newer, t in overlaps(history):
        if history.excused(older.pid, t, older.ended):
            figures.frozen_overlaps += 1
            continue
        figures.shown_overlaps += 1
        yield Finding("I2", f"'{older.name}': {newer.key} is granted while {older.key} holds it, for "
                      f"{(min(older.ended, newer.ended, history.events[-1]['t']) - t) / MS:.1f} ms more", t, terms.keeps_grants)
    inside = {}
    for grant in history.grants:
        if not grant.limit:
            continue
        beside = [g for g in inside.get(grant.name, ()) if g.ended > grant.held]
        inside[grant.name] = beside + [grant]
        running = [g for g in beside if not history.excused(g.pid, grant.held, g.ended)]
        if len(running) + 1 > grant.limit:
            yield Finding("I2", f"'{grant.name}': {len(running) + 1} inside, at most {grant.limit} may be", grant.held,
                          terms.keeps_grants)


GONE = ("HF_TIMEOUT", "HF_CANCELLED", "HF_BUSY", "HF_UNAVAILABLE", "HF_CLOSED")


def i3_failed_bid_leaves_nothing(history, terms, figures):
    """A bid that timed out, was cancelled or refused is not in the store any more when it has returned; one of unknown
    outcome not after the time that it named."""
    told = set()
    for start, _, locks in history.seen:
        for name, entries in locks.items():
            for place, key in entries:
                bid = history.bids.get(key)
                if bid is None or bid.failed is None or key in told:
                    continue
                t, code, may_hold = bid.failed
                over = t if code in GONE else NEVER
                if code == "HF_UNKNOWN" and place == "inside":
                    over = t + may_hold + terms.ttl + terms.late
                if start > over:
                    told.add(key)
                    figures.ghosts += 1
                    yield Finding("I3", f"'{name}': {key} failed with {code}, and is {place} {(start - t) / MS:.1f} ms later", start)


def overtakes(history):
    """(who was passed, who passed it, when): asked after the other had been told that it waits, and granted first."""
    for name in {b.name for b in history.bids.values()}:
        bids = [b for b in history.bids.values() if b.name == name and not b.limit]
        waiting = sorted((b for b in bids if b.queued is not None), key=lambda b: b.queued)
        for grant in sorted((b for b in bids if b.held is not None), key=lambda b: b.held):
            for bid in waiting:
                if bid.queued >= grant.asked:
                    break
                if bid.excludes(grant) and bid.waits_until > grant.held:
                    yield bid, grant, grant.held
            waiting = [b for b in waiting if b.waits_until > grant.held]


def i4_first_come_first_served(history, terms, figures):
    """Nobody is overtaken by one who came later, as long as it runs and the store keeps the queue."""
    if not terms.has_queue or not terms.keeps_place:
        return
    for passed, by, t in overtakes(history):
        if by.mode == "x" and not history.paused(passed.pid, passed.asked, t):
            yield Finding("I4", f"'{by.name}': {by.key} is granted before {passed.key}, which waited "
                          f"{(by.asked - passed.queued) / MS:.1f} ms longer", t)


def i5_loss_is_told_in_time(history, terms, figures):
    """Who loses a lock is told before anybody else has it: by the grants, and by what the observer saw."""
    by_name = {}
    for grant in history.grants:
        by_name.setdefault(grant.name, []).append(grant)
    following = {}
    for grant in reversed(history.grants):
        later = following.setdefault(grant.name, [])
        if grant.lost is not None and grant.ended == grant.lost:
            after = next((g for g in reversed(later) if g.excludes(grant) and g.held > grant.held), None)
            margin = (after.held - grant.lost) / MS if after else 0
            if history.stopped(grant.pid, grant.held, grant.lost):
                figures.lost_frozen += 1
            else:
                figures.lost += 1
                figures.in_time += margin >= 0
                if after and margin >= 0:
                    figures.closest_ms = margin if figures.closest_ms is None else min(margin, figures.closest_ms)
                elif after and not history.excused(grant.pid, after.held, grant.lost):
                    yield Finding("I5", f"'{grant.name}': {grant.key} is told of its loss {-margin:.1f} ms after {after.key} "
                                  "was granted", grant.lost, terms.keeps_grants)
        later.append(grant)
    if not terms.keeps_grants:
        return
    for start, end, locks in history.seen:
        for name, entries in locks.items():
            inside = [history.bids[k] for place, k in entries if place == "inside" and k in history.bids]
            grants = by_name.get(name, [])
            upto = bisect.bisect_right(grants, start, key=lambda g: g.held)
            for grant in grants[max(0, upto - 12):upto]:
                if grant in inside or not grant.believes(start) or not grant.believes(end):
                    continue
                other = next((o for o in inside if o.excludes(grant)), None)
                if other is not None and not history.excused(grant.pid, start, grant.ended):
                    yield Finding("I5", f"'{name}': the store has {other.key} inside while {grant.key} holds", end)


def i6_closed_for_lease_and_delay(history, terms, figures):
    """A holder that vanished keeps the lock closed for what was left of its lease, and for its lock-delay."""
    if not terms.has_lease or not terms.keeps_grants:
        return
    for grant in history.grants:
        if grant.died is None or grant.release is not None or grant.ended != grant.died or grant.until > grant.held + 3600_000 * MS:
            continue
        opens = grant.until + grant.delay
        for other in history.grants:
            if other.excludes(grant) and grant.died < other.held < opens and other.asked != grant.asked:
                if other.held > grant.held and not other.ended < grant.held:
                    yield Finding("I6", f"'{grant.name}': {other.key} is granted {(opens - other.held) / MS:.1f} ms before the "
                                  f"lease and the lock-delay of {grant.key} were over", other.held)
                    break


def i7_writers_are_not_passed(history, terms, figures):
    """A reader that comes after a waiting writer does not pass it."""
    if not terms.has_queue or not terms.keeps_place:
        return
    for passed, by, t in overtakes(history):
        if by.mode == "s" and passed.mode == "x" and not history.paused(passed.pid, passed.asked, t):
            yield Finding("I7", f"'{by.name}': reader {by.key} passes writer {passed.key}, which waited before it came", t)


def i8_nothing_is_left(history, terms, figures):
    """A waiter is served after a release; and when all have gone the store is empty."""
    free = {}  # name: when the last of those granted so far was over
    for grant in history.grants:
        since = max(free.get(grant.name, NEVER), grant.asked)
        if since < grant.held:
            stall = grant.held - since
            figures.stall_ms = max(figures.stall_ms, stall / MS)
            if stall > max(terms.bound, 10 * grant.ttl) and terms.keeps_place and not history.disturbed(since - terms.ttl, grant.held):
                yield Finding("I8", f"'{grant.name}': {grant.key} comes in {stall / MS:.0f} ms after the lock was free", grant.held)
        free[grant.name] = max(free.get(grant.name, 0), grant.ended)
    if not terms.seen:
        return
    probed = history.times("probed")
    if not probed or not history.seen or history.seen[-1][0] < probed[-1]:
        yield Finding("I8", "nobody has looked at the store at the end", history.events[-1]["t"])
        return
    _, t, locks = history.seen[-1]
    for name, entries in locks.items():
        for place, key in entries:
            yield Finding("I8", f"'{name}': {key} is still {place} when all have gone", t)


def i9_everybody_gets_through(history, terms, figures):
    """When the faults are over, everybody obtains a lock, and ends when told to."""
    for event in history.events:
        if event["e"] == "stuck":
            yield Finding("I9", f"{event['who']} {event['why']}", event["t"])


def i10_lost_stays_lost(history, terms, figures):
    """A lost lock never turns back: its release is refused, it is not entered again, and a child of its holder never had it."""
    lost = {}
    for event in history.events:
        kind, key = event["e"], event.get("k")
        if kind == "lost":
            lost.setdefault(key, event["t"])
        elif kind == "unlost":
            yield Finding("I10", f"{key} was lost, and says that it is held again", event["t"])
        elif kind == "forked" and (event["state"] != 2 or event["release"] != -16):
            yield Finding("I10", f"{key}: a forked child may use it (state {event['state']}, release {event['release']})", event["t"])
        elif kind == "reentered" and key in lost and event["code"] == "HF_OK" and history.bids[key].release > lost[key]:
            if lost[key] < event["t"] and history.bids[key].lost < event["t"] - 50 * MS:
                yield Finding("I10", f"{key} was lost, and is entered again", event["t"])
        elif kind == "released" and key in lost and history.bids[key].release > lost[key] and event["code"] == "HF_OK":
            yield Finding("I10", f"{key} was lost, and its release says HF_OK", event["t"])


INVARIANTS = (i0_resource_takes_nothing_old, i1_tokens_rise, i2_no_two_inside, i3_failed_bid_leaves_nothing,
              i4_first_come_first_served, i5_loss_is_told_in_time, i6_closed_for_lease_and_delay,
              i7_writers_are_not_passed, i8_nothing_is_left, i9_everybody_gets_through, i10_lost_stays_lost)


def check(history, terms):
    figures = Figures(grants=len(history.grants))
    figures.handovers = sum(g.queued is not None for g in history.grants)
    for bid in history.bids.values():
        figures.places_lost += bid.places_lost
        if bid.failed:
            figures.failed += 1
            figures.unknown += bid.failed[1] == "HF_UNKNOWN"
    for invariant in INVARIANTS:
        figures.findings += invariant(history, terms, figures)
    return figures
