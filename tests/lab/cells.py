"""What is expected of each store and fault: the one table.

"hold"    every invariant holds
"shows"   the store's known weakness: two may hold at once, or a lock be lost early; every stale write is refused
"open"    the same on a store without a token: nothing can refuse a stale write, and it is said so
anything else is why the fault is not done to this store"""

from faults import FAULTS
from stores import STORES

ONE = "one server has nobody to take over"
NO_NET = "there is no network between program and store"
NO_SERVER = "there is no server"
NAMED = "clients dial the address that Sentinel names, not that of a proxy"
GO_CLOCK = "Go reads the kernel's clock past any shim; stepping the whole machine's clock is not done"
SINGLES = ("redis", "postgres", "postgres-session", "mysql", "zookeeper", "etcd", "cassandra")
PROXIED = [name for name, fault in FAULTS.items() if fault.proxied]

EXPECTED = {fault: {} for fault in FAULTS}


def expect(fault, stores, outcome):
    for store in stores.split():
        assert store in STORES, store
        EXPECTED[fault][store] = outcome


for name in PROXIED:
    expect(name, "sqlite", NO_NET)
    expect(name, "sentinel", NAMED)
for name, fault in FAULTS.items():
    if fault.servers:
        expect(name, "sqlite", NO_SERVER)
for name in ("failover", "majority", "partition"):
    expect(name, " ".join(SINGLES), ONE)

expect("freeze", "redlock", "open")
expect("suspend", "redlock", "open")
expect("suspend", "zookeeper zookeeper3", "the clock that is held back in a program is not that of the condition variables on which this store waits; see freeze")
expect("readers", "redlock", "it has no shared locks")

expect("partition", "sentinel redlock galera", "the servers share one address; see net-hole, majority and failover")

expect("server-kill", "sentinel", "see failover")
expect("server-kill", "galera", "of two nodes the one that stays has no majority")
expect("compound", "galera", "of two nodes the one that stays has no majority")

expect("server-lost", "sqlite", "shows")
expect("server-lost", "redis", "shows")
expect("server-lost", "redlock", "open")
expect("server-lost", "sentinel", "see failover")
expect("server-lost", "postgres postgres-session mysql galera cassandra cassandra3",
       "a server that has lost its tables is refused until somebody runs setup")
expect("server-lost", "zookeeper zookeeper3 etcd etcd3", "tokens begin anew with the data, as the store's page says; nothing to be held to")

expect("server-freeze", "galera", "the cluster waits for the slowest: a frozen node of two stops both; see server-freeze of mysql")

expect("failover", "sentinel postgres", "shows")
expect("failover", "postgres-session", "see postgres: the lock ends with the connection in any case")
expect("failover", "redlock", "no server leads")
expect("majority", "sentinel", "one server decides; see failover")
expect("majority", "galera", "of two nodes the one that stays has no majority")

expect("clock-step", "redis", "shows")
expect("clock-step", "sentinel redlock galera", "see redis and mysql: the same server and rules")
expect("clock-step", "postgres mysql", "shows")
expect("clock-step", "zookeeper zookeeper3 cassandra", "not run: see cassandra3 for a stepped node; ZooKeeper counts on the JVM's nanoTime")
expect("clock-step", "cassandra3", "shows")
expect("clock-step", "etcd etcd3", GO_CLOCK)

for name in ("sentinel", "redlock", "postgres-session", "galera", "zookeeper", "zookeeper3", "etcd3", "cassandra", "cassandra3", "postgres",
             "mysql", "etcd"):
    expect("disk-full", name, "a disk of its own for each server is not made here; see the store's own tests")
expect("admin", "zookeeper zookeeper3", "a session is ended by its own client alone; see net-cut and freeze")
for name in ("admin", "server-kill", "compound", "net-cut", "net-hole", "net-late", "reply-lost", "net-slow"):
    expect(name, "postgres-session", "shows")  # C7: the lock ends with its connection, whoever ends that
expect("admin", "redlock", "see redis: the same servers and scripts")
expect("admin", "galera", "see mysql")
expect("admin", "cassandra cassandra3", "nodetool is not in the jars; see server-kill and net-cut")


def outcome(store, fault):
    return EXPECTED[fault].get(store, "hold")


def runs(store, fault):
    return outcome(store, fault) in ("hold", "shows", "open")


def cells():
    """(store, fault) of all that are run, store by store."""
    return [(store, fault) for store in STORES for fault in FAULTS if runs(store, fault)]
