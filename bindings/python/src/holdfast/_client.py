"""A connection to one store."""

from __future__ import annotations

import _thread
import asyncio
import atexit
import dataclasses
import itertools
import os
import sys
import threading
import warnings
import weakref
from types import TracebackType
from typing import Any, Iterator

from ._aio import AsyncHeld
from ._codes import Capability, Closed, Code, Forked, Invalid, Mode, Place, Unsupported
from ._error import Error, from_native
from ._events import Events
from ._held import Held
from ._load import ffi, lib, text_of
from ._lock import Lock, fill_options
from ._text import Name, Seconds, c_string, to_bytes, to_ms, to_seconds, to_text

_clients: weakref.WeakSet[Client] = weakref.WeakSet()
_threads = threading.local()
_thread_numbers = itertools.count(1)


@dataclasses.dataclass(frozen=True)
class Entry:
    """One holder or waiter. Durations are in seconds, inf where there is no end."""

    name: str
    place: Place
    position: int  # in the queue, from 1; 0 for holders
    mode: Mode
    limit: int
    ticket: str
    token: int | None  # None while waiting, or if the store has none
    ttl: float
    lock_delay: float
    age: float
    remaining: float
    claimed: bool  # the holder knows that it holds
    host: str
    user: str
    program: str
    note: str
    pid: int

    @property
    def name_bytes(self) -> bytes:
        return to_bytes(self.name)


@dataclasses.dataclass(frozen=True)
class Finding:
    """What `Client.diagnose` found. `level`: 0 fine, 1 note, 2 warning, 3 problem; `clause`: "C3", or None."""

    level: int
    clause: str | None
    text: str


@dataclasses.dataclass(frozen=True)
class StoreInfo:
    """A store that this installation knows. `missing` says why it cannot be used, or is None."""

    name: str
    schemes: str
    summary: str
    capabilities: Capability
    options: str
    ddl: str | None
    missing: str | None


class Client:
    """Opens the store that `url` names; None: what HOLDFAST_URL names, or the default store. See `holdfast.open`."""

    def __init__(self, url: str | None = None, *, program: str | None = None, modules: str | None = None) -> None:
        self._native = None
        self._main = threading.main_thread().ident
        self._forked = self._closing = self._dropped = False
        options = ffi.new("hf_client_options *")
        options.size = ffi.sizeof("hf_client_options")
        keep = [ffi.new("char[]", c_string(program or _name_of_program(), "the program's name"))]
        options.program = keep[0]
        if modules is not None:
            if not hasattr(options, "modules"):
                raise Unsupported("this libholdfast takes the directory of modules from HOLDFAST_MODULES only")
            keep.append(ffi.new("char[]", c_string(modules, "the directory of modules")))
            options.modules = keep[1]
        self._url = None if url is None else c_string(url, "the URL")
        native, err = ffi.new("hfpy_client *"), ffi.new("hf_error *")
        code = lib.hfpy_open(ffi.NULL if self._url is None else self._url, options, native, err)
        if code < 0:
            raise from_native(code, err, ffi.string)
        self._native = native
        self._events = Events(self)
        _clients.add(self)

    def _call(self, function: Any, *args: Any) -> None:
        """A function of the shim that takes the client first, and an hf_error last."""
        err = ffi.new("hf_error *")
        code = function(self._native, *args, err)
        if code < 0:
            raise self._failed(code, err)

    def _failed(self, code: int, err: Any) -> Error:
        """Closed and Forked are told before the library can say a sentence."""
        if code == Code.CLOSED or self._closing:
            return Closed("the client is closed")
        if code == Code.FORKED:
            return Forked("this client belongs to the parent process: open one here")
        return from_native(code, err, ffi.string)

    def _owner_of_thread(self) -> int:
        """Not the thread's id, which the next thread may get."""
        try:
            return int(_threads.number)
        except AttributeError:
            _threads.number = next(_thread_numbers)
            return int(_threads.number)

    # Locks.
    def lock(
        self, name: Name, *, shared: bool = False, limit: int = 0, ttl: Seconds | None = None,
        timeout: Seconds | None = None, lock_delay: Seconds = 0, max_hold: Seconds = 0, reentrant: bool = False,
        owner: int = 0, by_hand: bool = False, confirmed: bool = False, note: str = "", patience: Seconds | None = None,
    ) -> Lock:
        """Describes a lock; nothing is sent until it is acquired.

        - `shared`: readers together, writers alone; `limit`: shared, at most this many holders
        - `ttl`: the lease, renewed in the background (30 s); math.inf: until released or broken
        - `timeout`: how long to wait for others; None: for ever; 0: not at all
        - `lock_delay`: it stays closed for so long if we vanish without a release
        - `max_hold`: it is lost after this time; 0: no maximum
        - `reentrant`: the same thread (or `owner`, a number below 2^63) may acquire it again
        - `by_hand`: no renewal in the background, you call renew()
        - `confirmed`: return only when the store knows that we know
        - `note`: shown to people who look at the lock
        - `patience`: how long to go on while the store does not answer"""
        return Lock(
            self, name, shared=shared, limit=limit, ttl=ttl, timeout=timeout, lock_delay=lock_delay, max_hold=max_hold,
            reentrant=reentrant, owner=owner, by_hand=by_hand, confirmed=confirmed, note=note, patience=patience)

    def adopt(
        self, name: Name, ticket: str, *, by_hand: bool = False, max_hold: Seconds = 0, reentrant: bool = False, owner: int = 0
    ) -> Held:
        """Takes over a lock by its ticket, after `Held.detach()` or from a process that is dead."""
        held = Held(self, to_bytes(name), ffi.new("hfpy_call *"))
        self._adopt(held, ticket, by_hand=by_hand, max_hold=max_hold, reentrant=reentrant, owner=owner)
        return held

    async def adopt_async(
        self, name: Name, ticket: str, *, by_hand: bool = False, max_hold: Seconds = 0, owner: int = 0
    ) -> AsyncHeld:
        """The same in a coroutine."""
        held = AsyncHeld(self, to_bytes(name), ffi.new("hfpy_call *"))
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(
            None, lambda: self._adopt(held, ticket, by_hand=by_hand, max_hold=max_hold, reentrant=False, owner=owner))
        loop.add_reader(held._lost_fd(), held._lost_now)
        return held

    def _adopt(self, held: Any, ticket: str, **terms: Any) -> None:
        options, _ = fill_options(**terms)
        name, call = held._name, held._call
        code = lib.hfpy_adopt(self._native, name, len(name), c_string(ticket, "a ticket"), options, call)
        if code < 0:
            raise self._failed(code, call.err)

    # The store.
    @property
    def capabilities(self) -> Capability:
        """What this store can do."""
        bits = ffi.new("uint32_t *")
        code = lib.hfpy_capabilities(self._native, bits)
        if code < 0 or self._forked:
            raise self._failed(code or Code.FORKED, None)
        return Capability(bits[0])

    def check(self, sequencer: str) -> None:
        """Asks the store whether the grant behind it is live now; raises `Stale` if it is not."""
        self._call(lib.hfpy_check, c_string(sequencer, "a sequencer"))

    def inspect(self, *, name: Name | None = None, prefix: Name | None = None, older_than: Seconds = 0) -> list[Entry]:
        """Holders and waiters, sorted by name, holders first, waiters in their order. Free locks do not appear."""
        query = ffi.new("hf_query *")
        query.size = ffi.sizeof("hf_query")
        keep = []
        for field, value in (("name", name), ("prefix", prefix)):
            if value is not None:
                text = to_bytes(value)
                keep.append(ffi.new("char[]", text))
                setattr(query, field, keep[-1])
                setattr(query, field + "_len", len(text))
        query.older_than_ms = to_ms(older_than, "older_than")
        view = ffi.new("hf_view **")
        self._call(lib.hfpy_inspect, query, view)
        try:
            return [_entry(lib.hf_view_entry(view[0], i)) for i in range(lib.hf_view_count(view[0]))]
        finally:
            lib.hf_view_free(view[0])

    def break_(self, name: Name, ticket: str, *, now: bool = False) -> None:
        """Takes the lock away from a ticket; `now`: without waiting for the end of its lease."""
        text = to_bytes(name)
        self._call(lib.hfpy_break, text, len(text), c_string(ticket, "a ticket"), bool(now))

    def setup(self) -> None:
        """Creates what the store needs, and leaves alone what is there."""
        self._call(lib.hfpy_setup)

    def purge(self, retain: Seconds = 0) -> int:
        """Removes the records of free locks that nobody has touched for so long (0: the store's own option); how many."""
        count = ffi.new("uint64_t *")
        self._call(lib.hfpy_purge, to_ms(retain, "retain"), count)
        return int(count[0])

    def diagnose(self) -> list[Finding]:
        """Examines the live store."""
        found: list[Finding] = []

        def add(level: int, clause: Any, text: Any) -> None:
            found.append(Finding(level, text_of(clause) if clause else None, text_of(text)))

        handle = ffi.new_handle(add)
        self._call(lib.hfpy_diagnose, lib.hfpy_finding, handle)
        return found

    # The end.
    def close(self) -> None:
        """Releases what is held, wakes all who wait (they get `Closed`), and frees the client. Again: nothing. It happens
        at the exit of the program by itself."""
        if self._forked or self._native is None:
            return
        self._closing = True
        self._events.close()
        lib.hfpy_close(self._native)
        self._events.tell_closed()

    async def aclose(self) -> None:
        """`close()` without blocking the event loop."""
        await asyncio.get_running_loop().run_in_executor(None, self.close)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.aclose()

    def __del__(self, *, warn: Any = warnings.warn, close: Any = lib.hfpy_close, start: Any = _thread.start_new_thread) -> None:
        """Never waits: a thread does."""
        native = getattr(self, "_native", None)
        if native is None or self._forked or self._closing:
            return
        self._closing = True
        warn("a client was dropped without close()", ResourceWarning, source=self)
        try:
            start(close, (native,))
        except RuntimeError:
            pass  # the interpreter ends: so do the locks, with their leases

    def __repr__(self) -> str:
        state = "forked" if self._forked else "closed" if self._closing else "open"
        return f"<holdfast.Client {state}>"

    def _forget(self) -> None:
        """In a forked child."""
        self._forked = True
        self._events.forget()


def _entry(e: Any) -> Entry:
    return Entry(
        name=to_text(bytes(ffi.buffer(e.name, e.name_len))), place=Place(e.place), position=e.position, mode=Mode(e.mode),
        limit=e.limit, ticket=text_of(e.ticket), token=e.generation or None, ttl=to_seconds(e.ttl_ms),
        lock_delay=to_seconds(e.lock_delay_ms), age=to_seconds(e.age_ms), remaining=to_seconds(e.remaining_ms),
        claimed=bool(e.claimed), host=text_of(e.host), user=text_of(e.user), program=text_of(e.program),
        note=text_of(e.note), pid=e.pid)


def stores() -> list[StoreInfo]:
    """The stores that this installation knows."""
    found: list[StoreInfo] = []

    def add(info: Any) -> None:
        found.append(StoreInfo(
            text_of(info.name), text_of(info.schemes), text_of(info.summary), Capability(info.capabilities),
            text_of(info.options), text_of(info.ddl) if info.ddl else None, text_of(info.missing) if info.missing else None))

    handle = ffi.new_handle(add)
    code = lib.hf_stores(lib.hfpy_store, handle)
    if code < 0:
        raise from_native(code, None, ffi.string)
    return found


def _name_of_program() -> str:
    """The script's, since "python" tells nobody anything."""
    name = os.path.basename(sys.argv[0]) if getattr(sys, "argv", None) else ""
    return name if name and name not in ("-c", "-m", "-") else "python"


def _all() -> Iterator[Client]:
    return iter(list(_clients))


@atexit.register
def _close_all() -> None:
    for client in _all():
        client.close()


def _forget_all() -> None:
    for client in _all():
        client._forget()


os.register_at_fork(after_in_child=_forget_all)
