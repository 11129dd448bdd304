"""What the tests share: a store under test, waiting for what must come, other processes, and the lines that are printed."""

import contextlib
import os
import secrets
import subprocess
import sys
import time
import traceback

import holdfast


class Skipped(Exception):
    pass


class Store:
    """The URL under test, for one scenario."""

    def __init__(self, url, test):
        self.url = url
        self.test = test
        self.name = f"{test}/{secrets.token_hex(6)}"
        self.open_clients = []

    def open(self, **terms):
        client = holdfast.open(self.url, **terms)
        self.open_clients.append(client)
        return client

    def close(self):
        for client in self.open_clients:
            client.close()

    def needs(self, capability):
        with holdfast.open(self.url) as client:
            if capability not in client.capabilities:
                raise Skipped(f"this store does not have: {capability.name.lower()}")

    def child(self, function, *args):
        """Another process of this language, which runs a function of children.py on this store; lines come and go."""
        return Child(function, self.url, self.name, *args)


class Child:
    def __init__(self, function, *args):
        here = os.path.dirname(os.path.abspath(__file__))
        self.process = subprocess.Popen(
            [sys.executable, os.path.join(here, "children.py"), function, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, bufsize=1)

    def line(self):
        return self.process.stdout.readline().strip()

    def tell(self, text="go"):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def end(self):
        self.process.stdin.close()
        status = self.process.wait(timeout=60)
        self.process.stdout.close()
        return status


def until(condition, what, seconds=30):
    """Asks again until it is true; what is awaited has a limit that no healthy run reaches."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"did not come true: {what}")
        time.sleep(0.005)


def waiting(client, name):
    return sum(entry.place == holdfast.Place.WAITING for entry in client.inspect(name=name))


def until_waiting(client, name, count=1):
    until(lambda: waiting(client, name) == count, f"{count} waiting")


@contextlib.contextmanager
def refused(kind):
    """The body raises exactly this kind, with a sentence."""
    try:
        yield
    except holdfast.Error as error:
        assert type(error) is kind, f"{type(error).__name__} instead of {kind.__name__}: {error}"
        assert str(error).strip(), "no sentence"
        assert error.code == kind.code
    else:
        raise AssertionError(f"{kind.__name__} was not raised")


def scheme(url):
    return url.split(":")[0]


def run(tests, urls, chosen):
    """Runs each test of [(name, function, wants a store)] on each URL; how many failed."""
    failed = 0
    for name, function, wants_store in tests:
        if chosen and name not in chosen:
            continue
        for url in urls if wants_store else [None]:
            where = f"python {scheme(url)}: {name}" if url else f"python: {name}"
            store = Store(url, name) if url else None
            try:
                function(store) if store else function()
            except Skipped as why:
                print(f"skipped - {where}: {why}", flush=True)
            except BaseException:
                traceback.print_exc(file=sys.stdout)
                print(f"not ok - {where}", flush=True)
                failed += 1
            else:
                print(f"ok - {where}", flush=True)
            finally:
                if store:
                    store.close()
    return failed
