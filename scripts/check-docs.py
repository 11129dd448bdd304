#!/usr/bin/env python3
"""Checks the Markdown files: every link to a file or a heading of this tree, and every picture, leads somewhere.

Prints "ok - FILE" or "not ok - FILE" with what is wrong; the status is 1 if something is."""

import os
import re
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


def main():
    status = 0
    for path in markdown_files():
        name = os.path.relpath(path, TOP)
        found = list(problems(path))
        for problem in found:
            print(f"{name}: {problem}")
        print(f"{'not ok' if found else 'ok'} - links of {name}")
        status |= bool(found)
    return status


if __name__ == "__main__":
    sys.exit(main())
