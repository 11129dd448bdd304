#!/usr/bin/env python3
"""Makes a release by scripts/release.py, for this machine's platform, and uses each of its packages as a stranger would.

    check-release.py DIRECTORY          where everything is made; it is emptied first

Prints "ok - NAME" (with "# SKIP why" if it was not tried) or "not ok - NAME"; the status is 1 if something is not ok."""

import filecmp
import glob
import os
import re
import shutil
import subprocess
import sys

import portable
from portable import TOP

failed = False
PROGRAMS = os.path.join(TOP, "tests", "release")
# What is used as a stranger would must not find what this tree has built.
BARE = {name: value for name, value in os.environ.items()
        if name not in ("LD_LIBRARY_PATH", "PKG_CONFIG_PATH", "HOLDFAST_MODULES", "HOLDFAST_URL", "PYTHONPATH")}
# Rules of other systems than Fedora, whose names these packages follow; a release has no address yet.
RPM_TOLERATED = ("no-buildroot-tag", "lib-package-without-%mklibname", "invalid-url")
# Other versions of Python than this machine's, in bare systems of Debian.
PYTHONS = (("trixie", "3.13"), ("sid", "3.14"))


class Skip(Exception):
    pass


def run(*command, **more):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", check=False, **{"env": BARE, **more})
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}\n{done.stdout}")
    return done.stdout


def check(name, function, *arguments):
    global failed
    try:
        function(*arguments)
        print(f"ok - {name}", flush=True)
    except Skip as reason:
        print(f"ok - {name} # SKIP {reason}", flush=True)
    except (AssertionError, RuntimeError, OSError) as error:
        failed = True
        print(f"{str(error)[-3000:]}\nnot ok - {name}", flush=True)


class Releases:
    """What was made, and room to try it in."""

    def __init__(self, folder):
        self.folder = os.path.join(folder, "release")
        self.scratch = folder

    def one(self, pattern):
        found = glob.glob(os.path.join(self.folder, pattern))
        if not found:
            raise Skip("it was not made")
        assert len(found) == 1, f"{pattern}: {found}"
        return found[0]

    def room(self, name):
        path = os.path.join(self.scratch, name)
        shutil.rmtree(path, ignore_errors=True)
        os.makedirs(path)
        return path


def make(releases, *parts, folder=None):
    """scripts/release.py has test points of its own."""
    global failed
    done = subprocess.run([sys.executable, os.path.join(TOP, "scripts", "release.py"), "--here", folder or releases.folder, *parts],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    print(re.sub(r"^skipped - (.*)$", r"ok - \1 # SKIP", done.stdout, flags=re.M), end="", flush=True)
    failed |= done.returncode != 0


def sums_agree(releases):
    run("sha256sum", "--check", "--quiet", "SHA256SUMS", cwd=releases.folder)


def source_is_reproducible(releases):
    again = releases.room("again")
    make(releases, "source", folder=again)
    tar = releases.one("holdfast-*.tar.gz")
    assert filecmp.cmp(tar, os.path.join(again, os.path.basename(tar)), shallow=False), "two runs differ"


def library_is_reproducible(releases):
    """Compiled again elsewhere, it has the same bytes."""
    first = os.path.join(releases.folder, ".work", portable.HERE.zig, "libholdfast.so.0")
    if not os.path.exists(first):
        raise Skip("it was not made")
    again = releases.room("again")
    os.symlink(os.path.join(releases.folder, ".work", "tools"), os.path.join(again, "tools"))
    assert filecmp.cmp(first, portable.build(again, portable.HERE).shared, shallow=False), "two runs differ"


def wheel_runs(releases):
    wheel, room = releases.one("holdfast-*-abi3-manylinux*.whl"), releases.room("python")
    run(sys.executable, "-m", "venv", room)
    run(room + "/bin/python", "-m", "pip", "install", "-q", wheel)
    print(run(room + "/bin/python", PROGRAMS + "/use.py", room), end="")


def wheel_runs_in(releases, system, version):
    """On another Python, in a bare system of Debian; what it needs beside the wheel is fetched for that version."""
    wheel = releases.one("holdfast-*-abi3-manylinux*.whl")
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        raise Skip("a bare system needs root and debootstrap")
    root = releases.room(system)
    try:
        site = run("apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages").split("\n", maxsplit=1)[0]
        run("debootstrap", "--variant=minbase", "--include=python3", system, root, site)
        run(sys.executable, "-m", "pip", "install", "-q", "--target", root + "/packages", "--only-binary=:all:", "--python-version", version,
            "--platform", portable.HERE.wheel, "--platform", portable.HERE.wheel.replace("_2_28_", "2014_"), wheel)
    except RuntimeError as error:
        raise Skip(f"it cannot be had: {str(error).strip().splitlines()[-1]}") from None
    shutil.copy(PROGRAMS + "/use.py", root)
    said = run("chroot", root, "env", "-i", "PYTHONPATH=/packages", "python3", "/use.py", "/root")
    assert f"Python {version}" in said, said
    print(said, end="")


def npm_runs(releases):
    packages, room = [releases.one("holdfast-[0-9]*.tgz"), releases.one("holdfast-linux-*.tgz")], releases.room("node")
    with open(room + "/package.json", "w", encoding="utf-8") as file:
        file.write('{"private": true}\n')
    run("npm", "install", "--no-package-lock", "--omit=optional", "--ignore-scripts", "--offline", "--no-audit", "--no-fund", *packages, cwd=room)
    shutil.copy(PROGRAMS + "/use.cjs", room)
    print(run("node", "use.cjs", room, cwd=room), end="")


def jar_runs(releases):
    room = releases.room("java")
    jars = [releases.one("holdfast-[0-9].[0-9].[0-9].jar"), releases.one("holdfast-*-linux-*.jar")]
    jna = max(glob.glob(os.path.expanduser("~/.m2/repository/net/java/dev/jna/jna/*/jna-*.jar")), default=None)
    if jna is None:
        raise Skip("Maven has no JNA")
    path = ":".join([*jars, jna, room])
    run("javac", "-cp", path, "-d", room, PROGRAMS + "/Use.java")
    print(run("java", "-cp", path, "Use", room), end="")


def crates_run(releases):
    room = releases.room("rust")
    for crate in (releases.one("holdfast-[0-9]*.crate"), releases.one("holdfast-sys-*.crate")):
        run("tar", "-xf", crate, "-C", room)
    names = {name.rpartition("-")[0]: os.path.join(room, name) for name in os.listdir(room)}
    os.makedirs(room + "/program/src")
    shutil.copy(PROGRAMS + "/use.rs", room + "/program/src/main.rs")
    with open(room + "/program/Cargo.toml", "w", encoding="utf-8") as file:
        file.write(f"""[package]
name = "program"
version = "0.0.0"
edition = "2021"
[dependencies]
holdfast = {{ path = "{names['holdfast']}", features = ["bundled"] }}
[patch.crates-io]
holdfast-sys = {{ path = "{names['holdfast-sys']}" }}
""")
    print(run("cargo", "run", "--quiet", "--", room, cwd=room + "/program"), end="")


def go_module_runs(releases):
    room = releases.room("go")
    if shutil.which("go") is None or not os.path.exists(releases.folder + "/go"):
        raise Skip("there is no Go")
    shutil.copy(PROGRAMS + "/use.go", room + "/main.go")
    version = run(os.path.join(TOP, "scripts", "version")).strip()
    environment = {**BARE, "GOPROXY": "file://" + releases.folder + "/go", "GONOSUMDB": "*", "GOFLAGS": "-mod=mod -modcacherw",
                   "GOMODCACHE": room + "/cache"}
    run("go", "mod", "init", "user.example/program", cwd=room, env=environment)
    run("go", "get", f"holdfast.example/holdfast@v{version}", cwd=room, env=environment)
    print(run("go", "run", ".", room, cwd=room, env=environment), end="")


def rpm_is_linted(_releases):
    if shutil.which("rpmlint") is None:
        raise Skip("there is no rpmlint")
    done = subprocess.run(["rpmlint", os.path.join(TOP, "contrib", "rpm", "holdfast.spec")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)
    found = [line for line in done.stdout.splitlines() if re.search(r": [EW]: ", line) and not any(tag in line for tag in RPM_TOLERATED)]
    assert not found, "\n".join(found)


def rpm_is_built(releases):
    """By Debian's rpmbuild, which does not know Fedora's names of packages."""
    source, room = releases.one("holdfast-*.src.rpm"), releases.room("rpm")
    if shutil.which("rpmbuild") is None:
        raise Skip("there is no rpmbuild")
    run("rpmbuild", "--rebuild", "--nodeps", "--define", f"_topdir {room}", source)
    made = {os.path.basename(path).split("-0.")[0] for path in glob.glob(room + "/RPMS/*/*.rpm")}
    assert {"holdfast", "holdfast-libs", "holdfast-devel", "holdfast-store-redis"} <= made, made
    library = next(path for path in glob.glob(room + "/RPMS/*/holdfast-libs-*.rpm") if "debug" not in path)
    store = next(path for path in glob.glob(room + "/RPMS/*/holdfast-store-redis-*.rpm") if "debug" not in path)
    tie = re.search(r"holdfast\(module-abi\) = \d+", run("rpm", "-qp", "--provides", library))
    assert tie and tie[0] in run("rpm", "-qp", "--requires", store), "the module's ABI ties nothing"


def abi_is_tied(_releases):
    """Whoever raises HF__STORE_ABI raises it in the packages."""
    def number(path, pattern):
        with open(os.path.join(TOP, path), encoding="utf-8") as file:
            return re.search(pattern, file.read())[1]
    here = number("src/stores/store.h", r"define HF__STORE_ABI (\d+)")
    there = number("contrib/rpm/holdfast.spec", r"global module_abi (\d+)")
    assert here == there, f"store.h has {here}, the spec {there}"


def container_is_linted(releases):
    tool = os.path.join(releases.folder, ".work", "tools", "bin", "hadolint")
    if not os.path.exists(tool):
        raise Skip("there is no hadolint")
    run(tool, os.path.join(TOP, "contrib", "container", "Containerfile"))


def container_is_built(_releases):
    if shutil.which("podman") is None:
        raise Skip("there is no podman")
    run("podman", "build", "-t", "holdfast", "-f", "contrib/container/Containerfile", ".", cwd=TOP)
    run("podman", "run", "--rm", "holdfast", "run", "-u", "memory://x", "x", "--", "true")


def main():
    releases = Releases(os.path.abspath(sys.argv[1]))
    shutil.rmtree(releases.scratch, ignore_errors=True)
    make(releases)
    check("the sums agree", sums_agree, releases)
    check("the source tarball is the same each time", source_is_reproducible, releases)
    check("the library is the same each time", library_is_reproducible, releases)
    check("the wheel installs and runs", wheel_runs, releases)
    for system, version in PYTHONS:
        check(f"the wheel runs on Python {version}", wheel_runs_in, releases, system, version)
    check("the npm packages install without scripts and run", npm_runs, releases)
    check("the jars run without a library of the system", jar_runs, releases)
    check("the crates build and run", crates_run, releases)
    check("a Go program builds with the module of a proxy, and runs", go_module_runs, releases)
    check("the RPM's modules are tied by their ABI", abi_is_tied, releases)
    check("rpmlint finds nothing in the spec", rpm_is_linted, releases)
    check("the RPMs are built", rpm_is_built, releases)
    check("hadolint finds nothing in the Containerfile", container_is_linted, releases)
    check("the image is built", container_is_built, releases)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
