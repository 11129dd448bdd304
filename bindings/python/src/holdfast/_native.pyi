# The compiled module: what cffi makes of holdfast.h has no types of its own.
from typing import Any

ffi: Any
lib: Any
