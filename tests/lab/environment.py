"""The servers of one store, while its cells are run: where they are, and what can be done to them."""

import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time

import cells
from stores import STORES, Server, addresses


def run(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=30).stdout


class Environment:
    def __init__(self, name, url, build):
        self.name, self.build = name, build
        self.store = STORES[name]
        self.kind = name.rstrip("3").split("-")[0]
        self.directory = tempfile.mkdtemp(prefix="holdfast-lab-store.")
        os.chmod(self.directory, 0o700 if name == "sqlite" else 0o755)
        self.log = open(os.path.join(self.directory, "restarted.log"), "ab")
        self.url = self.complete(url)
        self.fleet_directory = os.environ.get("HOLDFAST_TEST_FLEET", self.directory)
        self.apart = os.environ.get("HOLDFAST_TEST_APART")
        self.servers = [] if name == "sqlite" or self.apart else [Server(a, self.log) for a in self.server_addresses()]
        self.machines = 3
        if self.kind in ("redis", "sentinel", "redlock"):
            self.learn_redis()
        if self.kind in ("mysql", "galera"):
            self.sql("SET GLOBAL innodb_flush_log_at_trx_commit = 2")  # what was answered survives kill -9
        self.clock = None

    def complete(self, url):
        if self.name == "sqlite":
            url = f"sqlite:{self.directory}/locks.db"
        elif url == "@URL@":  # the fleets with machines apart fill in nothing
            url = f"etcd://{os.environ['HOLDFAST_TEST_ETCD']}/test?tls=off"
        more = [o for o in (self.store.options, "op_timeout=2s") if o]
        return url + ("&" if "?" in url else "?") + "&".join(more)

    def server_addresses(self):
        if self.name == "sentinel":
            return [f"127.0.0.1:{os.environ['HOLDFAST_TEST_' + role]}" for role in ("MASTER", "REPLICA")]
        return addresses(self.url)

    def observed(self):
        if self.name == "sqlite":
            return f"{self.directory}/locks.db"
        if self.name == "sentinel":
            return "sentinel:" + os.environ["HOLDFAST_TEST_SENTINELS"]
        if self.name == "galera":
            return addresses(self.url)[1]
        return ",".join(addresses(self.url))

    def expected(self, fault):
        name = next(n for n, f in cells.FAULTS.items() if f is fault)
        return cells.outcome(self.name, name)

    def end(self):
        Server.end_all()
        self.log.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    # Clients of the servers' own kind

    def redis(self, which, *words):
        return run("redis-cli", "-h", "127.0.0.1", "-p", self.servers[which].address.split(":")[1], *words)

    def sql(self, statement, which=0):
        if self.kind == "postgres":
            host, port = self.servers[which].address.split(":")
            return run("psql", "-X", "-At", "-h", host, "-p", port, "-U", "postgres", "-d", "postgres", "-c", statement)
        path = os.environ["HOLDFAST_TEST_MARIADB_SOCKET"]
        return run("mariadb", "--no-defaults", "-uroot", f"--socket={path}", "-Ne", statement)

    # What the nemesis asks for

    def learn_redis(self):
        """A redis-server writes a title over its command. Our servers keep what they have answered."""
        for i, server in enumerate(self.servers):
            directory = self.redis(i, "config", "get", "dir").split()[1]
            server.command = ["redis-server", "--bind", "127.0.0.1", "--port", server.address.split(":")[1], "--dir", directory,
                              "--save", "", "--appendonly", "yes", "--appendfsync", "always", "--logfile", f"{directory}/log",
                              "--repl-diskless-sync-delay", "0"]
            self.redis(i, "config", "set", "appendfsync", "always")
            self.redis(i, "config", "set", "appendonly", "yes")
            self.until(lambda: "aof_rewrite_in_progress:0" in self.redis(i, "info", "persistence"))

    def start_again(self, server):
        if self.kind == "postgres":  # its process is not reaped yet, and would be taken for one that runs
            data = server.command[server.command.index("-D") + 1]
            for path in (f"{data}/postmaster.pid", f"{data}/../.s.PGSQL.{server.address.split(':')[1]}.lock"):
                if os.path.exists(path):
                    os.unlink(path)
        server.start()
        if self.kind == "mysql":
            self.until(lambda: "ERROR" not in self.sql("SET GLOBAL innodb_flush_log_at_trx_commit = 2"))

    @staticmethod
    def until(is_true, seconds=30):
        end = time.monotonic() + seconds
        while not is_true():
            if time.monotonic() > end:
                raise RuntimeError("a server does not come to itself")
            time.sleep(0.05)

    def lose_data(self, cell):
        if self.name == "sqlite":
            for end in ("", "-wal", "-shm", "-journal"):
                if os.path.exists(f"{self.directory}/locks.db{end}"):
                    os.unlink(f"{self.directory}/locks.db{end}")
            cell.sleep(1, 1.2)
            for who in sorted(cell.workers):  # a client whose file is gone says so until it is opened anew
                cell.kill(who)
            return
        some = self.servers if self.name == "redis" else self.servers[:3]
        for server in some:
            server.kill()
        for server in some:
            shutil.rmtree(os.path.join(self.data_directory(server), "appendonlydir"), ignore_errors=True)
            self.start_again(server)

    @staticmethod
    def data_directory(server):
        return server.command[server.command.index("--dir") + 1]

    def worker_environment(self, cell, who):
        """A worker of the fault "suspend" has a clock of its own."""
        if not cell.name.endswith(".suspend"):
            return {}
        path = os.path.join(cell.directory, f"monotonic-{who}")
        self.write_offset(path, 0)
        return {"LD_PRELOAD": os.path.join(self.build, "tests", "lib", "clock_shim.so"), "HOLDFAST_TEST_MONOTONIC": path}

    def set_back_monotonic(self, cell, who, seconds):
        with open(os.path.join(cell.directory, f"monotonic-{who}"), "rb") as file:
            before, = struct.unpack("=q", file.read(8))
        self.write_offset(os.path.join(cell.directory, f"monotonic-{who}"), before / 1000 - seconds)

    @staticmethod
    def write_offset(path, seconds):
        """In place: it is mapped."""
        with open(path, "r+b" if os.path.exists(path) else "wb") as file:
            file.write(struct.pack("=q", int(seconds * 1000)))

    # Failover

    def fail_over(self, cell):
        {"sentinel": self.fail_over_sentinel, "galera": self.fail_over_galera,
         "postgres": self.fail_over_postgres}.get(self.kind, self.kill_leader)(cell)

    def kill_leader(self, cell):
        leader = self.leader()
        with cell.faulty(f"the leader at {leader.address} is killed"):
            leader.kill()
            cell.sleep(1.5, 2)
        with cell.faulty("it comes back"):
            self.start_again(leader)

    def leader(self):
        if self.kind == "etcd":
            return next(s for s in self.servers if '"isLeader":true' in self.etcd_status(s))
        if self.kind == "zookeeper":
            return next(s for s in self.servers if "Mode: leader" in self.zookeeper_says(s, b"srvr"))
        return self.servers[0]  # of Cassandra's nodes the first of the URL is the one that is asked

    @staticmethod
    def etcd_status(server):
        text = run("curl", "-s", "--noproxy", "*", "-m", "2", "-X", "POST", "-d", "{}", f"http://{server.address}/v3/maintenance/status")
        status = json.loads(text or "{}")
        leads = status.get("leader") == status.get("header", {}).get("member_id")
        return text + ('"isLeader":true' if leads else "")

    @staticmethod
    def zookeeper_says(server, word):
        host, port = server.address.split(":")
        with socket.create_connection((host, int(port)), 2) as connection:
            connection.sendall(word)
            return b"".join(iter(lambda: connection.recv(4096), b"")).decode()

    def master(self):
        """Which of the two is the master, by the word of a sentinel."""
        port = os.environ["HOLDFAST_TEST_SENTINELS"].split(",")[0].split(":")[1]
        return run("redis-cli", "-p", port, "sentinel", "get-master-addr-by-name", "m").split()[-1]

    def fail_over_sentinel(self, cell):
        """The replica no longer hears its master when a lock is granted; then the master dies."""
        old = self.master()
        master, replica = sorted(self.servers, key=lambda s: not s.address.endswith(":" + old))
        which = self.servers.index(replica)
        since = time.monotonic_ns()

        def is_granted():
            self.redis(which, "replicaof", "127.0.0.1", "1")  # again and again: the sentinels mend it
            return (cell.holder() or (0, 0))[1] > since

        cell.until(is_granted, None, 10)
        with cell.faulty("the master dies before it could tell its replica"):
            master.kill()
            self.until(lambda: self.master() != old)
        with cell.faulty("the old master comes back"):
            self.start_again(master)
            self.until(lambda: "role:slave" in self.redis(self.servers.index(master), "info", "replication"))

    def fail_over_postgres(self, cell):
        """The standby no longer hears the primary when a lock is granted; the primary dies, and the standby is promoted."""
        self.sql("ALTER SYSTEM SET primary_conninfo = ''", 1)
        self.sql("SELECT pg_reload_conf()", 1)
        self.until(lambda: self.sql("SELECT count(*) FROM pg_stat_replication").strip() == "0")
        since = time.monotonic_ns()
        cell.until(lambda: (cell.holder() or (0, 0))[1] > since, None, 10)
        with cell.faulty("the primary dies, the standby is promoted"):
            self.servers[0].kill()
            self.sql("SELECT pg_promote()", 1)

    def fail_over_galera(self, cell):
        """One node leaves in order, and comes back to the other."""
        first, second = self.servers
        options = next(w for w in second.command if w.startswith("--wsrep-provider-options="))
        peer = options.split("gmcast.listen_addr=tcp://")[1].split(";")[0]
        with cell.faulty("the first node leaves"):
            first.signal(signal.SIGTERM)
            first.await_end(30)
            cell.sleep(1, 1.5)
        with cell.faulty("it comes back"):
            first.start(lambda command: [f"--wsrep-cluster-address=gcomm://{peer}" if w.startswith("--wsrep-cluster-address=") else w
                                         for w in command])
            self.until(lambda: "ON" in self.sql("SHOW STATUS LIKE 'wsrep_ready'"))

    # Partitions

    def cut_off(self, machine, cut):
        if self.apart:
            subprocess.run(["ip", "link", "set", f"server{machine + 1}", "down" if cut else "up"], check=True)
            return
        here = f"127.0.0.{machine + 1}"
        for other in (f"127.0.0.{n}" for n in (1, 2, 3) if n != machine + 1):
            for one, two in ((here, other), (other, here)):
                subprocess.run(["ip", "rule", "add" if cut else "del", "pref", "100", "from", one, "to", two, "blackhole"], check=True)

    # Clocks and rooms

    def set_clock(self, seconds):
        if self.kind == "cassandra":
            self.clock = os.path.join(self.fleet_directory, "1", "clock")
        elif self.clock is None:
            self.clock = os.path.join(self.directory, "clock")
            self.write_offset(self.clock, 0)
            server = self.servers[0]
            server.environment.update(LD_PRELOAD=os.path.join(self.build, "tests", "lib", "clock_shim.so"), HOLDFAST_TEST_CLOCK=self.clock)
            server.kill()
            self.start_again(server)
        self.write_offset(self.clock, seconds)

    def fill_up(self, full):
        if self.kind == "redis":
            self.redis(0, "config", "set", "maxmemory", "1" if full else "0")
            return
        ballast = os.path.join(os.environ["HOLDFAST_TEST_DISK"], "ballast")
        if not full:
            os.unlink(ballast)
            return
        with open(ballast, "wb", buffering=0) as file:
            try:
                while file.write(b"x" * 4096):
                    pass
            except OSError:
                return

    # Operators

    def interfere(self, chance):
        if self.kind in ("redis", "sentinel"):
            which = 0 if self.kind == "redis" else next(
                i for i, s in enumerate(self.servers) if s.address.endswith(":" + self.master()))
            self.redis(which, *chance.choice((("script", "flush"), ("client", "kill", "type", "normal"),
                                              ("client", "kill", "type", "pubsub"), ("client", "pause", "500"),
                                              ("bgrewriteaof",))))
        elif self.kind == "postgres":
            self.sql(chance.choice(("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'",
                                    "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()", "CHECKPOINT")))
        elif self.kind == "mysql":
            how = chance.choice(("KILL", "KILL QUERY"))
            for pid in self.sql("SELECT id FROM information_schema.processlist WHERE user = 'app'").split():
                self.sql(f"{how} {pid}")
        elif self.kind == "etcd":
            endpoints = ["etcdctl", "--endpoints", ",".join(s.address for s in self.servers)]
            status = json.loads(run("env", "ETCDCTL_API=3", *endpoints[:2], self.servers[0].address, "endpoint", "status", "-w", "json"))
            revision = status[0]["Status"]["header"]["revision"]
            run("env", "ETCDCTL_API=3", *endpoints, "compact", str(revision))
            run("env", "ETCDCTL_API=3", *endpoints, "defrag")
