"""Server-sent events: the full list first, then what has changed, from where one was."""

import sys

from served import Server, Stream, eventually, main

EVENTS = "/v1/stores/main/events"


class Seen:
    """What somebody knows who only listens."""

    def __init__(self, stream):
        self.stream = stream
        self.locks = {}

    def read(self):
        data = self.stream.expect("locks")
        if data["full"]:
            self.locks = {}
        assert data["as_of_ms"] >= 0
        for lock in data["locks"]:
            if lock["free"]:
                self.locks.pop(lock["name"], None)
            else:
                self.locks[lock["name"]] = [h["ticket"] for h in lock["holders"]]
        return data

    def until(self, names):
        while sorted(self.locks) != sorted(names):
            self.read()


def test_the_full_list_comes_first_then_the_changes():
    with Server() as server:
        server.command("lock", "-q", "--ttl", "1m", "a")
        ticket = server.command("lock", "-q", "--ttl", "1m", "b").decode().strip()
        with server.stream("GET", EVENTS) as stream:
            assert stream.response.headers["Content-Type"] == "text/event-stream"
            seen = Seen(stream)
            assert seen.read()["full"] and sorted(seen.locks) == ["a", "b"]
            server.command("unlock", "b", "--ticket", ticket)
            change = seen.read()
            assert not change["full"] and [(lock["name"], lock["free"]) for lock in change["locks"]] == [("b", True)]
            server.command("lock", "-q", "--ttl", "1m", "c")
            seen.until(["a", "c"])


def test_an_empty_store_is_a_full_list_of_nobody():
    with Server() as server, server.stream("GET", EVENTS) as stream:
        assert stream.expect("locks")["locks"] == []


def test_name_and_prefix_choose():
    with Server() as server:
        with server.stream("GET", EVENTS + "?name=a%2F1") as one, server.stream("GET", EVENTS + "?prefix=a%2F") as some:
            only, all_of_a = Seen(one), Seen(some)
            assert only.read()["locks"] == [] and all_of_a.read()["locks"] == []
            for name in ("b", "a/1", "a/10", "a0", "a"):
                server.command("lock", "-q", "--ttl", "1m", name)
            only.until(["a/1"])
            all_of_a.until(["a/1", "a/10"])
        for wrong in ("name=&prefix=x", "name=a&prefix=a", "name=", "prefix=" + "x" * 513):
            assert server.get(f"{EVENTS}?{wrong}").status == 400, wrong


def test_who_comes_back_is_told_what_has_changed_meanwhile():
    with Server() as server:
        server.command("lock", "-q", "--ttl", "1m", "a")
        gone = server.command("lock", "-q", "--ttl", "1m", "gone").decode().strip()
        with server.stream("GET", EVENTS) as stream:
            seen = Seen(stream)
            seen.read()
        eventually(lambda: b"holdfast_serve_streams 0\n" in server.get("/metrics").bytes)
        server.command("unlock", "gone", "--ticket", gone)
        server.command("lock", "-q", "--ttl", "1m", "new")
        with server.stream("GET", EVENTS, headers={"Last-Event-ID": stream.id}) as again:
            seen.stream = again
            change = seen.read()
            assert not change["full"] and sorted(lock["name"] for lock in change["locks"]) == ["gone", "new"]
            assert sorted(seen.locks) == ["a", "new"]
        for wrong in ("0-1", "", "x", stream.id + "0", "-1", stream.id.split("-")[0] + "-x"):
            with server.stream("GET", EVENTS, headers={"Last-Event-ID": wrong}) as anew:
                assert anew.expect("locks")["full"], wrong


def test_one_watch_serves_all_and_only_while_somebody_listens():
    with Server() as server:
        server.command("lock", "-q", "--ttl", "1m", "a")
        streams = [server.stream("GET", EVENTS) for _ in range(50)]
        for stream in streams:
            assert stream.expect("locks")["full"]
        server.command("lock", "-q", "--ttl", "1m", "b")
        ids = set()
        for stream in streams:
            assert [lock["name"] for lock in stream.expect("locks")["locks"]] == ["b"]
            ids.add(stream.id)
        assert len(ids) == 1
        for stream in streams:
            stream.close()
        eventually(lambda: b"holdfast_serve_streams 0\n" in server.get("/metrics").bytes)


def test_a_store_that_is_away_is_told():
    with Server("-u", "away=redis://127.0.0.1:1/0?op_timeout=200ms") as server:
        with server.stream("GET", "/v1/stores/away/events") as stream:
            assert stream.expect("away")["error"]["code"] == "HF_UNAVAILABLE"


def test_a_queue_and_its_order_are_changes():
    with Server() as server:
        server.command("lock", "-q", "--ttl", "1m", "a")
        with server.stream("GET", EVENTS) as stream:
            stream.expect("locks")
            waiter = Stream(server, "POST", "/v1/stores/main/locks/a/acquire", {"lives": "connection", "wait_ms": None})
            waiter.expect("queued")
            while len(stream.expect("locks")["locks"][0]["queue"]) != 1:
                pass
            waiter.close()
            while len(stream.expect("locks")["locks"][0]["queue"]) != 0:
                pass


if __name__ == "__main__":
    sys.exit(main())
