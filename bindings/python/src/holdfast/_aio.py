"""Locks in coroutines: nothing here blocks the event loop, and no thread waits."""

from __future__ import annotations

import asyncio
import itertools
import sys
import weakref
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable

from ._codes import Cause, Closed, EventKind, Stale
from ._error import Error
from ._events import Started
from ._held import HeldBase
from ._load import ffi, lib

if TYPE_CHECKING:
    from ._client import Client

_owners: weakref.WeakKeyDictionary[asyncio.Task[Any], int] = weakref.WeakKeyDictionary()
_numbers = itertools.count(2**62)  # apart from those of threads


def owner_of_task() -> int:
    """A task that waits for a lock that it holds itself is told so (`Deadlock`), as a thread is."""
    task = asyncio.current_task()
    if task is None:
        return 0
    owner = _owners.get(task)
    if owner is None:
        owner = _owners[task] = next(_numbers)
    return owner


class AsyncLoss:
    """Tells that a lock was lost, as asyncio.Event tells: `is_set()`, `await wait()`."""

    def __init__(self, held: AsyncHeld) -> None:
        self._held = held

    def is_set(self) -> bool:
        return self._held._is_lost()

    __bool__ = is_set

    @property
    def cause(self) -> Cause:
        """Why; `Cause.NONE` if it is not lost."""
        return self._held.cause

    async def wait(self) -> bool:
        """Waits until the lock is lost or given back; True if it is lost."""
        while not self.is_set() and not self._held.ended and not self._held._client._closing:
            news = self._held._loop.create_future()
            self._held._news.append(news)
            await news
        return self.is_set()


class AsyncHeld(HeldBase):
    """A lock that a coroutine obtained. In `async with`, a loss cancels the body, and `Lost` comes out, as asyncio.timeout()
    does it; elsewhere see `lost`."""

    def __init__(self, client: Client, name: bytes, call: Any) -> None:
        super().__init__(client, name, call)
        self._loop = asyncio.get_running_loop()
        self._news: list[asyncio.Future[None]] = []
        self._scope: asyncio.Task[Any] | None = None  # whose body is cancelled
        self._cancelling = 0
        self._interrupted = False

    @property
    def lost(self) -> AsyncLoss:
        """Tells of a loss, as an event."""
        return AsyncLoss(self)

    # A loss, told in whatever thread.
    def _told(self, kind: EventKind, cause: Cause) -> None:
        if kind == EventKind.LOST:
            in_loop(self._loop, self._tell_loss)

    def _tell_loss(self) -> None:
        news, self._news = self._news, []
        for future in news:
            if not future.done():
                future.set_result(None)
        if self._scope is not None and not self._interrupted and not self.ended:
            self._interrupted = True
            self._scope.cancel(self)

    def _lost_now(self) -> None:
        """The descriptor of a lock that was adopted is readable."""
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
        self._tell_loss()

    def _end(self, how: str) -> None:
        super()._end(how)
        in_loop(self._loop, self._lost_now)  # wakes those who wait for one

    # The scope.
    async def __aenter__(self) -> AsyncHeld:
        self._scope = asyncio.current_task()
        if self._scope is not None and sys.version_info >= (3, 11):
            self._cancelling = self._scope.cancelling()
        if self._is_lost():
            self._tell_loss()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        task, self._scope = self._scope, None
        was_ours = self._interrupted and task is not None and self._is_cancel_ours(task, error)
        loss: Error | None = None
        if not self._client._forked and self._call.lock:
            try:
                await self.release()
            except Stale as stale:
                loss = self._loss()
                loss.__cause__ = stale
            except Error as failure:
                loss = failure
        elif was_ours:
            loss = self._loss()
        if was_ours or (kind is None and loss is not None):
            raise loss or self._loss()

    def _is_cancel_ours(self, task: asyncio.Task[Any], error: BaseException | None) -> bool:
        """Whether the body ended by the cancellation of a loss, and nobody else cancelled it too."""
        if sys.version_info >= (3, 11):
            return task.uncancel() <= self._cancelling and isinstance(error, asyncio.CancelledError)
        return isinstance(error, asyncio.CancelledError) and error.args == (self,)

    # Round trips.
    async def release(self) -> None:
        """Gives it back, as `Held.release()` does. It goes on in the background if this task is cancelled."""
        events = self._client._events
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        started = Started(self._call, lambda: in_loop(loop, _settle, future))

        def begin(tag: int) -> None:
            with self._mutex:
                lock = self._handle()
                self._cause = Cause(lib.hf_lock_cause(lock))
                code = lib.hf_release_start(lock, tag, ffi.addressof(self._call, "err"))
                if code < 0:
                    raise self._fail(code)
                self._call.lock = ffi.NULL
                self._end("released")

        events.attach(loop)
        events.start(events.new_tag(), started, begin)
        await future
        if started.error is not None:
            if isinstance(started.error, Stale) and self._cause == Cause.NONE:
                self._cause = Cause.GONE
            raise started.error

    async def renew(self) -> None:
        """Renews the lease now; needed only with by_hand=True."""
        await asyncio.get_running_loop().run_in_executor(None, self._renew)

    async def detach(self) -> str:
        """Ends this handle, but leaves the lock in the store; returns the ticket."""
        return await asyncio.get_running_loop().run_in_executor(None, self._detach)


def in_loop(loop: asyncio.AbstractEventLoop, function: Callable[..., None], *args: Any) -> None:
    """Calls it in that loop: at once if this is the loop's thread. Nothing if the loop has ended."""
    try:
        if asyncio._get_running_loop() is loop:
            function(*args)
        else:
            loop.call_soon_threadsafe(function, *args)
    except RuntimeError:
        if not loop.is_closed():
            raise


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


async def acquire_started(held: AsyncHeld, begin: Callable[[int], None]) -> None:
    client, loop = held._client, held._loop
    events = client._events
    events.attach(loop)
    future: asyncio.Future[None] = loop.create_future()
    started = Started(held._call, lambda: in_loop(loop, _settle, future))
    tag = held._tag = events.new_tag()
    events.watch(tag, held)
    events.start(tag, started, begin)
    try:
        await future
    except GeneratorExit:  # the coroutine is thrown away
        events.abandon(tag, started)
        raise
    except BaseException:
        await _withdraw(held, started, tag)
        raise
    if started.error is not None:
        raise started.error
    if client._closing:
        raise Closed(f"acquire {held.name!r}: the client was closed during the call")


async def _withdraw(held: AsyncHeld, started: Started, tag: int) -> None:
    """Waits until nothing is left of the bid in the store, or until the task is cancelled once more."""
    events, loop = held._client._events, held._loop
    try:
        if not started.done:
            future: asyncio.Future[None] = loop.create_future()
            started.tell = lambda: in_loop(loop, _settle, future)
            events.stop(tag)
            if not started.done:
                await future
    finally:
        if not started.done:
            events.abandon(tag, started)
        held._how = "cancelled"
    if held._call.lock:  # it was granted after all
        try:
            await held.release()
        except Error:
            pass  # the store's answer to somebody who has left
