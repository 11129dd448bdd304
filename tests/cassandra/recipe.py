#!/usr/bin/env python3
"""The published recipe for locks in Cassandra, by the Python driver, in the table that holdfast setup made.

    recipe.py take|refused|await|drop NAME OWNER

take: it must be free; refused: it must be held by somebody else; await: it must become free within ten
seconds, by its TTL; drop: it must be held by OWNER."""

import os
import sys
import time

from cassandra import ConsistencyLevel
from cassandra.cluster import Cluster


def applied(session, text, *values):
    statement = session.prepare(text)
    statement.consistency_level = ConsistencyLevel.QUORUM
    statement.serial_consistency_level = ConsistencyLevel.SERIAL
    return session.execute(statement, values).one()[0]


def take(session, name, owner):
    return applied(session, "INSERT INTO leases (name, owner, value) VALUES (?, ?, 'x') IF NOT EXISTS", name, owner)


def main():
    what, name, owner = sys.argv[1:]
    nodes = [node.split(":") for node in os.environ["HOLDFAST_TEST_CASSANDRA"].split(",")]
    cluster = Cluster([host for host, _ in nodes], port=int(nodes[0][1]), protocol_version=4)
    session = cluster.connect("holdfast")
    if what == "drop":
        return not applied(session, "DELETE FROM leases WHERE name = ? IF owner = ?", name, owner)
    if what == "refused":
        return bool(take(session, name, owner))
    until = time.monotonic() + (10 if what == "await" else 0)
    while not take(session, name, owner):
        if time.monotonic() > until:
            return 1
        time.sleep(0.05)
    return 0


sys.exit(main())
