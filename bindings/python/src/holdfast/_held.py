"""A lock that was obtained."""

from __future__ import annotations

import os
import select
import threading
import warnings
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ._codes import (
    CAUSE_TEXT, SEQUENCER_MAX, Cause, Closed, Code, Forked, Lost, Stale, State)
from ._error import Error, from_native
from ._load import ffi, lib, text_of
from ._text import Seconds, to_ms, to_seconds, to_text

if TYPE_CHECKING:
    from ._client import Client


class Cancel:
    """Ends waits from another thread: pass it to `Lock.acquire()`, and call `fire()`. It stays fired."""

    def __init__(self) -> None:
        self.fired = False
        self._mutex = threading.RLock()
        self._wakes: set[int] = set()

    def fire(self) -> None:
        with self._mutex:
            self.fired = True
            for wake in self._wakes:
                os.eventfd_write(wake, 1)

    def _add(self, wake: int) -> None:
        with self._mutex:
            self._wakes.add(wake)

    def _remove(self, wake: int) -> None:
        with self._mutex:
            self._wakes.discard(wake)


class Loss:
    """Tells that a lock was lost, as threading.Event tells: `is_set()`, `wait()`. It has a `fileno()` for selectors,
    which is readable when the lock was lost, or given back."""

    def __init__(self, held: HeldBase) -> None:
        self._held = held

    def is_set(self) -> bool:
        return self._held._is_lost()

    __bool__ = is_set

    @property
    def cause(self) -> Cause:
        """Why; `Cause.NONE` if it is not lost."""
        return self._held.cause

    def fileno(self) -> int:
        return self._held._lost_fd()

    def wait(self, timeout: Seconds | None = None) -> bool:
        """Waits until the lock is lost or given back; True if it is lost."""
        if not self.is_set() and not self._held.ended:
            poll = select.poll()
            poll.register(self.fileno(), select.POLLIN)
            ms = -1 if timeout is None else to_ms(timeout, "the timeout")
            poll.poll(ms if 0 <= ms < 2**31 else None)
        return self.is_set()


class HeldBase:
    """What a lock that was obtained can be asked, in a thread and in a coroutine alike. Nothing here touches the network.

    The handle is freed by release() while no other thread uses it: the mutex sees to that."""

    def __init__(self, client: Client, name: bytes, call: Any) -> None:
        self._client = client
        self._name = name
        self._call = call  # its field `lock` is the handle; NULL before the acquire and after the end
        self._mutex = threading.RLock()
        self._how = ""  # it ended: released, detached
        self._cause = Cause.NONE
        self._fd = -1
        self._tag = 0

    def __del__(self, *, lib: Any = lib, null: Any = ffi.NULL, close: Any = os.close, warn: Any = warnings.warn) -> None:
        """Never waits: not for the network, and not for a mutex, which this thread may have."""
        if getattr(self, "_fd", -1) >= 0:
            close(self._fd)
        call = getattr(self, "_call", None)
        client = getattr(self, "_client", None)
        if call is None or not call.lock or client is None or client._forked:
            return
        lock, call.lock = call.lock, null
        if self._tag:
            client._events.unwatch(self._tag)
        held = not client._closing and lib.hf_lock_state(lock) != 2
        lib.hf_release_start(lock, 0, null)
        client._dropped = True  # its event is to be taken
        if held:
            warn(f"the lock {self.name!r} was dropped without a release", ResourceWarning, source=self)

    def __repr__(self) -> str:
        state = self._how or self.state.name.lower().replace("_", " ")
        return f"<{type(self).__module__}.{type(self).__name__} {self.name!r} {state}>"

    @property
    def name(self) -> str:
        return to_text(self._name)

    @property
    def name_bytes(self) -> bytes:
        return self._name

    @property
    def ended(self) -> bool:
        """It was released or detached."""
        return not self._call.lock

    # The handle, for those below. Mutex held.
    def _handle(self) -> Any:
        """Not forked, not ended, not closed."""
        if self._client._forked:
            raise Forked(f"lock {self.name!r}: this handle belongs to the parent process")
        lock = self._call.lock
        if not lock:
            raise Stale(f"lock {self.name!r}: it was {self._how or 'released'}")
        if self._client._closing:
            raise Closed(f"lock {self.name!r}: the client is closed")
        return lock

    def _live(self) -> Any:
        lock = self._handle()
        if lib.hf_lock_state(lock) == State.LOST:
            raise self._loss()
        return lock

    def _loss(self) -> Lost:
        cause = self.cause
        return Lost(f"lock {self.name!r}: it was lost: {CAUSE_TEXT[cause]}")

    def _is_lost(self) -> bool:
        return self.cause != Cause.NONE

    def _fail(self, code: int) -> Error:
        return from_native(code, self._call.err, ffi.string)

    # Questions.
    @property
    def state(self) -> State:
        """LOST also once it was given back."""
        with self._mutex:
            if self._client._forked or not self._call.lock:
                return State.LOST
            return State(lib.hf_lock_state(self._call.lock))

    @property
    def cause(self) -> Cause:
        """Why it was lost; `Cause.NONE` if it was not."""
        if self._client._forked:
            return Cause.FORKED
        with self._mutex:
            if self._call.lock:
                self._cause = Cause(lib.hf_lock_cause(self._call.lock))
            return self._cause

    @property
    def remaining(self) -> float:
        """For how many seconds it stays ours without a renewal, with a margin; inf if it never expires."""
        if self._client._forked:
            return 0.0
        with self._mutex:
            return to_seconds(lib.hf_lock_remaining_ms(self._call.lock)) if self._call.lock else 0.0

    @property
    def token(self) -> int:
        """The fencing token: larger than that of every earlier grant of this name. Raises `Lost` once it is lost."""
        number = ffi.new("uint64_t *")
        with self._mutex:
            code = lib.hf_lock_generation(self._live(), number)
        if code < 0:
            raise from_native(code, None, ffi.string)
        return int(number[0])

    @property
    def sequencer(self) -> str:
        """A proof to show to a resource (`Client.check`, `Gate.pass_`). Raises `Lost` once it is lost."""
        text = ffi.new("char[]", SEQUENCER_MAX)
        with self._mutex:
            code = lib.hf_lock_sequencer(self._live(), text, SEQUENCER_MAX)
        if code < 0:
            raise from_native(code, None, ffi.string)
        return text_of(text)

    @property
    def ticket(self) -> str:
        """Who knows it may adopt or break this lock: keep it to yourself."""
        with self._mutex:
            return text_of(lib.hf_lock_ticket(self._handle()))

    @property
    def trouble(self) -> Error | None:
        """Why the last renewal failed; None if it did not."""
        err = ffi.new("hf_error *")
        with self._mutex:
            code = lib.hf_lock_error(self._handle(), err)
        return from_native(code, err, ffi.string) if code < 0 else None

    def _lost_fd(self) -> int:
        """One of our own: the library closes its own with the handle."""
        with self._mutex:
            if self._fd < 0:
                fd = lib.hf_lock_fd(self._handle())
                if fd < 0:
                    raise from_native(fd, None, ffi.string)
                self._fd = os.dup(fd)
            return self._fd

    # What blocks for a round trip.
    def _renew(self) -> None:
        with self._mutex:
            self._live()
            code = lib.hfpy_renew(self._call)
            if code < 0:
                raise self._loss() if code == Code.LOST else self._fail(code)

    def _detach(self) -> str:
        with self._mutex:
            ticket = text_of(lib.hf_lock_ticket(self._live()))
            code = lib.hfpy_detach(self._call)
            if code < 0:
                raise self._fail(code)
            self._end("detached")
        return ticket

    def _end(self, how: str) -> None:
        self._how = how
        if self._fd >= 0:
            os.eventfd_write(self._fd, 1)  # nobody else has it any more but those who wait for a loss
        if self._tag:
            self._client._events.unwatch(self._tag)


class Held(HeldBase):
    """A lock that a thread obtained. Use it in a `with` statement, or call `release()`."""

    @property
    def lost(self) -> Loss:
        """Tells of a loss, as an event."""
        return Loss(self)

    def release(self) -> None:
        """Gives it back. Raises `Stale` if it was no longer ours. Whatever it raises but `Forked`, the handle is ended."""
        call = self._call
        with self._mutex:
            if self._client._forked or not call.lock:
                self._handle()
            if self._client._closing:
                lib.hfpy_release(call)  # frees it, and nothing else
                self._end("closed with its client")
                raise Closed(f"lock {self.name!r}: the client is closed")
            code = lib.hfpy_release(call)
            if call.lock:
                raise self._fail(code)  # forked, after all
            self._cause = Cause(call.number)  # as it was just before
            if code == Code.STALE and self._cause == Cause.NONE:
                self._cause = Cause.GONE
            self._end("released")
            if code < 0:
                raise self._fail(code)

    def renew(self) -> None:
        """Renews the lease now; needed only with by_hand=True."""
        self._renew()

    def detach(self) -> str:
        """Ends this handle, but leaves the lock in the store; returns the ticket, by which `Client.adopt` takes it over."""
        return self._detach()

    def __enter__(self) -> Held:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._client._forked or not self._call.lock:
            return  # the body gave it back itself, or it is the parent's
        try:
            self.release()
        except Stale as stale:
            if kind is None:
                raise self._loss() from stale
        except Error:
            if kind is None:
                raise
