"""Compiles the module _native (cffi, API mode, stable ABI): the declarations are those of holdfast.h, as the
compiler's preprocessor gives them, so they cannot differ from the library that is linked.

The library is found by pkg-config, or where HOLDFAST_CFLAGS and HOLDFAST_LIBS say, which may name a static one."""

import os
import shlex
import subprocess
import tempfile

from cffi import FFI

HERE = os.path.dirname(os.path.abspath(__file__))
CALLBACKS = """
extern "Python" void hfpy_finding(int, const char *, const char *, void *);
extern "Python" void hfpy_store(const hf_store_info *, void *);
"""


def words(variable, question):
    if variable in os.environ:
        return shlex.split(os.environ[variable])
    try:
        found = subprocess.run(["pkg-config", question, "holdfast"], stdout=subprocess.PIPE, check=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        raise SystemExit("holdfast: pkg-config does not find libholdfast: install it with its header, or set PKG_CONFIG_PATH"
                         " (or HOLDFAST_CFLAGS and HOLDFAST_LIBS)") from None
    return shlex.split(found.stdout)


def declarations(cflags):
    """The header without comments and macros. The standard headers are empty here, since cffi knows their types."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("stddef.h", "stdint.h"):
            open(os.path.join(folder, name), "w", encoding="utf-8").close()
        text = subprocess.run(
            [*shlex.split(os.environ.get("CC", "cc")), "-E", "-P", "-U__GNUC__", "-I" + folder,
             *(flag for flag in cflags if flag.startswith("-I")), "-x", "c", "-"],
            input="#include <holdfast.h>\n", stdout=subprocess.PIPE, check=True, text=True).stdout
    return text


def source(name):
    with open(os.path.join(HERE, "src", name), encoding="utf-8") as file:
        return file.read()


cflags, libs = words("HOLDFAST_CFLAGS", "--cflags"), words("HOLDFAST_LIBS", "--libs")
ffi = FFI()
ffi.cdef(declarations(cflags) + source("shim.cdef") + CALLBACKS)
ffi.set_source(
    "holdfast._native", "#include <holdfast.h>\n" + source("shim.c"), py_limited_api=True,
    extra_compile_args=cflags, extra_link_args=libs)

if __name__ == "__main__":
    ffi.compile(verbose=True)
