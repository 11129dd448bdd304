"""What only reads: the same objects as the command prints."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

from served import Server, Skip, eventually, main, name_in_path


def test_the_stores_say_what_they_can_and_whether_they_answer():
    with Server("-u", "memory://x", "-u", "memory://y") as server:
        answer = server.get("/v1/stores")
        assert answer.status == 200 and answer.headers["Content-Type"] == "application/json"
        stores = answer.json["stores"]
        assert [s["id"] for s in stores] == ["main", "memory", "memory-2"], stores
        assert all(s["up"] and s["error"] is None and "queue" in s["capabilities"] for s in stores)
        assert stores[0]["url"] == server.url and stores[0]["kind"] == "sqlite"


def test_a_password_is_not_told():
    with Server("-u", "away=redis://me:geheim@127.0.0.1:1/0?op_timeout=200ms") as server:
        answer = server.get("/v1/stores")
        away = answer.json["stores"][1]
        assert b"geheim" not in answer.bytes and "***" in away["url"]
        assert not away["up"] and away["error"]["code"] == "HF_UNAVAILABLE" and away["error"]["retriable"]
        assert server.get("/readyz").status == 503
        assert server.get("/healthz").status == 200


def test_a_store_that_hangs_holds_up_nobody_else():
    if shutil.which("redis-server") is None:
        raise Skip("there is no redis-server")
    with tempfile.TemporaryDirectory() as place:
        redis = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", place + "/socket", "--dir", place],
                                 stdout=subprocess.DEVNULL)
        try:
            eventually(lambda: os.path.exists(place + "/socket"))
            with Server("-u", f"hangs=redis+unix://{place}/socket?op_timeout=60s") as server:
                assert server.get("/v1/stores/hangs/locks").json["locks"] == []
                redis.send_signal(signal.SIGSTOP)
                answers = []
                asker = threading.Thread(target=lambda: answers.append(server.get("/v1/stores/hangs/locks")))
                asker.start()
                for _ in range(3):
                    ticket = server.post("/v1/stores/main/locks/job/acquire", {"lives": "lease"}).json["ticket"]
                    assert server.post("/v1/stores/main/locks/job/release", {"ticket": ticket}).status == 200
                assert not answers
                redis.send_signal(signal.SIGCONT)
                asker.join()
                assert answers[0].status == 200
        finally:
            redis.kill()
            redis.wait()


def without_time(lock):
    for entry in lock["holders"] + (lock["queue"] or []):
        del entry["age_ms"], entry["remaining_ms"]
    return lock


def test_locks_are_the_objects_of_the_command():
    with Server() as server:
        for name in ("a/b c", "50%", "日本", "<script>", "\udcff\udcfe"):
            server.command("lock", "-q", "--ttl", "1m", "--note", name, name)
        told = [without_time(lock) for lock in server.get("/v1/stores/main/locks").json["locks"]]
        lines = server.command("ls", "--json").decode().splitlines()
        assert len(told) == 5 and told == [without_time(json.loads(line)) for line in lines]


def test_one_lock_by_its_bytes():
    with Server() as server:
        for path, name in (("a%2Fb%20c", "a/b c"), ("50%25", "50%"), ("%FF%0A", "\udcff\n"), ("x%2e", "x.")):
            server.command("lock", "-q", "--ttl", "1m", name)
            lock = server.get(f"/v1/stores/main/locks/{path}").json
            assert not lock["free"] and len(lock["holders"]) == 1 and lock["value"] is None, lock
            shown = json.loads(server.command("show", "--json", name))
            assert lock["name"] == shown["name"]
            again = server.get("/v1/stores/main/locks/" + name_in_path(lock["name"]).replace("%25", "%"))
            assert again.json["holders"][0]["ticket"] == lock["holders"][0]["ticket"]
        assert server.get("/v1/stores/main/locks/nobody").json["free"] is True


def test_the_value_is_given_to_whoever_asks():
    with Server() as server:
        server.command("run", "--value", "here:80", "leader", "--", "true")
        lock = server.get("/v1/stores/main/locks/leader?value=1").json
        assert lock["value"]["value"] == "here:80" and int(lock["value"]["generation"]) > 0
        assert lock["value"]["doubt"] is False


def test_pages_have_every_lock_once():
    with Server() as server:
        names = sorted(["a", "aa", "ab", "b%", "b\udcff", "é", "z" * 500], key=lambda n: n.encode("utf-8", "surrogateescape"))
        for name in names:
            server.command("lock", "-q", "--ttl", "1m", name)
        whole = [lock["name"] for lock in server.get("/v1/stores/main/locks").json["locks"]]
        found, path = [], "/v1/stores/main/locks?limit=2"
        after = ""
        while True:
            page = server.get(path + after).json
            assert 1 <= len(page["locks"]) <= 2
            found += [lock["name"] for lock in page["locks"]]
            if page["next"] is None:
                break
            after = "&after=" + page["next"]
        assert found == whole and len(found) == len(names)


def test_prefix_and_age():
    with Server() as server:
        for name in ("job/1", "job/2", "other"):
            server.command("lock", "-q", "--ttl", "1m", name)
        assert [lock["name"] for lock in server.get("/v1/stores/main/locks?prefix=job%2F").json["locks"]] == ["job/1", "job/2"]
        assert server.get("/v1/stores/main/locks?older_than_ms=3600000").json == {"locks": [], "next": None}
        for wrong in ("limit=0", "limit=10001", "limit=x", "older_than_ms=-1", "after=xyz", "after=1", "prefix=" + "x" * 513):
            answer = server.get("/v1/stores/main/locks?" + wrong)
            assert answer.status == 400 and answer.json["error"]["code"] == "HF_INVALID", wrong


def test_doctor_finds_what_the_command_finds():
    with Server() as server:
        server.command("doctor")
        told = server.get("/v1/stores/main/doctor").json
        lines = [json.loads(line) for line in server.command("doctor", "--json").decode().splitlines()]
        assert told["verdict"] == lines[-1]["verdict"] == "the store works"
        assert told["problems"] == 0 and told["warnings"] == 0
        def facts(findings):  # sizes and times are of the moment
            return [(f["level"], f["clause"], re.sub("[0-9.]+", "N", f["text"])) for f in findings]
        without_trial = [f for f in lines[:-1] if "trial lock" not in f["text"]]
        assert len(without_trial) == len(lines) - 2 and facts(told["findings"]) == facts(without_trial)


def test_what_is_not_there_is_404_and_what_is_not_for_it_405():
    with Server() as server:
        for path in ("/v1/stores/none/locks", "/v1/nothing", "/v1/stores/main", "/assets/none.js", "/v1//stores", "/%",
                     "/v1/stores/main/locks/a/b", "/v1/stores/main/locks/%GG", "/a/b/c/d/e/f/g/h"):
            answer = server.get(path)
            assert answer.status == 404 and answer.json["error"]["code"] == "HF_NOT_FOUND", path
        assert server.post("/v1/stores").status == 405
        assert server.ask("DELETE", "/v1/stores/main/locks/x").status == 405
        assert server.ask("OPTIONS", "/v1/stores").status == 405
        for path in ("/v1/stores/main/locks/", "/v1/stores/main/locks/" + "x" * 513):
            assert server.get(path).status == 400, path


def read_metrics(text):
    """The samples by name and labels. What stands in no family, twice, or not in order, is an error."""
    samples, families, family, kind = {}, set(), None, None
    lines = text.split("\n")
    assert lines[-2:] == ["# EOF", ""]
    for line in lines[:-2]:
        meta = re.fullmatch(r"# (TYPE|HELP|UNIT) (\w+) (.+)", line)
        if meta:
            if meta[1] == "TYPE":
                family, kind = meta[2], meta[3]
                assert family not in families and kind in ("gauge", "counter", "histogram")
                families.add(family)
            assert meta[2] == family and (meta[1] != "UNIT" or family.endswith("_" + meta[3])), line
            continue
        sample = re.fullmatch(r'(\w+?)(_total|_bucket|_count|_sum)?((?:\{(?:\w+="[^"\\\n]*",?)+\})?) (\d+(?:\.\d+)?)', line)
        assert sample and (sample[1] if kind != "gauge" else sample[1] + (sample[2] or "")) == family, line
        assert {"gauge": True, "counter": sample[2] == "_total", "histogram": sample[2] in ("_bucket", "_count", "_sum")}[kind], line
        key = sample[1] + (sample[2] or "") + sample[3]
        assert key not in samples, line
        samples[key] = float(sample[4])
    return samples


def test_metrics_are_open_metrics_and_count():
    with Server("-u", "memory://x") as server:
        answer = server.get("/metrics")
        assert answer.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
        before = read_metrics(answer.bytes.decode())
        assert before["holdfast_serve_connections"] == 1 and before['holdfast_store_up{store="main"}'] == 1
        lock = "/v1/stores/main/locks/<\"job\">".replace("<", "%3C").replace(">", "%3E").replace('"', "%22")
        for lives in ("lease", "lease"):
            server.post(lock + "/acquire", {"lives": lives})
        server.command("lock", "-q", "--never-expires", "other")
        after = read_metrics(server.get("/metrics").bytes.decode())
        assert after['holdfast_grants_total{store="main"}'] == 1 and after['holdfast_grants_total{store="memory"}'] == 0
        assert after['holdfast_acquires_failed_total{store="main",code="HF_BUSY"}'] == 1
        assert after['holdfast_wait_seconds_bucket{store="main",le="+Inf"}'] == 1 == after['holdfast_wait_seconds_count{store="main"}']
        assert after['holdfast_store_holders{store="main"}'] == 2 and after['holdfast_store_never_expiring{store="main"}'] == 1
        assert after['holdfast_lost_total{store="main",cause="expired"}'] == 0
        assert after['holdfast_store_calls_total{store="main",call="attempt"}'] >= 2
        assert not any("job" in key for key in after)
        assert set(after) - set(before) == {'holdfast_acquires_failed_total{store="main",code="HF_BUSY"}'}


if __name__ == "__main__":
    sys.exit(main())
