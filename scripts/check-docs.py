#!/usr/bin/env python3
"""Checks the Markdown files: every link to a file or a heading of this tree, and every picture, leads somewhere; and
what is there in two languages (FILE.md, FILE.zh-CN.md) has the same headings, by number and level, and the same blocks of
code; and docs/LANGUAGES.md shows the languages'
own first lines; and the tables and drawings of the fault laboratory are those of its results.

Prints "ok - FILE" or "not ok - FILE" with what is wrong; the status is 1 if something is."""

import glob
import itertools
import os
import re
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
PICTURE = re.compile(r"<(?:img|source)\b[^>]*\bsrc(?:set)?=\"([^\"\s]+)\"")
FENCE = re.compile(r"^(```|~~~).*?^\1\s*$", re.M | re.S)
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$", re.M)


def markdown_files():
    for folder, folders, files in os.walk(TOP):
        folders[:] = [f for f in folders if f != ".git" and not (folder == TOP and f.startswith("build"))]
        yield from (os.path.join(folder, f) for f in sorted(files) if f.endswith(".md"))


def read(path):
    with open(path, encoding="utf-8") as file:
        return FENCE.sub("", file.read())


def anchors(path):
    """The names that headings get when they are shown: lower case, blanks to dashes, no punctuation."""
    seen = {}
    for heading in HEADING.findall(read(path)):
        text = LINK.sub(lambda m: m.group(0)[1:].split("]")[0], heading)
        slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        number = seen.get(slug, 0)
        seen[slug] = number + 1
        yield f"{slug}-{number}" if number else slug


def problems(path):
    text = read(path)
    for target in LINK.findall(text) + PICTURE.findall(text):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        where = os.path.normpath(os.path.join(os.path.dirname(path), file)) if file else path
        if not os.path.exists(where):
            yield f"{target}: there is no such file"
        elif anchor and where.endswith(".md") and anchor not in anchors(where):
            yield f"{target}: there is no such heading"


def outline(path):
    """The level of each heading and the text of each block of code, in their order."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    for match in re.finditer(FENCE.pattern + "|" + HEADING.pattern, text, re.M | re.S):
        block = match.group(0)
        if block.startswith("#"):
            yield "heading", len(block) - len(block.lstrip("#")), text.count("\n", 0, match.start()) + 1
        else:
            yield "code", block, text.count("\n", 0, match.start()) + 1


def differences(path, other):
    """Where the file in the other language stops following this one."""
    if not os.path.exists(path):
        yield f"there is no {os.path.basename(path)}"
        return
    end = ("end", None, 0)
    mine, theirs = [*outline(path), end], [*outline(other), end]
    for (kind, what, line), (other_kind, other_what, other_line) in zip(mine, theirs):
        if (kind, what) != (other_kind, other_what):
            yield f"line {other_line} has other {other_kind} than line {line} of {os.path.basename(path)} ({kind})"
            return


def strange_snippets():
    """What docs/LANGUAGES.md shows of a language is the first block of its README, which the language's tests run."""
    first = set()
    for path in glob.glob(os.path.join(TOP, "bindings", "*", "README.md")):
        with open(path, encoding="utf-8") as file:
            first.update(match.group(0) for match in itertools.islice(FENCE.finditer(file.read()), 1))
    with open(os.path.join(TOP, "docs", "LANGUAGES.md"), encoding="utf-8") as file:
        for match in FENCE.finditer(file.read()):
            if match.group(0) not in first:
                yield f"'{match.group(0).splitlines()[1]} ...' is not the first block of a language's README"


def main():
    status = 0
    for path in markdown_files():
        name = os.path.relpath(path, TOP)
        found = list(problems(path))
        if path.endswith(".zh-CN.md"):
            found += differences(path[:-len(".zh-CN.md")] + ".md", path)
        if name == "docs/LANGUAGES.md":
            found += strange_snippets()
        for problem in found:
            print(f"{name}: {problem}")
        print(f"{'not ok' if found else 'ok'} - {name}")
        status |= bool(found)
    for program in ("report.py", "timeline.py"):  # what is made from recorded results is what is there
        status |= subprocess.run([sys.executable, os.path.join(TOP, "tests", "lab", program), "--check"], check=False).returncode
    return status


if __name__ == "__main__":
    sys.exit(main())
