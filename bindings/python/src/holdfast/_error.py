"""The base of all exceptions, and how one is made from what the library says."""

from __future__ import annotations

import math
from typing import Any


class Error(Exception):
    """A call failed; the text is one sentence. Catch a subclass for one reason, this for all.

    `code` and `exit_status` are those of the class, None here. `retriable`: the same call may succeed later.
    `may_hold`: of `Unknown`, for how many seconds the store may hold the lock for us (inf: for ever).
    `store_code`: the store's own number, 0 if there is none."""

    code: int | None = None
    exit_status: int = 70

    def __init__(self, text: str = "", *, retriable: bool = False, may_hold: float = 0.0, store_code: int = 0) -> None:
        super().__init__(text or (type(self).__doc__ or "").rstrip("."))
        self.retriable = retriable
        self.may_hold = may_hold
        self.store_code = store_code

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self.args, self.__dict__


def from_native(code: int, err: Any, string: Any) -> Error:
    """The exception for what a call returned; `err` is its hf_error, `string` reads a char array."""
    from ._codes import CODE_TEXT, ERRORS, Code

    kind = ERRORS.get(code, Error)
    text = string(err.text).decode("utf-8", "replace") if err is not None and err.code == code else ""
    if not text:
        text = CODE_TEXT[Code(code)] if code in ERRORS else f"the library returned {code}, which this version does not know"
    if err is None or err.code != code:
        return kind(text)
    may_hold = math.inf if err.may_hold_ms < 0 else err.may_hold_ms / 1000
    return kind(text, retriable=bool(err.retriable), may_hold=may_hold, store_code=err.store_code)
