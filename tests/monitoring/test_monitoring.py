"""contrib/prometheus and contrib/grafana: every figure that they ask for is one that the server tells, Prometheus
understands every question, and each alert fires when it should and not before."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request

TREE = os.environ["TREE"]
sys.path.insert(0, os.path.join(TREE, "tests", "serve"))
from served import Server, Skip, eventually, main  # pylint: disable=wrong-import-position

RULES = os.path.join(TREE, "contrib", "prometheus", "holdfast.rules.yml")
BOARD = os.path.join(TREE, "contrib", "grafana", "holdfast.json")
NAME = re.compile(r"\bholdfast_\w+")


def promtool(*words):
    if shutil.which("promtool") is None:
        raise Skip("there is no promtool (prometheus)")
    run = subprocess.run(["promtool", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert run.returncode == 0, run.stdout
    return run.stdout


def check_rules(text):
    with tempfile.NamedTemporaryFile("w", suffix=".yml", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        return promtool("check", "rules", file.name)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def panels():
    return json.loads(read(BOARD))["panels"]


def questions():
    """What the panels ask, with Grafana's variables filled in."""
    for panel in panels():
        for target in panel["targets"]:
            question = target["expr"].replace("$__rate_interval", "5m").replace("$__range", "6h").replace("$store", ".*")
            assert "$" not in question, question
            yield question


def told():
    """The names of all figures of a server that has seen a lock come and go, and one refused."""
    with Server() as server:
        taken = {"lives": "lease", "ttl_ms": 60000}
        lock = server.post("/v1/stores/main/locks/job/acquire", taken).json
        server.post("/v1/stores/main/locks/job/acquire", taken)
        server.post("/v1/stores/main/locks/job/release", {"ticket": lock["ticket"]})
        text = server.get("/metrics").bytes.decode()
    return set(re.findall(r"^(holdfast_\w+)", text, re.M)), text


# These come with the first of their kind.
LATER = {"holdfast_closest_call_seconds", "holdfast_store_errors_total"}


def test_every_figure_is_told():
    there, text = told()
    for asked in [*questions(), *re.findall(r"expr: (?:>-\n)?(.*?)(?=\n        \w+:)", read(RULES), re.S)]:
        for name in NAME.findall(asked):
            declared = re.search(rf"^# TYPE {name.removesuffix('_total')} ", text, re.M)
            assert name in there or (name in LATER and declared), f"{name} is not told, but asked for in {asked}"
            assert not name.endswith("_total") or re.search(rf"^# TYPE {name[:-6]} counter", text, re.M), name


def test_promtool_understands_the_rules():
    assert "7 rules found" in promtool("check", "rules", RULES)


def test_promtool_understands_every_panel():
    rules = [{"record": f"panel:{i}", "expr": question} for i, question in enumerate(questions())]
    assert f"{len(rules)} rules found" in check_rules(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))


def test_panels_stand_side_by_side():
    taken = set()
    for panel in panels():
        place = panel["gridPos"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
        assert not cells & taken and place["x"] + place["w"] <= 24, panel["title"]
        taken |= cells


def test_alerts_fire_when_they_should():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "alerts.yml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(read(os.path.join(TREE, "tests", "monitoring", "alerts.yml")).replace("RULES", RULES))
        promtool("test", "rules", path)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def ask_prometheus(port, question):
    """What it answers, or nothing: it may not listen yet."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/query?query={urllib.parse.quote(question)}", timeout=20) as answer:
            return json.load(answer)["data"]["result"]
    except OSError:
        return []


def test_prometheus_takes_what_is_told():
    if shutil.which("prometheus") is None:
        raise Skip("there is no Prometheus (prometheus)")
    with Server() as server, tempfile.TemporaryDirectory() as folder:
        server.command("lock", "--never-expires", "job")
        path, port = os.path.join(folder, "prometheus.yml"), free_port()
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"global": {"scrape_interval": "1s"}, "rule_files": [RULES], "scrape_configs": [
                {"job_name": "holdfast", "static_configs": [{"targets": [server.address]}]}]}, file)
        prometheus = subprocess.Popen(
            ["prometheus", "--config.file=" + path, "--storage.tsdb.path=" + os.path.join(folder, "data"),
             f"--web.listen-address=127.0.0.1:{port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            found = eventually(lambda: ask_prometheus(port, "holdfast_store_never_expiring"))
            assert found[0]["value"][1] == "1" and found[0]["metric"]["store"] == "main", found
            assert ask_prometheus(port, 'up{job="holdfast"}')[0]["value"][1] == "1"
        finally:
            prometheus.terminate()
            prometheus.wait(20)


if __name__ == "__main__":
    sys.exit(main())
