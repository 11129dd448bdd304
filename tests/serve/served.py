"""What the tests of the server share: a server of their own, a client, and a clock that waits for events.

A test is a function test_<rule>(); main() runs those of its file, each with a directory of its own, and prints
"ok - NAME" or "not ok - NAME"."""

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.parse

COMMAND = os.environ["HOLDFAST"]
PATIENCE = 20


class Skip(Exception):
    pass


def eventually(what, seconds=PATIENCE):
    """Tries until it is true, and gives what it was."""
    end = time.monotonic() + seconds
    while True:
        found = what()
        if found:
            return found
        assert time.monotonic() < end, "did not come true"
        time.sleep(0.02)


def name_in_path(name):
    return urllib.parse.quote(name, safe="")


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.bytes = response.read()

    @property
    def json(self):
        return json.loads(self.bytes)


class Stream:
    """Server-sent events of one request, one after the other."""

    def __init__(self, server, method, path, body=None, headers=None):
        self.connection = server.connect()
        headers = {"Content-Type": "application/json", **(headers or {})}
        self.connection.request(method, path, None if body is None else json.dumps(body), headers)
        self.socket = self.connection.sock
        self.response = self.connection.getresponse()
        self.status = self.response.status
        self.id = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """At once, as if the program had died."""
        self.socket.close()
        self.response.close()
        self.connection.close()

    def block(self):
        """The next event, or comment, as lines; none: the end."""
        lines = []
        while True:
            line = self.response.readline()
            if line in (b"", b"\n"):
                return lines
            lines.append(line.rstrip(b"\n").decode())

    def event(self):
        """The next event: its name and its object; (None, None): the end."""
        while True:
            lines = self.block()
            if not lines:
                return None, None
            fields = dict(line.split(": ", 1) for line in lines if not line.startswith(":"))
            if fields:
                self.id = fields.get("id", self.id)
                return fields["event"], json.loads(fields["data"])

    def expect(self, name):
        found, data = self.event()
        assert found == name, (found, data)
        return data


class Server:
    """holdfast serve on a free port; ended by TERM, or it fails the test."""

    def __init__(self, *options, url=None, listen="127.0.0.1:0", tokens=None, environment=None):
        self.dir = tempfile.mkdtemp()
        self.url = url or f"sqlite:{self.dir}/locks.db"
        words = [COMMAND, "serve", "-u", "main=" + self.url, "--listen", listen, *options]
        if tokens is not None:
            words += ["--token-file", self.write("tokens", tokens)]
        self.log = os.path.join(self.dir, "log")
        with open(self.log, "wb") as log:
            self.start(words, log, environment)

    def start(self, words, log, environment):
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=log, text=True,
                                        env={**os.environ, **(environment or {}), "HOME": self.dir})
        line = self.process.stdout.readline()
        assert line.startswith("listening on "), (line, self.process.wait(), self.said())
        self.address = line.split("://")[1].strip()

    def write(self, name, text):
        path = os.path.join(self.dir, name)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            status = self.end()
        finally:
            self.kill()
            shutil.rmtree(self.dir)
        assert kind or status in (0, -signal.SIGKILL), f"the server ended with {status}"

    def end(self):
        """By TERM: its status."""
        self.process.terminate()
        return self.process.wait(PATIENCE)

    def said(self):
        """What it has said on standard error, line by line."""
        with open(self.log, encoding="utf-8") as log:
            return log.read().splitlines()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def connect(self):
        host, port = self.address.rsplit(":", 1)
        return http.client.HTTPConnection(host, int(port), timeout=PATIENCE)

    def socket(self):
        host, port = self.address.rsplit(":", 1)
        return socket.create_connection((host, int(port)), timeout=PATIENCE)

    def ask(self, method, path, body=None, headers=None, token=None):
        connection = self.connect()
        headers = dict(headers or {})
        if token is not None:
            headers["Authorization"] = "Bearer " + token
        if method == "POST" and "Content-Type" not in headers:
            headers["Content-Type"] = "application/json"
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        try:
            connection.request(method, path, body, headers)
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def get(self, path, **more):
        return self.ask("GET", path, **more)

    def post(self, path, body=None, **more):
        return self.ask("POST", path, {} if body is None else body, **more)

    def stream(self, method, path, body=None, headers=None):
        return Stream(self, method, path, body, headers)

    def command(self, *words, check=True):
        """The command on the same store: what it prints."""
        return subprocess.run([COMMAND, "-u", self.url, *words], stdout=subprocess.PIPE, check=check,
                              env={**os.environ, "HOME": self.dir}).stdout

    def locks(self):
        """What `holdfast ls` finds, by name."""
        lines = self.command("ls", "--json").decode().splitlines()
        return {lock["name"]: lock for lock in map(json.loads, lines)}


def refused(*words):
    """A command that must fail: its status and what it says."""
    run = subprocess.run([COMMAND, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True, check=False, timeout=PATIENCE)
    assert run.stdout == "", run.stdout
    return run.returncode, run.stderr


def main():
    tests = [(name, test) for name, test in sys.modules["__main__"].__dict__.items()
             if name.startswith("test_") and (len(sys.argv) < 2 or name in sys.argv)]
    failed = 0
    for name, test in tests:
        try:
            test()
            print(f"ok - {name[5:]}", flush=True)
        except Skip as why:
            print(f"skipped {name[5:]}: {why}", flush=True)
        except Exception:  # pylint: disable=broad-except
            traceback.print_exc(file=sys.stdout)
            print(f"not ok - {name[5:]}", flush=True)
            failed += 1
    return 1 if failed or not tests else 0
