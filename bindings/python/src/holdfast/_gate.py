"""A check at the resource that asks no store."""

from __future__ import annotations

from ._error import from_native
from ._load import ffi, lib
from ._text import Name, c_string, to_bytes


class Gate:
    """Lets a sequencer pass if it has seen no newer one. Save its levels with the resource's data, and restore them
    before the first request."""

    def __init__(self) -> None:
        gate = ffi.new("hf_gate **")
        code = lib.hf_gate_new(gate)
        if code < 0:
            raise from_native(code, None, ffi.string)
        self._gate = ffi.gc(gate[0], lib.hf_gate_free)

    def pass_(self, sequencer: str) -> None:
        """Raises `Stale` if it has seen a newer one, `Invalid` if this is none, `Unsupported` for a grant with a limit."""
        err = ffi.new("hf_error *")
        code = lib.hf_gate_pass(self._gate, c_string(sequencer, "a sequencer"), err)
        if code < 0:
            raise from_native(code, err, ffi.string)

    def levels(self, name: Name) -> tuple[int, int] | None:
        """The newest exclusive token of this name, and the newest of all; None if none has passed yet."""
        text = to_bytes(name)
        exclusive, highest = ffi.new("uint64_t *"), ffi.new("uint64_t *")
        code = lib.hf_gate_levels(self._gate, text, len(text), exclusive, highest)
        if code == -5:
            return None
        if code < 0:
            raise from_native(code, None, ffi.string)
        return int(exclusive[0]), int(highest[0])

    def restore(self, name: Name, exclusive: int, highest: int) -> None:
        """Raises the levels of this name; never lowers them."""
        text = to_bytes(name)
        code = lib.hf_gate_restore(self._gate, text, len(text), exclusive, highest)
        if code < 0:
            raise from_native(code, None, ffi.string)
