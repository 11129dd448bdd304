"""A driver for OpenStack's tooz: the locks of any store of holdfast.

    coordinator = tooz.coordination.get_coordinator("holdfast+redis://db/0", b"host-1")

The URL is holdfast's own, behind "holdfast+"; "holdfast://" alone is the default store. A driver for locks only: groups, leaders and
watchers raise tooz.NotImplemented."""

from __future__ import annotations

import contextlib
import itertools
from typing import Any, Iterator

import tooz
from tooz import coordination, locking, utils

import holdfast

_owners = itertools.count(2**61)  # each acquire is its own: that is what tooz's locks are


@contextlib.contextmanager
def _as_tooz() -> Iterator[None]:
    try:
        yield
    except holdfast.Unsupported as error:
        raise tooz.NotImplemented(str(error)) from error
    except holdfast.Unavailable as error:
        utils.raise_with_cause(coordination.ToozConnectionError, str(error), cause=error)
    except holdfast.Error as error:
        utils.raise_with_cause(tooz.ToozError, str(error), cause=error)


class HoldfastLock(locking.Lock):  # type: ignore[misc, unused-ignore]
    """A lock that its holder, `release()` and `break_()` end; its lease is renewed in the background."""

    def __init__(self, name: bytes, client: holdfast.Client) -> None:
        super().__init__(name)
        self._client = client
        self._held: list[holdfast.Held] = []

    @property
    def acquired(self) -> bool:
        return bool(self._held)

    def acquire(self, blocking: bool = True, shared: bool = False, timeout: float | None = None) -> bool:
        blocking, timeout = utils.convert_blocking(blocking, timeout)
        lock = self._client.lock(self.name, shared=shared, owner=next(_owners), timeout=timeout if blocking else 0)
        with _as_tooz():
            try:
                self._held.append(lock.acquire())
                return True
            except (holdfast.Busy, holdfast.Timeout):
                return False

    def release(self) -> bool:
        if not self._held:
            return False
        with _as_tooz():
            try:
                self._held.pop().release()
                return True
            except holdfast.Stale:
                return False

    def break_(self) -> bool:
        broken = False
        with _as_tooz():
            for entry in self._client.inspect(name=self.name):
                if entry.place == holdfast.Place.INSIDE:
                    with contextlib.suppress(holdfast.NotFound):
                        self._client.break_(self.name, entry.ticket, now=True)
                        broken = True
        return broken

    def heartbeat(self) -> bool:
        return self.is_still_owner()

    def is_still_owner(self) -> bool:
        return bool(self._held) and all(not held.lost for held in self._held)


class HoldfastDriver(coordination.CoordinationDriver):  # type: ignore[misc, unused-ignore]
    CHARACTERISTICS = (
        coordination.Characteristics.DISTRIBUTED_ACROSS_THREADS,
        coordination.Characteristics.DISTRIBUTED_ACROSS_PROCESSES,
        coordination.Characteristics.DISTRIBUTED_ACROSS_HOSTS,
        coordination.Characteristics.CAUSAL,
    )

    def __init__(self, member_id: bytes, parsed_url: Any, options: Any) -> None:
        super().__init__(member_id, parsed_url, options)
        self._url: str | None = parsed_url.geturl().removeprefix("holdfast+")
        if parsed_url.scheme == "holdfast":
            self._url = None
        self._client: holdfast.Client | None = None

    def _start(self) -> None:
        with _as_tooz():
            self._client = holdfast.open(self._url, program=self._member_id.decode("utf-8", "replace"))

    def _stop(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def get_lock(self, name: bytes) -> HoldfastLock:
        if self._client is None:
            raise tooz.ToozError("the coordinator is not started")
        return HoldfastLock(name, self._client)
