"""Runs a function once across the fleet: a job of a scheduler, a Celery task, a Django command that every host starts.

    @once("nightly/report", url="redis://db/0", at_least=600)
    def report(): ...

Whoever comes first runs it; while it runs, everybody else's call returns `otherwise` at once. Coroutine functions too.

`at_least`: hosts do not start in the same second. The lock stays closed for this many seconds from the start, also if the function
is quicker (between one and two times as long, since the lease is left to end: stores without "detach" raise `Unsupported`).
`url` or `client`; a URL is opened on the first call in each process, so that workers may be forked after the import. Other
arguments are those of `Client.lock`. What the function raises comes out, and the lock opens."""

from __future__ import annotations

import functools
import inspect
import os
import threading
import time
from typing import Any, Callable, TypeVar, cast

from ._client import Client
from ._codes import Busy, Capability, Unsupported
from ._held import HeldBase

F = TypeVar("F", bound=Callable[..., Any])

_clients: dict[tuple[int, str | None], Client] = {}
_mutex = threading.Lock()
os.register_at_fork(before=_mutex.acquire, after_in_parent=_mutex.release, after_in_child=_mutex.release)


def _client_of(url: str | None) -> Client:
    """One for each process and URL; it is closed at the exit of the process."""
    with _mutex:
        key = (os.getpid(), url)
        if key not in _clients:
            _clients[key] = Client(url)
        return _clients[key]


def once(
    name: str | bytes, *, url: str | None = None, client: Client | None = None, at_least: float = 0,
    otherwise: Any = None, **terms: Any,
) -> Callable[[F], F]:
    """See the module."""
    if at_least:
        terms.setdefault("ttl", at_least)

    def lock() -> Any:
        ours = client or _client_of(url)
        if at_least and Capability.DETACH not in ours.capabilities:
            raise Unsupported("at_least: this store has no detach")
        return ours.lock(name, **{**terms, "timeout": 0})

    def stays_closed(held: HeldBase, began: float) -> bool:
        return bool(at_least) and time.monotonic() - began < at_least and not held.ended

    def decorate(function: F) -> F:
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def run_async(*args: Any, **kwargs: Any) -> Any:
                began = time.monotonic()
                try:
                    held = await lock().acquire_async()
                except Busy:
                    return otherwise
                async with held:
                    result = await function(*args, **kwargs)
                    if stays_closed(held, began):
                        await held.detach()
                    return result

            return cast(F, run_async)

        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            began = time.monotonic()
            held = lock().try_acquire()
            if held is None:
                return otherwise
            with held:
                result = function(*args, **kwargs)
                if stays_closed(held, began):
                    held.detach()
                return result

        return cast(F, run)

    return decorate
