"""The nemesis: one function for each fault, which is let loose on a cell for a few leases and leaves everything whole.
All chance is the cell's own, drawn from its seed."""

import os
import signal
import time
from dataclasses import dataclass
from typing import Callable

MIXED = "exclusive,shared,limited,timed,cancelled,reentrant,adopted"
LASTING = "exclusive,shared,reentrant"  # held for about a lease, so that there is something to lose


def mixed_crew(cell):
    """Five that do all there is, and one whose lock never expires."""
    for i in range(5):
        cell.start_worker(i)
    cell.start_worker(1, kinds="never")


def failover_crew(cell):
    """Locks that expire: a failover may also forget a release, and a lock that never expires then stays until it is broken.
    Where a failover may forget grants, leases outlast it, so that there is something to be shown."""
    forgetful = cell.lab.expected(cell.fault) == "shows"
    for i in range(2 if forgetful else 5):
        cell.start_worker(i, **({"ttl": 6000, "long": 0, "hold": 3500, "hold_max": 5000, "kinds": "exclusive"} if forgetful else {}))


# A long lease, so that the signs of life of a crowd are few.
CROWD = {"ttl": 3000, "hold": 0, "hold_max": 2, "kinds": "exclusive,shared,timed,cancelled"}


def crowd_crew(cell):
    """A crowd of threads in five processes: most of them wait, a third of them not for long."""
    for i in range(5):
        cell.start_worker(i, **CROWD, threads=max(1, cell.store.crowd // 5))


def readers_crew(cell):
    """Twenty readers that come again at once, and two writers."""
    for i in range(4):
        cell.start_worker(i, threads=5, kinds="shared", pause=0)
    for i in range(2):
        cell.start_worker(i, kinds="exclusive")


def forking_crew(cell):
    for i in range(4):
        cell.start_worker(i, kinds="forking,shared")


@dataclass
class Fault:
    nemesis: Callable
    says: str
    crew: Callable = mixed_crew
    kinds: str = MIXED
    long: int = 4  # so many of 100 turns hold for 0.5 to 2 leases
    delay: int = 0
    proxied: bool = False
    keeps_place: bool = False  # the queue is left alone, so that order can be asked for
    servers: bool = False  # it needs servers to do it to
    fleet: tuple = ()  # pairs of a store and another fleet for it


# Programs


def nothing(cell):
    time.sleep(2.5 * cell.ttl)


def kill_holder(cell):
    for _ in range(4):
        who = cell.await_holder()
        cell.sleep(0, 0.03)
        if who in cell.workers:
            cell.kill(who)
        cell.sleep(0.1, 0.3)


def kill_waiter(cell):
    for _ in range(8):
        cell.until(cell.waiter, None, 10 * cell.ttl)
        who = cell.waiter()
        if who:
            cell.kill(who)
        cell.sleep(0.05, 0.4)


def kill_renewing(cell):
    """When about a third of the lease is over the client renews it: then it dies."""
    for _ in range(4):
        cell.await_holder()
        found = cell.holder()
        if not found:
            continue
        who, since = found
        due = since / 1e9 + cell.ttl * cell.random.uniform(0.31, 0.37)
        time.sleep(max(0, due - time.monotonic()))
        if who in cell.workers:
            cell.kill(who)


def freeze_holder(cell):
    for span in (0.5, 1.3, 2.5):
        who = cell.await_holder()
        if who in cell.workers:
            cell.freeze(who, cell.ttl * span * cell.random.uniform(0.9, 1.1))


def suspend(cell):
    """The machine of a holder sleeps: its CLOCK_MONOTONIC has stood still meanwhile (see clock_shim.c)."""
    for span in (0.8, 1.5, 2.5):
        who = cell.await_holder()
        if who not in cell.workers:
            continue
        process = cell.workers[who]
        seconds = cell.ttl * span
        cell.history.add("stop", pid=process.pid, who=who)
        process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        cell.lab.set_back_monotonic(cell, who, seconds)
        process.send_signal(signal.SIGCONT)
        cell.history.add("cont", pid=process.pid, who=who)


def churn(cell):
    """Members of the crowd are killed, a fifth of it at a time, and come anew."""
    for _ in range(2):
        cell.sleep(0.8, 1.2)
        cell.kill(cell.random.choice(sorted(cell.workers)), **CROWD, threads=max(1, cell.store.crowd // 5))


# Network


def through(cell, rounds, choose):
    """Sets the proxies of one group, or of both, to what `choose` says, for a while."""
    for _ in range(rounds):
        mode, number, least, most = choose(cell.random)
        groups = cell.random.choice(([0], [1], [0, 1]))
        with cell.faulty(f"network {mode} {number}"):
            for group in groups:
                cell.proxies[group].set(mode, number)
            cell.sleep(least, most)
            for group in groups:
                cell.proxies[group].set("pass")
        cell.sleep(0.1, 0.5)


def reply_lost(cell):
    through(cell, 7, lambda r: ("s2c_hole", 0, 0.05, 0.3))


def net_late(cell):
    through(cell, 4, lambda r: ("c2s_hole", 0, 0.2, 1.5))


def net_slow(cell):
    half = int(cell.store.ttl_ms / 2)
    through(cell, 5, lambda r: r.choice((("delay", r.randrange(5, half), 0.3, 1.2), ("split", 0, 0.3, 0.8))))


def net_cut(cell):
    through(cell, 8, lambda r: r.choice((("rst", 0, 0, 0.3), ("end", 0, 0, 0.1), ("refuse", 0, 0.1, 0.5),
                                         ("cut", r.randrange(1, 400), 0.1, 0.4))))


def net_hole(cell):
    """One group of workers is cut off from all servers, for longer than its leases, then the other."""
    for group in (0, 1):
        with cell.faulty(f"group {group} is cut off"):
            cell.proxies[group].set("hole")
            cell.sleep(1.5, 2.2)
            cell.proxies[group].set("rst")
            cell.proxies[group].set("pass")
        cell.sleep(0.3, 0.6)


def partition(cell):
    """Machines are cut off from each other: in turn, each of them."""
    for machine in cell.random.sample(range(cell.lab.machines), 2):
        with cell.faulty(f"machine {machine + 1} is cut off"):
            cell.lab.cut_off(machine, True)
            cell.sleep(1.5, 2.5)
            cell.lab.cut_off(machine, False)
        cell.sleep(0.5, 1)


# Servers


def server_kill(cell):
    for _ in range(2):
        server = cell.random.choice(cell.lab.servers)
        with cell.faulty(f"the server at {server.address} is killed"):
            server.kill()
            cell.sleep(0, 0.5)
            cell.lab.start_again(server)
        cell.sleep(0.8, 1.2)


def server_lost(cell):
    with cell.faulty("the data is lost"):
        cell.await_holder()
        cell.lab.lose_data(cell)
    cell.sleep(2, 2.5)


def server_freeze(cell):
    for span in (0.5, 1.2, 2.2):
        server = cell.random.choice(cell.lab.servers)
        with cell.faulty(f"the server at {server.address} is frozen"):
            server.signal(signal.SIGSTOP)
            time.sleep(span * cell.ttl)
            server.signal(signal.SIGCONT)
        cell.sleep(0.3, 0.5)


def failover(cell):
    cell.lab.fail_over(cell)
    cell.sleep(1, 1.5)


def majority(cell):
    """Most of the servers stop, for longer than a lease, and go on."""
    some = cell.random.sample(cell.lab.servers, len(cell.lab.servers) // 2 + 1)
    with cell.faulty("the majority is away"):
        for server in some:
            server.signal(signal.SIGSTOP)
        cell.sleep(1.8, 2.2)
        for server in some:
            server.signal(signal.SIGCONT)
    cell.sleep(0.5, 1)


def clock_step(cell):
    """The wall clock of one server steps forward by two minutes, and back."""
    for seconds in (120, -600, 0):
        cell.await_holder()
        with cell.faulty(f"the clock of a server is put to {seconds:+} s"):
            cell.lab.set_clock(seconds)
            cell.sleep(0.8, 1.2)


def disk_full(cell):
    for _ in range(2):
        with cell.faulty("there is no room"):
            cell.lab.fill_up(True)
            cell.sleep(1.2, 1.6)
            cell.lab.fill_up(False)
        cell.sleep(0.5, 0.8)


def admin(cell):
    """What an operator, or the server by itself, does to clients that are at work."""
    for _ in range(6):
        with cell.faulty("an operator interferes"):
            cell.lab.interfere(cell.random)
        cell.sleep(0.3, 0.5)


def compound(cell):
    """A server is killed; while it comes back a holder dies, another one freezes and connections break."""
    server = cell.random.choice(cell.lab.servers)
    who = cell.await_holder()
    with cell.faulty("a server is killed, and more"):
        server.kill()
        if who in cell.workers:
            cell.kill(who)
        cell.lab.start_again(server)
        for group in (0, 1):
            cell.proxies[group].set("rst")
            cell.proxies[group].set("pass")
        other = cell.random.choice(sorted(w for w in cell.workers if w != who))
        cell.freeze(other, cell.ttl * 1.3)
        cell.proxies[0].set("s2c_hole")
        cell.sleep(0.2, 0.4)
        cell.proxies[0].set("pass")


FAULTS = {
    "calm": Fault(nothing, "nothing is done", keeps_place=True),
    "kill-holder": Fault(kill_holder, "kill -9 of who holds the lock", delay=300, keeps_place=True),
    "kill-waiter": Fault(kill_waiter, "kill -9 of who waits", keeps_place=True),
    "kill-renewing": Fault(kill_renewing, "kill -9 of a holder while it renews", kinds=LASTING, long=100, keeps_place=True),
    "freeze": Fault(freeze_holder, "SIGSTOP of the holder for 0.5 to 2.5 leases", kinds=LASTING, long=60, keeps_place=True),
    "suspend": Fault(suspend, "the holder's machine sleeps for 0.8 to 2.5 leases", kinds=LASTING, long=60, keeps_place=True),
    "fork": Fault(nothing, "holders fork; children outlive the turn", crew=forking_crew, keeps_place=True),
    "churn": Fault(churn, "a crowd waits; a third gives up, a fifth is killed, twice", crew=crowd_crew, long=0,
                   keeps_place=True),
    "readers": Fault(nothing, "twenty readers without a pause, two writers", crew=readers_crew, long=0, keeps_place=True),
    "reply-lost": Fault(reply_lost, "requests are applied, their answers lost", proxied=True),
    "net-late": Fault(net_late, "requests arrive late, after their sender has given up", proxied=True),
    "net-slow": Fault(net_slow, "delays of up to half a lease; byte by byte", proxied=True),
    "net-cut": Fault(net_cut, "connections are reset, ended, refused, cut in the middle of an answer", proxied=True),
    "net-hole": Fault(net_hole, "half of the programs cut off from the servers for 2 leases", kinds=LASTING, long=40, proxied=True),
    "partition": Fault(partition, "servers cut off from each other and from the programs, in network namespaces",
                       kinds=LASTING, long=40, servers=True,
                       fleet=(("etcd3", ("with-etcd-apart",)), ("zookeeper3", ("with-zookeeper-apart",)),
                              ("cassandra3", ("in-namespace", "with-cassandra3", "--setup", "@HOLDFAST@")))),
    "server-kill": Fault(server_kill, "kill -9 of a server, and start, data kept", servers=True),
    "server-lost": Fault(server_lost, "kill -9 of the servers, and start without their data", kinds=LASTING, long=60, servers=True),
    "server-freeze": Fault(server_freeze, "SIGSTOP of a server for 0.5 to 2.2 leases", servers=True),
    "failover": Fault(failover, "the leading server dies, another one takes over", crew=failover_crew, kinds=LASTING, long=40, servers=True,
                      fleet=(("postgres", ("with-postgres-standby",)),)),
    "majority": Fault(majority, "the majority of the servers away for 2 leases", kinds=LASTING, long=40, servers=True),
    "clock-step": Fault(clock_step, "a server's wall clock steps by +120 s and -600 s", kinds=LASTING, long=60, servers=True),
    "disk-full": Fault(disk_full, "no room for the store, for 1.5 leases, twice",
                       fleet=(("sqlite", ("with-tiny-disk", "4m")),)),
    "admin": Fault(admin, "sessions and connections ended, scripts flushed, pauses, compaction", servers=True),
    "compound": Fault(compound, "server killed; during recovery a holder dies, one freezes, connections break, replies are lost",
                      proxied=True, servers=True),
}
