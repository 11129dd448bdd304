"""What was started, and what the library tells of it.

                    .------------------- one client -------------------.
    start(tag) ---> | hf_acquire_start          hf_event_next --> tell | ---> the one who waits for this tag
                    '------------- hf_event_fd becomes readable -------'

Whoever looks at the descriptor (an event loop, or a thread in wait()) takes all events that are there and tells
each to the one it is for, which may be in another loop or thread. No callback is registered with the library, so no
thread of its own ever enters Python.

An exception may come between any two steps (Ctrl-C): the event stands in self._event until it has been told."""

from __future__ import annotations

import asyncio
import itertools
import os
import select
import threading
import weakref
from typing import TYPE_CHECKING, Any, Callable

from ._codes import Cancelled, Cause, Closed, Code, EventKind
from ._error import Error, from_native
from ._load import ffi, lib

if TYPE_CHECKING:
    from ._client import Client
    from ._held import Cancel

OUTCOMES = (EventKind.ACQUIRED, EventKind.FAILED, EventKind.RELEASED)


class Started:
    """One bid, or one release. `call.lock` has the lock when `done` and there is no `error`."""

    def __init__(self, call: Any, tell: Callable[[], None]) -> None:
        self.call = call
        self.done = False
        self.error: Error | None = None
        self.abandoned = False  # nobody waits for it any more: what it gets is given back
        self.tell = tell


class Events:
    def __init__(self, client: Client) -> None:
        self._client = weakref.ref(client)
        self._event = ffi.new("hf_event *")
        self._mutex = threading.RLock()
        self._started: dict[int, Started] = {}
        self._held: dict[int, weakref.ref[Any]] = {}  # who wants to know of a loss
        self._tags = itertools.count(1)
        self._loops: dict[asyncio.AbstractEventLoop, int] = {}
        self._wakes: set[int] = set()  # of threads in wait()
        self._orphans: set[int] = set()  # tags of bids that are still to be stopped
        self._closed = False

    # Starting.
    def new_tag(self) -> int:
        return next(self._tags)

    def start(self, tag: int, started: Started, begin: Callable[[int], None]) -> None:
        """`begin` starts it under this tag, or raises."""
        with self._mutex:
            if self._closed:
                raise Closed("the client is closed")
            self._started[tag] = started
        try:
            begin(tag)
        except Error:
            self._started.pop(tag, None)
            raise

    def stop(self, tag: int) -> int:
        client = self._client()
        return int(lib.hfpy_stop(client._native, tag)) if client is not None else Code.CLOSED

    def abandon(self, tag: int, started: Started) -> None:
        """Nobody waits for it any more. It is stopped at once, or, if a signal comes in between, with the next events."""
        started.abandoned = True
        if not started.done:
            self._orphans.add(tag)
            client = self._client()
            if client is not None:
                client._dropped = True
            self.stop(tag)

    def watch(self, tag: int, held: Any) -> None:
        self._held[tag] = weakref.ref(held)

    def unwatch(self, tag: int) -> None:
        self._held.pop(tag, None)  # one step: also for finalizers, which must not wait for a mutex

    # Taking events.
    def pump(self) -> None:
        client = self._client()
        if client is None:
            return
        with self._mutex:
            client._dropped = False
            while self._orphans:
                self.stop(self._orphans.pop())
            if self._event.kind != 0:
                self._tell()
            while lib.hfpy_event_next(client._native, self._event) == Code.OK:
                self._tell()

    def _tell(self) -> None:
        event = self._event
        if event.kind in OUTCOMES:
            self._tell_outcome(event)
        else:
            watcher = self._held.get(event.tag)
            held = watcher() if watcher is not None else None
            if held is not None:
                held._told(EventKind(event.kind), Cause(event.cause))
        event.kind = 0

    def _tell_outcome(self, event: Any) -> None:
        started = self._started.get(event.tag)
        if started is None or started.abandoned:
            if event.kind == EventKind.ACQUIRED:
                lib.hf_release_start(event.lock, 0, ffi.NULL)
        else:
            if event.kind == EventKind.ACQUIRED:
                started.call.lock = event.lock
            elif event.err.code != Code.OK:
                started.error = from_native(event.err.code, event.err, ffi.string)
            started.done = True
            started.tell()
        self._started.pop(event.tag, None)

    # Waiting in a thread.
    def wait(self, started: Started, begin: Callable[[int], None], cancel: Cancel | None) -> None:
        """Starts it and sleeps until it is done, in a way that signals interrupt. Raises what it ended with."""
        wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        fd = -1
        started.tell = lambda: os.eventfd_write(wake, 1)
        tag = self.new_tag()
        try:
            self._wakes.add(wake)
            if cancel is not None:
                cancel._add(wake)
            fd = self._duplicate()
            self.start(tag, started, begin)
            self._sleep(started, fd, wake, cancel)
        except BaseException:  # a signal's handler raised: the bid is withdrawn, then it goes on
            self._withdraw(started, tag, fd, wake)
            raise
        finally:
            if cancel is not None:
                cancel._remove(wake)
            with self._mutex:
                self._wakes.discard(wake)
                started.tell = lambda: None
                os.close(wake)
            if fd >= 0:
                os.close(fd)
        if started.error is not None:
            raise started.error

    def _sleep(self, started: Started, fd: int, wake: int, cancel: Cancel | None) -> None:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        poll.register(wake, select.POLLIN)
        while not started.done:
            if self._closed:
                raise Closed("the client was closed during the call")
            if cancel is not None and cancel.fired:
                raise Cancelled("the wait was cancelled; nothing is left in the store")
            poll.poll()
            self.pump()

    def _withdraw(self, started: Started, tag: int, fd: int, wake: int) -> None:
        try:
            if self.stop(tag) == Code.OK:
                self._sleep(started, fd, wake, None)
            else:
                self.pump()  # it was over, or never began
                if not started.done:
                    self._started.pop(tag, None)
                    return
        finally:
            if not started.done:
                self.abandon(tag, started)

    # In an event loop.
    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        if loop in self._loops:
            return
        fd = self._duplicate()
        with self._mutex:
            for old in [old for old in self._loops if old.is_closed()]:
                os.close(self._loops.pop(old))
            self._loops[loop] = fd
        loop.add_reader(fd, self.pump)

    def _duplicate(self) -> int:
        """The library's descriptor is closed with the client; one of our own cannot become somebody else's."""
        client = self._client()
        fd = int(lib.hfpy_event_fd(client._native)) if client is not None else Code.CLOSED
        if fd < 0:
            raise client._failed(fd, None) if client is not None else Closed("the client is closed")
        return fd

    # The end.
    def close(self) -> None:
        """Everybody who waits is told that the client is closed. The library ends what was started."""
        with self._mutex:
            self._closed = True
            for started in self._started.values():
                started.error, started.done = Closed("the client was closed during the call"), True
                started.tell()
            self._started.clear()
            for wake in self._wakes:
                os.eventfd_write(wake, 1)
            loops, self._loops = self._loops, {}
        for loop, fd in loops.items():
            _detach(loop, fd)

    def tell_closed(self) -> None:
        for watcher in list(self._held.values()):
            held = watcher()
            if held is not None:
                held._told(EventKind.LOST, Cause.CLOSED)

    def forget(self) -> None:
        """In a forked child: the descriptors are the parent's too, and nothing is told here."""
        self._mutex = threading.RLock()
        self._closed = True
        self._loops = {}


def _detach(loop: asyncio.AbstractEventLoop, fd: int) -> None:
    def remove() -> None:
        loop.remove_reader(fd)
        os.close(fd)

    try:
        loop.call_soon_threadsafe(remove)
    except RuntimeError:  # the loop is closed
        os.close(fd)
