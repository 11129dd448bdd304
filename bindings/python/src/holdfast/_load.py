"""Loads the library, or says in one sentence why it cannot be used."""

from __future__ import annotations

from typing import Any

from ._codes import HEADER_VERSION

try:
    from ._native import ffi as ffi, lib as lib
except ImportError as error:
    raise ImportError(
        f"holdfast: libholdfast cannot be loaded ({error}): install the library (libholdfast0), or name its directory"
        " in LD_LIBRARY_PATH") from error


def _check_version() -> str:
    version: str = ffi.string(lib.hf_version()).decode()
    needed = HEADER_VERSION.split(".")[:2]
    if version.split(".")[:2] != needed:
        raise ImportError(
            f"holdfast: this package needs libholdfast {'.'.join(needed)}, but {version} is installed: install the other"
            " version of one of them")
    return version


version: str = _check_version()


@ffi.def_extern()  # type: ignore[untyped-decorator]
def hfpy_finding(level: int, clause: Any, text: Any, arg: Any) -> None:
    ffi.from_handle(arg)(level, clause, text)


@ffi.def_extern()  # type: ignore[untyped-decorator]
def hfpy_store(info: Any, arg: Any) -> None:
    ffi.from_handle(arg)(info)


def text_of(chars: Any) -> str:
    """A borrowed C string as text; NULL is empty."""
    return ffi.string(chars).decode("utf-8", "surrogateescape") if chars else ""
