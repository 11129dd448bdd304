"""Distributed locks over the store that you already run: SQLite, Redis, PostgreSQL, MySQL, etcd, ZooKeeper, ...

    import holdfast

    locks = holdfast.open("redis://db/0")  # nothing: a file of your own
    with locks.lock("invoice/123", timeout=10) as held:
        write_invoice(fence=held.token)

In a coroutine the same with `async with`. Durations are seconds (float or timedelta), math.inf is for ever. What the
locks promise, and what not, is in docs/GUARANTEES.md of the library: a lease makes overlap unlikely, the fencing token
makes it harmless."""

from ._aio import AsyncHeld, AsyncLoss
from ._client import Client, Entry, Finding, StoreInfo, stores
from ._codes import (
    Busy, Cancelled, Capability, Cause, Closed, Code, Corrupt, Deadlock, Denied, Forked, Full, Invalid, Lost, Mode,
    NoMemory, NoStore, NotFound, Place, Stale, State, System, Timeout, Unavailable, Unknown, Unsupported)
from ._error import Error
from ._gate import Gate
from ._held import Cancel, Held, Loss
from ._load import version
from ._lock import Lock
from ._mutex import Mutex

__all__ = [
    "open", "stores", "version", "Client", "Lock", "Held", "AsyncHeld", "Loss", "AsyncLoss", "Cancel", "Mutex", "Gate",
    "Entry", "Finding", "StoreInfo", "Capability", "Cause", "Code", "Mode", "Place", "State",
    "Error", "Busy", "Timeout", "Cancelled", "Stale", "NotFound", "Lost", "Unknown", "Unavailable", "Denied", "Full",
    "Corrupt", "NoStore", "Unsupported", "Invalid", "Deadlock", "Forked", "Closed", "NoMemory", "System"]


def open(url: str | None = None, *, program: str | None = None, modules: str | None = None) -> Client:
    """Opens the store that `url` names: "memory://name", "sqlite:/path/locks.db", "redis://host/0", ... (holdfast(7)).

    None: what HOLDFAST_URL names, or the default store, a file of your own. `program` is shown to people who look at
    the locks (the script's name). `modules`: where the stores' modules are."""
    return Client(url, program=program, modules=modules)
