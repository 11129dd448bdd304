#!/usr/bin/env python3
"""Compares the capability table in docs/GUARANTEES.md with what the conformance suite has printed.

    capabilities.py TESTLOG.JSON...            the status is 1 if they differ
    capabilities.py TESTLOG.JSON... --write    puts the suite's table into the document"""

import json
import os
import re
import sys

DOCUMENT = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "docs", "GUARANTEES.md")
BEGIN, END = "<!-- capability table -->\n", "<!-- end of capability table -->"


def lines_of(paths):
    for path in paths:
        with open(path, encoding="utf-8", errors="replace") as log:
            yield from log


def printed_table(log_paths):
    """The head and the rows of all runs of the suite, stores in the order of their names. Another way
    to the same store (redis+unix) has a row of its own only if that differs."""
    head, rows = [], {}
    for line in lines_of(log_paths):
        table = re.findall(r"^\|.*\|$", json.loads(line).get("stdout") or "", re.M)
        if len(table) >= 3 and table[0].startswith("| store |"):
            head = table[:2]
            rows.update((row.split("|")[1].strip(), row) for row in table[2:])
    for store in [s for s in rows if "+" in s]:
        if rows[store].replace(store, store.split("+")[0], 1) == rows.get(store.split("+")[0]):
            del rows[store]
    return "".join(line + "\n" for line in head + [rows[store] for store in sorted(rows)])


def main():
    printed = printed_table([word for word in sys.argv[1:] if word != "--write"])
    with open(DOCUMENT, encoding="utf-8") as file:
        text = file.read()
    before, rest = text.split(BEGIN)
    written, after = rest.split(END)
    if "--write" in sys.argv:
        with open(DOCUMENT, "w", encoding="utf-8") as file:
            file.write(before + BEGIN + printed + END + after)
        return 0
    if not printed or printed != written:
        print(f"the suite prints:\n{printed}\ndocs/GUARANTEES.md has:\n{written}")
        print("not ok - the capability table is what the suite prints")
        return 1
    print("ok - the capability table is what the suite prints")
    return 0


if __name__ == "__main__":
    sys.exit(main())
