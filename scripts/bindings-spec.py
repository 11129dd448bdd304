#!/usr/bin/env python3
"""Writes bindings/spec.json: the part of include/holdfast.h that every other language repeats (codes, capabilities,
causes, enumerations, constants, names of functions).

    scripts/bindings-spec.py            writes it
    scripts/bindings-spec.py --check    prints "ok - ..." or "not ok - ..." and what to do

scripts/bindings-codes.py makes each language's table from it."""

import json
import os
import re
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HEADER = os.path.join(TOP, "include", "holdfast.h")
SPEC = os.path.join(TOP, "bindings", "spec.json")

STRING = r'"((?:[^"\\]|\\.)*)"'


def without_comments(text):
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def rows(text, macro):
    """The arguments of each X(...) in the list that a macro of this name defines."""
    match = re.search(rf"#define {macro}\(X\)((?:.*\\\n)*.*)", text)
    body = re.sub(r'"\s*"', "", match.group(1).replace("\\\n", ""))  # neighbouring strings are one
    for row in re.findall(rf"X\(((?:[^()\"]|{STRING.replace('(', '(?:', 1)})*)\)", body):
        cells = re.findall(rf"{STRING}|([^,\s]+)", row)
        yield [quoted or bare for quoted, bare in cells]


def value_of(expression):
    """A constant's number, or its string."""
    expression = expression.strip()
    if expression.startswith('"'):
        return json.loads(expression)
    if expression == "((size_t)-1)":
        return None  # HF_NTS: its value depends on the machine
    number = re.sub(r"(?<=\d)LL\b", "", expression)
    if not re.fullmatch(r"[\d\s()*+-]+", number):
        raise SystemExit(f"bindings-spec: '{expression}' is not a number that this script can read")
    return eval(number)  # digits, brackets and signs only


def constants(text):
    found = {}
    for name, expression in re.findall(r"^#define (HF_[A-Z][A-Z_]+)[ ]+(\S.*)$", text, re.M):
        if name in ("HF_OPTIONS_INIT",) or expression.startswith("\\"):
            continue
        value = value_of(expression)
        if value is not None:
            found[name] = value
    return found


def enumeration(text, name):
    """{constant: value} of an enumeration that names its values itself."""
    body = re.search(rf"typedef enum {name} \{{(.*?)\}}", text, re.S).group(1)
    return {constant: int(value) for constant, value in re.findall(r"(HF_\w+) = (\d+)", body)}


def spec():
    with open(HEADER, encoding="utf-8") as file:
        text = without_comments(file.read())
    return {
        "about": "Written by scripts/bindings-spec.py from include/holdfast.h. Do not edit.",
        "version": constants(text)["HF_VERSION"],
        "errors": [
            {"id": id, "value": int(value), "exit_status": int(status), "text": words}
            for id, value, status, words in rows(text, "HF_ERRORS")],
        "capabilities": [
            {"id": id, "bit": int(bit), "name": name, "text": words}
            for id, bit, name, words in rows(text, "HF_CAPABILITIES")],
        "causes": [
            {"id": id, "value": value, "text": words} for value, (id, words) in enumerate(rows(text, "HF_CAUSES"))],
        "enums": {name: enumeration(text, name) for name in ("hf_mode", "hf_event_kind", "hf_state", "hf_place")},
        "constants": {name: value for name, value in constants(text).items() if name != "HF_VERSION"},
        "functions": re.findall(r"^(?!typedef)[a-z_0-9 ]+?[ *](hf_\w+)\(", text, re.M),
    }


def main():
    new = json.dumps(spec(), indent=2) + "\n"
    old = ""
    if os.path.exists(SPEC):
        with open(SPEC, encoding="utf-8") as file:
            old = file.read()
    if sys.argv[1:] == ["--check"]:
        if new != old:
            print("bindings/spec.json is older than include/holdfast.h: run scripts/bindings-spec.py,"
                  " then scripts/bindings-codes.py")
        print(f"{'ok' if new == old else 'not ok'} - bindings/spec.json is that of include/holdfast.h")
        return new != old
    if sys.argv[1:]:
        raise SystemExit("usage: bindings-spec.py [--check]")
    if new != old:
        with open(SPEC, "w", encoding="utf-8") as file:
            file.write(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
