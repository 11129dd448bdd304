"""The description of a lock: what to ask for. It holds nothing; each acquire gives a handle of its own."""

from __future__ import annotations

import asyncio
import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ._aio import AsyncHeld, acquire_started, owner_of_task
from ._codes import Busy, Code, Invalid, Mode, Place, Unavailable, Unknown
from ._events import Started
from ._held import Cancel, Held
from ._load import ffi, lib
from ._text import Name, Seconds, c_string, to_bytes, to_ms, to_text

if TYPE_CHECKING:
    from ._client import Client
    from ._mutex import Mutex

_UNTIL_SAID = object()  # the timeout of the description


class Lock:
    """Made by `Client.lock()`. Use it in `with` or `async with`, again and again and in many threads and tasks at once;
    or call `acquire()`, `acquire_async()`."""

    def __init__(
        self, client: Client, name: Name, *, shared: bool = False, limit: int = 0, ttl: Seconds | None = None,
        timeout: Seconds | None = None, lock_delay: Seconds = 0, max_hold: Seconds = 0, reentrant: bool = False,
        owner: int = 0, by_hand: bool = False, confirmed: bool = False, note: str = "", patience: Seconds | None = None,
    ) -> None:
        self._client = client
        self._name = to_bytes(name)
        self._timeout_ms = -1 if timeout is None else to_ms(timeout, "the timeout")
        self._options, self._note = fill_options(
            shared=shared, limit=limit, ttl=ttl, lock_delay=lock_delay, max_hold=max_hold, reentrant=reentrant, owner=owner,
            by_hand=by_hand, confirmed=confirmed, note=note, patience=patience)
        self._inside: dict[Any, list[Any]] = {}  # by thread or task: what `with` has to give back

    def __repr__(self) -> str:
        return f"<holdfast.Lock {self.name!r}>"

    @property
    def client(self) -> Client:
        return self._client

    @property
    def name(self) -> str:
        return to_text(self._name)

    # In a thread.
    def acquire(self, *, timeout: Any = _UNTIL_SAID, cancel: Cancel | None = None) -> Held:
        """Takes the lock. `timeout`: seconds, 0 not to wait, None to wait for ever; without it that of the description.

        Raises `Busy` (timeout 0), `Timeout`, `Cancelled`, or what the store cannot do. In the main thread signals
        interrupt the wait: Ctrl-C raises KeyboardInterrupt, and nothing is left in the store."""
        wait_ms = self._timeout_ms if timeout is _UNTIL_SAID else -1 if timeout is None else to_ms(timeout, "the timeout")
        client = self._client
        if client._dropped:
            client._events.pump()
        options = self._options
        if options.reentrant and not options.owner:
            options = copy_options(options)
            options.owner = client._owner_of_thread()
        call = ffi.new("hfpy_call *")
        held = Held(client, self._name, call)
        if wait_ms == 0 or cancel is not None or threading.get_ident() == client._main:
            began = time.monotonic()
            # Most locks are free: then this is one round trip on this thread, and no event.
            if cancel is None or not cancel.fired:
                code = self._ask(call, options)
                if code == Code.OK:
                    return held
                if wait_ms == 0 or code not in (Busy.code, Unknown.code, Unavailable.code):
                    raise client._failed(code, call.err)
            if wait_ms > 0:
                wait_ms = max(1, wait_ms - int((time.monotonic() - began) * 1000))
            self._wait(call, options, wait_ms, cancel)
        else:
            self._block(call, options, wait_ms)
        return held

    def _ask(self, call: Any, options: Any) -> int:
        return int(lib.hfpy_acquire(self._client._native, self._name, len(self._name), options, 0, call))

    def _block(self, call: Any, options: Any, wait_ms: int) -> None:
        """The whole wait in the library, where no signal can come; close() ends it."""
        options = copy_options(options)
        options.wait_ms = wait_ms
        code = lib.hfpy_acquire(self._client._native, self._name, len(self._name), options, 1, call)
        if code < 0:
            raise self._client._failed(code, call.err)

    def _wait(self, call: Any, options: Any, wait_ms: int, cancel: Cancel | None) -> None:
        client = self._client
        options = copy_options(options)
        options.wait_ms = wait_ms
        if not options.owner:
            options.owner = client._owner_of_thread()
        client._events.wait(Started(call, lambda: None), lambda tag: self._start(call, options, tag), cancel)

    def _start(self, call: Any, options: Any, tag: int) -> None:
        code = lib.hfpy_start(self._client._native, self._name, len(self._name), options, tag, call)
        if code < 0:
            raise self._client._failed(code, call.err)

    def try_acquire(self) -> Held | None:
        """Without waiting; None if somebody else holds it, or waits for it."""
        try:
            return self.acquire(timeout=0)
        except Busy:
            return None

    def locked(self) -> bool:
        """Whether anybody holds it, at the moment of the answer."""
        return any(entry.place != Place.WAITING for entry in self._client.inspect(name=self._name))

    def as_lock(self) -> Mutex:
        """The same as an object with the methods of threading.Lock."""
        from ._mutex import Mutex

        return Mutex(self)

    def __enter__(self) -> Held:
        held = self.acquire()
        self._inside.setdefault(threading.get_ident(), []).append(held)
        return held

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        held: Held = self._pop(threading.get_ident())
        held.__exit__(kind, error, trace)

    # In a coroutine.
    async def acquire_async(self, *, timeout: Any = _UNTIL_SAID) -> AsyncHeld:
        """Takes the lock without blocking the event loop. If the task is cancelled, nothing is left in the store when
        CancelledError comes out (cancel it again not to wait for that)."""
        options = copy_options(self._options)
        options.wait_ms = (
            self._timeout_ms if timeout is _UNTIL_SAID else -1 if timeout is None else to_ms(timeout, "the timeout"))
        if not options.owner:
            options.owner = owner_of_task()
        call = ffi.new("hfpy_call *")
        held = AsyncHeld(self._client, self._name, call)
        await acquire_started(held, lambda tag: self._start(call, options, tag))
        return held

    async def __aenter__(self) -> AsyncHeld:
        held = await self.acquire_async()
        self._inside.setdefault(asyncio.current_task(), []).append(held)
        return await held.__aenter__()

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        held: AsyncHeld = self._pop(asyncio.current_task())
        await held.__aexit__(kind, error, trace)

    def _pop(self, key: Any) -> Any:
        """What this thread or task has entered; or the only one that is entered, if it ends elsewhere (some test
        frameworks end a fixture in another task)."""
        stack = self._inside.get(key)
        if stack is None and len(self._inside) == 1:
            key, stack = next(iter(self._inside.items()))
        if not stack:
            raise RuntimeError(f"{self!r}: this thread or task did not enter it")
        held = stack.pop()
        if not stack:
            self._inside.pop(key, None)
        return held


def copy_options(options: Any) -> Any:
    return ffi.new("hf_options *", options[0])


def fill_options(
    *, shared: bool = False, limit: int = 0, ttl: Seconds | None = None, lock_delay: Seconds = 0, max_hold: Seconds = 0,
    reentrant: bool = False, owner: int = 0, by_hand: bool = False, confirmed: bool = False, note: str = "",
    patience: Seconds | None = None,
) -> tuple[Any, Any]:
    """hf_options for an acquire that does not wait, and what must live as long. What the library checks is left to it."""
    options = ffi.new("hf_options *")
    options.size = ffi.sizeof("hf_options")
    options.mode = Mode.SHARED if shared or limit else Mode.EXCLUSIVE
    options.reentrant, options.by_hand, options.confirmed = bool(reentrant), bool(by_hand), bool(confirmed)
    if not 0 <= limit < 2**32:
        raise Invalid("the limit must be from 1 to 4294967295, or 0 for none")
    if not 0 <= owner < 2**63:
        raise Invalid("the owner must be a number below 2^63")
    options.limit, options.owner = limit, owner
    if ttl is not None:
        options.ttl_ms = to_ms(ttl, "the ttl") or 1  # 0 would be the default's; 1 is refused with the limits
    options.lock_delay_ms = to_ms(lock_delay, "the lock-delay")
    options.max_hold_ms = to_ms(max_hold, "max_hold")
    options.patience_ms = 0 if patience is None else to_ms(patience, "the patience")
    text = ffi.new("char[]", c_string(note, "the note")) if note else None
    if text is not None:
        options.note = text
    return options, text
