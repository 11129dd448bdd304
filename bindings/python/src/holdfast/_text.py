"""What goes in and out: names, durations. Text is UTF-8; bytes that are none survive as in file names (PEP 383)."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Union

from ._codes import Invalid

Name = Union[str, bytes]
Seconds = Union[float, timedelta]

_LONGEST_MS = 2**62


def to_bytes(name: Name, what: str = "a name") -> bytes:
    if isinstance(name, bytes):
        return name
    if not isinstance(name, str):
        raise TypeError(f"{what} is str or bytes, not {type(name).__name__}")
    try:
        return name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise Invalid(f"{what} as text must be valid Unicode: {error.reason}") from None


def to_text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")


def c_string(text: Name, what: str) -> bytes:
    """For arguments that end at the first NUL in C: one inside would cut them short."""
    value = to_bytes(text, what)
    if b"\0" in value:
        raise Invalid(f"{what} must not contain NUL")
    return value


def to_ms(value: Seconds, what: str) -> int:
    """Rounded up, so that what is not 0 does not become 0; for ever is -1."""
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        raise TypeError(f"{what} is in seconds: a number or a timedelta, not {type(value).__name__}")
    if seconds == math.inf:
        return -1
    if not seconds >= 0:
        raise Invalid(f"{what} must not be negative" if seconds < 0 else f"{what} is not a number")
    if seconds * 1000 > _LONGEST_MS:
        raise Invalid(f"{what} is too long; math.inf means for ever")
    return math.ceil(seconds * 1000 - 1e-6)


def to_seconds(ms: int) -> float:
    """The other way; -1 and the largest number mean for ever."""
    return math.inf if ms < 0 or ms == 2**63 - 1 else ms / 1000
