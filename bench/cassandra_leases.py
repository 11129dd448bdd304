#!/usr/bin/python3
"""The published recipe by the Python driver, for bench/cassandra.c: says "ready", then reads numbers of pairs and
answers with microseconds per pair."""

import sys
import time

from cassandra import ConsistencyLevel
from cassandra.cluster import Cluster


def main(hosts):
    names = [host.rsplit(":", 1)[0] for host in hosts.split(",")]
    cluster = Cluster(names, port=int(hosts.rsplit(":", 1)[1]), protocol_version=4)
    session = cluster.connect("bench")
    claim = session.prepare("INSERT INTO leases (name, owner) VALUES (?, ?) IF NOT EXISTS")
    drop = session.prepare("DELETE FROM leases WHERE name = ? IF owner = ?")
    for statement in claim, drop:
        statement.consistency_level = ConsistencyLevel.QUORUM
        statement.serial_consistency_level = ConsistencyLevel.SERIAL
    print("ready", flush=True)
    for line in sys.stdin:
        began = time.monotonic()
        for _ in range(int(line)):
            for statement in claim, drop:
                if not session.execute(statement, ("python", "me")).was_applied:
                    raise SystemExit("not applied")
        print((time.monotonic() - began) / int(line) * 1e6, flush=True)
    cluster.shutdown()


main(sys.argv[1])
