"""The methods of threading.Lock, for code that takes a lock from whoever calls it."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from ._codes import Busy, Deadlock, Timeout
from ._held import Held

if TYPE_CHECKING:
    from ._lock import Lock


class Mutex:
    """acquire(blocking, timeout) -> bool, release(), locked(), `with`: as threading.Lock has them, so that it also works
    under threading.Condition. Any thread may release. `held` is what it holds, or None."""

    def __init__(self, lock: Lock) -> None:
        self._lock = lock
        self.held: Held | None = None

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        if not blocking and timeout != -1:
            raise ValueError("can't specify a timeout for a non-blocking call")
        if timeout < 0 and timeout != -1:
            raise ValueError("timeout value must be a non-negative number")
        try:
            held = self._lock.acquire(timeout=0 if not blocking else None if timeout == -1 else timeout)
        except (Busy, Timeout):
            return False
        except Deadlock:  # it is ours already: a threading.Lock would say no, or hang
            if blocking:
                raise
            return False
        self.held = held
        return True

    def release(self) -> None:
        held, self.held = self.held, None
        if held is None:
            raise RuntimeError("release unlocked lock")
        held.release()

    def locked(self) -> bool:
        return self._lock.locked()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.release()
