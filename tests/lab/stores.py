"""The stores and their modes: how the servers of each are started, found, watched and reached by way of proxies."""

import os
import re
import signal
import subprocess
import time
from dataclasses import dataclass

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FLEET = os.path.join(TOP, "tests", "fleet")


@dataclass
class Store:
    fleet: tuple  # the command that starts the servers and runs ours; words such as @URL@ are its own
    observer: str  # of observer.py
    url: str = "@URL@"
    options: str = ""  # more of the URL
    ttl_ms: int = 1000
    has_token: bool = True
    has_lease: bool = True
    has_queue: bool = True
    shows_order: bool = True  # who is told that it waits stands in the store's queue; otherwise its statement was sent, no more
    through_proxies: bool = True  # the addresses of the URL are those that clients use
    crowd: int = 500  # waiters of the cell "churn"
    environment: tuple = ()


STORES = {
    "sqlite": Store((), "sqlite", through_proxies=False),
    "redis": Store(("with-redis",), "redis"),
    "sentinel": Store(("with-sentinel",), "redis", through_proxies=False),
    "redlock": Store(("with-redlock",), "redlock", has_token=False, has_queue=False, crowd=50),
    "postgres": Store(("with-postgres",), "postgres", crowd=100),
    "postgres-session": Store(("with-postgres",), "", options="hold=session", has_lease=False, shows_order=False,
                              crowd=100),
    "mysql": Store(("with-mariadb",), "mysql", crowd=100),
    "galera": Store(("with-galera",), "mysql", url="@BOTH@", crowd=100),
    "zookeeper": Store(("with-zookeeper",), "zookeeper", crowd=200),
    "zookeeper3": Store(("with-zookeeper3",), "zookeeper", crowd=100),
    "etcd": Store(("with-etcd",), "etcd", crowd=200),
    "etcd3": Store(("with-etcd3",), "etcd", crowd=100),
    "cassandra": Store(("with-cassandra", "--setup", "@HOLDFAST@"), "cassandra", ttl_ms=2000, crowd=50,
                       environment=(("HOLDFAST_TEST_CASSANDRA_SYNC", "batch"),)),
    "cassandra3": Store(("with-cassandra3", "--setup", "@HOLDFAST@"), "cassandra", ttl_ms=2000, crowd=30,
                        environment=(("HOLDFAST_TEST_CASSANDRA_SYNC", "batch"),)),
}


def addresses(url):
    """The host:port pairs of a URL."""
    return re.findall(r"[\d.]+:\d+", url)


def listening(address):
    """The kernel's names of the sockets that listen there."""
    host, port = address.split(":")
    quads = "".join(f"{int(n):02X}" for n in reversed(host.split(".")))
    wanted = {f"{at}:{int(port):04X}" for at in (quads, "0" * 8, "0" * 32, "0" * 16 + "FFFF0000" + quads)}
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(table, encoding="ascii") as file:
            found |= {f"socket:[{words[9]}]" for words in map(str.split, file) if words[3] == "0A" and words[1] in wanted}
    return found


def pid_of(address):
    """The process that listens there, or None: any server is found the same way."""
    sockets = listening(address)
    for pid in filter(str.isdigit, os.listdir("/proc")) if sockets else ():
        try:
            if any(os.readlink(f"/proc/{pid}/fd/{fd}") in sockets for fd in os.listdir(f"/proc/{pid}/fd")):
                return int(pid)
        except OSError:
            continue
    return None


class Server:
    """A server of the fleet, which a nemesis may stop, kill and start again as it was started."""

    started = []  # of ours, to be ended with us

    def __init__(self, address, log):
        self.address, self.log = address, log
        self.pid = pid_of(address)
        if self.pid is None:
            raise RuntimeError(f"nobody listens at {address}")
        self.remember()

    def remember(self):
        with open(f"/proc/{self.pid}/cmdline", "rb") as file:
            self.command = [word.decode() for word in file.read().split(b"\0")[:-1]]
        with open(f"/proc/{self.pid}/environ", "rb") as file:
            self.environment = dict(pair.decode().split("=", 1) for pair in file.read().split(b"\0") if b"=" in pair)
        self.directory = os.readlink(f"/proc/{self.pid}/cwd")
        owner = os.stat(f"/proc/{self.pid}")
        self.uid, self.gid = owner.st_uid, owner.st_gid

    def signal(self, number):
        os.kill(self.pid, number)

    def family(self):
        """It and its children: PostgreSQL's outlive it, and keep the next one from starting."""
        with open(f"/proc/{self.pid}/task/{self.pid}/children", encoding="ascii") as file:
            return [self.pid, *map(int, file.read().split())]

    def kill(self):
        self.signal(signal.SIGSTOP)  # so that it has no more children
        for pid in self.family():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for child in Server.started:
            if child.pid == self.pid:
                child.wait()
        self.await_end()

    def await_end(self, seconds=15):
        until = time.monotonic() + seconds
        while self.listens():
            if time.monotonic() > until:
                raise RuntimeError(f"the server at {self.address} does not end")
            time.sleep(0.01)

    def listens(self):
        return bool(listening(self.address))

    def start(self, change=lambda command: command):
        drop = {"user": self.uid, "group": self.gid, "extra_groups": []} if self.uid != os.getuid() else {}
        child, since, until = None, None, time.monotonic() + 180  # Cassandra, on a busy machine
        while since is None or time.monotonic() < since + 0.2:  # it listens, and goes on to
            since = (since or time.monotonic()) if self.listens() else None
            if child is None or child.poll() is not None:  # what was killed may not be gone yet
                child = subprocess.Popen(change(self.command), env=self.environment, cwd=self.directory, stdin=subprocess.DEVNULL,
                                         stdout=self.log, stderr=self.log, start_new_session=True, **drop)
                Server.started.append(child)
            if time.monotonic() > until:
                raise RuntimeError(f"the server at {self.address} does not start again: {' '.join(self.command)[:300]}")
            time.sleep(0.05)
        self.pid = pid_of(self.address)

    @classmethod
    def end_all(cls):
        for child in cls.started:
            if child.poll() is None:
                child.kill()
                child.wait()
