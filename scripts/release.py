#!/usr/bin/env python3
"""Makes everything that a release publishes, from what is committed, in one directory, with SHA256SUMS.

    scripts/release.py [--here] DIRECTORY [PART...]     --here: only for the platform of this machine

Parts: source (a tarball, the same bytes each time), debian (the source package), rpm (the source package), wheel, npm, jar,
crates, go (what a module proxy serves), sbom (SPDX). All of them, if none is named. It prints "ok - NAME", "skipped - NAME: why" for
what has no tools here, or "not ok - NAME" and why; the status is 1 then. DIRECTORY/.work keeps what was made on the way."""

import argparse
import glob
import gzip
import hashlib
import os
import re
import shutil
import sys
import zipfile

import portable
import sbom
from portable import Missing, TOP, run

GO_MODULE = "holdfast.example/holdfast"


class Release:
    def __init__(self, folder, platforms):
        self.folder = os.path.abspath(folder)
        self.work = os.path.join(self.folder, ".work")
        self.platforms = platforms
        os.makedirs(self.work, exist_ok=True)
        self.version = run(os.path.join(TOP, "scripts", "version")).strip()
        self.seconds = int(run("git", "log", "-1", "--format=%ct", cwd=TOP))
        self.name = "holdfast-" + self.version
        self.tree = self.fresh("tree")  # only what is committed is published
        tar = os.path.join(self.work, "tree.tar")
        run("git", "archive", f"--prefix={self.name}/", "-o", tar, "HEAD", cwd=TOP)
        run("tar", "-xf", tar, "-C", self.tree)
        self.tree = os.path.join(self.tree, self.name)
        os.environ["SOURCE_DATE_EPOCH"] = str(self.seconds)
        self.libraries = {}

    def fresh(self, name):
        path = os.path.join(self.work, name)
        shutil.rmtree(path, ignore_errors=True)
        os.makedirs(path)
        return path

    def library(self, platform):
        if platform not in self.libraries:
            self.libraries[platform] = portable.build(self.work, platform)
        return self.libraries[platform]

    def compiled_for(self, platform, *symbols):
        """The environment in which other build systems compile for a platform, with the library inside."""
        cc = portable.compiler(portable.tools(self.work), platform)
        hidden = portable.only(self.work, *symbols)
        return {**os.environ, "CC": " ".join(cc), "LDSHARED": " ".join([*cc, "-shared", "-s"]),
                "CFLAGS": "-O2 -g0", "HOLDFAST_CFLAGS": "-I" + os.path.join(self.tree, "include"),
                "HOLDFAST_LIBS": " ".join([self.library(platform).static, hidden, *portable.SYSTEM_LIBRARIES])}


def need(*commands):
    for command in commands:
        if shutil.which(command) is None:
            raise Missing(f"there is no {command}")


def put_gzip(tar, path):
    """Without a name and a time in it, so that the same tree gives the same bytes."""
    with open(tar, "rb") as plain, open(path, "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        shutil.copyfileobj(plain, packed)


def make_source(release):
    put_gzip(os.path.join(release.work, "tree.tar"), os.path.join(release.folder, release.name + ".tar.gz"))


def make_debian(release):
    need("dpkg-source")
    make_source(release)
    folder = release.fresh("debian")
    orig = os.path.join(folder, f"holdfast_{release.version}.orig.tar.gz")
    tar = os.path.join(release.work, "orig.tar")
    run("git", "archive", f"--prefix={release.name}/", "-o", tar, "HEAD", ".", ":!debian", cwd=TOP)
    put_gzip(tar, orig)
    shutil.copytree(release.tree, os.path.join(folder, release.name), symlinks=True)
    run("dpkg-source", "-b", release.name, cwd=folder)
    for path in glob.glob(folder + "/holdfast_*"):
        shutil.copy(path, release.folder)


def make_rpm(release):
    need("rpmbuild")
    make_source(release)
    top = release.fresh("rpm")
    run("rpmbuild", "-bs", "--nodeps", "--define", f"_topdir {top}", "--define", f"_sourcedir {release.folder}", "--define",
        f"_srcrpmdir {release.folder}", "--define", "use_source_date_epoch_as_buildtime 1", "--define", "_buildhost holdfast",
        os.path.join(release.tree, "contrib", "rpm", "holdfast.spec"))


def python_headers(release):
    """Where this Python's headers are, also for a compiler that does not look into /usr/include by itself."""
    import sysconfig
    found = sysconfig.get_path("include")
    machines = [path for path in glob.glob("/usr/include/*-linux-gnu*") if os.path.exists(os.path.join(path, os.path.basename(found)))]
    folder = release.fresh("python-headers")
    for path in machines:  # Debian's pyconfig.h asks for the one of the machine
        os.makedirs(os.path.join(folder, os.path.basename(path)))
        os.symlink(os.path.join(path, os.path.basename(found)), os.path.join(folder, os.path.basename(path), os.path.basename(found)))
    return f"-I{found} -I{folder}"


def make_wheel(release):
    python = portable.tools(release.work)
    for platform in release.platforms:
        source = release.fresh("python")
        shutil.copytree(os.path.join(release.tree, "bindings", "python"), source, dirs_exist_ok=True)
        shutil.copy(os.path.join(release.tree, "LICENSE"), source)
        environment = release.compiled_for(platform, "PyInit__native")
        environment.update(HOLDFAST_PLATFORM=platform.wheel, CFLAGS=environment["CFLAGS"] + " " + python_headers(release))
        run(python, "-m", "pip", "wheel", "-q", "--no-build-isolation", "--no-deps", "-w", release.folder, source, env=environment)
    for wheel in glob.glob(release.folder + "/*manylinux*.whl"):
        said = run(python, "-m", "auditwheel", "show", wheel)
        if "manylinux_2_28" not in said and "manylinux_2_17" not in said:
            raise RuntimeError(said)


def make_npm(release):
    need("node", "npm")
    build = release.fresh("node")
    work = os.path.join(build, "bindings-node")
    os.makedirs(work)
    node = os.path.join(release.tree, "bindings", "node")
    for name in ("src", "package.json", "tsconfig.json"):
        path = os.path.join(node, name)
        (shutil.copytree if os.path.isdir(path) else shutil.copy)(path, os.path.join(work, name))
    try:
        run("npm", "install", "--no-package-lock", "--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund", cwd=work)
    except RuntimeError as error:
        raise Missing("npm cannot fetch TypeScript: " + str(error).strip().splitlines()[-1]) from None
    run(os.path.join("node_modules", ".bin", "tsc"), "-p", ".", cwd=work)
    for platform in release.platforms:
        run(os.path.join(node, "scripts", "pack"), build, release.folder, platform.node,
            env={**release.compiled_for(platform, "napi_*", "node_api_*"), "CFLAGS": "-O2 -g0 -s"})


def make_jar(release):
    need("mvn", "javac")
    libraries = release.fresh("jna")
    for platform in release.platforms:
        if platform.java:
            os.makedirs(os.path.join(libraries, platform.java))
            shutil.copy(release.library(platform).shared, os.path.join(libraries, platform.java, "libholdfast.so"))
    java = os.path.join(release.tree, "bindings", "java")
    words = ["-q", "-B", "-DskipTests", f"-Dholdfast.native={libraries}", "package"]
    try:
        run("mvn", "-o", *words, cwd=java)
    except RuntimeError:
        run("mvn", *words, cwd=java)
    for jar in glob.glob(java + "/*/target/*.jar"):
        if zipfile.ZipFile(jar).testzip() is None and any(not n.startswith("META-INF/") for n in zipfile.ZipFile(jar).namelist()):
            shutil.copy(jar, release.folder)
    for pom in glob.glob(java + "/*/pom.xml") + [java + "/pom.xml"]:
        with open(pom, encoding="utf-8") as file:
            name = re.search(r"(?:</parent>|^  <groupId>.*$)\s*<artifactId>(.*?)<", file.read(), re.M)[1]
        shutil.copy(pom, os.path.join(release.folder, f"{name}-{release.version}.pom"))


def make_crates(release):
    need("cargo")
    target = release.fresh("cargo")
    run("cargo", "package", "--quiet", "--workspace", "--no-verify", "--manifest-path",
        os.path.join(release.tree, "bindings", "rust", "Cargo.toml"), env={**os.environ, "CARGO_TARGET_DIR": target})
    for crate in glob.glob(target + "/package/*.crate"):
        shutil.copy(crate, release.folder)


def make_go(release):
    """The files of a module proxy: `GOPROXY=file://DIRECTORY/go` takes the module from here, as from any other."""
    folder = os.path.join(release.folder, "go", GO_MODULE, "@v")
    os.makedirs(folder, exist_ok=True)
    version = "v" + release.version
    stem = os.path.join(folder, version)
    run("git", "archive", "--format=zip", f"--prefix={GO_MODULE}@{version}/", "-o", stem + ".zip", "HEAD:bindings/go", cwd=TOP)
    shutil.copy(os.path.join(release.tree, "bindings", "go", "go.mod"), stem + ".mod")
    with open(stem + ".info", "w", encoding="utf-8") as file:
        file.write(f'{{"Version":"{version}"}}\n')
    with open(os.path.join(folder, "list"), "w", encoding="utf-8") as file:
        file.write(version + "\n")


def make_sbom(release):
    need("meson", "ninja", "readelf")
    build = os.path.join(release.work, "meson")
    run("meson", "setup", "--wipe" if os.path.exists(build) else "--buildtype=release", "-Dtests=false", build, release.tree)
    run("ninja", "-C", build)
    users, versions = sbom.linked(build)
    when = run("date", "-u", "-d", f"@{release.seconds}", "+%Y-%m-%dT%H:%M:%SZ").strip()
    path = os.path.join(release.folder, release.name + ".spdx.json")
    sbom.write(path, release.version, when, users, versions, {"sqlite3": portable.sqlite()[1]})
    tools = os.path.dirname(portable.tools(release.work))
    run(os.path.join(tools, "pyspdxtools"), "-i", path)


PARTS = {name[5:]: function for name, function in list(globals().items()) if name.startswith("make_")}


def sums(folder):
    """SHA256SUMS, as sha256sum -c reads them."""
    lines = []
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = os.path.join(place, name)
            if name != "SHA256SUMS":
                with open(path, "rb") as file:
                    lines.append(f"{hashlib.sha256(file.read()).hexdigest()}  {os.path.relpath(path, folder)}\n")
    with open(os.path.join(folder, "SHA256SUMS"), "w", encoding="utf-8") as file:
        file.writelines(sorted(lines, key=lambda line: line.split("  ")[1]))


def main():
    parser = argparse.ArgumentParser(prog="scripts/release.py", description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--here", action="store_true", help="only for the platform of this machine")
    parser.add_argument("folder", metavar="DIRECTORY")
    parser.add_argument("parts", metavar="PART", nargs="*", help=f"some of: {' '.join(PARTS)}")
    chosen = parser.parse_args()
    for name in chosen.parts:
        if name not in PARTS:
            parser.error(f"there is no part '{name}'; there are: {' '.join(PARTS)}")
    release = Release(chosen.folder, [portable.HERE] if chosen.here else portable.PLATFORMS)
    failed = False
    for name in chosen.parts or PARTS:
        try:
            PARTS[name](release)
            print(f"ok - release: {name}", flush=True)
        except Missing as error:
            print(f"skipped - release: {name}: {error}", flush=True)
        except RuntimeError as error:
            failed = True
            print(f"{error}\nnot ok - release: {name}", flush=True)
    sums(release.folder)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
