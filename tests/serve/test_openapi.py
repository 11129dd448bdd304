"""/v1/openapi.json against the server as it runs, by schemathesis: it makes requests from the description, right ones and
wrong ones, and looks whether each answer is one that is described. It comes from PyPI, once; without, this is skipped.

What goes on for ever it cannot judge, so the streams are left out; test_hold.py and test_events.py read them."""

import json
import os
import re
import subprocess
import sys

from served import Server, Skip, main

CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "holdfast-tests")
PACKAGE = "schemathesis>=4,<5"
CHECKS = ("not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,"
          "negative_data_rejection,unsupported_method")


TOKEN = "t" * 32


def schemathesis():
    """The program, in an environment of its own."""
    place = os.path.join(CACHE, "schemathesis-4-%d.%d" % sys.version_info[:2])
    program = os.path.join(place, "bin", "schemathesis")
    if os.path.exists(os.path.join(place, "complete")):
        return program
    os.makedirs(CACHE, exist_ok=True)
    for command in ([sys.executable, "-m", "venv", place], [os.path.join(place, "bin", "pip"), "install", "-q", PACKAGE]):
        run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=200)
        if run.returncode != 0:
            raise Skip(f"schemathesis could not be fetched from PyPI: {run.stdout.strip().splitlines()[-1:]}")
    open(os.path.join(place, "complete"), "w", encoding="utf-8").close()
    return program


def without_streams(description):
    del description["paths"]["/v1/stores/{store}/events"]
    acquire = description["paths"]["/v1/stores/{store}/locks/{name}/acquire"]["post"]
    lease = acquire["requestBody"]["content"]["application/json"]["schema"]["oneOf"][0]
    del lease["properties"]["wait_ms"]
    acquire["requestBody"]["content"]["application/json"]["schema"] = lease
    description["components"]["parameters"]["store"]["schema"] = {"enum": ["main", "none"]}
    return description


def test_every_answer_is_one_that_is_described():
    program = schemathesis()
    with Server("--allow-break", tokens=f"break {TOKEN}\n") as server:
        server.command("lock", "-q", "--ttl", "1m", "held")
        path = server.write("openapi.json", json.dumps(without_streams(server.get("/v1/openapi.json").json)))
        run = subprocess.run([program, "run", path, "--url", "http://" + server.address, "-H", "Authorization: Bearer " + TOKEN, "--checks", CHECKS, "--max-examples", "15",
                              "--seed", "1", "--phases", "examples,coverage,fuzzing", "--request-timeout", "20", "--no-color",
                              "--generation-database", "none", "--suppress-health-check", "all"],
                             cwd=server.dir, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=200)
        assert run.returncode == 0, run.stdout
        assert re.search(r"[1-9][0-9]* generated", run.stdout) or "passed" in run.stdout, run.stdout[-2000:]


def test_every_route_is_described_and_no_other():
    with open(os.path.join(os.environ["TREE"], "serve", "route.c"), encoding="utf-8") as file:
        routes = set(re.findall(r'{"(GET|POST)", "([^"]*)"', file.read()))
    with Server() as server:
        paths = server.get("/v1/openapi.json").json["paths"]
    described = {(method.upper(), path[1:]) for path, item in paths.items() for method in item if method != "parameters"}
    assert routes - described == {("GET", ""), ("GET", "assets/{file}")}, routes ^ described
    assert described <= routes and len(described) > 10


if __name__ == "__main__":
    sys.exit(main())
