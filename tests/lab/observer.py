#!/usr/bin/env python3
"""Reads what a store has on record, without holdfast: by the store's own kind of client.

    observer.py KIND WHERE PREFIX HISTORY       until SIGTERM

Each look that differs from the last is written down as {"e":"seen","from":...,"locks":{NAME:[[PLACE,KEY],...]}}, `from`
being the time before the question and `t` that after the answer. A KEY is the note that a worker gave its bid. The last
look is written down in any case. What has expired and waits to be swept is no entry: the lease is over."""

import base64
import json
import signal
import sqlite3
import sys
import time
import urllib.request

from history import Writer

PAUSE = 0.01


class Sqlite:
    def __init__(self, where):
        self.path = where

    def look(self, prefix):
        with sqlite3.connect(f"file:{self.path}?mode=ro", uri=True, timeout=1) as db:
            rows = db.execute("SELECT l.name, e.place, e.note, e.until FROM holdfast_entry e JOIN holdfast_lock l ON l.id = e.lock"
                              " WHERE e.place < 3").fetchall()
        now = time.clock_gettime(time.CLOCK_BOOTTIME) * 1000
        return [(bytes(n).decode(), "inside" if p == 2 else "waiting", note) for n, p, note, until in rows
                if until is None or until > now]


class Redis:
    """The book has a sole holder, the hash all others; the key is the truth."""

    NAMES = ("a", "seats", "forever")

    def __init__(self, where):
        import redis

        self.sentinels = None
        if where.startswith("sentinel:"):
            hosts = [h.split(":") for h in where[9:].split(",")]
            self.sentinels = redis.sentinel.Sentinel([(h, int(p)) for h, p in hosts], socket_timeout=0.3)
        else:
            host, port = where.split(":")
            self.db = redis.Redis(host=host, port=int(port), socket_timeout=1, socket_connect_timeout=1)

    def look(self, prefix):
        db = self.sentinels.master_for("m", socket_timeout=0.5) if self.sentinels else self.db
        found = []
        for name in self.NAMES:
            key = f"holdfast:{prefix}_{name}"
            with db.pipeline(transaction=True) as pipe:
                pipe.get(key).get(f"holdfast.b:{{{key}}}").hgetall(f"holdfast.t:{{{key}}}").time()
                held, book, others, (seconds, micros) = pipe.execute()
            now = seconds * 1000 + micros // 1000
            entries = dict(others)
            if book and b"\0" in book:
                head, _, rest = book.partition(b"\0")
                words = head.split(b" ")
                for i in range(len(words) - 1):  # ... TICKET IXY since until ...
                    if len(words[i]) == 32 and len(words[i + 1]) == 3:
                        entries[words[i]] = b" ".join(words[i + 1:]) + b"\0" + rest
            for ticket, text in entries.items():
                head, *_, note = text.split(b"\0")
                place, _, until, *_ = head.split(b" ")
                inside = place[:1] == b"I" and held is not None and (held == ticket or held.startswith(b"shared:"))
                if inside or (place[:1] == b"W" and int(until) > now):
                    found.append((f"{prefix}_{name}", "inside" if inside else "waiting", note.decode()))
        return found


class Postgres:
    QUERY = ("SELECT convert_from(name, 'UTF8'), 'inside', note FROM holdfast_holder WHERE NOT lingering AND until > clock_timestamp()"
             " UNION ALL SELECT convert_from(name, 'UTF8'), 'waiting', note FROM holdfast_waiter WHERE until > clock_timestamp()")

    def __init__(self, where):
        self.where, self.db = where, None

    def look(self, prefix):
        import psycopg2

        if self.db is None:
            hosts, ports = zip(*(at.split(":") for at in self.where.split(",")))
            self.db = psycopg2.connect(host=",".join(hosts), port=",".join(ports), user="postgres", dbname="postgres",
                                       connect_timeout=1, target_session_attrs="read-write")
            self.db.autocommit = True
        try:
            with self.db.cursor() as cursor:
                cursor.execute(self.QUERY)
                return cursor.fetchall()
        except Exception:
            self.db = None
            raise


class Mysql:
    QUERY = ("SELECT name, 'inside', note FROM holdfast_holder WHERE NOT lingering AND until > UTC_TIMESTAMP(6)"
             " UNION ALL SELECT name, 'waiting', note FROM holdfast_waiter WHERE until > UTC_TIMESTAMP(6)"
             " UNION ALL SELECT name, 'inside', note FROM holdfast_lock WHERE inside IS NOT NULL AND inside <> REPEAT(CHAR(0), 16)"
             " AND since + INTERVAL ttl * 1000 MICROSECOND > UTC_TIMESTAMP(6)")

    def __init__(self, where):
        self.where, self.db = where, None

    def look(self, prefix):
        import pymysql

        if self.db is None:
            host, port = self.where.split(":")
            self.db = pymysql.connect(host=host, port=int(port), user="app", password="secret", database="locks",
                                      autocommit=True, connect_timeout=1, read_timeout=1)
            with self.db.cursor() as cursor:
                cursor.execute("SET SESSION wsrep_sync_wait = 1")  # of Galera: first what the other nodes have committed
        try:
            with self.db.cursor() as cursor:
                cursor.execute(self.QUERY)
                return [tuple(v.decode() if isinstance(v, bytes) else v for v in row) for row in cursor.fetchall()]
        except Exception:
            self.db = None
            raise


class Etcd:
    """By the JSON gateway: places in line, and the marks of those who were let in, in one reading."""

    def __init__(self, where):
        self.hosts = where.split(",")
        self.open = urllib.request.build_opener(urllib.request.ProxyHandler({})).open

    def look(self, prefix):
        ask = json.dumps({"key": "AA==", "range_end": "AA=="})  # all there is
        try:
            with self.open(f"http://{self.hosts[0]}/v3/kv/range", ask.encode(), timeout=0.7) as answer:
                kvs = json.load(answer).get("kvs", [])
        except Exception:
            self.hosts = self.hosts[1:] + self.hosts[:1]
            raise
        pairs = [(base64.b64decode(kv["key"]).decode(), base64.b64decode(kv.get("value", "")).decode()) for kv in kvs]
        let_in = {key.rsplit("/", 1)[1] for key, _ in pairs if "/.holdfast/inside/" in key}
        found = []
        for key, value in pairs:
            *_, name, mode, lease = ["", "", "", *key.split("/")]
            if mode in ("write", "read"):
                found.append((name, "inside" if lease in let_in else "waiting", json.loads(value).get("note", "")))
        return found


class Zookeeper:
    """The children in the order of their numbers; `sync` first, since a server may lag. The note is in a node's data."""

    def __init__(self, where):
        import logging

        from kazoo.client import KazooClient

        logging.disable(logging.CRITICAL)
        self.client = KazooClient(hosts=where, timeout=5, auth_data=[("digest", "tests:secret")])
        self.client.start(timeout=10)
        self.notes = {}

    def look(self, prefix):
        from kazoo.exceptions import NoNodeError

        found = []
        self.client.sync("/locks")
        for name in (f"{prefix}_a", f"{prefix}_forever"):
            try:
                children = self.client.get_children(f"/locks/{name}")
            except NoNodeError:
                continue
            children.sort(key=lambda c: int(c[-10:]))
            writer = False
            for i, child in enumerate(children):
                note = self.note(f"/locks/{name}/{child}")
                inside = not writer and ("-read-" in child or i == 0)
                writer = writer or "-read-" not in child
                if note:
                    found.append((name, "inside" if inside else "waiting", note))
        return found

    def note(self, path):
        if path not in self.notes:
            from kazoo.exceptions import NoNodeError

            try:
                self.notes[path] = self.client.get(path)[0].decode(errors="replace")
            except NoNodeError:
                return None
        return next((w[5:] for w in self.notes[path].split() if w.startswith("note=")), None)


class Cassandra:
    def __init__(self, where):
        from cassandra import ConsistencyLevel
        from cassandra.cluster import Cluster
        from cassandra.query import SimpleStatement

        hosts = [h.split(":") for h in where.split(",")]
        self.cluster = Cluster([h for h, _ in hosts], port=int(hosts[0][1]), protocol_version=4, connect_timeout=10)
        self.session = self.cluster.connect("holdfast")
        self.ask = SimpleStatement("SELECT label, holders, waiters FROM locks", consistency_level=ConsistencyLevel.SERIAL)

    def look(self, prefix):
        found = []
        for label, holders, waiters in self.session.execute(self.ask, timeout=2):
            found += [(label, "inside", h.note) for h in holders or () if h.state == "inside" and
                      (h.until is None or h.until.timestamp() > time.time())]
            found += [(label, "waiting", w.note) for w in waiters or ()]
        return found


class Redlock:
    """By a majority of the servers: a value in the key is a ticket. Its worker is found in the history, by the ticket, so
    nothing but tickets is seen here; and a bid that failed has none. So it only sees what is left at the end."""

    def __init__(self, where):
        import redis

        self.servers = [redis.Redis(host=h, port=int(p), socket_timeout=0.3, socket_connect_timeout=0.3)
                        for h, p in (w.split(":") for w in where.split(","))]

    def look(self, prefix):
        import redis

        votes = {}
        for server in self.servers:
            try:
                for key in server.scan_iter(f"*{prefix}_*"):
                    votes.setdefault((key, server.get(key)), []).append(server)
            except redis.exceptions.RedisError:
                continue
        return [(key.decode().split(":", 1)[-1], "inside", (ticket or b"?").decode()) for (key, ticket), yes in votes.items()
                if len(yes) * 2 > len(self.servers)]


KINDS = {c.__name__.lower(): c for c in (Sqlite, Redis, Postgres, Mysql, Etcd, Zookeeper, Cassandra, Redlock)}


def main():
    kind, where, prefix, history = sys.argv[1:]
    signal.signal(signal.SIGTERM, lambda *_: stop.append(1))
    stop = []
    writer = Writer(history)
    observer, last, failures, end = None, None, 0, None
    while True:
        start = time.monotonic_ns()
        if stop and end is None:
            end = time.monotonic() + 15  # for a last look
        try:
            observer = observer or KINDS[kind](where)
            locks = {}
            for name, place, key in observer.look(prefix):
                if name.startswith(prefix + "_"):
                    locks.setdefault(name, []).append([place, key])
            if locks != last or end is not None:
                writer.add("seen", **{"from": start, "locks": locks})
                last, failures = locks, 0
            if end is not None:
                return
        except Exception as error:  # the server is away, as it is meant to be
            last, failures = None, failures + 1
            if failures % 3 == 0:
                observer = None  # a client of the server may take its time to try again
            if end is not None and time.monotonic() > end:
                writer.add("unseen", why=f"{type(error).__name__}: {error}"[:300])
                return
        time.sleep(PAUSE)


if __name__ == "__main__":
    main()
