"""Locks over HTTP: leases that are renewed by their ticket, and locks that live as long as a connection."""

import json
import os
import signal
import subprocess
import sys
import threading

from served import PATIENCE, Server, Skip, eventually, main

LOCK = "/v1/stores/main/locks/job"
LEASE = {"lives": "lease", "ttl_ms": 60000}
CONNECTION = {"lives": "connection", "ttl_ms": 5000, "wait_ms": None}


def is_free(server, name="job"):
    return name not in server.locks()


def waits(server, count=1, name="job"):
    lock = server.locks().get(name)
    return lock is not None and len(lock["queue"]) == count


def test_a_lease_is_taken_renewed_checked_and_released():
    with Server() as server:
        grant = server.post(LOCK + "/acquire", {**LEASE, "note": "me"})
        assert grant.status == 200, grant.bytes
        grant = grant.json
        assert grant["name"] == "job" and len(grant["ticket"]) == 32 and int(grant["generation"]) > 0
        assert 0 < grant["remaining_ms"] <= 60000
        holder = server.locks()["job"]["holders"][0]
        assert holder["ticket"] == grant["ticket"] and holder["note"] == "me" and holder["program"] == "holdfast-serve"
        assert server.post("/v1/stores/main/check", {"sequencer": grant["sequencer"]}).json == {"current": True}
        again = server.post(LOCK + "/renew", {"ticket": grant["ticket"], "generation": grant["generation"]})
        assert again.status == 200 and again.json["generation"] == grant["generation"]
        assert server.post(LOCK + "/renew", {"ticket": grant["ticket"], "generation": "1"}).status == 409
        assert server.post(LOCK + "/release", {"ticket": grant["ticket"]}).json == {"released": True}
        assert is_free(server)
        for what in ("renew", "release"):
            answer = server.post(f"{LOCK}/{what}", {"ticket": grant["ticket"]})
            assert answer.status == 409 and answer.json["error"]["code"] == "HF_STALE", answer.bytes
        assert server.post("/v1/stores/main/check", {"sequencer": grant["sequencer"]}).status == 409


def test_who_does_not_wait_is_told_busy_and_who_waits_not_in_time():
    with Server() as server:
        assert server.post(LOCK + "/acquire", LEASE).status == 200
        for lives in ("lease", "connection"):
            answer = server.post(LOCK + "/acquire", {"lives": lives, "wait_ms": 0})
            assert answer.status == 409 and answer.json["error"]["code"] == "HF_BUSY"
            assert answer.json["error"]["exit_status"] == 1
        answer = server.post(LOCK + "/acquire", {"lives": "lease", "wait_ms": 50})
        assert answer.status == 409 and answer.json["error"]["code"] == "HF_TIMEOUT"
        with server.stream("POST", LOCK + "/acquire", {"lives": "connection", "wait_ms": 50}) as stream:
            stream.expect("queued")
            assert stream.expect("failed")["error"]["code"] == "HF_TIMEOUT"
            assert stream.event() == (None, None)
        eventually(lambda: waits(server, 0))


def test_a_lease_that_was_waited_for_is_handed_over():
    with Server() as server:
        first = server.post(LOCK + "/acquire", LEASE).json
        answers = []
        asker = threading.Thread(target=lambda: answers.append(server.post(LOCK + "/acquire", {**LEASE, "wait_ms": None})))
        asker.start()
        eventually(lambda: waits(server))
        server.post(LOCK + "/release", {"ticket": first["ticket"]})
        asker.join()
        assert answers[0].status == 200
        assert int(answers[0].json["generation"]) > int(first["generation"])
        assert server.locks()["job"]["holders"][0]["claimed"]


def test_a_client_that_goes_away_while_it_waits_leaves_nothing():
    with Server() as server:
        server.command("lock", "-q", "--ttl", "1m", "job")
        streams = [server.stream("POST", LOCK + "/acquire", CONNECTION) for _ in range(3)]
        for stream in streams:
            stream.expect("queued")
        waiting = server.socket()
        body = b'{"lives":"lease","wait_ms":null}'
        waiting.sendall(b"POST " + LOCK.encode() + b"/acquire HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                        b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        eventually(lambda: waits(server, 4))
        waiting.close()
        eventually(lambda: waits(server, 3))
        for stream in streams:
            stream.close()
        eventually(lambda: waits(server, 0))
        assert len(server.locks()["job"]["holders"]) == 1


def test_who_hangs_up_at_once_leaves_nothing():
    """Not even memory: the sanitizers' leg sees that."""
    with Server() as server:
        body = json.dumps(CONNECTION).encode()
        for _ in range(200):
            hasty = server.socket()
            hasty.sendall(b"POST " + LOCK.encode() + b"/acquire HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                          b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            hasty.close()
        assert server.post(LOCK + "/acquire", {**LEASE, "wait_ms": 20000}).status == 200
        eventually(lambda: waits(server, 0))


def test_a_lock_lives_as_long_as_its_connection():
    with Server() as server:
        with server.stream("POST", LOCK + "/acquire", CONNECTION) as first:
            assert first.status == 200
            grant = first.expect("acquired")
            assert server.locks()["job"]["holders"][0]["ticket"] == grant["ticket"]
            with server.stream("POST", LOCK + "/acquire", CONNECTION) as second:
                second.expect("queued")
                assert first.expect("wanted")["ticket"] == grant["ticket"]
                first.close()
                assert int(second.expect("acquired")["generation"]) > int(grant["generation"])
                assert len(server.locks()["job"]["holders"]) == 1
        eventually(lambda: is_free(server))


def test_it_is_renewed_while_the_connection_lasts():
    with Server() as server:
        with server.stream("POST", LOCK + "/acquire", {**CONNECTION, "ttl_ms": 3000}) as stream:
            ticket = stream.expect("acquired")["ticket"]
            seen = set()
            # Its remaining time would be less each time: it grows only by renewals.
            def was_renewed():
                entry = server.locks()["job"]["holders"][0]
                assert entry["ticket"] == ticket
                grew = any(entry["remaining_ms"] > other for other in seen) and entry["age_ms"] > 600
                seen.add(entry["remaining_ms"])
                return grew
            eventually(was_renewed)


def test_who_is_broken_is_told_that_it_is_lost():
    with Server("--allow-break") as server:
        with server.stream("POST", LOCK + "/acquire", CONNECTION) as stream:
            ticket = stream.expect("acquired")["ticket"]
            assert server.post(LOCK + "/break", {"ticket": ticket, "now": True}).json == {"broken": True}
            name, data = stream.event()
            while name == "at_risk":
                name, data = stream.event()
            assert name == "lost" and data["cause"] == "gone" and data["text"]
            assert stream.event() == (None, None)
        assert server.post(LOCK + "/break", {"ticket": ticket}).status == 404
        eventually(lambda: any(line.startswith("holdfast: main: 'job': ") and "no longer knows this grant" in line
                               for line in server.said()))


def test_what_others_hold_by_themselves_is_not_to_be_had_by_its_ticket():
    with Server() as server:
        ticket = server.command("lock", "-q", "--ttl", "1m", "job").decode().strip()
        for what in ("renew", "release"):
            answer = server.post(f"{LOCK}/{what}", {"ticket": ticket})
            assert answer.status == 403 and answer.json["error"]["code"] == "HF_DENIED"
        assert server.locks()["job"]["holders"][0]["ticket"] == ticket


def test_shared_locks_and_semaphores():
    with Server() as server:
        for _ in range(2):
            assert server.post(LOCK + "/acquire", {**LEASE, "mode": "shared"}).status == 200
        assert server.post(LOCK + "/acquire", LEASE).status == 409
        for status in (200, 200, 409):
            answer = server.post("/v1/stores/main/locks/few/acquire", {**LEASE, "limit": 2})
            assert answer.status == status
        assert [h["limit"] for h in server.locks()["few"]["holders"]] == [2, 2]


def test_wrong_terms_are_refused_in_one_sentence():
    wrong = [{}, {"lives": "long"}, {"lives": "lease", "ttl_ms": 1}, {"lives": "lease", "ttl_ms": "1"}, {"lives": "lease", "mode": "x"},
             {"lives": "lease", "limit": 0}, {"lives": "lease", "limit": 2**32}, {"lives": "lease", "limit": 2**70},
             {"lives": "lease", "wait_ms": -1}, {"lives": "connection", "ttl_ms": None}, {"lives": "lease", "max_hold_ms": 5},
             {"lives": "lease", "note": "x" * 257}, {"lives": "lease", "note": 7}, {"lives": "lease", "other": 1}]
    with Server() as server:
        for body in wrong:
            answer = server.post(LOCK + "/acquire", body)
            error = answer.json["error"]
            assert answer.status == 400 and error["code"] == "HF_INVALID" and error["exit_status"] == 64, body
            assert "\n" not in error["text"]
        assert server.post("/v1/stores/main/locks//acquire", LEASE).status == 400
        assert server.post(f"/v1/stores/main/locks/{'x' * 513}/acquire", LEASE).status == 400
        assert server.locks() == {}


def test_a_lease_that_never_expires_stays_until_it_is_released():
    with Server() as server:
        grant = server.post(LOCK + "/acquire", {"lives": "lease", "ttl_ms": None}).json
        assert grant["remaining_ms"] is None
        assert server.end() == 0
        assert server.locks()["job"]["holders"][0]["remaining_ms"] is None


def test_term_gives_back_what_lives_on_connections_and_no_lease():
    with Server() as server:
        lease = server.post("/v1/stores/main/locks/lease/acquire", LEASE).json
        held = server.stream("POST", LOCK + "/acquire", {**CONNECTION, "ttl_ms": 60000})
        held.expect("acquired")
        waiting = server.stream("POST", LOCK + "/acquire", {**CONNECTION, "ttl_ms": 60000})
        waiting.expect("queued")
        lookers = [server.stream("GET", "/v1/stores/main/events") for _ in range(3)]
        assert server.end() == 0
        assert list(server.locks()) == ["lease"] and server.locks()["lease"]["holders"][0]["ticket"] == lease["ticket"]
        for stream in [held, waiting, *lookers]:
            stream.close()


def test_a_killed_server_loses_no_lease_and_what_lived_on_its_connections_ends_in_time():
    with Server() as server:
        lease = server.post("/v1/stores/main/locks/lease/acquire", LEASE).json
        held = server.stream("POST", LOCK + "/acquire", {**CONNECTION, "ttl_ms": 700})
        held.expect("acquired")
        waiting = server.stream("POST", LOCK + "/acquire", {**CONNECTION, "ttl_ms": 700})
        waiting.expect("queued")
        os.kill(server.process.pid, signal.SIGKILL)
        server.process.wait()
        with Server(url=server.url) as next_one:
            renewed = next_one.post("/v1/stores/main/locks/lease/renew", {"ticket": lease["ticket"]})
            assert renewed.status == 200 and renewed.json["generation"] == lease["generation"]
            # Both that were left: by the end of the lease the next one holds it, and nobody waits before him.
            with next_one.stream("POST", LOCK + "/acquire", CONNECTION) as stream:
                name, _ = stream.event()
                if name == "queued":
                    name, _ = stream.event()
                assert name == "acquired"
            assert next_one.post("/v1/stores/main/locks/lease/release", {"ticket": lease["ticket"]}).status == 200
        held.close()
        waiting.close()


def test_a_machine_that_vanishes_without_a_word_holds_nothing_for_long():
    # Both ends in a network of their own, whose loopback goes down: nothing arrives any more, and nobody says so.
    inside = """
import subprocess, sys
sys.path.insert(0, sys.argv[1])
from served import Server, eventually
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
with Server("--idle-timeout", "2s") as server:
    held = server.stream("POST", "/v1/stores/main/locks/job/acquire", {"lives": "connection", "ttl_ms": 60000})
    held.expect("acquired")
    subprocess.run(["ip", "link", "set", "lo", "down"], check=True)
    eventually(lambda: "job" not in server.locks())
    print("free")
"""
    for words in (["unshare", "-n"], ["unshare", "-rn"]):
        if subprocess.run([*words, "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0:
            said = subprocess.run([*words, sys.executable, "-c", inside, os.path.dirname(os.path.abspath(__file__))],
                                  stdout=subprocess.PIPE, check=False, timeout=2 * PATIENCE).stdout
            assert said == b"free\n", said
            return
    raise Skip("a network of its own cannot be had")


if __name__ == "__main__":
    sys.exit(main())
