#!/usr/bin/env python3
"""Builds Debian's packages from what is committed, and uses them in a bare system.

    check-packages.py DIRECTORY         where everything is made; it is emptied first

Prints "ok - NAME" (with "# SKIP why" if it was not tried) or "not ok - NAME"; the status is 1 if something is not ok. Needs root for the bare
system, which is made by debootstrap from where this machine has its own packages."""

import glob
import os
import re
import shutil
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# What only an upload can mend: there is no bug that it would close, and no address to watch for releases.
TOLERATED = "initial-upload-closes-no-bugs,debian-watch-contains-no-sources"
failed = False


def tell(good, name, output=""):
    global failed
    failed |= not good
    if not good:
        print(output[-4000:])
    print(f"{'ok' if good else 'not ok'} - {name}", flush=True)
    return good


def run(*command, cwd=None, **more):
    done = subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace", check=False, **more)
    return done.returncode == 0, done.stdout


def read(path):
    with open(os.path.join(TOP, path), encoding="utf-8") as file:
        return file.read()


def abi_is_tied():
    """A module of another ABI is refused when it is loaded; the packages refuse it when they are installed."""
    abi = re.search(r"define HF__STORE_ABI (\d+)", read("src/stores/store.h")).group(1)
    named = set(re.findall(r"holdfast-module-abi-(\d+)", read("debian/control")))
    tell(named == {abi}, "debian/control names the ABI of the modules", f"store.h has {abi}, debian/control {named}")


def build(folder):
    version = re.search(r"version: '([^']+)'", read("meson.build")).group(1)
    name = f"holdfast-{version}"
    source = os.path.join(folder, name)
    orig = os.path.join(folder, f"holdfast_{version}.orig.tar.gz")
    good, output = run("git", "archive", "--format=tar.gz", f"--prefix={name}/", "-o", orig, "HEAD", ".", ":!debian", cwd=TOP)
    if good:
        good, output = run("tar", "-xf", orig, "-C", folder)
    if good:
        shutil.copytree(os.path.join(TOP, "debian"), os.path.join(source, "debian"))
        good, output = run("dpkg-buildpackage", "-us", "-uc", cwd=source)
    return tell(good, "the packages are built, and their tests pass", output)


def lint(folder):
    changes = glob.glob(os.path.join(folder, "*.changes"))
    good, output = run("lintian", "--pedantic", "--allow-root", "--fail-on", "error,warning,info,pedantic", "--suppress-tags", TOLERATED, *changes)
    tell(good, "lintian finds nothing that can be mended here", output)


class Bare:
    """A system that has nothing but what every Debian has."""

    def __init__(self, folder):
        self.root = os.path.join(folder, "bare")

    def make(self):
        good, site = run("apt-get", "indextargets", "--format", "$(SITE) $(RELEASE)", "Created-By: Packages")
        if not good or not site.split():
            return False, "this machine does not say where its packages come from"
        site, release = site.split("\n")[0].split()[:2]
        good, output = run("debootstrap", "--variant=minbase", release, self.root, site)
        if good:
            for part in ("sources.list", "sources.list.d", "apt.conf.d", "trusted.gpg.d"):
                there = os.path.join("/etc/apt", part)
                if os.path.exists(there):
                    run("cp", "-aT", there, self.root + there)
            run("mount", "--bind", self.root, self.root)
            run("mount", "-t", "proc", "proc", self.root + "/proc")
            good, output = self.run("apt-get", "-q", "update")
        return good, output

    def run(self, *command):
        return run("chroot", self.root, "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive",
                   "HOME=/root", "LC_ALL=C.UTF-8", *command)

    def remove(self):
        run("umount", self.root + "/proc")
        run("umount", self.root)
        shutil.rmtree(self.root, ignore_errors=True)


def install(folder, bare):
    os.makedirs(bare.root + "/packages")
    names = []
    for path in glob.glob(os.path.join(folder, "*.deb")):
        if "-dbgsym_" not in path:
            names.append(shutil.copy(path, bare.root + "/packages")[len(bare.root):])
    plain = [n for n in names if re.search(r"/(holdfast|libholdfast0|libholdfast-dev|holdfast-store-redis)_", n)]
    shutil.copytree(os.path.join(TOP, "debian", "tests"), bare.root + "/tests")
    if not tell(*flip("they install on a bare system", bare.run("apt-get", "-q", "-y", "install", "--no-install-recommends", *plain))):
        return
    good, output = bare.run("holdfast", "run", "-n", "-u", "etcd://127.0.0.1", "x", "--", "true")
    tell(not good and "holdfast-store-etcd" in output, "a store that is missing names its package", output)
    tell(*flip("the stores install", bare.run("apt-get", "-q", "-y", "install", "--no-install-recommends", *names)))
    tell(*flip("the tests' needs install", bare.run("apt-get", "-q", "-y", "install", "--no-install-recommends", "gcc", "libc6-dev",
                                                     "pkg-config", "redis-server")))
    for test in sorted(f for f in os.listdir(bare.root + "/tests") if f != "control"):
        tell(*flip(f"debian/tests/{test}", bare.run("sh", f"/tests/{test}")))
    bare.run("holdfast", "run", "x", "--", "true")
    tell(*flip("they are purged", bare.run("apt-get", "-q", "-y", "purge", "holdfast*", "libholdfast*")))
    left = [p for p in ("/var/lib/holdfast", "/usr/bin/holdfast", "/etc/holdfast") if os.path.exists(bare.root + p)]
    tell(not left, "nothing is left of them", str(left))


def flip(name, result):
    return result[0], name, result[1]


def main():
    folder = os.path.abspath(sys.argv[1])
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    abi_is_tied()
    missing = [tool for tool in ("dpkg-buildpackage", "dh", "lintian", "debootstrap") if shutil.which(tool) is None]
    if missing or os.geteuid() != 0:
        print(f"ok - packages # SKIP {'not root' if not missing else 'there is no ' + ', '.join(missing)}")
    elif build(folder):
        lint(folder)
        bare = Bare(folder)
        try:
            if tell(*flip("a bare system is made", bare.make())):
                install(folder, bare)
        finally:
            bare.remove()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
