"""One cell of the matrix: a store, a fault and a seed. Starts the roles, lets the nemesis loose, heals, waits until
everybody has got through, looks at what is left, and has the history checked."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

import checker
from history import MS, History, Writer
from stores import addresses

HERE = os.path.dirname(os.path.abspath(__file__))
PATIENCE = 60  # seconds: nothing takes as long, on whatever machine


class Proxies:
    """What stands between a group of workers and the servers."""

    def __init__(self, program, servers):
        self.child = subprocess.Popen([program, *servers], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.ports = dict(zip(servers, self.child.stdout.readline().split()))

    def url(self, url):
        for address, port in self.ports.items():
            url = url.replace(address, f"127.0.0.1:{port}")
        return url

    def set(self, mode, number=0, which=-1):
        self.child.stdin.write(f"{mode} {number} {which}\n")
        self.child.stdin.flush()
        self.child.stdout.readline()

    def end(self):
        self.child.stdin.close()
        self.child.kill()
        self.child.wait()


class Cell:
    """What a nemesis (faults.py) works with."""

    def __init__(self, lab, store_name, fault_name, fault, seed):
        self.lab, self.fault, self.seed = lab, fault, seed
        self.store_name, self.store = store_name, lab.store
        self.name = f"{store_name}.{fault_name}"
        self.random = random.Random(f"{self.name}/{seed}")
        self.prefix = f"c{os.getpid()}x{fault_name.replace('-', '')}{seed}"
        self.directory = tempfile.mkdtemp(prefix=f"holdfast-lab.{self.name}.", dir=os.environ.get("HOLDFAST_LAB_DIRECTORY"))
        self.history_path = os.path.join(self.directory, "history.jsonl")
        self.history = Writer(self.history_path)
        self.output = open(os.path.join(self.directory, "output"), "ab")
        self.ttl = self.store.ttl_ms / 1000
        self.workers = {}  # id: process
        self.groups = {}  # id: number of its proxies
        self.proxies = []
        self.count = 0
        self.scan_at = 0
        self.inside, self.waiting, self.served = {}, {}, {}

    # Roles

    def program(self, name):
        return os.path.join(self.lab.build, "tests", "lab", name)

    def start_resource(self):
        self.socket = os.path.join(self.directory, "s")
        self.resource = subprocess.Popen([self.program("resource"), self.socket, self.history_path], stderr=self.output)
        self.until(lambda: os.path.exists(self.socket), "the resource does not start")

    def start_observer(self):
        self.observer = None
        if self.store.observer:
            self.observer = subprocess.Popen([sys.executable, os.path.join(HERE, "observer.py"), self.store.observer,
                                              self.lab.observed(), self.prefix, self.history_path], stderr=self.output)

    def start_worker(self, group=0, **options):
        self.count += 1
        name = f"w{self.count}"
        url = self.proxies[group % len(self.proxies)].url(self.lab.url) if self.proxies else self.lab.url
        options = {"kinds": self.fault.kinds, "ttl": self.store.ttl_ms, "seed": self.random.randrange(1 << 32),
                   "long": self.fault.long, "delay": self.fault.delay, **options}
        words = [word for key, value in options.items() for word in ("--" + key.replace("_", "-"), str(value))]
        self.workers[name] = subprocess.Popen(
            [self.program("worker"), "--url", url, "--id", name, "--history", self.history_path, "--resource", self.socket,
             "--prefix", self.prefix, *words], stderr=self.output, env={**os.environ, **self.lab.worker_environment(self, name)})
        self.groups[name] = group
        return name

    # The history so far

    def news(self):
        """Takes in what has been written since the last time: who holds what, who waits, who was served last."""
        with open(self.history_path, "rb") as file:
            file.seek(self.scan_at)
            data = file.read()
        whole = data[:data.rfind(b"\n") + 1]
        self.scan_at += len(whole)
        for event in map(json.loads, whole.splitlines()):
            kind, key = event["e"], event.get("k")
            if key is None:
                continue
            who = event["w"].split("_")[0]
            if kind == "queued":
                self.waiting[key] = who
            elif kind in ("held", "fail"):
                self.waiting.pop(key, None)
                if kind == "held":
                    self.inside[key] = (event["n"], who, event["t"])
                    self.served[who] = event["t"]
            elif kind in ("release", "lost", "detach"):
                self.inside.pop(key, None)

    def holder(self, name="a"):
        """A worker that holds this lock now, by its own account, and since when; or None."""
        self.news()
        live = [(who, t) for n, who, t in self.inside.values() if n == f"{self.prefix}_{name}" and who in self.workers]
        return live[-1] if live else None

    def waiter(self):
        self.news()
        live = [who for who in self.waiting.values() if who in self.workers]
        return self.random.choice(live) if live else None

    def await_holder(self, name="a"):
        """Until somebody holds the lock; the worker, or None if nobody does within ten leases."""
        self.until(lambda: self.holder(name), None, 10 * self.ttl + 10)
        found = self.holder(name)
        return found[0] if found else None

    def until(self, is_true, otherwise, seconds=PATIENCE):
        end = time.monotonic() + seconds
        while not is_true():
            if time.monotonic() > end:
                if otherwise is None:
                    return False
                raise RuntimeError(otherwise)
            time.sleep(0.01)
        return True

    # What a nemesis does to workers

    def kill(self, who, **options):
        """kill -9, and somebody else in its place."""
        process = self.workers.pop(who)
        self.history.add("died", pid=process.pid, who=who)  # from here on it does nothing, though it may take long to be gone
        process.kill()
        process.wait()
        self.start_worker(self.groups.pop(who), **options)

    def freeze(self, who, seconds):
        process = self.workers[who]
        self.history.add("stop", pid=process.pid, who=who)
        process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        process.send_signal(signal.SIGCONT)
        self.history.add("cont", pid=process.pid, who=who)

    def faulty(self, what):
        """`with cell.faulty("..."):` notes that servers or network are being disturbed."""
        return Faulty(self, what)

    def sleep(self, least, most):
        time.sleep(self.random.uniform(least, most) * self.ttl)

    # The course of a cell

    def run(self):
        began = time.monotonic()
        try:
            self.history.add("begin", cell=self.name, seed=self.seed)
            self.start_resource()
            self.start_observer()
            if self.fault.proxied:
                self.proxies = [Proxies(self.program("fault_proxy"), addresses(self.lab.url)) for _ in range(2)]
            self.fault.crew(self)
            self.await_grants("before the fault")
            self.fault.nemesis(self)
            self.history.add("healed")
            self.await_grants("after the fault")
            self.dismiss()
            self.probe()
        except Exception as error:
            self.history.add("stuck", who="the laboratory", why=f"{type(error).__name__}: {error}")
            traceback.print_exc()
        finally:
            self.end()
        history = History.read(self.history_path)
        terms = checker.Terms(
            has_token=self.store.has_token, has_lease=self.store.has_lease, has_queue=self.store.has_queue and self.store.shows_order,
            keeps_place=self.fault.keeps_place, keeps_grants=self.lab.expected(self.fault) == "hold",
            seen=bool(self.store.observer), ttl=self.store.ttl_ms * MS)
        figures = checker.check(history, terms)
        return figures, time.monotonic() - began

    def await_grants(self, when):
        """Everybody obtains a lock (without a queue: somebody does): within ten leases, and what a slow machine and a bid that has
        to fail first take."""
        since = time.monotonic_ns()
        end = time.monotonic() + 10 * self.ttl + 20

        def missing():
            self.news()
            late = [who for who in self.workers if self.served.get(who, 0) <= since]
            return late if self.store.has_queue or len(late) == len(self.workers) else []

        while missing():
            if time.monotonic() > end:
                for who in missing():
                    self.history.add("stuck", who=who, why=f"has obtained no lock {when}")
                return
            time.sleep(0.02)

    def dismiss(self):
        for process in self.workers.values():
            process.send_signal(signal.SIGTERM)
        end = time.monotonic() + 10 * self.ttl + 20
        for who, process in self.workers.items():
            try:
                process.wait(max(0.1, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                self.history.add("stuck", who=who, why="does not end")
                process.send_signal(signal.SIGABRT)
                process.wait()
        for who, process in self.workers.items():
            if process.returncode != 0:
                self.history.add("stuck", who=who, why=f"ended with {process.returncode}")
        self.workers = {}

    def probe(self):
        """Takes and gives back each lock once, which sweeps what has expired; then nothing may be left."""
        for kind in ("exclusive", "limited", "never"):
            name = self.start_worker(kinds=kind, turns=1, wait=20000, delay=0)
            process = self.workers.pop(name)
            if process.wait(PATIENCE) != 0:
                self.history.add("stuck", who=name, why=f"a last turn ended with {process.returncode}")
        self.history.add("probed")

    def end(self):
        for process in self.workers.values():
            process.kill()
            process.wait()
        if self.observer:
            self.observer.terminate()
            try:
                self.observer.wait(30)
            except subprocess.TimeoutExpired:
                self.observer.kill()
                self.observer.wait()
        self.resource.kill()
        self.resource.wait()
        for proxies in self.proxies:
            proxies.end()
        self.output.close()

    def forget(self):
        shutil.rmtree(self.directory)

    def keep(self, kept, findings):
        """Moves the history to a place with a name, beside what the servers said."""
        os.makedirs(kept, exist_ok=True)
        for name in ("history.jsonl", "output"):
            shutil.copy(os.path.join(self.directory, name), kept)
        with open(os.path.join(kept, "findings"), "w", encoding="utf-8") as file:
            file.writelines(f"{f.rule} at {f.t}: {f.text}{'' if f.fatal else ' (known)'}\n" for f in findings)
        for top in {self.lab.fleet_directory, self.lab.directory}:
            for folder, _, files in os.walk(top):
                for name in files:
                    if name == "log" or name.endswith(".log"):
                        flat = os.path.relpath(os.path.join(folder, name), top).replace("/", "-")
                        shutil.copy(os.path.join(folder, name), os.path.join(kept, "server-" + flat))
        self.forget()


class Faulty:
    def __init__(self, cell, what):
        self.cell, self.what = cell, what

    def __enter__(self):
        self.since = time.monotonic_ns()
        self.cell.history.add("fault-begins", what=self.what)

    def __exit__(self, *_):
        self.cell.history.add("fault", what=self.what, **{"from": self.since})
