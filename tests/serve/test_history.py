"""The trail of a store over HTTP."""

import json
import sys

from served import Server, main, name_in_path

HISTORY = "/v1/stores/main/history"


def write(server, *words):
    """The command on the same store, writing a trail."""
    return server.command("-u", server.url + "?history=100", *words)


def test_it_is_what_the_command_prints():
    with Server() as server:
        for name in ("report", "100% né", "report"):
            write(server, "run", name, "--", "true")
        printed = [json.loads(line) for line in server.command("log", "--json").decode().splitlines()]
        told = server.get(HISTORY).json["history"]
        assert told == printed and [e["what"] for e in told] == ["granted", "released"] * 3, told
        one = server.get(f"{HISTORY}?name={name_in_path('100% né')}").json["history"]
        assert one == [e for e in printed if e["name"] == "100%25 né"] and len(one) == 2, one
        assert server.get(f"{HISTORY}?prefix=rep&limit=1").json["history"] == printed[-1:]


def test_moments_bound_it():
    with Server() as server:
        write(server, "run", "report", "--", "sleep", "0.1")
        granted, released = server.get(HISTORY).json["history"]
        assert server.get(f"{HISTORY}?since_ms={released['at_ms']}").json["history"] == [released]
        assert server.get(f"{HISTORY}?until_ms={released['at_ms']}").json["history"] == [granted]
        held = server.get(f"{HISTORY}?at_ms={granted['at_ms'] + 1}").json["history"]
        assert [e["ticket"] for e in held] == [granted["ticket"]], held
        assert server.get(f"{HISTORY}?at_ms={released['at_ms'] + 1000}").json["history"] == []


def test_a_store_without_a_trail_has_an_empty_one():
    with Server() as server:
        server.command("run", "report", "--", "true")
        assert server.get(HISTORY).json == {"history": []}


def test_the_server_has_it_kept():
    with Server("--history", "10", "-u", "plain=memory://x?history=0") as server:
        for store in ("main", "plain"):
            lock = f"/v1/stores/{store}/locks/job"
            ticket = server.post(lock + "/acquire", {"lives": "lease"}).json["ticket"]
            server.post(lock + "/release", {"ticket": ticket})
        kept = server.get("/v1/stores/main/history").json["history"]
        assert [record["what"] for record in kept] == ["granted", "released"]
        assert server.get("/v1/stores/plain/history").json == {"history": []}


def test_what_makes_no_sense_is_refused():
    with Server() as server:
        for query in ("since_ms=x", "since_ms=-1", "limit=100001", "name=", "name=a&prefix=a", "at_ms=1&since_ms=1",
                      "until_ms=99999999999999999999", "name=" + "x" * 513):
            answer = server.get(f"{HISTORY}?{query}")
            assert answer.status == 400 and answer.json["error"]["code"] == "HF_INVALID", (query, answer.status)


if __name__ == "__main__":
    sys.exit(main())
