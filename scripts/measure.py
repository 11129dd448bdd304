#!/usr/bin/env python3
"""Figures about the sources, to compare one state of the tree with another: docs/DESIGN.md has both columns.

    scripts/measure.py [--tree DIR] [--walk] [--of DIR...]

--walk also builds the tree without optimisation and runs one acquire of a free lock on memory:// and its
release under callgrind, to count the functions and files it passes. It wants valgrind and a compiler.
--of measures only those directories, and names their static functions with one caller: candidates to inline."""

import argparse
import collections
import os
import re
import subprocess
import sys
import tempfile

import layers

DEFINITION = re.compile(r"^(static )?[a-z_][\w \t]*[ *](\w+)\([^;{}]*\)\n\{", re.M)
COMMENT = re.compile(r"/\*.*?\*/", re.S)
PROGRAM = r"""
#include <holdfast.h>
int main(void)
{
    hf_client *client;
    hf_lock *lock;
    int r = hf_open("memory://walk", 0, &client, 0);

    for (int i = 0; r == HF_OK && i < 2; i++) { /* the first one also loads, and starts threads */
        r = hf_acquire(client, "a", HF_NTS, 0, &lock, 0);
        if (r == HF_OK)
            r = hf_lock_release(lock, 0);
    }
    hf_close(client);
    return r != HF_OK;
}
"""


def sources(tree, *roots):
    for root in roots:
        for folder, _, files in os.walk(os.path.join(tree, root)):
            for name in sorted(files):
                if name.endswith((".c", ".h")):
                    with open(os.path.join(folder, name), encoding="utf-8") as file:
                        yield os.path.relpath(os.path.join(folder, name), tree), file.read()


def lines(text):
    return sum(1 for line in text.splitlines() if line.strip())


def comment_share(texts):
    """Lines that a comment touches, of all that are not blank."""
    of_comments = sum(len(comment.group(0).splitlines()) for text in texts for comment in COMMENT.finditer(text))
    return 100 * of_comments / max(1, sum(lines(text) for text in texts))


def functions(files):
    """How many there are, how many of them are static, and which of those are named once besides their definition."""
    total = static = 0
    one_caller = []
    for path, text in files:
        bare = COMMENT.sub("", text)
        for match in DEFINITION.finditer(bare) if path.endswith(".c") else ():
            total += 1
            if match.group(1):
                static += 1
                if len(re.findall(rf"\b{match.group(2)}\b", bare)) == 2:
                    one_caller.append(f"{path}: {match.group(2)}")
    return total, static, one_caller


def directories_in_cycles(files):
    """Directories of src/ that reach themselves through the includes of others."""
    arrows = collections.defaultdict(set)
    for path, text in files:
        source = layers.directory(path)
        for name in re.findall(r'^#include "([^"]+)"', text, re.M):
            if os.path.dirname(name) and layers.directory(name) != source:
                arrows[source].add(layers.directory(name))

    def reach(start):
        seen, todo = set(), list(arrows[start])
        while todo:
            name = todo.pop()
            if name not in seen:
                seen.add(name)
                todo += arrows[name]
        return seen

    return sum(name in reach(name) for name in list(arrows))


def walk(tree):
    """Functions and files of ours that one acquire and release of a free lock passes."""
    with tempfile.TemporaryDirectory() as folder:
        build, program, out = (os.path.join(folder, name) for name in ("build", "walk.c", "out"))
        with open(program, "w", encoding="utf-8") as file:
            file.write(PROGRAM)
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "check": True}
        subprocess.run(["meson", "setup", "--buildtype=debug", "-Dtests=false", "-Ddefault_library=static",
                        build, tree], **quiet)
        subprocess.run(["ninja", "-C", build, "src/libholdfast.a"], **quiet)
        binary = os.path.join(folder, "walk")
        subprocess.run(["cc", "-g", "-I", os.path.join(tree, "include"), program, "-o", binary,
                        os.path.join(build, "src/libholdfast.a"), "-lsqlite3", "-lm", "-ldl", "-lpthread"], **quiet)
        subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", "--compress-strings=no",
                        "--toggle-collect=hf_acquire", "--toggle-collect=hf_lock_release", binary], **quiet)
        passed, file_name = set(), ""
        with open(out, encoding="utf-8") as file:
            for line in file:
                if line.startswith(("fl=", "fi=", "fe=")):
                    file_name = line.split("=", 1)[1].strip()
                elif line.startswith("fn=") and "/src/" in file_name:
                    passed.add((file_name, line[3:].strip()))
    return len({name for _, name in passed}), len({file for file, _ in passed})


def main():
    parser = argparse.ArgumentParser(description="Figures about the sources.")
    parser.add_argument("--tree", default=os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    parser.add_argument("--walk", action="store_true", help="also count what one acquire passes")
    parser.add_argument("--of", nargs="+", metavar="DIR", help="only those directories; names functions with one caller")
    chosen = parser.parse_args()
    files = list(sources(chosen.tree, *(chosen.of or ("src", "cli", "include"))))
    total, static, one_caller = functions(files)
    figures = [
        (f"lines of C in {', '.join(chosen.of) if chosen.of else 'src, cli and include'}", sum(text.count("\n") for _, text in files)),
        ("functions", total),
        ("static functions with one caller", f"{100 * len(one_caller) / max(1, static):.0f} %"),
        ("comment lines in .c files", f"{comment_share([t for p, t in files if p.endswith('.c')]):.0f} %"),
        ("comment lines in headers", f"{comment_share([t for p, t in files if p.endswith('.h')]):.0f} %"),
        ("headers above 330 lines", sum(p.endswith(".h") and t.count("\n") > 330 for p, t in files)),
        ("directories of src that include each other in a circle", directories_in_cycles(files)),
    ]
    if chosen.walk:
        passed = walk(os.path.abspath(chosen.tree))
        figures += [("functions that one free acquire and its release pass", passed[0]), ("files they are in", passed[1])]
    for what, value in figures:
        print(f"| {what} | {value} |")
    if chosen.of:
        print("\n".join(one_caller))
    return 0


if __name__ == "__main__":
    sys.exit(main())
